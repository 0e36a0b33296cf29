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

/// On a function argument: for each dimension an array of `{name, size}`
/// dictionaries, outermost first, whose sizes multiply to its extent.
constexpr llvm::StringLiteral kDimNamesAttrName = "spyre_graph.dim_names";

/// On an operation, from the user: an array of dictionaries, outermost scope
/// first, `{scope, dim, tiles}` or `{dim, work_div}`. `scope` numbers the
/// `with` block.
constexpr llvm::StringLiteral kHintsAttrName = "spyre_graph.hints";

/// On an operation, with names resolved: an array of i64 arrays [scope, loop
/// dimension or -1, tiles], outermost first. Sizes of tiles must be a multiple
/// of a fourth number, if there is one. An empty array forbids tiles.
constexpr llvm::StringLiteral kTileHintsAttrName = "spyre_graph.tile_hints";

/// On an operation in tile loops: the hints that lead to the same tiles.
constexpr llvm::StringLiteral kTilingAttrName = "spyre_graph.tiling";

/// On an operation: the layout that its result must get.
constexpr llvm::StringLiteral kLayoutHintAttrName = "spyre_graph.layout_hint";

/// On an operation, with names resolved: slices per loop dimension.
constexpr llvm::StringLiteral kWorkDivisionHintAttrName =
    "spyre_graph.work_division_hint";

/// On an operation: its number in the graph, by which a file of decisions finds
/// it after passes have changed it.
constexpr llvm::StringLiteral kNumberAttrName = "spyre_graph.number";

/// On a function: a text that identifies its graph.
constexpr llvm::StringLiteral kGraphAttrName = "spyre_graph.graph";

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_HINTS_H
