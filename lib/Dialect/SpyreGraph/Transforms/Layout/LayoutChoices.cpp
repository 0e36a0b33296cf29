//===- LayoutChoices.cpp - What an operation asks of layouts ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

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

CopyPlan spyre_graph::planCopy(const OpInfo &info, unsigned operand,
                               StickChoice stick) {
  MLIRContext *context = info.op->getContext();
  Builder builder(context);
  CopyPlan plan;
  AffineMap map = simplifyWithRanges(info.maps[operand], info.extents);
  SmallVector<AffineExpr> renumbered(info.extents.size(),
                                     builder.getAffineConstantExpr(0));
  SmallVector<int64_t> order;
  SmallVector<AffineExpr> sizes;
  AffineMap extentMap = SpyreOpInterface(info.op).getLoopExtentMap();
  int64_t stickDim = -1;
  llvm::SmallBitVector usedDims = getUsedDims(map, info.extents);
  for (unsigned dim : usedDims.set_bits()) {
    unsigned position = plan.loopDims.size();
    renumbered[dim] = builder.getAffineDimExpr(position);
    if (stick && *stick == dim)
      stickDim = position;
    else
      order.push_back(position);
    plan.loopDims.push_back(dim);
    plan.shape.push_back(info.extents[dim]);
    if (extentMap)
      sizes.push_back(extentMap.getResult(dim));
  }
  bool sparse = stickDim < 0 && !order.empty();
  if (stickDim >= 0)
    order.push_back(stickDim);
  plan.sourceMap =
      map.replaceDimsAndSymbols(renumbered, {}, plan.loopDims.size(), 0);
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
  int64_t selected = info.indirect->dim;
  SmallVector<::spyre::DeviceDim> deviceDims =
      layout.getDeviceDims(type.getShape());
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
    int64_t first = 0, size = type.getDimSize(dim);
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
