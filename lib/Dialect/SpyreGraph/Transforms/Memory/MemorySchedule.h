//===- MemorySchedule.h - Order of operations for memory --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"

namespace mlir::spyre_graph {

/// Schedules the operations of a block, without its terminator, so that fewer
/// bytes are live. Dependencies through buffers and values are kept. At each
/// step the operation comes next that leaves the fewest bytes live; among equal
/// ones, the first in the present order. `sizeOf` gives the bytes of a buffer,
/// 0 for one that does not count. Only the first `window` operations that are
/// ready are compared, so that the time is linear.
SmallVector<Operation *> scheduleForMemory(Block &block,
                                           function_ref<int64_t(Value)> sizeOf,
                                           unsigned window = 32);

/// Puts the operations of a block, without its terminator, into this order.
void reorder(Block &block, ArrayRef<Operation *> order);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H
