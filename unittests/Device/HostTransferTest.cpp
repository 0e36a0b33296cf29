// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/HostTransfer.h"
#include "Reference.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>

using namespace spyre;
using Bytes = std::vector<uint8_t>;

namespace {

template <typename T>
T readAs(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
template <typename T>
void append(Bytes &bytes, T value) {
  const auto *begin = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

/// Device bytes of one host element, from the rules.
Bytes convertOne(HostDtype dtype, const uint8_t *host) {
  Bytes result;
  switch (dtype) {
  case HostDtype::Float16:
    append(result, reference::encodeDL16(
                       reference::decodeHalf(readAs<uint16_t>(host))));
    break;
  case HostDtype::BFloat16:
    append(result, reference::encodeDL16(
                       reference::decodeBFloat16(readAs<uint16_t>(host))));
    break;
  case HostDtype::Bool:
    append(result, reference::encodeDL16(*host ? 1 : 0));
    break;
  case HostDtype::Float32:
    append(result, readAs<uint32_t>(host));
    break;
  case HostDtype::UInt8:
    append(result, static_cast<uint32_t>(*host));
    break;
  case HostDtype::Int8:
  case HostDtype::Float8E4M3FN:
  case HostDtype::Float8E5M2FNUZ:
    append(result, *host);
    break;
  case HostDtype::Int16:
    append(result, readAs<uint16_t>(host));
    break;
  case HostDtype::Int32:
    append(result, readAs<uint32_t>(host));
    break;
  case HostDtype::Int64:
    append(result, static_cast<int32_t>(readAs<int64_t>(host)));
    break;
  }
  return result;
}

/// Device element of host index i.
using Placement = std::function<int64_t(const Sizes &index)>;

/// Where the generic-stick constructor's rules put an index: "D: one entry ->
/// [o0,o0]; n>=2 -> [o1,...,o(n-1),o0,o(n-1)]", sizes as its step 3 says.
Placement placeByOrder(const Sizes &sizes, const Sizes &order,
                       int64_t elemsPerStick) {
  Sizes devicePosition;
  if (order.empty())
    return [](const Sizes &) { return 0; };
  std::vector<int64_t> deviceDims(order.begin() + 1, order.end());
  if (order.size() > 1)
    deviceDims.push_back(order.front());
  else
    deviceDims = {order.front()};
  int64_t stickDim = order.back();
  return [=](const Sizes &index) {
    int64_t position = 0;
    for (int64_t dim : deviceDims) {
      int64_t extent = dim < 0 ? 1 : sizes[dim];
      int64_t coordinate = dim < 0 ? 0 : index[dim];
      if (dim >= 0 && dim == stickDim) {
        extent = (extent + elemsPerStick - 1) / elemsPerStick;
        coordinate /= elemsPerStick;
      }
      position = position * extent + coordinate;
    }
    int64_t lane = stickDim < 0 ? 0 : index[stickDim] % elemsPerStick;
    return position * elemsPerStick + lane;
  };
}

/// Calls body(index, host element) for each element of a home.
void forEachIndex(const Sizes &sizes, const Sizes &strides,
                  const std::function<void(const Sizes &, int64_t)> &body) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  Sizes index(sizes.size());
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, offset = 0;
    for (size_t h = sizes.size(); h-- > 0; rest /= sizes[h]) {
      index[h] = rest % sizes[h];
      offset += index[h] * strides[h];
    }
    body(index, offset);
  }
}

Bytes expectedDevice(const Bytes &image, HostDtype dtype, const Sizes &sizes,
                     const Sizes &strides, const TensorLayout &layout,
                     const Placement &place) {
  Bytes device(static_cast<size_t>(layout.sizeInBytes()), 0);
  forEachIndex(sizes, strides, [&](const Sizes &index, int64_t offset) {
    Bytes element = convertOne(dtype, image.data() + offset * hostBytes(dtype));
    size_t at = static_cast<size_t>(place(index)) * element.size();
    ASSERT_LE(at + element.size(), device.size());
    std::copy(element.begin(), element.end(),
              device.begin() + static_cast<ptrdiff_t>(at));
  });
  return device;
}

constexpr HostDtype kDtypes[] = {
    HostDtype::Float16, HostDtype::BFloat16, HostDtype::Float32,
    HostDtype::Bool,    HostDtype::UInt8,    HostDtype::Int8,
    HostDtype::Int16,   HostDtype::Int32,    HostDtype::Int64};

/// A host image of random elements; floats of all bit patterns.
Bytes randomImage(std::mt19937_64 &random, HostDtype dtype, int64_t count) {
  Bytes image;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    if (dtype == HostDtype::Bool)
      image.push_back(bits & 1);
    else if (dtype == HostDtype::Int64)
      append(image, static_cast<int64_t>(static_cast<int32_t>(bits)));
    else
      for (int64_t b = 0; b < hostBytes(dtype); ++b)
        image.push_back(static_cast<uint8_t>(bits >> (8 * b)));
  }
  return image;
}

