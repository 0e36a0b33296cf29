// SPDX-License-Identifier: Apache-2.0
//===- KernelBuilder.cpp - One device operation as a KTIR kernel ----------===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

KernelBuilder::KernelBuilder(SpyreOpInterface op,
                             ArrayRef<OperandStorage> storage,
                             ArrayRef<unsigned> symbols, int64_t lxBytes,
                             const ::spyre::DeviceSpec &spec)
    : op(op), operation(op), loc(op->getLoc()), storage(storage),
      symbols(symbols), lxBytes(lxBytes), spec(spec),
      maps(op.getIndexingMaps()), indirect(op.getIndirectAccess()),
      combiner(op.getCombiner()), elementCost(getElementCost(op, spec)),
      macFormat(getMacFormat(op)), builder(op->getContext()) {
  WorkDivisionAttr division = op.getWorkDivision();
  SmallVector<int64_t> extents = op.getLoopExtents();
  // The offset is added to what the loops count.
  if (std::optional<InitOffset> offset = op.getInitOffset()) {
    SmallVector<AffineExpr> results(maps.back().getResults());
    results[offset->dim] = getWrittenCoordinate(op, offset->dim) - offset->expr;
    maps.back() = AffineMap::get(extents.size(), 0, results, op->getContext());
  }
  for (AffineMap &map : maps)
    map = simplifyWithRanges(map, extents);
  for (auto [operand, place] : llvm::enumerate(storage)) {
    bool isIndirect = indirect && indirect->operand == operand;
    stickAccesses.push_back(place.isInLX || isIndirect
                                ? std::nullopt
                                : getStickAccess(maps[operand], place.layout,
                                                 place.wholeShape, extents));
  }
  for (auto [dim, kind] : llvm::enumerate(op.getLoopKinds())) {
    // A loop that no map of a move uses tells cores apart: nothing walks it.
    bool isWalked =
        !isa<ReshardOp>(operation) || maps.front().isFunctionOfDim(dim);
    int64_t chunk = division.getChunks()[dim];
    if (!isWalked)
      chunk = std::min<int64_t>(chunk, 1);
    loops.push_back({extents[dim], chunk, chunk,
                     kind == utils::IteratorType::reduction,
                     builder.getIndexAttr(extents[dim]),
                     builder.getIndexAttr(chunk), builder.getIndexAttr(0),
                     builder.getIndexAttr(0), builder.getIndexAttr(chunk)});
  }
  for (auto [loop, splits] : llvm::zip(loops, division.getSplits()))
    if (loop.isReduction)
      numPartners *= splits;
}

LogicalResult KernelBuilder::build(func::FuncOp function) {
  kernel = function;
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  if (failed(chooseTiles()))
    return failure();
  emitSizes();
  emitSlices();
  skipEmptySlices();
  LogicalResult result = failure();
  switch (combiner) {
  case Combiner::None:
    result = isa<ReshardOp>(operation) ? buildReshard() : buildPointwise();
    break;
  case Combiner::ScanAdd:
  case Combiner::ScanMax:
  case Combiner::ScanMin:
    result = buildScan();
    break;
  case Combiner::Sort:
  case Combiner::SortDescending:
    result = buildSort();
    break;
  default:
    result = op.getRankedResult() == RankedResult::None
                 ? buildReduction()
                 : buildRankedReduction();
    break;
  }
  if (failed(result))
    return failure();
  builder.setInsertionPointToEnd(&kernel.front());
  func::ReturnOp::create(builder, loc);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices and sub-tiles
//===----------------------------------------------------------------------===//

Type KernelBuilder::getElementType(unsigned operand) const {
  return cast<ShapedType>(operation->getOperand(operand).getType())
      .getElementType();
}

SmallVector<unsigned> KernelBuilder::getTileDims(unsigned operand) const {
  SmallVector<unsigned> dims;
  // An indirectly accessed operand also varies with its index.
  bool isIndirect = indirect && indirect->operand == operand;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (maps[operand].isFunctionOfDim(dim) ||
        (isIndirect && maps[indirect->index].isFunctionOfDim(dim)) ||
        (operand == 0 && isRepeatedReduction(dim)))
      dims.push_back(dim);
  return dims;
}

/// Whether a reduction runs over a dimension that no input has (the sum of an
/// expanded tensor): its iterations count all the same.
bool KernelBuilder::isRepeatedReduction(unsigned dim) const {
  return combiner != Combiner::None && !isScan(combiner) &&
         loops[dim].isReduction && loops[dim].extent > 1 &&
         llvm::none_of(maps,
                       [&](AffineMap map) { return map.isFunctionOfDim(dim); });
}

/// a - b, folded.
static OpFoldResult subtract(OpBuilder &b, Location loc, OpFoldResult x,
                             OpFoldResult y) {
  return affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) - b.getAffineDimExpr(1), {x, y});
}

