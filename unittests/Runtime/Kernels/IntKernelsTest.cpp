// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include <algorithm>

using namespace spyre::runtime;

namespace {

using Wide = __int128;

/// The value that a tile holds for the low bits of x.
int64_t held(Wide x, unsigned width) {
  if (width == 1)
    return int64_t(x & 1);
  uint64_t low = uint64_t(x) << (64 - width);
  return int64_t(low) >> (64 - width);
}
Wide asSigned(int64_t x, unsigned width) { return width == 1 ? -x : x; }
Wide asUnsigned(int64_t x, unsigned width) {
  return Wide(uint64_t(x) &
              (width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1));
}

struct Expected {
  int64_t value;
  unsigned status;
};

Expected reference(IntBinaryOp op, int64_t a, int64_t b, unsigned width) {
  Wide sa = asSigned(a, width), sb = asSigned(b, width);
  Wide ua = asUnsigned(a, width), ub = asUnsigned(b, width);
  unsigned overflow = kIntOverflow;
  auto checked = [&](Wide exact) {
    int64_t value = held(exact, width);
    bool fits = asSigned(value, width) == exact || width == 1;
    return Expected{value, fits ? unsigned(kIntOk) : overflow};
  };
  auto divide = [&](Wide x, Wide y, int direction) -> Expected {
    if (y == 0)
      return {0, kIntDivideByZero};
    Wide q = x / y, r = x % y;
    if (direction < 0 && r != 0 && (r < 0) != (y < 0))
      --q;
    if (direction > 0 && r != 0 && (r < 0) == (y < 0))
      ++q;
    return checked(q);
  };
  auto unsignedOnly = [&](Expected e) {
    return Expected{e.value, e.status & ~unsigned(kIntOverflow)};
  };
  bool badShift = ub >= width;
  switch (op) {
  case IntBinaryOp::Add:
    return checked(sa + sb);
  case IntBinaryOp::Sub:
    return checked(sa - sb);
  case IntBinaryOp::Mul:
    return checked(sa * sb);
  case IntBinaryOp::DivS:
    return divide(sa, sb, 0);
  case IntBinaryOp::FloorDivS:
    return divide(sa, sb, -1);
  case IntBinaryOp::CeilDivS:
    return divide(sa, sb, 1);
  case IntBinaryOp::DivU:
    return unsignedOnly(divide(ua, ub, 0));
  case IntBinaryOp::CeilDivU:
    return unsignedOnly(divide(ua, ub, 1));
  case IntBinaryOp::RemS:
    if (sb == 0)
      return {0, kIntDivideByZero};
    return {held(sa % sb, width), kIntOk};
  case IntBinaryOp::RemU:
    if (ub == 0)
      return {0, kIntDivideByZero};
    return {held(ua % ub, width), kIntOk};
  case IntBinaryOp::And:
    return {held(ua & ub, width), kIntOk};
  case IntBinaryOp::Or:
    return {held(ua | ub, width), kIntOk};
  case IntBinaryOp::Xor:
    return {held(ua ^ ub, width), kIntOk};
  case IntBinaryOp::Shl:
    if (badShift)
      return {0, kIntBadShift};
    return checked(sa * (Wide(1) << unsigned(ub)));
  case IntBinaryOp::ShrS:
    if (badShift)
      return {held(sa < 0 ? -1 : 0, width), kIntBadShift};
    return {held(sa >> unsigned(ub), width), kIntOk};
  case IntBinaryOp::ShrU:
    if (badShift)
      return {0, kIntBadShift};
    return {held(ua >> unsigned(ub), width), kIntOk};
  case IntBinaryOp::MinS:
    return {sa < sb ? a : b, kIntOk};
  case IntBinaryOp::MaxS:
    return {sa > sb ? a : b, kIntOk};
  case IntBinaryOp::MinU:
    return {ua < ub ? a : b, kIntOk};
  case IntBinaryOp::MaxU:
    return {ua > ub ? a : b, kIntOk};
  }
  return {0, kIntOk};
}

/// The ends and middles of a width, small values and random ones.
template <class T>
std::vector<T> operands(unsigned width) {
  std::vector<T> values;
  std::mt19937_64 generator(7);
  std::vector<int64_t> raw = {
      0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, INT64_C(1) << (width - 1)};
  for (int i = 0; i < 20; ++i)
    raw.push_back(int64_t(generator()));
  for (int64_t x : raw)
    for (int64_t v :
         {x, int64_t(0 - uint64_t(x)), int64_t(uint64_t(x) - 1), x >> 9})
      values.push_back(T(held(v, width)));
  return values;
}

class IntKernels : public KernelTest {
protected:
  template <class T>
  IntStatus binary(IntBinaryOp op, const T *a, size_t stepA, const T *b,
                   size_t stepB, T *result, size_t n, unsigned width) {
    if constexpr (sizeof(T) == 8)
      return k.binaryInt64(op, a, stepA, b, stepB, result, n);
    else
      return k.binaryInt32(op, a, stepA, b, stepB, result, n, width);
  }

