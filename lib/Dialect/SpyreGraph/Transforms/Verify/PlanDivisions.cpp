//===- PlanDivisions.cpp - Each iteration once ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "PlanDivisions.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "mlir/IR/AffineExprVisitor.h"

using namespace mlir;
using namespace mlir::spyre_graph;

int64_t spyre_graph::getPlannedSlice(WorkDivisionAttr division, int64_t core,
                                     unsigned dim) {
  ArrayRef<int64_t> order = division.getOrder();
  for (unsigned place = 0; place < division.getSplits().size(); ++place) {
    unsigned walked = order.empty() ? place : order[place];
    if (walked == dim)
      return core % division.getSplits()[dim];
    core /= division.getSplits()[walked];
  }
  llvm_unreachable("the order has all dimensions");
}

std::pair<int64_t, int64_t>
spyre_graph::getPlannedRange(AffineExpr expr, ArrayRef<int64_t> extents,
                             WorkDivisionAttr division, int64_t core) {
  SmallVector<AffineExpr> shifted;
  SmallVector<int64_t> sizes;
  for (auto [dim, chunk] : llvm::enumerate(division.getChunks())) {
    int64_t low = getPlannedSlice(division, core, dim) * chunk;
    shifted.push_back(getAffineDimExpr(dim, expr.getContext()) + low);
    // The last slice may be shorter.
    sizes.push_back(std::min(chunk, extents[dim] - low));
  }
  return getRange(expr.replaceDims(shifted), sizes);
}

int64_t spyre_graph::getPlannedSpan(SpyreOpInterface op, unsigned number,
                                    MemRefType buffer) {
  AffineMap map = op.getIndexingMaps()[number];
  SmallVector<int64_t> extents = op.getLoopExtents();
  WorkDivisionAttr division = op.getWorkDivision();
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  LayoutAttrInterface layout = getLayout(buffer);
  int64_t span = layout.getSizeInBytes(buffer.getShape());
  // From the outermost device dimension inwards, up to the first of which a
  // core touches more than one index.
  SmallVector<::spyre::DeviceDim> dims =
      layout.getDeviceDims(buffer.getShape());
  for (const ::spyre::DeviceDim &dim : ArrayRef(dims).drop_back()) {
    span /= dim.extent;
    if (dim.hostDim < 0)
      continue;
    bool isChosen =
        indirect && indirect->operand == number && indirect->dim == dim.hostDim;
    int64_t count = 1;
    for (int64_t core = 0; core < division.getNumCores(); ++core) {
      auto [low, high] =
          getPlannedRange(map.getResult(dim.hostDim), extents, division, core);
      if (isChosen)
        high = low + shapeOf(op->getOperand(number))[dim.hostDim] - 1;
      count = std::max(
          count, std::min(high / dim.step - low / dim.step + 1, dim.extent));
    }
    if (count > 1)
      return span * count;
  }
  return span;
}

/// Whether the slices of a division cover the loops once.
static LogicalResult verifyCovers(SpyreOpInterface op,
                                  WorkDivisionAttr division,
                                  const PlanLimits &limits) {
  SmallVector<int64_t> extents = op.getLoopExtents();
  ArrayRef<int64_t> splits = division.getSplits();
  ArrayRef<int64_t> chunks = division.getChunks();
  // SG-PLAN-C2
  if (splits.size() != extents.size() || chunks.size() != extents.size())
    return op->emitOpError()
           << "division has " << splits.size() << " splits and "
           << chunks.size() << " chunks for " << extents.size()
           << " loop dimensions";
  int64_t coresUsed = 1;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (splits[dim] < 1 || splits[dim] > limits.cores || chunks[dim] < 0)
      return op->emitOpError()
             << "loop dimension " << dim << " has " << splits[dim]
             << " slices of " << chunks[dim] << " iterations";
    coresUsed *= splits[dim];
    if (coresUsed > limits.cores)
      return op->emitOpError()
             << "division needs more than " << limits.cores << " cores";
    // SG-PLAN-C3: iterations in order of the slices, each once, none outside.
    int64_t covered = 0;
    for (int64_t slice = 0; slice < splits[dim]; ++slice) {
      int64_t low = slice * chunks[dim];
      int64_t high = std::min(low + chunks[dim], extents[dim]);
      if (limits.mayBeEmpty && covered == extents[dim])
        break;
      if (low != covered || (high <= low && extents[dim] > 0))
        return op->emitOpError() << "slice " << slice << " of loop dimension "
                                 << dim << " has iterations " << low << " to "
                                 << high << ", expected them from " << covered;
      covered = std::max(high, low);
    }
    if (covered != extents[dim])
      return op->emitOpError()
             << "slices of loop dimension " << dim << " cover " << covered
             << " of " << extents[dim] << " iterations";
  }
  return success();
}

