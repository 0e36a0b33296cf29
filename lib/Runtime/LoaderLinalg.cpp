// SPDX-License-Identifier: Apache-2.0
//===- LoaderLinalg.cpp - Decoding linalg operations ----------------------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spyre::runtime;

/// Strips casts that do not change the value: extf.
static Value throughExtensions(Value v) {
  while (auto ext = v.getDefiningOp<arith::ExtFOp>())
    v = ext.getIn();
  return v;
}

static std::optional<ReduceOp> combinerOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<ReduceOp>>(op)
      .Case([](arith::AddFOp) { return ReduceOp::Sum; })
      .Case([](arith::MulFOp) { return ReduceOp::Mul; })
      .Case([](arith::MaximumFOp) { return ReduceOp::Max; })
      .Case([](arith::MinimumFOp) { return ReduceOp::Min; })
      .Case([](arith::MaxNumFOp) { return ReduceOp::MaxNum; })
      .Case([](arith::MinNumFOp) { return ReduceOp::MinNum; })
      .Default([](Operation *) { return std::nullopt; });
}

static std::optional<IntBinaryOp> intCombinerOf(Operation *op) {
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
      flags && flags.hasNoSignedWrap())
    return std::nullopt; // checked step by step
  return llvm::TypeSwitch<Operation *, std::optional<IntBinaryOp>>(op)
      .Case([](arith::AddIOp) { return IntBinaryOp::Add; })
      .Case([](arith::MulIOp) { return IntBinaryOp::Mul; })
      .Case([](arith::MaxSIOp) { return IntBinaryOp::MaxS; })
      .Case([](arith::MinSIOp) { return IntBinaryOp::MinS; })
      .Case([](arith::AndIOp) { return IntBinaryOp::And; })
      .Case([](arith::OrIOp) { return IntBinaryOp::Or; })
      .Case([](arith::XOrIOp) { return IntBinaryOp::Xor; })
      .Default([](Operation *) { return std::nullopt; });
}

namespace {
/// A case of comparing a candidate with the best so far.
struct ArgCase {
  /// -1, 0, 1: value below, equal to, above the best; 2: unordered.
  int values;
  bool valueIsNan, bestIsNan;
  int indices; ///< -1, 0, 1
};

/// Evaluates a condition over comparisons of (value, index) with the best.
struct ArgCondition {
  Value value, index, best, bestIndex;

  std::optional<bool> evaluate(Value v, const ArgCase &c) const {
    Attribute constant;
    if (v.getType().isInteger(1) && matchPattern(v, m_Constant(&constant)))
      if (auto integer = dyn_cast<IntegerAttr>(constant))
        return !integer.getValue().isZero();
    Operation *op = v.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op)) {
      std::optional<bool> a = evaluate(op->getOperand(0), c);
      std::optional<bool> b = evaluate(op->getOperand(1), c);
      if (!a || !b)
        return std::nullopt;
      if (isa<arith::AndIOp>(op))
        return *a && *b;
      return isa<arith::OrIOp>(op) ? *a || *b : *a != *b;
    }
    if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
      Value l = cmp.getLhs(), r = cmp.getRhs();
      int order; // -1, 0, 1, or 2
      if (l == r && (l == value || l == best))
        order = (l == value ? c.valueIsNan : c.bestIsNan) ? 2 : 0;
      else if (l == value && r == best)
        order = c.values;
      else if (l == best && r == value)
        order = c.values == 2 ? 2 : -c.values;
      else
        return std::nullopt;
      // Bits of a predicate: equal, greater, less, unordered.
      unsigned bits = static_cast<unsigned>(cmp.getPredicate());
      unsigned bit = order == 0 ? 1 : order == 1 ? 2 : order == -1 ? 4 : 8;
      return (bits & bit) != 0;
    }
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      int order;
      if (cmp.getLhs() == index && cmp.getRhs() == bestIndex)
        order = c.indices;
      else if (cmp.getLhs() == bestIndex && cmp.getRhs() == index)
        order = -c.indices;
      else
        return std::nullopt;
      switch (cmp.getPredicate()) {
      case arith::CmpIPredicate::eq:
        return order == 0;
      case arith::CmpIPredicate::ne:
        return order != 0;
      case arith::CmpIPredicate::slt:
        return order < 0;
      case arith::CmpIPredicate::sle:
        return order <= 0;
      case arith::CmpIPredicate::sgt:
        return order > 0;
      case arith::CmpIPredicate::sge:
        return order >= 0;
      default:
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// Whether `take` is the order of isBetter() in Generic.cpp.
  bool isOrder(Value take, bool isMax) const {
    const ArgCase values[] = {{-1, false, false, 0}, {0, false, false, 0},
                              {1, false, false, 0},  {2, true, false, 0},
                              {2, false, true, 0},   {2, true, true, 0}};
    for (ArgCase c : values)
      for (c.indices = -1; c.indices <= 1; ++c.indices) {
        bool isTie = c.values == 0 || (c.valueIsNan && c.bestIsNan);
        bool wins = c.valueIsNan != c.bestIsNan ? c.valueIsNan
                                                : c.values == (isMax ? 1 : -1);
        bool expected = isTie ? c.indices < 0 : wins;
        if (evaluate(take, c) != expected)
          return false;
      }
    return true;
  }
};
} // namespace

