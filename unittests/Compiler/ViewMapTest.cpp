// SPDX-License-Identifier: Apache-2.0
//===- ViewMapTest.cpp - Strided views as affine maps -----------*- C++ -*-===//

#include "ViewMap.h"

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <numeric>
#include <random>

using namespace mlir;

namespace {

class ViewMapTest : public ::testing::Test {
protected:
  std::string print(const std::vector<int64_t> &sizes,
                    const std::vector<int64_t> &strides, int64_t offset,
                    const std::vector<int64_t> &homeSizes,
                    const std::vector<int64_t> &homeStrides) {
    std::string text;
    llvm::raw_string_ostream(text) << spyre::getViewMap(
        &context, sizes, strides, offset, homeSizes, homeStrides);
    return text;
  }

  /// Every element of the view has the address its coordinates say.
  void check(const std::vector<int64_t> &sizes,
             const std::vector<int64_t> &strides, int64_t offset,
             const std::vector<int64_t> &homeSizes,
             const std::vector<int64_t> &homeStrides) {
    AffineMap map = spyre::getViewMap(&context, sizes, strides, offset,
                                      homeSizes, homeStrides);
    std::vector<int64_t> index(sizes.size());
    int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                                    std::multiplies<>());
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, address = offset;
      for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim]) {
        index[dim] = rest % sizes[dim];
        address += index[dim] * strides[dim];
      }
      int64_t found = 0;
      SmallVector<Attribute> constants, results;
      for (int64_t value : index)
        constants.push_back(IntegerAttr::get(IndexType::get(&context), value));
      ASSERT_TRUE(succeeded(map.constantFold(constants, results)));
      for (auto [dim, result] : llvm::enumerate(results)) {
        int64_t coordinate = cast<IntegerAttr>(result).getInt();
        ASSERT_GE(coordinate, 0);
        ASSERT_LT(coordinate, homeSizes[dim]);
        found += coordinate * homeStrides[dim];
      }
      ASSERT_EQ(found, address)
          << print(sizes, strides, offset, homeSizes, homeStrides);
    }
  }

  MLIRContext context;
};

TEST_F(ViewMapTest, SplitsAndMergesDimensions) {
  // [6, 4] as [2, 3, 4], and back.
  EXPECT_EQ(print({2, 3, 4}, {12, 4, 1}, 0, {6, 4}, {4, 1}),
            "(d0, d1, d2) -> (d0 * 3 + d1, d2)");
  EXPECT_EQ(print({6, 4}, {4, 1}, 0, {2, 3, 4}, {12, 4, 1}),
            "(d0, d1) -> (d0 floordiv 3, d0 mod 3, d1)");
  EXPECT_EQ(print({24}, {1}, 0, {2, 3, 4}, {12, 4, 1}),
            "(d0) -> (d0 floordiv 12, (d0 floordiv 4) mod 3, d0 mod 4)");
}

TEST_F(ViewMapTest, SlicesTransposesAndExpands) {
  EXPECT_EQ(print({4, 6}, {1, 4}, 0, {6, 4}, {4, 1}), "(d0, d1) -> (d1, d0)");
  EXPECT_EQ(print({6, 2}, {4, 1}, 1, {6, 4}, {4, 1}),
            "(d0, d1) -> (d0, d1 + 1)");
  EXPECT_EQ(print({3, 4}, {8, 1}, 4, {6, 4}, {4, 1}),
            "(d0, d1) -> (d0 * 2 + 1, d1)");
  EXPECT_EQ(print({5, 4}, {0, 1}, 8, {6, 4}, {4, 1}), "(d0, d1) -> (2, d1)");
  // The chunks of a fused projection, as heads.
  EXPECT_EQ(print({2, 8, 16, 64}, {16 * 1536, 64, 1536, 1}, 512, {2, 16, 1536},
                  {16 * 1536, 1536, 1}),
            "(d0, d1, d2, d3) -> (d0, d2, d1 * 64 + d3 + 512)");
}

TEST_F(ViewMapTest, Diagonals) {
  EXPECT_EQ(print({5}, {7}, 0, {5, 6}, {6, 1}), "(d0) -> (d0, d0)");
  EXPECT_EQ(print({4}, {7}, 2, {5, 6}, {6, 1}), "(d0) -> (d0, d0 + 2)");
  EXPECT_EQ(print({2, 3}, {30, 7}, 12, {2, 5, 6}, {30, 6, 1}),
            "(d0, d1) -> (d0, d1 + 2, d1)");
  // Over the end of a row it goes on in the next one.
  check({4}, {7}, 3, {6, 6}, {6, 1});
}

