//===- UsedSizes.h - Arguments of which a part counts -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// An array that has room for its largest sizes is as large in every run, and a
// function with symbols (SizeSymbols.h) uses what lies below some sizes only.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_USEDSIZES_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_USEDSIZES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::spyre_graph {

/// Name of the argument attribute that says, in the function's symbols, below
/// which coordinates it is used. Without it, and without
/// `spyre_graph.size_map`, all of it is. (SG-SYMBOL-C3)
inline constexpr llvm::StringLiteral kUsedMapAttrName = "spyre_graph.used_map";

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_USEDSIZES_H