LogicalResult spyre_graph::verifyDivision(SpyreOpInterface op,
                                          const PlanLimits &limits) {
  // SG-PLAN-C2
  if (!op->hasAttr("maps") || !op->hasAttr("extents"))
    return op->emitOpError("has no explicit maps and extents");
  WorkDivisionAttr division = op.getWorkDivision();
  if (!division)
    return op->emitOpError("has no work division");
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  ArrayRef<int64_t> splits = division.getSplits();
  if (failed(verifyCovers(op, division, limits)))
    return failure();
  // Data that comes from other cores is divided in a way of its own.
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (WorkDivisionAttr held = op.getAccessDivision(operand);
        held != division && failed(verifyCovers(op, held, limits)))
      return failure();
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (splits[dim] == 1 || kinds[dim] == utils::IteratorType::parallel)
      continue;
    // SG-PLAN-C2
    if (!isCombinedAcrossCores(op.getCombiner()))
      return op->emitOpError()
             << "loop dimension " << dim
             << " is split, but parts of the result cannot be combined";
    for (unsigned other = 0; other < extents.size(); ++other) {
      if (other == dim || splits[other] == 1)
        continue;
      if (kinds[other] != utils::IteratorType::parallel)
        return op->emitOpError() << "reduction dimensions " << other << " and "
                                 << dim << " are both split";
      // SG-PLAN-C3: the cores of each group of `splits[dim]` in a row combine
      // their parts.
      for (int64_t core = 1; core < splits[dim]; ++core)
        if (getPlannedSlice(division, core, other) != 0)
          return op->emitOpError()
                 << "cores 0 and " << core
                 << " are neighbours, but not partners in the split "
                    "reduction over loop dimension "
                 << dim;
    }
  }
  return success();
}

/// Whether a coordinate along the stick lies in different sticks on the two
/// sides of every cut of loop dimension `dim`, whatever the other dimensions.
static bool cutsBetweenSticks(AffineExpr coordinate, unsigned dim,
                              ArrayRef<int64_t> extents, int64_t splits,
                              int64_t chunk, int64_t stickElements) {
  SimpleAffineExprFlattener flattener(extents.size(), /*numSymbols=*/0);
  if (failed(flattener.walkPostOrder(coordinate)) ||
      !flattener.localExprs.empty())
    return false; // Floor divisions and moduli: nothing can be shown.
  ArrayRef<int64_t> flat = flattener.operandExprStack.back();
  int64_t step = flat[dim];
  if (step <= 0)
    return false;
  // The other dimensions count either within a step, or whole sticks around
  // all the steps.
  int64_t low = flat.back(), high = flat.back();
  if (low < 0)
    return false; // Sticks are counted from 0.
  SmallVector<std::pair<int64_t, int64_t>> around;
  for (unsigned other = 0; other < extents.size(); ++other) {
    int64_t stride = flat[other], reach = stride * (extents[other] - 1);
    if (other == dim || reach == 0)
      continue;
    if (stride < 0)
      return false;
    if (reach < step)
      high += reach;
    else if (stride % stickElements == 0)
      around.emplace_back(stride / stickElements, extents[other]);
    else
      return false;
  }
  int64_t sticks =
      (high + step * (extents[dim] - 1)) / stickElements - low / stickElements;
  llvm::sort(around);
  for (auto [stride, extent] : around) {
    if (stride <= sticks)
      return false;
    sticks += stride * (extent - 1);
  }
  for (int64_t slice = 1; slice < splits; ++slice) {
    int64_t lastBefore = high + step * (slice * chunk - 1);
    int64_t firstAfter = low + step * slice * chunk;
    if (lastBefore / stickElements >= firstAfter / stickElements)
      return false;
  }
  return true;
}

