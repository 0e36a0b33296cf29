//===- InPlace.h - Results in the memory of operands ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Whether an operation on buffers may write its result into the buffer of
/// input `operand`. It may if each core writes an element only after it has
/// read that element for the last time. This holds if the operation reduces
/// nothing, and accesses both buffers through the same map, which takes each
/// iteration to a different element.
bool canWriteInPlace(SpyreOpInterface op, unsigned operand);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H