/// a x b, folded where that needs no more than numbers and ones.
static OpFoldResult multiply(OpBuilder &b, Location loc, OpFoldResult x,
                             OpFoldResult y) {
  std::optional<int64_t> first = getConstantIntValue(x),
                         second = getConstantIntValue(y);
  if (first == 1)
    return y;
  if (second == 1)
    return x;
  if (first && second)
    return b.getIndexAttr(*first * *second);
  return arith::MulIOp::create(b, loc,
                               getValueOrCreateConstantIndexOp(b, loc, x),
                               getValueOrCreateConstantIndexOp(b, loc, y))
      .getResult();
}

/// The size of a slice: what is left, but not more than a chunk nor less than
/// nothing.
static OpFoldResult clampSize(OpBuilder &b, Location loc, OpFoldResult chunk,
                              OpFoldResult left) {
  Value least = arith::MinSIOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, chunk),
      getValueOrCreateConstantIndexOp(b, loc, left));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return arith::MaxSIOp::create(b, loc, least, zero).getResult();
}

/// min(limit, value), folded if both are numbers.
static OpFoldResult minimum(OpBuilder &b, Location loc, OpFoldResult limit,
                            OpFoldResult value) {
  std::optional<int64_t> first = getConstantIntValue(limit),
                         second = getConstantIntValue(value);
  if (first && second)
    return b.getIndexAttr(std::min(*first, *second));
  Value bound = getValueOrCreateConstantIndexOp(b, loc, limit);
  return arith::MinSIOp::create(b, loc, bound,
                                getValueOrCreateConstantIndexOp(b, loc, value))
      .getResult();
}

DeviceView OperandStorage::getDeviceView(
    OpBuilder &b, Location loc,
    function_ref<OpFoldResult(AffineExpr)> getSize) const {
  DeviceView view{
      getAsIndexOpFoldResult(b.getContext(), layout.getDeviceSize(shape)),
      getAsIndexOpFoldResult(b.getContext(), strides)};
  if (!sizeMap)
    return view;
  SmallVector<::spyre::DeviceDim> dims = layout.getDeviceDims(wholeShape);
  SmallVector<int64_t> wholeSizes = layout.getDeviceSize(wholeShape);
  OpFoldResult stride = b.getIndexAttr(1);
  for (size_t number = dims.size(); number-- > 0;) {
    const ::spyre::DeviceDim &dim = dims[number];
    view.strides[number] = stride;
    // Of the device dimensions of one host dimension, that with the largest
    // steps grows, but sticks stay.
    bool grows = number + 1 < dims.size() && dim.hostDim >= 0 &&
                 varies(sizeMap, dim.hostDim) &&
                 llvm::none_of(dims, [&](const ::spyre::DeviceDim &other) {
                   return other.hostDim == dim.hostDim && other.step > dim.step;
                 });
    OpFoldResult size = b.getIndexAttr(wholeSizes[number]);
    if (grows)
      size = getSize(sizeMap.getResult(dim.hostDim).ceilDiv(dim.step));
    // Of a tile, the dimensions that it has whole grow.
    if (dim.hostDim >= 0 && shape[dim.hostDim] == wholeShape[dim.hostDim])
      view.sizes[number] = size;
    if (number > 0)
      stride = multiply(b, loc, stride, size);
  }
  return view;
}

