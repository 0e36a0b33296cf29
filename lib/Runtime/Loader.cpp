// SPDX-License-Identifier: Apache-2.0
//===- Loader.cpp - KTIR module to program --------------------------------===//

#include "Spyre/Runtime/Loader.h"
#include "Engine.h"
#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Types and locations
//===----------------------------------------------------------------------===//

std::optional<Elem> spyre::runtime::elemOf(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF16())
    return Elem::F16;
  if (type.isBF16())
    return Elem::BF16;
  if (type.isF32())
    return Elem::F32;
  if (isa<Float8E4M3FNType>(type))
    return Elem::F8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return Elem::F8E5M2;
  if (type.isIndex())
    return Elem::Index;
  if (auto integer = dyn_cast<IntegerType>(type);
      integer && !integer.isUnsigned())
    switch (integer.getWidth()) {
    case 1:
      return Elem::I1;
    case 8:
      return Elem::I8;
    case 16:
      return Elem::I16;
    case 32:
      return Elem::I32;
    case 64:
      return Elem::I64;
    default:
      return std::nullopt;
    }
  return std::nullopt;
}

/// "file:line:col" of the innermost file position, or the printed location.
static std::string locationText(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ":" << file.getLine() << ":"
       << file.getColumn();
  else
    location.print(os);
  return text;
}

int LocationTable::get(Location location) {
  auto [it, isNew] =
      known.try_emplace(location, static_cast<int>(plan.locations.size()));
  if (isNew)
    plan.locations.push_back(locationText(location));
  return it->second;
}

//===----------------------------------------------------------------------===//
// Slots and liveness
//===----------------------------------------------------------------------===//

static int slotIn(llvm::DenseMap<Value, int> &slots, Value value, int &count) {
  auto [it, isNew] = slots.try_emplace(value, count);
  if (isNew)
    ++count;
  return it->second;
}

int FunctionLoader::scalarSlot(Value value) {
  return slotIn(scalarSlots, value, function.numScalars);
}
int FunctionLoader::tensorSlot(Value value) {
  return slotIn(tensorSlots, value, function.numTensors);
}
int FunctionLoader::viewSlot(Value value) {
  return slotIn(viewSlots, value, function.numViews);
}
int FunctionLoader::tileSlot(Value value) {
  return slotIn(tileSlots, value, function.numTiles);
}

bool FunctionLoader::isScalar(Type type) const {
  return !isa<ShapedType>(type) && elemOf(type).has_value();
}

LogicalResult FunctionLoader::checkType(Operation *op, Type type) {
  if (auto future = dyn_cast<ktdp::TileFutureType>(type))
    return checkType(op, future.getTileType());
  if (isa<ktdp::AccessTileType>(type)) {
    if (cast<ShapedType>(type).getRank() > kMaxRank)
      return op->emitError("access tiles of more than ")
             << kMaxRank << " dimensions are not supported: " << type;
    return success();
  }
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    if (!shaped.hasRank() || !(isa<MemRefType, RankedTensorType>(type)))
      return op->emitError("type is not supported: ") << type;
    if (shaped.getRank() > kMaxRank)
      return op->emitError("types of more than ")
             << kMaxRank << " dimensions are not supported: " << type;
  }
  if (!elemOf(type))
    return op->emitError("element type is not supported: ") << type;
  return success();
}

bool FunctionLoader::isLastUser(Value value, Operation *op) {
  mlir::Block *block = op->getBlock();
  if (value.getParentBlock() != block)
    return false;
  if (Operation *definition = value.getDefiningOp();
      definition && definition->hasTrait<OpTrait::ConstantLike>())
    return false;
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor || (ancestor != op && !ancestor->isBeforeInBlock(op)))
      return false;
  }
  return true;
}

TensorUse FunctionLoader::use(Value value, Operation *op) {
  TensorUse result;
  result.slot = tensorSlot(value);
  if (!isLastUser(value, op))
    return result;
  // Used once by the op and not inside its regions.
  unsigned count = 0;
  for (OpOperand &operand : value.getUses())
    if (op->isAncestor(operand.getOwner()))
      ++count;
  result.dies = count == 1;
  return result;
}

SizeSource FunctionLoader::sizeOf(OpFoldResult size) {
  SizeSource result;
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    result.constant = *constant;
  else
    result.slot = scalarSlot(cast<Value>(size));
  return result;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult FunctionLoader::loadBlock(mlir::Block &block,
                                        ::spyre::runtime::Block &into) {
  Emit *outer = current;
  current = &into.instrs;
  LogicalResult result = success();
  for (Operation &op : block.without_terminator()) {
    size_t before = current->size();
    if (failed(loadOp(&op))) {
      result = failure();
      break;
    }
    if (current->size() == before)
      continue;
    // Tensors that nobody reads after this op.
    llvm::SmallPtrSet<Value, 8> seen;
    std::vector<int> &releases = current->back()->releases;
    auto consider = [&](Value v) {
      if (isa<RankedTensorType>(v.getType()) && seen.insert(v).second &&
          isLastUser(v, &op))
        releases.push_back(tensorSlot(v));
    };
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (operand.getParentBlock() == &block)
          consider(operand);
    });
    for (Value v : op.getResults())
      if (v.use_empty())
        consider(v);
  }
  current = outer;
  return result;
}

