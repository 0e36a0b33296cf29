// SPDX-License-Identifier: Apache-2.0
//===- Stage.cpp - What earlier passes must have done ---------------------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"

using namespace mlir;
using namespace mlir::spyre_graph;

LogicalResult spyre_graph::checkLayouts(Operation *op, TypeRange types) {
  for (Type type : types)
    if (isa<TensorType>(type) && !getLayout(type))
      return op->emitOpError() << "has a tensor without a layout, " << type
                               << "; run --spyre-propagate-layouts first";
  return success();
}

/// Fails at the first operation of the graph for which `check` does.
static LogicalResult
checkGraph(func::FuncOp function,
           function_ref<LogicalResult(Operation *)> check) {
  WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    return isa_and_nonnull<SpyreGraphDialect>(op->getDialect()) &&
                   failed(check(op))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult spyre_graph::checkLayouts(func::FuncOp function) {
  return checkGraph(function, [](Operation *op) {
    return success(succeeded(checkLayouts(op, op->getOperandTypes())) &&
                   succeeded(checkLayouts(op, op->getResultTypes())));
  });
}

LogicalResult spyre_graph::checkBufferized(func::FuncOp function) {
  return checkGraph(function, [](Operation *op) -> LogicalResult {
    if (llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
      return success();
    return op->emitOpError("is on tensors; run --spyre-bufferize first");
  });
}

LogicalResult spyre_graph::checkOnTensors(func::FuncOp function,
                                          StringRef pass) {
  return checkGraph(function, [&](Operation *op) -> LogicalResult {
    if (llvm::none_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
      return success();
    return op->emitOpError()
           << "is on buffers; run --" << pass << " before --spyre-bufferize";
  });
}
