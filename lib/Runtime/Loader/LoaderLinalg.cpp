// SPDX-License-Identifier: Apache-2.0
//===- LoaderLinalg.cpp - Decoding linalg operations ----------------------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spyre::runtime;

/// Strips casts that do not change the value: to wider floats and integers, and
/// of integers of at most 16 bits to floats.
static Value throughExtensions(Value v) {
  while (Operation *cast = v.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp>(cast) &&
        !(isa<arith::SIToFPOp>(cast) && throughExtensions(cast->getOperand(0))
                                                .getType()
                                                .getIntOrFloatBitWidth() <= 16))
      break;
    v = cast->getOperand(0);
  }
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

static LogicalResult decodeMap(Operation *op, AffineMap map,
                               std::vector<MapResult> &results) {
  for (AffineExpr expr : map.getResults()) {
    MapResult result;
    SmallVector<std::pair<AffineExpr, int64_t>> work{{expr, 1}};
    while (!work.empty()) {
      auto [e, factor] = work.pop_back_val();
      if (auto c = dyn_cast<AffineConstantExpr>(e)) {
        result.constant =
            wrappingAdd(result.constant, wrappingMul(factor, c.getValue()));
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
             wrappingMul(factor,
                         cast<AffineConstantExpr>(b.getRHS()).getValue())});
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
                                 ScalarProgram &body,
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
                                       ScalarProgram &body,
                                       llvm::SmallDenseMap<Value, int> &regs,
                                       const OpSet &skipped, bool &hasIndex) {
  for (Operation &bodyOp : block.without_terminator()) {
    if (skipped.contains(&bodyOp))
      continue;
    if (isa<arith::ConstantOp>(bodyOp))
      continue; // made where it is used
    if (auto index = dyn_cast<linalg::IndexOp>(bodyOp)) {
      ScalarOp o;
      o.kind = ScalarOp::LoopIndex;
      o.cost = ::spyre::CostClass::Free;
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
    int result = emitScalarOp(&bodyOp, body, [&](Value v) {
      return bodyRegister(op, block, v, body, regs);
    });
    if (result < 0)
      return failure();
    regs[bodyOp.getResult(0)] = result;
  }
  if (body.regElem.size() > ScalarFrame::kMaxRegs)
    return op->emitError("body needs more than ")
           << int(ScalarFrame::kMaxRegs) << " values";
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
  auto &instr = add<StructuredLoop>(op);
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = rank;
  instr.isReduction.assign(rank, false);
  LoopOperand output;
  output.use = {shape, false};
  output.elem = *elemOf(op->getResult(0).getType());
  output.map.resize(rank);
  for (int d = 0; d < rank; ++d) {
    output.map[d].terms = {{d, 1}};
    instr.extentSource.push_back({0, d});
  }
  ScalarProgram &body = instr.body;
  mlir::Block &block = op->getRegion(0).front();
  llvm::SmallDenseMap<Value, int> regs;
  body.inputs.push_back(body.addReg(output.elem));
  for (int d = 0; d < rank; ++d) {
    ScalarOp o;
    o.kind = ScalarOp::LoopIndex;
    o.cost = ::spyre::CostClass::Free;
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

/// Decodes one linalg op on tensors.
class FunctionLoader::LinalgOpLoader {
public:
  LinalgOpLoader(FunctionLoader &loader, linalg::LinalgOp op,
                 StructuredLoop &instr)
      : loader(loader), op(op), instr(instr), body(instr.body),
        block(*op.getBlock()),
        yield(cast<linalg::YieldOp>(block.getTerminator())),
        maps(op.getIndexingMapsArray()) {}

  LogicalResult load();

private:
  LogicalResult loadInput(OpOperand &input);
  LogicalResult loadOutput(OpOperand &init);
  LogicalResult findExtents();
  void noteExtents(const LoopOperand &operand, int number);

  // How to run it.
  void chooseStrategy();
  bool outputsVaryWithReduction() const;
  void matchSingleCombiner();
  bool isContraction() const;
  bool hasBatchLoop() const;
  bool isProductWithVector();

  // The body.
  LogicalResult loadBody();
  OpSet skippedOps() const;
  LogicalResult yieldResults();
  LogicalResult yieldCombined();
  int registerOf(Value v) {
    return loader.bodyRegister(op, block, v, body, regs);
  }

  LogicalResult unsupportedOperand(Value v) {
    return op->emitError("operand type is not supported: ") << v.getType();
  }

  FunctionLoader &loader;
  linalg::LinalgOp op;
  StructuredLoop &instr;
  ScalarProgram &body;
  mlir::Block &block;
  linalg::YieldOp yield;
  SmallVector<AffineMap> maps;
  llvm::SmallDenseMap<Value, int> regs;
  SmallVector<unsigned> tensorInputs; ///< operand numbers
  /// Left out of the body, which then makes what it combines.
  Operation *combiner = nullptr;
  Value combined;
};

LogicalResult FunctionLoader::LinalgOpLoader::load() {
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = static_cast<int>(op.getNumLoops());
  for (utils::IteratorType type : op.getIteratorTypesArray())
    instr.isReduction.push_back(type == utils::IteratorType::reduction);
  for (OpOperand *input : op.getDpsInputOperands())
    if (failed(loadInput(*input)))
      return failure();
  for (OpOperand &init : op.getDpsInitsMutable())
    if (failed(loadOutput(init)))
      return failure();
  if (failed(findExtents()))
    return failure();
  chooseStrategy();
  // A contraction keeps no body.
  if (instr.strategy != StructuredLoop::Contraction && failed(loadBody()))
    return failure();
  body.finish();
  instr.isInPlaceSafe = instr.strategy == StructuredLoop::Parallel &&
                        body.yields.size() == 1 && !body.ops.empty() &&
                        body.ops.back().dst == body.yields[0];
  instr.findPairs();
  return success();
}

/// Uniform inputs (scalars, splat constants) are no tensors.
LogicalResult FunctionLoader::LinalgOpLoader::loadInput(OpOperand &input) {
  Value value = input.get();
  BlockArgument arg = block.getArgument(input.getOperandNumber());
  std::optional<Elem> elem = elemOf(value.getType());
  if (!elem || (isa<ShapedType>(value.getType()) &&
                !isa<RankedTensorType>(value.getType())))
    return unsupportedOperand(value);
  if (!isa<RankedTensorType>(value.getType())) {
    regs[arg] = loader.scalarRegister(value, body);
    return success();
  }
  LoopOperand operand;
  operand.use = loader.use(value, op);
  operand.elem = *elem;
  if (failed(decodeMap(op, maps[input.getOperandNumber()], operand.map)))
    return failure();
  instr.inputs.push_back(std::move(operand));
  tensorInputs.push_back(input.getOperandNumber());
  int reg = body.addReg(*elem);
  body.inputs.push_back(reg);
  regs[arg] = reg;
  return success();
}

LogicalResult FunctionLoader::LinalgOpLoader::loadOutput(OpOperand &init) {
  Value value = init.get();
  std::optional<Elem> elem = elemOf(value.getType());
  if (!elem || !isa<RankedTensorType>(value.getType()))
    return unsupportedOperand(value);
  AffineMap map = maps[init.getOperandNumber()];
  LoopOperand operand;
  operand.use = loader.use(value, op);
  operand.elem = *elem;
  if (failed(decodeMap(op, map, operand.map)))
    return failure();
  BlockArgument arg = block.getArgument(init.getOperandNumber());
  instr.readsOutput.push_back(!arg.use_empty());
  instr.coversOutput.push_back(map.isProjectedPermutation());
  instr.outputs.push_back(std::move(operand));
  instr.results.push_back(loader.tensorSlot(op.getTiedOpResult(&init)));
  int reg = body.addReg(*elem);
  body.inputs.push_back(reg);
  regs[arg] = reg;
  return success();
}

/// Finds for each loop an operand dimension that gives its extent.
LogicalResult FunctionLoader::LinalgOpLoader::findExtents() {
  instr.extentSource.assign(instr.numLoops, {-1, -1});
  for (size_t i = 0; i < instr.inputs.size(); ++i)
    noteExtents(instr.inputs[i], static_cast<int>(i));
  for (size_t i = 0; i < instr.outputs.size(); ++i)
    noteExtents(instr.outputs[i], static_cast<int>(instr.inputs.size() + i));
  for (int l = 0; l < instr.numLoops; ++l)
    if (instr.extentSource[l].first < 0)
      return op->emitError("the extent of loop ")
             << l << " follows from no operand's dimension";
  return success();
}

void FunctionLoader::LinalgOpLoader::noteExtents(const LoopOperand &operand,
                                                 int number) {
  for (size_t d = 0; d < operand.map.size(); ++d) {
    const MapResult &result = operand.map[d];
    if (result.constant == 0 && result.terms.size() == 1 &&
        result.terms[0].second == 1 &&
        instr.extentSource[result.terms[0].first].first < 0)
      instr.extentSource[result.terms[0].first] = {number, int(d)};
  }
}

void FunctionLoader::LinalgOpLoader::chooseStrategy() {
  if (!llvm::is_contained(instr.isReduction, true))
    return;
  instr.strategy = StructuredLoop::General;
  // Scans have outputs that vary with a reduction loop.
  if (outputsVaryWithReduction())
    return;
  matchSingleCombiner();
  if (!instr.inputs.empty() &&
      isArgReduction(block, op.getNumDpsInits(), instr.isArgMax))
    instr.strategy = StructuredLoop::ArgReduction;
}

bool FunctionLoader::LinalgOpLoader::outputsVaryWithReduction() const {
  for (const LoopOperand &operand : instr.outputs)
    for (const MapResult &result : operand.map)
      for (auto [l, coefficient] : result.terms)
        if (instr.isReduction[l])
          return true;
  return false;
}

/// One output that one operation at the end of the body combines with what the
/// rest of the body makes.
void FunctionLoader::LinalgOpLoader::matchSingleCombiner() {
  BlockArgument out = block.getArguments().back();
  Operation *last = yield.getOperand(0).getDefiningOp();
  if (op.getNumDpsInits() != 1 || !last || last->getBlock() != &block)
    return;
  std::optional<ReduceOp> floatCombiner = combinerOf(last);
  // Narrow integers wrap at their width at each step; i1 arithmetic is rare.
  std::optional<IntBinaryOp> intCombiner = intCombinerOf(last);
  Elem elem = *elemOf(out.getType());
  bool isBitwise = isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(last);
  if (!isBitwise && !isWide(elem) && elem != Elem::I32)
    intCombiner = std::nullopt;
  if ((!floatCombiner && !intCombiner) || !out.hasOneUse() ||
      !last->getResult(0).hasOneUse() || instr.inputs.empty() ||
      (last->getOperand(0) == out) == (last->getOperand(1) == out))
    return;
  combined = last->getOperand(last->getOperand(0) == out ? 1 : 0);
  combiner = last;
  instr.strategy = StructuredLoop::Reduction;
  if (floatCombiner)
    instr.combiner = *floatCombiner;
  else
    instr.intCombiner = *intCombiner;
  bool isSum = floatCombiner == ReduceOp::Sum ||
               (intCombiner == IntBinaryOp::Add && elem == Elem::I32);
  if (isSum && isContraction()) {
    instr.strategy = StructuredLoop::Contraction;
    instr.isBatched = hasBatchLoop();
    loader.function.hasContraction = true;
    loader.function.shareTiles(isProductWithVector());
  }
}

/// Whether each element of the larger factor takes part in one product, so that
/// the other one is small.
bool FunctionLoader::LinalgOpLoader::isProductWithVector() {
  int64_t products = 1, largest = 0;
  for (int64_t extent : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(extent))
      return false;
    products = wrappingMul(products, extent);
  }
  for (OpOperand *input : op.getDpsInputOperands())
    if (auto type = dyn_cast<RankedTensorType>(input->get().getType()))
      largest = std::max(largest, type.getNumElements());
  return products == largest;
}

/// Whether what is summed is one product of two inputs: of floats, of a float
/// and small integers, or of integers of 8 bits.
bool FunctionLoader::LinalgOpLoader::isContraction() const {
  Operation *product = throughExtensions(combined).getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product) ||
      product->getResult(0).getType() != combiner->getResult(0).getType() ||
      instr.inputs.size() != 2 || !body.captured.empty() ||
      !body.constants.empty())
    return false;
  for (const LoopOperand &input : instr.inputs) {
    bool isSmall = input.elem == Elem::I8 ||
                   (input.elem == Elem::I16 && isa<arith::MulFOp>(product));
    if (!isSmall && (!isFloat(input.elem) || isa<arith::MulIOp>(product)))
      return false;
  }
  for (unsigned i : tensorInputs)
    if (!maps[i].isProjectedPermutation())
      return false;
  if (!maps.back().isProjectedPermutation())
    return false;
  Value lhs = throughExtensions(product->getOperand(0));
  Value rhs = throughExtensions(product->getOperand(1));
  BlockArgument first = block.getArgument(tensorInputs[0]);
  BlockArgument second = block.getArgument(tensorInputs[1]);
  return (lhs == first && rhs == second) || (lhs == second && rhs == first);
}

/// Whether a loop that sums nothing walks through all operands. A batch of one
/// is one, too: a tile of a batched product holds one product.
bool FunctionLoader::LinalgOpLoader::hasBatchLoop() const {
  auto isInAll = [&](unsigned loop) {
    return llvm::all_of(
        maps, [&](AffineMap map) { return map.isFunctionOfDim(loop); });
  };
  for (unsigned loop = 0; loop < instr.isReduction.size(); ++loop)
    if (!instr.isReduction[loop] && isInAll(loop))
      return true;
  return false;
}

LogicalResult FunctionLoader::LinalgOpLoader::loadBody() {
  if (failed(
          loader.emitBody(op, block, body, regs, skippedOps(), instr.hasIndex)))
    return failure();
  if (failed(combiner ? yieldCombined() : yieldResults()))
    return failure();
  if (body.regElem.size() > ScalarFrame::kMaxRegs)
    return op->emitError("body needs more than ")
           << int(ScalarFrame::kMaxRegs) << " values";
  return success();
}

/// The operations of the body that the strategy replaces. In an index reduction
/// only those stay that compute the candidates.
FunctionLoader::OpSet FunctionLoader::LinalgOpLoader::skippedOps() const {
  OpSet skipped;
  if (instr.strategy != StructuredLoop::ArgReduction) {
    if (combiner)
      skipped.insert(combiner);
    return skipped;
  }
  for (Operation &bodyOp : llvm::reverse(block.without_terminator())) {
    bool isNeeded = false;
    for (Value v : yield->getOperands())
      isNeeded |=
          v.getDefiningOp<arith::SelectOp>().getTrueValue().getDefiningOp() ==
          &bodyOp;
    for (Operation *user : bodyOp.getUsers())
      isNeeded |= user != yield && !skipped.contains(user);
    if (!isNeeded)
      skipped.insert(&bodyOp);
  }
  return skipped;
}

LogicalResult FunctionLoader::LinalgOpLoader::yieldResults() {
  for (Value v : yield->getOperands()) {
    if (instr.strategy == StructuredLoop::ArgReduction)
      v = v.getDefiningOp<arith::SelectOp>().getTrueValue();
    int r = registerOf(v);
    if (r < 0)
      return failure();
    body.yields.push_back(r);
  }
  return success();
}

LogicalResult FunctionLoader::LinalgOpLoader::yieldCombined() {
  int r = registerOf(combined);
  if (r < 0)
    return failure();
  body.yields.push_back(r);
  if (!instr.hasIndex)
    return success();
  // The index of a point is only known to the other strategies.
  instr.strategy = StructuredLoop::General;
  int result = loader.emitScalarOp(combiner, body,
                                   [&](Value v) { return registerOf(v); });
  if (result < 0)
    return failure();
  body.yields[0] = result;
  return success();
}

LogicalResult FunctionLoader::loadLinalg(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != op->getNumResults())
    return op->emitError("linalg on buffers is not supported");
  if (op.getNumLoops() > StructuredLoop::kMaxLoops)
    return op->emitError("more than ")
           << int(StructuredLoop::kMaxLoops) << " loops";
  if (op->getNumOperands() > StructuredLoop::kMaxOperands)
    return op->emitError("more than ")
           << int(StructuredLoop::kMaxOperands) << " operands";
  return LinalgOpLoader(*this, op, add<StructuredLoop>(op)).load();
}