TEST_F(ViewMapTest, EmptyAndScalar) {
  EXPECT_EQ(print({0, 4}, {4, 1}, 0, {6, 4}, {4, 1}), "(d0, d1) -> (0, 0)");
  EXPECT_EQ(print({}, {}, 5, {6, 4}, {4, 1}), "() -> (1, 1)");
  EXPECT_EQ(print({1, 1}, {7, 9}, 0, {}, {}), "(d0, d1) -> ()");
}

TEST_F(ViewMapTest, OverlappingWindows) {
  check({5, 3}, {1, 1}, 0, {7}, {1});
  check({4, 6}, {3, 2}, 1, {5, 5}, {5, 1});
}

TEST_F(ViewMapTest, DenseHomes) {
  EXPECT_TRUE(spyre::isDense({2, 3}, {1, 2}));
  EXPECT_TRUE(spyre::isDense({2, 1, 3}, {3, 77, 1}));
  EXPECT_TRUE(spyre::isDense({0, 3}, {5, 5}));
  EXPECT_FALSE(spyre::isDense({2, 3}, {4, 1}));
  EXPECT_FALSE(spyre::isDense({2, 3}, {0, 1}));
}

TEST_F(ViewMapTest, HomesWithGaps) {
  EXPECT_TRUE(spyre::isNested({2, 3, 4}, {100, 10, 2}));
  EXPECT_FALSE(spyre::isNested({2, 3}, {2, 1}));
  EXPECT_FALSE(spyre::isNested({2, 3}, {0, 1}));
  // New rows of a cache, addressed as in the cache.
  EXPECT_EQ(print({2, 3, 64}, {4096, 64, 1}, 0, {2, 3, 64}, {4096, 64, 1}),
            "(d0, d1, d2) -> (d0, d1, d2)");
  check({3, 2}, {7, 50}, 14, {2, 5, 3}, {50, 7, 2});
}

TEST_F(ViewMapTest, SizesThatVary) {
  const spyre::SizeExpr s = spyre::SizeExpr::symbol(0),
                        t = spyre::SizeExpr::symbol(1);
  std::vector<spyre::SizeRange> ranges{{1, 512, 1}, {1, 16, 1}};
  using List = spyre::SizeList;
  auto print = [&](const List &sizes, const List &strides,
                   const spyre::SizeExpr &offset, const List &homeSizes,
                   const List &homeStrides) -> std::string {
    try {
      std::string text;
      llvm::raw_string_ostream(text) << spyre::getViewMap(
          &context, sizes, strides, offset, homeSizes, homeStrides, ranges);
      return text;
    } catch (const spyre::UnsupportedOp &error) {
      return error.what();
    }
  };
  // Heads of a projection, transposed: [1, s, 8, 64] as [1, 8, s, 64].
  EXPECT_EQ(print({1, 8, s, 64}, {s * 512, 64, 512, 1}, 0, {1, s, 512},
                  {s * 512, 512, 1}),
            "(d0, d1, d2, d3) -> (0, d2, d1 * 64 + d3)");
  EXPECT_EQ(
      print({s, 512}, {512, 1}, 0, {1, 8, s, 64}, {s * 512, s * 64, 64, 1}),
      "a view whose stride depends on a size that varies");
  // Rows of a larger buffer, and every row of a batch.
  EXPECT_EQ(print({s, 64}, {64, 1}, 128, {600, 64}, {64, 1}),
            "(d0, d1) -> (d0 + 2, d1)");
  EXPECT_EQ(print({t, s, 64}, {s * 64, 64, 1}, 0, {t, s, 64}, {s * 64, 64, 1}),
            "(d0, d1, d2) -> (d0, d1, d2)");
  EXPECT_EQ(print({s, t, 64}, {64, s * 64, 1}, 0, {t, s, 64}, {s * 64, 64, 1}),
            "(d0, d1, d2) -> (d1, d0, d2)");
  // A batch of rows as rows: the map would divide by s.
  EXPECT_EQ(print({s * 4, 64}, {64, 1}, 0, {4, s, 64}, {s * 64, 64, 1}),
            "a view whose stride depends on a size that varies");
  // But two dimensions before it are two digits of one.
  EXPECT_EQ(print({4, s, 64}, {s * 64, 64, 1}, 0, {2, 2, s, 64},
                  {s * 128, s * 64, 64, 1}),
            "(d0, d1, d2) -> (d0 floordiv 2, d0 mod 2, d1, d2)");
  // Diagonals, also of a batch, and above or below.
  EXPECT_EQ(print({s}, {s + 1}, 0, {s, s}, {s, 1}), "(d0) -> (d0, d0)");
  EXPECT_EQ(print({s}, {s + 4}, 0, {s, s + 3}, {s + 3, 1}), "(d0) -> (d0, d0)");
  EXPECT_EQ(print({s}, {s + 4}, 2, {s, s + 3}, {s + 3, 1}),
            "(d0) -> (d0, d0 + 2)");
  EXPECT_EQ(print({s - 1}, {s + 1}, s, {s, s}, {s, 1}), "(d0) -> (d0 + 1, d0)");
  EXPECT_EQ(print({t, s}, {s * s, s + 1}, 0, {t, s, s}, {s * s, s, 1}),
            "(d0, d1) -> (d0, d1, d1)");
  EXPECT_EQ(print({s}, {s + 1}, 1, {s, s}, {s, 1}),
            "a view whose stride depends on a size that varies");
  // The last of 144 channels, whose number of elements is a sum.
  const spyre::SizeExpr sum = t * 32 + s - 32;
  std::vector<spyre::SizeRange> cut{{1, 32, 1}, {1, 16, 1}};
  auto channels = [&](const spyre::SizeExpr &offset) {
    std::string text;
    llvm::raw_string_ostream(text)
        << spyre::getViewMap(&context, {1, sum, 8}, {sum * 144, 1, sum}, offset,
                             {1, 144, sum}, {sum * 144, sum, 1}, cut);
    return text;
  };
  EXPECT_EQ(channels(sum * 128), "(d0, d1, d2) -> (0, d2 + 128, d1)");
  EXPECT_EQ(channels(sum * 136), "(d0, d1, d2) -> (0, d2 + 136, d1)");
  // The last row: where it is depends on s.
  EXPECT_EQ(print({1, 64}, {64, 1}, s * 64 - 64, {s, 64}, {64, 1}),
            "a view whose offset depends on a size that varies");
  EXPECT_TRUE(spyre::isDense({t, s, 64}, {s * 64, 64, 1}, ranges));
  EXPECT_FALSE(spyre::isDense({t, s, 64}, {t * 64, 64, 1}, ranges));
  EXPECT_FALSE(spyre::isDense({s, 64}, {128, 1}, ranges));
  EXPECT_TRUE(spyre::isNested({s, 64}, {128, 1}, ranges));
}