LogicalResult FunctionLoader::loadOp(Operation *op) {
  for (Type type : op->getResultTypes())
    if (failed(checkType(op, type)))
      return failure();
  if (op->hasTrait<OpTrait::ConstantLike>())
    return loadConstant(op);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return loadLinalg(linalgOp);
  if (isa<scf::SCFDialect>(op->getDialect()))
    return loadControlFlow(op);
  if (isa<func::CallOp>(op))
    return loadCall(op);
  if (isa<affine::AffineDialect>(op->getDialect()))
    return loadAffine(op);
  if (isa<ktdp::KTDPDialect>(op->getDialect()))
    return loadMemory(op);
  if (isa<tensor::TensorDialect>(op->getDialect()))
    return loadTensorOp(op);
  if (isBodyOp(op)) {
    if (isa<RankedTensorType>(op->getResult(0).getType()))
      return loadElementwise(op);
    if (isScalar(op->getResult(0).getType()))
      return loadScalarOp(op);
  }
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

//===----------------------------------------------------------------------===//
// Constants and scalars
//===----------------------------------------------------------------------===//

static float toFloat(llvm::APFloat value) {
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

static int64_t toInt(const llvm::APInt &value) {
  return value.getBitWidth() == 1 ? static_cast<int64_t>(value.getZExtValue())
                                  : value.getSExtValue();
}

LogicalResult FunctionLoader::loadConstant(Operation *op) {
  Attribute value;
  if (op->getNumResults() != 1 || !matchPattern(op, m_Constant(&value)))
    return op->emitError("constant is not supported");
  Value result = op->getResult(0);
  std::optional<Elem> elem = elemOf(result.getType());
  if (!isa<ShapedType>(result.getType())) {
    ConstantScalar constant;
    constant.slot = scalarSlot(result);
    constant.elem = *elem;
    constant.value.i = 0;
    if (auto f = dyn_cast<FloatAttr>(value))
      constant.value.f = toFloat(f.getValue());
    else if (auto i = dyn_cast<IntegerAttr>(value))
      constant.value.i = toInt(i.getValue());
    else
      return op->emitError("constant is not supported: ") << value;
    function.scalars.push_back(constant);
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!dense || !type)
    return op->emitError("constant is not supported: ") << value;
  ConstantTensor constant;
  constant.slot = tensorSlot(result);
  constant.elem = *elem;
  constant.shape.assign(type.getShape().begin(), type.getShape().end());
  constant.isSplat = dense.isSplat();
  int64_t count = constant.isSplat ? 1 : type.getNumElements();
  if (type.getNumElements() == 0)
    count = 0;
  if (isFloat(*elem)) {
    auto values = dense.getValues<llvm::APFloat>();
    for (int64_t i = 0; i < count; ++i)
      constant.floats.push_back(toFloat(values[i]));
  } else {
    auto values = dense.getValues<llvm::APInt>();
    for (int64_t i = 0; i < count; ++i) {
      if (isWide(*elem))
        constant.longs.push_back(toInt(values[i]));
      else
        constant.ints.push_back(static_cast<int32_t>(toInt(values[i])));
    }
  }
  function.tensors.push_back(std::move(constant));
  return success();
}

static std::optional<IntBinaryOp> intBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<IntBinaryOp>>(op)
      .Case([](arith::AddIOp) { return IntBinaryOp::Add; })
      .Case([](arith::SubIOp) { return IntBinaryOp::Sub; })
      .Case([](arith::MulIOp) { return IntBinaryOp::Mul; })
      .Case([](arith::DivSIOp) { return IntBinaryOp::DivS; })
      .Case([](arith::DivUIOp) { return IntBinaryOp::DivU; })
      .Case([](arith::FloorDivSIOp) { return IntBinaryOp::FloorDivS; })
      .Case([](arith::CeilDivSIOp) { return IntBinaryOp::CeilDivS; })
      .Case([](arith::CeilDivUIOp) { return IntBinaryOp::CeilDivU; })
      .Case([](arith::RemSIOp) { return IntBinaryOp::RemS; })
      .Case([](arith::RemUIOp) { return IntBinaryOp::RemU; })
      .Case([](arith::AndIOp) { return IntBinaryOp::And; })
      .Case([](arith::OrIOp) { return IntBinaryOp::Or; })
      .Case([](arith::XOrIOp) { return IntBinaryOp::Xor; })
      .Case([](arith::ShLIOp) { return IntBinaryOp::Shl; })
      .Case([](arith::ShRSIOp) { return IntBinaryOp::ShrS; })
      .Case([](arith::ShRUIOp) { return IntBinaryOp::ShrU; })
      .Case([](arith::MinSIOp) { return IntBinaryOp::MinS; })
      .Case([](arith::MaxSIOp) { return IntBinaryOp::MaxS; })
      .Case([](arith::MinUIOp) { return IntBinaryOp::MinU; })
      .Case([](arith::MaxUIOp) { return IntBinaryOp::MaxU; })
      .Default([](Operation *) { return std::nullopt; });
}

LogicalResult FunctionLoader::loadScalarOp(Operation *op) {
  for (Value operand : op->getOperands())
    if (!isScalar(operand.getType()))
      return op->emitError("operand type is not supported: ")
             << operand.getType();
  Value result = op->getResult(0);
  Elem elem = *elemOf(result.getType());
  Elem source = *elemOf(op->getOperand(0).getType());
  auto scalarInt = [&]() -> ScalarInt & {
    auto &instr = add<ScalarInt>(op);
    instr.dst = scalarSlot(result);
    instr.elem = elem;
    instr.source = source;
    instr.a = scalarSlot(op->getOperand(0));
    if (op->getNumOperands() > 1)
      instr.b = scalarSlot(op->getOperand(1));
    if (op->getNumOperands() > 2)
      instr.c = scalarSlot(op->getOperand(2));
    return instr;
  };
  if (std::optional<IntBinaryOp> code = intBinary(op)) {
    auto &instr = scalarInt();
    instr.op = ScalarInt::Binary;
    instr.code = static_cast<uint8_t>(*code);
    return success();
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    auto &instr = scalarInt();
    instr.op = ScalarInt::Compare;
    instr.code = static_cast<uint8_t>(cmp.getPredicate());
    return success();
  }
  if (isa<arith::SelectOp>(op)) {
    scalarInt().op = ScalarInt::Select;
    return success();
  }
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp, arith::ExtUIOp,
          arith::IndexCastUIOp>(op)) {
    auto &instr = scalarInt();
    instr.op = ScalarInt::Cast;
    instr.isSigned = !isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
    return success();
  }
  auto &instr = add<ScalarBody>(op);
  auto reg = [&](Value v) {
    int r = instr.body.addReg(*elemOf(v.getType()));
    instr.body.captured.push_back({r, scalarSlot(v)});
    return r;
  };
  int r = emitBodyOp(op, instr.body, reg);
  if (r < 0)
    return failure();
  instr.body.yields.push_back(r);
  instr.results.push_back(scalarSlot(result));
  instr.body.finish();
  return success();
}

