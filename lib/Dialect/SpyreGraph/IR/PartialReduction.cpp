//===- PartialReduction.cpp - Reductions part by part -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::spyre_graph;

Value spyre_graph::createElementwise(OpBuilder &b, Location loc, StringRef name,
                                     ValueRange ins, Value init,
                                     ArrayRef<Attribute> immediates,
                                     ArrayRef<AffineMap> maps) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<NamedAttribute> attributes;
  if (!immediates.empty())
    attributes.push_back(
        b.getNamedAttr("immediates", b.getArrayAttr(immediates)));
  auto op = cast<SpyreOpInterface>(
      createDeviceOp(b, loc, name, ins, init, attributes));
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
      .Case([](SumProductsOp own) { return own.getScale().convertToDouble(); })
      .Case([&](SumSquaresOp own) {
        double scale = own.getScale().convertToDouble();
        if (own.getCorrection())
          scale *= spyre_graph::detail::getMeanScale(
              op, own.getCorrection()->convertToDouble());
        return scale;
      })
      .Case([&](MeanOp) { return spyre_graph::detail::getMeanScale(op); })
      .Default([](Operation *) { return 1.0; });
}

std::optional<PartialReduction> PartialReduction::get(SpyreOpInterface op) {
  Operation *operation = op;
  if (isa<ArgMaxOp, ArgMinOp>(operation))
    return PartialReduction(op);
  if (!isCombinedAcrossCores(op.getCombiner()) ||
      !isa<MatmulOp, SumOp, MeanOp, SumSquaresOp, SumProductsOp, ProdOp, MaxOp,
           MinOp, AnyOp, AllOp>(operation))
    return std::nullopt;
  return PartialReduction(op);
}

bool PartialReduction::isIndex() {
  return isa<ArgMaxOp, ArgMinOp>(op.getOperation());
}

bool PartialReduction::canCut(unsigned loopDim) {
  if (!isIndex())
    return true;
  // The index is row-major over the dimensions reduced.
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  return llvm::find(kinds, utils::IteratorType::reduction) - kinds.begin() ==
         loopDim;
}

/// A tensor of the same shape and layout of another type.
static RankedTensorType withElementType(RankedTensorType type, Type element) {
  auto layout = cast<LayoutAttr>(type.getEncoding());
  return RankedTensorType::get(type.getShape(), element,
                               LayoutAttr::get(type.getContext(),
                                               layout.getOrder(), element,
                                               layout.getSparse()));
}

SmallVector<RankedTensorType>
PartialReduction::getAccumulatorTypes(RankedTensorType result) {
  Combiner combiner = op.getCombiner();
  if (isIndex())
    return {result,
            withElementType(result,
                            getElementTypeOrSelf(op->getOperand(0).getType())),
            result};
  if ((combiner != Combiner::Add && combiner != Combiner::Mul) ||
      !isa<FloatType>(result.getElementType()))
    return {result};
  return {withElementType(result, Float32Type::get(result.getContext()))};
}

bool PartialReduction::isResult(RankedTensorType result) {
  return getAccumulatorTypes(result).front() == result &&
         getFinalScale(op) == 1.0 && op.getNumEpilogueInputs() == 0;
}

SmallVector<Value> PartialReduction::createIdentity(OpBuilder &b,
                                                    RankedTensorType result) {
  SmallVector<RankedTensorType> types = getAccumulatorTypes(result);
  if (!isIndex())
    return {createFirst(b, types.front())};
  // Nothing is better than no element, so that index 0 stays if none is.
  auto createZero = [&](RankedTensorType type) {
    Value empty = tensor::EmptyOp::create(b, op.getLoc(), type, ValueRange());
    return createElementwise(b, op.getLoc(), FillOp::getOperationName(), {},
                             empty, {b.getI64IntegerAttr(0)});
  };
  Value index = createZero(types[0]);
  Value extremum = createFirst(b, types[1]);
  return {index, extremum, createZero(types[2])};
}

Value PartialReduction::createLowest(OpBuilder &b, RankedTensorType result) {
  return createFirst(b, result, /*isFinite=*/true);
}

