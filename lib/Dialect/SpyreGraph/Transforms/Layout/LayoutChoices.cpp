//===- LayoutChoices.cpp - What an operation asks of layouts ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

OpInfo OpInfo::at(ArrayRef<int64_t> sizes) const {
  OpInfo info = *this;
  info.sizes.assign(sizes.begin(), sizes.end());
  auto evaluate = [&](ArrayRef<AffineExpr> exprs) {
    return llvm::map_to_vector(exprs, [&](AffineExpr expr) -> int64_t {
      if (auto number = dyn_cast<AffineConstantExpr>(expr))
        return number.getValue();
      return std::max<int64_t>(evaluateSize(expr, sizes), 1);
    });
  };
  if (AffineMap extentMap = info.op.getLoopExtentMap())
    info.extents = evaluate(extentMap.getResults());
  for (OpOperand &operand : info.op->getOpOperands())
    info.shapes.push_back(evaluate(getSizes(
        info.op.isDpsInit(&operand) ? info.op->getResult(0) : operand.get())));
  return info;
}

Value spyre_graph::createCopy(OpBuilder &builder, StringRef opName,
                              Location loc, Value source, AffineMap map,
                              ArrayRef<int64_t> shape, Attribute layout,
                              AffineMap sizeMap) {
  auto type = RankedTensorType::get(
      shape, cast<ShapedType>(source.getType()).getElementType(), layout);
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  AffineMap initMap = builder.getMultiDimIdentityMap(shape.size());
  return createCopyOp(builder, loc, opName, source, empty, map, initMap, shape,
                      sizeMap)
      ->getResult(0);
}

/// The stick dimension (-1 for one element per stick) that a copy of the source
/// needs for the access to run along `stick`. Nothing if no stick dimension is
/// possible, or if a copy of only the accessed elements is smaller. A copy of
/// the source can serve several users: grouped queries, for instance, read each
/// head of the keys several times.
static std::optional<int64_t> getStickOfSourceCopy(AffineMap map,
                                                   ArrayRef<int64_t> extents,
                                                   ArrayRef<int64_t> shape,
                                                   int64_t numAccessed,
                                                   StickChoice stick) {
  int64_t numElements = ShapedType::getNumElements(shape);
  bool isPlain = llvm::all_of(map.getResults(),
                              llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
  if (shape.empty() || numElements > numAccessed ||
      (numElements == numAccessed && !isPlain))
    return std::nullopt;
  if (!stick || !getUsedDims(map, extents).test(*stick))
    return -1;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr);
        loop && loop.getPosition() == *stick)
      return dim;
  return std::nullopt;
}

namespace {

/// Loops that step through one coordinate so that elements are met again: the
/// coordinate is `step` x `index` plus what does not depend on them, and
/// `index` is less than `extent`.
struct Windows {
  unsigned result;
  llvm::SmallBitVector loops;
  int64_t step;
  AffineExpr index;
  int64_t extent;
};

} // namespace