/// `expr` floordiv `divisor`, of a quotient by numbers as one division.
static AffineExpr divide(AffineExpr expr, AffineExpr divisor) {
  auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
  if (quotient && quotient.getKind() == AffineExprKind::FloorDiv)
    return quotient.getLHS().floorDiv(quotient.getRHS() * divisor);
  return expr.floorDiv(divisor);
}

/// Whether coordinates tell what `expr` is: one is it, but for a constant, or
/// one is its remainder and others tell the quotient.
static bool tell(ArrayRef<AffineExpr> coordinates, AffineExpr expr) {
  for (AffineExpr coordinate : coordinates) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(coordinate);
    if (binary && binary.getKind() == AffineExprKind::Add &&
        isa<AffineConstantExpr>(binary.getRHS())) {
      coordinate = binary.getLHS();
      binary = dyn_cast<AffineBinaryOpExpr>(coordinate);
    }
    if (coordinate == expr)
      return true;
    if (binary && binary.getKind() == AffineExprKind::Mod &&
        binary.getLHS() == expr)
      return tell(coordinates, divide(expr, binary.getRHS()));
  }
  return false;
}

/// What tells the sticks that are written: the coordinate of a map along the
/// stick, or, if that is the remainder of division by whole sticks, and the
/// other coordinates tell the quotient, what is divided.
static AffineExpr getWrittenPlace(AffineMap map, unsigned stickDim,
                                  int64_t stickElements) {
  AffineExpr coordinate = map.getResult(stickDim);
  auto remainder = dyn_cast<AffineBinaryOpExpr>(coordinate);
  if (!remainder || remainder.getKind() != AffineExprKind::Mod)
    return coordinate;
  auto divisor = dyn_cast<AffineConstantExpr>(remainder.getRHS());
  SmallVector<AffineExpr> others(map.getResults());
  others.erase(others.begin() + stickDim);
  if (divisor && divisor.getValue() % stickElements == 0 &&
      tell(others, divide(remainder.getLHS(), divisor)))
    return remainder.getLHS();
  return coordinate;
}

LogicalResult spyre_graph::verifyWrittenSticks(SpyreOpInterface op,
                                               bool isInLX) {
  SmallVector<int64_t> extents = op.getLoopExtents();
  if (llvm::is_contained(extents, 0))
    return success();
  AffineMap map = op.getIndexingMaps().back();
  WorkDivisionAttr division = op.getWorkDivision();
  Value init = op.getSpyreInit();
  ArrayRef<int64_t> shape = shapeOf(init);
  LayoutAttrInterface layout = getLayout(init.getType());
  int64_t stickDim = layout.getStickDim(shape);
  int64_t packedDim = getPackedDim(layout);
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (division.getSplits()[dim] == 1)
      continue;
    // Partners combine what they compute before one of them writes it.
    if (op.getLoopKinds()[dim] == utils::IteratorType::reduction)
      continue;
    bool isInSticks =
        llvm::any_of(ArrayRef({stickDim, packedDim}), [&](int64_t tensorDim) {
          return tensorDim >= 0 &&
                 map.getResult(tensorDim).isFunctionOfDim(dim);
        });
    if (!isInSticks) {
      // SG-PLAN-C3, but for copies for several cores, each in its own LX.
      bool isCopied =
          isInLX && llvm::none_of(op.getIndexingMaps(), [&](AffineMap used) {
            return used.isFunctionOfDim(dim);
          });
      if (!map.isFunctionOfDim(dim) && !isCopied)
        return op->emitOpError()
               << "loop dimension " << dim
               << " is split, but all its slices write the same elements";
      continue;
    }
    // SG-PLAN-C3
    for (int64_t tensorDim : {stickDim, packedDim}) {
      int64_t steps = getStepsPerStick(layout, shape, tensorDim);
      if (tensorDim < 0 || !map.getResult(tensorDim).isFunctionOfDim(dim))
        continue;
      // Packed dimensions share sticks.
      AffineExpr place = packedDim < 0 ? getWrittenPlace(map, tensorDim, steps)
                                       : map.getResult(tensorDim);
      if (cutsBetweenSticks(place, dim, extents, division.getSplits()[dim],
                            division.getChunks()[dim], steps))
        continue;
      return op->emitOpError()
             << "slices of " << division.getChunks()[dim]
             << " iterations of loop dimension " << dim
             << " write parts of the same stick of " << steps << " elements";
    }
  }
  return success();
}