/// The identity of the combination: it changes no element it is combined with.
Value PartialReduction::createFirst(OpBuilder &b, RankedTensorType type,
                                    bool isFinite) {
  Location loc = op.getLoc();
  Type element = type.getElementType();
  bool isMax = llvm::is_contained({Combiner::Max, Combiner::ArgMax},
                                  op.getCombiner()),
       isMin = llvm::is_contained({Combiner::Min, Combiner::ArgMin},
                                  op.getCombiner());
  bool isOne =
      op.getCombiner() == Combiner::Mul || op.getCombiner() == Combiner::And;
  Attribute value;
  if (isa<FloatType>(element)) {
    double lowest = -std::numeric_limits<double>::infinity();
    if (isFinite)
      lowest = getLowestNumber(element);
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

SmallVector<Value> PartialReduction::createPart(OpBuilder &b, ValueRange ins,
                                                ValueRange accumulators,
                                                ArrayRef<int64_t> extents) {
  Operation *operation = op;
  auto typeOf = [&](unsigned number) {
    return cast<RankedTensorType>(accumulators[number].getType());
  };
  StringRef name = isa<MeanOp>(operation) ? SumOp::getOperationName()
                                          : op->getName().getStringRef();
  SmallVector<Value> parts{createPartOf(b, name, ins, typeOf(0), extents)};
  if (!isIndex())
    return parts;
  // The extremum of booleans is no maximum or minimum.
  bool isMax = isa<ArgMaxOp>(operation),
       isBool = typeOf(1).getElementType().isInteger(1);
  if (isMax)
    name = isBool ? AnyOp::getOperationName() : MaxOp::getOperationName();
  else
    name = isBool ? AllOp::getOperationName() : MinOp::getOperationName();
  parts.push_back(createPartOf(b, name, ins, typeOf(1), extents));
  return parts;
}

Value PartialReduction::createPartOf(OpBuilder &b, StringRef name,
                                     ValueRange ins, RankedTensorType type,
                                     ArrayRef<int64_t> extents) {
  Location loc = op.getLoc();
  Operation *operation = op;
  unsigned numUsed = ins.size() - op.getNumEpilogueInputs();
  SmallVector<NamedAttribute> attributes;
  // Leave out the attributes that only the epilogue reads.
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "alpha" && attribute.getName() != "beta" &&
        attribute.getName() != "num_scales" &&
        attribute.getName() != "has_bias" && attribute.getName() != "scale" &&
        attribute.getName() != "correction" && attribute.getName() != "maps" &&
        attribute.getName() != "extents")
      attributes.push_back(attribute);
  if (isa<SumSquaresOp, SumProductsOp>(operation))
    attributes.push_back(b.getNamedAttr("scale", b.getF64FloatAttr(1.0)));
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  maps.erase(maps.begin() + numUsed, maps.begin() + ins.size());
  Value empty = tensor::EmptyOp::create(b, loc, type, ValueRange());
  auto part = cast<SpyreOpInterface>(
      createDeviceOp(b, loc, name, ins.take_front(numUsed), empty, attributes));
  part.setLoopStructure(maps, extents);
  return part->getResult(0);
}

/// The better extremum and its index: that of the part if it is better than
/// those before it, not if it is equal, or if it is the first NaN.
SmallVector<Value> PartialReduction::createIndexCombine(OpBuilder &b,
                                                        ValueRange accumulators,
                                                        ValueRange parts,
                                                        int64_t count) {
  Location loc = op.getLoc();
  bool isMax = op.getCombiner() == Combiner::ArgMax;
  Value index = accumulators[0], extremum = accumulators[1],
        start = accumulators[2];
  auto type = cast<RankedTensorType>(extremum.getType());
  auto create = [&](StringRef name, ValueRange ins, RankedTensorType result) {
    Value empty = tensor::EmptyOp::create(b, loc, result, ValueRange());
    return createElementwise(b, loc, name, ins, empty);
  };
  RankedTensorType flags = withElementType(type, b.getI1Type());
  Value isBetter =
      create(isMax ? GtOp::getOperationName() : LtOp::getOperationName(),
             {parts[1], extremum}, flags);
  if (isa<FloatType>(type.getElementType())) {
    Value isNan = create(IsNanOp::getOperationName(), {parts[1]}, flags);
    Value wasNumber =
        create(EqOp::getOperationName(), {extremum, extremum}, flags);
    Value isFirstNan =
        create(AndOp::getOperationName(), {isNan, wasNumber}, flags);
    isBetter = create(OrOp::getOperationName(), {isBetter, isFirstNan}, flags);
  }
  auto indexType = cast<RankedTensorType>(index.getType());
  Value own = create(AddOp::getOperationName(), {parts[0], start}, indexType);
  index = createElementwise(b, loc, WhereOp::getOperationName(),
                            {isBetter, own, index}, index);
  extremum = createElementwise(b, loc,
                               isMax ? MaximumOp::getOperationName()
                                     : MinimumOp::getOperationName(),
                               {extremum, parts[1]}, extremum);
  // One step along the dimension cut passes all elements of the others.
  for (auto [extent, kind] :
       llvm::zip_equal(op.getLoopExtents(), op.getLoopKinds()))
    if (kind != utils::IteratorType::parallel)
      count *= extent;
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  count /=
      op.getLoopExtents()[llvm::find(kinds, utils::IteratorType::reduction) -
                          kinds.begin()];
  start = createElementwise(b, loc, AddOp::getOperationName(), {start}, start,
                            {b.getUnitAttr(), b.getI64IntegerAttr(count)});
  return {index, extremum, start};
}

StringRef spyre_graph::getCombiningOperation(Combiner combiner) {
  switch (combiner) {
  case Combiner::Add:
  case Combiner::ScanAdd:
    return AddOp::getOperationName();
  case Combiner::ScanMax:
    return MaximumOp::getOperationName();
  case Combiner::ScanMin:
    return MinimumOp::getOperationName();
  case Combiner::Mul:
    return MulOp::getOperationName();
  case Combiner::Max:
    return MaximumOp::getOperationName();
  case Combiner::Min:
    return MinimumOp::getOperationName();
  case Combiner::And:
    return AndOp::getOperationName();
  case Combiner::Or:
    return OrOp::getOperationName();
  case Combiner::None:
  case Combiner::ArgMax:
  case Combiner::ArgMin:
  case Combiner::Sort:
  case Combiner::SortDescending:
    break;
  }
  llvm_unreachable("one elementwise operation does not combine such results");
}

Value PartialReduction::createCombine(OpBuilder &b, Value accumulator,
                                      Value part, Value init) {
  return createElementwise(b, op.getLoc(),
                           getCombiningOperation(op.getCombiner()),
                           {accumulator, part}, init);
}

SmallVector<Value> PartialReduction::createCombine(OpBuilder &b,
                                                   ValueRange accumulators,
                                                   ValueRange parts,
                                                   int64_t count) {
  if (isIndex())
    return createIndexCombine(b, accumulators, parts, count);
  Value accumulator = accumulators.front();
  return {createCombine(b, accumulator, parts.front(), accumulator)};
}

Value PartialReduction::createRescaled(OpBuilder &b, Value accumulator,
                                       Value factor, AffineMap map) {
  AffineMap identity = b.getMultiDimIdentityMap(
      cast<RankedTensorType>(accumulator.getType()).getRank());
  return createElementwise(b, op.getLoc(), MulOp::getOperationName(),
                           {accumulator, factor}, accumulator, {},
                           {identity, map, identity});
}

/// An operation's map for an epilogue input, of the coordinates of the result.
static AffineMap getEpilogueMap(OpBuilder &b, SpyreOpInterface op,
                                unsigned operand) {
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  AffineMap result = maps.back();
  SmallVector<AffineExpr> coordinates(result.getNumDims(),
                                      b.getAffineConstantExpr(0));
  for (auto [dim, expr] : llvm::enumerate(result.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      coordinates[loop.getPosition()] = b.getAffineDimExpr(dim);
  return maps[operand].replaceDimsAndSymbols(coordinates, {},
                                             result.getNumResults(), 0);
}

Value PartialReduction::createResult(OpBuilder &b, Value accumulator,
                                     ValueRange ins, Value init) {
  Location loc = op.getLoc();
  auto accumulated = cast<RankedTensorType>(accumulator.getType());
  AffineMap identity = b.getMultiDimIdentityMap(accumulated.getRank());
  Attribute unit = b.getUnitAttr();
  auto matmul = dyn_cast<MatmulOp>(op.getOperation());
  bool hasBias = matmul && matmul.getHasBias();
  unsigned numScales = matmul ? matmul.getNumScales() : 0;
  double scale = getFinalScale(op);
  // The steps are fp32 and the last one rounds, as in the epilogue.
  unsigned numSteps = (scale != 1.0) + numScales + hasBias;
  if (numSteps == 0)
    return createElementwise(b, loc, IdentityOp::getOperationName(),
                             accumulator, init);
  auto empty = [&] {
    return tensor::EmptyOp::create(b, loc, accumulated, ValueRange())
        .getResult();
  };
  auto getTarget = [&] { return --numSteps == 0 ? init : empty(); };
  if (scale != 1.0)
    accumulator =
        createElementwise(b, loc, MulOp::getOperationName(), accumulator,
                          getTarget(), {unit, b.getF32FloatAttr(scale)});
  for (unsigned number = 2; number < 2 + numScales; ++number)
    accumulator = createElementwise(
        b, loc, MulOp::getOperationName(), {accumulator, ins[number]},
        getTarget(), {}, {identity, getEpilogueMap(b, op, number), identity});
  if (!hasBias)
    return accumulator;
  Value bias = ins.back();
  AffineMap map = getEpilogueMap(b, op, ins.size() - 1);
  // beta x bias, in fp32 over the result's coordinates.
  if (double beta = matmul.getBeta().convertToDouble(); beta != 1.0) {
    bias = createElementwise(b, loc, MulOp::getOperationName(), bias, empty(),
                             {unit, b.getF32FloatAttr(beta)}, {map, identity});
    map = identity;
  }
  return createElementwise(b, loc, AddOp::getOperationName(),
                           {accumulator, bias}, init, {},
                           {identity, map, identity});
}
