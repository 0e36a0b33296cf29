// SPDX-License-Identifier: Apache-2.0
//===- Matmuls.cpp - Factors and batches that SuperDSC has ------*- C++ -*-===//

#include "Legalizer.h"

#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/Convolution.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool SuperDSCLegalizer::hasNarrowFactors() {
  // A vector leaves no trace of the dimension that its packed sticks would
  // have.
  return getMacFormat(op) != ::spyre::MacFormat::FP16 &&
         llvm::all_of(ArrayRef(extents).take_back(2),
                      [](int64_t extent) { return extent > 1; });
}

void SuperDSCLegalizer::widenFactors() {
  for (unsigned number : {0, 1}) {
    Type element = typeOf(number).getElementType();
    if (isa<Float8E4M3FNType>(element) || element.isSignlessInteger(8))
      widen(number);
  }
}

/// Steps of the reduction in a stick of the second factor (SDSC-MATMUL-C2).
static constexpr int64_t kNumPacked = 2;

void SuperDSCLegalizer::packFactor() {
  if (getNumPacked(getLayout(typeOf(1))) > 1)
    return;
  builder.setInsertionPoint(operation);
  Used used = getUsed(maps[1]);
  int64_t n = positionOf(used.loops, extents.size() - 2),
          k = positionOf(used.loops, extents.size() - 1);
  // The published operations pack what they convert from fp16, which holds the
  // numbers exactly.
  MLIRContext *context = builder.getContext();
  Type element = typeOf(1).getElementType();
  int64_t rank = used.extents.size();
  AffineMap all = AffineMap::getMultiDimIdentityMap(rank, context);
  Value wide = copy(operation->getOperand(1), used.map,
                    empty(withStick(used.extents, builder.getF16Type(), n)),
                    all, used.extents);
  SmallVector<int64_t> order{k};
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != k && dim != n)
      order.push_back(dim);
  order.push_back(n);
  auto layout =
      LayoutAttr::get(context, order, /*sparse=*/false,
                      getLayout(typeOf(1)).getDataFormat(), kNumPacked);
  Value packed = empty(RankedTensorType::get(used.extents, element, layout));
  bool isFloat8 = isa<FloatType>(element);
  auto pack = cast<SpyreOpInterface>(
      createDeviceOp(builder, loc,
                     isFloat8 ? IdentityOp::getOperationName()
                              : QuantizeOp::getOperationName(),
                     wide, packed));
  pack.setLoopStructure({all, all}, used.extents);
  made.push_back(pack);
  operation->setOperand(1, pack->getResult(0));
  setMap(1, used.projection);
}

void SuperDSCLegalizer::expandFactors() {
  unsigned columns = extents.size() - 2;
  for (unsigned number : {0, 1}) {
    llvm::SmallBitVector lacks(extents.size());
    for (unsigned loop = number == 0 ? 0 : columns; loop < extents.size();
         ++loop)
      if (extents[loop] > 1 && (number == 1 || loop != columns))
        lacks.set(loop);
    lacks.reset(getUsedDims(maps[number], extents));
    if (lacks.any())
      replaceInput(number, lacks);
  }
}

bool SuperDSCLegalizer::isConvolution() const {
  SmallVector<Window, 2> windows = getConvolutionWindows(op);
  std::optional<StickAccess> image;
  if (!windows.empty())
    image = access(0);
  if (!image || image->laneDim + 1 != static_cast<int64_t>(extents.size()) ||
      image->getInnermostStride() > 1)
    return false;
  // Places are steps along outputs.
  for (const Window &window : windows)
    image->strides[window.place] = 0;
  return areNested(*image, extents);
}

void SuperDSCLegalizer::mergeReductions() {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  int64_t count = countReductions();
  llvm::SmallBitVector group(extents.size());
  group.set(extents.size() - count, extents.size());
  if (count > 1 &&
      llvm::all_of(ArrayRef(kinds).take_back(count), [](auto kind) {
        return kind == utils::IteratorType::reduction;
      })) {
    size_t numLoops = extents.size();
    mergeLoops(group);
    if (extents.size() < numLoops)
      numLastReductions = 1;
  }
}

