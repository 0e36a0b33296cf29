//===- FoldCasts.h - Conversions as part of their neighbours ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Removes conversions between floating-point types whose neighbours can read
/// or write the other type themselves. Operations compute in fp32 in any case:
/// widening is exact, and narrowing rounds the same number, so the bits stay
/// the same. Operations must have explicit maps, and views must have been
/// folded. Returns the number of conversions removed.
int64_t foldCasts(func::FuncOp func);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H
