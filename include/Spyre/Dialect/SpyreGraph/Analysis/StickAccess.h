// SPDX-License-Identifier: Apache-2.0
//===- StickAccess.h - Accesses as strides between sticks -------*- C++ -*-===//
//
// The accesses to a tensor that SuperDSC can express: loops walk sticks at
// fixed distances, and at most one loop walks the lanes of a stick.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STICKACCESS_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STICKACCESS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// An access of this form.
struct StickAccess {
  /// The loop along the sticks, or -1 if only lane 0 is accessed.
  int64_t laneDim = -1;
  /// Elements of a stick along that loop.
  int64_t stickElements = 1;
  /// The loop whose steps share sticks (LayoutAttr, `packed`), or -1, and how
  /// many of them do.
  int64_t packedDim = -1, numPacked = 1;
  /// Sticks from one iteration of each loop to the next; of the loop along the
  /// sticks, and the packed one, from one whole stick to the next.
  SmallVector<int64_t> strides;
  /// Sticks before the first one accessed.
  int64_t offset = 0;
  /// Sticks of the whole tensor.
  int64_t totalSticks = 1;
  /// Sticks from one stick to the next along the tensor's stick dimension; 0 if
  /// it has none.
  int64_t tileStride = 0;

  /// Iterations of a loop that stay in one stick.
  int64_t getStepsPerStick(int64_t loop) const {
    return loop < 0            ? 1
           : loop == laneDim   ? stickElements
           : loop == packedDim ? numPacked
                               : 1;
  }

  /// Sticks from one iteration of the innermost loop to the next; 0 if all
  /// loops stay where they are. Above 1, sticks are skipped inside of all
  /// loops.
  int64_t getInnermostStride() const;

  /// How many sticks follow each other in each run of those that `counts[d]`
  /// iterations of each loop d access. Loops with a count of 1 stand still.
  int64_t getRunLength(ArrayRef<int64_t> counts) const;
};

/// The access of an operand of `shape` in `layout` by `map`, or nothing if it
/// is not of this form (a lane that is not 0, v or v mod stick; an index that
/// is not linear in the loops).
std::optional<StickAccess> getStickAccess(AffineMap map,
                                          LayoutAttrInterface layout,
                                          ArrayRef<int64_t> shape,
                                          ArrayRef<int64_t> extents);

/// The row-major index of the element that a map gives of a tensor of `shape`.
AffineMap getLinearIndex(AffineMap map, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> extents);

/// Returns the map with every q x (e floordiv q) + e mod q replaced by e.
AffineMap joinRemainders(AffineMap map, ArrayRef<int64_t> extents);

/// Loops of an operation after every loop whose quotient and remainder by a
/// number are used apart is cut there: the maps in the new loops. Nothing if
/// that makes no access linear that was not.
struct RefinedLoops {
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
};
std::optional<RefinedLoops> refineLoops(ArrayRef<AffineMap> maps,
                                        ArrayRef<int64_t> extents,
                                        ArrayRef<LayoutAttrInterface> layouts,
                                        ArrayRef<SmallVector<int64_t>> shapes);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STICKACCESS_H
