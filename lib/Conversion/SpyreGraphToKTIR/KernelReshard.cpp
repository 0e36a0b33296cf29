// SPDX-License-Identifier: Apache-2.0
//===- KernelReshard.cpp - Parts from other cores' LX -----------*- C++ -*-===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The set of the coordinates from `low` to `low` + `sizes` - 1. A size that is
/// dynamic is the next symbol, and `low` counts in parts of that size.
static IntegerSet getBox(MLIRContext *context, ArrayRef<int64_t> low,
                         ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> constraints;
  unsigned numSymbols = 0;
  for (unsigned dim = 0; dim < low.size(); ++dim) {
    AffineExpr coordinate = getAffineDimExpr(dim, context);
    AffineExpr first = getAffineConstantExpr(low[dim], context);
    AffineExpr size = getAffineConstantExpr(sizes[dim], context);
    if (ShapedType::isDynamic(sizes[dim])) {
      size = getAffineSymbolExpr(numSymbols++, context);
      first = size * low[dim];
    }
    constraints.push_back(coordinate - first);
    constraints.push_back(first + size - 1 - coordinate);
  }
  return IntegerSet::get(low.size(), numSymbols, constraints,
                         SmallVector<bool>(constraints.size(), false));
}

/// Row-major strides.
static SmallVector<int64_t> getStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

/// A view, in coordinates of the whole buffer, of the parts that the cores
/// hold, each of them once.
Value KernelBuilder::buildSourceView() {
  MLIRContext *context = builder.getContext();
  const OperandStorage &place = storage[0];
  WorkDivisionAttr division = op.getAccessDivision(0);
  auto whole = cast<ShapedType>(operation->getOperand(0).getType());
  Type elementType = getDeviceElementType(whole.getElementType());
  SmallVector<int64_t> strides = division.getCoreStrides();
  SmallVector<Value> parts;
  // Not simplified: each coordinate is a loop dimension.
  AffineMap map = op.getIndexingMaps().front();
  SmallVector<::spyre::DeviceDim> dims =
      place.layout.getDeviceDims(whole.getShape());
  SmallVector<int64_t> wholeSizes =
      place.layout.getDeviceSize(whole.getShape());
  // Of device dimensions that vary: the iterations, or sticks, of a part. Lanes
  // do not: a part has whole sticks.
  int64_t stickDim = place.layout.getStickDim(whole.getShape());
  SmallVector<Value> chunksNow;
  for (auto [number, dim] : llvm::enumerate(dims)) {
    bool isLane = dim.hostDim == stickDim && number + 1 == dims.size();
    if (dim.hostDim < 0 || isLane)
      continue;
    unsigned loop = map.getDimPosition(dim.hostDim);
    if (isa<Attribute>(loops[loop].extentNow))
      continue;
    chunksNow.push_back(getValueOrCreateConstantIndexOp(
        builder, loc,
        getSize(division.getChunkMap().getResult(loop).ceilDiv(dim.step))));
    wholeSizes[number] = ShapedType::kDynamic;
  }
  for (int64_t core = 0; core < division.getNumCores(); ++core) {
    // Of several cores that hold the same part the first one gives it.
    bool isFirst = true;
    for (unsigned loop = 0; loop < strides.size(); ++loop)
      isFirst &= map.isFunctionOfDim(loop) ||
                 core / strides[loop] % division.getSplits()[loop] == 0;
    if (!isFirst)
      continue;
    SmallVector<int64_t> first, part, slices;
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
      unsigned loop = map.getDimPosition(dim);
      int64_t chunk = division.getChunks()[loop];
      slices.push_back(core / strides[loop] % division.getSplits()[loop]);
      first.push_back(slices.back() * chunk);
      part.push_back(std::min(chunk, loops[loop].extent - first.back()));
    }
    // A part begins at whole sticks.
    SmallVector<int64_t> low;
    SmallVector<int64_t> sizes = place.layout.getDeviceSize(part);
    for (auto [number, dim] : llvm::enumerate(dims)) {
      if (ShapedType::isDynamic(wholeSizes[number])) {
        low.push_back(slices[dim.hostDim]);
        sizes[number] = ShapedType::kDynamic;
        continue;
      }
      low.push_back(
          dim.hostDim < 0 ? 0 : first[dim.hostDim] / dim.step % dim.extent);
    }
    auto space = ktdp::MemorySpaceAttr::getCtLocal(context, core);
    SmallVector<int64_t> partStrides =
        getStrides(place.layout.getDeviceSize(place.shape));
    parts.push_back(ktdp::ConstructMemoryViewOp::create(
        builder, loc,
        MemRefType::get(sizes, elementType,
                        StridedLayoutAttr::get(context, 0, partStrides)),
        kernel.getArgument(place.parameter), chunksNow, ValueRange(), sizes,
        partStrides, space, getBox(context, low, sizes)));
  }
  return ktdp::ConstructDistributedMemoryViewOp::create(
      builder, loc, MemRefType::get(wholeSizes, elementType), parts);
}

