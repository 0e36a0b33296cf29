//===- LaneAccess.cpp - How operations touch sticks -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

int64_t spyre_graph::getStickElements(LayoutAttrInterface layout) {
  return ::spyre::elemsPerStick(layout.getDataFormat()) / getNumPacked(layout);
}

/// Whether an access walks the dimension that shares sticks with another one by
/// a loop of its own: then loops still meet sticks at fixed distances.
static bool walksPacked(AffineMap map, LayoutAttrInterface layout,
                        ArrayRef<int64_t> extents) {
  int64_t packed = getPackedDim(layout);
  return packed < 0 ||
         isa<AffineDimExpr>(simplifyWithRanges(map.getResult(packed), extents));
}

LaneAccess spyre_graph::getLaneAccess(AffineMap map, LayoutAttrInterface layout,
                                      ArrayRef<int64_t> shape,
                                      ArrayRef<int64_t> extents) {
  MLIRContext *context = map.getContext();
  AffineExpr lane = getAffineConstantExpr(0, context);
  int64_t stickElements = getStickElements(layout);
  if (auto relative = dyn_cast<LayoutAttr>(layout)) {
    int64_t stickDim = relative.getStickDim(shape);
    if (stickDim >= 0)
      lane =
          simplifyWithRanges(map.getResult(stickDim) % stickElements, extents);
  } else if (!llvm::is_contained(shape, 0)) {
    AffineExpr deviceLane =
        layout.getDeviceMap(shape, context).getResults().back();
    lane =
        simplifyWithRanges(deviceLane.replaceDims(map.getResults()), extents);
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(lane))
    return {constant.getValue() == 0 ? LaneAccess::Zero : LaneAccess::Irregular,
            0, lane};
  AffineExpr variable = lane;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(lane);
      binary && binary.getKind() == AffineExprKind::Mod)
    if (auto period = dyn_cast<AffineConstantExpr>(binary.getRHS());
        period && period.getValue() == stickElements)
      variable = binary.getLHS();
  if (auto dim = dyn_cast<AffineDimExpr>(variable);
      dim && walksPacked(map, layout, extents))
    return {LaneAccess::Variable, dim.getPosition(), lane};
  return {LaneAccess::Irregular, 0, lane};
}

int64_t spyre_graph::getNumTouchedSticks(AffineMap map,
                                         LayoutAttrInterface layout,
                                         ArrayRef<int64_t> shape,
                                         ArrayRef<int64_t> extents) {
  int64_t sticks = 1;
  auto getNumPoints = [&](const llvm::SmallBitVector &used) {
    int64_t points = 1;
    for (unsigned loop : used.set_bits())
      points *= extents[loop];
    return points;
  };
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto [low, high] = getRange(expr, extents);
    int64_t steps = getStepsPerStick(layout, shape, dim);
    low /= steps;
    high /= steps;
    sticks *= std::min(getNumPoints(getUsedDims(expr, extents)),
                       std::max<int64_t>(high - low + 1, 0));
  }
  return std::min({sticks, getNumPoints(getUsedDims(map, extents)),
                   layout.getSizeInBytes(shape) / ::spyre::kStickBytes});
}

llvm::SmallBitVector spyre_graph::getUsedDims(AffineExpr expr,
                                              ArrayRef<int64_t> extents) {
  llvm::SmallBitVector used(extents.size());
  expr.walk([&](AffineExpr sub) {
    if (auto dim = dyn_cast<AffineDimExpr>(sub))
      if (extents[dim.getPosition()] > 1)
        used.set(dim.getPosition());
  });
  return used;
}

llvm::SmallBitVector spyre_graph::getUsedDims(AffineMap map,
                                              ArrayRef<int64_t> extents) {
  llvm::SmallBitVector used(extents.size());
  for (AffineExpr result : map.getResults())
    used |= getUsedDims(result, extents);
  return used;
}

int64_t spyre_graph::getSplitReduction(ArrayRef<utils::IteratorType> kinds,
                                       ArrayRef<int64_t> splits) {
  for (auto [dim, kind] : llvm::enumerate(kinds))
    if (kind != utils::IteratorType::parallel && splits[dim] > 1)
      return dim;
  return -1;
}

/// Loop dimensions whose steps along a stick dimension may meet in one stick,
/// though the lane does not depend on them: rows of whole sticks that start
/// within one.
static llvm::SmallBitVector getDimsSharingSticks(AffineExpr coordinate,
                                                 ArrayRef<int64_t> extents,
                                                 int64_t stickElements) {
  llvm::SmallBitVector used = getUsedDims(coordinate, extents);
  std::optional<SmallVector<int64_t>> form =
      getLinearForm(coordinate, extents.size());
  if (!form)
    return used;
  int64_t low = form->back();
  SmallVector<std::pair<int64_t, unsigned>> steps;
  for (unsigned dim : used.set_bits()) {
    int64_t step = (*form)[dim];
    if (step < 0)
      low += step * (extents[dim] - 1);
    steps.emplace_back(std::abs(step), dim);
  }
  llvm::sort(steps);
  int64_t high = low; // Smaller steps reach elements low to high.
  llvm::SmallBitVector shared(extents.size()), smaller(extents.size());
  for (auto [step, dim] : steps) {
    smaller.set(dim);
    // The next iteration of this loop begins at low + step. It shares a stick
    // with the last element of the smaller steps if both are in one stick.
    if (step % stickElements != 0 ||
        llvm::divideFloorSigned(low + step, stickElements) <=
            llvm::divideFloorSigned(high, stickElements))
      shared = smaller;
    high += step * (extents[dim] - 1);
  }
  return shared;
}