/// Host bytes after the way to the device and back, from the rules.
Bytes roundTripOne(HostDtype dtype, const uint8_t *host) {
  Bytes stored = convertOne(dtype, host), result;
  switch (dtype) {
  case HostDtype::Float16: {
    double value = reference::decodeDL16(readAs<uint16_t>(stored.data()));
    if (std::fabs(value) == 65536)
      value = std::copysign(65504, value);
    append(result, reference::encodeHalf(value));
    break;
  }
  case HostDtype::BFloat16: {
    // A bf16 value that survives is itself; the others are 0 or infinity.
    double value = reference::decodeDL16(readAs<uint16_t>(stored.data()));
    auto single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    EXPECT_EQ(bits & 0xFFFF, 0u);
    append(result, static_cast<uint16_t>(bits >> 16));
    break;
  }
  default:
    result.assign(host, host + hostBytes(dtype));
  }
  return result;
}

/// Both directions against the element-by-element computation.
void checkTransfer(std::mt19937_64 &random, HostDtype dtype, const Sizes &sizes,
                   const Sizes &strides, const TensorLayout &layout,
                   const Placement &place) {
  int64_t count = 1;
  for (size_t h = 0; h < sizes.size(); ++h)
    count *= strides[h] == 0 ? 1 : sizes[h];
  Bytes image = randomImage(random, dtype, count);
  // Poison: all of it must be written. As on the device, it begins a stick.
  constexpr size_t kStick = 128;
  Bytes space(static_cast<size_t>(layout.sizeInBytes()) + kStick, 0xA5);
  auto start = reinterpret_cast<uintptr_t>(space.data());
  uint8_t *begin = space.data() + (kStick - start % kStick) % kStick;
  TransferStats stats;
  hostToDevice(image.data(), dtype, sizes, strides, layout, begin, &stats);
  Bytes device(begin, begin + layout.sizeInBytes());
  ASSERT_EQ(device,
            expectedDevice(image, dtype, sizes, strides, layout, place));

  Bytes expected(image.size());
  for (int64_t i = 0; i < count; ++i) {
    Bytes element = roundTripOne(dtype, image.data() + i * hostBytes(dtype));
    std::copy(element.begin(), element.end(),
              expected.begin() + i * hostBytes(dtype));
  }
  // Values in padding must not reach the host.
  std::vector<bool> isElement(device.size(), false);
  auto width = static_cast<size_t>(storageBytes(layout.format));
  forEachIndex(sizes, strides, [&](const Sizes &index, int64_t) {
    for (size_t b = 0; b < width; ++b)
      isElement[static_cast<size_t>(place(index)) * width + b] = true;
  });
  for (size_t i = 0; i < device.size(); ++i)
    if (!isElement[i])
      device[i] = 0xA5;
  Bytes back(image.size(), 0x5A);
  deviceToHost(device.data(), layout, sizes, strides, dtype, back.data());
  ASSERT_EQ(back, expected);
}

//===----------------------------------------------------------------------===//
// Random layouts
//===----------------------------------------------------------------------===//

