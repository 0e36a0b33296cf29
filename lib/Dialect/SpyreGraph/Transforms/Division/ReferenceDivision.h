//===- ReferenceDivision.h - The reference's work division ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_REFERENCEDIVISION_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_REFERENCEDIVISION_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// What the reference decides for one operation (spec/passes.md, "Work
/// division").
struct ReferenceDivision {
  /// Number of slices per loop dimension. At most one reduction dimension has
  /// more than one.
  SmallVector<int64_t> splits;
  /// Iterations per slice; of a stick dimension, whole sticks.
  SmallVector<int64_t> chunks;
  /// An operand whose span no split brings below the limit, and that span in
  /// bytes.
  std::optional<std::pair<unsigned, int64_t>> spanTooLarge;
  /// Whether pass 1 would split more than one reduction dimension.
  bool splitsTwoReductions = false;
};

/// Divides one operation as the reference compiler does. Where the
/// specification is not complete, this code assumes: a dimension that cannot be
/// cut (irregular lanes) counts as one of size 1; of dimensions of equal size
/// the outer one comes first; dimensions of extent 1 of a matmul are not row,
/// batch or reduction dimensions.
ReferenceDivision divideAsReference(SpyreOpInterface op, int64_t cores,
                                    const ::spyre::DeviceSpec &spec);

/// Span of an operand, in bytes on the device, if cores have slices of `chunks`
/// iterations. It is that of the outermost device dimension of which a core
/// accesses more than one index.
int64_t getSpanInBytes(SpyreOpInterface op, unsigned operand,
                       ArrayRef<int64_t> chunks);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_REFERENCEDIVISION_H
