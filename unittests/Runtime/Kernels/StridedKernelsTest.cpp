// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include "Spyre/Device/DL16.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace spyre::runtime;

namespace {

class StridedKernels : public KernelTest {};

struct Case {
  std::vector<size_t> shape;
  std::vector<ptrdiff_t> dst, src;
  size_t dstSize, srcSize;
};

/// Dense strides of `shape` when its dimensions are stored in `order`,
/// outermost first, with every stride times `gap`.
std::vector<ptrdiff_t> denseStrides(const std::vector<size_t> &shape,
                                    const std::vector<unsigned> &order,
                                    size_t gap) {
  std::vector<ptrdiff_t> strides(shape.size());
  ptrdiff_t next = ptrdiff_t(gap);
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = next;
    next *= ptrdiff_t(shape[order[i]]);
  }
  return strides;
}

size_t product(const std::vector<size_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t(1),
                         std::multiplies<size_t>());
}

/// All pairs of orders for small ranks, some for larger ones; gaps; broadcasts.
std::vector<Case> cases() {
  std::vector<std::vector<size_t>> shapes = {
      {},          {0},          {1},           {7},      {300},
      {5, 0},      {3, 5},       {16, 16},      {65, 70}, {33, 130},
      {2, 40},     {2, 9, 24},   {1, 64, 1},    {64, 41}, {4, 3, 5},
      {2, 17, 64}, {2, 3, 4, 5}, {2, 20, 2, 64}};
  std::vector<Case> result;
  std::mt19937 generator(5);
  for (auto &shape : shapes)
    for (int variant = 0; variant < 12; ++variant) {
      std::vector<unsigned> dstOrder(shape.size()), srcOrder;
      std::iota(dstOrder.begin(), dstOrder.end(), 0u);
      srcOrder = dstOrder;
      if (variant >= 2)
        std::shuffle(srcOrder.begin(), srcOrder.end(), generator);
      if (variant >= 6)
        std::shuffle(dstOrder.begin(), dstOrder.end(), generator);
      size_t dstGap = variant % 4 == 3 ? 2 : 1;
      size_t srcGap = variant % 4 == 2 ? 3 : 1;
      Case c = {shape, denseStrides(shape, dstOrder, dstGap),
                denseStrides(shape, srcOrder, srcGap),
                product(shape) * dstGap + 1, product(shape) * srcGap + 1};
      // Broadcast one dimension.
      if (variant % 3 == 1 && !shape.empty())
        c.src[generator() % shape.size()] = 0;
      result.push_back(c);
    }
  return result;
}

/// Calls f(dst offset, src offset) for every element.
template <class F>
void forElements(const Case &c, F f) {
  std::vector<size_t> index(c.shape.size());
  if (product(c.shape) == 0)
    return;
  while (true) {
    ptrdiff_t d = 0, s = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      d += ptrdiff_t(index[i]) * c.dst[i];
      s += ptrdiff_t(index[i]) * c.src[i];
    }
    f(size_t(d), size_t(s));
    size_t i = index.size();
    for (; i > 0; --i) {
      if (++index[i - 1] < c.shape[i - 1])
        break;
      index[i - 1] = 0;
    }
    if (i == 0)
      return;
  }
}

/// Runs `move(dst, src, case)` and compares with `convert` element by element;
/// everything else in dst must keep its value.
template <class T, class S, class Move, class Convert>
void check(Move move, Convert convert, const std::vector<S> &values) {
  for (const Case &c : cases()) {
    std::vector<S> src(c.srcSize);
    for (size_t i = 0; i < src.size(); ++i)
      src[i] = values[i * 31 % values.size()];
    std::vector<T> dst(c.dstSize, T(42)), expected = dst;
    forElements(c, [&](size_t d, size_t s) { expected[d] = convert(src[s]); });
    move(dst.data(), src.data(), c);
    for (size_t i = 0; i < dst.size(); ++i) {
      bool same;
      if constexpr (std::is_same_v<T, float>)
        same = sameFloat(dst[i], expected[i]);
      else
        same = dst[i] == expected[i];
      ASSERT_TRUE(same) << "element " << i << " of rank " << c.shape.size()
                        << ": " << +dst[i] << ", expected " << +expected[i];
    }
  }
}

