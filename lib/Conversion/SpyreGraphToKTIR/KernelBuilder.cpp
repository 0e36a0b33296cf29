// SPDX-License-Identifier: Apache-2.0
//===- KernelBuilder.cpp - One device operation as a KTIR kernel -*- C++
//-*-===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

KernelBuilder::KernelBuilder(SpyreOpInterface op,
                             ArrayRef<OperandStorage> storage, int64_t lxBytes,
                             const ::spyre::DeviceSpec &spec)
    : op(op), operation(op), loc(op->getLoc()), storage(storage),
      lxBytes(lxBytes), spec(spec), maps(op.getIndexingMaps()),
      indirect(op.getIndirectAccess()), combiner(op.getCombiner()),
      elementCost(getElementCost(op, spec)), macFormat(getMacFormat(op)),
      builder(op->getContext()) {
  WorkDivisionAttr division = op.getWorkDivision();
  SmallVector<int64_t> extents = op.getLoopExtents();
  for (AffineMap &map : maps)
    map = simplifyWithRanges(map, extents);
  for (auto [dim, kind] : llvm::enumerate(op.getLoopKinds()))
    loops.push_back({extents[dim], division.getChunks()[dim],
                     division.getChunks()[dim],
                     kind == utils::IteratorType::reduction,
                     builder.getIndexAttr(0), builder.getIndexAttr(0),
                     builder.getIndexAttr(division.getChunks()[dim])});
  for (auto [loop, splits] : llvm::zip(loops, division.getSplits()))
    if (loop.isReduction)
      numPartners *= splits;
}

LogicalResult KernelBuilder::build(func::FuncOp function) {
  kernel = function;
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  if (failed(chooseTiles()))
    return failure();
  emitSlices();
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

/// min(limit, value).
static OpFoldResult minimum(OpBuilder &b, Location loc, int64_t limit,
                            OpFoldResult value) {
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return b.getIndexAttr(std::min(limit, *number));
  Value bound = arith::ConstantIndexOp::create(b, loc, limit);
  return arith::MinSIOp::create(b, loc, bound,
                                getValueOrCreateConstantIndexOp(b, loc, value))
      .getResult();
}

void KernelBuilder::emitSlices() {
  WorkDivisionAttr division = op.getWorkDivision();
  int64_t numCores = division.getNumCores();
  kernel->setAttr(ktdp::kGridAttr,
                  ktdp::getGridAttr(builder.getContext(), {numCores}));
  if (numCores == 1)
    return;
  core = ktdp::GetComputeTileIdOp::create(builder, loc, 1).getResult(0);
  for (auto [loop, splits, stride] :
       llvm::zip(loops, division.getSplits(), division.getCoreStrides())) {
    if (splits == 1)
      continue;
    AffineExpr slice = builder.getAffineDimExpr(0).floorDiv(stride);
    if (stride * splits != numCores)
      slice = slice % splits;
    loop.start = affine::makeComposedFoldedAffineApply(
        builder, loc, slice * loop.chunk, {OpFoldResult(core)});
    if (splits * loop.chunk != loop.extent)
      loop.size =
          minimum(builder, loc, loop.chunk,
                  subtract(builder, loc, builder.getIndexAttr(loop.extent),
                           loop.start));
  }
}

scf::ForOp KernelBuilder::enterTiles(unsigned dim,
                                     SmallVectorImpl<Value> &carried) {
  Loop &loop = loops[dim];
  if (loop.tile >= loop.chunk)
    return nullptr;
  OpFoldResult sliceSize = loop.size;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value end = getValueOrCreateConstantIndexOp(builder, loc, sliceSize);
  Value step = arith::ConstantIndexOp::create(builder, loc, loop.tile);
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
    loop.size = minimum(builder, loc, loop.tile,
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
