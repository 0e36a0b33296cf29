//===- TileLoops.h - Groups of operations under tile loops ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A group of operations is tiled by cutting one loop dimension of each of them
// into equal tiles and running the whole group once per tile. Which loop
// dimensions belong together follows from the tensors that the operations of
// the group hand to each other. A reduction over the dimension accumulates, and
// what needs its result comes after the loop. An exponential of x - max(x) may
// stay in it all the same: against the maximum so far, by whose changes the
// sums of exponentials are rescaled.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_TILELOOPS_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_TILELOOPS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::spyre_graph {

using OpGroup = llvm::SetVector<Operation *>;

/// One loop over tiles: which loop dimension of each operation it cuts.
/// Operations of the group that are not in the map do not depend on the loop.
struct TileLevel {
  llvm::MapVector<Operation *, unsigned> loopDims;
  /// Those that reduce the dimension.
  llvm::SetVector<Operation *> reduced;
  /// Exponentials -> the maximum, a reduction over the dimension, that they
  /// subtract.
  llvm::MapVector<Operation *, Operation *> shifts;
  int64_t extent = 0;
  /// Tiles start at multiples of this: whole sticks.
  int64_t granularity = 1;
  /// Extent of a tile; divides `extent`.
  int64_t tile = 0;
  /// Of the hint; tells the loops of one function apart.
  int64_t scope = 0;

  int64_t getNumTiles() const { return extent / tile; }
};

/// The dimension of a tensor that loop dimension `loopDim` of an operation
/// selects through `map`, one to one: -1 if the map does not depend on it,
/// nothing if it does in another way.
std::optional<int64_t> getTiledDim(AffineMap map, unsigned loopDim,
                                   ArrayRef<int64_t> shape, int64_t extent);

/// The level that cuts loop dimension `loopDim` of `seed`, followed through the
/// tensors that `group` hands on, or nothing if some operation cannot be cut
/// accordingly. `reason` then says which and why.
std::optional<TileLevel> getTileLevel(const OpGroup &group,
                                      SpyreOpInterface seed, unsigned loopDim,
                                      std::string &reason);

/// The extents of an operand's part that one tile of all levels accesses.
SmallVector<int64_t> getTileShape(OpOperand &operand,
                                  ArrayRef<TileLevel> levels);

/// Runs the group, whose operations are in program order in one block, once per
/// tile, the first level outermost. Only the last may reduce its dimension.
/// Operations between them that do not belong to the group are moved before or
/// after the loops.
void buildTileLoops(const OpGroup &group, ArrayRef<TileLevel> levels);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_TILELOOPS_H
