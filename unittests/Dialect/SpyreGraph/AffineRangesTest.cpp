// SPDX-License-Identifier: Apache-2.0

#include "Points.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre_test;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr unsigned kSeed = 20251101;

const int64_t kFactors[] = {-65, -64, -7, -1, 0, 1, 2, 3, 5, 63, 64, 65, 128};
const int64_t kDivisors[] = {1, 2, 3, 5, 7, 63, 64, 65, 128, 192};
const int64_t kExtents[] = {0, 1, 2, 3, 5, 7, 13};

class AffineRangesTest : public ::testing::Test {
protected:
  SmallVector<int64_t> randomExtents(int64_t mostDims) {
    SmallVector<int64_t> extents(random.number(0, mostDims));
    for (int64_t &extent : extents)
      extent = random.pick(kExtents);
    // One long dimension: sticks end inside it.
    if (!extents.empty() && random.chance(1, 2))
      extents.back() = random.pick({63, 64, 65, 127, 129});
    return extents;
  }
  AffineExpr dim(unsigned number) { return getAffineDimExpr(number, &context); }
  AffineExpr constant(int64_t value) {
    return getAffineConstantExpr(value, &context);
  }

  MLIRContext context;
  Random random{kSeed};
};

TEST_F(AffineRangesTest, EvaluatesAsDefined) {
  for (int round = 0; round < 3000; ++round) {
    SmallVector<int64_t> point(random.number(0, 4));
    for (int64_t &value : point)
      value = random.number(-200, 200);
    AffineExpr expr =
        random.expression(&context, point.size(), 4, kFactors, kDivisors);
    ASSERT_EQ(evaluate(expr, point), valueAt(expr, point))
        << text(expr) << " at " << text(point) << ", round " << round;
  }
}

TEST_F(AffineRangesTest, EvaluatesAtTheEdgesOf64Bits) {
  for (int64_t value : {kLeast, kLeast + 1, kMost - 1, kMost})
    for (int64_t divisor :
         {int64_t(1), int64_t(2), int64_t(63), int64_t(64), kMost - 1, kMost})
      for (AffineExpr expr : {dim(0).floorDiv(divisor), dim(0) % divisor,
                              dim(0).ceilDiv(divisor)})
        EXPECT_EQ(evaluate(expr, {value}), valueAt(expr, {value}))
            << text(expr) << " at " << value;
}

TEST_F(AffineRangesTest, RangeHoldsEveryValue) {
  for (int round = 0; round < 1000; ++round) {
    SmallVector<int64_t> extents = randomExtents(3);
    AffineExpr expr =
        random.expression(&context, extents.size(), 4, kFactors, kDivisors);
    auto [low, high] = getRange(expr, extents);
    ASSERT_LE(low, high);
    forEachPoint(extents, [&, low = low, high = high](ArrayRef<int64_t> point) {
      int64_t value = valueAt(expr, point);
      ASSERT_TRUE(value >= low && value <= high)
          << text(expr) << " is " << value << " at " << text(point)
          << ", not in " << low << " to " << high << "; extents "
          << text(extents) << ", round " << round;
    });
  }
}

// Every dimension once, and nothing that comes back to where it was.
TEST_F(AffineRangesTest, RangeOfMonotonousTermsIsExact) {
  for (int round = 0; round < 1000; ++round) {
    SmallVector<int64_t> extents = randomExtents(3);
    if (llvm::is_contained(extents, 0))
      continue;
    AffineExpr expr = constant(random.pick(kFactors));
    for (unsigned number = 0; number < extents.size(); ++number) {
      AffineExpr term =
          dim(number) * random.pick(kFactors) + random.pick(kFactors);
      if (random.chance(1, 3))
        term = term.floorDiv(random.pick(kDivisors));
      else if (random.chance(1, 3))
        term = term.ceilDiv(random.pick(kDivisors));
      expr = expr + term * random.pick(kFactors);
      if (random.chance(1, 4))
        expr = expr.floorDiv(random.pick(kDivisors));
    }
    std::pair<int64_t, int64_t> exact{kMost, kLeast};
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      int64_t value = valueAt(expr, point);
      exact = {std::min(exact.first, value), std::max(exact.second, value)};
    });
    ASSERT_EQ(getRange(expr, extents), exact)
        << text(expr) << ", extents " << text(extents) << ", round " << round;
  }
}

TEST_F(AffineRangesTest, RangeOfARepeatedDimensionCancels) {
  EXPECT_EQ(getRange(dim(0) * 64 + dim(1) - dim(0) * 64, {65, 3}),
            std::make_pair(int64_t(0), int64_t(2)));
}

TEST_F(AffineRangesTest, RangeOfAModulus) {
  // Inside of one period, across its end, below zero.
  EXPECT_EQ(getRange(dim(0) % 64, {63}),
            std::make_pair(int64_t(0), int64_t(62)));
  EXPECT_EQ(getRange((dim(0) + 65) % 64, {63}),
            std::make_pair(int64_t(1), int64_t(63)));
  EXPECT_EQ(getRange((dim(0) + 65) % 64, {64}),
            std::make_pair(int64_t(0), int64_t(63)));
  EXPECT_EQ(getRange((dim(0) - 5) % 64, {3}),
            std::make_pair(int64_t(59), int64_t(61)));
}

