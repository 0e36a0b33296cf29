// SPDX-License-Identifier: Apache-2.0
//===- LoaderScalarProgram.cpp - Bodies, and elementwise operations -------===//

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
  ScalarOp::Kind kind;
  uint8_t code;
  bool isSigned = true;
};
} // namespace

static Decoded unary(UnaryOp op) { return {ScalarOp::Unary, uint8_t(op)}; }
static Decoded binary(BinaryOp op) { return {ScalarOp::Binary, uint8_t(op)}; }
static Decoded integer(IntBinaryOp op) {
  return {ScalarOp::IntBinary, uint8_t(op)};
}
static Decoded intUnary(IntUnaryOp op) {
  return {ScalarOp::IntUnary, uint8_t(op)};
}

/// Arithmetic and rounding of floats.
static std::optional<Decoded> decodeFloatArithmetic(Operation *op) {
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
      .Case([](math::FloorOp) { return unary(UnaryOp::Floor); })
      .Case([](math::CeilOp) { return unary(UnaryOp::Ceil); })
      .Case([](math::RoundOp) { return unary(UnaryOp::Round); })
      .Case([](math::RoundEvenOp) { return unary(UnaryOp::RoundEven); })
      .Case([](math::TruncOp) { return unary(UnaryOp::Trunc); })
      .Case([](math::FmaOp) { return Decoded{ScalarOp::Fma, 0}; })
      .Case([](math::ClampFOp) { return binary(BinaryOp::Minimum); })
      .Default([](Operation *) { return Result(); });
}

/// Roots, exponentials, logarithms, trigonometry of floats.
static std::optional<Decoded> decodeFloatFunction(Operation *op) {
  using Result = std::optional<Decoded>;
  return llvm::TypeSwitch<Operation *, Result>(op)
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
      .Default([](Operation *) { return Result(); });
}

/// Integer arithmetic.
static std::optional<Decoded> decodeInteger(Operation *op) {
  using Result = std::optional<Decoded>;
  return llvm::TypeSwitch<Operation *, Result>(op)
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
      .Case([](math::IPowIOp) { return Decoded{ScalarOp::IntPower, 0}; })
      .Case([](math::AbsIOp) { return intUnary(IntUnaryOp::Abs); })
      .Case([](math::CtPopOp) { return intUnary(IntUnaryOp::CtPop); })
      .Case(
          [](math::CountLeadingZerosOp) { return intUnary(IntUnaryOp::Ctlz); })
      .Case(
          [](math::CountTrailingZerosOp) { return intUnary(IntUnaryOp::Cttz); })
      .Default([](Operation *) { return Result(); });
}

/// Comparisons and selection.
static std::optional<Decoded> decodeComparison(Operation *op) {
  using Result = std::optional<Decoded>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](arith::CmpFOp cmp) {
        return Decoded{ScalarOp::CompareF, uint8_t(cmp.getPredicate())};
      })
      .Case([](arith::CmpIOp cmp) {
        return Decoded{ScalarOp::CompareI, uint8_t(cmp.getPredicate())};
      })
      .Case([](arith::SelectOp) { return Decoded{ScalarOp::Select, 0}; })
      .Case([](math::IsNaNOp) {
        return Decoded{ScalarOp::CompareF, uint8_t(FloatPredicate::UNO)};
      })
      .Case([](math::IsInfOp) {
        return Decoded{ScalarOp::CompareF, uint8_t(FloatPredicate::OEQ)};
      })
      .Case([](math::IsFiniteOp) {
        return Decoded{ScalarOp::CompareF, uint8_t(FloatPredicate::OLT)};
      })
      .Default([](Operation *) { return Result(); });
}

/// Casts between element types.
static std::optional<Decoded> decodeConversion(Operation *op) {
  using Result = std::optional<Decoded>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](arith::TruncFOp) { return Decoded{ScalarOp::Round, 0}; })
      .Case([](arith::ExtFOp) {
        return Decoded{ScalarOp::Unary, uint8_t(UnaryOp::Copy)};
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [](auto) { return Decoded{ScalarOp::CastInt, 0, true}; })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>(
          [](auto) { return Decoded{ScalarOp::CastInt, 0, false}; })
      .Case([](arith::SIToFPOp) {
        return Decoded{ScalarOp::IntToFloat, 0, true};
      })
      .Case([](arith::UIToFPOp) {
        return Decoded{ScalarOp::IntToFloat, 0, false};
      })
      .Case([](arith::FPToSIOp) {
        return Decoded{ScalarOp::FloatToInt, 0, true};
      })
      .Case([](arith::FPToUIOp) {
        return Decoded{ScalarOp::FloatToInt, 0, false};
      })
      .Case([](arith::BitcastOp) { return Decoded{ScalarOp::Bitcast, 0}; })
      .Default([](Operation *) { return Result(); });
}

static std::optional<Decoded> decode(Operation *op) {
  for (auto *decodeKind : {decodeFloatArithmetic, decodeFloatFunction,
                           decodeInteger, decodeComparison, decodeConversion})
    if (std::optional<Decoded> decoded = decodeKind(op))
      return decoded;
  return std::nullopt;
}

bool spyre::runtime::isScalarOp(Operation *op) {
  return decode(op).has_value() && op->getNumResults() == 1;
}

