// SPDX-License-Identifier: Apache-2.0
//===- LoaderBody.cpp - Decoding bodies, linalg and elementwise ops -------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// One scalar operation
//===----------------------------------------------------------------------===//

namespace {
struct Decoded {
  BodyOp::Kind kind;
  uint8_t code;
  bool isSigned = true;
};
} // namespace

static Decoded unary(UnaryOp op) { return {BodyOp::Unary, uint8_t(op)}; }
static Decoded binary(BinaryOp op) { return {BodyOp::Binary, uint8_t(op)}; }
static Decoded integer(IntBinaryOp op) {
  return {BodyOp::IntBinary, uint8_t(op)};
}
static Decoded intUnary(IntUnaryOp op) {
  return {BodyOp::IntUnary, uint8_t(op)};
}

static std::optional<Decoded> decode(Operation *op) {
  using Result = std::optional<Decoded>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](arith::AddFOp) { return binary(BinaryOp::Add); })
      .Case([](arith::SubFOp) { return binary(BinaryOp::Sub); })
      .Case([](arith::MulFOp) { return binary(BinaryOp::Mul); })
      .Case([](arith::DivFOp) { return binary(BinaryOp::Div); })
      .Case([](arith::RemFOp) { return binary(BinaryOp::Rem); })
      .Case([](arith::MaximumFOp) { return binary(BinaryOp::Maximum); })
      .Case([](arith::MinimumFOp) { return binary(BinaryOp::Minimum); })
      .Case([](arith::MaxNumFOp) { return binary(BinaryOp::MaxNum); })
      .Case([](arith::MinNumFOp) { return binary(BinaryOp::MinNum); })
      .Case([](math::PowFOp) { return binary(BinaryOp::Pow); })
      .Case([](math::Atan2Op) { return binary(BinaryOp::Atan2); })
      .Case([](math::CopySignOp) { return binary(BinaryOp::CopySign); })
      .Case([](arith::NegFOp) { return unary(UnaryOp::Neg); })
      .Case([](math::AbsFOp) { return unary(UnaryOp::Abs); })
      .Case([](math::ExpOp) { return unary(UnaryOp::Exp); })
      .Case([](math::Exp2Op) { return unary(UnaryOp::Exp2); })
      .Case([](math::ExpM1Op) { return unary(UnaryOp::Expm1); })
      .Case([](math::LogOp) { return unary(UnaryOp::Log); })
      .Case([](math::Log2Op) { return unary(UnaryOp::Log2); })
      .Case([](math::Log10Op) { return unary(UnaryOp::Log10); })
      .Case([](math::Log1pOp) { return unary(UnaryOp::Log1p); })
      .Case([](math::SqrtOp) { return unary(UnaryOp::Sqrt); })
      .Case([](math::RsqrtOp) { return unary(UnaryOp::Rsqrt); })
      .Case([](math::SinOp) { return unary(UnaryOp::Sin); })
      .Case([](math::CosOp) { return unary(UnaryOp::Cos); })
      .Case([](math::TanOp) { return unary(UnaryOp::Tan); })
      .Case([](math::AsinOp) { return unary(UnaryOp::Asin); })
      .Case([](math::AcosOp) { return unary(UnaryOp::Acos); })
      .Case([](math::AtanOp) { return unary(UnaryOp::Atan); })
      .Case([](math::SinhOp) { return unary(UnaryOp::Sinh); })
      .Case([](math::CoshOp) { return unary(UnaryOp::Cosh); })
      .Case([](math::TanhOp) { return unary(UnaryOp::Tanh); })
      .Case([](math::AsinhOp) { return unary(UnaryOp::Asinh); })
      .Case([](math::AcoshOp) { return unary(UnaryOp::Acosh); })
      .Case([](math::AtanhOp) { return unary(UnaryOp::Atanh); })
      .Case([](math::ErfOp) { return unary(UnaryOp::Erf); })
      .Case([](math::ErfcOp) { return unary(UnaryOp::Erfc); })
      .Case([](math::CbrtOp) { return unary(UnaryOp::Cbrt); })
      .Case([](math::FloorOp) { return unary(UnaryOp::Floor); })
      .Case([](math::CeilOp) { return unary(UnaryOp::Ceil); })
      .Case([](math::RoundOp) { return unary(UnaryOp::Round); })
      .Case([](math::RoundEvenOp) { return unary(UnaryOp::RoundEven); })
      .Case([](math::TruncOp) { return unary(UnaryOp::Trunc); })
      .Case([](math::FmaOp) { return Decoded{BodyOp::Fma, 0}; })
      .Case([](arith::TruncFOp) { return Decoded{BodyOp::Round, 0}; })
      .Case([](arith::ExtFOp) {
        return Decoded{BodyOp::Unary, uint8_t(UnaryOp::Copy)};
      })
      .Case([](arith::CmpFOp cmp) {
        return Decoded{BodyOp::CompareF, uint8_t(cmp.getPredicate())};
      })
      .Case([](arith::CmpIOp cmp) {
        return Decoded{BodyOp::CompareI, uint8_t(cmp.getPredicate())};
      })
      .Case([](arith::SelectOp) { return Decoded{BodyOp::Select, 0}; })
      .Case([](arith::AddIOp) { return integer(IntBinaryOp::Add); })
      .Case([](arith::SubIOp) { return integer(IntBinaryOp::Sub); })
      .Case([](arith::MulIOp) { return integer(IntBinaryOp::Mul); })
      .Case([](arith::DivSIOp) { return integer(IntBinaryOp::DivS); })
      .Case([](arith::DivUIOp) { return integer(IntBinaryOp::DivU); })
      .Case([](arith::FloorDivSIOp) { return integer(IntBinaryOp::FloorDivS); })
      .Case([](arith::CeilDivSIOp) { return integer(IntBinaryOp::CeilDivS); })
      .Case([](arith::CeilDivUIOp) { return integer(IntBinaryOp::CeilDivU); })
      .Case([](arith::RemSIOp) { return integer(IntBinaryOp::RemS); })
      .Case([](arith::RemUIOp) { return integer(IntBinaryOp::RemU); })
      .Case([](arith::AndIOp) { return integer(IntBinaryOp::And); })
      .Case([](arith::OrIOp) { return integer(IntBinaryOp::Or); })
      .Case([](arith::XOrIOp) { return integer(IntBinaryOp::Xor); })
      .Case([](arith::ShLIOp) { return integer(IntBinaryOp::Shl); })
      .Case([](arith::ShRSIOp) { return integer(IntBinaryOp::ShrS); })
      .Case([](arith::ShRUIOp) { return integer(IntBinaryOp::ShrU); })
      .Case([](arith::MinSIOp) { return integer(IntBinaryOp::MinS); })
      .Case([](arith::MaxSIOp) { return integer(IntBinaryOp::MaxS); })
      .Case([](arith::MinUIOp) { return integer(IntBinaryOp::MinU); })
      .Case([](arith::MaxUIOp) { return integer(IntBinaryOp::MaxU); })
      .Case([](math::IPowIOp) { return Decoded{BodyOp::IntPower, 0}; })
      .Case([](math::IsNaNOp) {
        return Decoded{BodyOp::CompareF, uint8_t(FloatPredicate::UNO)};
      })
      .Case([](math::IsInfOp) {
        return Decoded{BodyOp::CompareF, uint8_t(FloatPredicate::OEQ)};
      })
      .Case([](math::IsFiniteOp) {
        return Decoded{BodyOp::CompareF, uint8_t(FloatPredicate::OLT)};
      })
      .Case([](math::ClampFOp) { return binary(BinaryOp::Minimum); })
      .Case([](math::AbsIOp) { return intUnary(IntUnaryOp::Abs); })
      .Case([](math::CtPopOp) { return intUnary(IntUnaryOp::CtPop); })
      .Case(
          [](math::CountLeadingZerosOp) { return intUnary(IntUnaryOp::Ctlz); })
      .Case(
          [](math::CountTrailingZerosOp) { return intUnary(IntUnaryOp::Cttz); })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [](auto) { return Decoded{BodyOp::CastInt, 0, true}; })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>(
          [](auto) { return Decoded{BodyOp::CastInt, 0, false}; })
      .Case(
          [](arith::SIToFPOp) { return Decoded{BodyOp::IntToFloat, 0, true}; })
      .Case(
          [](arith::UIToFPOp) { return Decoded{BodyOp::IntToFloat, 0, false}; })
      .Case(
          [](arith::FPToSIOp) { return Decoded{BodyOp::FloatToInt, 0, true}; })
      .Case(
          [](arith::FPToUIOp) { return Decoded{BodyOp::FloatToInt, 0, false}; })
      .Case([](arith::BitcastOp) { return Decoded{BodyOp::Bitcast, 0}; })
      .Default([](Operation *) { return Result(); });
}