/// Copies the part of the core's sub-tile that `isTail` says: its whole sticks,
/// or what its last stick holds.
void KernelBuilder::moveSticks(Value source, Value target, int64_t stickDim,
                               bool isTail) {
  auto whole = cast<ShapedType>(operation->getOperand(0).getType());
  LayoutAttrInterface layout = storage[0].layout;
  AffineMap map = op.getIndexingMaps().front();
  SmallVector<::spyre::DeviceDim> dims = layout.getDeviceDims(whole.getShape());
  int64_t lanes = ::spyre::elemsPerStick(layout.getDataFormat());
  auto apply = [&](AffineExpr expr, OpFoldResult value) {
    return affine::makeComposedFoldedAffineApply(builder, loc, expr, {value});
  };
  AffineExpr d0 = builder.getAffineDimExpr(0);
  SmallVector<Value> from, to;
  SmallVector<OpFoldResult> sizes;
  auto add = [&](OpFoldResult global, OpFoldResult local, OpFoldResult size) {
    from.push_back(getValueOrCreateConstantIndexOp(builder, loc, global));
    to.push_back(getValueOrCreateConstantIndexOp(builder, loc, local));
    sizes.push_back(size);
  };
  OpFoldResult zero = builder.getIndexAttr(0);
  for (auto [number, dim] : llvm::enumerate(dims)) {
    if (dim.hostDim < 0) {
      // A sparse stick has one element.
      add(zero, zero, builder.getIndexAttr(1));
      continue;
    }
    unsigned loopDim = map.getDimPosition(dim.hostDim);
    const Loop &loop = loops[loopDim];
    OpFoldResult start = getTileStart(builder, loopDim);
    if (dim.hostDim != stickDim) {
      add(start, loop.local, loop.size);
      continue;
    }
    OpFoldResult numFull = apply(d0.floorDiv(lanes), loop.size);
    if (number + 1 == dims.size())
      add(zero, zero,
          isTail ? apply(d0 % lanes, loop.extentNow)
                 : builder.getIndexAttr(lanes));
    else if (isTail)
      add(apply(d0.floorDiv(lanes), loop.extentNow),
          affine::makeComposedFoldedAffineApply(
              builder, loc, d0.floorDiv(lanes) + builder.getAffineDimExpr(1),
              {loop.local, numFull}),
          builder.getIndexAttr(1));
    else
      add(apply(d0.floorDiv(lanes), start),
          apply(d0.floorDiv(lanes), loop.local), numFull);
  }
  Value tile =
      ktdp::ConstructAccessTileOp::create(builder, loc, source, from, sizes);
  Value data = ktdp::LoadOp::create(
      builder, loc, tile, getDeviceElementType(whole.getElementType()));
  ktdp::StoreOp::create(
      builder, loc, data,
      ktdp::ConstructAccessTileOp::create(builder, loc, target, to, sizes));
}

LogicalResult KernelBuilder::buildReshard() {
  const OperandStorage &place = storage[getInit()];
  auto whole = cast<ShapedType>(operation->getOperand(0).getType());
  // SG-TO-KTIR-C5
  if (!storage[0].isInLX || !place.isInLX || !isa<LayoutAttr>(place.layout))
    return op->emitOpError("moves parts between the LX of cores, but an "
                           "operand does not lie there");
  // SG-TO-KTIR-C6
  if (int64_t dim = getPackedDim(place.layout);
      dim >= 0 &&
      isa<Value>(loops[op.getIndexingMaps()[0].getDimPosition(dim)].extentNow))
    return op->emitOpError() << "must have the same extent in each run along "
                                "the packed dimension, "
                             << dim;
  Value source = buildSourceView();
  Value target = ktdp::ConstructMemoryViewOp::create(
      builder, loc, kernel.getArgument(place.parameter),
      place.layout.getDeviceSize(place.shape), place.strides,
      getDeviceElementType(whole.getElementType()),
      ktdp::MemorySpaceAttr::getCtLocal(builder.getContext()));
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    nest.emplace_back(dim, enterTiles(dim, none));
  int64_t stickDim = place.layout.getStickDim(whole.getShape());
  int64_t lanes = ::spyre::elemsPerStick(place.layout.getDataFormat());
  const Loop *stick = nullptr;
  if (stickDim >= 0)
    stick = &loops[op.getIndexingMaps()[0].getDimPosition(stickDim)];
  if (!stick || stick->extent >= lanes)
    moveSticks(source, target, stickDim, /*isTail=*/false);
  // Lanes beyond the extent hold nothing that could be moved.
  if (stick && (isa<Value>(stick->extentNow) || stick->extent % lanes != 0)) {
    std::optional<int64_t> size = getConstantIntValue(stick->size);
    if (!size) {
      Value rest = getValueOrCreateConstantIndexOp(
          builder, loc,
          affine::makeComposedFoldedAffineApply(
              builder, loc, builder.getAffineDimExpr(0) % lanes,
              {stick->size}));
      Value none = arith::ConstantIndexOp::create(builder, loc, 0);
      auto ifOp = scf::IfOp::create(
          builder, loc,
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, rest,
                                none));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(ifOp.thenBlock());
      moveSticks(source, target, stickDim, /*isTail=*/true);
    } else if (*size % lanes != 0) {
      moveSticks(source, target, stickDim, /*isTail=*/true);
    }
  }
  leaveTiles(nest, none);
  return success();
}