TEST(HostTransfer, RandomShapesOrdersAndStrides) {
  constexpr uint64_t seed = 20261121;
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 600; ++round) {
    int64_t rank = below(7);
    bool sparse = rank <= 5 && below(5) == 0;
    // Sizes around sticks and tiles, few in total.
    static constexpr int64_t kSizes[] = {1,  2,  3,   5,   31,  32,  33,  63,
                                         64, 65, 100, 127, 128, 129, 150, 200};
    Sizes sizes;
    int64_t left = sparse ? 700 : 20000;
    for (int64_t h = 0; h < rank; ++h) {
      int64_t size = std::min(kSizes[below(16)], std::max<int64_t>(left, 1));
      if (below(40) == 0)
        size = 0;
      sizes.push_back(size);
      left /= std::max<int64_t>(size, 1);
    }
    std::shuffle(sizes.begin(), sizes.end(), random);
    Sizes order(static_cast<size_t>(rank)), nesting;
    std::iota(order.begin(), order.end(), 0);
    nesting = order;
    std::shuffle(order.begin(), order.end(), random);
    if (below(2))
      std::shuffle(nesting.begin(), nesting.end(), random);
    // Dense strides, the last of `nesting` fastest.
    Sizes strides(static_cast<size_t>(rank));
    int64_t stride = 1;
    for (size_t i = nesting.size(); i-- > 0;) {
      strides[nesting[i]] = stride;
      stride *= std::max<int64_t>(sizes[nesting[i]], 1);
    }
    if (sparse)
      order.push_back(-1);
    HostDtype dtype = kDtypes[round % 9];
    TensorLayout layout(sizes, strides, dtype, order);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + toString(dtype) +
                 " " + layout.str());
    checkTransfer(random, dtype, sizes, strides, layout,
                  placeByOrder(sizes, order, elemsPerStick(layout.format)));
    if (HasFatalFailure())
      return;
  }
}

/// Sizes and orders of dimensions.
using Shapes = std::vector<std::pair<Sizes, Sizes>>;

void checkShapes(const Shapes &shapes, const std::vector<HostDtype> &dtypes) {
  std::mt19937_64 random(7);
  for (const auto &[sizes, order] : shapes)
    for (HostDtype dtype : dtypes) {
      TensorLayout layout(sizes, rowMajor(sizes), dtype, order);
      SCOPED_TRACE(layout.str());
      checkTransfer(random, dtype, sizes, rowMajor(sizes), layout,
                    placeByOrder(sizes, order, elemsPerStick(layout.format)));
    }
}

TEST(HostTransfer, LargerThanTilesAndBlocks) {
  checkShapes({{{100, 1000}, {0, 1}},
               {{200, 333}, {1, 0}},
               {{333, 200}, {1, 0}},
               {{3, 70, 150}, {1, 2, 0}},
               {{70, 3, 150}, {2, 1, 0}},
               {{20000}, {0}},
               {{70, 130}, {1, 0, -1}}},
              {HostDtype::Float16, HostDtype::Int64, HostDtype::Bool});
}

/// Several hundred thousand elements: threads convert parts of them.
TEST(HostTransfer, DividedAmongThreads) {
  checkShapes({{{(1 << 19) + 63}, {0}},
               {{521, 1031}, {0, 1}},
               {{521, 1031}, {1, 0}},
               {{2, 3, 131, 701}, {2, 1, 3, 0}},
               {{1, 64, 64, 129}, {0, 3, 1, 2}}},
              {HostDtype::Float16, HostDtype::BFloat16, HostDtype::Int64,
               HostDtype::Int8});
}

/// So large that they are written past the caches.
TEST(HostTransfer, LargerThanCaches) {
  checkShapes({{{1111, 2100}, {0, 1}}, {{1111, 2100}, {1, 0}}},
              {HostDtype::Float16, HostDtype::Int32});
}

//===----------------------------------------------------------------------===//
// Explicit layouts
//===----------------------------------------------------------------------===//

