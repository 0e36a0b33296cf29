// SPDX-License-Identifier: Apache-2.0
//===- KernelReduction.cpp - Reductions -*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Index beside the identity of an arg-reduction: behind all others.
static constexpr int64_t kNoIndex = std::numeric_limits<int64_t>::max();

static bool isArg(Combiner combiner) {
  return combiner == Combiner::ArgMax || combiner == Combiner::ArgMin;
}

TypedAttr KernelBuilder::getIdentity(Type type) const {
  OpBuilder b(builder.getContext());
  bool isMax = llvm::is_contained(
      {Combiner::Max, Combiner::ArgMax, Combiner::ScanMax}, combiner);
  bool isMin = llvm::is_contained(
      {Combiner::Min, Combiner::ArgMin, Combiner::ScanMin}, combiner);
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    if (isMax || isMin)
      return b.getFloatAttr(type, APFloat::getInf(semantics, isMax));
    return b.getFloatAttr(type, combiner == Combiner::Mul ? 1.0 : 0.0);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1) {
    bool one = combiner == Combiner::And || combiner == Combiner::Mul || isMin;
    return b.getIntegerAttr(type, one);
  }
  if (isMax)
    return b.getIntegerAttr(type, APInt::getSignedMinValue(width));
  if (isMin)
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(width));
  return b.getIntegerAttr(type, combiner == Combiner::Mul ? 1 : 0);
}

Value KernelBuilder::combine(OpBuilder &b, Value accumulated,
                             Value value) const {
  ScalarBuilder s(b, loc);
  switch (combiner) {
  case Combiner::Add:
  case Combiner::ScanAdd:
    return s.add(accumulated, value);
  case Combiner::Mul:
    return s.mul(accumulated, value);
  case Combiner::Max:
    return s.maximum(accumulated, value);
  case Combiner::Min:
    return s.minimum(accumulated, value);
  case Combiner::And:
    return s.logicalAnd(accumulated, value);
  case Combiner::Or:
    return s.logicalOr(accumulated, value);
  default:
    llvm_unreachable("has its own combination");
  }
}

/// Whether (a, aIndex) wins over (b, bIndex): NaN beats every number, as in
/// PyTorch, and the lower index wins a tie.
static Value comesBefore(ScalarBuilder &s, bool isMax, Value a, Value aIndex,
                         Value b, Value bIndex) {
  Value isBetter = isMax ? s.lt(b, a) : s.lt(a, b);
  Value isTie = s.eq(a, b);
  if (isa<FloatType>(a.getType())) {
    Value aIsNan = s.isNan(a), bIsNan = s.isNan(b);
    isBetter =
        s.logicalOr(isBetter, s.logicalAnd(aIsNan, s.logicalNot(bIsNan)));
    isTie = s.logicalOr(isTie, s.logicalAnd(aIsNan, bIsNan));
  }
  return s.logicalOr(isBetter, s.logicalAnd(isTie, s.lt(aIndex, bIndex)));
}

SmallVector<Value> KernelBuilder::combineArg(OpBuilder &b, Value bestValue,
                                             Value bestIndex, Value value,
                                             Value index) const {
  ScalarBuilder s(b, loc);
  Value take = comesBefore(s, combiner == Combiner::ArgMax, value, index,
                           bestValue, bestIndex);
  return {s.select(take, value, bestValue), s.select(take, index, bestIndex)};
}

/// Returns (value, index) if it comes after `previous` in the order of
/// combineArg, and otherwise (worst, last), which comes after everything.
static std::pair<Value, Value>
hideTaken(OpBuilder &b, Location loc, bool isMax, Value value, Value index,
          Value previousValue, Value previousIndex, Value worst, Value last) {
  ScalarBuilder s(b, loc);
  Value isLeft =
      comesBefore(s, isMax, previousValue, previousIndex, value, index);
  // The select of ScalarBuilder would saturate the constants.
  return {arith::SelectOp::create(b, loc, isLeft, value, worst),
          arith::SelectOp::create(b, loc, isLeft, index, last)};
}

