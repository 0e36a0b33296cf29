// SPDX-License-Identifier: Apache-2.0
//===- LoaderScalars.cpp - Decoding constants and scalar operations -------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spyre::runtime;

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
  auto &instr = add<ScalarProgramInstr>(op);
  auto reg = [&](Value v) {
    int r = instr.body.addReg(*elemOf(v.getType()));
    instr.body.captured.push_back({r, scalarSlot(v)});
    return r;
  };
  int r = emitScalarOp(op, instr.body, reg);
  if (r < 0)
    return failure();
  instr.body.yields.push_back(r);
  instr.results.push_back(scalarSlot(result));
  instr.body.finish();
  return success();
}

int spyre::runtime::addAffineNodes(AffineExpr expr, unsigned numDims,
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
    return op->emitError("the affine map must have a result");
  auto &instr = add<AffineInstr>(op);
  instr.mode = mode;
  instr.dst = scalarSlot(op->getResult(0));
  for (Value operand : op->getOperands())
    instr.operands.push_back(scalarSlot(operand));
  for (AffineExpr expr : map.getResults())
    instr.roots.push_back(addAffineNodes(expr, map.getNumDims(), instr.nodes));
  return success();
}
