//===- Reshard.h - Other slices over the ring -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Operations whose divisions disagree on a buffer can share it in LX if its
// parts move from core to core in between.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "mlir/IR/Builders.h"

namespace mlir::spyre_graph {

/// Loops over a buffer that divide it into given slices: one per dimension,
/// then one for each run of cores that hold the same slice.
struct SlicedLoops {
  SmallVector<int64_t> extents, splits, chunks, order;
  /// From loops to coordinates.
  AffineMap map;

  WorkDivisionAttr getDivision(MLIRContext *context) const;
};

/// The loops of a slicing that covers a buffer. `maxCopies`: cores that may
/// hold one slice; nothing if there are more.
std::optional<SlicedLoops>
getSlicedLoops(const Slicing &slicing, int64_t maxCopies, MLIRContext *context);

/// Cores that hold one slice.
int64_t getNumCopies(const Slicing &slicing);

/// Time to move the parts of a buffer with `elementBytes` per element, from the
/// cores that hold them, each one part, to those that need them.
double getRingSeconds(const Slicing &from, const Slicing &to,
                      double elementBytes, const ::spyre::DeviceSpec &spec);

/// The operation that moves `source` into `target`, or null if these slicings
/// cannot be said.
SpyreOpInterface createReshard(OpBuilder &builder, Location loc, Value source,
                               const Slicing &from, Value target,
                               const Slicing &to);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_RESHARD_H