static int addAffineNodes(AffineExpr expr, unsigned numDims,
                          std::vector<AffineNode> &nodes) {
  AffineNode node;
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    node.value = c.getValue();
  } else if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    node.kind = AffineNode::Operand;
    node.value = d.getPosition();
  } else if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    node.kind = AffineNode::Operand;
    node.value = numDims + s.getPosition();
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    node.lhs = addAffineNodes(binary.getLHS(), numDims, nodes);
    node.rhs = addAffineNodes(binary.getRHS(), numDims, nodes);
    switch (binary.getKind()) {
    case AffineExprKind::Add:
      node.kind = AffineNode::Add;
      break;
    case AffineExprKind::Mul:
      node.kind = AffineNode::Mul;
      break;
    case AffineExprKind::FloorDiv:
      node.kind = AffineNode::FloorDiv;
      break;
    case AffineExprKind::CeilDiv:
      node.kind = AffineNode::CeilDiv;
      break;
    default:
      node.kind = AffineNode::Mod;
    }
  }
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

LogicalResult FunctionLoader::loadAffine(Operation *op) {
  AffineMap map;
  AffineInstr::Mode mode;
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    map = apply.getAffineMap();
    mode = AffineInstr::Apply;
  } else if (auto min = dyn_cast<affine::AffineMinOp>(op)) {
    map = min.getAffineMap();
    mode = AffineInstr::Min;
  } else if (auto max = dyn_cast<affine::AffineMaxOp>(op)) {
    map = max.getAffineMap();
    mode = AffineInstr::Max;
  } else {
    return op->emitError("operation '")
           << op->getName() << "' is not supported by the runtime";
  }
  if (map.getNumResults() == 0)
    return op->emitError("affine map without results");
  auto &instr = add<AffineInstr>(op);
  instr.mode = mode;
  instr.dst = scalarSlot(op->getResult(0));
  for (Value operand : op->getOperands())
    instr.operands.push_back(scalarSlot(operand));
  for (AffineExpr expr : map.getResults())
    instr.roots.push_back(addAffineNodes(expr, map.getNumDims(), instr.nodes));
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult FunctionLoader::addTerms(
    Operation *op, AccessPlan &accessPlan, AffineExpr expr, int64_t factor,
    llvm::ArrayRef<std::pair<char, int>> dims,
    llvm::ArrayRef<std::pair<char, int>> symbols, LinearForm &form) {
  auto addLeaf = [&](std::pair<char, int> leaf) {
    auto &terms = leaf.first == 'v' ? form.vars : form.captured;
    for (auto &term : terms)
      if (term.first == leaf.second) {
        term.second += factor;
        return;
      }
    terms.push_back({leaf.second, factor});
  };
  if (factor == 0)
    return success();
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    form.constant += factor * c.getValue();
    return success();
  }
  if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    addLeaf(dims[d.getPosition()]);
    return success();
  }
  if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    addLeaf(symbols[s.getPosition()]);
    return success();
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() == AffineExprKind::Add) {
    if (failed(addTerms(op, accessPlan, binary.getLHS(), factor, dims, symbols,
                        form)))
      return failure();
    return addTerms(op, accessPlan, binary.getRHS(), factor, dims, symbols,
                    form);
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  AffineExpr other = binary.getLHS();
  if (!constant && binary.getKind() == AffineExprKind::Mul) {
    constant = dyn_cast<AffineConstantExpr>(binary.getLHS());
    other = binary.getRHS();
  }
  if (!constant)
    return op->emitError("subscript multiplies or divides by a value that is "
                         "not a constant");
  if (binary.getKind() == AffineExprKind::Mul)
    return addTerms(op, accessPlan, other, factor * constant.getValue(), dims,
                    symbols, form);
  if (constant.getValue() <= 0)
    return op->emitError("subscript divides by ")
           << constant.getValue() << ", expected a positive constant";
  Atom atom;
  atom.kind = binary.getKind() == AffineExprKind::Mod       ? Atom::Mod
              : binary.getKind() == AffineExprKind::CeilDiv ? Atom::CeilDiv
                                                            : Atom::FloorDiv;
  atom.divisor = constant.getValue();
  if (llvm::isPowerOf2_64(static_cast<uint64_t>(atom.divisor)))
    atom.shift = static_cast<int>(llvm::Log2_64(atom.divisor));
  LinearForm inner;
  if (failed(addTerms(op, accessPlan, other, 1, dims, symbols, inner)))
    return failure();
  for (auto [v, coefficient] : inner.vars)
    atom.vars.push_back(v);
  for (auto [a, coefficient] : inner.atoms)
    atom.vars.insert(atom.vars.end(), accessPlan.atoms[a].vars.begin(),
                     accessPlan.atoms[a].vars.end());
  llvm::sort(atom.vars);
  atom.vars.erase(std::unique(atom.vars.begin(), atom.vars.end()),
                  atom.vars.end());
  atom.inner = accessPlan.addForm(std::move(inner));
  accessPlan.atoms.push_back(std::move(atom));
  form.atoms.push_back({static_cast<int>(accessPlan.atoms.size()) - 1, factor});
  return success();
}

int FunctionLoader::addForm(Operation *op, AccessPlan &accessPlan,
                            AffineExpr expr,
                            llvm::ArrayRef<std::pair<char, int>> dims,
                            llvm::ArrayRef<std::pair<char, int>> symbols) {
  LinearForm form;
  if (failed(addTerms(op, accessPlan, expr, 1, dims, symbols, form)))
    return -1;
  return accessPlan.addForm(std::move(form));
}