/// The windows of a map. Loops of `fixed`, and those that several coordinates
/// depend on, belong to none.
static SmallVector<Windows> findWindows(AffineMap map,
                                        ArrayRef<int64_t> extents,
                                        const llvm::SmallBitVector &fixed) {
  SmallVector<Windows> found;
  for (auto [result, expr] : llvm::enumerate(map.getResults())) {
    auto form = getLinearForm(expr, extents.size());
    if (!form)
      continue;
    // Steps of the loops, ascending.
    SmallVector<std::pair<int64_t, unsigned>> terms;
    llvm::SmallBitVector used = getUsedDims(expr, extents);
    for (unsigned loop : used.set_bits())
      terms.emplace_back((*form)[loop], loop);
    llvm::sort(terms);
    if (terms.empty() || terms.front().first < 0)
      continue;
    int64_t reach = 0;
    SmallVector<SmallVector<std::pair<int64_t, unsigned>>> clusters;
    for (auto [step, loop] : terms) {
      if (step > reach)
        clusters.emplace_back();
      clusters.back().emplace_back(step, loop);
      reach += step * (extents[loop] - 1);
    }
    for (const auto &cluster : clusters) {
      Windows windows{static_cast<unsigned>(result),
                      llvm::SmallBitVector(extents.size()), 0,
                      getAffineConstantExpr(0, map.getContext()), 1};
      int64_t iterations = 1;
      for (auto [step, loop] : cluster) {
        windows.loops.set(loop);
        windows.step = std::gcd(windows.step, step);
        iterations *= extents[loop];
      }
      for (auto [step, loop] : cluster) {
        int64_t own = step / windows.step;
        windows.index =
            windows.index + getAffineDimExpr(loop, map.getContext()) * own;
        windows.extent += own * (extents[loop] - 1);
      }
      bool isAlone = !windows.loops.anyCommon(fixed);
      for (auto [other, otherExpr] : llvm::enumerate(map.getResults()))
        isAlone &= other == result ||
                   !getUsedDims(otherExpr, extents).anyCommon(windows.loops);
      if (isAlone && windows.extent < iterations)
        found.push_back(std::move(windows));
    }
  }
  return found;
}

int64_t CopyPlan::getSizeInBytesAt(ArrayRef<int64_t> sizes) const {
  if (sizes.empty() || !sizeMap)
    return sizeInBytes;
  return getSizeInBytes(
      layout, llvm::map_to_vector(sizeMap.getResults(), [&](AffineExpr size) {
        return evaluateSize(size, sizes);
      }));
}

CopyPlan spyre_graph::planCopy(const OpInfo &info, unsigned operand,
                               StickChoice stick) {
  MLIRContext *context = info.op->getContext();
  Builder builder(context);
  CopyPlan plan;
  AffineMap map = simplifyWithRanges(info.maps[operand], info.extents);
  SmallVector<AffineExpr> renumbered(info.extents.size(),
                                     builder.getAffineConstantExpr(0));
  SmallVector<int64_t> order;
  SmallVector<AffineExpr> sizes, coordinates;
  AffineMap extentMap = SpyreOpInterface(info.op).getLoopExtentMap();
  int64_t stickDim = -1;
  llvm::SmallBitVector usedDims = getUsedDims(map, info.extents);
  // The stick's loop walks lanes by itself.
  llvm::SmallBitVector fixed(info.extents.size());
  for (unsigned dim = 0; dim < info.extents.size(); ++dim)
    if (stick == StickChoice(dim) ||
        (extentMap && !isa<AffineConstantExpr>(extentMap.getResult(dim))))
      fixed.set(dim);
  SmallVector<Windows> windows = findWindows(map, info.extents, fixed);
  auto addDim = [&](int64_t extent, AffineExpr coordinate) {
    coordinates.push_back(coordinate);
    plan.shape.push_back(extent);
    return builder.getAffineDimExpr(plan.shape.size() - 1);
  };
  SmallVector<AffineExpr> atWindows(map.getNumResults(),
                                    builder.getAffineConstantExpr(0));
  for (unsigned dim : usedDims.set_bits()) {
    unsigned position = plan.shape.size();
    auto *own = llvm::find_if(
        windows, [&](const Windows &other) { return other.loops.test(dim); });
    if (own != windows.end()) {
      if (static_cast<int>(dim) != own->loops.find_first())
        continue;
      AffineExpr index = addDim(own->extent, own->index);
      atWindows[own->result] = atWindows[own->result] + index * own->step;
    } else {
      renumbered[dim] =
          addDim(info.extents[dim], builder.getAffineDimExpr(dim));
    }
    if (stick == StickChoice(dim))
      stickDim = position;
    else
      order.push_back(position);
    if (extentMap)
      sizes.push_back(own != windows.end()
                          ? builder.getAffineConstantExpr(own->extent)
                          : extentMap.getResult(dim));
  }
  bool sparse = stickDim < 0 && !order.empty();
  if (stickDim >= 0)
    order.push_back(stickDim);
  plan.map = AffineMap::get(info.extents.size(), 0, coordinates, context);
  SmallVector<AffineExpr> source;
  for (auto [expr, atWindow] : llvm::zip_equal(map.getResults(), atWindows))
    source.push_back(expr.replaceDimsAndSymbols(renumbered, {}) + atWindow);
  plan.sourceMap = AffineMap::get(plan.shape.size(), 0, source, context);
  auto type = cast<ShapedType>(info.op->getOperand(operand).getType());
  if (std::optional<int64_t> sourceStick =
          getStickOfSourceCopy(map, info.extents, type.getShape(),
                               ShapedType::getNumElements(plan.shape), stick)) {
    plan.hasSourceShape = true;
    plan.shape = llvm::to_vector(type.getShape());
    plan.sourceMap = AffineMap::getMultiDimIdentityMap(type.getRank(), context);
    if (extentMap)
      sizes = getSizes(info.op->getOperand(operand));
    sparse = *sourceStick < 0;
    order.clear();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (dim != *sourceStick)
        order.push_back(dim);
    if (!sparse)
      order.push_back(*sourceStick);
  }
  if (extentMap)
    plan.sizeMap = makeSizeMap(sizes, extentMap.getNumSymbols(), context);
  plan.layout = LayoutAttr::get(context, order, type.getElementType(), sparse);
  plan.sizeInBytes = getSizeInBytes(plan.layout, plan.shape);
  return plan;
}

