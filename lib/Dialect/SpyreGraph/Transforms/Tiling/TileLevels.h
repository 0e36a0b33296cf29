//===- TileLevels.h - Dimensions that a tile loop cuts ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A group of operations is tiled by cutting one loop dimension of each of them
// into tiles, and running the whole group once per tile. The tensors that the
// operations pass to each other determine which loop dimensions belong
// together. A reduction over the tiled dimension accumulates from tile to tile,
// and operations that need its result come after the loop. The exception is
// exp(x - max(x)): it can stay in the loop and subtract the maximum so far.
// When the maximum changes, the sums of exponentials are rescaled.
//
// If views flatten or split dimensions, the loop of one operation may be a
// component of the loop of another, for instance heads, and heads x width. Both
// are cut into the same number of tiles, whose sizes are multiples of each
// other.
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
  /// Per operand of these operations, its dimension that is cut, if any.
  llvm::DenseMap<OpOperand *, int64_t> tiledDims;
  /// The operations that reduce the dimension.
  llvm::SetVector<Operation *> reduced;
  /// From exponentials to the maximum that they subtract, which is a reduction
  /// over the dimension.
  llvm::MapVector<Operation *, Operation *> shifts;
  /// The extent of the loop from which the search began.
  int64_t extent = 0;
  /// Tiles start at multiples of this: whole sticks, and whole components.
  int64_t granularity = 1;
  /// The smallest extent that is cut, of a loop or of a tensor's dimension. It
  /// divides all others.
  int64_t leastExtent = 0;
  /// Extent of a tile, a multiple of `granularity`; the last may be smaller.
  int64_t tile = 0;
  /// The scope of the hint, which identifies the loop in its function.
  int64_t scope = 0;
  /// The hint's restriction: tiles must be a multiple of this.
  int64_t multiple = 1;
  /// The number of the symbol that says how large the extents are in a run, and
  /// its smallest size, of which there is at least one tile. Nothing if they do
  /// not vary.
  std::optional<unsigned> symbol;
  int64_t leastSize = 0;

  int64_t getNumTiles() const { return llvm::divideCeilSigned(extent, tile); }
  /// How many of the `whole` elements of a cut extent are in a tile of `tile`
  /// elements.
  int64_t getPart(int64_t whole, int64_t tile) const {
    // The products of large extents do not fit 64 bits.
    int64_t common = std::gcd(whole, extent);
    return tile * (whole / common) / (extent / common);
  }
};

/// How an access depends on a loop dimension that is cut: which dimension of
/// the tensor is cut with it (-1 if none), and a number of which tiles of the
/// loop must be a multiple.
struct TiledAccess {
  int64_t dim = -1, multiple = 1;
};

/// Nothing if a tile of the loop does not access a box of the tensor.
std::optional<TiledAccess> getTiledAccess(AffineMap map, unsigned loopDim,
                                          ArrayRef<int64_t> shape,
                                          ArrayRef<int64_t> extents);

/// A loop dimension of an operation that is to be cut.
struct TileSeed {
  SpyreOpInterface op;
  unsigned loopDim;
};

/// The level that cuts the loop dimensions `seeds`, and with them those of the
/// other operations in `group`. Nothing if some operation cannot be cut
/// accordingly; `reason` then says which one and why. With `mayUpdate`, an
/// operation may write a part of another one's result; its tiles are then tiles
/// of that result.
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

/// The map from coordinates of a reduction's result to those of the maximum
/// that `shift` subtracted, where operand `operand` of the reduction is the
/// result of `shift`. Nothing if the latter do not follow from the former.
std::optional<AffineMap> getRescaleMap(SpyreOpInterface reduction,
                                       unsigned operand,
                                       SpyreOpInterface shift);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELEVELS_H
