//===- FoldViews.h - Views and copies as parts of maps ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Erases operations whose results nothing uses: decomposition makes every
/// result of a composite, and training graphs save more than they read. Returns
/// how many device operations are gone.
int64_t eraseUnusedOps(func::FuncOp func);

struct ViewCounters {
  int64_t copiesFolded = 0, viewsFolded = 0, viewsMaterialized = 0;
};

/// Composes views, and copies that only rearrange for one user, into the index
/// maps of their users; what cannot be composed becomes a copy. Operations have
/// explicit maps.
ViewCounters foldViews(func::FuncOp func);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDVIEWS_H