TEST_P(StridedKernels, Copies) {
  std::vector<int64_t> values(997);
  std::iota(values.begin(), values.end(), INT64_C(5000000000));
  check<int64_t, int64_t>(
      [&](int64_t *dst, const int64_t *src, const Case &c) {
        k.copyInt64(dst, c.dst.data(), src, c.src.data(), c.shape.data(),
                    unsigned(c.shape.size()));
      },
      [](int64_t x) { return x; }, values);
  std::vector<int32_t> narrow(values.begin(), values.end());
  check<int32_t, int32_t>(
      [&](int32_t *dst, const int32_t *src, const Case &c) {
        k.copyInt32(dst, c.dst.data(), src, c.src.data(), c.shape.data(),
                    unsigned(c.shape.size()));
      },
      [](int32_t x) { return x; }, narrow);
  std::vector<int16_t> codes(values.begin(), values.end());
  check<int16_t, int16_t>(
      [&](int16_t *dst, const int16_t *src, const Case &c) {
        k.copyInt16(dst, c.dst.data(), src, c.src.data(), c.shape.data(),
                    unsigned(c.shape.size()));
      },
      [](int16_t x) { return x; }, codes);
  check<float, float>(
      [&](float *dst, const float *src, const Case &c) {
        k.copyFloat(dst, c.dst.data(), src, c.src.data(), c.shape.data(),
                    unsigned(c.shape.size()));
      },
      [](float x) { return x; }, randomFloats(997, -9, 9));
}

TEST_P(StridedKernels, ReversedAndManyDimensions) {
  std::vector<float> src = randomFloats(1 << 18, 0, 1), dst(src.size());
  // Negative strides read backwards.
  size_t n = 100;
  ptrdiff_t forward = 1, backward = -1;
  k.copyFloat(dst.data(), &forward, src.data() + n - 1, &backward, &n, 1);
  for (size_t i = 0; i < n; ++i)
    ASSERT_EQ(dst[i], src[n - 1 - i]);
  k.copyFloat(dst.data() + n - 1, &backward, src.data(), &forward, &n, 1);
  for (size_t i = 0; i < n; ++i)
    ASSERT_EQ(dst[i], src[n - 1 - i]);
  // Bit reversal: eighteen dimensions, none of which joins another.
  size_t shape[18];
  ptrdiff_t dstStrides[18], srcStrides[18];
  for (unsigned d = 0; d < 18; ++d) {
    shape[d] = 2;
    dstStrides[d] = ptrdiff_t(1) << (17 - d);
    srcStrides[d] = ptrdiff_t(1) << d;
  }
  k.copyFloat(dst.data(), dstStrides, src.data(), srcStrides, shape, 18);
  for (size_t i = 0; i < src.size(); ++i) {
    size_t reversed = 0;
    for (unsigned bit = 0; bit < 18; ++bit)
      reversed |= (i >> bit & 1) << (17 - bit);
    ASSERT_EQ(dst[i], src[reversed]);
  }
}

struct FloatFormat {
  ElementFormat format;
  Rounding rounding;
};
const FloatFormat kFloatFormats[] = {
    {ElementFormat::DL16, Rounding::DL16},
    {ElementFormat::IEEEHalf, Rounding::IEEEHalf},
    {ElementFormat::BF16, Rounding::BF16},
    {ElementFormat::F8E4M3FN, Rounding::F8E4M3FN},
    {ElementFormat::F8E5M2, Rounding::F8E5M2}};

