//===- TileLevels.h - Dimensions that a tile loop cuts ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A group of operations is tiled by cutting one loop dimension of each of them
// into tiles and running the whole group once per tile. Which loop dimensions
// belong together follows from the tensors that the operations of the group
// hand to each other. A reduction over the dimension accumulates, and what
// needs its result comes after the loop. An exponential of x - max(x) may stay
// in it all the same: against the maximum so far, by whose changes the sums of
// exponentials are rescaled.
//
// Where views flatten dimensions or take them apart, one operation's loop runs
// over what is a component of another one's: heads, and heads x width. Both are
// cut into the same number of tiles, each a multiple of the other.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELEVELS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELEVELS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace mlir::spyre_graph {

using OpGroup = llvm::SetVector<Operation *>;

/// One loop over tiles: which loop dimension of each operation it cuts.
/// Operations of the group that are not in the map do not depend on the loop.
struct TileLevel {
  llvm::MapVector<Operation *, unsigned> loopDims;
  /// The dimension that is cut of their operands, where one is.
  llvm::DenseMap<OpOperand *, int64_t> tiledDims;
  /// Those that reduce the dimension.
  llvm::SetVector<Operation *> reduced;
  /// Exponentials -> the maximum, a reduction over the dimension, that they
  /// subtract.
  llvm::MapVector<Operation *, Operation *> shifts;
  /// Of the first operation that the level was asked for.
  int64_t extent = 0;
  /// Tiles start at multiples of this: whole sticks, and whole components.
  int64_t granularity = 1;
  /// The least extent that is cut, of a loop or a tensor's dimension; divides
  /// the others.
  int64_t leastExtent = 0;
  /// Extent of a tile, a multiple of `granularity`; the last may be smaller.
  int64_t tile = 0;
  /// Of the hint; tells the loops of one function apart.
  int64_t scope = 0;
  /// What the hint wants tiles to be a multiple of.
  int64_t multiple = 1;

  int64_t getNumTiles() const { return llvm::divideCeilSigned(extent, tile); }
  /// The part of `whole`, an extent that is cut, which is in a tile of `tile`.
  int64_t getPart(int64_t whole, int64_t tile) const {
    // The products of large extents do not fit 64 bits.
    int64_t common = std::gcd(whole, extent);
    return tile * (whole / common) / (extent / common);
  }
};

/// How an access depends on a loop dimension that is cut: the dimension of the
/// tensor that is cut with it, -1 if none, and what tiles of the loop must be a
/// multiple of.
struct TiledAccess {
  int64_t dim = -1, multiple = 1;
};

/// Nothing if tiles of the loop access no boxes of the tensor.
std::optional<TiledAccess> getTiledAccess(AffineMap map, unsigned loopDim,
                                          ArrayRef<int64_t> shape,
                                          ArrayRef<int64_t> extents);

/// A loop dimension of an operation that is to be cut.
struct TileSeed {
  SpyreOpInterface op;
  unsigned loopDim;
};

/// The level that cuts the loop dimensions `seeds`, followed through the
/// tensors that `group` hands on, or nothing if some operation cannot be cut
/// accordingly. `reason` then says which and why. With `mayUpdate` an operation
/// may write a part of another's result, of which its tiles are tiles then.
std::optional<TileLevel> getTileLevel(const OpGroup &group,
                                      ArrayRef<TileSeed> seeds,
                                      std::string &reason,
                                      bool mayUpdate = false);

/// The tensor dimension that each level cuts of an operand, or -1.
SmallVector<int64_t> getTiledDims(OpOperand &operand,
                                  ArrayRef<TileLevel> levels);

/// The extents of an operand's part that one tile of `tiles[i]` elements of
/// each level i accesses, and of an operation's loops.
SmallVector<int64_t> getTileShape(OpOperand &operand,
                                  ArrayRef<TileLevel> levels,
                                  ArrayRef<int64_t> tiles);
SmallVector<int64_t> getTileExtents(SpyreOpInterface op,
                                    ArrayRef<TileLevel> levels,
                                    ArrayRef<int64_t> tiles);

/// The same for the largest tiles.
SmallVector<int64_t> getTileShape(OpOperand &operand,
                                  ArrayRef<TileLevel> levels);
SmallVector<int64_t> getTileExtents(SpyreOpInterface op,
                                    ArrayRef<TileLevel> levels);

/// Whether a level cuts the operation, and whether one reduces along it.
bool isTiled(Operation *op, ArrayRef<TileLevel> levels);
bool isReduced(Operation *op, ArrayRef<TileLevel> levels);

/// From coordinates of a reduction's result to those of the maximum that was
/// subtracted in its operand `operand`, the result of `shift`; nothing if one
/// does not follow from the other.
std::optional<AffineMap> getRescaleMap(SpyreOpInterface reduction,
                                       unsigned operand,
                                       SpyreOpInterface shift);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELEVELS_H