TEST(HostTransfer, OtherTileFactors) {
  std::mt19937_64 random(11);
  DataFormat format = DataFormat::SEN169_FP16;
  // Tiles of 50 of 64 lanes; the last tile is ragged.
  checkTransfer(
      random, HostDtype::Float16, {6, 190}, {190, 1},
      TensorLayout({4, 6, 64}, {50, 190, 1}, format),
      [](const Sizes &i) { return (i[1] / 50 * 6 + i[0]) * 64 + i[1] % 50; });
  // Two levels of tiles, both ragged.
  checkTransfer(random, HostDtype::Float16, {6, 300}, {300, 1},
                TensorLayout({3, 2, 6, 64}, {128, 64, 300, 1}, format),
                [](const Sizes &i) {
                  return ((i[1] / 128 * 2 + i[1] / 64 % 2) * 6 + i[0]) * 64 +
                         i[1] % 64;
                });
  // More room than needed in two dimensions.
  checkTransfer(
      random, HostDtype::BFloat16, {6, 150}, {150, 1},
      TensorLayout({4, 8, 64}, {64, 150, 1}, format),
      [](const Sizes &i) { return (i[1] / 64 * 8 + i[0]) * 64 + i[1] % 64; });
  // A tiled dimension that is not the stick.
  checkTransfer(
      random, HostDtype::Float32, {10, 40}, {40, 1},
      TensorLayout({3, 2, 4, 32}, {160, 32, 40, 1}, DataFormat::IEEE_FP32),
      [](const Sizes &i) {
        return ((i[0] / 4 * 2 + i[1] / 32) * 4 + i[0] % 4) * 32 + i[1] % 32;
      });
  // Two elements per stick.
  checkTransfer(random, HostDtype::Float16, {7}, {1},
                TensorLayout({4, 64}, {2, 1}, format),
                [](const Sizes &i) { return i[0] / 2 * 64 + i[0] % 2; });
}

