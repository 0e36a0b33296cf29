//===- Liveness.h - Lifetimes of allocated buffers --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LIVENESS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LIVENESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::spyre_graph {

/// An allocation and the closed interval of program points at which it is
/// used. Program points count operations in textual order; a use inside a loop
/// that does not contain the allocation lasts for the whole loop.
struct BufferLifetime {
  memref::AllocOp alloc;
  int64_t first, last;
  /// Operations that use the buffer or a tile of it, in textual order, each
  /// once.
  SmallVector<Operation *, 4> users;
};

/// Lifetimes of all allocations of a function that have users, ordered by
/// their first use. An allocation without users never holds anything.
std::vector<BufferLifetime> getBufferLifetimes(func::FuncOp func);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LIVENESS_H
