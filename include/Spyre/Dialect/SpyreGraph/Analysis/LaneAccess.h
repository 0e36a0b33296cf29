//===- LaneAccess.h - How operations touch sticks ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Describes one operand of one operation for planners: which loop dimension
// runs along its sticks, and how it may be divided.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LANEACCESS_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LANEACCESS_H

#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::spyre_graph {

/// The lane (coordinate within a stick) at which an access reads or writes, as
/// a function of the loop indices (spec/layouts.md, "Legal stick expressions").
struct LaneAccess {
  enum Kind {
    /// Always lane 0: one element per stick, or broadcast.
    Zero,
    /// v or v mod (elements per stick) for one loop dimension v.
    Variable,
    /// Anything else; the device's ops cannot read or write it.
    Irregular
  };
  Kind kind;
  /// The loop dimension v of a Variable access.
  unsigned dim = 0;
  /// The lane as an expression of the loop indices.
  AffineExpr lane;
};

/// The lane access of an operand of shape `shape` in `layout`, whose `map` is
/// evaluated for loop dimensions of the given extents.
LaneAccess getLaneAccess(AffineMap map, LayoutAttrInterface layout,
                         ArrayRef<int64_t> shape, ArrayRef<int64_t> extents);

/// Sticks of an operand that iterations 0 to `extents` of the loops touch, each
/// counted once; those between the first and the last count where a coordinate
/// is no plain dimension.
int64_t getNumTouchedSticks(AffineMap map, LayoutAttrInterface layout,
                            ArrayRef<int64_t> shape, ArrayRef<int64_t> extents);

/// Elements of a stick along its stick dimension.
int64_t getStickElements(LayoutAttrInterface layout);

/// Loop dimensions of extent greater than one that `expr` or `map` depends on.
llvm::SmallBitVector getUsedDims(AffineMap map, ArrayRef<int64_t> extents);
llvm::SmallBitVector getUsedDims(AffineExpr expr, ArrayRef<int64_t> extents);

/// The reduction dimension that a division splits, or -1.
int64_t getSplitReduction(ArrayRef<utils::IteratorType> kinds,
                          ArrayRef<int64_t> splits);

/// Smallest number of iterations of each loop dimension that two cores can
/// work on without writing, or reading, parts of one stick.
SmallVector<int64_t> getSliceGranularity(SpyreOpInterface op);

/// The iterations of each slice as functions of the function's symbols, or null
/// if no extent of `op` varies: equal slices of whole granules, of which the
/// last may be shorter, or empty. What does not vary is as in `chunks`.
AffineMap getChunkMap(SpyreOpInterface op, ArrayRef<int64_t> splits,
                      ArrayRef<int64_t> chunks);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LANEACCESS_H