void SuperDSCLegalizer::mergeBatches() {
  for (bool isInBoth : {true, false}) {
    llvm::SmallBitVector ofY = getUsedDims(maps[1], extents);
    llvm::SmallBitVector group(extents.size());
    for (unsigned loop = 0; loop + 3 < extents.size(); ++loop)
      if (extents[loop] > 1 && ofY.test(loop) == isInBoth)
        group.set(loop);
    if (group.count() > (isInBoth ? 2 : 1))
      mergeLoops(group);
  }
}

void SuperDSCLegalizer::mergeLoops(const llvm::SmallBitVector &group) {
  unsigned init = op->getNumOperands() - 1;
  for (unsigned number = 0; number <= init; ++number)
    if (!access(number))
      return;
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> merged;
  SmallVector<unsigned> newLoop(extents.size());
  unsigned first = group.find_first();
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (group.test(loop) && loop != first) {
      newLoop[loop] = newLoop[first];
      merged[newLoop[first]] *= extents[loop];
      continue;
    }
    newLoop[loop] = merged.size();
    merged.push_back(extents[loop]);
  }
  SmallVector<AffineMap> changed;
  builder.setInsertionPoint(operation);
  for (unsigned number = 0; number <= init; ++number) {
    AffineMap map = maps[number];
    if (!getUsedDims(map, extents).anyCommon(group)) {
      SmallVector<AffineExpr> renamed;
      for (unsigned loop = 0; loop < extents.size(); ++loop)
        renamed.push_back(group.test(loop)
                              ? getAffineConstantExpr(0, context)
                              : getAffineDimExpr(newLoop[loop], context));
      changed.push_back(
          map.replaceDimsAndSymbols(renamed, {}, merged.size(), 0));
      continue;
    }
    Used used = getUsed(map, group);
    // The copy's dimensions, and its coordinates in the loops used.
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> coordinates, projection;
    for (auto [position, loop] : llvm::enumerate(used.loops)) {
      AffineExpr own = getAffineDimExpr(position, context);
      AffineExpr dim = getAffineDimExpr(newLoop[loop], context);
      auto *known = llvm::find(projection, dim);
      if (known == projection.end()) {
        projection.push_back(dim);
        coordinates.push_back(own);
        shape.push_back(merged[newLoop[loop]]);
        continue;
      }
      AffineExpr &sum = coordinates[known - projection.begin()];
      sum = sum * extents[loop] + own;
    }
    auto toMap = AffineMap::get(used.loops.size(), 0, coordinates, context);
    auto laneOf = [&](int64_t loop, bool isMerged = false) -> int64_t {
      if (positionOf(used.loops, loop) < 0 || (group.test(loop) && !isMerged))
        return -1;
      auto *known =
          llvm::find(projection, getAffineDimExpr(newLoop[loop], context));
      return known - projection.begin();
    };
    Type element = typeOf(number).getElementType();
    int64_t lane = laneOf(access(number)->laneDim);
    RankedTensorType type = withStick(shape, element, lane);
    changed.push_back(AffineMap::get(merged.size(), 0, projection, context));
    if (number != init) {
      Value part = copy(operation->getOperand(number), used.map, empty(type),
                        toMap, used.extents);
      int64_t wanted = laneOf(wantedLane(number), /*isMerged=*/true);
      if (wanted != lane)
        part = copyWhole(part, withStick(shape, element, wanted));
      operation->setOperand(number, part);
      continue;
    }
    Value target = operation->getOperand(init);
    operation->setOperand(init, empty(type));
    Value result = operation->getResult(0);
    result.setType(type);
    builder.setInsertionPointAfter(operation);
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
    Value whole = copy(result, toMap, target, used.map, used.extents);
    for (OpOperand *use : uses)
      use->set(whole);
  }
  setLoops(changed, merged);
  load();
}
