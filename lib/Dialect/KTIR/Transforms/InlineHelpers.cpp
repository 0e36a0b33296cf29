// SPDX-License-Identifier: Apache-2.0
//===- InlineHelpers.cpp - Helper functions in place of their calls -------===//
//
// Upstream's inliner does the work, not its pass: that one asks each dialect
// whether an operation may move, and affine's says no inside scf loops, where
// KTIR has it.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/KTIR/Transforms/InlineHelpers.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/Transforms/Passes.h"

#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/SetVector.h"

#include <functional>

namespace mlir::ktdp {
#define GEN_PASS_DEF_KTDPINLINEHELPERS
#include "Spyre/Dialect/KTIR/Transforms/Passes.h.inc"
} // namespace mlir::ktdp

using namespace mlir;
using namespace mlir::ktdp;

static bool isHelperCall(func::CallOp call, bool isInKernel) {
  return isInKernel || call.getNumResults() != 0 ||
         llvm::any_of(call.getOperandTypes(),
                      [](Type type) { return isa<ShapedType>(type); });
}

FailureOr<CalledFunctions> ktdp::collectCalledFunctions(ModuleOp module,
                                                        func::FuncOp entry) {
  CalledFunctions found;
  SymbolTable symbols(module);
  llvm::SetVector<func::FuncOp> functions, helpers;
  // Alone, as a helper of a sequence, and of a kernel.
  enum State { Unseen, Open, Done };
  llvm::DenseMap<std::pair<Operation *, int>, State> state;
  std::function<LogicalResult(func::FuncOp, bool, bool)> visit =
      [&](func::FuncOp f, bool isHelper, bool isInKernel) -> LogicalResult {
    isInKernel |= f->hasAttr(kGridAttr);
    auto key = std::make_pair(f.getOperation(), isHelper + isInKernel);
    if (state[key] == Done)
      return success();
    // KTDP-INLINE-C1
    if (state[key] == Open)
      return f->emitError("recursive calls are not supported");
    state[key] = Open;
    WalkResult result = f.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      // KTDP-INLINE-C2
      if (!callee || callee.isExternal()) {
        call->emitError("called function @")
            << call.getCallee() << " has no body";
        return WalkResult::interrupt();
      }
      return WalkResult(
          visit(callee, isHelperCall(call, isInKernel), isInKernel));
    });
    if (result.wasInterrupted())
      return failure();
    state[key] = Done;
    (isHelper ? helpers : functions).insert(f);
    return success();
  };
  if (failed(visit(entry, false, false)))
    return failure();
  return CalledFunctions{functions.takeVector(), helpers.takeVector()};
}

namespace {
/// Counts what it inlines and remembers the calls in it. Whatever KTIR has may
/// stand wherever a call may.
class HelperInliner : public InlinerInterface {
public:
  using InlinerInterface::InlinerInterface;

  bool isLegalToInline(Operation *, Operation *, bool) const override {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const override {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool,
                       IRMapping &) const override {
    return true;
  }
  void handleTerminator(Operation *op, ValueRange results) const override {
    for (auto [result, value] : llvm::zip_equal(results, op->getOperands()))
      result.replaceAllUsesWith(value);
  }
  void processInlinedBlocks(
      iterator_range<Region::iterator> inlinedBlocks) override {
    for (Block &block : inlinedBlocks)
      for (Operation &own : block.without_terminator())
        own.walk([&](Operation *op) {
          ++numOperations;
          if (auto call = dyn_cast<func::CallOp>(op))
            calls.push_back(call);
        });
  }

  int64_t numOperations = 0;
  SmallVector<func::CallOp> calls;
};
} // namespace

LogicalResult ktdp::inlineHelpers(ModuleOp module,
                                  ArrayRef<func::FuncOp> functions) {
  // The inliner asks the dialect of the function around a call.
  if (!module.getContext()
           ->getLoadedDialect<func::FuncDialect>()
           ->getRegisteredInterface<DialectInlinerInterface>())
    return module.emitError("the inliner extension of func is not registered");
  // Helpers that call helpers several times grow exponentially.
  constexpr int64_t kMaxOperations = int64_t(1) << 20;
  SymbolTable symbols(module);
  HelperInliner inliner(module.getContext());
  auto clone = [](OpBuilder &, Region *source, Block *inlineBlock,
                  Block *postInsertBlock, IRMapping &mapper, bool) {
    source->cloneInto(inlineBlock->getParent(), postInsertBlock->getIterator(),
                      mapper);
  };
  for (func::FuncOp function : functions) {
    bool isKernel = function->hasAttr(kGridAttr);
    function.walk([&](func::CallOp call) { inliner.calls.push_back(call); });
    while (!inliner.calls.empty()) {
      func::CallOp call = inliner.calls.pop_back_val();
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (callee->hasAttr(kGridAttr) || !isHelperCall(call, isKernel))
        continue;
      // KTDP-INLINE-C3
      if (!callee.getBody().hasOneBlock())
        return callee->emitError(
            "functions of more than one block are not supported");
      // No location: a message names the place in the helper.
      if (failed(inlineRegion(inliner, clone, &callee.getBody(), call,
                              call.getOperands(), call.getResults())))
        return call->emitError("cannot be replaced by the function's body");
      // KTDP-INLINE-C4
      if (inliner.numOperations > kMaxOperations)
        return call->emitError("helper functions in place of their calls make "
                               "more than ")
               << kMaxOperations << " operations";
      call.erase();
    }
  }
  return success();
}

namespace {
struct InlineHelpersPass
    : public ktdp::impl::KTDPInlineHelpersBase<InlineHelpersPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<func::FuncDialect>();
    func::registerInlinerExtension(registry);
  }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::SetVector<func::FuncOp> functions, helpers;
    for (auto f : module.getOps<func::FuncOp>()) {
      auto uses = SymbolTable::getSymbolUses(f, module);
      if (f.isExternal() || (uses && !uses->empty()))
        continue;
      FailureOr<CalledFunctions> called = collectCalledFunctions(module, f);
      if (failed(called))
        return signalPassFailure();
      functions.insert_range(called->functions);
      helpers.insert_range(called->helpers);
    }
    if (failed(inlineHelpers(module, functions.getArrayRef())))
      return signalPassFailure();
    for (func::FuncOp helper : helpers)
      if (!functions.contains(helper))
        helper.erase();
  }
};
} // namespace
