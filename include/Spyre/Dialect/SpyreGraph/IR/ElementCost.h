// SPDX-License-Identifier: Apache-2.0
//===- ElementCost.h - What an iteration costs the vector unit --*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_ELEMENTCOST_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_ELEMENTCOST_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// An element as kernels have it in memory, in the type that bodies compute in.
Value toComputeType(OpBuilder &b, Location loc, Value value, Type elementType);
/// Converts a result of a body to the type in which kernels store it.
Value toDeviceType(OpBuilder &b, Location loc, Value value, Type elementType);

/// Stages of the network that sorts `count` elements, of which runs of `run`
/// are in order (KernelSort.cpp): in each, every element meets one other.
int64_t getNumSortStages(int64_t count, int64_t run);
/// LX bytes of the keys of so many elements before and after a stage: a power
/// of two of them, of 64 bits each.
int64_t getSortBytes(int64_t count);

/// SFU element operations of one iteration: what the timing engine counts in
/// the kernel's body, which is made of the same scalar operations.
double getElementCost(SpyreOpInterface op, const ::spyre::DeviceSpec &spec);

/// What the matrix unit multiplies in a contraction.
::spyre::MacFormat getMacFormat(SpyreOpInterface op);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_ELEMENTCOST_H