OpFoldResult KernelBuilder::getSize(AffineExpr expr) {
  unsigned numBuffers = kernel.getNumArguments() - symbols.size();
  SmallVector<AffineExpr> replacements;
  SmallVector<OpFoldResult> operands;
  for (auto [position, symbol] : llvm::enumerate(symbols)) {
    replacements.resize(symbol + 1, builder.getAffineConstantExpr(0));
    replacements[symbol] = builder.getAffineSymbolExpr(position);
    operands.push_back(kernel.getArgument(numBuffers + position));
  }
  return affine::makeComposedFoldedAffineApply(
      builder, loc,
      AffineMap::get(0, symbols.size(), expr.replaceSymbols(replacements)),
      operands);
}

void KernelBuilder::emitSizes() {
  if (AffineMap extentMap = op.getLoopExtentMap()) {
    AffineMap chunkMap = op.getWorkDivision().getChunkMap();
    for (auto [dim, loop] : llvm::enumerate(loops)) {
      if (!varies(extentMap, dim))
        continue;
      loop.extentNow = getSize(extentMap.getResult(dim));
      loop.chunkNow = getSize(chunkMap.getResult(dim));
    }
  }
  for (const OperandStorage &place : storage) {
    DeviceView &view = views.emplace_back(place.getDeviceView(
        builder, loc, [&](AffineExpr expr) { return getSize(expr); }));
    if (!place.numRowsMap)
      continue;
    for (auto [size, dim] :
         llvm::zip_equal(view.sizes, place.layout.getDeviceDims(place.shape)))
      if (dim.hostDim == indirect->dim)
        size = getSize(place.numRowsMap.getResult(0));
  }
}

void KernelBuilder::emitSlices() {
  WorkDivisionAttr division = op.getWorkDivision();
  int64_t numCores = division.getNumCores();
  kernel->setAttr(ktdp::kGridAttr,
                  ktdp::getGridAttr(builder.getContext(), {numCores}));
  if (numCores == 1) {
    for (Loop &loop : loops)
      loop.size = loop.chunkNow;
    return;
  }
  core = ktdp::GetComputeTileIdOp::create(builder, loc, 1).getResult(0);
  for (auto [loop, splits, stride] :
       llvm::zip(loops, division.getSplits(), division.getCoreStrides())) {
    loop.size = loop.chunkNow;
    if (splits == 1)
      continue;
    AffineExpr slice = builder.getAffineDimExpr(0).floorDiv(stride);
    if (stride * splits != numCores)
      slice = slice % splits;
    if (isa<Value>(loop.extentNow)) {
      loop.start = multiply(builder, loc,
                            affine::makeComposedFoldedAffineApply(
                                builder, loc, slice, {OpFoldResult(core)}),
                            loop.chunkNow);
      loop.size = clampSize(builder, loc, loop.chunkNow,
                            subtract(builder, loc, loop.extentNow, loop.start));
      continue;
    }
    loop.start = affine::makeComposedFoldedAffineApply(
        builder, loc, slice * loop.chunk, {OpFoldResult(core)});
    if (splits * loop.chunk != loop.extent)
      loop.size =
          minimum(builder, loc, builder.getIndexAttr(loop.chunk),
                  subtract(builder, loc, builder.getIndexAttr(loop.extent),
                           loop.start));
  }
}

Value KernelBuilder::buildCount(OpBuilder &b) const {
  OpFoldResult count = b.getIndexAttr(1);
  for (const Loop &loop : loops)
    if (loop.isReduction)
      count = multiply(b, loc, count, loop.extentNow);
  ScalarBuilder scalars(b, loc);
  return scalars.asFloat(arith::IndexCastOp::create(
      b, loc, b.getI64Type(), getValueOrCreateConstantIndexOp(b, loc, count)));
}

