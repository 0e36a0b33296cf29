//===- FoldCasts.h - Conversions as part of their neighbours ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Lets operations read and write floating-point elements in the type that a
/// conversion beside them has: they compute in fp32 anyway. Widening is exact,
/// and narrowing rounds the same number, so the bits are the same. Returns how
/// many conversions are gone. Operations have explicit maps, and views have
/// been folded.
int64_t foldCasts(func::FuncOp func);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDCASTS_H
