//===- LoopStructures.cpp - Default loops of device operations --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre_graph::detail::LoopStructure;

/// The map of an operand of shape `shape` that is broadcast, by trailing
/// dimensions, to loops `loops` of extents `extents`.
static AffineMap getBroadcastMap(ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> extents, unsigned firstLoop,
                                 unsigned numLoopsAligned, unsigned numLoops,
                                 MLIRContext *context) {
  SmallVector<AffineExpr> results;
  unsigned rank = shape.size();
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned fromEnd = rank - dim;
    if (fromEnd > numLoopsAligned ||
        (shape[dim] == 1 &&
         extents[firstLoop + numLoopsAligned - fromEnd] != 1)) {
      results.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    results.push_back(
        getAffineDimExpr(firstLoop + numLoopsAligned - fromEnd, context));
  }
  return AffineMap::get(numLoops, 0, results, context);
}

LoopStructure spyre_graph::detail::getPointwiseLoops(Operation *op) {
  LoopStructure loops;
  MLIRContext *context = op->getContext();
  loops.extents =
      llvm::to_vector(shapedType(op->getOperands().back()).getShape());
  unsigned rank = loops.extents.size();
  for (Value operand : op->getOperands())
    loops.maps.push_back(getBroadcastMap(
        shapedType(operand).getShape(), loops.extents, 0, rank, rank, context));
  return loops;
}

LoopStructure spyre_graph::detail::getReductionLoops(Operation *op,
                                                     ArrayRef<int64_t> dims) {
  LoopStructure loops;
  MLIRContext *context = op->getContext();
  ArrayRef<int64_t> inputShape = shapedType(op->getOperand(0)).getShape();
  int64_t outRank = shapedType(op->getOperands().back()).getRank();
  loops.extents = llvm::to_vector(inputShape);
  unsigned rank = inputShape.size();
  for (Value input : op->getOperands().drop_back())
    loops.maps.push_back(getBroadcastMap(
        shapedType(input).getShape(), loops.extents, 0, rank, rank, context));
  SmallVector<AffineExpr> results;
  bool keepDims = outRank == static_cast<int64_t>(rank);
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(dims, dim))
      results.push_back(getAffineDimExpr(dim, context));
    else if (keepDims)
      results.push_back(getAffineConstantExpr(0, context));
  }
  loops.maps.push_back(AffineMap::get(rank, 0, results, context));
  return loops;
}

LoopStructure spyre_graph::detail::getMatmulLoops(Operation *op) {
  LoopStructure loops;
  MLIRContext *context = op->getContext();
  ArrayRef<int64_t> x = shapedType(op->getOperand(0)).getShape();
  ArrayRef<int64_t> out = shapedType(op->getOperands().back()).getShape();
  // Loops: batch..., m, n, k.
  loops.extents = llvm::to_vector(out);
  loops.extents.push_back(x.back());
  unsigned rank = out.size(), numLoops = rank + 1;
  AffineExpr m = getAffineDimExpr(rank - 2, context);
  AffineExpr n = getAffineDimExpr(rank - 1, context);
  AffineExpr k = getAffineDimExpr(rank, context);
  auto operandMap = [&](ArrayRef<int64_t> shape, AffineExpr row,
                        AffineExpr column) {
    AffineMap batch = getBroadcastMap(shape.drop_back(2), loops.extents, 0,
                                      rank - 2, numLoops, context);
    SmallVector<AffineExpr> results(batch.getResults());
    results.push_back(row);
    results.push_back(column);
    return AffineMap::get(numLoops, 0, results, context);
  };
  loops.maps.push_back(operandMap(x, m, k));
  loops.maps.push_back(
      operandMap(shapedType(op->getOperand(1)).getShape(), k, n));
  for (Value bias : op->getOperands().drop_back().drop_front(2))
    loops.maps.push_back(getBroadcastMap(shapedType(bias).getShape(),
                                         loops.extents, 0, rank, numLoops,
                                         context));
  loops.maps.push_back(operandMap(out, m, n));
  return loops;
}

LoopStructure spyre_graph::detail::getGatherLoops(Operation *op, int64_t axis) {
  LoopStructure loops;
  MLIRContext *context = op->getContext();
  ShapedType table = shapedType(op->getOperand(0));
  ShapedType index = shapedType(op->getOperand(1));
  loops.extents =
      llvm::to_vector(shapedType(op->getOperands().back()).getShape());
  unsigned numLoops = loops.extents.size();
  SmallVector<AffineExpr> tableResults, indexResults;
  for (int64_t dim = 0; dim < table.getRank(); ++dim) {
    if (dim == axis) {
      tableResults.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    tableResults.push_back(getAffineDimExpr(
        dim < axis ? dim : dim - 1 + index.getRank(), context));
  }
  for (int64_t dim = 0; dim < index.getRank(); ++dim)
    indexResults.push_back(getAffineDimExpr(axis + dim, context));
  loops.maps = {AffineMap::get(numLoops, 0, tableResults, context),
                AffineMap::get(numLoops, 0, indexResults, context),
                AffineMap::getMultiDimIdentityMap(numLoops, context)};
  return loops;
}

LoopStructure spyre_graph::detail::getScatterLoops(Operation *op,
                                                   int64_t axis) {
  LoopStructure loops;
  MLIRContext *context = op->getContext();
  loops.extents = llvm::to_vector(shapedType(op->getOperand(0)).getShape());
  unsigned numLoops = loops.extents.size();
  SmallVector<AffineExpr> initResults;
  for (unsigned dim = 0; dim < numLoops; ++dim)
    initResults.push_back(static_cast<int64_t>(dim) == axis
                              ? getAffineConstantExpr(0, context)
                              : getAffineDimExpr(dim, context));
  loops.maps = {AffineMap::getMultiDimIdentityMap(numLoops, context),
                AffineMap::get(numLoops, 0, getAffineDimExpr(axis, context)),
                AffineMap::get(numLoops, 0, initResults, context)};
  return loops;
}

SmallVector<utils::IteratorType>
spyre_graph::detail::getDefaultLoopKinds(SpyreOpInterface op) {
  SmallVector<utils::IteratorType> kinds;
  AffineMap initMap = op.getIndexingMaps().back();
  for (unsigned dim = 0; dim < initMap.getNumDims(); ++dim)
    kinds.push_back(initMap.isFunctionOfDim(dim)
                        ? utils::IteratorType::parallel
                        : utils::IteratorType::reduction);
  // A dimension of extent 1 repeats nothing: it is parallel even where the
  // init's map has folded it away, unless the op reduces at all.
  if (op.getCombiner() == Combiner::None && !op.getIndirectAccess())
    llvm::fill(kinds, utils::IteratorType::parallel);
  return kinds;
}

double spyre_graph::detail::getMeanScale(SpyreOpInterface op,
                                         double correction) {
  double count = 1;
  for (auto [extent, kind] : llvm::zip(op.getLoopExtents(), op.getLoopKinds()))
    if (kind == utils::IteratorType::reduction)
      count *= extent;
  // No elements without a correction: 1 / 0.
  return 1.0 / std::max(count - correction, 0.0);
}

Value spyre_graph::detail::buildMeanScale(ScalarBuilder &b, SpyreOpInterface op,
                                          double correction,
                                          function_ref<Value()> count) {
  if (!count)
    return b.constantF32(getMeanScale(op, correction));
  Value degrees = count();
  // There is an element at every size (SG-SYMBOL-C2).
  if (correction != 0)
    degrees = b.maximum(b.sub(degrees, b.constantF32(correction)),
                        b.constantF32(0.0));
  return b.reciprocal(degrees);
}
