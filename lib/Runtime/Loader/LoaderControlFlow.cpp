// SPDX-License-Identifier: Apache-2.0
//===- LoaderControlFlow.cpp - Decoding loops, branches and calls ---------===//

#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
    instr.keptTiles = keptTiles.lookup(op);
    // The arguments are dead after the loop: their buffers are the results'.
    for (auto [arg, result] :
         llvm::zip_equal(forOp.getRegionIterArgs(), forOp.getResults())) {
      if (isScalar(arg.getType()))
        instr.leave.scalars.push_back({scalarSlot(arg), scalarSlot(result)});
      else
        instr.leave.tensors.push_back(
            {TensorUse{tensorSlot(arg), true}, tensorSlot(result)});
    }
    findRepeatedBody(instr);
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
  if (isa<scf::ParallelOp>(op))
    return loadParallel(op);
  if (isa<scf::ForallOp>(op))
    return loadForall(op);
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

LogicalResult FunctionLoader::loadParallel(Operation *op) {
  auto parallel = cast<scf::ParallelOp>(op);
  auto &instr = add<ParallelInstr>(op);
  for (auto [lower, upper, step, induction] :
       llvm::zip_equal(parallel.getLowerBound(), parallel.getUpperBound(),
                       parallel.getStep(), parallel.getInductionVars())) {
    instr.lower.push_back(scalarSlot(lower));
    instr.upper.push_back(scalarSlot(upper));
    instr.step.push_back(scalarSlot(step));
    instr.induction.push_back(scalarSlot(induction));
  }
  if (failed(loadBlock(*parallel.getBody(), instr.body)))
    return failure();
  auto reduce = cast<scf::ReduceOp>(parallel.getBody()->getTerminator());
  // Combiners read values of the body: nothing of them moves.
  for (auto [index, region] : llvm::enumerate(reduce.getReductions())) {
    mlir::Block &block = region.front();
    ParallelInstr::Reduction &r = instr.reductions.emplace_back();
    Value init = parallel.getInitVals()[index];
    Value result = op->getResult(index);
    Operation *yield = block.getTerminator();
    if (failed(makeTransfer(op, init, result, false, r.enter)) ||
        failed(makeTransfer(reduce, {result, reduce.getOperands()[index]},
                            block.getArguments(), false, r.operands)) ||
        failed(loadBlock(block, r.combiner)) ||
        failed(
            makeTransfer(yield, yield->getOperands(), result, false, r.leave)))
      return failure();
  }
  return success();
}

LogicalResult FunctionLoader::loadForall(Operation *op) {
  auto forall = cast<scf::ForallOp>(op);
  auto &instr = add<ForallInstr>(op);
  for (OpFoldResult v : forall.getMixedLowerBound())
    instr.lower.push_back(sizeOf(v));
  for (OpFoldResult v : forall.getMixedUpperBound())
    instr.upper.push_back(sizeOf(v));
  for (OpFoldResult v : forall.getMixedStep())
    instr.step.push_back(sizeOf(v));
  for (Value induction : forall.getInductionVars())
    instr.induction.push_back(scalarSlot(induction));
  if (failed(makeTransfer(op, forall.getOutputs(), forall.getRegionIterArgs(),
                          true, instr.enter)) ||
      failed(makeTransfer(op, forall.getRegionIterArgs(), op->getResults(),
                          false, instr.results)) ||
      failed(loadBlock(*forall.getBody(), instr.body)))
    return failure();
  for (Value argument : forall.getRegionIterArgs())
    instr.arguments.push_back(tensorSlot(argument));
  Emit *outer = current;
  current = &instr.body.instrs;
  LogicalResult result = success();
  for (Operation &nested : forall.getTerminator().getYieldingOps()) {
    auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(nested);
    if (!insert) {
      result = nested.emitError("operation '")
               << nested.getName() << "' is not supported by the runtime";
      break;
    }
    auto target = cast<BlockArgument>(insert.getDest());
    auto &slice = add<SliceInstr>(&nested);
    slice.isInsert = true;
    for (OpFoldResult v : insert.getMixedOffsets())
      slice.offsets.push_back(sizeOf(v));
    for (OpFoldResult v : insert.getMixedSizes())
      slice.sizes.push_back(sizeOf(v));
    for (OpFoldResult v : insert.getMixedStrides())
      slice.strides.push_back(sizeOf(v));
    slice.elem = *elemOf(target.getType());
    slice.source = {tensorSlot(insert.getSource()), false};
    slice.dst =
        tensorSlot(forall.getTiedOpResult(forall.getTiedOpOperand(target)));
    slice.dest = {slice.dst, true};
  }
  current = outer;
  return result;
}

LogicalResult FunctionLoader::loadCall(Operation *op) {
  auto call = cast<func::CallOp>(op);
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return op->emitError("called function @")
           << call.getCallee() << " has no body";
  bool isKernel = callee->hasAttr(ktdp::kGridAttr);
  if (isKernel && call.getNumResults() != 0)
    return op->emitError("a kernel (function with a grid) has no results");
  if (isKernel && function.hasGrid)
    return op->emitError("a kernel (function with a grid) cannot call another");
  for (Value operand : call.getOperands())
    if (!isScalar(operand.getType()))
      return op->emitError("argument type is not supported: ")
             << operand.getType();
  auto it = functions.find(call.getCallee());
  assert(it != functions.end() && "callees are decoded first");
  function.hasCalls = true;
  auto &instr = add<CallInstr>(op);
  instr.callee = it->second;
  for (Value operand : call.getOperands())
    instr.args.push_back(scalarSlot(operand));
  return success();
}