/// Of views that begin at a size that varies: where, and how much from there.
TEST_F(ViewMapTest, ShiftsThatVary) {
  const spyre::SizeExpr s = spyre::SizeExpr::symbol(0),
                        t = spyre::SizeExpr::symbol(1);
  std::vector<spyre::SizeRange> ranges{{16, 512, 1}, {1, 16, 1}};
  using List = spyre::SizeList;
  auto print = [&](const List &sizes, const List &strides,
                   const spyre::SizeExpr &offset, const List &homeSizes,
                   const List &homeStrides) {
    spyre::ShiftedViewMap shifted = spyre::getShiftedViewMap(
        &context, sizes, strides, offset, homeSizes, homeStrides, ranges);
    std::string text;
    llvm::raw_string_ostream os(text);
    os << shifted.map;
    for (const spyre::ShiftedViewMap::Shift &shift : shifted.shifts)
      os << "; " << shift.dim << ": " << shift.length.str() << " from "
         << shift.start.str();
    return text;
  };
  // The last row, the last 15 ones of each of two heads, all but the first t.
  EXPECT_EQ(print({1, 64}, {64, 1}, s * 64 - 64, {s, 64}, {64, 1}),
            "(d0, d1) -> (0, d1); 0: 1 from s0 + -1");
  EXPECT_EQ(print({2, 15, 64}, {s * 64, 64, 1}, s * 64 - 15 * 64, {2, s, 64},
                  {s * 64, 64, 1}),
            "(d0, d1, d2) -> (d0, d1, d2); 1: 15 from s0 + -15");
  EXPECT_EQ(print({s - t, 64}, {64, 1}, t * 64, {s, 64}, {64, 1}),
            "(d0, d1) -> (d0, d1); 0: s0 + -1 x s1 from s1");
  // The last column, from the third row on.
  EXPECT_EQ(print({14, 1}, {s, 1}, s * 3 - 1, {16, s}, {s, 1}),
            "(d0, d1) -> (d0 + 2, 0); 1: 1 from s0 + -1");
  // The last row, from the ninth column on.
  EXPECT_EQ(print({56}, {1}, s * 64 - 56, {s, 64}, {64, 1}),
            "(d0) -> (0, d0 + 8); 0: 1 from s0 + -1");
}

