// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Layouts.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre_test;

namespace {

class StickAccessTest : public ::testing::Test {
protected:
  StickAccessTest() { context.loadDialect<SpyreGraphDialect>(); }

  MLIRContext context;
  Random random{20251105};
};

const int64_t kFactors[] = {-64, -3, 0, 1, 2, 63, 64, 65};
const int64_t kDivisors[] = {1, 2, 3, 64};

/// Checks that loops walk sticks and lanes as the access says.
void checkAccess(const Access &access, const StickAccess &sticks) {
  int64_t total = 1;
  SmallVector<int64_t> deviceSize = access.layout.getDeviceSize(access.shape);
  for (int64_t size : ArrayRef(deviceSize).drop_back())
    total *= size;
  EXPECT_EQ(sticks.totalSticks, total);
  forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
    int64_t stick = sticks.offset, lane = 0;
    for (auto [dim, index] : llvm::enumerate(point)) {
      bool isLane = static_cast<int64_t>(dim) == sticks.laneDim;
      int64_t steps = isLane ? index / sticks.stickElements : index;
      stick += steps * sticks.strides[dim];
      if (isLane)
        lane = index % sticks.stickElements;
    }
    SmallVector<int64_t> element = valuesAt(access.map, point);
    ASSERT_EQ(stick, stickOf(access.layout, access.shape, element))
        << text(point);
    ASSERT_EQ(lane, place(access.layout, access.shape, element).back())
        << text(point);
  });
}

TEST_F(StickAccessTest, StridesLeadToTheSticks) {
  int found = 0, withLanes = 0;
  for (int round = 0; round < 4000; ++round) {
    Access access = randomAccess(random, &context);
    std::optional<StickAccess> sticks =
        getStickAccess(access.map, access.layout, access.shape, access.extents);
    if (!sticks)
      continue;
    ++found;
    withLanes += sticks->laneDim >= 0;
    checkAccess(access, *sticks);
    if (HasFailure())
      FAIL() << access.str() << ", round " << round;
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(withLanes, 300);
}

TEST_F(StickAccessTest, PlainAccessesHaveThisForm) {
  for (int round = 0; round < 1000; ++round) {
    Access access;
    Builder builder(&context);
    access.elementType = builder.getF16Type();
    for (int64_t rank = random.number(0, 3); rank > 0; --rank)
      access.shape.push_back(random.pick({0, 1, 2, 5, 63, 64, 65}));
    access.extents = access.shape;
    access.map =
        AffineMap::getMultiDimIdentityMap(access.shape.size(), &context);
    access.layout = randomLayout(random, access.elementType, access.shape);
    std::optional<StickAccess> sticks =
        getStickAccess(access.map, access.layout, access.shape, access.extents);
    // A tensor without elements has no sticks between which to step.
    if (llvm::is_contained(access.shape, 0))
      continue;
    ASSERT_TRUE(sticks) << access.str();
    EXPECT_EQ(sticks->offset, 0);
    int64_t stickDim = access.layout.getStickDim(access.shape);
    if (stickDim >= 0 && access.shape[stickDim] > 1)
      EXPECT_EQ(sticks->laneDim, stickDim) << access.str();
  }
}

TEST_F(StickAccessTest, RunsAreSticksThatFollowEachOther) {
  for (int round = 0; round < 1000; ++round) {
    Access access;
    access.elementType = Float16Type::get(&context);
    SmallVector<int64_t> counts;
    for (int64_t rank = random.number(0, 3); rank > 0; --rank) {
      access.shape.push_back(random.pick({1, 2, 5, 63, 64, 65, 130}));
      counts.push_back(random.number(1, access.shape.back()));
    }
    access.extents = access.shape;
    access.map =
        AffineMap::getMultiDimIdentityMap(access.shape.size(), &context);
    access.layout = randomLayout(random, access.elementType, access.shape);
    std::optional<StickAccess> sticks =
        getStickAccess(access.map, access.layout, access.shape, access.extents);
    ASSERT_TRUE(sticks) << access.str();
    std::set<int64_t> touched;
    forEachPoint(counts, [&](ArrayRef<int64_t> point) {
      touched.insert(stickOf(access.layout, access.shape, point));
    });
    int64_t run = 1;
    while (touched.count(run))
      ++run;
    EXPECT_EQ(sticks->getRunLength(counts), run)
        << access.str() << ", counts " << text(counts);
  }
}

TEST_F(StickAccessTest, TileStrideIsTheWayToTheNextTile) {
  for (int round = 0; round < 1000; ++round) {
    Access access = randomAccess(random, &context);
    std::optional<StickAccess> sticks =
        getStickAccess(access.map, access.layout, access.shape, access.extents);
    if (!sticks)
      continue;
    int64_t stickDim = access.layout.getStickDim(access.shape);
    if (stickDim < 0) {
      EXPECT_EQ(sticks->tileStride, 0) << access.str();
      continue;
    }
    if (access.shape[stickDim] <= sticks->stickElements)
      continue;
    SmallVector<int64_t> first(access.shape.size(), 0), next = first;
    next[stickDim] = sticks->stickElements;
    ASSERT_EQ(sticks->tileStride,
              stickOf(access.layout, access.shape, next) -
                  stickOf(access.layout, access.shape, first))
        << access.str();
  }
}

TEST_F(StickAccessTest, InnermostStrideIsTheSmallestStep) {
  StickAccess access;
  EXPECT_EQ(access.getInnermostStride(), 0);
  access.strides = {130, 0, 2};
  access.totalSticks = 260;
  EXPECT_EQ(access.getInnermostStride(), 2);
  // A loop inside of one stick counts as what the layout puts there.
  access.laneDim = 1;
  access.tileStride = 1;
  EXPECT_EQ(access.getInnermostStride(), 1);
}

TEST_F(StickAccessTest, LinearFormsAreTheExpression) {
  int linear = 0;
  for (int round = 0; round < 3000; ++round) {
    SmallVector<int64_t> point(random.number(0, 3));
    AffineExpr expr =
        random.expression(&context, point.size(), 4, kFactors, kDivisors);
    auto form = getLinearForm(expr, point.size());
    bool hasDivision = false;
    expr.walk([&](AffineExpr sub) {
      hasDivision |= sub.getKind() == AffineExprKind::FloorDiv ||
                     sub.getKind() == AffineExprKind::CeilDiv ||
                     sub.getKind() == AffineExprKind::Mod;
    });
    ASSERT_EQ(form.has_value(), !hasDivision) << text(expr);
    if (!form)
      continue;
    ++linear;
    for (int64_t &index : point)
      index = random.number(-100, 100);
    int64_t sum = form->back();
    for (auto [index, factor] : llvm::zip(point, *form))
      sum += index * factor;
    ASSERT_EQ(sum, valueAt(expr, point)) << text(expr);
  }
  EXPECT_GT(linear, 300);
}

TEST_F(StickAccessTest, LinearIndexIsRowMajor) {
  for (int round = 0; round < 2000; ++round) {
    Access access = randomAccess(random, &context);
    AffineMap index = getLinearIndex(access.map, access.shape, access.extents);
    ASSERT_EQ(index.getNumResults(), 1u);
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      int64_t expected = 0;
      for (auto [value, size] :
           llvm::zip_equal(valuesAt(access.map, point), access.shape))
        expected = expected * size + value;
      ASSERT_EQ(valueAt(index.getResult(0), point), expected)
          << access.str() << " became " << text(index) << ", round " << round;
    });
  }
}

