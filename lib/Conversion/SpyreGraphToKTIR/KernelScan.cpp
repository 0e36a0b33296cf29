// SPDX-License-Identifier: Apache-2.0
//===- KernelScan.cpp - Scans, step by step ---------------------*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Whether `value` comes in place of the extremum so far: of equal ones the
/// last does, and NaN stays, as in PyTorch.
static Value isNextExtremum(ScalarBuilder &s, Combiner combiner, Value extremum,
                            Value value) {
  Value isReached = combiner == Combiner::ScanMax ? s.le(extremum, value)
                                                  : s.le(value, extremum);
  return isa<FloatType>(value.getType())
             ? s.logicalOr(isReached, s.isNan(value))
             : isReached;
}

SmallVector<Value> KernelBuilder::combineScan(OpBuilder &b,
                                              ValueRange accumulators,
                                              Value value, Value step) const {
  ScalarBuilder s(b, loc);
  value = s.convert(value, accumulators[0].getType());
  if (combiner == Combiner::ScanAdd)
    return {combine(b, accumulators[0], value)};
  Value isNext = isNextExtremum(s, combiner, accumulators[0], value);
  SmallVector<Value> results{s.select(isNext, value, accumulators[0])};
  if (accumulators.size() > 1) {
    Value index = arith::IndexCastOp::create(b, loc, b.getI64Type(), step);
    results.push_back(s.select(isNext, index, accumulators[1]));
  }
  return results;
}

/// Walks the scanned dimension one step at a time. What the scan holds so far,
/// at every other position, is a loop-carried tile; of an extremum there are
/// two if its index is wanted.
LogicalResult KernelBuilder::buildScan() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  unsigned scanDim = 0;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (loops[dim].isReduction)
      scanDim = dim;
    else
      nest.emplace_back(dim, enterTiles(dim, none));
  }
  bool wantsIndices = op.getRankedResult() == RankedResult::Index;
  Type resultType = getElementType(getInit());
  Type valueType =
      getComputeType(wantsIndices ? getElementType(0) : resultType);
  SmallVector<unsigned> outDims = getTileDims(getInit());
  // Each step's tile has extent 1 along the scanned dimension.
  OpFoldResult sliceSize = loops[scanDim].size;
  loops[scanDim].size = builder.getIndexAttr(1);
  SmallVector<Value> accumulators{buildFilled(outDims, getIdentity(valueType))};
  if (wantsIndices)
    accumulators.push_back(buildFilled(outDims, builder.getI64IntegerAttr(0)));
  loops[scanDim].size = sliceSize;
  std::pair<unsigned, scf::ForOp> scan(scanDim,
                                       enterTiles(scanDim, accumulators));
  loops[scanDim].size = builder.getIndexAttr(1);
  FailureOr<Value> tile = load(0);
  if (failed(tile))
    return failure();
  SmallVector<std::pair<Value, SmallVector<unsigned>>> outs;
  for (Value accumulator : accumulators)
    outs.emplace_back(accumulator, outDims);
  Value step = wantsIndices ? getLoopIndex(builder, scanDim) : Value();
  accumulators = buildGeneric(
      {{*tile, getTileDims(0)}}, outs,
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        Value element = op.buildElement(
            b, loc, {toComputeType(b, loc, arguments[0], getElementType(0))},
            [](unsigned) -> Value {
              llvm_unreachable("scans do not use loop indices");
            });
        return combineScan(b, arguments.drop_front(), element, step);
      });
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      {{accumulators.back(), outDims}}, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        return {toDeviceType(b, loc, arguments[0], resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(scan, accumulators);
  leaveTiles(nest, none);
  return success();
}
