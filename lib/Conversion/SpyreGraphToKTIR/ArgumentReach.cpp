// SPDX-License-Identifier: Apache-2.0
//===- ArgumentReach.cpp - How far a plan reaches into its arguments ------===//

#include "ArgumentReach.h"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::spyre_graph;

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
    int64_t end = isAnywhere ? shape[dim]
                             : first[dim] + getRange(expr, extents).second + 1;
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
