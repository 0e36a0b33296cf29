//===- Reshard.h - Other slices over the ring -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Two operations that divide a buffer in different ways can still share it in
// LX if its parts move from core to core between them.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/IR/Builders.h"

namespace mlir::spyre_graph {

/// Loops over a buffer that divide it into given slices: one loop per
/// dimension, then one for each group of consecutive cores that hold the same
/// slice.
struct SlicedLoops {
  SmallVector<int64_t> extents, splits, chunks, order;
  /// Extents and chunks at each size: constants where they do not vary.
  SmallVector<AffineExpr> extentsAt, chunksAt;
  /// Maps loop indices to coordinates of the buffer.
  AffineMap map;

  WorkDivisionAttr getDivision(MLIRContext *context) const;
  /// Adds loops that are not split, of these extents, before loop `position`.
  void insertWhole(size_t position, ArrayRef<int64_t> wholeExtents,
                   MLIRContext *context);
};

/// The loops of a slicing that covers a buffer, or nothing if more than
/// `maxCopies` cores hold the same slice.
std::optional<SlicedLoops>
getSlicedLoops(const Slicing &slicing, int64_t maxCopies, MLIRContext *context);

/// The number of cores that hold the same slice.
int64_t getNumCopies(const Slicing &slicing);

/// Seconds to move the parts of a buffer with `elementBytes` bytes per element
/// over the ring, from the first of the cores that hold each part to those that
/// need it.
double getRingSeconds(const Slicing &from, const Slicing &to,
                      double elementBytes, const ::spyre::DeviceSpec &spec);

/// Whether LX has room for what a core holds of a buffer before and after it
/// moves to other slices.
bool fitsLX(const Slicing &written, const Slicing &read, double elementBytes,
            const ::spyre::DeviceSpec &spec);

/// Whether each core can make for itself what other operations read on it of
/// the result: a copy of an argument, which cores load together.
bool isRepeatable(SpyreOpInterface op, const Target &target);

/// The operation that moves `source` into `target`, or null if no operation can
/// express these slicings.
SpyreOpInterface createReshard(OpBuilder &builder, Location loc, Value source,
                               const Slicing &from, Value target,
                               const Slicing &to);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H