/// Whether a body keeps the value and index of a maximum or minimum, in the
/// order of isBetter() in Generic.cpp.
static bool isArgReduction(mlir::Block &block, unsigned numOutputs,
                           bool &isMax) {
  Operation *yield = block.getTerminator();
  if (numOutputs != 2)
    return false;
  auto first = yield->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto second = yield->getOperand(1).getDefiningOp<arith::SelectOp>();
  unsigned numArguments = block.getNumArguments();
  BlockArgument best = block.getArgument(numArguments - 2);
  BlockArgument bestIndex = block.getArgument(numArguments - 1);
  if (!first || !second || first.getCondition() != second.getCondition() ||
      first.getFalseValue() != best || second.getFalseValue() != bestIndex ||
      !best.getType().isF32() || !bestIndex.getType().isSignlessInteger() ||
      bestIndex.getType().getIntOrFloatBitWidth() < 32)
    return false;
  ArgCondition condition{first.getTrueValue(), second.getTrueValue(), best,
                         bestIndex};
  // The candidate itself must not depend on the best.
  SmallVector<Value> work{condition.value, condition.index};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (v == best || v == bestIndex)
      return false;
    if (Operation *op = v.getDefiningOp(); op && op->getBlock() == &block)
      work.append(op->operand_begin(), op->operand_end());
  }
  for (bool max : {true, false})
    if (condition.isOrder(first.getCondition(), max)) {
      isMax = max;
      return true;
    }
  return false;
}

static LogicalResult decodeMap(Operation *op, AffineMap map,
                               std::vector<MapResult> &results) {
  for (AffineExpr expr : map.getResults()) {
    MapResult result;
    SmallVector<std::pair<AffineExpr, int64_t>> work{{expr, 1}};
    while (!work.empty()) {
      auto [e, factor] = work.pop_back_val();
      if (auto c = dyn_cast<AffineConstantExpr>(e)) {
        result.constant += factor * c.getValue();
      } else if (auto d = dyn_cast<AffineDimExpr>(e)) {
        result.terms.push_back({int(d.getPosition()), factor});
      } else if (auto b = dyn_cast<AffineBinaryOpExpr>(e);
                 b && b.getKind() == AffineExprKind::Add) {
        work.push_back({b.getLHS(), factor});
        work.push_back({b.getRHS(), factor});
      } else if (b && b.getKind() == AffineExprKind::Mul &&
                 isa<AffineConstantExpr>(b.getRHS())) {
        work.push_back(
            {b.getLHS(),
             factor * cast<AffineConstantExpr>(b.getRHS()).getValue()});
      } else {
        return op->emitError("indexing map is not linear: ")
               << AffineMapAttr::get(map);
      }
    }
    results.push_back(std::move(result));
  }
  return success();
}

int FunctionLoader::bodyRegister(Operation *op, mlir::Block &block, Value v,
                                 BodyProgram &body,
                                 llvm::SmallDenseMap<Value, int> &regs) {
  auto it = regs.find(v);
  if (it != regs.end())
    return it->second;
  std::optional<Elem> elem = elemOf(v.getType());
  Attribute constant;
  if (elem && !isa<ShapedType>(v.getType())) {
    if (matchPattern(v, m_Constant(&constant)))
      if (int r = constantRegister(constant, v.getType(), body); r >= 0)
        return regs[v] = r;
    if (v.getParentBlock() != &block) {
      int r = body.addReg(*elem);
      body.captured.push_back({r, scalarSlot(v)});
      return regs[v] = r;
    }
  }
  op->emitError("body uses a value that is not supported: ") << v.getType();
  return -1;
}

