//===- MemorySchedule.h - Operations in an order that needs less -*- C++
//-*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"

namespace mlir::spyre_graph {

/// The operations of a block but its terminator in an order that keeps every
/// dependency through buffers and values, and in which, step by step, the
/// operation is next that leaves the fewest bytes live. `sizeOf` gives the
/// bytes of a buffer, 0 for one that does not count. Of equals the first in the
/// present order comes first; only operations within `window` of those that are
/// ready are compared, so that the time is linear.
SmallVector<Operation *> scheduleForMemory(Block &block,
                                           function_ref<int64_t(Value)> sizeOf,
                                           unsigned window = 32);

/// Puts the operations of a block, its terminator aside, into this order.
void reorder(Block &block, ArrayRef<Operation *> order);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_MEMORYSCHEDULE_H
