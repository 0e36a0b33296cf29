//===- Builders.h - Operations that several passes make ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_BUILDERS_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_BUILDERS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Makes a device operation whose class only its name tells, as the builder of
/// the class does: with the type of a tensor `init` as the result's.
Operation *createDeviceOp(OpBuilder &builder, Location loc, StringRef name,
                          ValueRange inputs, Value init,
                          ArrayRef<NamedAttribute> attributes = {});

/// Makes the operation `name`, an identity or a change of stick, that copies
/// `from`, read through `fromMap`, to `to`, written through `toMap`: tensors,
/// of which it returns the new contents of `to`, or buffers. `extentMap` says
/// what the extents are where they vary.
SpyreOpInterface createCopyOp(OpBuilder &builder, Location loc, StringRef name,
                              Value from, Value to, AffineMap fromMap,
                              AffineMap toMap, ArrayRef<int64_t> extents,
                              AffineMap extentMap = {});
/// Copies all elements of a value to another one of the same shape and sizes.
SpyreOpInterface createCopyOp(OpBuilder &builder, Location loc, Value from,
                              Value to);

/// The layout of dimensions in order, `stickDim` last; -1: one element per
/// stick.
LayoutAttr getStickLayout(Type elementType, int64_t rank, int64_t stickDim);

/// Lets the indices of an operation with getIndirectAccess() select in
/// dimension `dim` of what it accesses. The maps are the caller's business.
void setIndirectDim(SpyreOpInterface op, int64_t dim);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_BUILDERS_H
