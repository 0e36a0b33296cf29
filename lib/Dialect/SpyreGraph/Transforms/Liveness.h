//===- Liveness.h - Lifetimes of allocated buffers --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_LIVENESS_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_LIVENESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::spyre_graph {

/// An allocation and the closed interval of program points at which it is
/// used. Program points count operations in textual order; a use inside a loop
/// that does not contain the allocation lasts for the whole loop.
struct BufferLifetime {
  memref::AllocOp alloc;
  int64_t first, last;
  /// Operations that use the buffer, in textual order, each once.
  SmallVector<Operation *, 4> users;
};

/// Lifetimes of all allocations of a function that have users, ordered by
/// their first use. An allocation without users never holds anything.
std::vector<BufferLifetime> getBufferLifetimes(func::FuncOp func);

/// First-fit allocation in a linear memory. Requests must come in order of
/// ascending `first`.
class FirstFit {
public:
  /// `capacity` in bytes; negative means unlimited.
  explicit FirstFit(int64_t capacity) : capacity(capacity) {}

  /// The lowest 128-byte aligned offset at which `sizeInBytes` are free during
  /// [first, last], or nothing if there is no room.
  std::optional<int64_t> place(int64_t sizeInBytes, int64_t first,
                               int64_t last);

  /// Highest byte ever used.
  int64_t getHighWater() const { return highWater; }

private:
  struct Block {
    int64_t offset, end, last;
  };
  int64_t capacity;
  int64_t highWater = 0;
  /// Live blocks by ascending offset.
  std::vector<Block> blocks;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_LIVENESS_H