/// Whether a coordinate that loop dimensions `together` and others count says
/// which of the others' iterations it is: each of their steps is larger than
/// all that the former reach.
static bool tellsApart(AffineExpr coordinate, ArrayRef<int64_t> extents,
                       const llvm::SmallBitVector &together) {
  // The coordinate without the one kind of dimensions and without the other.
  SmallVector<int64_t> of(extents), ofOthers(extents);
  for (unsigned dim = 0; dim < extents.size(); ++dim)
    (together.test(dim) ? ofOthers : of)[dim] = 1;
  AffineExpr own = simplifyWithRanges(coordinate, of),
             others = simplifyWithRanges(coordinate, ofOthers);
  if (!isa<AffineConstantExpr>(
          simplifyWithRanges(coordinate - own - others, extents)))
    return false;
  auto form = getLinearForm(others, extents.size());
  int64_t step = 0;
  if (form)
    for (int64_t factor : ArrayRef(*form).drop_back())
      step = std::gcd(step, factor);
  auto [low, high] = getRange(own, extents);
  return high - low < std::max<int64_t>(step, 1);
}

/// Adds to loop dimensions along which lanes of one stick are written those
/// whose iterations meet theirs in a stick: another coordinate counts both, as
/// in (2 x i + j, i) with lane i.
static void addDimsMeetingInSticks(AffineMap map, int64_t stickDim,
                                   ArrayRef<int64_t> extents,
                                   llvm::SmallBitVector &together) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [dim, coordinate] : llvm::enumerate(map.getResults())) {
      llvm::SmallBitVector used = getUsedDims(coordinate, extents);
      if (static_cast<int64_t>(dim) == stickDim || !used.anyCommon(together) ||
          !used.test(together) || tellsApart(coordinate, extents, together))
        continue;
      together |= used;
      changed = true;
    }
  }
}

SmallVector<int64_t> spyre_graph::getSliceGranularity(SpyreOpInterface op) {
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  SmallVector<int64_t> granularity(extents.size(), 1);
  unsigned initNumber = op->getNumOperands() - 1;
  for (OpOperand &operand : op->getOpOperands()) {
    LayoutAttrInterface layout = getLayout(operand.get().getType());
    if (!layout)
      continue;
    unsigned number = operand.getOperandNumber();
    ArrayRef<int64_t> shape =
        cast<ShapedType>(operand.get().getType()).getShape();
    LaneAccess access = getLaneAccess(maps[number], layout, shape, extents);
    if (access.kind == LaneAccess::Variable) {
      granularity[access.dim] =
          std::lcm(granularity[access.dim], getStickElements(layout));
      if (int64_t packed = getPackedDim(layout); packed >= 0) {
        auto loop = cast<AffineDimExpr>(
            simplifyWithRanges(maps[number].getResult(packed), extents));
        int64_t &own = granularity[loop.getPosition()];
        own = std::lcm(own, getNumPacked(layout));
      }
      if (number != initNumber)
        continue;
      llvm::SmallBitVector together(extents.size());
      together.set(access.dim);
      int64_t stickDim = layout.getStickDim(shape);
      // Where rows begin at other lanes, the end of one meets the next in a
      // stick, as in element 3969 x i + 64 x j with lane i.
      AffineExpr coordinate = maps[number].getResult(stickDim);
      if (getLinearForm(coordinate, extents.size()))
        together |=
            getDimsSharingSticks(coordinate, extents, getStickElements(layout));
      addDimsMeetingInSticks(maps[number], stickDim, extents, together);
      for (unsigned dim : together.set_bits())
        if (dim != access.dim)
          granularity[dim] = extents[dim];
      continue;
    }
    // Where the lane written is not aligned with a loop dimension, a cut in any
    // dimension that the lane depends on may fall inside a stick; so may others
    // where a run of lanes reaches into the next stick.
    if (number == initNumber && access.kind == LaneAccess::Irregular) {
      llvm::SmallBitVector usedDims = getUsedDims(access.lane, extents);
      int64_t stickDim = layout.getStickDim(shape);
      if (stickDim >= 0)
        usedDims |= getDimsSharingSticks(maps[number].getResult(stickDim),
                                         extents, getStickElements(layout));
      addDimsMeetingInSticks(maps[number], stickDim, extents, usedDims);
      for (unsigned dim : usedDims.set_bits())
        granularity[dim] = extents[dim];
    }
  }
  return granularity;
}

AffineMap spyre_graph::getChunkMap(SpyreOpInterface op,
                                   ArrayRef<int64_t> splits,
                                   ArrayRef<int64_t> chunks) {
  AffineMap extentMap = op.getLoopExtentMap();
  if (!extentMap)
    return AffineMap();
  SmallVector<int64_t> granularity = getSliceGranularity(op);
  SmallVector<AffineExpr> results;
  for (auto [dim, extent] : llvm::enumerate(extentMap.getResults())) {
    int64_t granule = std::max<int64_t>(granularity[dim], 1);
    if (!varies(extentMap, dim))
      results.push_back(getAffineConstantExpr(chunks[dim], op->getContext()));
    else if (splits[dim] == 1)
      results.push_back(extent);
    else
      results.push_back(extent.ceilDiv(granule * splits[dim]) * granule);
  }
  return AffineMap::get(0, extentMap.getNumSymbols(), results,
                        op->getContext());
}
