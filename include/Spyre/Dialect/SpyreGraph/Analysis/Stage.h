// SPDX-License-Identifier: Apache-2.0
//===- Stage.h - What earlier passes must have done -------------*- C++ -*-===//
//
// Passes that are given a function too early would find nothing to do in it,
// and say nothing. These checks say which pass to run first.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STAGE_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STAGE_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Fails with an error on `op` if one of the types is a tensor without a
/// layout.
LogicalResult checkLayouts(Operation *op, TypeRange types);

/// Fails with an error at the first operation of a graph that is on a tensor
/// without a layout.
LogicalResult checkLayouts(func::FuncOp function);

/// Fails with an error at the first operation of a graph that is on tensors.
LogicalResult checkBufferized(func::FuncOp function);

/// Fails with an error at the first operation of a graph that is on buffers,
/// which is too late for `pass`.
LogicalResult checkOnTensors(func::FuncOp function, StringRef pass);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_STAGE_H