/// The value of a code by its definition.
float decodeReference(ElementFormat format, uint32_t code) {
  int exponentBits = 0, fraction = 0;
  switch (format) {
  case ElementFormat::DL16:
    return spyre::decodeDL16(uint16_t(code));
  case ElementFormat::IEEEHalf:
    exponentBits = 5, fraction = 10;
    break;
  case ElementFormat::BF16:
    exponentBits = 8, fraction = 7;
    break;
  case ElementFormat::F8E4M3FN:
    exponentBits = 4, fraction = 3;
    break;
  default:
    exponentBits = 5, fraction = 2;
    break;
  }
  uint32_t sign = code >> (exponentBits + fraction) & 1;
  uint32_t exponent = code >> fraction & ((1u << exponentBits) - 1);
  uint32_t bits = code & ((1u << fraction) - 1);
  bool isTop = exponent == (1u << exponentBits) - 1;
  int bias = (1 << (exponentBits - 1)) - 1;
  float value;
  if (format == ElementFormat::F8E4M3FN && isTop && bits == 7)
    value = NAN;
  else if (format != ElementFormat::F8E4M3FN && isTop)
    value = bits ? NAN : INFINITY;
  else
    value = float(std::ldexp(double(bits) + (exponent ? 1 << fraction : 0),
                             std::max(int(exponent), 1) - bias - fraction));
  return sign ? -value : value;
}

