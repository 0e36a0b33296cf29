//===- Bufferize.cpp - Tensors into buffers ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREBUFFERIZE
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class BufferizePass
    : public spyre_graph::impl::SpyreBufferizeBase<BufferizePass> {
public:
  using SpyreBufferizeBase::SpyreBufferizeBase;

  void runOnOperation() override {
    if (cores < 1 || cores > 32) {
      getOperation().emitError()
          << "expected 1 to 32 cores, found " << cores.getValue();
      return signalPassFailure();
    }
    if (failed(checkLayouts()) || failed(bufferize()) ||
        failed(turnResultsIntoParameters()))
      return signalPassFailure();
  }

private:
  /// SG-BUFFERIZE-C1
  LogicalResult checkLayouts() {
    WalkResult result = getOperation().walk([](Operation *op) {
      auto check = [&](TypeRange types) {
        for (Type type : types)
          if (isa<TensorType>(type) && !getLayout(type)) {
            op->emitOpError() << "has a tensor without a layout, " << type
                              << "; run --spyre-propagate-layouts first";
            return false;
          }
        return true;
      };
      auto func = dyn_cast<func::FuncOp>(op);
      bool valid = func ? check(func.getArgumentTypes()) &&
                              check(func.getResultTypes())
                        : check(op->getResultTypes());
      return valid ? WalkResult::advance() : WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult bufferize() {
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::IdentityLayoutMap);
    options.unknownTypeConverterFn =
        [](TensorType type, Attribute memorySpace,
           const bufferization::BufferizationOptions &) {
          return bufferization::getMemRefTypeWithStaticIdentityLayout(
              type, memorySpace);
        };
    options.defaultMemorySpaceFn =
        [](TensorType type) -> std::optional<Attribute> {
      return cast<RankedTensorType>(type).getEncoding();
    };
    // Placement decides alignment.
    options.bufferAlignment = 0;
    options.memCpyFn = [this](OpBuilder &builder, Location loc, Value from,
                              Value to) {
      return createCopy(builder, loc, from, to);
    };
    bufferization::BufferizationState state;
    return bufferization::runOneShotModuleBufferize(getOperation(), options,
                                                    state);
  }

  LogicalResult turnResultsIntoParameters() {
    SmallVector<std::pair<func::FuncOp, unsigned>> outParameters;
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      unsigned number = 0;
      for (unsigned result = 0; result < func.getNumResults(); ++result) {
        if (!isa<MemRefType>(func.getResultTypes()[result]))
          continue;
        StringRef nameAttr = SpyreGraphDialect::getNameAttrName();
        if (!func.getResultAttr(result, nameAttr))
          func.setResultAttr(result, nameAttr,
                             StringAttr::get(&getContext(),
                                             "out" + Twine(number)));
        ++number;
      }
    }
    bufferization::BufferResultsToOutParamsOpts options;
    options.hoistStaticAllocs = true;
    options.modifyPublicFunctions = true;
    options.memCpyFn = [this](OpBuilder &builder, Location loc, Value from,
                              Value to) {
      return createCopy(builder, loc, from, to);
    };
    return bufferization::promoteBufferResultsToOutParams(getOperation(),
                                                          options);
  }

  /// Copies a buffer by a device operation.
  LogicalResult createCopy(OpBuilder &builder, Location loc, Value from,
                           Value to) {
    if (from == to)
      return success();
    auto type = cast<MemRefType>(to.getType());
    AffineMap map =
        AffineMap::getMultiDimIdentityMap(type.getRank(), &getContext());
    OperationState state(loc, IdentityOp::getOperationName());
    state.addOperands({from, to});
    state.addAttribute("maps", builder.getAffineMapArrayAttr({map, map}));
    state.addAttribute("extents",
                       builder.getDenseI64ArrayAttr(type.getShape()));
    auto copy = cast<SpyreOpInterface>(builder.create(state));
    copy.setWorkDivision(chooseWorkDivision(copy, cores));
    ++numCopies;
    if (LayoutAttrInterface layout = getLayout(type))
      numCopiedBytes += layout.getSizeInBytes(type.getShape());
    return success();
  }
};

} // namespace
