// SPDX-License-Identifier: Apache-2.0
//===- StickAccess.cpp - Accesses as strides between sticks -----*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;

int64_t StickAccess::getInnermostStride() const {
  int64_t smallest = 0;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    int64_t own = stride;
    // One stick, which the layout places among the other dimensions.
    if (own == 0 && laneDim == static_cast<int64_t>(dim) && totalSticks > 1)
      own = tileStride;
    if (own != 0 && (smallest == 0 || own < smallest))
      smallest = own;
  }
  return smallest;
}

int64_t StickAccess::getRunLength(ArrayRef<int64_t> counts) const {
  // Steps between sticks, and how many there are.
  SmallVector<std::pair<int64_t, int64_t>, 6> steps;
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    int64_t count = llvm::divideCeilSigned(counts[dim], getStepsPerStick(dim));
    if (count > 1 && stride > 0)
      steps.emplace_back(stride, count);
  }
  llvm::sort(steps);
  int64_t run = 1;
  for (auto [stride, count] : steps) {
    if (stride != run)
      break;
    run *= count;
  }
  return run;
}

std::optional<StickAccess>
spyre_graph::getStickAccess(AffineMap map, LayoutAttrInterface layout,
                            ArrayRef<int64_t> shape,
                            ArrayRef<int64_t> extents) {
  MLIRContext *context = map.getContext();
  LaneAccess lane = getLaneAccess(map, layout, shape, extents);
  if (lane.kind == LaneAccess::Irregular)
    return std::nullopt;
  StickAccess access;
  access.stickElements = getStickElements(layout);
  unsigned numDims = extents.size();
  AffineMap device = layout.getDeviceMap(shape, context);
  SmallVector<AffineExpr> results(map.getResults());
  SmallVector<int64_t> ranges(extents);
  // A loop is whole sticks times their number, plus the place in the stick.
  auto split = [&](int64_t loop, int64_t steps) {
    AffineExpr number = getAffineDimExpr(ranges.size(), context);
    if (loop < 0) {
      ranges.push_back(1);
      return;
    }
    AffineExpr variable = getAffineDimExpr(loop, context);
    for (AffineExpr &result : results)
      result = result.replace(variable, number * steps + variable);
    ranges.push_back(llvm::divideCeilSigned(extents[loop], steps));
    ranges[loop] = std::min(extents[loop], steps);
  };
  if (lane.kind == LaneAccess::Variable)
    access.laneDim = lane.dim;
  split(access.laneDim, access.stickElements);
  access.numPacked = getNumPacked(layout);
  if (int64_t packed = getPackedDim(layout); packed >= 0)
    if (auto loop = dyn_cast<AffineDimExpr>(
            simplifyWithRanges(map.getResult(packed), extents)))
      access.packedDim = loop.getPosition();
  split(access.packedDim, access.numPacked);
  SmallVector<int64_t> deviceSize = layout.getDeviceSize(shape);
  AffineExpr index = getAffineConstantExpr(0, context);
  int64_t stride = 1;
  for (unsigned dim = deviceSize.size() - 1; dim-- > 0;) {
    index = index + device.getResult(dim).replaceDims(results) * stride;
    stride *= deviceSize[dim];
  }
  access.totalSticks = stride;
  int64_t own = 1;
  auto deviceDims = layout.getDeviceDims(shape);
  for (const ::spyre::DeviceDim &dim :
       llvm::reverse(ArrayRef(deviceDims).drop_back())) {
    if (dim.hostDim >= 0 && dim.hostDim == layout.getStickDim(shape) &&
        dim.step == access.stickElements)
      access.tileStride = own;
    own *= std::max<int64_t>(dim.extent, 1);
  }
  auto form = getLinearForm(simplifyWithRanges(index, ranges), numDims + 2);
  if (!form)
    return std::nullopt;
  access.strides.assign(form->begin(), form->begin() + numDims);
  access.offset = form->back();
  // The place in a stick moves to no other stick.
  const int64_t loopsInStick[] = {access.laneDim, access.packedDim};
  for (auto [number, loop] : llvm::enumerate(loopsInStick)) {
    if (loop < 0)
      continue;
    int64_t stride = (*form)[numDims + number];
    // One stick that is read again for each stick of the loop.
    if (access.strides[loop] != 0 ||
        (stride == 0 && ranges[numDims + number] > 1))
      return std::nullopt;
    access.strides[loop] = stride;
  }
  return access;
}

/// The terms of a sum with their factors.
static void collectTerms(AffineExpr expr,
                         SmallVectorImpl<std::pair<AffineExpr, int64_t>> &terms,
                         int64_t factor = 1) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add) {
    collectTerms(binary.getLHS(), terms, factor);
    return collectTerms(binary.getRHS(), terms, factor);
  }
  if (binary && binary.getKind() == AffineExprKind::Mul)
    if (auto number = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return collectTerms(binary.getLHS(), terms, factor * number.getValue());
  terms.emplace_back(expr, factor);
}