Value KernelBuilder::buildReducedIndex(
    OpBuilder &b, function_ref<Value(unsigned)> getLoopIndex) {
  Value index;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    // Those of one element add nothing.
    if (!loop.isReduction || loop.extent == 1)
      continue;
    Value own = getLoopIndex(dim);
    if (!index) {
      index = own;
      continue;
    }
    Value extent = getValueOrCreateConstantIndexOp(b, loc, loop.extentNow);
    index = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, index, extent), own);
  }
  if (!index)
    index = arith::ConstantIndexOp::create(b, loc, 0);
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

FailureOr<SmallVector<Value>>
KernelBuilder::accumulate(SmallVector<Value> accumulators,
                          ArrayRef<Value> previous) {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (loops[dim].isReduction)
      nest.emplace_back(dim, enterTiles(dim, accumulators));
  unsigned numInputs = getInit() - op.getNumEpilogueInputs();
  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins, outs;
  SmallVector<SmallVector<unsigned>> tileDims;
  for (unsigned operand = 0; operand < numInputs; ++operand) {
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
    tileDims.push_back(getTileDims(operand));
  }
  SmallVector<unsigned> outDims = getTileDims(getInit());
  tileDims.push_back(outDims);
  for (Value tile : previous)
    ins.emplace_back(tile, outDims);
  for (Value accumulator : accumulators)
    outs.emplace_back(accumulator, outDims);
  SmallVector<unsigned> iterated = getIteratedDims(tileDims);
  SmallVector<Value> starts(loops.size());
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (op.usesLoopIndex(dim) || (isArg(combiner) && loops[dim].isReduction))
      starts[dim] = getLoopIndex(builder, dim);
  auto loopIndex = [&](OpBuilder &b, unsigned dim) -> Value {
    auto *position = llvm::find(iterated, dim);
    if (position == iterated.end())
      return starts[dim];
    return arith::AddIOp::create(
        b, loc, starts[dim],
        linalg::IndexOp::create(b, loc, position - iterated.begin()));
  };
  SmallVector<Value> results = buildGeneric(
      ins, outs, [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (unsigned operand = 0; operand < numInputs; ++operand)
          values.push_back(toComputeType(b, loc, arguments[operand],
                                         getElementType(operand)));
        Value element =
            op.buildElement(b, loc, values, [&](unsigned dim) -> Value {
              return loopIndex(b, dim);
            });
        unsigned firstOut = numInputs + previous.size();
        Value accumulated = arguments[firstOut];
        ScalarBuilder s(b, loc);
        if (!isArg(combiner))
          return {s.convert(combine(b, accumulated,
                                    s.convert(element, accumulated.getType())),
                            accumulated.getType())};
        Value index = buildReducedIndex(
            b, [&](unsigned dim) { return loopIndex(b, dim); });
        element = s.convert(element, accumulated.getType());
        if (!previous.empty())
          std::tie(element, index) = hideTaken(
              b, loc, combiner == Combiner::ArgMax, element, index,
              arguments[numInputs], arguments[numInputs + 1],
              arith::ConstantOp::create(b, loc, getIdentity(element.getType())),
              s.constantInt(index.getType(), kNoIndex));
        return combineArg(b, accumulated, arguments[firstOut + 1], element,
                          index);
      });
  accumulators = results;
  leaveTiles(nest, accumulators);
  return accumulators;
}

