// SPDX-License-Identifier: Apache-2.0
#include "Reference.h"
#include "Spyre/Device/HostTransfer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace spyre;
using Sizes = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;

namespace {

TEST(HostTransfer, BFloat16OutOfRangeIsCounted) {
  // 0, 2^-31 (becomes 0), next above, 2^33 (non-number), next below, inf, NaN,
  // subnormal, and minus 2^33.
  const std::vector<uint16_t> image = {0x0000, 0x3000, 0x3001, 0x5000, 0x4FFF,
                                       0x7F80, 0x7FC0, 0x0001, 0xD000};
  TensorLayout layout({3, 3}, HostDtype::BFloat16);
  Bytes device(static_cast<size_t>(layout.sizeInBytes()));
  TransferStats stats;
  hostToDevice(image.data(), HostDtype::BFloat16, {3, 3}, {3, 1}, layout,
               device.data(), &stats);
  EXPECT_EQ(stats.bf16OutOfRange, 4);
  // Counts add up over transfers.
  hostToDevice(image.data(), HostDtype::BFloat16, {3, 3}, {3, 1}, layout,
               device.data(), &stats);
  EXPECT_EQ(stats.bf16OutOfRange, 8);
  // The count is what the conversion does, over all values.
  std::vector<uint16_t> all(0x10000);
  std::iota(all.begin(), all.end(), 0);
  int64_t expected = 0;
  for (uint16_t code : all) {
    double value = reference::decodeBFloat16(code);
    uint16_t stored = reference::encodeDL16(value) & 0x7FFF;
    expected +=
        std::isfinite(value) && value != 0 && (stored == 0 || stored == 0x7FFF);
  }
  TensorLayout wide({0x10000}, HostDtype::BFloat16);
  device.resize(static_cast<size_t>(wide.sizeInBytes()));
  TransferStats allStats;
  hostToDevice(all.data(), HostDtype::BFloat16, {0x10000}, {1}, wide,
               device.data(), &allStats);
  EXPECT_EQ(allStats.bf16OutOfRange, expected);
}

TEST(HostTransfer, CountsOfThreadsAreAdded) {
  const Sizes sizes = {1000, 700}, strides = {700, 1};
  std::vector<uint16_t> values(700000, 0x5000); // 2^33, a non-number
  values[0] = values[350000] = values[699999] = 0x3F80;
  TensorLayout layout(sizes, HostDtype::BFloat16);
  Bytes device(static_cast<size_t>(layout.sizeInBytes()));
  TransferStats stats;
  hostToDevice(values.data(), HostDtype::BFloat16, sizes, strides, layout,
               device.data(), &stats);
  EXPECT_EQ(stats.bf16OutOfRange, 699997);

  std::vector<int64_t> numbers(700000, -3);
  numbers[699998] = int64_t(1) << 31;
  numbers[699999] = int64_t(1) << 40;
  TensorLayout integers(sizes, HostDtype::Int64);
  device.resize(static_cast<size_t>(integers.sizeInBytes()));
  hostToDevice(numbers.data(), HostDtype::Int64, sizes, strides, integers,
               device.data(), &stats);
  EXPECT_EQ(stats.int64OutOfRange, 2);
  EXPECT_EQ(stats.firstInt64OutOfRange,
            "int64 value 2147483648 at index [999, 698]");
}

} // namespace
