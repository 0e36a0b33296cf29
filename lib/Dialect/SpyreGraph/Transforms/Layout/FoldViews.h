//===- FoldViews.h - Views and copies as parts of maps ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Erases operations whose results have no users: decomposition creates every
/// result of a composite, and training graphs save values that nothing reads.
/// Returns the number of device operations erased.
int64_t eraseUnusedOps(func::FuncOp func);

struct ViewCounters {
  int64_t copiesFolded = 0, viewsFolded = 0, viewsMaterialized = 0;
};

/// Composes views into the indexing maps of their users, and copies too if they
/// have one user and only rearrange elements. A view that cannot be composed
/// becomes a copy. Operations must have explicit maps.
ViewCounters foldViews(func::FuncOp func);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H
