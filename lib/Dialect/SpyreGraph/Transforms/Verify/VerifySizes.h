//===- VerifySizes.h - A plan at each size ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Part of --spyre-verify-plan; uses nothing of the planners on purpose.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYSIZES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYSIZES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// In what bindSizes() gives, an allocation's: the sizes of what it holds,
/// where these are not its shape. What an index may choose from lies in them.
inline constexpr StringLiteral kBoundContentsAttrName =
    "spyre_graph.bound_contents";

/// The plan of a function with symbols for one size of each: a function without
/// symbols, whose arguments, extents and chunks are those at these sizes.
/// Buffers keep the size that they have in the plan, and slices may be empty.
OwningOpRef<func::FuncOp> bindSizes(func::FuncOp function,
                                    ArrayRef<int64_t> sizes);

/// SG-PLAN-C13 for a function whose plan has been found right at the largest
/// sizes. With few sizes, `verify` checks the plan of each. With more, what
/// depends on them is proven for all at once.
LogicalResult
verifySizes(func::FuncOp function,
            function_ref<LogicalResult(func::FuncOp bound)> verify);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYSIZES_H