LogicalResult FunctionLoader::emitBody(Operation *op, mlir::Block &block,
                                       BodyProgram &body,
                                       llvm::SmallDenseMap<Value, int> &regs,
                                       const OpSet &skipped, bool &hasIndex) {
  for (Operation &bodyOp : block.without_terminator()) {
    if (skipped.contains(&bodyOp))
      continue;
    if (isa<arith::ConstantOp>(bodyOp))
      continue; // made where it is used
    if (auto index = dyn_cast<linalg::IndexOp>(bodyOp)) {
      BodyOp o;
      o.kind = BodyOp::LoopIndex;
      o.op = static_cast<uint8_t>(index.getDim());
      o.elem = Elem::Index;
      o.dst = body.addReg(Elem::Index);
      o.location = locations.get(bodyOp.getLoc());
      body.ops.push_back(o);
      regs[bodyOp.getResult(0)] = o.dst;
      hasIndex = true;
      continue;
    }
    if (bodyOp.getNumRegions() != 0 || bodyOp.getNumResults() != 1)
      return bodyOp.emitError("operation '")
             << bodyOp.getName() << "' is not supported in a body";
    int result = emitBodyOp(&bodyOp, body, [&](Value v) {
      return bodyRegister(op, block, v, body, regs);
    });
    if (result < 0)
      return failure();
    regs[bodyOp.getResult(0)] = result;
  }
  if (body.regElem.size() > BodyFrame::kMaxRegs)
    return op->emitError("body needs more than ")
           << int(BodyFrame::kMaxRegs) << " values";
  return success();
}

LogicalResult FunctionLoader::loadGenerate(Operation *op,
                                           std::vector<SizeSource> sizes,
                                           int shape, int result) {
  int rank = static_cast<int>(
      cast<RankedTensorType>(op->getResult(0).getType()).getRank());
  if (shape < 0) {
    auto &empty = add<EmptyInstr>(op);
    shape = function.numTensors++;
    empty.dst = shape;
    empty.sizes = std::move(sizes);
  }
  auto &instr = add<GenericInstr>(op);
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = rank;
  instr.isReduction.assign(rank, false);
  GenericOperand output;
  output.use = {shape, false};
  output.elem = *elemOf(op->getResult(0).getType());
  output.map.resize(rank);
  for (int d = 0; d < rank; ++d) {
    output.map[d].terms = {{d, 1}};
    instr.extentSource.push_back({0, d});
  }
  BodyProgram &body = instr.body;
  mlir::Block &block = op->getRegion(0).front();
  llvm::SmallDenseMap<Value, int> regs;
  body.inputs.push_back(body.addReg(output.elem));
  for (int d = 0; d < rank; ++d) {
    BodyOp o;
    o.kind = BodyOp::LoopIndex;
    o.op = static_cast<uint8_t>(d);
    o.elem = Elem::Index;
    o.dst = body.addReg(Elem::Index);
    o.location = locations.get(op->getLoc());
    body.ops.push_back(o);
    regs[block.getArgument(d)] = o.dst;
  }
  instr.hasIndex = true;
  if (failed(emitBody(op, block, body, regs, {}, instr.hasIndex)))
    return failure();
  int value =
      bodyRegister(op, block, block.getTerminator()->getOperand(0), body, regs);
  if (value < 0)
    return failure();
  body.yields.push_back(value);
  instr.outputs.push_back(std::move(output));
  instr.results.push_back(result);
  instr.readsOutput.push_back(false);
  instr.coversOutput.push_back(true);
  body.finish();
  return success();
}

