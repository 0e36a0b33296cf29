//===- OperandSpans.cpp - How much of a tensor one core addresses -*- C++ -*-=//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "OperandSpans.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <functional>

using namespace mlir;
using namespace mlir::spyre_graph;

ShapedType spyre_graph::getWholeType(Value value) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (slice.getSourceType().getRank() != slice.getType().getRank())
      break;
    value = slice.getSource();
  }
  return cast<ShapedType>(value.getType());
}

OperandSpans::OperandSpans(SpyreOpInterface op, const ::spyre::DeviceSpec &spec,
                           ShapedType accumulator)
    : maxSpanBytes(spec.maxSpanBytes) {
  for (OpOperand &use : op->getOpOperands()) {
    ShapedType type = accumulator && op.isDpsInit(&use)
                          ? accumulator
                          : getWholeType(use.get());
    LayoutAttrInterface layout = getLayout(type);
    if (layout && layout.getSizeInBytes(type.getShape()) > maxSpanBytes)
      addOperand(op, use, type, layout);
  }
  // Most operations have none, and nothing else to ask for.
  if (operands.empty())
    return;
  kinds = op.getLoopKinds();
  granularity = getSliceGranularity(op);
  isCombined = isCombinedAcrossCores(op.getCombiner());
  AffineMap written = op.getIndexingMaps().back();
  for (unsigned dim = 0; dim < kinds.size(); ++dim)
    isWritten.push_back(written.isFunctionOfDim(dim));
}

void OperandSpans::addOperand(SpyreOpInterface op, OpOperand &use,
                              ShapedType type, LayoutAttrInterface layout) {
  MLIRContext *context = op->getContext();
  AffineMap map = op.getIndexingMaps()[use.getOperandNumber()];
  SmallVector<int64_t> ranges = op.getLoopExtents();
  // One more loop, over the dimension that indices choose from.
  AffineExpr chosen = getAffineDimExpr(ranges.size(), context);
  SmallVector<AffineExpr> results(map.getResults());
  ranges.push_back(1);
  if (std::optional<IndirectAccess> indirect = op.getIndirectAccess();
      indirect && indirect->operand == use.getOperandNumber()) {
    results[indirect->dim] = chosen;
    ranges.back() =
        cast<ShapedType>(use.get().getType()).getDimSize(indirect->dim);
  }
  map = AffineMap::get(ranges.size(), 0, results, context);
  ArrayRef<int64_t> shape = type.getShape();
  AffineMap device = simplifyWithRanges(
      layout.getDeviceMap(shape, context).compose(map), ranges);
  SmallVector<int64_t> sizes = layout.getDeviceSize(shape);
  operands.push_back({&use,
                      SmallVector<AffineExpr>(device.getResults().drop_back()),
                      SmallVector<int64_t>(ArrayRef(sizes).drop_back()),
                      layout.getSizeInBytes(shape), ranges});
}

void OperandSpans::keepOnly(function_ref<bool(OpOperand &)> counts) {
  llvm::erase_if(operands,
                 [&](Operand &operand) { return !counts(*operand.use); });
}