LayoutAttr spyre_graph::getResultLayout(const OpInfo &info, StickChoice stick) {
  auto type = cast<ShapedType>(info.op->getResult(0).getType());
  int64_t stickDim = stick ? info.getInitDim(*stick) : -1;
  // One element does not fill a stick in any layout; take the default one.
  bool single =
      type.getRank() == 0 ||
      llvm::all_of(type.getShape(), [](int64_t extent) { return extent <= 1; });
  bool indexed =
      info.indirect && info.indirect->operand == info.getInitNumber();
  if (stickDim < 0 && !indexed && single)
    return LayoutAttr::getDefault(type);
  return getStickLayout(type.getElementType(), type.getRank(), stickDim);
}

std::optional<IndirectPart>
spyre_graph::getIndirectPart(const OpInfo &info, LayoutAttrInterface layout,
                             bool isWhole) {
  MLIRContext *context = info.op->getContext();
  auto type =
      cast<ShapedType>(info.op->getOperand(info.indirect->operand).getType());
  ArrayRef<int64_t> shape = info.getShape(info.indirect->operand);
  int64_t selected = info.indirect->dim;
  SmallVector<::spyre::DeviceDim> deviceDims = layout.getDeviceDims(shape);
  unsigned parts = llvm::count_if(deviceDims, [&](const auto &deviceDim) {
    return deviceDim.hostDim == selected;
  });
  if (parts == 1 && deviceDims.back().hostDim != selected)
    return std::nullopt;

  AffineMap map = info.maps[info.indirect->operand];
  IndirectPart part;
  SmallVector<AffineExpr> source, onCopy;
  int64_t stickDim = -1;
  for (auto [number, expr] : llvm::enumerate(map.getResults())) {
    auto dim = static_cast<int64_t>(number);
    int64_t first = 0, size = shape[dim];
    if (!isWhole && dim != selected && !llvm::is_contained(info.extents, 0)) {
      auto [low, high] = getRange(expr, info.extents);
      first = low;
      size = high - low + 1;
    }
    if (dim != selected && size > 1)
      stickDim = dim;
    part.shape.push_back(size);
    source.push_back(getAffineDimExpr(dim, context) + first);
    onCopy.push_back(simplifyWithRanges(expr - first, info.extents));
  }
  part.sourceMap = AffineMap::get(type.getRank(), 0, source, context);
  part.map = AffineMap::get(map.getNumDims(), 0, onCopy, context);
  part.layout = getStickLayout(type.getElementType(), type.getRank(), stickDim);
  return part;
}