TEST_F(AffineRangesTest, SimplificationKeepsEveryValue) {
  for (int round = 0; round < 2000; ++round) {
    SmallVector<int64_t> extents = randomExtents(3);
    AffineExpr expr =
        random.expression(&context, extents.size(), 5, kFactors, kDivisors);
    AffineExpr simple = simplifyWithRanges(expr, extents);
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      ASSERT_EQ(valueAt(simple, point), valueAt(expr, point))
          << text(expr) << " became " << text(simple) << "; at " << text(point)
          << ", extents " << text(extents) << ", round " << round;
    });
  }
}

// Extents and factors up to the edge of 64 bits: what is said holds for every
// point at which the expression stays within 64 bits on the way.
TEST_F(AffineRangesTest, HoldsForHugeNumbers) {
  const int64_t
      factors[] = {kLeast,        -1,   1, 3, 64, int64_t(1) << 32,
                   kMost / 2 + 1, kMost},
      divisors[] = {1, 3, 64, (int64_t(1) << 32) + 1, int64_t(1) << 40, kMost},
      extents[] = {1, 65, int64_t(1) << 31, int64_t(1) << 40, kMost / 2, kMost};
  int checked = 0;
  for (int round = 0; round < 20000; ++round) {
    SmallVector<int64_t> box = {random.pick(extents), random.pick(extents)};
    AffineExpr expr =
        random.expression(&context, box.size(), 4, factors, divisors);
    AffineExpr simple = simplifyWithRanges(expr, box);
    auto [low, high] = getRange(expr, box);
    for (int sample = 0; sample < 8; ++sample) {
      SmallVector<int64_t> point;
      for (int64_t extent : box)
        point.push_back(random.pick({0, extent / 2, extent / 3, extent - 1}));
      bool fits = true, ignored = true;
      std::optional<Wide> value = evaluateWide(expr, point, fits);
      if (!value || !fits)
        continue;
      ++checked;
      std::optional<Wide> same = evaluateWide(simple, point, ignored);
      ASSERT_TRUE(same && *same == *value)
          << text(expr) << " became " << text(simple) << "; at " << text(point)
          << ", extents " << text(box) << ", round " << round;
      ASSERT_TRUE(*value >= low && *value <= high)
          << text(expr) << " is not in " << low << " to " << high << " at "
          << text(point) << ", extents " << text(box) << ", round " << round;
    }
  }
  EXPECT_GT(checked, 10000);
}

TEST_F(AffineRangesTest, SimplifiesWhatRangesDecide) {
  AffineExpr row = dim(0), lane = dim(1), index = dim(0) * 64 + dim(1);
  for (int64_t rows : {1, 2, 63, 65}) {
    AffineExpr known = rows == 1 ? constant(0) : row;
    for (int64_t lanes : {2, 63, 64}) {
      EXPECT_EQ(simplifyWithRanges(index.floorDiv(64), {rows, lanes}), known);
      EXPECT_EQ(simplifyWithRanges(index % 64, {rows, lanes}), lane);
      EXPECT_EQ(simplifyWithRanges((index + 64).floorDiv(64), {rows, lanes}),
                known + 1);
    }
    // One lane more, and the next stick is reached.
    EXPECT_NE(simplifyWithRanges(index.floorDiv(64), {rows, 65}), known);
    EXPECT_NE(simplifyWithRanges(index % 64, {rows, 65}), lane);
  }
  EXPECT_EQ(simplifyWithRanges((lane % 128) % 64, {1, 65}), lane % 64);
  EXPECT_EQ(simplifyWithRanges(lane.floorDiv(2).floorDiv(32), {1, 65}),
            lane.floorDiv(64));
  // Diagonals, down and up, of rows of 67 and of 2.
  EXPECT_EQ(simplifyWithRanges((row * 408).floorDiv(402), {67, 1}), row);
  EXPECT_EQ(simplifyWithRanges((row * 408) % 402, {67, 1}), row * 6);
  EXPECT_NE(simplifyWithRanges((row * 408).floorDiv(402), {68, 1}), row);
  EXPECT_EQ(simplifyWithRanges((row * 396 + 396).floorDiv(402), {67, 1}), row);
  EXPECT_EQ(simplifyWithRanges((row * 396 + 396) % 402, {67, 1}),
            row * -6 + 396);
  EXPECT_EQ(simplifyWithRanges((row * 3).floorDiv(2), {2, 1}), row);
  EXPECT_EQ(simplifyWithRanges((row + 1) % 2, {2, 1}), row * -1 + 1);
  // Dimensions of one iteration, or none, are 0.
  EXPECT_EQ(simplifyWithRanges(row + lane, {0, 1}), constant(0));
}

TEST_F(AffineRangesTest, SimplifiesAMapResultByResult) {
  AffineMap map =
      AffineMap::get(2, 0, {dim(1).floorDiv(64), dim(0) % 64}, &context);
  EXPECT_EQ(simplifyWithRanges(map, {64, 65}),
            AffineMap::get(2, 0, {dim(1).floorDiv(64), dim(0)}, &context));
}

} // namespace
