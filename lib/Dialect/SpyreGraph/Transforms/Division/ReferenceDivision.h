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
  /// Per loop dimension; one of a reduction dimension may be more than 1.
  SmallVector<int64_t> splits;
  /// Iterations per slice: whole sticks of stick dimensions.
  SmallVector<int64_t> chunks;
  /// The span that no split brings below the limit, and whose operand it is.
  std::optional<std::pair<unsigned, int64_t>> spanTooLarge;
  /// Pass 1 would split more than one reduction dimension.
  bool splitsTwoReductions = false;
};

/// The readings taken where the specification leaves room: sizes of dimensions
/// that two cores cannot cut at all (irregular lanes) count as one; of equal
/// sizes the outer loop comes first; a matmul's dimensions of extent 1 do not
/// count as row, batch or reduction dimensions.
ReferenceDivision divideAsReference(SpyreOpInterface op, int64_t cores,
                                    const ::spyre::DeviceSpec &spec = {});

/// Span of an operand in bytes for cores with slices of `chunks` iterations:
/// from its outermost device dimension of which a core touches more than one
/// index.
int64_t getSpanInBytes(SpyreOpInterface op, unsigned operand,
                       ArrayRef<int64_t> chunks);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_REFERENCEDIVISION_H