/// Whether the one user of a loaded tile may read it piece by piece: a
/// structured loop further down the block that is no product (those read their
/// tiles more than once) with no write to memory in between.
static bool canDefer(ktdp::LoadOp load) {
  if (!load.getResult().hasOneUse() || !load.getTile().hasOneUse())
    return false;
  OpOperand &use = *load.getResult().use_begin();
  auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!user || user->getBlock() != load->getBlock() || !user.isDpsInput(&use) ||
      (user.getNumReductionLoops() > 0 && user.getNumDpsInputs() > 1))
    return false;
  for (Operation *op = load->getNextNode(); op != user; op = op->getNextNode())
    if (isa<ktdp::StoreOp>(op) || op->getNumRegions() != 0)
      if (!isa<linalg::LinalgOp>(op))
        return false;
  return true;
}

LogicalResult FunctionLoader::loadMemory(Operation *op) {
  if (isa<ktdp::ConstructAccessTileOp, ktdp::ConstructIndirectAccessTileOp>(op))
    return loadAccessTile(op);
  if (auto ids = dyn_cast<ktdp::GetComputeTileIdOp>(op)) {
    if (op->getNumResults() > 3)
      return op->emitError("a grid has at most 3 dimensions, found ")
             << op->getNumResults() << " results";
    for (auto [d, result] : llvm::enumerate(op->getResults())) {
      auto &instr = add<ScalarInt>(op);
      instr.op = ScalarInt::TileId;
      instr.code = static_cast<uint8_t>(d);
      instr.dst = scalarSlot(result);
    }
    return success();
  }
  if (auto view = dyn_cast<ktdp::ConstructMemoryViewOp>(op)) {
    auto &instr = add<MemoryViewInstr>(op);
    auto type = cast<MemRefType>(view.getResult().getType());
    instr.dst = viewSlot(view.getResult());
    instr.elem = *elemOf(type);
    instr.offsetSlot = scalarSlot(view.getOffset());
    instr.isPartition =
        llvm::any_of(view.getResult().getUsers(), [](Operation *user) {
          return isa<ktdp::ConstructDistributedMemoryViewOp>(user);
        });
    auto space = dyn_cast<ktdp::MemorySpaceAttr>(view.getMemorySpace());
    if (!space || !(space.isGlobal() || space.isCtLocal()))
      return op->emitError("memory space is not supported: ")
             << view.getMemorySpace();
    instr.isLX = space.isCtLocal();
    if (instr.isLX && space.hasCore()) {
      instr.lxCore = space.getCore();
      if (instr.lxCore >= DeviceMemory::kMaxCores)
        return op->emitError("core ")
               << instr.lxCore << " does not exist, the device model has "
               << int64_t(DeviceMemory::kMaxCores);
    }
    for (OpFoldResult stride : view.getMixedStrides())
      instr.strides.push_back(sizeOf(stride));
    // Symbols bind to the dynamic sizes from left to right.
    SmallVector<std::pair<char, int>> symbols;
    for (Value size : view.getSizes()) {
      symbols.push_back({'c', static_cast<int>(symbols.size())});
      instr.symbolSlots.push_back(scalarSlot(size));
    }
    SmallVector<OpFoldResult> sizes = view.getMixedSizes();
    IntegerSet set = view.getCoordinateSet();
    std::optional<ktdp::BoxBounds> box = ktdp::matchBoxSet(set);
    bool useBox = box && set.getNumDims() == sizes.size() &&
                  set.getNumSymbols() <= symbols.size();
    unsigned dynamic = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      LinearForm upper;
      if (std::optional<int64_t> constant = getConstantIntValue(sizes[d]);
          constant && isa<Attribute>(sizes[d])) {
        upper.constant = *constant - 1;
      } else {
        upper.constant = -1;
        upper.captured.push_back({static_cast<int>(dynamic++), 1});
      }
      int lowerForm = -1, upperForm = -1;
      if (useBox) {
        lowerForm = addForm(op, instr.bounds, box->lower[d], {}, symbols);
        upperForm = addForm(op, instr.bounds, box->upper[d], {}, symbols);
        if (lowerForm < 0 || upperForm < 0)
          return failure();
        if (!instr.bounds.atoms.empty())
          return op->emitError("coordinate_set divides a symbol, which is not "
                               "supported");
      } else {
        lowerForm = instr.bounds.addForm({});
        upperForm = instr.bounds.addForm(std::move(upper));
      }
      instr.lowerForms.push_back(lowerForm);
      instr.upperForms.push_back(upperForm);
    }
    return success();
  }
  if (auto view = dyn_cast<ktdp::ConstructDistributedMemoryViewOp>(op)) {
    if (view.getPartitions().empty())
      return op->emitError("distributed view without partitions");
    auto type = cast<MemRefType>(view.getResult().getType());
    SmallVector<int64_t> extents(type.getRank(), 0);
    bool isKnown = true;
    for (Value partition : view.getPartitions()) {
      auto part = partition.getDefiningOp<ktdp::ConstructMemoryViewOp>();
      if (!part || !partition.hasOneUse())
        return op->emitError("partitions must be results of "
                             "construct_memory_view without other users");
      std::optional<ktdp::BoxBounds> box =
          ktdp::matchBoxSet(part.getCoordinateSet());
      if (!box || static_cast<int64_t>(box->upper.size()) != type.getRank())
        return part->emitError("coordinate_set of a partition must be a box, "
                               "found ")
               << IntegerSetAttr::get(part.getCoordinateSet());
      for (int64_t d = 0; d < type.getRank(); ++d) {
        auto upper = dyn_cast<AffineConstantExpr>(box->upper[d]);
        isKnown &= static_cast<bool>(upper);
        if (upper)
          extents[d] = std::max(extents[d], upper.getValue() + 1);
      }
    }
    for (int64_t d = 0; isKnown && d < type.getRank(); ++d)
      if (!type.isDynamicDim(d) && type.getDimSize(d) != extents[d])
        return op->emitError("declared size ")
               << type.getDimSize(d) << " of dimension " << d
               << " does not match the partitions' extent " << extents[d];
    return success();
  }
  if (auto load = dyn_cast<ktdp::LoadOp>(op)) {
    Type base = ktdp::getBaseElementType(load.getTile());
    if (!base)
      return op->emitError("access tile does not come from a construct op");
    if (elemOf(base) != elemOf(load.getResult().getType()))
      return op->emitError("element type of the data tile is ")
             << getElementTypeOrSelf(load.getResult().getType())
             << ", that of the view is " << base;
    auto &instr = add<LoadInstr>(op);
    instr.dst = tensorSlot(load.getResult());
    instr.tile = tileSlot(load.getTile());
    instr.elem = *elemOf(base);
    function.accessesMemory = true;
    // Structured loops read any order: do not transpose for them.
    auto isLoopInput = [](OpOperand &operand) {
      auto user = dyn_cast<linalg::LinalgOp>(operand.getOwner());
      return user && user.isDpsInput(&operand);
    };
    AccessPlan &p = accessTiles.lookup(load.getTile())->plan;
    if (!p.partitionSlots.empty())
      return success();
    instr.isDeferred = canDefer(load);
    p.denseInnermost = p.denseVar >= 0 && p.denseVar + 1 != p.rank &&
                       load.getTile().hasOneUse() &&
                       llvm::all_of(load.getResult().getUses(), isLoopInput);
    return success();
  }
  if (auto store = dyn_cast<ktdp::StoreOp>(op)) {
    Type base = ktdp::getBaseElementType(store.getTile());
    if (!base)
      return op->emitError("access tile does not come from a construct op");
    if (elemOf(base) != elemOf(store.getData().getType()))
      return op->emitError("element type of the data tile is ")
             << getElementTypeOrSelf(store.getData().getType())
             << ", that of the view is " << base;
    auto &instr = add<StoreInstr>(op);
    instr.data = use(store.getData(), op);
    instr.tile = tileSlot(store.getTile());
    instr.elem = *elemOf(base);
    function.accessesMemory = true;
    return success();
  }
  return loadInterTile(op);
}