LogicalResult KernelBuilder::buildReduction() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  bool isEmpty = llvm::any_of(loops, [](const Loop &loop) {
    return loop.isReduction && loop.extent == 0;
  });
  for (auto [place, dim] : llvm::enumerate(order)) {
    if (!isEmpty && loops[dim].tile < loops[dim].chunk &&
        failed(loadUnchanged(ArrayRef(order).drop_front(place))))
      return failure();
    if (!loops[dim].isReduction)
      nest.emplace_back(dim, enterTiles(dim, none));
  }

  Type resultType = getElementType(getInit());
  SmallVector<unsigned> outDims = getTileDims(getInit());
  // Floating-point values accumulate in fp32 (spec/numerics.md, "Rounding
  // points"); an index needs the value beside it.
  SmallVector<Value> accumulators;
  Type valueType =
      getComputeType(isArg(combiner) ? getElementType(0) : resultType);
  accumulators.push_back(buildFilled(outDims, getIdentity(valueType)));
  if (isArg(combiner))
    accumulators.push_back(
        buildFilled(outDims, builder.getI64IntegerAttr(kNoIndex)));

  if (!isEmpty) {
    FailureOr<SmallVector<Value>> accumulated = accumulate(accumulators);
    if (failed(accumulated))
      return failure();
    accumulators = *accumulated;
  }
  scf::IfOp onlyFirst;
  if (numPartners > 1) {
    accumulators.front() = combineParts(accumulators.front());
    if (!storage[getInit()].isInLX)
      onlyFirst = enterFirstPartner();
  }

  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins;
  ins.emplace_back(accumulators.back(), outDims);
  unsigned firstEpilogue = getInit() - op.getNumEpilogueInputs();
  for (unsigned operand = firstEpilogue; operand < getInit(); ++operand) {
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
  }
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      ins, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> epilogueIns;
        for (unsigned operand = firstEpilogue; operand < getInit(); ++operand)
          epilogueIns.push_back(
              toComputeType(b, loc, arguments[1 + operand - firstEpilogue],
                            getElementType(operand)));
        auto count = [&] { return buildCount(b); };
        function_ref<Value()> countNow;
        if (llvm::any_of(loops, [](const Loop &loop) {
              return loop.isReduction && isa<Value>(loop.extentNow);
            }))
          countNow = count;
        Value result =
            op.buildEpilogue(b, loc, arguments.front(), epilogueIns, countNow);
        return {toDeviceType(b, loc, result, resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  if (onlyFirst)
    builder.setInsertionPointAfter(onlyFirst);
  leaveTiles(nest, none);
  return success();
}

/// One result after the other: each is the best of what comes after the one
/// before, which a loop carries.
LogicalResult KernelBuilder::buildRankedReduction() {
  // The loop over results is sequential, but nothing is reduced along it.
  int64_t rankDim = -1;
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (loops[dim].isReduction && maps[getInit()].isFunctionOfDim(dim)) {
      rankDim = dim;
      loops[dim].isReduction = false;
    } else if (!loops[dim].isReduction) {
      nest.emplace_back(dim, enterTiles(dim, none));
    }
  }
  SmallVector<unsigned> outDims = getTileDims(getInit());
  Type resultType = getElementType(getInit());
  Type valueType = getComputeType(getElementType(0));
  OpFoldResult numResults;
  if (rankDim >= 0) {
    numResults = loops[rankDim].size;
    loops[rankDim].size = builder.getIndexAttr(1);
  }
  // Before all: NaN, or the largest integer, at index -1.
  OpBuilder b(builder.getContext());
  TypedAttr first;
  if (auto floating = dyn_cast<FloatType>(valueType))
    first = b.getFloatAttr(floating,
                           APFloat::getQNaN(floating.getFloatSemantics()));
  else
    first = b.getIntegerAttr(
        valueType, APInt::getSignedMaxValue(valueType.getIntOrFloatBitWidth()));
  SmallVector<Value> previous = {buildFilled(outDims, first),
                                 buildFilled(outDims, b.getI64IntegerAttr(-1))};
  std::pair<unsigned, scf::ForOp> ranks(0, nullptr);
  if (rankDim >= 0) {
    loops[rankDim].size = numResults;
    ranks = {rankDim, enterTiles(rankDim, previous)};
    loops[rankDim].size = builder.getIndexAttr(1);
  }
  FailureOr<SmallVector<Value>> best =
      accumulate({buildFilled(outDims, getIdentity(valueType)),
                  buildFilled(outDims, b.getI64IntegerAttr(kNoIndex))},
                 previous);
  if (failed(best))
    return failure();
  bool wantsIndices = op.getRankedResult() == RankedResult::Index;
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      {{(*best)[wantsIndices ? 1 : 0], outDims}}, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        return {toDeviceType(b, loc, arguments[0], resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  previous = *best;
  leaveTiles(ranks, previous);
  leaveTiles(nest, none);
  return success();
}