/// An element of a tensor from outside of the body.
int FunctionLoader::emitExtract(tensor::ExtractOp extract, ScalarProgram &body,
                                llvm::function_ref<int(Value)> reg) {
  std::optional<Elem> elem = elemOf(extract.getType());
  if (!elem) {
    extract.emitError("element type is not supported: ") << extract.getType();
    return -1;
  }
  ScalarOp op;
  op.kind = ScalarOp::Extract;
  op.cost = ::spyre::CostClass::Free;
  op.elem = *elem;
  op.source = Elem::Index;
  op.slot = tensorSlot(extract.getTensor());
  op.location = locations.get(extract.getLoc());
  op.name = nameNumber(extract);
  int *registers[] = {&op.a, &op.b, &op.c};
  if (extract.getIndices().size() > std::size(registers)) {
    extract.emitError("a body extracts from tensors of up to ")
        << std::size(registers) << " dimensions, found "
        << extract.getIndices().size();
    return -1;
  }
  for (auto [index, to] : llvm::zip(extract.getIndices(), registers))
    if ((*to = reg(index)) < 0)
      return -1;
  op.dst = body.addReg(*elem);
  if (body.regElem.size() > ScalarFrame::kMaxRegs) {
    extract.emitError("body needs more than ")
        << int(ScalarFrame::kMaxRegs) << " values";
    return -1;
  }
  body.ops.push_back(op);
  return op.dst;
}

int FunctionLoader::emitScalarOp(Operation *op, ScalarProgram &body,
                                 llvm::function_ref<int(Value)> reg) {
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return emitExtract(extract, body, reg);
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
  if (isa<arith::BitcastOp>(op) && *elem == *source)
    return operands[0];
  // Operations of several steps: all but the last.
  auto addStep = [&](ScalarOp::Kind kind, uint8_t code, int a, int b) {
    ScalarOp step;
    step.kind = kind;
    step.op = code;
    step.elem = step.source = *source;
    step.a = a;
    step.b = b;
    step.dst = body.addReg(*source);
    step.location = locations.get(op->getLoc());
    step.name = nameNumber(op);
    body.ops.push_back(step);
    return step.dst;
  };
  if (isa<math::IsNaNOp>(op)) {
    operands[1] = operands[0];
  } else if (isa<math::IsInfOp, math::IsFiniteOp>(op)) {
    operands[0] =
        addStep(ScalarOp::Unary, uint8_t(UnaryOp::Abs), operands[0], -1);
    ScalarConstant infinity;
    infinity.elem = Elem::F32;
    infinity.value.i = 0;
    infinity.value.f = std::numeric_limits<float>::infinity();
    infinity.reg = body.addReg(Elem::F32);
    body.constants.push_back(infinity);
    operands[1] = infinity.reg;
  } else if (isa<math::ClampFOp>(op)) {
    operands[0] = addStep(ScalarOp::Binary, uint8_t(BinaryOp::Maximum),
                          operands[0], operands[1]);
    operands[1] = operands[2];
    operands[2] = -1;
  }
  ScalarOp bodyOp;
  bodyOp.kind = decoded->kind;
  bodyOp.cost = ::spyre::getCostClass(op->getName().getStringRef());
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
  bodyOp.name = nameNumber(op);
  if (body.regElem.size() > ScalarFrame::kMaxRegs) {
    op->emitError("body needs more than ")
        << int(ScalarFrame::kMaxRegs) << " values";
    return -1;
  }
  body.ops.push_back(bodyOp);
  return bodyOp.dst;
}

int FunctionLoader::constantRegister(Attribute value, Type type,
                                     ScalarProgram &body) {
  std::optional<Elem> elem = elemOf(type);
  if (!elem)
    return -1;
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      return -1;
    value = dense.getSplatValue<Attribute>();
  }
  ScalarConstant constant;
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

int FunctionLoader::scalarRegister(Value value, ScalarProgram &body) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    if (int reg = constantRegister(constant, value.getType(), body); reg >= 0)
      return reg;
  int reg = body.addReg(*elemOf(value.getType()));
  body.captured.push_back({reg, scalarSlot(value)});
  return reg;
}

//===----------------------------------------------------------------------===//
// Elementwise ops on tensors
//===----------------------------------------------------------------------===//

/// The elements of a constant tensor that are all the same; null for others.
static DenseElementsAttr getSplat(Value value) {
  DenseElementsAttr dense;
  return matchPattern(value, m_Constant(&dense)) && dense && dense.isSplat()
             ? dense
             : nullptr;
}

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
  auto &instr = add<StructuredLoop>(op);
  instr.name = op->getName().getStringRef().str();
  instr.numLoops = static_cast<int>(type.getRank());
  instr.isReduction.assign(type.getRank(), false);
  std::vector<MapResult> identity(type.getRank());
  for (int d = 0; d < type.getRank(); ++d) {
    identity[d].terms = {{d, 1}};
    instr.extentSource.push_back({0, d});
  }

  ScalarProgram &body = instr.body;
  llvm::SmallDenseMap<Value, int> regs;
  Value shapeOf;
  // At least one operand has to be a tensor in memory: it gives the shape.
  bool foldConstants = llvm::any_of(op->getOperands(), [](Value operand) {
    return isa<RankedTensorType>(operand.getType()) && !getSplat(operand);
  });
  for (Value operand : op->getOperands()) {
    if (regs.count(operand))
      continue;
    if (!isa<RankedTensorType>(operand.getType())) {
      if (!elemOf(operand.getType()))
        return op->emitError("operand type is not supported: ")
               << operand.getType();
      regs[operand] = scalarRegister(operand, body);
      continue;
    }
    if (DenseElementsAttr splat = foldConstants ? getSplat(operand) : nullptr)
      if (int reg = constantRegister(splat, operand.getType(), body);
          reg >= 0) {
        regs[operand] = reg;
        continue;
      }
    std::optional<Elem> elem = elemOf(operand.getType());
    if (!elem)
      return op->emitError("element type is not supported: ")
             << operand.getType();
    LoopOperand input;
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
  int result = emitScalarOp(op, body, [&](Value v) { return regs.lookup(v); });
  if (result < 0)
    return failure();
  LoopOperand output;
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