  template <class T>
  void checkBinary(unsigned width) {
    std::vector<T> values = operands<T>(width), a, b;
    for (T x : values)
      for (T y : values) {
        a.push_back(x);
        b.push_back(y);
      }
    size_t n = a.size();
    for (unsigned o = 0; o <= unsigned(IntBinaryOp::MaxU); ++o) {
      IntBinaryOp op = IntBinaryOp(o);
      for (size_t stepA : {0, 1})
        for (size_t stepB : {0, 1}) {
          // Scalars: each value once.
          size_t first = stepA && stepB ? 0 : size_t(values.size()) * 5 + 9;
          size_t count = n - first;
          std::vector<T> r(count + 1, T(42));
          unsigned status =
              binary(op, a.data() + first, stepA, b.data() + first, stepB,
                     r.data(), count, width);
          unsigned expectedStatus = 0;
          for (size_t i = 0; i < count; ++i) {
            T x = a[first + i * stepA], y = b[first + i * stepB];
            Expected e = reference(op, x, y, width);
            expectedStatus |= e.status;
            ASSERT_EQ(r[i], T(e.value))
                << "op " << o << " width " << width << ": " << x << " " << y;
          }
          EXPECT_EQ(r[count], T(42));
          EXPECT_EQ(status, expectedStatus) << "op " << o << " width " << width;
        }
    }
  }

  template <class T>
  void checkCompare(unsigned width) {
    std::vector<T> values = operands<T>(width), a, b;
    for (T x : values)
      for (T y : values) {
        a.push_back(x);
        b.push_back(y);
      }
    size_t n = a.size();
    for (unsigned p = 0; p <= unsigned(IntPredicate::UGE); ++p)
      for (unsigned steps = 0; steps < 4; ++steps) {
        size_t stepA = steps & 1, stepB = steps >> 1;
        std::vector<int32_t> r(n);
        const T *left = a.data() + (stepA ? 0 : 77);
        const T *right = b.data() + (stepB ? 0 : 77);
        if constexpr (sizeof(T) == 8)
          k.compareInt64(IntPredicate(p), left, stepA, right, stepB, r.data(),
                         n);
        else
          k.compareInt32(IntPredicate(p), left, stepA, right, stepB, r.data(),
                         n, width);
        for (size_t i = 0; i < n; ++i) {
          bool isUnsigned = p >= unsigned(IntPredicate::ULT);
          T x0 = left[i * stepA], y0 = right[i * stepB];
          Wide x = isUnsigned ? asUnsigned(x0, width) : asSigned(x0, width);
          Wide y = isUnsigned ? asUnsigned(y0, width) : asSigned(y0, width);
          const bool expected[] = {
              x == y, x != y, x<y, x <= y, x> y, x >= y, x<y, x <= y, x> y,
              x >= y};
          ASSERT_EQ(r[i], expected[p]) << p << " width " << width;
        }
      }
  }