TEST_F(StickAccessTest, JoinedRemaindersKeepEveryValue) {
  AffineExpr d0 = getAffineDimExpr(0, &context),
             d1 = getAffineDimExpr(1, &context);
  // 65 x 3 elements taken apart at 64, and put together again.
  AffineExpr whole = d0 * 3 + d1;
  AffineMap map =
      AffineMap::get(2, 0, whole.floorDiv(64) * 64 + whole % 64 + 5, &context);
  EXPECT_EQ(joinRemainders(map, {65, 3}),
            AffineMap::get(2, 0, whole + 5, &context));
  for (int round = 0; round < 2000; ++round) {
    SmallVector<int64_t> extents = {random.pick({1, 2, 3, 63, 65}),
                                    random.pick({1, 2, 5, 7})};
    AffineExpr sum = random.expression(&context, 2, 3, kFactors, kDivisors);
    for (int terms = random.number(1, 2); terms > 0; --terms) {
      AffineExpr inner = random.expression(&context, 2, 2, kFactors, kDivisors);
      int64_t divisor = random.pick(kDivisors), factor = random.pick(kFactors);
      sum = sum + inner.floorDiv(divisor) * (divisor * factor) +
            (inner % divisor) * factor;
    }
    AffineMap apart = AffineMap::get(2, 0, sum, &context),
              joined = joinRemainders(apart, extents);
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      ASSERT_EQ(valueAt(joined.getResult(0), point), valueAt(sum, point))
          << text(apart) << " became " << text(joined) << ", extents "
          << text(extents) << ", round " << round;
    });
  }
}

// Loops are cut, not reordered: the n-th iteration stays the n-th.
TEST_F(StickAccessTest, RefinedLoopsVisitTheSameElementsInOrder) {
  int found = 0;
  for (int round = 0; round < 4000; ++round) {
    Access access = randomAccess(random, &context, {1, 2, 4, 6, 64, 65, 128});
    std::optional<RefinedLoops> refined =
        refineLoops(access.map, access.extents, access.layout, access.shape);
    if (!refined)
      continue;
    ++found;
    SmallVector<SmallVector<int64_t>> before, after;
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      before.push_back(valuesAt(access.map, point));
    });
    forEachPoint(refined->extents, [&](ArrayRef<int64_t> point) {
      after.push_back(valuesAt(refined->maps.front(), point));
    });
    ASSERT_EQ(before, after)
        << access.str() << " became " << text(refined->maps.front())
        << ", extents " << text(refined->extents) << ", round " << round;
  }
  EXPECT_GT(found, 100);
}

} // namespace
