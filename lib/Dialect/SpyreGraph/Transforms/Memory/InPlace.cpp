//===- InPlace.cpp - Results in the memory of operands ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "InPlace.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool spyre_graph::canWriteInPlace(SpyreOpInterface op, unsigned operand) {
  unsigned initNumber = op->getNumOperands() - 1;
  Value init = op->getOperand(initNumber);
  Value source = op->getOperand(operand);
  if (operand == initNumber || source == init ||
      source.getType() != init.getType() ||
      op.getCombiner() != Combiner::None || op.getIndirectAccess() ||
      op.getAccessDivision(operand) != op.getWorkDivision())
    return false;
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  AffineMap initMap = simplifyWithRanges(maps[initNumber], extents);
  // No dimension left out.
  if (!isInLoopDims(initMap))
    return false;
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (extent > 1 && !initMap.isFunctionOfDim(dim))
      return false;
  for (OpOperand &other : op->getOpOperands()) {
    unsigned number = other.getOperandNumber();
    if (other.get() == init && number != initNumber)
      return false;
    if (other.get() == source &&
        simplifyWithRanges(maps[number], extents) != initMap)
      return false;
  }
  return true;
}