LogicalResult FunctionLoader::loadAccessTile(Operation *op) {
  auto &instr = add<AccessTileInstr>(op);
  AccessPlan &p = instr.plan;
  accessTiles[op->getResult(0)] = &instr;
  instr.dst = tileSlot(op->getResult(0));
  auto tileType = cast<ShapedType>(op->getResult(0).getType());
  p.rank = static_cast<int>(tileType.getRank());
  for (int64_t size : tileType.getShape())
    p.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);

  auto direct = dyn_cast<ktdp::ConstructAccessTileOp>(op);
  auto indirect = dyn_cast<ktdp::ConstructIndirectAccessTileOp>(op);
  Value base = direct ? direct.getBase() : indirect.getBase();
  auto distributed =
      base.getDefiningOp<ktdp::ConstructDistributedMemoryViewOp>();
  if (!isa<MemRefType>(base.getType()) ||
      (!base.getDefiningOp<ktdp::ConstructMemoryViewOp>() && !distributed))
    return op->emitError("base must be a result of construct_memory_view or "
                         "construct_distributed_memory_view, found ")
           << base.getType();
  if (distributed) {
    if (indirect)
      return op->emitError("indirect access to a distributed view is not "
                           "supported by the runtime");
    for (Value partition : distributed.getPartitions())
      p.partitionSlots.push_back(viewSlot(partition));
  } else {
    p.viewSlot = viewSlot(base);
  }
  int64_t baseRank = cast<MemRefType>(base.getType()).getRank();

  // Captured values, then symbols.
  ValueRange captured = direct ? ValueRange(direct.getIndices())
                               : ValueRange(indirect.getCaptured());
  ValueRange symbolOperands = direct ? ValueRange(direct.getSymbolOperands())
                                     : ValueRange(indirect.getSymbolOperands());
  SmallVector<std::pair<char, int>> capturedLeaves, symbolLeaves;
  for (Value v : captured) {
    capturedLeaves.push_back({'c', static_cast<int>(p.capturedSlots.size())});
    p.capturedSlots.push_back(scalarSlot(v));
  }
  for (Value v : symbolOperands) {
    symbolLeaves.push_back({'c', static_cast<int>(p.capturedSlots.size())});
    p.capturedSlots.push_back(scalarSlot(v));
  }

  IntegerSet set =
      direct ? direct.getAccessTileSet() : indirect.getVariablesSpaceSet();
  AffineMap order =
      direct ? direct.getAccessTileOrder() : indirect.getVariablesSpaceOrder();
  std::optional<ktdp::BoxBounds> box = ktdp::matchBoxSet(set);
  if (!box)
    return op->emitError("set is not a box: ") << IntegerSetAttr::get(set);
  if (!order.isPermutation())
    return op->emitError("order does not permute its dimensions: ")
           << AffineMapAttr::get(order);
  if (static_cast<int>(order.getNumResults()) != p.rank)
    return op->emitError("order has ")
           << order.getNumResults() << " results, the tile " << p.rank
           << " dimensions";

  // Points come in the lexicographic order of order(point): tile dimension t
  // is set dimension order[t].
  SmallVector<std::pair<char, int>> variables(set.getNumDims());
  for (int t = 0; t < p.rank; ++t) {
    unsigned setDim = order.getDimPosition(t);
    variables[setDim] = {'v', t};
    int lower = addForm(op, p, box->lower[setDim], {}, symbolLeaves);
    int upper = addForm(op, p, box->upper[setDim], {}, symbolLeaves);
    if (lower < 0 || upper < 0)
      return failure();
    p.lowerForms.push_back(lower);
    p.upperForms.push_back(upper);
    int64_t lowest, highest;
    if (auto c = dyn_cast<AffineConstantExpr>(box->lower[setDim])) {
      lowest = c.getValue();
      if (auto d = dyn_cast<AffineConstantExpr>(box->upper[setDim])) {
        highest = d.getValue();
        int64_t size = std::max<int64_t>(highest - lowest + 1, 0);
        if (p.staticSizes[t] >= 0 && p.staticSizes[t] != size)
          return op->emitError("dimension ")
                 << t << " of the tile has " << p.staticSizes[t]
                 << " points, its set " << size;
      }
    }
  }

  if (direct) {
    AffineMap map = direct.getBaseMap();
    if (map.getNumResults() != baseRank)
      return op->emitError("subscripts have ")
             << map.getNumResults() << " dimensions, the base " << baseRank;
    // Symbols of the base map follow its dims among the operands.
    SmallVector<std::pair<char, int>> mapSymbols(
        capturedLeaves.begin() +
            std::min<size_t>(map.getNumDims(), capturedLeaves.size()),
        capturedLeaves.end());
    for (unsigned d = 0; d < map.getNumResults(); ++d) {
      LinearForm form;
      if (failed(addTerms(op, p, map.getResult(d), 1, capturedLeaves,
                          mapSymbols, form)))
        return failure();
      form.vars.push_back({variables[d].second, 1});
      AccessPlan::BaseDim dim;
      dim.form = p.addForm(std::move(form));
      p.dims.push_back(std::move(dim));
    }
  } else {
    if (static_cast<int64_t>(indirect.getPerDimSubscriptKinds().size()) !=
        baseRank)
      return op->emitError("found ")
             << indirect.getPerDimSubscriptKinds().size()
             << " subscripts, the base has " << baseRank << " dimensions";
    SmallVector<std::pair<char, int>> mapDims = capturedLeaves;
    mapDims.append(variables.begin(), variables.end());
    for (int64_t d = 0; d < baseRank; ++d) {
      AffineMap map = indirect.getSubscriptMap(d);
      AccessPlan::BaseDim dim;
      if (!indirect.isIndirect(d)) {
        dim.form = addForm(op, p, map.getResult(0), mapDims, {});
        if (dim.form < 0)
          return failure();
        p.dims.push_back(std::move(dim));
        continue;
      }
      dim.isIndirect = true;
      Value index = indirect.getIndexMemRef(d);
      auto indexType = dyn_cast<MemRefType>(index.getType());
      if (!indexType || !index.getDefiningOp<ktdp::ConstructMemoryViewOp>())
        return op->emitError(
            "index memref must be a result of construct_memory_view");
      if (!indexType.getElementType().isIntOrIndex() ||
          indexType.getElementType().isInteger(1))
        return op->emitError("index memref must hold integers, found ")
               << indexType;
      dim.indexView = static_cast<int>(p.indexViewSlots.size());
      p.indexViewSlots.push_back(viewSlot(index));
      for (AffineExpr expr : map.getResults()) {
        int form = addForm(op, p, expr, mapDims, {});
        if (form < 0)
          return failure();
        dim.indexForms.push_back(form);
      }
      p.dims.push_back(std::move(dim));
    }
  }
  p.finish();
  if (p.groups.size() > kMaxRank)
    return op->emitError("more than ")
           << kMaxRank << " independent index groups";
  return success();
}

