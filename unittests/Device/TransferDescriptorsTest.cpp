// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/TransferDescriptors.h"
#include "Spyre/Device/HostTransfer.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>

using namespace spyre;

namespace {

std::vector<TransferDescriptor> toDevice(const TensorLayout &layout,
                                         const Sizes &sizes) {
  return makeTransferDescriptors(layout, sizes, rowMajor(sizes),
                                 TransferDirection::HostToDevice);
}

/// Calls body(host element, device element) for each step of the nests.
void execute(const std::vector<TransferDescriptor> &nests,
             const std::function<void(int64_t, int64_t)> &body) {
  for (const TransferDescriptor &nest : nests) {
    std::function<void(size_t, int64_t, int64_t)> loop =
        [&](size_t d, int64_t host, int64_t device) {
          if (d == nest.sizes.size())
            return body(host, device);
          for (int64_t i = 0; i < nest.sizes[d]; ++i)
            loop(d + 1, host + i * nest.hostStrides[d],
                 device + i * nest.deviceStrides[d]);
        };
    loop(0, nest.hostOffset, nest.deviceOffset);
  }
}

/// What hostToDevice places, found by its values: element n of the image holds
/// n + 1, so zero is padding. Each place is filled once, nothing else is.
void checkAgainstTransfer(const TensorLayout &layout, const Sizes &sizes,
                          const Sizes &strides) {
  int64_t span = 1;
  for (size_t h = 0; h < sizes.size(); ++h)
    span += (std::max<int64_t>(sizes[h], 1) - 1) * strides[h];
  std::vector<int32_t> image(span);
  std::iota(image.begin(), image.end(), 1);
  std::vector<int32_t> expected(layout.sizeInBytes() / sizeof(int32_t), -1);
  hostToDevice(image.data(), HostDtype::Int32, sizes, strides, layout,
               reinterpret_cast<uint8_t *>(expected.data()));

  std::vector<int32_t> device(expected.size(), 0);
  execute(makeTransferDescriptors(layout, sizes, strides,
                                  TransferDirection::HostToDevice),
          [&](int64_t from, int64_t to) {
            ASSERT_GE(from, 0);
            ASSERT_LT(from, span);
            ASSERT_GE(to, 0);
            ASSERT_LT(to, static_cast<int64_t>(device.size()));
            ASSERT_EQ(device[to], 0) << "device element " << to << " twice";
            device[to] = image[from];
          });
  ASSERT_EQ(device, expected);

  // Back: every element of the home once, from where it was placed.
  std::vector<int32_t> back(span, 0);
  execute(makeTransferDescriptors(layout, sizes, strides,
                                  TransferDirection::DeviceToHost),
          [&](int64_t to, int64_t from) {
            ASSERT_GE(from, 0);
            ASSERT_LT(from, static_cast<int64_t>(device.size()));
            ASSERT_GE(to, 0);
            ASSERT_LT(to, span);
            ASSERT_EQ(back[to], 0) << "host element " << to << " twice";
            back[to] = device[from];
          });
  std::vector<int32_t> home(span, 0);
  deviceToHost(reinterpret_cast<const uint8_t *>(device.data()), layout, sizes,
               strides, HostDtype::Int32, home.data());
  ASSERT_EQ(back, home);
}

// spec/layouts.md, "DCI": the worked example, outermost first.
TEST(TransferDescriptors, WorkedExample) {
  Sizes sizes = {5, 100, 150};
  TensorLayout layout(sizes, HostDtype::Float16);
  std::vector<TransferDescriptor> nests = toDevice(layout, sizes);
  Sizes hostStrides = {150, 64, 15000, 1}, deviceStrides = {960, 320, 64, 1};
  ASSERT_EQ(nests.size(), 2u);
  EXPECT_EQ(nests[0], (TransferDescriptor{
                          {100, 2, 5, 64}, hostStrides, deviceStrides, 0, 0}));
  EXPECT_EQ(nests[1],
            (TransferDescriptor{
                {100, 1, 5, 22}, hostStrides, deviceStrides, 128, 640}));
}

// The front end's tuples ((4,1024,64), (65536,64,1), (64,256,1)): ranges,
// device strides, host strides.
TEST(TransferDescriptors, EvenTensorHasOneNest) {
  Sizes sizes = {1024, 256};
  std::vector<TransferDescriptor> nests =
      toDevice(TensorLayout(sizes, HostDtype::Float16), sizes);
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0], (TransferDescriptor{
                          {4, 1024, 64}, {64, 256, 1}, {65536, 64, 1}, 0, 0}));
}

TEST(TransferDescriptors, ShorterThanAStickNeedsNoRemainder) {
  std::vector<TransferDescriptor> nests =
      toDevice(TensorLayout({3, 22}, HostDtype::Float16), {3, 22});
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].sizes, (Sizes{1, 3, 22}));
}

TEST(TransferDescriptors, ScalarAndEmpty) {
  std::vector<TransferDescriptor> nests =
      toDevice(TensorLayout({}, HostDtype::Float16), {});
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].sizes, (Sizes{1, 1}));
  EXPECT_TRUE(
      toDevice(TensorLayout({0, 70}, HostDtype::Float16), {0, 70}).empty());
}

