//===- BufferizableOpInterfaceImpl.cpp - Bufferization of ops ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/Transforms/BufferizableOpInterfaceImpl.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/InitAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

bool isElementwise(SpyreOpInterface op, ArrayRef<OpOperand *> operands) {
  if (op.getCombiner() != Combiner::None || op.getIndirectAccess())
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  // Each iteration writes an element of its own.
  for (auto [dim, extent] : llvm::enumerate(op.getLoopExtents()))
    if (extent > 1 && !maps.back().isFunctionOfDim(dim))
      return false;
  return llvm::all_of(operands, [&](OpOperand *operand) {
    return maps[operand->getOperandNumber()] == maps.back();
  });
}

LogicalResult bufferizeOp(Operation *operation, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) {
  if (operation->getNumResults() == 0)
    return success();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(operation);
  SmallVector<Value> buffers;
  for (Value operand : operation->getOperands()) {
    FailureOr<Value> buffer =
        bufferization::getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  // Tensor inputs change the default loops of an op no more than buffers do,
  // so the attributes, absent maps included, stay as they are.
  mlir::clone(rewriter, operation, TypeRange(), buffers);
  bufferization::replaceOpWithBufferizedValues(rewriter, operation,
                                               buffers.back());
  return success();
}

/// The model of all operations: one of each would be compiled a hundred times.
struct DeviceOpModel
    : bufferization::DstBufferizableOpInterfaceExternalModel<DeviceOpModel,
                                                             SpyreOpInterface> {
  bool bufferizesToMemoryRead(Operation *operation, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    auto op = cast<SpyreOpInterface>(operation);
    // Upstream compares each read of a buffer with each write to it, and does
    // so for each operand of the buffer. If every piece of a concatenation
    // counted as a read, the time would grow with the cube of their number.
    return !op.isDpsInit(&operand) ||
           !(overwritesInit(op) || canAlwaysUpdateInit(op));
  }

  bool bufferizesToElementwiseAccess(Operation *operation,
                                     const bufferization::AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    return isElementwise(cast<SpyreOpInterface>(operation), operands);
  }

  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    return bufferizeOp(operation, rewriter, options, state);
  }
};

} // namespace

void spyre_graph::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, SpyreGraphDialect *) {
    // getRegisteredOperationsByDialect() does not find all of a dialect.
    for (RegisteredOperationName name : context->getRegisteredOperations())
      if (name.hasInterface<SpyreOpInterface>())
        name.attachInterface<DeviceOpModel>();
  });
  registry.insert<bufferization::BufferizationDialect>();
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  // By which results find the allocation that their buffer came from.
  memref::registerAllocationOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
}