//===----------------------------------------------------------------------===//
// tensor dialect
//===----------------------------------------------------------------------===//

LogicalResult FunctionLoader::loadTensorOp(Operation *op) {
  auto sizesOf = [&](ShapedType type, ValueRange dynamic) {
    std::vector<SizeSource> sizes;
    auto next = dynamic.begin();
    for (int64_t size : type.getShape()) {
      SizeSource source;
      if (ShapedType::isDynamic(size))
        source.slot = scalarSlot(*next++);
      else
        source.constant = size;
      sizes.push_back(source);
    }
    return sizes;
  };
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    auto &instr = add<EmptyInstr>(op);
    instr.dst = tensorSlot(empty);
    instr.sizes = sizesOf(empty.getType(), empty.getDynamicSizes());
    return success();
  }
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    auto &instr = add<SplatInstr>(op);
    instr.dst = tensorSlot(splat);
    instr.elem = *elemOf(splat.getType());
    instr.sizes =
        sizesOf(cast<ShapedType>(splat.getType()), splat.getDynamicSizes());
    instr.values.push_back(scalarSlot(splat.getInput()));
    return success();
  }
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op)) {
    auto &instr = add<SplatInstr>(op);
    instr.dst = tensorSlot(elements);
    instr.elem = *elemOf(elements.getType());
    instr.sizes = sizesOf(cast<ShapedType>(elements.getType()), {});
    for (Value v : elements.getElements())
      instr.values.push_back(scalarSlot(v));
    return success();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    auto &instr = add<ExtractInstr>(op);
    instr.dst = scalarSlot(extract.getResult());
    instr.source = tensorSlot(extract.getTensor());
    instr.elem = *elemOf(extract.getResult().getType());
    for (Value v : extract.getIndices())
      instr.indices.push_back(scalarSlot(v));
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
    auto &instr = add<InsertInstr>(op);
    instr.dst = tensorSlot(insert.getResult());
    instr.dest = use(insert.getDest(), op);
    instr.elem = *elemOf(insert.getResult().getType());
    instr.value = scalarSlot(insert.getScalar());
    for (Value v : insert.getIndices())
      instr.indices.push_back(scalarSlot(v));
    return success();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto &instr = add<DimInstr>(op);
    instr.dst = scalarSlot(dim.getResult());
    instr.source = tensorSlot(dim.getSource());
    instr.index = scalarSlot(dim.getIndex());
    return success();
  }
  auto slice = [&](auto sliceOp, SliceInstr &instr) {
    for (OpFoldResult v : sliceOp.getMixedOffsets())
      instr.offsets.push_back(sizeOf(v));
    for (OpFoldResult v : sliceOp.getMixedSizes())
      instr.sizes.push_back(sizeOf(v));
    for (OpFoldResult v : sliceOp.getMixedStrides())
      instr.strides.push_back(sizeOf(v));
    instr.dst = tensorSlot(op->getResult(0));
    instr.elem = *elemOf(op->getResult(0).getType());
    instr.source = use(sliceOp.getSource(), op);
  };
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
    auto &instr = add<SliceInstr>(op);
    slice(extract, instr);
    llvm::SmallBitVector dropped = extract.getDroppedDims();
    for (unsigned d = 0; d < dropped.size(); ++d)
      instr.dropped.push_back(dropped.test(d));
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    auto &instr = add<SliceInstr>(op);
    slice(insert, instr);
    instr.isInsert = true;
    instr.dest = use(insert.getDest(), op);
    return success();
  }
  auto reshape = [&](Value source) -> ReshapeInstr & {
    auto &instr = add<ReshapeInstr>(op);
    instr.dst = tensorSlot(op->getResult(0));
    instr.source = use(source, op);
    instr.elem = *elemOf(op->getResult(0).getType());
    return instr;
  };
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    auto &instr = reshape(collapse.getSrc());
    instr.isCollapse = true;
    for (const ReassociationIndices &group : collapse.getReassociationIndices())
      instr.groups.emplace_back(group.begin(), group.end());
    return success();
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    auto &instr = reshape(expand.getSrc());
    for (OpFoldResult size : expand.getMixedOutputShape())
      instr.sizes.push_back(sizeOf(size));
    return success();
  }
  if (auto reshapeOp = dyn_cast<tensor::ReshapeOp>(op)) {
    auto type = cast<RankedTensorType>(reshapeOp.getResult().getType());
    if (!type.hasStaticShape())
      return op->emitError("tensor.reshape to a dynamic shape is not supported "
                           "by the runtime");
    reshape(reshapeOp.getSource()).sizes = sizesOf(type, {});
    return success();
  }
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return loadGenerate(
        op, sizesOf(generate.getType(), generate.getDynamicExtents()));
  if (auto cast_ = dyn_cast<tensor::CastOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(cast_.getType());
    if (!type || !isa<RankedTensorType>(cast_.getSource().getType()))
      return op->emitError("cast of unranked tensors is not supported");
    auto &instr = reshape(cast_.getSource());
    instr.keepShape = true;
    for (int64_t size : type.getShape())
      instr.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
    return success();
  }
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

