// SPDX-License-Identifier: Apache-2.0
//===- LoaderInline.cpp - Helper functions in place of their calls --------===//

#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace spyre::runtime;

bool spyre::runtime::isInlined(func::CallOp call, bool isInKernel) {
  return isInKernel || call.getNumResults() != 0 ||
         llvm::any_of(call.getOperandTypes(),
                      [](Type type) { return isa<ShapedType>(type); });
}

LogicalResult spyre::runtime::inlineHelpers(func::FuncOp function,
                                            const SymbolTable &symbols,
                                            int64_t &numOperations) {
  // Helpers that call helpers several times grow exponentially.
  constexpr int64_t kMaxOperations = int64_t(1) << 20;
  bool isKernel = function->hasAttr(ktdp::kGridAttr);
  SmallVector<func::CallOp> calls;
  function.walk([&](func::CallOp call) { calls.push_back(call); });
  while (!calls.empty()) {
    func::CallOp call = calls.pop_back_val();
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (callee->hasAttr(ktdp::kGridAttr) || !isInlined(call, isKernel))
      continue;
    if (!callee.getBody().hasOneBlock())
      return callee->emitError(
          "functions of more than one block are not supported");
    mlir::Block &body = callee.getBody().front();
    IRMapping values;
    values.map(body.getArguments(), call.getOperands());
    OpBuilder builder(call);
    for (Operation &op : body.without_terminator())
      builder.clone(op, values)->walk([&](Operation *nested) {
        ++numOperations;
        if (auto further = dyn_cast<func::CallOp>(nested))
          calls.push_back(further);
      });
    if (numOperations > kMaxOperations)
      return call->emitError("helper functions in place of their calls make "
                             "more than ")
             << kMaxOperations << " operations";
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(values.lookupOrDefault(value));
    call.erase();
  }
  return success();
}
