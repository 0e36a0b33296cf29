// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Points.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre_test;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class TileOffsetTest : public ::testing::Test {
protected:
  TileOffsetTest() : builder(&context) {
    context.loadDialect<arith::ArithDialect, scf::SCFDialect>();
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, builder.getUnknownLoc(),
                                          value);
  }
  /// The offset `factor` times the induction variable; 1 as the variable.
  std::optional<TileOffset> offset(int64_t low, int64_t high, int64_t step,
                                   int64_t factor) {
    Location loc = builder.getUnknownLoc();
    auto loop = scf::ForOp::create(builder, loc, constant(low), constant(high),
                                   constant(step));
    OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
    Value value = loop.getInductionVar();
    if (factor != 1)
      value = arith::MulIOp::create(
          inner, loc, value,
          arith::ConstantIndexOp::create(inner, loc, factor));
    return getTileOffset(value);
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
};

TEST_F(TileOffsetTest, NumbersAreTheirOwnRange) {
  for (int64_t number : {kLeast, int64_t(-1), int64_t(0), int64_t(65), kMost}) {
    for (OpFoldResult given : {OpFoldResult(builder.getIndexAttr(number)),
                               OpFoldResult(constant(number))}) {
      auto offset = getTileOffset(given);
      ASSERT_TRUE(offset);
      EXPECT_FALSE(offset->loop);
      auto range = offset->getRange();
      ASSERT_TRUE(range);
      EXPECT_EQ(range->first, number);
      EXPECT_EQ(range->last, number);
      EXPECT_EQ(range->step, 0);
    }
  }
}

TEST_F(TileOffsetTest, RangesAreThoseOfTheLoop) {
  Random random(20251102);
  for (int round = 0; round < 1000; ++round) {
    int64_t low = random.number(-70, 70), high = low + random.number(-3, 130),
            step = random.pick({1, 2, 3, 63, 64, 65}),
            factor = random.pick({1, 2, 63, 64, 65});
    auto range = offset(low, high, step, factor)->getRange();
    ASSERT_TRUE(range);
    EXPECT_EQ(range->first, low * factor);
    EXPECT_EQ(range->step, step * factor);
    if (high <= low) {
      EXPECT_LT(range->last, range->first);
      continue;
    }
    int64_t last = low;
    for (int64_t i = low; i < high; i += step)
      last = i * factor;
    ASSERT_EQ(range->last, last)
        << low << " to " << high << " by " << step << " times " << factor;
  }
}

TEST_F(TileOffsetTest, RangesAtTheEdgesOf64BitsAreExactOrNone) {
  const int64_t edges[] = {kLeast, kLeast + 1, kLeast / 2, -1,        0,
                           1,      65,         kMost / 2,  kMost - 1, kMost};
  for (int64_t low : edges)
    for (int64_t high : edges)
      for (int64_t step : {int64_t(1), int64_t(63), kMost / 2, kMost})
        for (int64_t factor : {int64_t(1), int64_t(2), int64_t(65), kMost}) {
          auto range = offset(low, high, step, factor)->getRange();
          if (!range)
            continue;
          Wide steps = high <= low ? -1 : -floorDiv(Wide(low) - high, step) - 1;
          EXPECT_TRUE(Wide(low) * factor == range->first &&
                      Wide(step) * factor == range->step &&
                      range->first + steps * range->step == range->last)
              << low << " to " << high << " by " << step << " times " << factor
              << " gives " << range->first << " to " << range->last << " by "
              << range->step;
        }
}

TEST_F(TileOffsetTest, OthersHaveNoRange) {
  // Steps and factors that go nowhere or backward.
  EXPECT_FALSE(offset(0, 64, 0, 1)->getRange());
  EXPECT_FALSE(offset(0, 64, -1, 1)->getRange());
  EXPECT_FALSE(offset(0, 64, 1, 0));
  EXPECT_FALSE(offset(0, 64, 1, -64));
  // A sum, a product with the constant first, an argument of another block.
  Location loc = builder.getUnknownLoc();
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), constant(64), constant(1));
  OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
  Value variable = loop.getInductionVar();
  Value two = arith::ConstantIndexOp::create(inner, loc, 2);
  EXPECT_FALSE(getTileOffset(
      arith::AddIOp::create(inner, loc, variable, two).getResult()));
  EXPECT_FALSE(getTileOffset(
      arith::MulIOp::create(inner, loc, two, variable).getResult()));
  EXPECT_FALSE(getTileOffset(
      arith::MulIOp::create(inner, loc, variable, variable).getResult()));
  // A loop with a bound that is not constant.
  auto nested = scf::ForOp::create(inner, loc, two, variable, two);
  auto known = getTileOffset(nested.getInductionVar());
  ASSERT_TRUE(known);
  EXPECT_EQ(known->loop, nested);
  EXPECT_FALSE(known->getRange());
}

} // namespace