//===----------------------------------------------------------------------===//
// Functions and modules
//===----------------------------------------------------------------------===//

LogicalResult FunctionLoader::load(func::FuncOp op) {
  if (!op.getBody().hasOneBlock())
    return op->emitError("functions of more than one block are not supported");
  if (op.getNumResults() != 0)
    return op->emitError("functions with results are not supported");
  for (BlockArgument arg : op.getArguments()) {
    if (!isScalar(arg.getType()))
      return op->emitError("argument ")
             << arg.getArgNumber() << " has type " << arg.getType()
             << ", expected index, an integer or a float";
    function.argSlots.push_back(scalarSlot(arg));
  }
  return loadBlock(op.getBody().front(), function.body);
}

/// The element type of a view that starts at `value`, directly or after
/// additions; null if there is none.
static Type viewElementType(Value value, int depth = 0) {
  if (depth > 8)
    return {};
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto view = dyn_cast<ktdp::ConstructMemoryViewOp>(user)) {
      if (view.getOffset() == value)
        return getElementTypeOrSelf(view.getResult().getType());
    } else if (auto add = dyn_cast<arith::AddIOp>(user)) {
      if (Type type = viewElementType(add.getResult(), depth + 1))
        return type;
    } else if (auto apply = dyn_cast<affine::AffineApplyOp>(user)) {
      if (Type type = viewElementType(apply.getResult(), depth + 1))
        return type;
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      auto module = call->getParentOfType<ModuleOp>();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal() &&
          use.getOperandNumber() < callee.getNumArguments())
        if (Type type = viewElementType(
                callee.getArgument(use.getOperandNumber()), depth + 1))
          return type;
    }
  }
  return {};
}

static LogicalResult loadArguments(func::FuncOp entry, Plan &plan,
                                   const NameOfArgument &nameOf) {
  for (BlockArgument arg : entry.getArguments()) {
    unsigned i = arg.getArgNumber();
    ArgumentInfo info;
    info.name = nameOf(arg.getLoc());
    if (info.name.empty())
      info.name = "arg" + std::to_string(i);
    if (auto name = entry.getArgAttrOfType<StringAttr>(i, "ktdp.name"))
      info.name = name.getValue().str();
    info.isFloat = isa<FloatType>(arg.getType());
    if (arg.getType().isIndex())
      if (Type type = viewElementType(arg)) {
        info.kind = ArgumentInfo::Array;
        std::optional<Elem> elem = elemOf(type);
        if (elem) {
          info.elementSizeInBytes = deviceSize(*elem);
          info.elementType = elemName(*elem);
        }
      }
    if (auto pool = entry.getArgAttrOfType<IntegerAttr>(i, "ktdp.pool_size")) {
      info.kind = ArgumentInfo::Pool;
      if (pool.getValue().getSExtValue() < 0)
        return entry->emitError("argument ")
               << i << ": pool size " << pool.getValue().getSExtValue()
               << " is negative";
      info.poolBytes = pool.getValue().getZExtValue();
    }
    if (Attribute attr = entry.getArgAttr(i, "ktdp.layout")) {
      auto layout = dyn_cast<ktdp::LayoutAttr>(attr);
      if (!layout)
        return entry->emitError("argument ")
               << i << ": ktdp.layout is not a #ktdp.layout";
      auto format = spyre::parseDataFormat(layout.getFormat().str());
      auto dtype = spyre::parseHostDtype(layout.getHostDtype().str());
      if (!format || !dtype)
        return entry->emitError("argument ")
               << i << ": unknown format or dtype in " << attr;
      info.kind = ArgumentInfo::Array;
      info.dtype = *dtype;
      info.shape.assign(layout.getShape().begin(), layout.getShape().end());
      info.strides.assign(layout.getStrides().begin(),
                          layout.getStrides().end());
      spyre::ElementArrangement arrangement =
          spyre::ElementArrangement::STANDARD;
      if (layout.getArrangement() == "DL16_TO_FP32")
        arrangement = spyre::ElementArrangement::DL16_TO_FP32;
      else if (layout.getArrangement() == "QFP8CH")
        arrangement = spyre::ElementArrangement::QFP8CH;
      else if (layout.getArrangement() == "EXX2")
        arrangement = spyre::ElementArrangement::EXX2;
      try {
        info.layout = spyre::TensorLayout(layout.getDeviceSize().vec(),
                                          layout.getStrideMap().vec(), *format,
                                          arrangement);
      } catch (const std::exception &e) {
        return entry->emitError("argument ") << i << ": " << e.what();
      }
      info.elementSizeInBytes = spyre::storageBytes(*format);
    }
    plan.arguments.push_back(std::move(info));
  }
  return success();
}

