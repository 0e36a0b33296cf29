// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/TensorLayout.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <numeric>

using namespace spyre;

namespace {

TensorLayout ordered(const Sizes &sizes, const Sizes &order,
                     HostDtype dtype = HostDtype::Float16) {
  return TensorLayout(sizes, rowMajor(sizes), dtype, order);
}

void expectDims(const TensorLayout &layout, const Sizes &sizes,
                const Sizes &strides,
                const std::vector<std::vector<int64_t>> &expected) {
  std::vector<DeviceDim> dims = resolveDeviceDims(layout, sizes, strides);
  ASSERT_EQ(dims.size(), expected.size()) << layout.str();
  for (size_t i = 0; i < dims.size(); ++i)
    EXPECT_EQ((Sizes{dims[i].hostDim, dims[i].step, dims[i].extent}),
              expected[i])
        << "dimension " << i << " of " << layout.str();
}

//===----------------------------------------------------------------------===//
// Constructors
//===----------------------------------------------------------------------===//

struct TableRow {
  Sizes size, order, deviceSize, strideMap;
};

TEST(TensorLayout, ArrangementNamesAndNumbers) {
  // spec/layouts.md, "Element arrangement".
  const char *const names[] = {"STANDARD", "DL16_TO_FP32", "QFP8CH", "EXX2"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_STREQ(toString(static_cast<ElementArrangement>(i)), names[i]);
    EXPECT_EQ(parseElementArrangement(names[i]),
              static_cast<ElementArrangement>(i));
  }
  EXPECT_EQ(parseElementArrangement(""), std::nullopt);
  EXPECT_EQ(parseElementArrangement("standard"), std::nullopt);
  expectError([] { toString(static_cast<ElementArrangement>(4)); },
              "unknown element arrangement 4");
}

TEST(TensorLayout, TableOfTheSpec) {
  // spec/layouts.md, "Generic-stick constructor"; all fp16.
  const TableRow rows[] = {
      {{120}, {0}, {2, 64}, {64, 1}},
      {{512, 240}, {0, 1}, {4, 512, 64}, {64, 240, 1}},
      {{512, 8, 240}, {0, 1, 2}, {8, 4, 512, 64}, {240, 64, 1920, 1}},
      {{5, 100, 150}, {0, 1, 2}, {100, 3, 5, 64}, {150, 64, 15000, 1}},
      {{512, 256}, {1, 0}, {8, 256, 64}, {16384, 1, 256}},
      {{512, 8, 256}, {1, 2, 0}, {256, 8, 8, 64}, {1, 131072, 256, 2048}},
      {{512, 256}, {0, 1, -1}, {256, 1, 512, 64}, {1, -1, 256, -1}},
  };
  for (const TableRow &row : rows) {
    TensorLayout layout = ordered(row.size, row.order);
    EXPECT_EQ(layout.deviceSize, row.deviceSize) << layout.str();
    EXPECT_EQ(layout.strideMap, row.strideMap) << layout.str();
    EXPECT_EQ(layout.format, DataFormat::SEN169_FP16);
    EXPECT_EQ(layout.arrangement, ElementArrangement::STANDARD);
    // Every row of the table is one that can be read back.
    resolveDeviceDims(layout, row.size, rowMajor(row.size));
    if (row.order.size() == row.size.size() &&
        std::is_sorted(row.order.begin(), row.order.end()))
      EXPECT_EQ(TensorLayout(row.size, HostDtype::Float16), layout);
  }
}

TEST(TensorLayout, RankZeroAndSizeOne) {
  TensorLayout scalar(Sizes{}, HostDtype::Float32);
  EXPECT_EQ(scalar.deviceSize, (Sizes{1, 32}));
  EXPECT_EQ(scalar.strideMap, (Sizes{-1, -1}));
  EXPECT_EQ(scalar.sizeInBytes(), 128);
  // Size-1 dimensions stay, with stride -1.
  TensorLayout layout({1, 512, 1, 240}, HostDtype::Float16);
  EXPECT_EQ(layout.deviceSize, (Sizes{512, 1, 4, 1, 64}));
  EXPECT_EQ(layout.strideMap, (Sizes{240, -1, 64, -1, 1}));
  TensorLayout column({512, 1}, HostDtype::Float16);
  EXPECT_EQ(column.deviceSize, (Sizes{1, 512, 64}));
  EXPECT_EQ(column.strideMap, (Sizes{-1, 1, -1}));
}

TEST(TensorLayout, SticksOfOtherDtypes) {
  EXPECT_EQ(TensorLayout({3, 100}, HostDtype::Int64).deviceSize,
            (Sizes{4, 3, 32}));
  EXPECT_EQ(TensorLayout({3, 100}, HostDtype::Int8).deviceSize,
            (Sizes{1, 3, 128}));
  EXPECT_EQ(TensorLayout({3, 100}, HostDtype::Bool).deviceSize,
            (Sizes{2, 3, 64}));
}

TEST(TensorLayout, SizeInBytes) {
  EXPECT_EQ(TensorLayout({5, 100, 150}, HostDtype::Float16).sizeInBytes(),
            128 * 100 * 3 * 5);
  EXPECT_EQ(ordered({512, 256}, {0, 1, -1}).sizeInBytes(), 128 * 256 * 512);
  EXPECT_EQ(TensorLayout({0, 150}, HostDtype::Float16).sizeInBytes(), 0);
}

TEST(TensorLayout, RejectsBadOrders) {
  for (const Sizes &order :
       {Sizes{0}, Sizes{0, 0}, Sizes{0, 2}, Sizes{-1, 0}, Sizes{0, 1, 2},
        Sizes{0, 1, -1, -1}, Sizes{1, 0, 0}, Sizes{}})
    expectError([&] { ordered({4, 8}, order); }, "is not a permutation");
  expectError([&] { ordered({2, 2, 2, 2, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6}); },
              "at most 6");
  expectError([&] { ordered({2, 2, 2, 2, 2, 2}, {0, 1, 2, 3, 4, 5, -1}); },
              "at most 6");
  EXPECT_NO_THROW(ordered({2, 2, 2, 2, 2}, {0, 1, 2, 3, 4, -1}));
}

TEST(TensorLayout, RejectsBadSizes) {
  expectError([] { TensorLayout({-1, 2}, HostDtype::Float16); }, "negative");
  expectError([] { TensorLayout({2, 2}, {-2, 1}, HostDtype::Float16, {0, 1}); },
              "negative");
  expectError([] { TensorLayout({2, 2}, {1}, HostDtype::Float16, {0, 1}); },
              "differ in length");
  expectError([] { TensorLayout({INT64_MAX, 64}, HostDtype::Float16); },
              "overflows");
  expectError([] { TensorLayout({INT64_MAX}, HostDtype::Float16); },
              "overflows");
  expectError(
      [] { TensorLayout({1 << 30, 1 << 30, 1 << 30}, HostDtype::Float16); },
      "overflows");
}

TEST(TensorLayout, RejectsBadExplicitLayouts) {
  DataFormat format = DataFormat::SEN169_FP16;
  expectError([&] { TensorLayout(Sizes{}, Sizes{}, format); }, "non-zero");
  expectError([&] { TensorLayout({2, 64}, Sizes{1}, format); }, "same");
  expectError([&] { TensorLayout({2, 32}, {32, 1}, format); }, "stick of 64");
  expectError([&] { TensorLayout({-2, 64}, {64, 1}, format); }, "negative");
  expectError([&] { TensorLayout({2, 64}, {-2, 1}, format); }, "negative");
  expectError([&] { TensorLayout({INT64_MAX, 64}, {64, 1}, format); },
              "overflows");
  expectError([&] { TensorLayout({2, 64}, {64, 1}, DataFormat::INVALID); },
              "INVALID");
}

TEST(TensorLayout, EqualityAndHashCoverAllFields) {
  TensorLayout a({512, 240}, HostDtype::Float16), b = a;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  b.arrangement = ElementArrangement::EXX2;
  EXPECT_NE(a, b);
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_NE(a.str(), b.str());
  b = a;
  b.format = DataFormat::IEEE_FP16;
  EXPECT_NE(a, b);
  EXPECT_NE(a.hash(), b.hash());
  b = a;
  b.deviceSize[0] = 5;
  EXPECT_NE(a, b);
  b = a;
  b.strideMap[0] = 65;
  EXPECT_NE(a, b);
  EXPECT_EQ(a.str(),
            "SpyreTensorLayout(device_size=[4, 512, 64], stride_map=[64, 240, "
            "1], device_dtype=SEN169_FP16)");
}

//===----------------------------------------------------------------------===//
// resolveDeviceDims
//===----------------------------------------------------------------------===//

TEST(ResolveDeviceDims, Default) {
  Sizes sizes = {5, 100, 150};
  expectDims(TensorLayout(sizes, HostDtype::Float16), sizes, rowMajor(sizes),
             {{1, 1, 100}, {2, 64, 3}, {0, 1, 5}, {2, 1, 64}});
  expectDims(TensorLayout({120}, HostDtype::Float16), {120}, {1},
             {{0, 64, 2}, {0, 1, 64}});
}

TEST(ResolveDeviceDims, Permuted) {
  Sizes sizes = {512, 8, 256};
  expectDims(ordered(sizes, {1, 2, 0}), sizes, rowMajor(sizes),
             {{2, 1, 256}, {0, 64, 8}, {1, 1, 8}, {0, 1, 64}});
}

TEST(ResolveDeviceDims, PermutedDenseHome) {
  // A transposed host tensor under identity order, and channels last.
  Sizes sizes = {100, 150}, strides = {1, 100};
  expectDims(TensorLayout(sizes, strides, HostDtype::Float16, {0, 1}), sizes,
             strides, {{1, 64, 3}, {0, 1, 100}, {1, 1, 64}});
  sizes = {2, 70, 5, 6}, strides = {2100, 1, 420, 70};
  expectDims(TensorLayout(sizes, strides, HostDtype::Float16, {0, 2, 3, 1}),
             sizes, strides,
             {{2, 1, 5}, {3, 1, 6}, {1, 64, 2}, {0, 1, 2}, {1, 1, 64}});
}

TEST(ResolveDeviceDims, SparseScalarSizeOneAndExpanded) {
  expectDims(ordered({512, 256}, {0, 1, -1}), {512, 256}, {256, 1},
             {{1, 1, 256}, {-1, 1, 1}, {0, 1, 512}, {-1, 1, 64}});
  expectDims(TensorLayout(Sizes{}, HostDtype::Float16), {}, {},
             {{-1, 1, 1}, {-1, 1, 64}});
  expectDims(TensorLayout({1, 7, 1, 5}, HostDtype::Float16), {1, 7, 1, 5},
             {35, 5, 5, 1},
             {{1, 1, 7}, {-1, 1, 1}, {-1, 1, 1}, {-1, 1, 1}, {3, 1, 64}});
  // An expanded dimension of the layout, of a home with and without it.
  TensorLayout expanded({1, 4, 64}, {64, 0, 1}, DataFormat::SEN169_FP16);
  expectDims(expanded, {50}, {1}, {{-1, 1, 1}, {-1, 1, 4}, {0, 1, 64}});
  expectDims(expanded, {4, 50}, {0, 1}, {{-1, 1, 1}, {-1, 1, 4}, {1, 1, 64}});
}

TEST(ResolveDeviceDims, OtherTileFactors) {
  // 200 columns as 4 tiles of 50, as spec/layouts.md's [10,4,50,64] does with
  // x[50,10,200], and two levels of tiles.
  DataFormat format = DataFormat::SEN169_FP16;
  expectDims(TensorLayout({10, 4, 50, 64}, {200, 64, 2000, 1}, format),
             {50, 10, 200}, {2000, 200, 1},
             {{1, 1, 10}, {2, 64, 4}, {0, 1, 50}, {2, 1, 64}});
  expectDims(TensorLayout({4, 6, 64}, {50, 200, 1}, format), {6, 200}, {200, 1},
             {{1, 50, 4}, {0, 1, 6}, {1, 1, 64}});
  expectDims(TensorLayout({3, 2, 6, 64}, {128, 64, 384, 1}, format), {6, 384},
             {384, 1}, {{1, 128, 3}, {1, 64, 2}, {0, 1, 6}, {1, 1, 64}});
  // More room than needed.
  expectDims(TensorLayout({4, 8, 64}, {64, 200, 1}, format), {6, 200}, {200, 1},
             {{1, 64, 4}, {0, 1, 8}, {1, 1, 64}});
}

TEST(ResolveDeviceDims, Empty) {
  for (const Sizes &sizes : {Sizes{0}, Sizes{0, 5, 7}, Sizes{5, 0},
                             Sizes{5, 0, 7}, Sizes{0, 0}, Sizes{1, 0, 200}}) {
    TensorLayout layout(sizes, HostDtype::Float16);
    EXPECT_EQ(resolveDeviceDims(layout, sizes, rowMajor(sizes)).size(),
              layout.deviceSize.size());
  }
}

TEST(ResolveDeviceDims, ClearErrors) {
  DataFormat format = DataFormat::SEN169_FP16;
  auto resolve = [&](const Sizes &deviceSize, const Sizes &strideMap,
                     const Sizes &sizes, const Sizes &strides) {
    return [=] {
      resolveDeviceDims(TensorLayout(deviceSize, strideMap, format), sizes,
                        strides);
    };
  };
  expectError(resolve({2, 6, 64}, {64, 130, 1}, {6, 120}, {120, 1}),
              "stride 130 is not a multiple of host stride 120");
  expectError(resolve({20, 64}, {64, 1}, {4, 5, 64}, {320, 64, 1}),
              "no device dimension counts single steps of dimension 0");
  expectError(resolve({2, 64}, {64, 1}, {200}, {1}),
              "a device dimension of 2 positions is too small for dimension 0, "
              "which needs 4");
  expectError(resolve({2, 64}, {100, 1}, {200}, {1}),
              "a device dimension of 64 positions is too small for dimension "
              "0, which needs 100");
  expectError(resolve({2, 2, 64}, {48, 64, 1}, {128}, {1}), "do not nest");
  expectError(resolve({2, 2, 64}, {64, 64, 1}, {128}, {1}), "do not nest");
  expectError(resolve({2, 64}, {64, 1}, {128}, {}), "differ in length");
  expectError(resolve({2, 64}, {64, 1}, {-128}, {1}), "negative");
  expectError([] { resolveDeviceDims(TensorLayout(), {2}, {1}); }, "non-zero");
}

//===----------------------------------------------------------------------===//
// mergeUncountedDims
//===----------------------------------------------------------------------===//

void expectMerged(const TensorLayout &layout, const Sizes &sizes,
                  const Sizes &strides, const Sizes &mergedSizes,
                  const Sizes &mergedStrides) {
  HomeShape merged = mergeUncountedDims(layout, sizes, strides);
  EXPECT_EQ(merged.sizes, mergedSizes) << layout.str();
  EXPECT_EQ(merged.strides, mergedStrides) << layout.str();
}

TEST(MergeUncountedDims, KeepsWhatIsCounted) {
  for (const Sizes &sizes : {Sizes{}, Sizes{120}, Sizes{5, 100, 150},
                             Sizes{1, 7, 1, 5}, Sizes{4, 64}, Sizes{3, 0, 5}})
    expectMerged(TensorLayout(sizes, HostDtype::Float16), sizes,
                 rowMajor(sizes), sizes, rowMajor(sizes));
  Sizes sizes = {100, 150}, strides = {1, 100};
  expectMerged(TensorLayout(sizes, strides, HostDtype::Float16, {0, 1}), sizes,
               strides, sizes, strides);
}

TEST(MergeUncountedDims, OneDeviceDimensionForSeveral) {
  DataFormat format = DataFormat::SEN169_FP16;
  // spec/drop-in.md, "spyre-inference": pages of 64 slots.
  Sizes pages = {5, 64, 2, 128};
  TensorLayout paged({320, 2, 2, 64}, {256, 128, 64, 1}, format);
  expectMerged(paged, pages, rowMajor(pages), {320, 2, 128}, {256, 128, 1});
  expectDims(paged, {320, 2, 128}, {256, 128, 1},
             {{0, 1, 320}, {1, 1, 2}, {2, 64, 2}, {2, 1, 64}});
  // All dimensions as one, sticks across the rows.
  expectMerged(TensorLayout({6, 64}, {64, 1}, format), {4, 96}, {96, 1}, {384},
               {1});
  // A device dimension that counts pairs of rows, over all blocks.
  expectMerged(TensorLayout({12, 2, 64}, {128, 64, 1}, format), {4, 6, 64},
               {384, 64, 1}, {24, 64}, {64, 1});
  // Dimensions of size 1 are nowhere in the way.
  expectMerged(paged, {1, 5, 64, 1, 2, 128}, {81920, 16384, 256, 256, 128, 1},
               {1, 320, 1, 2, 128}, {81920, 256, 256, 128, 1});
  // The dimensions of a permuted tensor are merged in the order of its strides.
  expectMerged(paged, {64, 2, 5, 128}, {256, 128, 16384, 1}, {320, 2, 128},
               {256, 128, 1});
}

TEST(MergeUncountedDims, LeavesTheRestToOthers) {
  TensorLayout flat({6, 64}, {64, 1}, DataFormat::SEN169_FP16);
  // Gaps, expanded dimensions, nothing to merge into, nonsense.
  expectMerged(flat, {4, 96}, {100, 1}, {4, 96}, {100, 1});
  expectMerged(flat, {4, 96}, {0, 1}, {4, 96}, {0, 1});
  expectMerged(flat, {4, 0}, {96, 1}, {4, 0}, {96, 1});
  expectMerged(flat, {4, 96}, {96}, {4, 96}, {96});
  expectMerged(flat, {-4, 96}, {96, 1}, {-4, 96}, {96, 1});
  expectMerged(flat, {INT64_MAX, 96}, {96, 1}, {INT64_MAX, 96}, {96, 1});
}

//===----------------------------------------------------------------------===//
// changeStick
//===----------------------------------------------------------------------===//

TEST(ChangeStick, IsWhatTheConstructorMakes) {
  const HostDtype dtypes[] = {HostDtype::Float16, HostDtype::Float32,
                              HostDtype::Int8};
  for (const Sizes &sizes :
       {Sizes{}, Sizes{1}, Sizes{120}, Sizes{5, 100, 150}, Sizes{4, 64},
        Sizes{7, 60}, Sizes{512, 1}, Sizes{2, 1, 65}, Sizes{0, 150}}) {
    Sizes order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      for (bool isSparse : {false, true}) {
        Sizes full = order;
        if (isSparse)
          full.push_back(-1);
        if (isSparse && order.empty())
          continue;
        for (HostDtype from : dtypes)
          for (HostDtype to : dtypes) {
            std::optional<TensorLayout> changed =
                changeStick(ordered(sizes, full, from), sizes, rowMajor(sizes),
                            deviceFormat(to));
            ASSERT_TRUE(changed) << ordered(sizes, full, from).str();
            EXPECT_EQ(*changed, ordered(sizes, full, to));
          }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(ChangeStick, OfLayoutsByHand) {
  DataFormat half = DataFormat::SEN169_FP16, fp8 = DataFormat::SEN143_FP8;
  // spec/drop-in.md, "Layout of qfp8ch's result": the sticks dimension is
  // halved.
  std::optional<TensorLayout> paged =
      changeStick(TensorLayout({320, 2, 3, 64}, {384, 192, 64, 1}, half),
                  {320, 2, 192}, {384, 192, 1}, fp8);
  ASSERT_TRUE(paged);
  EXPECT_EQ(*paged, TensorLayout({320, 2, 2, 128}, {384, 192, 128, 1}, fp8));
  // Rows in blocks of 128 elements hold whole sticks of either, of 192 do not.
  std::optional<TensorLayout> blocks =
      changeStick(TensorLayout({3, 2, 6, 64}, {128, 64, 384, 1}, half),
                  {6, 384}, {384, 1}, fp8);
  ASSERT_TRUE(blocks);
  EXPECT_EQ(*blocks, TensorLayout({3, 1, 6, 128}, {128, 128, 384, 1}, fp8));
  EXPECT_FALSE(changeStick(TensorLayout({2, 3, 6, 64}, {192, 64, 384, 1}, half),
                           {6, 384}, {384, 1}, fp8));
  // Nothing counts the sticks of rows of 50.
  EXPECT_TRUE(
      changeStick(TensorLayout({6, 64}, {50, 1}, half), {6, 50}, {50, 1}, fp8));
  EXPECT_FALSE(changeStick(TensorLayout({6, 64}, {50, 1}, half), {6, 50},
                           {50, 1}, DataFormat::IEEE_FP32));
}

TEST(TensorLayout, HoldsElementsInTheirOrder) {
  TensorLayout layout({3, 150}, HostDtype::Float8E4M3FN);
  layout.checkHolds(HostDtype::Float8E4M3FN);
  expectError([&] { layout.checkHolds(HostDtype::Float16); },
              "cannot hold elements of torch.float16");
  layout.arrangement = ElementArrangement::QFP8CH;
  layout.checkHolds(HostDtype::Float8E4M3FN);
  layout.arrangement = ElementArrangement::EXX2;
  expectError([&] { layout.checkHolds(HostDtype::Float8E4M3FN); }, "STANDARD");
  TensorLayout half({3, 150}, HostDtype::Float16);
  half.arrangement = ElementArrangement::QFP8CH;
  expectError([&] { half.checkHolds(HostDtype::Float16); }, "float8_e4m3fn");
}

} // namespace
