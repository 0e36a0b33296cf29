//===- Hints.h - Attributes by which users guide planning -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Discardable attributes: a program without them means the same.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_HINTS_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_HINTS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::spyre_graph {

/// Of a function argument: for each dimension an array of `{name, size}`
/// dictionaries, outermost first, whose sizes multiply to its extent.
constexpr llvm::StringLiteral kDimNamesAttrName = "spyre_graph.dim_names";

/// Of an operation, from the user: an array of dictionaries, outermost scope
/// first, `{scope, dim, tiles}` or `{dim, work_div}`. `scope` numbers the
/// `with` block.
constexpr llvm::StringLiteral kHintsAttrName = "spyre_graph.hints";

/// Of an operation, with names resolved: an array of i64 arrays [scope, loop
/// dimension or -1, tiles], outermost first.
constexpr llvm::StringLiteral kTileHintsAttrName = "spyre_graph.tile_hints";

/// Of an operation, with names resolved: slices per loop dimension.
constexpr llvm::StringLiteral kWorkDivisionHintAttrName =
    "spyre_graph.work_division_hint";

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_HINTS_H
