//===- PartialReduction.cpp - Reductions part by part -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::spyre_graph;

Value spyre_graph::createElementwise(OpBuilder &b, Location loc, StringRef name,
                                     ValueRange ins, Value init,
                                     ArrayRef<Attribute> immediates,
                                     ArrayRef<AffineMap> maps) {
  auto type = cast<RankedTensorType>(init.getType());
  OperationState state(loc, name);
  state.addOperands(ins);
  state.addOperands(init);
  state.addTypes(type);
  if (!immediates.empty())
    state.addAttribute("immediates", b.getArrayAttr(immediates));
  auto op = cast<SpyreOpInterface>(b.create(state));
  SmallVector<AffineMap> all(maps);
  if (all.empty())
    all.assign(ins.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  op.setLoopStructure(all, type.getShape());
  return op->getResult(0);
}

/// A number that the result is multiplied with at the end.
static double getFinalScale(SpyreOpInterface op) {
  Operation *operation = op;
  return llvm::TypeSwitch<Operation *, double>(operation)
      .Case([](MatmulOp own) { return own.getAlpha().convertToDouble(); })
      .Case<SumSquaresOp, SumProductsOp>(
          [](auto own) { return own.getScale().convertToDouble(); })
      .Case([&](MeanOp) { return spyre_graph::detail::getMeanScale(op); })
      .Default([](Operation *) { return 1.0; });
}

std::optional<PartialReduction> PartialReduction::get(SpyreOpInterface op) {
  Operation *operation = op;
  if (!isCombinedAcrossCores(op.getCombiner()) ||
      !isa<MatmulOp, SumOp, MeanOp, SumSquaresOp, SumProductsOp, ProdOp, MaxOp,
           MinOp, AnyOp, AllOp>(operation))
    return std::nullopt;
  return PartialReduction(op);
}

RankedTensorType PartialReduction::getAccumulatorType(RankedTensorType result) {
  Combiner combiner = op.getCombiner();
  if ((combiner != Combiner::Add && combiner != Combiner::Mul) ||
      !isa<FloatType>(result.getElementType()))
    return result;
  auto layout = cast<LayoutAttr>(result.getEncoding());
  Type f32 = Float32Type::get(result.getContext());
  return RankedTensorType::get(result.getShape(), f32,
                               LayoutAttr::get(result.getContext(),
                                               layout.getOrder(), f32,
                                               layout.getSparse()));
}

bool PartialReduction::isResult(RankedTensorType result) {
  return getAccumulatorType(result) == result && getFinalScale(op) == 1.0 &&
         op.getNumEpilogueInputs() == 0;
}

Value PartialReduction::createIdentity(OpBuilder &b, RankedTensorType type,
                                       bool isFinite) {
  Location loc = op.getLoc();
  Type element = type.getElementType();
  bool isMax = op.getCombiner() == Combiner::Max,
       isMin = op.getCombiner() == Combiner::Min;
  bool isOne =
      op.getCombiner() == Combiner::Mul || op.getCombiner() == Combiner::And;
  Attribute value;
  if (isa<FloatType>(element)) {
    // Larger magnitudes do not exist in DL16 (spec/numerics.md).
    double lowest = element.isF32() ? -3.0e38 : -8.5e9;
    if (!isFinite)
      lowest = -std::numeric_limits<double>::infinity();
    value = b.getF32FloatAttr(isMax ? lowest : isMin ? -lowest : isOne ? 1 : 0);
  } else {
    // 64-bit integers are stored in 32 bits (spec/layouts.md).
    unsigned width = std::min(element.getIntOrFloatBitWidth(), 32u);
    bool isSigned = !element.isUnsignedInteger() && width > 1;
    APInt number(64, isOne);
    if (isMax)
      number =
          isSigned ? APInt::getSignedMinValue(width).sext(64) : APInt(64, 0);
    if (isMin)
      number = isSigned ? APInt::getSignedMaxValue(width).sext(64)
                        : APInt::getMaxValue(width).zext(64);
    value = b.getIntegerAttr(b.getI64Type(), number);
  }
  Value empty = tensor::EmptyOp::create(b, loc, type, ValueRange());
  return createElementwise(b, loc, FillOp::getOperationName(), {}, empty,
                           {value});
}

Value PartialReduction::createPart(OpBuilder &b, ValueRange ins,
                                   RankedTensorType type,
                                   ArrayRef<int64_t> extents) {
  Location loc = op.getLoc();
  Operation *operation = op;
  StringRef name = isa<MeanOp>(operation) ? SumOp::getOperationName()
                                          : op->getName().getStringRef();
  OperationState state(loc, name);
  unsigned numUsed = ins.size() - op.getNumEpilogueInputs();
  state.addOperands(ins.take_front(numUsed));
  state.addOperands(
      tensor::EmptyOp::create(b, loc, type, ValueRange()).getResult());
  state.addTypes(type);
  // What the epilogue reads is left out.
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "alpha" && attribute.getName() != "beta" &&
        attribute.getName() != "has_bias" && attribute.getName() != "scale" &&
        attribute.getName() != "maps" && attribute.getName() != "extents")
      state.addAttribute(attribute.getName(), attribute.getValue());
  if (isa<SumSquaresOp, SumProductsOp>(operation))
    state.addAttribute("scale", b.getF64FloatAttr(1.0));
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  maps.erase(maps.begin() + numUsed, maps.begin() + ins.size());
  state.addAttribute("maps", b.getAffineMapArrayAttr(maps));
  state.addAttribute("extents", b.getDenseI64ArrayAttr(extents));
  return b.create(state)->getResult(0);
}

