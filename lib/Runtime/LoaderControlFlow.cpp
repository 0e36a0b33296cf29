// SPDX-License-Identifier: Apache-2.0
//===- LoaderControlFlow.cpp - Decoding loops, branches and calls ---------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace spyre::runtime;

LogicalResult FunctionLoader::makeTransfer(Operation *op, ValueRange from,
                                           ValueRange to, bool mayMove,
                                           Transfer &transfer) {
  for (auto [source, target] : llvm::zip_equal(from, to)) {
    if (failed(checkType(op, target.getType())))
      return failure();
    if (isScalar(target.getType())) {
      transfer.scalars.push_back({scalarSlot(source), scalarSlot(target)});
    } else if (isa<RankedTensorType>(target.getType())) {
      TensorUse moved = use(source, op);
      moved.dies &= mayMove;
      transfer.tensors.push_back({moved, tensorSlot(target)});
    } else {
      return op->emitError("a value of type ")
             << target.getType() << " cannot be carried by control flow";
    }
  }
  return success();
}

LogicalResult FunctionLoader::loadControlFlow(Operation *op) {
  if (auto forOp = dyn_cast<scf::ForOp>(op)) {
    auto &instr = add<ForInstr>(op);
    instr.lower = scalarSlot(forOp.getLowerBound());
    instr.upper = scalarSlot(forOp.getUpperBound());
    instr.step = scalarSlot(forOp.getStep());
    instr.induction = scalarSlot(forOp.getInductionVar());
    instr.isUnsigned = forOp.getUnsignedCmp();
    Operation *yield = forOp.getBody()->getTerminator();
    if (failed(makeTransfer(op, forOp.getInitArgs(), forOp.getRegionIterArgs(),
                            true, instr.enter)) ||
        failed(loadBlock(*forOp.getBody(), instr.body)) ||
        failed(makeTransfer(yield, yield->getOperands(),
                            forOp.getRegionIterArgs(), true, instr.next)))
      return failure();
    // The arguments are dead after the loop: their buffers are the results'.
    for (auto [arg, result] :
         llvm::zip_equal(forOp.getRegionIterArgs(), forOp.getResults())) {
      if (isScalar(arg.getType()))
        instr.leave.scalars.push_back({scalarSlot(arg), scalarSlot(result)});
      else
        instr.leave.tensors.push_back(
            {TensorUse{tensorSlot(arg), true}, tensorSlot(result)});
    }
    return success();
  }
  if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    auto &instr = add<IfInstr>(op);
    instr.condition = scalarSlot(ifOp.getCondition());
    auto branch = [&](Region &region, ::spyre::runtime::Block &into,
                      Transfer &results) -> LogicalResult {
      if (region.empty())
        return success();
      if (failed(loadBlock(region.front(), into)))
        return failure();
      Operation *yield = region.front().getTerminator();
      return makeTransfer(yield, yield->getOperands(), op->getResults(), true,
                          results);
    };
    if (failed(
            branch(ifOp.getThenRegion(), instr.thenBlock, instr.thenResults)) ||
        failed(
            branch(ifOp.getElseRegion(), instr.elseBlock, instr.elseResults)))
      return failure();
    return success();
  }
  if (auto whileOp = dyn_cast<scf::WhileOp>(op)) {
    auto &instr = add<WhileInstr>(op);
    scf::ConditionOp condition = whileOp.getConditionOp();
    Operation *yield = whileOp.getYieldOp();
    if (failed(makeTransfer(op, whileOp.getInits(),
                            whileOp.getBeforeArguments(), true, instr.enter)) ||
        failed(loadBlock(*whileOp.getBeforeBody(), instr.before)) ||
        failed(makeTransfer(condition, condition.getArgs(),
                            whileOp.getAfterArguments(), false,
                            instr.forward)) ||
        failed(makeTransfer(condition, condition.getArgs(), op->getResults(),
                            false, instr.results)) ||
        failed(loadBlock(*whileOp.getAfterBody(), instr.after)) ||
        failed(makeTransfer(yield, yield->getOperands(),
                            whileOp.getBeforeArguments(), true, instr.next)))
      return failure();
    instr.condition = scalarSlot(condition.getCondition());
    return success();
  }
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

LogicalResult FunctionLoader::loadCall(Operation *op) {
  auto call = cast<func::CallOp>(op);
  auto it = functions.find(call.getCallee());
  if (it == functions.end())
    return op->emitError("called function @")
           << call.getCallee() << " has no body";
  if (call.getNumResults() != 0)
    return op->emitError("calls with results are not supported");
  if (function.hasGrid)
    return op->emitError("a kernel (function with a grid) cannot call");
  function.hasCalls = true;
  auto &instr = add<CallInstr>(op);
  instr.callee = it->second;
  for (Value operand : call.getOperands()) {
    if (!isScalar(operand.getType()))
      return op->emitError("argument type is not supported: ")
             << operand.getType();
    instr.args.push_back(scalarSlot(operand));
  }
  return success();
}