TEST(TransferDescriptors, TwoRemaindersGiveFourNests) {
  // Both dimensions tiled: 10 by 4, 70 by 32 (a stick of int32).
  Sizes sizes = {10, 70};
  TensorLayout layout({3, 3, 4, 32}, {280, 32, 70, 1}, DataFormat::IEEE_INT32);
  std::vector<TransferDescriptor> nests = toDevice(layout, sizes);
  ASSERT_EQ(nests.size(), 4u);
  EXPECT_EQ(nests[0].sizes, (Sizes{2, 2, 4, 32}));
  EXPECT_EQ(nests[1].sizes, (Sizes{2, 1, 4, 6}));
  EXPECT_EQ(nests[2].sizes, (Sizes{1, 2, 2, 32}));
  EXPECT_EQ(nests[3].sizes, (Sizes{1, 1, 2, 6}));
  EXPECT_EQ(nests[1].hostOffset, 64);
  EXPECT_EQ(nests[1].deviceOffset, 256);
  EXPECT_EQ(nests[2].hostOffset, 560);
  EXPECT_EQ(nests[2].deviceOffset, 768);
  EXPECT_EQ(nests[3].hostOffset, 624);
  EXPECT_EQ(nests[3].deviceOffset, 1024);
  checkAgainstTransfer(layout, sizes, rowMajor(sizes));
}

TEST(TransferDescriptors, ExpandedDimensionIsFilledAndReadOnce) {
  TensorLayout layout({3, 2, 32}, {0, 32, 1}, DataFormat::IEEE_INT32);
  EXPECT_EQ(toDevice(layout, {64})[0].sizes, (Sizes{3, 2, 32}));
  EXPECT_EQ(makeTransferDescriptors(layout, {64}, {1},
                                    TransferDirection::DeviceToHost)[0]
                .sizes,
            (Sizes{1, 2, 32}));
  checkAgainstTransfer(layout, {64}, {1});
}

TEST(TransferDescriptors, RandomShapesMatchHostToDevice) {
  constexpr uint64_t seed = 20261121;
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  int numTiled = 0;
  for (int round = 0; round < 400; ++round) {
    int64_t rank = below(6);
    bool sparse = rank > 0 && below(6) == 0, tiled = rank > 1 && below(3) == 0;
    static constexpr int64_t kSizes[] = {1,  2,  3,  5,  7,  10, 31,
                                         32, 33, 63, 64, 65, 70, 100};
    Sizes sizes;
    int64_t left = sparse ? 500 : 6000;
    for (int64_t h = 0; h < rank; ++h) {
      sizes.push_back(std::min(kSizes[below(14)], std::max<int64_t>(left, 1)));
      if (below(40) == 0)
        sizes.back() = 0;
      left /= std::max<int64_t>(sizes.back(), 1);
    }
    std::shuffle(sizes.begin(), sizes.end(), random);
    // Dense strides in some order of dimensions.
    Sizes nesting(rank), order(rank), strides(rank);
    std::iota(nesting.begin(), nesting.end(), 0);
    order = nesting;
    if (below(2))
      std::shuffle(nesting.begin(), nesting.end(), random);
    std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
      strides[nesting[i]] = stride;
      stride *= std::max<int64_t>(sizes[nesting[i]], 1);
    }
    if (sparse)
      order.push_back(-1);
    TensorLayout layout(sizes, strides, HostDtype::Int32, order);
    if (tiled) {
      // Tile one more dimension: its device dimension becomes two.
      int64_t h = order.front(), tile = 2 + below(4);
      auto at = std::find(layout.strideMap.begin(), layout.strideMap.end() - 1,
                          strides[h]);
      if (sizes[h] > tile && at != layout.strideMap.end() - 1) {
        auto d = at - layout.strideMap.begin();
        layout.deviceSize[d] = tile;
        layout.deviceSize.insert(layout.deviceSize.begin(),
                                 (sizes[h] + tile - 1) / tile);
        layout.strideMap.insert(layout.strideMap.begin(), strides[h] * tile);
      }
    }
    numTiled += layout.deviceSize.size() > order.size() + 1;
    std::string text;
    for (size_t h = 0; h < sizes.size(); ++h)
      text += " " + std::to_string(sizes[h]) + ":" + std::to_string(strides[h]);
    SCOPED_TRACE("round " + std::to_string(round) + ": home" + text + " " +
                 layout.str());
    try {
      (void)resolveDeviceDims(layout, sizes, strides);
    } catch (const Error &) {
      // A tile whose stride another dimension has, too.
      ASSERT_TRUE(tiled);
      --numTiled;
      continue;
    }
    checkAgainstTransfer(layout, sizes, strides);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GE(numTiled, 40);
}

TEST(TransferDescriptors, Errors) {
  TensorLayout layout({5, 100}, HostDtype::Float16);
  auto describe = [](const TensorLayout &layout, const Sizes &sizes,
                     const Sizes &strides) {
    return [=] {
      makeTransferDescriptors(layout, sizes, strides,
                              TransferDirection::HostToDevice);
    };
  };
  expectError(describe(layout, {5, 200}, {200, 1}), "cannot hold a tensor");
  expectError(describe(layout, {5, 129}, {129, 1}), "cannot hold a tensor");
  expectError(describe(layout, {5, 100}, {100}), "differ in length");
  expectError(describe(layout, {-5, 100}, {100, 1}), "negative");
  expectError(
      describe(TensorLayout({0, 1, 64}, {-1, -1, 1}, DataFormat::SEN169_FP16),
               {64}, {1}),
      "a device dimension has no positions");
  constexpr int64_t kHuge = int64_t(1) << 61;
  expectError(describe(TensorLayout({64}, {1}, DataFormat::SEN169_FP16),
                       {2, 64}, {kHuge, 1}),
              "cannot hold a tensor");
  expectError([] { countHomeElements({3, 64}, {kHuge, 1}); },
              "overflows 64 bits");
  expectError([] { countHomeElements({kHuge, kHuge}, {1, 1}); },
              "overflows 64 bits");
  EXPECT_EQ(countHomeElements({kHuge, 3}, {0, 1}), 3);
  EXPECT_EQ(countHomeElements({kHuge, 0}, {1, 1}), 0);
}

} // namespace
