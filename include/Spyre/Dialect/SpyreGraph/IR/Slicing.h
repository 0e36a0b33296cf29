//===- Slicing.h - The part of a buffer that a core touches -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Under a work division each core runs a box of the iterations, which is a box
// of the coordinates of an operand too, if its map allows: then the core can
// hold its part in LX as a smaller buffer.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SLICING_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_SLICING_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// One dimension of the box of a buffer that a core touches: core c has slice
/// s = (c floordiv stride) mod split, which is the coordinates
/// [offset + s x chunk, offset + min((s + 1) x chunk, extent)).
struct SliceDim {
  int64_t stride, split, chunk, extent, offset;
  /// Chunk and extent as expressions of the function's symbols, where they
  /// vary: the numbers are then the largest. Else null.
  AffineExpr chunkAt = {}, extentAt = {};
  bool operator==(const SliceDim &other) const {
    return stride == other.stride && split == other.split &&
           chunk == other.chunk && extent == other.extent &&
           offset == other.offset && chunkAt == other.chunkAt &&
           extentAt == other.extentAt;
  }
};

/// The boxes that cores 0 to numCores - 1 touch; the others touch nothing.
struct Slicing {
  SmallVector<SliceDim, 4> dims;
  int64_t numCores;

  bool operator==(const Slicing &other) const {
    return numCores == other.numCores && dims == other.dims;
  }
  /// Largest number of coordinates of any core, per dimension.
  SmallVector<int64_t> getLocalShape() const;
  /// Whether the boxes of all cores together are the whole of `shape`.
  bool covers(ArrayRef<int64_t> shape) const;
  /// The parts of a buffer of this shape that cores hold for the access: all of
  /// each dimension that is not divided. Nothing if the access is to a part of
  /// a divided dimension.
  std::optional<Slicing> getHeld(ArrayRef<int64_t> shape) const;
  /// Whether the parts are larger or smaller from run to run.
  bool varies() const;
};

/// Whether each coordinate is a loop dimension of its own or a constant:
/// SuperDSC has no other accesses to LX.
bool isInLoopDims(AffineMap map);

/// The slicing of an operand with this map under a division, or nothing if the
/// coordinates of a core are no box. Each coordinate is a loop dimension, or
/// several that count in mixed radix, as in heads x width + lane, plus a
/// constant. Several of these may be divided if each core has one value of the
/// outer ones, and the cores go on in the order of the coordinate. A loop
/// dimension may be taken apart, too, as in d floordiv 64 and d mod 64, if the
/// chunks of the division are multiples of the divisor, or divide it: 16 slices
/// of 32 divide 512 rows of d into 8 values of d floordiv 64 and 2 halves of d
/// mod 64. Within its box, a core then finds its local iteration at the
/// coordinates that the map says. Windows that overlap, as i + k, are not
/// divided, but something else must be, if there are several cores.
/// `coreStrides` are those of WorkDivisionAttr::getCoreStrides(). `extentMap`
/// and `chunkMap` say extents and chunks at each size, or are null. A loop that
/// varies is the outermost of those that a coordinate counts by.
std::optional<Slicing>
getSlicing(AffineMap map, ArrayRef<int64_t> extents, ArrayRef<int64_t> splits,
           ArrayRef<int64_t> chunks, ArrayRef<int64_t> coreStrides,
           AffineMap extentMap = {}, AffineMap chunkMap = {});
/// The slicing in which the cores access an operand of a divided operation.
std::optional<Slicing> getSlicing(SpyreOpInterface op, unsigned operand);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SLICING_H