Value PartialReduction::createCombine(OpBuilder &b, Value accumulator,
                                      Value part) {
  auto getName = [&]() -> StringRef {
    switch (op.getCombiner()) {
    case Combiner::Add:
      return AddOp::getOperationName();
    case Combiner::Mul:
      return MulOp::getOperationName();
    case Combiner::Max:
      return MaximumOp::getOperationName();
    case Combiner::Min:
      return MinimumOp::getOperationName();
    case Combiner::And:
      return AndOp::getOperationName();
    default:
      return OrOp::getOperationName();
    }
  };
  return createElementwise(b, op.getLoc(), getName(), {accumulator, part},
                           accumulator);
}

Value PartialReduction::createResult(OpBuilder &b, Value accumulator,
                                     ValueRange ins, Value init) {
  Location loc = op.getLoc();
  Operation *operation = op;
  double scale = getFinalScale(op);
  auto matmul = dyn_cast<MatmulOp>(operation);
  bool hasBias = matmul && matmul.getHasBias();
  auto emptyLike = [&](Value value) {
    return tensor::EmptyOp::create(
               b, loc, cast<RankedTensorType>(value.getType()), ValueRange())
        .getResult();
  };
  Attribute unit = b.getUnitAttr();
  auto multiply = [&](Value value, double factor, Value target) {
    return createElementwise(b, loc, MulOp::getOperationName(), value, target,
                             {unit, b.getF32FloatAttr(factor)});
  };
  if (!hasBias) {
    if (scale != 1.0)
      return multiply(accumulator, scale, init);
    return createElementwise(b, loc, IdentityOp::getOperationName(),
                             accumulator, init);
  }
  // As the epilogue does: the steps are fp32, the last one rounds.
  if (scale != 1.0)
    accumulator = multiply(accumulator, scale, emptyLike(accumulator));
  double beta = matmul.getBeta().convertToDouble();
  // The bias is read through the coordinates of the result.
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  AffineMap result = maps.back(), bias = maps[maps.size() - 2];
  SmallVector<AffineExpr> coordinates(result.getNumDims(),
                                      b.getAffineConstantExpr(0));
  for (auto [dim, expr] : llvm::enumerate(result.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      coordinates[loop.getPosition()] = b.getAffineDimExpr(dim);
  AffineMap identity = b.getMultiDimIdentityMap(result.getNumResults());
  AffineMap biasMap =
      bias.replaceDimsAndSymbols(coordinates, {}, result.getNumResults(), 0);
  if (beta == 1.0)
    return createElementwise(b, loc, AddOp::getOperationName(),
                             {accumulator, ins.back()}, init, {},
                             {identity, biasMap, identity});
  // beta x bias, in fp32 over the result's coordinates.
  Value scaled = createElementwise(
      b, loc, MulOp::getOperationName(), ins.back(), emptyLike(accumulator),
      {unit, b.getF32FloatAttr(beta)}, {biasMap, identity});
  return createElementwise(b, loc, AddOp::getOperationName(),
                           {accumulator, scaled}, init);
}