/// With which dimensions of a home a map says what it says not of the home.
TEST_F(ViewMapTest, Regroupings) {
  const spyre::SizeExpr s = spyre::SizeExpr::symbol(0),
                        t = spyre::SizeExpr::symbol(1);
  std::vector<spyre::SizeRange> ranges{{2, 512, 1}, {5, 8, 1}};
  using List = spyre::SizeList;
  auto print = [&](const List &strides, const List &home) {
    std::string text;
    for (const spyre::Regrouping &found : spyre::getRegroupings(
             strides, home, spyre::getRowMajorStrides(home), ranges))
      text += found.before.str() + " as " + found.after.str() + "; ";
    return text;
  };
  // A batch of rows as rows: of the batch, of the heads before, of both.
  EXPECT_EQ(print({64, 1}, {4, s, 64}), "[4, s0, 64] as [4 x s0, 64]; ");
  EXPECT_EQ(print({64, 1}, {4, 8, s, 64}), "[4, 8, s0, 64] as [4, 8 x s0, 64]; "
                                           "[32, s0, 64] as [32 x s0, 64]; ");
  // Where the batch varies, too; no two of what is before the rows.
  EXPECT_EQ(print({64, 1}, {t, s, 64}), "[s1, s0, 64] as [s0 x s1, 64]; ");
  EXPECT_EQ(print({64, 1}, {t, 8, s, 64}),
            "[s1, 8, s0, 64] as [s1, 8 x s0, 64]; "
            "[8 x s1, s0, 64] as [8 x s0 x s1, 64]; ");
  EXPECT_EQ(print({64, 1}, {s, t, s, 64}),
            "[s0, s1, s0, 64] as [s0 x s1, s0, 64]; "
            "[s0, s1, s0, 64] as [s0, s0 x s1, 64]; ");
  // Rows as a batch of rows: each part is s rows.
  EXPECT_EQ(print({s * 64, 64, 1}, {s * 4, 64}),
            "[4 x s0, 64] as [4, s0, 64]; ");
  EXPECT_EQ(print({s * 64 + 64, 64, 1}, {s * 4 + 4, 64}),
            "[4 x s0 + 4, 64] as [4, s0 + 1, 64]; ");
  // Neither: what varies is outermost, or the step is no part of it.
  EXPECT_EQ(print({64, 1}, {s, 4, 64}), "");
  EXPECT_EQ(print({s * 64, 64, 1}, {s * 4 + 1, 64}), "");
  // From one of them a map says the view.
  EXPECT_EQ(spyre::getViewMap(&context, {4, 2, s, 32}, {s * 64, 32, 64, 1}, 0,
                              {4, s, 64}, {s * 64, 64, 1}, ranges),
            spyre::getViewMap(&context, {4, 2, 9, 32}, {9 * 64, 32, 64, 1}, 0,
                              {4, 9, 64}, {9 * 64, 64, 1}));
}

TEST_F(ViewMapTest, RandomViews) {
  const unsigned seed = 20261121;
  RecordProperty("seed", seed);
  std::mt19937 random(seed);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<int64_t> homeSizes;
    for (int64_t dim = pick(1, 4); dim > 0; --dim)
      homeSizes.push_back(pick(1, 6));
    // A random order of the dimensions in memory.
    std::vector<size_t> order(homeSizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<int64_t> homeStrides(homeSizes.size());
    int64_t count = 1;
    for (size_t dim : order) {
      homeStrides[dim] = count;
      count *= homeSizes[dim];
    }
    ASSERT_TRUE(spyre::isDense(homeSizes, homeStrides));
    // A view that stays inside: any strides, sizes shrunk until it fits.
    std::vector<int64_t> sizes, strides;
    for (int64_t dim = pick(0, 4); dim > 0; --dim) {
      sizes.push_back(pick(1, 6));
      strides.push_back(pick(0, 1)
                            ? pick(0, 12)
                            : homeStrides[pick(0, homeSizes.size() - 1)]);
    }
    int64_t offset = pick(0, count - 1), last = offset;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      while (last + (sizes[dim] - 1) * strides[dim] >= count)
        --sizes[dim];
      last += (sizes[dim] - 1) * strides[dim];
    }
    check(sizes, strides, offset, homeSizes, homeStrides);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
