// SPDX-License-Identifier: Apache-2.0
//===- ArgumentReach.cpp - How far a plan reaches into its arguments ------===//

#include "ArgumentReach.h"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The largest value of an expression over a box, or a bound of it. Of a
/// diagonal, say, getRange() knows little: its loop runs through a floor
/// division and a modulus.
static int64_t getMaximum(AffineExpr expr, ArrayRef<int64_t> extents) {
  constexpr int64_t kMaxPoints = 1 << 16;
  int64_t bound = getRange(expr, extents).second, numPoints = 1;
  if (isa<AffineDimExpr, AffineConstantExpr>(expr))
    return bound;
  SmallVector<unsigned> used;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (!expr.isFunctionOfDim(dim) || extents[dim] <= 1)
      continue;
    used.push_back(dim);
    if (extents[dim] > kMaxPoints / numPoints)
      return bound;
    numPoints *= extents[dim];
  }
  SmallVector<int64_t> point(extents.size(), 0);
  int64_t maximum = evaluate(expr, point);
  for (int64_t number = 1; number < numPoints; ++number) {
    for (unsigned dim : used) {
      if (++point[dim] < extents[dim])
        break;
      point[dim] = 0;
    }
    maximum = std::max(maximum, evaluate(expr, point));
    if (maximum == bound)
      break;
  }
  return maximum;
}

/// Widens `reach` to what an operation accesses of an operand whose coordinates
/// start at `first` of the argument.
static void addAccess(SpyreOpInterface op, unsigned operand,
                      ArrayRef<int64_t> first, ArrayRef<int64_t> shape,
                      MutableArrayRef<int64_t> reach) {
  SmallVector<int64_t> extents = op.getLoopExtents();
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  AffineMap map = op.getIndexingMaps()[operand];
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool isAnywhere = indirect && indirect->operand == operand &&
                      indirect->dim == static_cast<int64_t>(dim);
    int64_t end =
        isAnywhere ? shape[dim] : first[dim] + getMaximum(expr, extents) + 1;
    reach[dim] = std::max(reach[dim], std::min(end, shape[dim]));
  }
}

SmallVector<int64_t> spyre_graph::getReach(BlockArgument argument) {
  ArrayRef<int64_t> shape = cast<ShapedType>(argument.getType()).getShape();
  SmallVector<int64_t> reach(shape.size(), 0), start(shape.size(), 0);
  for (OpOperand &use : argument.getUses()) {
    if (auto op = dyn_cast<SpyreOpInterface>(use.getOwner())) {
      addAccess(op, use.getOperandNumber(), start, shape, reach);
      continue;
    }
    auto tile = dyn_cast<memref::SubViewOp>(use.getOwner());
    if (!tile)
      return llvm::to_vector(shape);
    // The last tile: no other reaches further.
    SmallVector<int64_t> last;
    for (OpFoldResult offset : tile.getMixedOffsets()) {
      std::optional<TileOffset> known = getTileOffset(offset);
      std::optional<TileOffset::Range> range =
          known ? known->getRange() : std::nullopt;
      if (!range)
        return llvm::to_vector(shape);
      last.push_back(std::max(range->first, range->last));
    }
    for (OpOperand &tileUse : tile->getUses()) {
      auto op = dyn_cast<SpyreOpInterface>(tileUse.getOwner());
      if (!op)
        return llvm::to_vector(shape);
      addAccess(op, tileUse.getOperandNumber(), last, shape, reach);
    }
  }
  return reach;
}