TEST(HostTransfer, ExpandedDimensionsHoldCopies) {
  TensorLayout layout({1, 3, 64}, {64, 0, 1}, DataFormat::SEN169_FP16);
  const uint16_t host[2] = {0x3C00, 0x4000};
  for (const auto &[sizes, strides] :
       {std::pair<Sizes, Sizes>{{2}, {1}}, {{3, 2}, {0, 1}}}) {
    std::vector<uint16_t> device(192, 0xFFFF);
    hostToDevice(host, HostDtype::Float16, sizes, strides, layout,
                 reinterpret_cast<uint8_t *>(device.data()));
    for (size_t i = 0; i < 192; ++i)
      EXPECT_EQ(device[i], i % 64 == 0   ? 0x3E00
                           : i % 64 == 1 ? 0x4000
                                         : 0)
          << i;
    uint16_t back[2] = {0, 0};
    deviceToHost(reinterpret_cast<const uint8_t *>(device.data()), layout,
                 sizes, strides, HostDtype::Float16, back);
    EXPECT_EQ(back[0], host[0]);
    EXPECT_EQ(back[1], host[1]);
  }
  // Without padding in sight, of a home that counts elements repeatedly.
  TensorLayout single({1, 64}, {64, 1}, DataFormat::SEN169_FP16);
  std::vector<uint16_t> image(32, 0x3C00), device(64, 0xFFFF);
  hostToDevice(image.data(), HostDtype::Float16, {2, 32}, {0, 1}, single,
               reinterpret_cast<uint8_t *>(device.data()));
  EXPECT_EQ(device[31], 0x3E00);
  EXPECT_EQ(device[32], 0);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Neighbours together, and others: conversions look at some elements at once.
TEST(HostTransfer, AllCodesOfTwoBytes) {
  const Sizes sizes = {251, 263};
  for (HostDtype dtype : {HostDtype::Float16, HostDtype::BFloat16})
    for (const Sizes &order : {Sizes{0, 1}, Sizes{1, 0}})
      for (uint32_t step : {1u, 40503u}) {
        std::vector<uint16_t> image(251 * 263);
        for (uint32_t i = 0; i < image.size(); ++i)
          image[i] = static_cast<uint16_t>(i * step);
        TensorLayout layout(sizes, rowMajor(sizes), dtype, order);
        std::vector<uint16_t> back(image.size());
        std::vector<uint16_t> device(static_cast<size_t>(layout.sizeInBytes()) /
                                     2);
        hostToDevice(image.data(), dtype, sizes, rowMajor(sizes), layout,
                     reinterpret_cast<uint8_t *>(device.data()));
        deviceToHost(reinterpret_cast<const uint8_t *>(device.data()), layout,
                     sizes, rowMajor(sizes), dtype, back.data());
        Placement place = placeByOrder(sizes, order, 64);
        for (int64_t i = 0; i < 251 * 263; ++i) {
          const auto *bytes = reinterpret_cast<const uint8_t *>(&image[i]);
          ASSERT_EQ(device[place({i / 263, i % 263})],
                    readAs<uint16_t>(convertOne(dtype, bytes).data()))
              << std::hex << image[i];
          ASSERT_EQ(back[i],
                    readAs<uint16_t>(roundTripOne(dtype, bytes).data()))
              << std::hex << image[i];
        }
      }
  // spec/numerics.md: 65504 goes in as 65536 and comes back as 65504.
  uint16_t largest = 0x7BFF, back = 0;
  TensorLayout layout({1}, HostDtype::Float16);
  std::vector<uint16_t> device(64);
  auto *bytes = reinterpret_cast<uint8_t *>(device.data());
  hostToDevice(&largest, HostDtype::Float16, {1}, {1}, layout, bytes);
  deviceToHost(bytes, layout, {1}, {1}, HostDtype::Float16, &back);
  EXPECT_EQ(device[0], 0x5E00);
  EXPECT_EQ(back, 0x7BFF);
}

TEST(HostTransfer, Int64IsRangeChecked) {
  Sizes sizes = {3, 50}, strides = {1, 3}; // transposed host tensor
  TensorLayout layout(sizes, strides, HostDtype::Int64, {0, 1});
  std::vector<int64_t> image(150, -5);
  image[0] = INT32_MAX;
  image[1] = INT32_MIN;
  Bytes device(static_cast<size_t>(layout.sizeInBytes()), 0xA5);
  EXPECT_NO_THROW(hostToDevice(image.data(), HostDtype::Int64, sizes, strides,
                               layout, device.data()));
  // Elements [2, 7] and, first in row-major order, [1, 40].
  image[2 + 7 * 3] = int64_t{1} << 31;
  image[1 + 40 * 3] = -(int64_t{1} << 31) - 1;
  Bytes before(device.size(), 0xA5);
  device = before;
  expectError(
      [&] {
        hostToDevice(image.data(), HostDtype::Int64, sizes, strides, layout,
                     device.data());
      },
      "int64 value -2147483649 at index [1, 40] does not fit");
  EXPECT_EQ(device, before); // nothing is written
  image[1 + 40 * 3] = 0;
  expectError(
      [&] {
        hostToDevice(image.data(), HostDtype::Int64, sizes, strides, layout,
                     device.data());
      },
      "int64 value 2147483648 at index [2, 7] does not fit");
  // A scalar has the empty index.
  int64_t scalar = INT64_MIN;
  TensorLayout scalarLayout(Sizes{}, HostDtype::Int64);
  expectError(
      [&] {
        hostToDevice(&scalar, HostDtype::Int64, {}, {}, scalarLayout,
                     device.data());
      },
      "int64 value -9223372036854775808 at index [] does not fit");
}

TEST(HostTransfer, Int64Saturates) {
  // 1, 63, 65 elements, with strides that take every way of copying.
  for (int64_t n : {1, 63, 65})
    for (bool isTransposed : {false, true}) {
      Sizes sizes = {3, n};
      Sizes strides = isTransposed ? Sizes{1, 3} : Sizes{n, 1};
      TensorLayout layout(sizes, strides, HostDtype::Int64, {0, 1});
      std::vector<int64_t> image(3 * n), expected(3 * n);
      const int64_t edges[] = {
          INT64_MIN, INT32_MIN - int64_t{1}, INT32_MIN,        -1,
          INT32_MAX, INT32_MAX + int64_t{1}, int64_t{1} << 40, INT64_MAX};
      int64_t lost = 0;
      for (size_t i = 0; i < image.size(); ++i) {
        image[i] = edges[i % 8];
        expected[i] = std::clamp<int64_t>(image[i], INT32_MIN, INT32_MAX);
        lost += expected[i] != image[i];
      }
      Bytes device(static_cast<size_t>(layout.sizeInBytes()), 0xA5);
      TransferStats stats;
      hostToDevice(image.data(), HostDtype::Int64, sizes, strides, layout,
                   device.data(), &stats);
      EXPECT_EQ(stats.int64OutOfRange, lost);
      EXPECT_EQ(stats.firstInt64OutOfRange,
                "int64 value -9223372036854775808 at index [0, 0]");
      std::vector<int64_t> back(image.size());
      deviceToHost(device.data(), layout, sizes, strides, HostDtype::Int64,
                   back.data());
      EXPECT_EQ(back, expected);
    }
  TransferStats stats;
  int64_t fits = INT32_MIN;
  Bytes device(128);
  hostToDevice(&fits, HostDtype::Int64, {}, {},
               TensorLayout(Sizes{}, HostDtype::Int64), device.data(), &stats);
  EXPECT_EQ(stats.int64OutOfRange, 0);
  EXPECT_EQ(stats.firstInt64OutOfRange, "");
}

TEST(HostTransfer, EmptyAndScalar) {
  TensorLayout empty({0, 5}, HostDtype::Float16);
  EXPECT_NO_THROW(hostToDevice(nullptr, HostDtype::Float16, {0, 5}, {5, 1},
                               empty, nullptr));
  EXPECT_NO_THROW(deviceToHost(nullptr, empty, {0, 5}, {5, 1},
                               HostDtype::Float16, nullptr));
  uint16_t one = 0x3C00;
  std::vector<uint16_t> device(64, 0xFFFF);
  TensorLayout scalar(Sizes{}, HostDtype::Float16);
  hostToDevice(&one, HostDtype::Float16, {}, {}, scalar,
               reinterpret_cast<uint8_t *>(device.data()));
  EXPECT_EQ(device[0], 0x3E00);
  for (size_t i = 1; i < 64; ++i)
    EXPECT_EQ(device[i], 0);
  one = 0;
  deviceToHost(reinterpret_cast<const uint8_t *>(device.data()), scalar, {}, {},
               HostDtype::Float16, &one);
  EXPECT_EQ(one, 0x3C00);
}

TEST(HostTransfer, Errors) {
  Bytes bytes(1024);
  TensorLayout half({4}, HostDtype::Float16);
  expectError(
      [&] {
        hostToDevice(bytes.data(), HostDtype::Float32, {4}, {1}, half,
                     bytes.data());
      },
      "cannot hold elements of torch.float32, which the device stores as "
      "IEEE_FP32");
  TensorLayout arranged = half;
  arranged.arrangement = ElementArrangement::EXX2;
  expectError(
      [&] {
        deviceToHost(bytes.data(), arranged, {4}, {1}, HostDtype::Float16,
                     bytes.data());
      },
      "arrangement");
  expectError(
      [&] {
        hostToDevice(bytes.data(), HostDtype::Float16, {100}, {1}, half,
                     bytes.data());
      },
      "cannot hold");
  expectError(
      [&] {
        deviceToHost(bytes.data(), half, {4}, {1, 1}, HostDtype::Float16,
                     bytes.data());
      },
      "differ in length");
  // A home whose offsets overflow.
  TensorLayout sparse({1, 2, 64}, {-1, INT64_MAX / 2, 1},
                      DataFormat::SEN169_FP16);
  expectError(
      [&] {
        deviceToHost(bytes.data(), sparse, {2, 4}, {INT64_MAX / 2, 1},
                     HostDtype::Float16, bytes.data());
      },
      "overflows");
}

} // namespace
