// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Layouts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre_test;

namespace {

class LaneAccessTest : public ::testing::Test {
protected:
  LaneAccessTest() {
    context.loadDialect<SpyreGraphDialect, func::FuncDialect>();
  }

  MLIRContext context;
  Random random{20251104};
};

TEST_F(LaneAccessTest, LanesAreThoseOfTheElements) {
  std::map<LaneAccess::Kind, int> kinds;
  for (int round = 0; round < 3000; ++round) {
    Access access = randomAccess(random, &context);
    LaneAccess lane =
        getLaneAccess(access.map, access.layout, access.shape, access.extents);
    ++kinds[lane.kind];
    int64_t stick = getStickElements(access.layout);
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      int64_t found =
          place(access.layout, access.shape, valuesAt(access.map, point))
              .back();
      ASSERT_EQ(valueAt(lane.lane, point), found) << text(point);
      if (lane.kind == LaneAccess::Zero)
        ASSERT_EQ(found, 0) << text(point);
      if (lane.kind == LaneAccess::Variable) {
        ASSERT_EQ(lane.kind, LaneAccess::Variable);
        ASSERT_EQ(found, point[lane.dim] % stick) << text(point);
      }
    });
    if (HasFailure())
      FAIL() << access.str() << ", round " << round;
  }
  for (LaneAccess::Kind kind :
       {LaneAccess::Zero, LaneAccess::Variable, LaneAccess::Irregular})
    EXPECT_GT(kinds[kind], 300);
}

TEST_F(LaneAccessTest, ExplicitFormOfALayoutIsTheSame) {
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    Access access = randomAccess(random, &context);
    auto relative = dyn_cast<LayoutAttr>(access.layout);
    if (!relative || relative.getSparse() ||
        llvm::any_of(access.shape, [](int64_t size) { return size < 2; }))
      continue;
    SmallVector<int64_t> strides(access.shape.size(), 1);
    for (size_t dim = strides.size(); dim-- > 1;)
      strides[dim - 1] = strides[dim] * access.shape[dim];
    LayoutAttrInterface other = ExplicitLayoutAttr::get(
        &context, access.layout.getDeviceSize(access.shape),
        relative.getStrideMap(access.shape, strides), strides,
        relative.getFormat());
    LaneAccess own = getLaneAccess(access.map, access.layout, access.shape,
                                   access.extents),
               same = getLaneAccess(access.map, other, access.shape,
                                    access.extents);
    ASSERT_TRUE(own.kind == same.kind && own.dim == same.dim &&
                own.lane == same.lane)
        << access.str() << " and " << text(Attribute(other)) << ", round "
        << round;
    ++found;
  }
  EXPECT_GT(found, 500);
}

TEST_F(LaneAccessTest, TouchedSticksAreCounted) {
  int exact = 0;
  for (int round = 0; round < 3000; ++round) {
    Access access = randomAccess(random, &context);
    std::set<int64_t> sticks;
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      sticks.insert(
          stickOf(access.layout, access.shape, valuesAt(access.map, point)));
    });
    int64_t touched = sticks.size(),
            counted = getNumTouchedSticks(access.map, access.layout,
                                          access.shape, access.extents);
    ASSERT_GE(counted, touched) << access.str() << ", round " << round;
    // Plain dimensions, each once, are counted exactly.
    std::set<unsigned> dims;
    bool isPlain = llvm::all_of(access.map.getResults(), [&](AffineExpr expr) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      return isa<AffineConstantExpr>(expr) ||
             (dim && dims.insert(dim.getPosition()).second);
    });
    if (!isPlain)
      continue;
    ++exact;
    ASSERT_EQ(counted, touched) << access.str() << ", round " << round;
  }
  EXPECT_GT(exact, 500);
}

TEST_F(LaneAccessTest, UsedDimsAreThoseThatMoveAnything) {
  AffineExpr d0 = getAffineDimExpr(0, &context),
             d1 = getAffineDimExpr(1, &context);
  AffineMap map = AffineMap::get(3, 0, {d0 + 1, d1 % 64}, &context);
  llvm::SmallBitVector both = getUsedDims(map, {2, 65, 3});
  EXPECT_TRUE(both.test(0) && both.test(1) && !both.test(2));
  // A loop of one iteration, or none, moves nothing.
  EXPECT_TRUE(getUsedDims(map, {1, 0, 3}).none());
  EXPECT_EQ(getUsedDims(d1 % 64, {2, 65, 3}).count(), 1u);
}

TEST_F(LaneAccessTest, SplitReductionIsFound) {
  using utils::IteratorType;
  IteratorType kinds[] = {IteratorType::parallel, IteratorType::reduction,
                          IteratorType::reduction};
  EXPECT_EQ(getSplitReduction(kinds, {4, 1, 1}), -1);
  EXPECT_EQ(getSplitReduction(kinds, {4, 1, 2}), 2);
  EXPECT_EQ(getSplitReduction(kinds, {1, 3, 1}), 1);
}

// Cuts at multiples of the granularity, in all dimensions at once, leave every
// stick that is written to one core.
TEST_F(LaneAccessTest, GranularityKeepsSticksWhole) {
  Location loc = UnknownLoc::get(&context);
  OpBuilder builder(&context);
  int found = 0, cut = 0;
  for (int round = 0; round < 3000; ++round) {
    Access access = randomAccess(random, &context);
    std::set<std::vector<int64_t>> elements;
    int64_t iterations = 0;
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      SmallVector<int64_t> element = valuesAt(access.map, point);
      elements.insert({element.begin(), element.end()});
      ++iterations;
    });
    // Operations write each element once.
    if (static_cast<int64_t>(elements.size()) != iterations)
      continue;
    ++found;
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    auto inputType = RankedTensorType::get(access.extents, access.elementType);
    auto initType =
        RankedTensorType::get(access.shape, access.elementType, access.layout);
    auto function = func::FuncOp::create(
        loc, "f", builder.getFunctionType({inputType, initType}, {}));
    module->push_back(function);
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    AffineMap input =
        AffineMap::getMultiDimIdentityMap(access.extents.size(), &context);
    OperationState state(loc, IdentityOp::getOperationName());
    state.addOperands(block->getArguments());
    state.addTypes(initType);
    state.addAttribute("maps",
                       builder.getAffineMapArrayAttr({input, access.map}));
    state.addAttribute("extents", builder.getDenseI64ArrayAttr(access.extents));
    SmallVector<int64_t> granularity =
        getSliceGranularity(cast<SpyreOpInterface>(builder.create(state)));
    std::map<int64_t, SmallVector<int64_t>> cellOfStick;
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      SmallVector<int64_t> cell;
      for (auto [index, step] : llvm::zip_equal(point, granularity))
        cell.push_back(index / step);
      int64_t stick =
          stickOf(access.layout, access.shape, valuesAt(access.map, point));
      auto [known, isNew] = cellOfStick.try_emplace(stick, cell);
      ASSERT_EQ(known->second, cell)
          << "stick " << stick << " at " << text(point);
    });
    if (HasFailure())
      FAIL() << access.str() << ", granularity " << text(granularity)
             << ", round " << round;
    for (auto [step, extent] : llvm::zip_equal(granularity, access.extents))
      cut += step < extent;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(cut, 500);
}

} // namespace