bool spyre::runtime::isBodyOp(Operation *op) {
  return decode(op).has_value() && op->getNumResults() == 1;
}

int FunctionLoader::emitBodyOp(Operation *op, BodyProgram &body,
                               llvm::function_ref<int(Value)> reg) {
  std::optional<Decoded> decoded = decode(op);
  if (!decoded) {
    op->emitError("operation '")
        << op->getName() << "' is not supported in a body";
    return -1;
  }
  std::optional<Elem> elem = elemOf(op->getResult(0).getType());
  std::optional<Elem> source = elemOf(op->getOperand(0).getType());
  for (Value operand : op->getOperands())
    if (!elemOf(operand.getType()))
      source = std::nullopt;
  if (!elem || !source) {
    op->emitError("element type is not supported: ")
        << (elem ? op->getOperand(0).getType() : op->getResult(0).getType());
    return -1;
  }
  int operands[3] = {-1, -1, -1};
  for (unsigned i = 0; i < op->getNumOperands() && i < 3; ++i)
    if ((operands[i] = reg(op->getOperand(i))) < 0)
      return -1;
  // An extension changes nothing on the host.
  if (isa<arith::ExtFOp>(op))
    return operands[0];
  if (isa<arith::BitcastOp>(op)) {
    bool words = (*elem == Elem::F32 || *elem == Elem::I32) &&
                 (*source == Elem::F32 || *source == Elem::I32);
    if (*elem == *source)
      return operands[0];
    if (!words) {
      op->emitError("bitcast is supported between f32 and i32 only, found ")
          << op->getOperand(0).getType() << " to "
          << op->getResult(0).getType();
      return -1;
    }
  }
  // Operations of several steps: all but the last.
  auto addStep = [&](BodyOp::Kind kind, uint8_t code, int a, int b) {
    BodyOp step;
    step.kind = kind;
    step.op = code;
    step.elem = step.source = *source;
    step.a = a;
    step.b = b;
    step.dst = body.addReg(*source);
    step.location = locations.get(op->getLoc());
    body.ops.push_back(step);
    return step.dst;
  };
  if (isa<math::IsNaNOp>(op)) {
    operands[1] = operands[0];
  } else if (isa<math::IsInfOp, math::IsFiniteOp>(op)) {
    operands[0] =
        addStep(BodyOp::Unary, uint8_t(UnaryOp::Abs), operands[0], -1);
    BodyConstant infinity;
    infinity.elem = Elem::F32;
    infinity.value.i = 0;
    infinity.value.f = std::numeric_limits<float>::infinity();
    infinity.reg = body.addReg(Elem::F32);
    body.constants.push_back(infinity);
    operands[1] = infinity.reg;
  } else if (isa<math::ClampFOp>(op)) {
    operands[0] = addStep(BodyOp::Binary, uint8_t(BinaryOp::Maximum),
                          operands[0], operands[1]);
    operands[1] = operands[2];
    operands[2] = -1;
  }
  BodyOp bodyOp;
  bodyOp.kind = decoded->kind;
  bodyOp.op = decoded->code;
  bodyOp.isSigned = decoded->isSigned;
  bodyOp.elem = *elem;
  bodyOp.source = *source;
  bodyOp.a = operands[0];
  bodyOp.b = operands[1];
  bodyOp.c = operands[2];
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    bodyOp.noWrap = flags.hasNoSignedWrap();
  bodyOp.dst = body.addReg(*elem);
  bodyOp.location = locations.get(op->getLoc());
  if (body.regElem.size() > BodyFrame::kMaxRegs) {
    op->emitError("body needs more than ")
        << int(BodyFrame::kMaxRegs) << " values";
    return -1;
  }
  body.ops.push_back(bodyOp);
  return bodyOp.dst;
}

