//===- FoldCasts.cpp - Conversions as part of their neighbours --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FoldCasts.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Whether an operation computes the same bits for wider or narrower types of
/// its inputs, rounding aside. Reductions do not: the order in which they add
/// may depend on how much of the input fits in LX.
static bool isFreeOfTypes(SpyreOpInterface op) {
  return op.getLayoutRule() == LayoutRule::Pointwise &&
         op.getCombiner() == Combiner::None && !op.getIndirectAccess() &&
         op->getNumResults() == 1;
}

/// Whether an op converts between floating-point types and creates a new
/// tensor.
static bool isCast(IdentityOp op, bool isWidening) {
  if (op->getNumResults() != 1 || op.getInputs().size() != 1 ||
      op.getImmediates() || !op.getMaps() ||
      !op.getInit().getDefiningOp<tensor::EmptyOp>() ||
      getLayout(op.getResult().getType()))
    return false;
  auto from = cast<ShapedType>(op.getInputs()[0].getType());
  auto to = cast<ShapedType>(op.getResult().getType());
  Type narrow = (isWidening ? from : to).getElementType(),
       wide = (isWidening ? to : from).getElementType();
  return (narrow.isF16() || narrow.isBF16()) && wide.isF32() &&
         op.getLoopExtents() == llvm::to_vector(to.getShape()) &&
         op.getIndexingMaps().back().isIdentity() && to.getNumElements() > 0;
}

/// Lets the users of a widening conversion read its input.
static bool foldIntoUsers(IdentityOp op) {
  AffineMap read = op.getIndexingMaps().front();
  for (OpOperand &use : llvm::make_early_inc_range(op.getResult().getUses())) {
    auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (!user || user.isDpsInit(&use) || !isFreeOfTypes(user))
      continue;
    SmallVector<AffineMap> maps = user.getIndexingMaps();
    SmallVector<int64_t> extents = user.getLoopExtents();
    AffineMap &map = maps[use.getOperandNumber()];
    map = simplifyWithRanges(read.compose(map), extents);
    use.set(op.getInputs()[0]);
    user.setLoopStructure(maps, extents);
  }
  if (!op->use_empty())
    return false;
  op->erase();
  return true;
}

/// Lets an operation whose only user narrows its result write the narrow
/// type.
static bool foldIntoProducer(IdentityOp op) {
  Value wide = op.getInputs()[0];
  auto producer = wide.getDefiningOp<SpyreOpInterface>();
  if (!producer || !wide.hasOneUse() || !isFreeOfTypes(producer) ||
      producer->getBlock() != op->getBlock() ||
      !producer.getSpyreInit().getDefiningOp<tensor::EmptyOp>() ||
      getLayout(wide.getType()) || !op.getIndexingMaps().front().isIdentity())
    return false;
  OpBuilder builder(producer);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Value init =
      tensor::EmptyOp::create(builder, producer->getLoc(), type, ValueRange());
  producer->setOperand(producer->getNumOperands() - 1, init);
  wide.setType(type);
  op.getResult().replaceAllUsesWith(wide);
  op->erase();
  return true;
}

int64_t spyre_graph::foldCasts(func::FuncOp func) {
  int64_t numFolded = 0;
  for (bool isWidening : {true, false}) {
    SmallVector<IdentityOp> casts;
    func.walk<WalkOrder::PreOrder>([&](IdentityOp op) {
      if (isCast(op, isWidening))
        casts.push_back(op);
    });
    for (IdentityOp op : casts)
      numFolded += isWidening ? foldIntoUsers(op) : foldIntoProducer(op);
  }
  return numFolded;
}