/// The number of values from the least to the greatest that `expr` takes in one
/// slice of `chunks` iterations, at most, of those at multiples of the chunks.
static int64_t getReach(AffineExpr expr, ArrayRef<int64_t> extents,
                        ArrayRef<int64_t> chunks) {
  auto [low, high] = getRange(expr, chunks);
  int64_t reach = high - low + 1;
  SmallVector<AffineExpr> shifted;
  SmallVector<unsigned> cut;
  llvm::SmallBitVector used = getUsedDims(expr, extents);
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    shifted.push_back(getAffineDimExpr(dim, expr.getContext()));
    if (used.test(dim) && chunks[dim] < extents[dim])
      cut.push_back(dim);
  }
  // Where it is linear, or a part of what is linear that slices do not share,
  // every slice reaches as far as the first one.
  int64_t period = 1;
  AffineExpr whole = expr;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
      binary && binary.getKind() != AffineExprKind::Add &&
      binary.getKind() != AffineExprKind::Mul) {
    period = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    whole = binary.getLHS();
  }
  std::optional<SmallVector<int64_t>> form =
      getLinearForm(whole, extents.size());
  if (form && llvm::all_of(cut, [&](unsigned dim) {
        return (*form)[dim] * chunks[dim] % period == 0;
      }))
    return reach;
  // All cores' slices, as far as there are any.
  std::function<void(unsigned, int64_t)> visit = [&](unsigned number,
                                                     int64_t coresLeft) {
    if (number == cut.size()) {
      auto [low, high] = getRange(expr.replaceDims(shifted), chunks);
      reach = std::max(reach, high - low + 1);
      return;
    }
    unsigned dim = cut[number];
    int64_t slices =
        std::min(coresLeft, llvm::divideCeilSigned(extents[dim], chunks[dim]));
    for (int64_t slice = 0; slice < slices; ++slice) {
      shifted[dim] =
          getAffineDimExpr(dim, expr.getContext()) + slice * chunks[dim];
      visit(number + 1, coresLeft / slices);
    }
  };
  visit(0, ::spyre::DeviceSpec::kMaxCores);
  return reach;
}

bool OperandSpans::fit(ArrayRef<int64_t> chunks) const {
  SmallVector<int64_t> ranges(chunks);
  ranges.push_back(1);
  return llvm::all_of(operands, [&](const Operand &operand) {
    ranges.back() = operand.ranges.back();
    int64_t innerBytes = operand.sizeInBytes;
    for (auto [coordinate, size] :
         llvm::zip_equal(operand.coordinates, operand.sizes)) {
      innerBytes /= size;
      int64_t reach = getReach(coordinate, operand.ranges, ranges);
      if (reach > 1)
        return reach <= maxSpanBytes / innerBytes;
    }
    return true;
  });
}

bool OperandSpans::canFit(ArrayRef<int64_t> extents, Cores cores) const {
  if (!isAnyLimited() || llvm::is_contained(extents, 0))
    return true;
  SmallVector<int64_t> chunks(extents);
  bool canSplitReduction =
      cores.target.allowsSplitReductions() && !cores.isInLoop && isCombined;
  return canFitFrom(0, extents, cores, cores.number, canSplitReduction, chunks);
}

SmallVector<DimDivision> spyre_graph::getDivisions(int64_t extent,
                                                   int64_t granularity,
                                                   int64_t most,
                                                   const Target &target) {
  SmallVector<DimDivision> divisions;
  int64_t units = llvm::divideCeilSigned(extent, granularity);
  int64_t previous = 1;
  for (int64_t wanted = 2; wanted <= std::min(units, most); ++wanted) {
    int64_t unitsPerSlice = llvm::divideCeilSigned(units, wanted);
    int64_t numSlices = llvm::divideCeilSigned(units, unitsPerSlice);
    if (numSlices == previous ||
        (!target.allowsUnequalSlices() && numSlices * unitsPerSlice != units))
      continue;
    previous = numSlices;
    divisions.push_back({numSlices, unitsPerSlice * granularity});
  }
  return divisions;
}

/// Tries the numbers of slices of loop dimension `dim` and those after it, as
/// DivisionSearch::enumerate().
bool OperandSpans::canFitFrom(unsigned dim, ArrayRef<int64_t> extents,
                              Cores cores, int64_t coresLeft,
                              bool canSplitReduction,
                              SmallVectorImpl<int64_t> &chunks) const {
  if (dim == extents.size())
    return fit(chunks);
  chunks[dim] = extents[dim];
  if (canFitFrom(dim + 1, extents, cores, coresLeft, canSplitReduction, chunks))
    return true;
  bool isParallel = kinds[dim] == utils::IteratorType::parallel;
  if (isParallel ? !isWritten[dim] : !canSplitReduction)
    return false;
  for (auto [numSlices, chunk] :
       getDivisions(extents[dim], granularity[dim], coresLeft, cores.target)) {
    chunks[dim] = chunk;
    if (canFitFrom(dim + 1, extents, cores, coresLeft / numSlices,
                   canSplitReduction && isParallel, chunks))
      return true;
  }
  chunks[dim] = extents[dim];
  return false;
}
