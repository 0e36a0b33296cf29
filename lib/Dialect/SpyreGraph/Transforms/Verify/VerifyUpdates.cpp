//===- VerifyUpdates.cpp - Operations that read what they write -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "VerifyUpdates.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::spyre_graph;

static Value getWhole(Value buffer) {
  auto tile = buffer.getDefiningOp<memref::SubViewOp>();
  return tile ? tile.getSource() : buffer;
}

/// Whether two values are one buffer, or tiles at one place.
static bool isSamePlace(Value a, Value b) {
  auto first = a.getDefiningOp<memref::SubViewOp>(),
       second = b.getDefiningOp<memref::SubViewOp>();
  return a == b || (first && second &&
                    first.getMixedOffsets() == second.getMixedOffsets() &&
                    first.getMixedSizes() == second.getMixedSizes());
}

/// Whether some coordinate of the one map is never one of the other's.
static bool areApart(AffineMap a, AffineMap b, ArrayRef<int64_t> extents) {
  return llvm::any_of(
      llvm::zip_equal(a.getResults(), b.getResults()), [&](auto pair) {
        auto [lowA, highA] = getRange(std::get<0>(pair), extents);
        auto [lowB, highB] = getRange(std::get<1>(pair), extents);
        return highA < lowB || highB < lowA;
      });
}

// SG-PLAN-C14
LogicalResult spyre_graph::verifyUpdate(SpyreOpInterface op) {
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  SmallVector<int64_t> extents = op.getLoopExtents();
  Value init = op.getSpyreInit();
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  AffineMap written = simplifyWithRanges(maps.back(), extents);
  for (auto [number, value] : llvm::enumerate(op.getSpyreInputs())) {
    if (getWhole(value) != getWhole(init) || llvm::is_contained(extents, 0))
      continue;
    AffineMap read = simplifyWithRanges(maps[number], extents);
    bool isIndirect = op.getInitOffset() ||
                      (indirect && (indirect->operand == number ||
                                    indirect->operand + 1 == maps.size()));
    bool isHere = isSamePlace(value, init);
    if (!isIndirect && isHere && areApart(read, written, extents))
      continue;
    bool isOwn = !isIndirect && isHere && read == written &&
                 op.getCombiner() == Combiner::None;
    for (auto [dim, extent] : llvm::enumerate(extents))
      isOwn &= extent == 1 || written.isFunctionOfDim(dim);
    if (!isOwn)
      return op->emitOpError() << "reads elements of operand " << number
                               << " that it may have overwritten";
  }
  return success();
}