int FunctionLoader::constantRegister(Attribute value, Type type,
                                     BodyProgram &body) {
  std::optional<Elem> elem = elemOf(type);
  if (!elem)
    return -1;
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      return -1;
    value = dense.getSplatValue<Attribute>();
  }
  BodyConstant constant;
  constant.elem = *elem;
  constant.value.i = 0;
  if (auto f = dyn_cast<FloatAttr>(value)) {
    llvm::APFloat number = f.getValue();
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    constant.value.f = number.convertToFloat();
  } else if (auto i = dyn_cast<IntegerAttr>(value)) {
    constant.value.i = *elem == Elem::I1
                           ? static_cast<int64_t>(i.getValue().getZExtValue())
                           : i.getValue().getSExtValue();
  } else {
    return -1;
  }
  constant.reg = body.addReg(*elem);
  body.constants.push_back(constant);
  return constant.reg;
}

//===----------------------------------------------------------------------===//
// Elementwise ops on tensors
//===----------------------------------------------------------------------===//

LogicalResult FunctionLoader::loadElementwise(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (isa<arith::ExtFOp>(op)) {
    auto &instr = add<ReshapeInstr>(op);
    instr.dst = tensorSlot(op->getResult(0));
    instr.source = use(op->getOperand(0), op);
    instr.keepShape = true;
    instr.elem = *elemOf(type);
    return success();
  }
  auto &instr = add<GenericInstr>(op);
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = static_cast<int>(type.getRank());
  instr.isReduction.assign(type.getRank(), false);
  std::vector<MapResult> identity(type.getRank());
  for (int d = 0; d < type.getRank(); ++d) {
    identity[d].terms = {{d, 1}};
    instr.extentSource.push_back({0, d});
  }

  BodyProgram &body = instr.body;
  llvm::SmallDenseMap<Value, int> regs;
  Value shapeOf;
  // At least one operand has to be a tensor in memory: it gives the shape.
  unsigned numConstants = 0, numTensors = 0;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType())) {
      ++numTensors;
      DenseElementsAttr dense;
      numConstants +=
          matchPattern(operand, m_Constant(&dense)) && dense && dense.isSplat();
    }
  bool foldConstants = numConstants < numTensors;
  for (Value operand : op->getOperands()) {
    if (regs.count(operand))
      continue;
    if (!isa<RankedTensorType>(operand.getType())) {
      Attribute value;
      int reg = -1;
      if (matchPattern(operand, m_Constant(&value)))
        reg = constantRegister(value, operand.getType(), body);
      if (reg < 0) {
        std::optional<Elem> elem = elemOf(operand.getType());
        if (!elem)
          return op->emitError("operand type is not supported: ")
                 << operand.getType();
        reg = body.addReg(*elem);
        body.captured.push_back({reg, scalarSlot(operand)});
      }
      regs[operand] = reg;
      continue;
    }
    DenseElementsAttr dense;
    if (foldConstants && matchPattern(operand, m_Constant(&dense)) && dense &&
        dense.isSplat()) {
      int reg = constantRegister(dense, operand.getType(), body);
      if (reg >= 0) {
        regs[operand] = reg;
        continue;
      }
    }
    std::optional<Elem> elem = elemOf(operand.getType());
    if (!elem)
      return op->emitError("element type is not supported: ")
             << operand.getType();
    GenericOperand input;
    input.use = use(operand, op);
    input.elem = *elem;
    input.map = identity;
    instr.inputs.push_back(std::move(input));
    int reg = body.addReg(*elem);
    body.inputs.push_back(reg);
    regs[operand] = reg;
    if (!shapeOf)
      shapeOf = operand;
  }
  int result = emitBodyOp(op, body, [&](Value v) { return regs.lookup(v); });
  if (result < 0)
    return failure();
  GenericOperand output;
  output.use = {tensorSlot(shapeOf), false};
  output.elem = *elemOf(type);
  output.map = identity;
  instr.outputs.push_back(std::move(output));
  body.inputs.push_back(body.addReg(*elemOf(type)));
  body.yields.push_back(result);
  instr.results.push_back(tensorSlot(op->getResult(0)));
  instr.readsOutput.push_back(false);
  instr.coversOutput.push_back(true);
  instr.isInPlaceSafe = true;
  body.finish();
  return success();
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

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
                                           std::vector<SizeSource> sizes) {
  int rank = static_cast<int>(sizes.size());
  auto &empty = add<EmptyInstr>(op);
  int shape = function.numTensors++;
  empty.dst = shape;
  empty.sizes = std::move(sizes);
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
  int result =
      bodyRegister(op, block, block.getTerminator()->getOperand(0), body, regs);
  if (result < 0)
    return failure();
  body.yields.push_back(result);
  instr.outputs.push_back(std::move(output));
  instr.results.push_back(tensorSlot(op->getResult(0)));
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