TEST_P(StridedKernels, EveryCodeOfEveryFloatFormat) {
  for (const FloatFormat &f : kFloatFormats) {
    unsigned bytes = storageBytes(f.format);
    size_t count = size_t(1) << (8 * bytes);
    std::vector<uint16_t> wide(count);
    std::vector<uint8_t> narrow(count);
    for (size_t i = 0; i < count; ++i) {
      wide[i] = uint16_t(i);
      narrow[i] = uint8_t(i);
    }
    const void *codes =
        bytes == 2 ? static_cast<const void *>(wide.data()) : narrow.data();
    std::vector<float> values(count);
    k.loadFloatRun(f.format, codes, values.data(), count);
    std::vector<uint16_t> wideBack(count);
    std::vector<uint8_t> narrowBack(count);
    void *back =
        bytes == 2 ? static_cast<void *>(wideBack.data()) : narrowBack.data();
    k.storeFloatRun(f.format, values.data(), back, count);
    for (size_t i = 0; i < count; ++i) {
      float expected = decodeReference(f.format, uint32_t(i));
      ASSERT_TRUE(sameFloat(values[i], expected))
          << int(f.format) << " code " << i << " gave " << values[i];
      if (!std::isnan(expected)) {
        ASSERT_EQ(bytes == 2 ? wideBack[i] : narrowBack[i], i) << int(f.format);
      }
    }
    // Storing is rounding: reading back gives the rounded value.
    std::vector<float> x = sampleFloats(100000);
    std::vector<float> rounded(x.size()), loaded(x.size());
    std::vector<uint16_t> stored(x.size());
    k.round(x.data(), rounded.data(), x.size(), f.rounding);
    k.storeFloatRun(f.format, x.data(), stored.data(), x.size());
    k.loadFloatRun(f.format, stored.data(), loaded.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(sameFloat(rounded[i], loaded[i]))
          << int(f.format) << ": " << x[i] << " " << rounded[i] << " "
          << loaded[i];
  }
}

TEST_P(StridedKernels, LooksUpCodes) {
  std::vector<uint16_t> table(65536);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = uint16_t(i * 40503 + 7);
  for (size_t n : {0, 1, 31, 32, 33, 100, 65536}) {
    std::vector<uint16_t> codes(n), found(n + 1, 0x1234);
    for (size_t i = 0; i < n; ++i)
      codes[i] = uint16_t(65535 - i * 77);
    k.lookUp(table.data(), codes.data(), found.data(), n);
    EXPECT_EQ(found[n], 0x1234);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(found[i], table[codes[i]]) << n << " " << i;
    // In place.
    k.lookUp(table.data(), codes.data(), codes.data(), n);
    EXPECT_TRUE(std::equal(codes.begin(), codes.end(), found.begin()));
  }
}

// By hand, as the device library's own test of all floats.
TEST_P(StridedKernels, DISABLED_AllFloatsStoreAndRoundAsTheDeviceLibraryDoes) {
  constexpr uint64_t block = uint64_t(1) << 20;
  std::vector<float> values(block), rounded(block);
  std::vector<uint16_t> codes(block), expected(block);
  for (uint64_t first = 0; first < (uint64_t(1) << 32); first += block) {
    for (uint64_t i = 0; i < block; ++i) {
      uint32_t bits = static_cast<uint32_t>(first + i);
      std::memcpy(&values[i], &bits, sizeof(bits));
    }
    k.storeFloatRun(ElementFormat::DL16, values.data(), codes.data(), block);
    k.round(values.data(), rounded.data(), block, Rounding::DL16);
    for (uint64_t i = 0; i < block; ++i) {
      expected[i] = spyre::encodeDL16(values[i]);
      ASSERT_EQ(codes[i], expected[i]) << std::hex << first + i;
      ASSERT_EQ(rounded[i], spyre::decodeDL16(expected[i]))
          << std::hex << first + i;
    }
  }
}

TEST_P(StridedKernels, StoresNaNAndOverflowOfDL16AsTheDeviceLibraryDoes) {
  std::vector<float> x = sampleFloats(100000);
  std::vector<uint16_t> codes(x.size());
  k.storeFloatRun(ElementFormat::DL16, x.data(), codes.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(codes[i], spyre::encodeDL16(x[i])) << x[i];
}

// Groups of vectors take a short way that knows no large magnitude and no NaN.
TEST_P(StridedKernels, StoresOneRareValueAmongCommonOnes) {
  const size_t n = 200;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> rare = {0.0f, 1e-40f, infinity, floatOfBits(0x7fc00000),
                             floatOfBits(0x7fffffff)};
  for (float edge : {0x1p-32f, 0x1p-31f, 0x1.004p-31f, 0x1.008p-31f, 0x1.fep32f,
                     0x1.ff4p32f, 0x1.ff8p32f, 0x1.ffcp32f, 0x1p33f})
    for (float x :
         {std::nextafterf(edge, 0.0f), edge, std::nextafterf(edge, infinity)})
      rare.push_back(x);
  for (float value : rare)
    for (float special : {value, -value})
      for (size_t at : {size_t(0), size_t(77), n - 1}) {
        std::vector<float> x(n);
        for (size_t i = 0; i < n; ++i)
          x[i] = 0.01f * (float(i) - 80.0f);
        x[at] = special;
        std::vector<uint16_t> codes(n);
        k.storeFloatRun(ElementFormat::DL16, x.data(), codes.data(), n);
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(codes[i], spyre::encodeDL16(x[i])) << x[i];
      }
}

TEST_P(StridedKernels, StridedFloatConversions) {
  std::vector<float> values = randomFloats(997, -400, 400);
  std::vector<uint16_t> codes(997);
  k.storeFloatRun(ElementFormat::DL16, values.data(), codes.data(), 997);
  check<float, uint16_t>(
      [&](float *dst, const uint16_t *src, const Case &c) {
        k.loadFloat(ElementFormat::DL16, dst, c.dst.data(), src, c.src.data(),
                    c.shape.data(), unsigned(c.shape.size()));
      },
      [](uint16_t code) { return spyre::decodeDL16(code); }, codes);
  check<uint16_t, float>(
      [&](uint16_t *dst, const float *src, const Case &c) {
        k.storeFloat(ElementFormat::DL16, dst, c.dst.data(), src, c.src.data(),
                     c.shape.data(), unsigned(c.shape.size()));
      },
      [](float x) { return spyre::encodeDL16(x); }, values);
  std::vector<uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), uint8_t(0));
  check<float, uint8_t>(
      [&](float *dst, const uint8_t *src, const Case &c) {
        k.loadFloat(ElementFormat::F8E4M3FN, dst, c.dst.data(), src,
                    c.src.data(), c.shape.data(), unsigned(c.shape.size()));
      },
      [](uint8_t code) {
        return decodeReference(ElementFormat::F8E4M3FN, code);
      },
      bytes);
  check<float, float>(
      [&](float *dst, const float *src, const Case &c) {
        k.storeFloat(ElementFormat::F32, dst, c.dst.data(), src, c.src.data(),
                     c.shape.data(), unsigned(c.shape.size()));
      },
      [](float x) { return x; }, values);
}