  template <class T>
  void checkUnary(unsigned width) {
    std::vector<T> x = operands<T>(width), r(x.size());
    for (IntUnaryOp op : {IntUnaryOp::Abs, IntUnaryOp::CtPop, IntUnaryOp::Ctlz,
                          IntUnaryOp::Cttz}) {
      unsigned status;
      if constexpr (sizeof(T) == 8)
        status = k.unaryInt64(op, x.data(), r.data(), x.size());
      else
        status = k.unaryInt32(op, x.data(), r.data(), x.size(), width);
      bool overflows = op == IntUnaryOp::Abs && width != 1;
      EXPECT_EQ(status, unsigned(overflows ? kIntOverflow : kIntOk));
      for (size_t i = 0; i < x.size(); ++i) {
        Wide s = asSigned(x[i], width), u = asUnsigned(x[i], width);
        unsigned ones = 0, leading = 0, trailing = 0;
        for (unsigned bit = 0; bit < width; ++bit)
          ones += unsigned(u >> bit & 1);
        while (leading < width && !(u >> (width - 1 - leading) & 1))
          ++leading;
        while (trailing < width && !(u >> trailing & 1))
          ++trailing;
        Wide expected = op == IntUnaryOp::Abs     ? (s < 0 ? -s : s)
                        : op == IntUnaryOp::CtPop ? Wide(ones)
                        : op == IntUnaryOp::Ctlz  ? Wide(leading)
                                                  : Wide(trailing);
        ASSERT_EQ(r[i], T(held(expected, width)))
            << int(op) << " width " << width << ": " << x[i];
      }
    }
  }
};

const unsigned kNarrowWidths[] = {1, 8, 16, 32};
const unsigned kWidths[] = {1, 8, 16, 32, 64};

TEST_P(IntKernels, Binary) {
  for (unsigned width : kNarrowWidths)
    checkBinary<int32_t>(width);
  checkBinary<int64_t>(64);
}

TEST_P(IntKernels, DividesNumbersOf32BitsByOne) {
  std::vector<int32_t> narrow = operands<int32_t>(32);
  for (int i = 0; i < 1000; ++i)
    narrow.push_back(int32_t(uint32_t(i) * 2654435761u));
  for (int i = -40; i <= 40; ++i)
    narrow.push_back(i);
  std::vector<int64_t> wide(narrow.begin(), narrow.end());
  size_t n = narrow.size();
  for (int64_t y :
       {int64_t(1), int64_t(2), int64_t(3), int64_t(-2), int64_t(-7),
        int64_t(64), int64_t(65537), int64_t(INT32_MAX), int64_t(INT32_MIN)})
    for (IntBinaryOp op : {IntBinaryOp::DivS, IntBinaryOp::FloorDivS,
                           IntBinaryOp::CeilDivS, IntBinaryOp::RemS}) {
      std::vector<int32_t> found(n), inPlace = narrow;
      std::vector<int64_t> foundWide(n);
      auto narrowY = int32_t(y);
      EXPECT_EQ(
          k.binaryInt32(op, narrow.data(), 1, &narrowY, 0, found.data(), n, 32),
          unsigned(kIntOk));
      EXPECT_EQ(k.binaryInt32(op, inPlace.data(), 1, &narrowY, 0,
                              inPlace.data(), n, 32),
                unsigned(kIntOk));
      EXPECT_EQ(k.binaryInt64(op, wide.data(), 1, &y, 0, foundWide.data(), n),
                unsigned(kIntOk));
      for (size_t i = 0; i < n; ++i) {
        int64_t q = wide[i] / y, r = wide[i] % y, expected = q;
        if (op == IntBinaryOp::FloorDivS)
          expected = q - (r != 0 && (r < 0) != (y < 0));
        if (op == IntBinaryOp::CeilDivS)
          expected = q + (r != 0 && (r < 0) == (y < 0));
        if (op == IntBinaryOp::RemS)
          expected = r;
        ASSERT_EQ(foundWide[i], expected) << wide[i] << " by " << y;
        ASSERT_EQ(found[i], expected) << wide[i] << " by " << y;
        ASSERT_EQ(inPlace[i], expected) << wide[i] << " by " << y;
      }
      // One number of more bits takes all another way.
      wide[n / 2] = INT64_C(1) << 40;
      k.binaryInt64(op, wide.data(), 1, &y, 0, foundWide.data(), n);
      ASSERT_EQ(foundWide[n / 2],
                op == IntBinaryOp::RemS ? wide[n / 2] % y : foundWide[n / 2]);
      ASSERT_EQ(foundWide[0], found[0]);
      wide[n / 2] = narrow[n / 2];
    }
}

TEST_P(IntKernels, Compare) {
  for (unsigned width : kNarrowWidths)
    checkCompare<int32_t>(width);
  checkCompare<int64_t>(64);
}

TEST_P(IntKernels, Unary) {
  for (unsigned width : kNarrowWidths)
    checkUnary<int32_t>(width);
  checkUnary<int64_t>(64);
}

TEST_P(IntKernels, Select) {
  for (size_t n : kLengths) {
    std::vector<int32_t> c(n + 1), a(n + 1), b(n + 1), r(n);
    std::vector<int64_t> wideA(n + 1), wideB(n + 1), wideR(n);
    for (size_t i = 0; i <= n; ++i) {
      c[i] = i % 3 == 0;
      a[i] = int32_t(i);
      b[i] = -int32_t(i) - 1;
      wideA[i] = int64_t(a[i]) * (INT64_C(1) << 33);
      wideB[i] = int64_t(b[i]) * (INT64_C(1) << 33);
    }
    for (unsigned steps = 0; steps < 8; ++steps) {
      size_t sc = steps & 1, sa = steps >> 1 & 1, sb = steps >> 2;
      k.selectInt32(c.data(), sc, a.data(), sa, b.data(), sb, r.data(), n);
      k.selectInt64(c.data(), sc, wideA.data(), sa, wideB.data(), sb,
                    wideR.data(), n);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(r[i], c[i * sc] ? a[i * sa] : b[i * sb]);
        EXPECT_EQ(wideR[i], c[i * sc] ? wideA[i * sa] : wideB[i * sb]);
      }
    }
  }
}

/// Holds integers of any width as a tile does.
struct IntTile {
  unsigned width;
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;

  IntTile(unsigned width, const std::vector<int64_t> &values) : width(width) {
    for (int64_t v : values) {
      narrow.push_back(int32_t(held(v, width)));
      wide.push_back(held(v, width));
    }
  }
  void *data() {
    return width == 64 ? static_cast<void *>(wide.data()) : narrow.data();
  }
  int64_t at(size_t i) const { return width == 64 ? wide[i] : narrow[i]; }
};

