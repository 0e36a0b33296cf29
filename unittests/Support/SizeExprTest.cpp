// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Support/SizeExpr.h"

#include "Spyre/Support/Error.h"

#include "gtest/gtest.h"

using namespace spyre;

namespace {

const SizeExpr s = SizeExpr::symbol(0), t = SizeExpr::symbol(1);

TEST(SizeExprTest, Arithmetic) {
  EXPECT_EQ(s * 64 + 3, SizeExpr(3) + s * 60 + s * 4);
  EXPECT_EQ(s - s, SizeExpr(0));
  EXPECT_TRUE((s * t - t * s).isConstant());
  EXPECT_EQ((s + 1) * (s - 1), s * s - 1);
  EXPECT_EQ((s + t) * (s + t), s * s + s * t * 2 + t * t);
  EXPECT_EQ((s * t * 2 + 5).at({3, 7}), 47);
  EXPECT_EQ((s * 64 + 1).str(), "64 x s0 + 1");
  EXPECT_EQ((s * t).str(), "s0 x s1");
  EXPECT_EQ(SizeExpr(0).str(), "0");
}

TEST(SizeExprTest, DividesExactlyOrNotAtAll) {
  EXPECT_EQ((s * 256).dividedBy(64), s * 4);
  EXPECT_EQ((s * 256).dividedBy(s), SizeExpr(256));
  EXPECT_EQ((s * t * 64).dividedBy(s * 64), t);
  EXPECT_EQ(((s + 1) * 8).dividedBy(s + 1), SizeExpr(8));
  EXPECT_EQ((s * t - t * 3).dividedBy(t), s - 3);
  EXPECT_EQ((s * t - 3).dividedBy(t), std::nullopt);
  EXPECT_EQ(SizeExpr(12).dividedBy(5), std::nullopt);
  EXPECT_EQ((s * 10).dividedBy(4), std::nullopt);
  EXPECT_EQ((s + 1).dividedBy(s), std::nullopt);
  EXPECT_EQ(SizeExpr(64).dividedBy(s), std::nullopt);
  EXPECT_EQ(SizeExpr(0).dividedBy(s), SizeExpr(0));
  EXPECT_EQ(s.dividedBy(0), std::nullopt);
}

TEST(SizeExprTest, LowerBounds) {
  std::vector<SizeRange> ranges{{2, 512, 1}, {1, 8, 1}};
  EXPECT_EQ((s * 64 - 64).lowerBound(ranges), 64);
  EXPECT_EQ((SizeExpr(600) - s).lowerBound(ranges), 88);
  EXPECT_EQ((s * t - t).lowerBound(ranges), 1);
  EXPECT_EQ((t - s * t).lowerBound(ranges), 8 - 512 * 8);
}

TEST(SizeExprTest, UpperBounds) {
  std::vector<SizeRange> ranges{{2, 512, 1}, {1, 8, 1}};
  EXPECT_EQ((s * t + 3).upperBound(ranges), 512 * 8 + 3);
  // What is left of a number is largest where the symbol is smallest.
  EXPECT_EQ((SizeExpr(600) - s).upperBound(ranges), 598);
  EXPECT_EQ((s * t - t).upperBound(ranges), 511 * 8);
  SizeList sizes{4, s, SizeExpr(600) - s};
  EXPECT_EQ(sizes.upperBounds(ranges), std::vector<int64_t>({4, 512, 598}));
}

TEST(SizeExprTest, Overflows) {
  EXPECT_THROW(s * (int64_t(1) << 40) * (int64_t(1) << 40), Error);
  EXPECT_THROW((s * s).at({int64_t(1) << 40, 0}), Error);
}

TEST(SizeExprTest, Lists) {
  SizeList sizes{4, s, s * 2};
  EXPECT_TRUE(sizes.varies());
  EXPECT_EQ(sizes.at({5}), std::vector<int64_t>({4, 5, 10}));
  EXPECT_EQ(sizes.str(), "[4, s0, 2 x s0]");
  SizeList numbers = std::vector<int64_t>{1, 2};
  EXPECT_FALSE(numbers.varies());
  EXPECT_EQ(numbers, SizeList({1, 2}));
}

} // namespace