template <class Stored, class Held>
void checkIntegers(const KernelTable &k, ElementFormat format) {
  std::vector<Stored> stored(997);
  std::vector<Held> held(997);
  std::mt19937_64 generator(3);
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] = Stored(generator());
    held[i] = Held(generator());
    if (format == ElementFormat::I1)
      stored[i] &= 1;
  }
  check<Held, Stored>(
      [&](Held *dst, const Stored *src, const Case &c) {
        if constexpr (sizeof(Held) == 8)
          k.loadInt64(format, dst, c.dst.data(), src, c.src.data(),
                      c.shape.data(), unsigned(c.shape.size()));
        else
          k.loadInt32(format, dst, c.dst.data(), src, c.src.data(),
                      c.shape.data(), unsigned(c.shape.size()));
      },
      [](Stored x) { return Held(x); }, stored);
  check<Stored, Held>(
      [&](Stored *dst, const Held *src, const Case &c) {
        if constexpr (sizeof(Held) == 8)
          k.storeInt64(format, dst, c.dst.data(), src, c.src.data(),
                       c.shape.data(), unsigned(c.shape.size()));
        else
          k.storeInt32(format, dst, c.dst.data(), src, c.src.data(),
                       c.shape.data(), unsigned(c.shape.size()));
      },
      [&](Held x) { return Stored(format == ElementFormat::I1 ? x & 1 : x); },
      held);
}

TEST_P(StridedKernels, StridedIntegerConversions) {
  checkIntegers<uint8_t, int32_t>(k, ElementFormat::I1);
  checkIntegers<int8_t, int32_t>(k, ElementFormat::I8);
  checkIntegers<int16_t, int32_t>(k, ElementFormat::I16);
  checkIntegers<int32_t, int32_t>(k, ElementFormat::I32);
  checkIntegers<uint8_t, int64_t>(k, ElementFormat::I1);
  checkIntegers<int8_t, int64_t>(k, ElementFormat::I8);
  checkIntegers<int16_t, int64_t>(k, ElementFormat::I16);
  checkIntegers<int32_t, int64_t>(k, ElementFormat::I32);
  checkIntegers<int64_t, int64_t>(k, ElementFormat::I64);
}

// Rows that share the ways of a cache are fetched in another way.
TEST_P(StridedKernels, RowsThatLieFarApart) {
  constexpr size_t rows = 5;
  for (ElementFormat format :
       {ElementFormat::DL16, ElementFormat::BF16, ElementFormat::F8E5M2})
    for (size_t stride : {2048, 2056, 4096})
      for (size_t columns : {1, 33, 64, 200, 511, 700}) {
        std::vector<uint8_t> memory(rows * stride * storageBytes(format));
        for (size_t i = 0; i < memory.size(); ++i)
          memory[i] = uint8_t(i * 37 % 251 % 120);
        std::vector<float> found(rows * columns + 1, 77.0f), expected(columns);
        size_t shape[] = {rows, columns};
        ptrdiff_t to[] = {ptrdiff_t(columns), 1},
                  from[] = {ptrdiff_t(stride), 1};
        k.loadFloat(format, found.data(), to, memory.data(), from, shape, 2);
        for (size_t r = 0; r < rows; ++r) {
          k.loadFloatRun(format,
                         memory.data() + r * stride * storageBytes(format),
                         expected.data(), columns);
          for (size_t c = 0; c < columns; ++c)
            ASSERT_EQ(found[r * columns + c], expected[c])
                << stride << " " << columns << " " << r << " " << c;
        }
        ASSERT_EQ(found.back(), 77.0f);
      }
}

SPYRE_INSTANTIATE_KERNEL_TEST(StridedKernels);

} // namespace