TEST_P(IntKernels, CastsBetweenIntegers) {
  std::vector<int64_t> values = operands<int64_t>(64);
  for (int64_t v : operands<int64_t>(8))
    values.push_back(v);
  size_t n = values.size();
  for (unsigned from : kWidths)
    for (unsigned to : kWidths)
      for (bool isSigned : {false, true}) {
        IntTile x(from, values), r(to, std::vector<int64_t>(n));
        k.castInt(x.data(), from, isSigned, r.data(), to, n);
        for (size_t i = 0; i < n; ++i) {
          Wide value =
              isSigned ? asSigned(x.at(i), from) : asUnsigned(x.at(i), from);
          ASSERT_EQ(r.at(i), held(value, to))
              << from << (isSigned ? " signed to " : " unsigned to ") << to;
        }
      }
}

TEST_P(IntKernels, IntegersToFloatRoundOnce) {
  std::vector<int64_t> values = operands<int64_t>(64);
  // Just beside ties of ten significant bits, which fp32 would round to them.
  for (unsigned shift : {8u, 20u, 40u})
    for (int64_t top = 513; top < 530; ++top)
      for (int64_t low : {-1, 0, 1})
        for (int64_t sign : {-1, 1})
          values.push_back(sign * ((((top << 1) + 1) << (shift - 1)) + low));
  size_t n = values.size();
  for (unsigned from : kWidths)
    for (bool isSigned : {false, true}) {
      IntTile x(from, values);
      std::vector<float> none(n), bf16(n), dl16(n);
      k.intToFloat(x.data(), from, isSigned, none.data(), n, Rounding::None);
      k.intToFloat(x.data(), from, isSigned, bf16.data(), n, Rounding::BF16);
      k.intToFloat(x.data(), from, isSigned, dl16.data(), n, Rounding::DL16);
      for (size_t i = 0; i < n; ++i) {
        Wide value =
            isSigned ? asSigned(x.at(i), from) : asUnsigned(x.at(i), from);
        // The long double of x86 holds 64 bits exactly.
        long double exact = value;
        ASSERT_EQ(none[i], float(exact)) << double(exact);
        auto nearest = [&](int bits, bool away) {
          if (exact == 0)
            return 0.0f;
          int exponent;
          std::frexp(exact, &exponent);
          long double unit = std::ldexp(1.0L, exponent - bits);
          long double scaled = exact / unit;
          return float((away ? std::round(scaled) : std::nearbyint(scaled)) *
                       unit);
        };
        ASSERT_EQ(bf16[i], nearest(8, false)) << double(exact);
        float expected = nearest(10, true);
        if (std::fabs(expected) > 8581545984.0f)
          expected =
              std::copysign(std::numeric_limits<float>::infinity(), expected);
        ASSERT_EQ(dl16[i], expected) << double(exact);
      }
    }
}

TEST_P(IntKernels, FloatsToIntegersSaturate) {
  std::vector<float> x = specialFloats();
  for (float limit : {2.0f, 200.0f, 40000.0f, 3e9f, 1e19f, 3e19f})
    for (float v : randomFloats(100, -limit, limit))
      x.push_back(v);
  for (unsigned width : kWidths)
    for (bool isSigned : {false, true}) {
      long double low = isSigned ? -std::ldexp(1.0L, int(width) - 1) : 0;
      long double high = std::ldexp(1.0L, int(width) - isSigned) - 1;
      for (size_t i = 0; i < x.size(); ++i) {
        IntTile r(width, {0});
        unsigned status = k.floatToInt(&x[i], r.data(), width, isSigned, 1);
        long double exact = std::trunc((long double)x[i]);
        bool fits = exact >= low && exact <= high;
        Wide expected = std::isnan(x[i]) ? 0
                        : fits           ? Wide(exact)
                        : exact < low    ? Wide(low)
                                         : Wide(high);
        ASSERT_EQ(r.at(0), held(expected, width)) << x[i] << " " << width;
        ASSERT_EQ(status, unsigned(fits ? kIntOk : kIntOutOfRange)) << x[i];
      }
      IntTile all(width, std::vector<int64_t>(x.size()));
      EXPECT_EQ(k.floatToInt(x.data(), all.data(), width, isSigned, x.size()),
                unsigned(kIntOutOfRange));
      for (size_t i = 0; i < x.size(); ++i) {
        IntTile one(width, {0});
        k.floatToInt(&x[i], one.data(), width, isSigned, 1);
        ASSERT_EQ(all.at(i), one.at(0));
      }
    }
}

SPYRE_INSTANTIATE_KERNEL_TEST(IntKernels);

} // namespace