LogicalResult FunctionLoader::loadLinalg(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != op->getNumResults())
    return op->emitError("linalg on buffers is not supported");
  unsigned numLoops = op.getNumLoops();
  if (numLoops > GenericInstr::kMaxLoops)
    return op->emitError("more than ")
           << int(GenericInstr::kMaxLoops) << " loops";
  if (op->getNumOperands() > GenericInstr::kMaxOperands)
    return op->emitError("more than ")
           << int(GenericInstr::kMaxOperands) << " operands";
  mlir::Block &block = *op.getBlock();

  auto &instr = add<GenericInstr>(op);
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = static_cast<int>(numLoops);
  for (utils::IteratorType type : op.getIteratorTypesArray())
    instr.isReduction.push_back(type == utils::IteratorType::reduction);
  bool hasReduction = llvm::is_contained(instr.isReduction, true);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();

  BodyProgram &body = instr.body;
  llvm::SmallDenseMap<Value, int> regs;
  SmallVector<unsigned> tensorInputs; ///< operand numbers
  auto fail = [&](Value v) {
    return op->emitError("operand type is not supported: ") << v.getType();
  };

  // Inputs. Uniform ones (scalars, splat constants) are no tensors.
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value value = input->get();
    BlockArgument arg = block.getArgument(input->getOperandNumber());
    std::optional<Elem> elem = elemOf(value.getType());
    if (!elem || (isa<ShapedType>(value.getType()) &&
                  !isa<RankedTensorType>(value.getType())))
      return fail(value);
    if (!isa<RankedTensorType>(value.getType())) {
      Attribute constant;
      int reg = -1;
      if (matchPattern(value, m_Constant(&constant)))
        reg = constantRegister(constant, value.getType(), body);
      if (reg < 0) {
        reg = body.addReg(*elem);
        body.captured.push_back({reg, scalarSlot(value)});
      }
      regs[arg] = reg;
      continue;
    }
    GenericOperand operand;
    operand.use = use(value, op);
    operand.elem = *elem;
    if (failed(decodeMap(op, maps[input->getOperandNumber()], operand.map)))
      return failure();
    instr.inputs.push_back(std::move(operand));
    tensorInputs.push_back(input->getOperandNumber());
    int reg = body.addReg(*elem);
    body.inputs.push_back(reg);
    regs[arg] = reg;
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Value value = init.get();
    std::optional<Elem> elem = elemOf(value.getType());
    if (!elem || !isa<RankedTensorType>(value.getType()))
      return fail(value);
    AffineMap map = maps[init.getOperandNumber()];
    GenericOperand operand;
    operand.use = use(value, op);
    operand.elem = *elem;
    if (failed(decodeMap(op, map, operand.map)))
      return failure();
    BlockArgument arg = block.getArgument(init.getOperandNumber());
    instr.readsOutput.push_back(!arg.use_empty());
    instr.coversOutput.push_back(map.isProjectedPermutation());
    instr.outputs.push_back(std::move(operand));
    instr.results.push_back(tensorSlot(op.getTiedOpResult(&init)));
    int reg = body.addReg(*elem);
    body.inputs.push_back(reg);
    regs[arg] = reg;
  }

  // Where extents come from: a pure loop dimension of some operand.
  instr.extentSource.assign(numLoops, {-1, -1});
  auto findExtents = [&](const GenericOperand &operand, int number) {
    for (size_t d = 0; d < operand.map.size(); ++d) {
      const MapResult &result = operand.map[d];
      if (result.constant == 0 && result.terms.size() == 1 &&
          result.terms[0].second == 1 &&
          instr.extentSource[result.terms[0].first].first < 0)
        instr.extentSource[result.terms[0].first] = {number, int(d)};
    }
  };
  for (size_t i = 0; i < instr.inputs.size(); ++i)
    findExtents(instr.inputs[i], static_cast<int>(i));
  for (size_t i = 0; i < instr.outputs.size(); ++i)
    findExtents(instr.outputs[i], static_cast<int>(instr.inputs.size() + i));
  for (unsigned l = 0; l < numLoops; ++l)
    if (instr.extentSource[l].first < 0)
      return op->emitError("the extent of loop ")
             << l << " follows from no operand's dimension";

  auto yield = cast<linalg::YieldOp>(block.getTerminator());

  // How to run it.
  Operation *combiner = nullptr; ///< left out of the body
  Value combined;
  unsigned numInputs = instr.inputs.size();
  if (hasReduction) {
    instr.strategy = GenericInstr::General;
    BlockArgument out = block.getArguments().back();
    Operation *last = yield.getOperand(0).getDefiningOp();
    bool isSingle =
        op.getNumDpsInits() == 1 && last && last->getBlock() == &block;
    // The output's map must not hold a reduction loop (scans do).
    for (const GenericOperand &operand : instr.outputs)
      for (const MapResult &result : operand.map)
        for (auto [l, coefficient] : result.terms)
          isSingle &= !instr.isReduction[l];
    std::optional<ReduceOp> floatCombiner;
    std::optional<IntBinaryOp> intCombiner;
    if (isSingle) {
      floatCombiner = combinerOf(last);
      // Narrow integers wrap at their width at each step; i1 arithmetic is
      // rare.
      Elem elem = *elemOf(out.getType());
      intCombiner = intCombinerOf(last);
      bool isBitwise = isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(last);
      if (!isBitwise && !isWide(elem) && elem != Elem::I32)
        intCombiner = std::nullopt;
    }
    if (isSingle && (floatCombiner || intCombiner) && out.hasOneUse() &&
        last->getResult(0).hasOneUse() && numInputs > 0 &&
        (last->getOperand(0) == out) != (last->getOperand(1) == out)) {
      combined = last->getOperand(last->getOperand(0) == out ? 1 : 0);
      combiner = last;
      instr.strategy = GenericInstr::Reduction;
      if (floatCombiner)
        instr.combiner = *floatCombiner;
      else
        instr.intCombiner = *intCombiner;
      // A contraction: one product of two inputs, summed.
      auto product = throughExtensions(combined).getDefiningOp<arith::MulFOp>();
      bool sameTypes =
          product && product.getType() == last->getResult(0).getType();
      if (floatCombiner == ReduceOp::Sum && sameTypes && numInputs == 2 &&
          body.captured.empty() && body.constants.empty()) {
        Value lhs = throughExtensions(product.getLhs());
        Value rhs = throughExtensions(product.getRhs());
        BlockArgument first = block.getArgument(tensorInputs[0]);
        BlockArgument second = block.getArgument(tensorInputs[1]);
        bool swapped = lhs == second && rhs == first;
        bool permutations = true;
        for (unsigned i : tensorInputs)
          permutations &= maps[i].isProjectedPermutation();
        permutations &= maps.back().isProjectedPermutation();
        if (permutations && ((lhs == first && rhs == second) || swapped)) {
          instr.strategy = GenericInstr::Contraction;
          function.hasContraction = true;
        }
      }
    }
  }

  // The two outputs of an index reduction vary with no reduction loop.
  bool isArg = hasReduction && numInputs > 0 &&
               isArgReduction(block, op.getNumDpsInits(), instr.isArgMax);
  for (const GenericOperand &operand : instr.outputs)
    for (const MapResult &result : operand.map)
      for (auto [l, coefficient] : result.terms)
        isArg &= !instr.isReduction[l];
  if (isArg)
    instr.strategy = GenericInstr::ArgReduction;

  // The body. A contraction keeps none.
  if (instr.strategy != GenericInstr::Contraction) {
    // Of an index reduction only what makes the candidates.
    llvm::SmallPtrSet<Operation *, 8> skipped;
    if (isArg) {
      for (Operation &bodyOp : llvm::reverse(block.without_terminator())) {
        bool isNeeded = false;
        for (unsigned i = 0; i < 2; ++i)
          isNeeded |= yield.getOperand(i)
                          .getDefiningOp<arith::SelectOp>()
                          .getTrueValue()
                          .getDefiningOp() == &bodyOp;
        for (Operation *user : bodyOp.getUsers())
          isNeeded |= user != yield && !skipped.contains(user);
        if (!isNeeded)
          skipped.insert(&bodyOp);
      }
    } else if (combiner) {
      skipped.insert(combiner);
    }
    if (failed(emitBody(op, block, body, regs, skipped, instr.hasIndex)))
      return failure();
    auto reg = [&](Value v) { return bodyRegister(op, block, v, body, regs); };
    if (combiner) {
      int r = reg(combined);
      if (r < 0)
        return failure();
      body.yields.push_back(r);
      // The index of a point is only known to the other strategies.
      if (instr.hasIndex) {
        instr.strategy = GenericInstr::General;
        int result = emitBodyOp(combiner, body, reg);
        if (result < 0)
          return failure();
        body.yields[0] = result;
      }
    } else {
      for (Value v : yield.getOperands()) {
        if (isArg)
          v = v.getDefiningOp<arith::SelectOp>().getTrueValue();
        int r = reg(v);
        if (r < 0)
          return failure();
        body.yields.push_back(r);
      }
    }
    if (body.regElem.size() > BodyFrame::kMaxRegs)
      return op->emitError("body needs more than ")
             << int(BodyFrame::kMaxRegs) << " values";
  }
  body.finish();
  instr.isInPlaceSafe = instr.strategy == GenericInstr::Parallel &&
                        body.yields.size() == 1 && !body.ops.empty() &&
                        body.ops.back().dst == body.yields[0];
  return success();
}
