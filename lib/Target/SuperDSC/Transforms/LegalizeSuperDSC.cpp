// SPDX-License-Identifier: Apache-2.0
//===- LegalizeSuperDSC.cpp - Accesses that SuperDSC can say ----*- C++ -*-===//

#include "Legalizer.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Target/SuperDSC/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace spyre::superdsc {
#define GEN_PASS_DEF_SPYRELEGALIZESUPERDSC
#include "Spyre/Target/SuperDSC/Transforms/Passes.h.inc"
} // namespace spyre::superdsc

using namespace mlir;
using namespace mlir::spyre_graph;

/// The result of a reduction over an empty dimension, which SuperDSC cannot
/// say. None if it is no number, or if the operation has another operand.
static std::optional<double> getEmptyResult(SpyreOpInterface op) {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  bool isEmpty = false;
  for (auto [extent, kind] : llvm::zip_equal(op.getLoopExtents(), kinds)) {
    if (kind == utils::IteratorType::parallel && extent == 0)
      return std::nullopt;
    isEmpty |= extent == 0;
  }
  if (!isEmpty || op.getNumEpilogueInputs() != 0)
    return std::nullopt;
  return op.getEmptyResult();
}

/// Replaces a reduction of nothing by its result.
static void fillEmptyReductions(func::FuncOp function) {
  SmallVector<std::pair<SpyreOpInterface, double>> empty;
  function.walk([&](SpyreOpInterface op) {
    if (op.getCombiner() != Combiner::None && op->getNumResults() == 1)
      if (std::optional<double> value = getEmptyResult(op))
        empty.emplace_back(op, *value);
  });
  for (auto [op, value] : empty) {
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op.getSpyreInit().getType());
    TypedAttr number = builder.getF32FloatAttr(value);
    if (!isa<FloatType>(type.getElementType()))
      number = builder.getI64IntegerAttr(static_cast<int64_t>(value));
    auto fill = FillOp::create(
        builder, op->getLoc(), ValueRange(), op.getSpyreInit(),
        builder.getMultiDimIdentityMap(type.getRank()), type.getShape());
    fill.setImmediatesAttr(builder.getArrayAttr({number}));
    op->replaceAllUsesWith(fill);
    op->erase();
  }
}

/// Replaces a gather along a dimension of one element by a copy. There is only
/// index 0, and SuperDSC finds the dimension that is gathered by its extent.
static void copyOnlyElements(func::FuncOp function) {
  SmallVector<GatherOp> gathers;
  function.walk([&](GatherOp op) {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (op->getNumResults() == 1 && type && getLayout(type) &&
        type.getDimSize(op.getAxis()) == 1)
      gathers.push_back(op);
  });
  for (GatherOp gather : gathers) {
    auto op = cast<SpyreOpInterface>(gather.getOperation());
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    auto getLane = [&](Value value, AffineMap map) {
      auto type = cast<RankedTensorType>(value.getType());
      LaneAccess lane =
          getLaneAccess(map, getLayout(type), type.getShape(), extents);
      return std::make_pair(lane.kind, lane.dim);
    };
    Value table = op->getOperand(0), init = op.getSpyreInit();
    bool turns = getLane(table, maps.front()) != getLane(init, maps.back());
    OpBuilder builder(op);
    SpyreOpInterface copy = createCopyOp(
        builder, op->getLoc(),
        turns ? RestickifyOp::getOperationName()
              : IdentityOp::getOperationName(),
        table, init, maps.front(), maps.back(), extents, op.getLoopExtentMap());
    copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->replaceAllUsesWith(copy->getResults());
    op->erase();
  }
}

namespace {

class LegalizeSuperDSCPass
    : public ::spyre::superdsc::impl::SpyreLegalizeSuperDSCBase<
          LegalizeSuperDSCPass> {
public:
  using SpyreLegalizeSuperDSCBase::SpyreLegalizeSuperDSCBase;

  void runOnOperation() override {
    if (failed(checkLayouts(getOperation()))) // SDSC-LEGALIZE-C1
      return signalPassFailure();
    fillEmptyReductions(getOperation());
    copyOnlyElements(getOperation());
    SmallVector<SpyreOpInterface> work;
    getOperation().walk([&](SpyreOpInterface op) {
      if (op->getNumResults() == 1 && getLayout(op.getSpyreInit().getType()) &&
          !llvm::is_contained(op.getLoopExtents(), 0))
        work.push_back(op);
    });
    // Copies that are made need at most loops cut and parts made whole.
    llvm::SetVector<Operation *> all;
    for (unsigned round = 0; round < 8 && !work.empty(); ++round) {
      SmallVector<SpyreOpInterface> made;
      for (SpyreOpInterface op : work)
        numRefined += SuperDSCLegalizer(op, made).run();
      for (SpyreOpInterface op : made)
        all.insert(op);
      work = std::move(made);
    }
    // Operations that joined parts are unused where parts follow each other.
    for (Operation *op : llvm::reverse(all)) {
      if (op->use_empty())
        op->erase();
      else
        ++numCopies;
    }
    if (failed(inferSizes(getOperation())))
      signalPassFailure();
  }
};

} // namespace