/// Whether expressions are equal but for the order of sums.
static bool areEqual(AffineExpr a, AffineExpr b, ArrayRef<int64_t> extents) {
  if (a == b)
    return true;
  auto left = dyn_cast<AffineBinaryOpExpr>(a),
       right = dyn_cast<AffineBinaryOpExpr>(b);
  if (left && right && left.getKind() == AffineExprKind::FloorDiv &&
      right.getKind() == AffineExprKind::FloorDiv)
    return left.getRHS() == right.getRHS() &&
           areEqual(left.getLHS(), right.getLHS(), extents);
  return simplifyWithRanges(a - b, extents) ==
         getAffineConstantExpr(0, a.getContext());
}

/// Replaces one q x (e floordiv q) + e mod q in a sum by e; null if there is
/// none.
static AffineExpr joinRemainder(AffineExpr sum, ArrayRef<int64_t> extents) {
  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  collectTerms(sum, terms);
  for (auto [term, factor] : terms) {
    auto remainder = dyn_cast<AffineBinaryOpExpr>(term);
    if (!remainder || remainder.getKind() != AffineExprKind::Mod)
      continue;
    AffineExpr whole = remainder.getLHS();
    int64_t divisor = cast<AffineConstantExpr>(remainder.getRHS()).getValue();
    AffineExpr quotient = simplifyWithRanges(whole.floorDiv(divisor), extents);
    for (auto [other, otherFactor] : terms)
      if (otherFactor == factor * divisor && areEqual(other, quotient, extents))
        return simplifyWithRanges(sum - other * otherFactor - term * factor +
                                      whole * factor,
                                  extents);
  }
  return {};
}

AffineMap spyre_graph::joinRemainders(AffineMap map,
                                      ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> results(map.getResults());
  for (AffineExpr &result : results)
    while (AffineExpr joined = joinRemainder(result, extents))
      result = joined;
  return AffineMap::get(map.getNumDims(), 0, results, map.getContext());
}

AffineMap spyre_graph::getLinearIndex(AffineMap map, ArrayRef<int64_t> shape,
                                      ArrayRef<int64_t> extents) {
  AffineExpr index = getAffineConstantExpr(0, map.getContext());
  for (auto [result, size] : llvm::zip_equal(map.getResults(), shape))
    index = index * size + result;
  return joinRemainders(AffineMap::get(map.getNumDims(), 0,
                                       simplifyWithRanges(index, extents),
                                       map.getContext()),
                        extents);
}

/// Numbers by which loops must be cut for `expr` to become linear.
static void collectCuts(AffineExpr expr, SmallVector<std::set<int64_t>> &cuts) {
  expr.walk([&](AffineExpr sub) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(sub);
    if (!binary || (binary.getKind() != AffineExprKind::FloorDiv &&
                    binary.getKind() != AffineExprKind::Mod))
      return;
    int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    AffineExpr inner = binary.getLHS();
    // (v floordiv a) mod b cuts v at a x b.
    if (auto quotient = dyn_cast<AffineBinaryOpExpr>(inner);
        quotient && quotient.getKind() == AffineExprKind::FloorDiv) {
      divisor *= cast<AffineConstantExpr>(quotient.getRHS()).getValue();
      inner = quotient.getLHS();
    } else if (quotient && quotient.getKind() == AffineExprKind::Mod) {
      inner = quotient.getLHS();
    }
    if (auto dim = dyn_cast<AffineDimExpr>(inner))
      cuts[dim.getPosition()].insert(divisor);
  });
}

std::optional<RefinedLoops>
spyre_graph::refineLoops(ArrayRef<AffineMap> maps, ArrayRef<int64_t> extents,
                         ArrayRef<LayoutAttrInterface> layouts,
                         ArrayRef<SmallVector<int64_t>> shapes) {
  SmallVector<std::set<int64_t>> cuts(extents.size());
  for (auto [map, layout, shape] : llvm::zip_equal(maps, layouts, shapes)) {
    if (getStickAccess(map, layout, shape, extents))
      continue;
    for (AffineExpr result : map.getResults())
      collectCuts(simplifyWithRanges(result, extents), cuts);
  }
  if (llvm::all_of(cuts, [](const auto &own) { return own.empty(); }))
    return std::nullopt;
  RefinedLoops refined;
  MLIRContext *context = maps.front().getContext();
  SmallVector<AffineExpr> replacements;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    // Outer to inner: each cut divides the one before it and the extent.
    SmallVector<int64_t> steps(cuts[dim].rbegin(), cuts[dim].rend());
    llvm::erase_if(steps,
                   [&](int64_t s) { return s <= 1 || s >= extents[dim]; });
    int64_t previous = extents[dim];
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (int64_t step : steps) {
      if (previous % step != 0)
        return std::nullopt;
      sum = sum + getAffineDimExpr(refined.extents.size(), context) * step;
      refined.extents.push_back(previous / step);
      previous = step;
    }
    sum = sum + getAffineDimExpr(refined.extents.size(), context);
    refined.extents.push_back(previous);
    replacements.push_back(sum);
  }
  for (AffineMap map : maps)
    refined.maps.push_back(simplifyWithRanges(
        map.replaceDimsAndSymbols(replacements, {}, refined.extents.size(), 0),
        refined.extents));
  return refined;
}