static func::FuncOp findEntry(ModuleOp module, llvm::StringRef name) {
  if (!name.empty()) {
    auto entry = module.lookupSymbol<func::FuncOp>(name);
    if (!entry)
      module.emitError("no function @") << name;
    else if (entry.isExternal())
      entry->emitError("entry function has no body");
    else
      return entry;
    return {};
  }
  llvm::SmallPtrSet<Operation *, 8> called;
  module.walk([&](func::CallOp call) {
    if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
      called.insert(callee);
  });
  SmallVector<func::FuncOp> sequences, roots;
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal())
      continue;
    if (called.contains(f))
      continue;
    roots.push_back(f);
    if (!f->hasAttr(ktdp::kGridAttr))
      sequences.push_back(f);
  }
  if (sequences.size() == 1)
    return sequences.front();
  if (roots.size() == 1)
    return roots.front();
  if (sequences.empty())
    module.emitError("no sequence function (one without a grid that nothing "
                     "calls): name an entry");
  else
    module.emitError("found ")
        << sequences.size() << " sequence functions, starting with @"
        << sequences[0].getName() << " and @" << sequences[1].getName()
        << ": name an entry";
  return {};
}

std::shared_ptr<Program>
spyre::runtime::loadProgram(ModuleOp module, const LoadOptions &options) {
  return loadProgramWithNames(module, options,
                              [](Location) { return std::string(); });
}

std::shared_ptr<Program> spyre::runtime::loadProgramWithNames(
    ModuleOp module, const LoadOptions &options, const NameOfArgument &nameOf) {
  func::FuncOp entry = findEntry(module, options.entry);
  if (!entry)
    return nullptr;
  auto impl = std::make_unique<Program::Impl>();
  Plan &plan = impl->plan;
  plan.name = entry.getName().str();
  LocationTable locations(plan);

  // Only what the entry reaches; callees before callers, no recursion.
  llvm::StringMap<Function *> functions;
  SmallVector<func::FuncOp> order;
  llvm::DenseMap<Operation *, int> state; // 1: open, 2: done
  std::function<LogicalResult(func::FuncOp)> visit =
      [&](func::FuncOp f) -> LogicalResult {
    int &mark = state[f];
    if (mark == 2)
      return success();
    if (mark == 1)
      return f->emitError("recursive calls are not supported");
    mark = 1;
    WalkResult result = f.walk([&](func::CallOp call) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal()) {
        call->emitError("called function @")
            << call.getCallee() << " has no body";
        return WalkResult::interrupt();
      }
      return failed(visit(callee)) ? WalkResult::interrupt()
                                   : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    state[f] = 2;
    order.push_back(f);
    return success();
  };
  if (failed(visit(entry)))
    return nullptr;

  for (func::FuncOp f : order) {
    auto function = std::make_unique<Function>();
    function->name = f.getName().str();
    function->location = locations.get(f->getLoc());
    function->index = static_cast<int>(plan.functions.size());
    FailureOr<std::optional<SmallVector<int64_t>>> grid = ktdp::getGrid(f);
    if (failed(grid))
      return nullptr;
    if (grid->has_value()) {
      function->hasGrid = true;
      int64_t product = 1;
      for (auto [d, size] : llvm::enumerate(**grid)) {
        if (d >= 3 || size > DeviceMemory::kMaxCores ||
            (product *= size) > DeviceMemory::kMaxCores) {
          f->emitError("grid is too large: the device model has ")
              << int64_t(DeviceMemory::kMaxCores) << " cores in 3 dimensions";
          return nullptr;
        }
        function->grid[d] = size;
      }
    }
    FunctionLoader loader(plan, locations, *function, functions);
    if (failed(loader.load(f)))
      return nullptr;
    if (function->hasCalls && function->accessesMemory) {
      f->emitError("a sequence function cannot access memory itself");
      return nullptr;
    }
    functions[f.getName()] = function.get();
    plan.entry = function.get();
    plan.functions.push_back(std::move(function));
  }
  if (failed(loadArguments(entry, plan, nameOf)))
    return nullptr;
  return std::make_shared<Program>(std::move(impl));
}

std::shared_ptr<Program> spyre::runtime::loadProgram(ModuleOp module,
                                                     llvm::StringRef entry,
                                                     LoadOptions options) {
  if (!entry.empty())
    options.entry = entry.str();
  return loadProgram(module, options);
}

void spyre::runtime::registerProgramDialects(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
              ktdp::KTDPDialect, linalg::LinalgDialect, math::MathDialect,
              memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
}
