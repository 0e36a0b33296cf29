//===- InPlace.h - Results in the memory of operands ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Whether an operation on buffers may write its result where the buffer of
/// input `operand` lies: it writes each element once, after it has read that
/// element and before nothing else reads it, on the same core. That is so if
/// it combines nothing, and every access to the two buffers is through one map
/// that takes each iteration to an element of its own.
bool canWriteInPlace(SpyreOpInterface op, unsigned operand);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_INPLACE_H