void KernelBuilder::skipEmptySlices() {
  OpFoldResult size = builder.getIndexAttr(1);
  for (auto [loop, splits] :
       llvm::zip(loops, op.getWorkDivision().getSplits())) {
    // Partners have the same slices of what is not reduced, and wait for each
    // other, whatever they have of what is.
    if (numPartners > 1 && loop.isReduction)
      continue;
    if (splits > 1 && isa<Value>(loop.extentNow))
      size = multiply(builder, loc, size, loop.size);
  }
  if (isa<Attribute>(size))
    return;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value hasAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       cast<Value>(size), zero);
  auto ifOp = scf::IfOp::create(builder, loc, hasAny);
  builder.setInsertionPointToStart(ifOp.thenBlock());
}

OpFoldResult KernelBuilder::getTileNow(const Loop &loop) {
  if (loop.numOverlapping == 1 || isa<Attribute>(loop.chunkNow))
    return builder.getIndexAttr(loop.tile);
  AffineExpr granules = builder.getAffineDimExpr(0).ceilDiv(
      loop.numOverlapping * loop.granularity);
  OpFoldResult tile = affine::makeComposedFoldedAffineApply(
      builder, loc, granules * loop.granularity, {loop.chunkNow});
  // A loop without iterations has a step, too.
  Value least = arith::ConstantIndexOp::create(builder, loc, 1);
  tile = arith::MaxSIOp::create(
             builder, loc, getValueOrCreateConstantIndexOp(builder, loc, tile),
             least)
             .getResult();
  return minimum(builder, loc, builder.getIndexAttr(loop.tile), tile);
}

scf::ForOp KernelBuilder::enterTiles(unsigned dim,
                                     SmallVectorImpl<Value> &carried) {
  Loop &loop = loops[dim];
  if (loop.tile >= loop.chunk)
    return nullptr;
  OpFoldResult sliceSize = loop.size;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value end = getValueOrCreateConstantIndexOp(builder, loc, sliceSize);
  OpFoldResult tile = getTileNow(loop);
  Value step = getValueOrCreateConstantIndexOp(builder, loc, tile);
  auto forOp = scf::ForOp::create(builder, loc, zero, end, step, carried);
  builder.setInsertionPointToStart(forOp.getBody());
  carried.assign(forOp.getRegionIterArgs().begin(),
                 forOp.getRegionIterArgs().end());
  loop.local = forOp.getInductionVar();
  loop.sliceSize = sliceSize;
  std::optional<int64_t> size = getConstantIntValue(sliceSize);
  if (size && *size % loop.tile == 0)
    loop.size = builder.getIndexAttr(loop.tile);
  else
    loop.size = minimum(builder, loc, tile,
                        subtract(builder, loc, sliceSize, loop.local));
  return forOp;
}

void KernelBuilder::leaveTiles(ArrayRef<std::pair<unsigned, scf::ForOp>> nest,
                               SmallVectorImpl<Value> &carried) {
  for (auto [dim, loop] : llvm::reverse(nest)) {
    if (!loop)
      continue;
    if (!loop.getInitArgs().empty())
      scf::YieldOp::create(builder, loc, carried);
    builder.setInsertionPointAfter(loop);
    carried.assign(loop.getResults().begin(), loop.getResults().end());
    loops[dim].local = builder.getIndexAttr(0);
    loops[dim].size = loops[dim].sliceSize;
  }
}

OpFoldResult KernelBuilder::getTileStart(OpBuilder &b, unsigned dim) const {
  return affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) + b.getAffineDimExpr(1),
      {loops[dim].start, loops[dim].local});
}

Value KernelBuilder::getLoopIndex(OpBuilder &b, unsigned dim) {
  return getValueOrCreateConstantIndexOp(b, loc, getTileStart(b, dim));
}
