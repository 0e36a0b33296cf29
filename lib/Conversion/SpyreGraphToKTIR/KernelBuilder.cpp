// SPDX-License-Identifier: Apache-2.0
//===- KernelBuilder.cpp - One device operation as a KTIR kernel -*- C++
//-*-===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

KernelBuilder::KernelBuilder(SpyreOpInterface op,
                             ArrayRef<OperandStorage> storage, int64_t lxBytes)
    : op(op), operation(op), loc(op->getLoc()), storage(storage),
      lxBytes(lxBytes), maps(op.getIndexingMaps()),
      indirect(op.getIndirectAccess()), combiner(op.getCombiner()),
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
    result = buildPointwise();
    break;
  case Combiner::ScanAdd:
    result = buildScan();
    break;
  default:
    result = buildReduction();
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
  return combiner != Combiner::None && combiner != Combiner::ScanAdd &&
         loops[dim].isReduction && loops[dim].extent > 1 &&
         llvm::none_of(maps, [&](AffineMap map) {
           return map.isFunctionOfDim(dim);
         });
}

/// Distinct loop dimensions and zeros, of which there may be more than loops.
static bool isProjectionWithZeros(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr expr : map.getResults()) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      if (constant.getValue() != 0)
        return false;
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || seen.test(dim.getPosition()))
      return false;
    seen.set(dim.getPosition());
  }
  return true;
}

/// LX bytes of the tiles that are live together.
int64_t KernelBuilder::getTileBytes(ArrayRef<int64_t> tiles) const {
  int64_t total = 0;
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    int64_t bytes =
        ::spyre::storageBytes(storage[operand].layout.getDataFormat());
    // The accumulator of a reduction beside its result.
    if (operand == getInit() && combiner != Combiner::None)
      bytes += 4;
    for (unsigned dim : getTileDims(operand))
      bytes *= tiles[dim];
    total += bytes;
  }
  return total;
}

/// Sub-tiles of a stick dimension are whole sticks.
int64_t KernelBuilder::getGranularity(unsigned dim) const {
  int64_t granularity = 1;
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    const OperandStorage &place = storage[operand];
    int64_t stickDim = place.layout.getStickDim(place.shape);
    if (stickDim >= 0 && maps[operand].getResult(stickDim).isFunctionOfDim(dim))
      granularity = std::max(
          granularity, ::spyre::elemsPerStick(place.layout.getDataFormat()));
  }
  return granularity;
}

LogicalResult KernelBuilder::chooseTiles() {
  SmallVector<int64_t> tiles;
  for (Loop &loop : loops)
    tiles.push_back(loop.chunk);
  if (combiner == Combiner::ScanAdd)
    for (unsigned dim = 0; dim < loops.size(); ++dim)
      if (loops[dim].isReduction)
        tiles[dim] = std::min<int64_t>(tiles[dim], 1);
  while (getTileBytes(tiles) > lxBytes) {
    // Halve the dimension that saves most; of equals the outermost parallel
    // one, so that inner runs stay long and accumulators few.
    int64_t best = -1, bestBytes = getTileBytes(tiles);
    bool bestIsReduction = true;
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      int64_t granularity = getGranularity(dim);
      int64_t half = llvm::divideCeilSigned(
                         llvm::divideCeilSigned(tiles[dim], 2), granularity) *
                     granularity;
      if (half >= tiles[dim])
        continue;
      SmallVector<int64_t> candidate(tiles);
      candidate[dim] = half;
      int64_t bytes = getTileBytes(candidate);
      if (best < 0 ||
          (bestIsReduction && !loops[dim].isReduction &&
           bytes < getTileBytes(tiles)) ||
          (bestIsReduction == loops[dim].isReduction && bytes < bestBytes)) {
        best = dim;
        bestBytes = bytes;
        bestIsReduction = loops[dim].isReduction;
      }
    }
    if (best < 0)
      return op->emitOpError() << "needs " << getTileBytes(tiles)
                               << " bytes of LX for its smallest tiles, but "
                               << lxBytes << " are left over";
    int64_t granularity = getGranularity(best);
    tiles[best] = llvm::divideCeilSigned(llvm::divideCeilSigned(tiles[best], 2),
                                         granularity) *
                  granularity;
  }
  for (auto [loop, tile] : llvm::zip(loops, tiles))
    loop.tile = tile;
  return success();
}

/// a - b, folded.
static OpFoldResult subtract(OpBuilder &b, Location loc, OpFoldResult x,
                             OpFoldResult y) {
  return affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) - b.getAffineDimExpr(1), {x, y});
}

static OpFoldResult add(OpBuilder &b, Location loc, OpFoldResult x,
                        OpFoldResult y) {
  return affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) + b.getAffineDimExpr(1), {x, y});
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
  Value core = ktdp::GetComputeTileIdOp::create(builder, loc, 1).getResult(0);
  int64_t earlier = 1;
  for (auto [loop, splits] : llvm::zip(loops, division.getSplits())) {
    if (splits == 1)
      continue;
    AffineExpr slice = builder.getAffineDimExpr(0).floorDiv(earlier);
    if (earlier * splits != numCores)
      slice = slice % splits;
    loop.start = affine::makeComposedFoldedAffineApply(
        builder, loc, slice * loop.chunk, {OpFoldResult(core)});
    if (splits * loop.chunk != loop.extent)
      loop.size =
          minimum(builder, loc, loop.chunk,
                  subtract(builder, loc, builder.getIndexAttr(loop.extent),
                           loop.start));
    earlier *= splits;
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

Value KernelBuilder::getLoopIndex(OpBuilder &b, unsigned dim) {
  OpFoldResult offset = add(b, loc, loops[dim].start, loops[dim].local);
  return getValueOrCreateConstantIndexOp(b, loc, offset);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static Value buildView(OpBuilder &b, Location loc, Value start,
                       const OperandStorage &place, Type elementType) {
  auto space = place.isInLX ? ktdp::MemorySpaceAttr::getCtLocal(b.getContext())
                            : ktdp::MemorySpaceAttr::getGlobal(b.getContext());
  return ktdp::ConstructMemoryViewOp::create(
      b, loc, start, place.layout.getDeviceSize(place.shape),
      getDeviceElementType(elementType), space);
}

FailureOr<Value> KernelBuilder::buildAccessTile(unsigned operand) {
  MLIRContext *context = builder.getContext();
  SmallVector<unsigned> tileDims = getTileDims(operand);
  // Captured values: where the sub-tile starts along each loop dimension, in
  // the whole buffer or in the core's part of it.
  SmallVector<Value> captured;
  SmallVector<OpFoldResult> extents;
  for (unsigned dim : tileDims)
    extents.push_back(loops[dim].size);

  /// Device coordinates of an operand in tile variables and captured values.
  auto getDeviceExprs =
      [&](unsigned which) -> FailureOr<SmallVector<AffineExpr>> {
    const OperandStorage &place = storage[which];
    AffineMap map = maps[which];
    SmallVector<int64_t> extents;
    for (const Loop &loop : loops)
      extents.push_back(place.isInLX ? loop.chunk : loop.extent);
    // SG-TO-KTIR-C3
    if (place.isInLX && !isProjectionWithZeros(map))
      return op->emitOpError()
             << "operand " << which
             << " lies in LX, where its coordinates must be loop dimensions, "
                "but its map is "
             << AffineMapAttr::get(map);
    AffineMap device = simplifyWithRanges(
        place.layout.getDeviceMap(place.shape, context).compose(map), extents);
    SmallVector<AffineExpr> replacements;
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      if (!map.isFunctionOfDim(dim)) {
        replacements.push_back(getAffineConstantExpr(0, context));
        continue;
      }
      AffineExpr start = getAffineSymbolExpr(captured.size(), context);
      OpFoldResult local = loops[dim].local;
      captured.push_back(getValueOrCreateConstantIndexOp(
          builder, loc,
          place.isInLX ? local : add(builder, loc, loops[dim].start, local)));
      auto *position = llvm::find(tileDims, dim);
      replacements.push_back(
          position == tileDims.end()
              ? start
              : getAffineDimExpr(position - tileDims.begin(), context) + start);
    }
    return llvm::map_to_vector(device.getResults(), [&](AffineExpr expr) {
      return expr.replaceDims(replacements);
    });
  };

  FailureOr<SmallVector<AffineExpr>> exprs = getDeviceExprs(operand);
  if (failed(exprs))
    return failure();
  const OperandStorage &place = storage[operand];
  SmallVector<ktdp::Subscript> subscripts(exprs->begin(), exprs->end());
  if (indirect && indirect->operand == operand) {
    FailureOr<SmallVector<AffineExpr>> indexExprs =
        getDeviceExprs(indirect->index);
    if (failed(indexExprs))
      return failure();
    const OperandStorage &indexPlace = storage[indirect->index];
    // SG-TO-KTIR-C2
    int64_t deviceDim = -1;
    unsigned numDims = 0;
    for (auto [number, dim] :
         llvm::enumerate(place.layout.getDeviceDims(place.shape)))
      if (dim.hostDim == indirect->dim) {
        ++numDims;
        if (dim.step == 1 && number + 1 < subscripts.size())
          deviceDim = number;
      }
    if (numDims != 1 || deviceDim < 0)
      return op->emitOpError()
             << "dimension " << indirect->dim << " of operand " << operand
             << " is accessed indirectly and must be one whole device "
                "dimension outside the stick, but the layout is "
             << place.layout;
    Value indexView =
        buildView(builder, loc, kernel.getArgument(indexPlace.parameter),
                  indexPlace, getElementType(indirect->index));
    subscripts[deviceDim] = ktdp::Subscript(indexView, *indexExprs);
  }
  Value view = buildView(builder, loc, kernel.getArgument(place.parameter),
                         place, getElementType(operand));
  return ktdp::ConstructIndirectAccessTileOp::create(
             builder, loc, view, subscripts, captured, extents)
      .getResult();
}

FailureOr<Value> KernelBuilder::load(unsigned operand) {
  FailureOr<Value> tile = buildAccessTile(operand);
  if (failed(tile))
    return failure();
  return ktdp::LoadOp::create(builder, loc, *tile,
                              getDeviceElementType(getElementType(operand)))
      .getResult();
}

LogicalResult KernelBuilder::store(Value data, unsigned operand) {
  FailureOr<Value> tile = buildAccessTile(operand);
  if (failed(tile))
    return failure();
  ktdp::StoreOp::create(builder, loc, data, *tile);
  return success();
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

Value KernelBuilder::toComputeType(OpBuilder &b, Value value,
                                   Type elementType) const {
  Type type = getComputeType(elementType);
  if (value.getType() == type)
    return value;
  if (type.isInteger(1)) {
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value,
                                 zero);
  }
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

Value KernelBuilder::toDeviceType(OpBuilder &b, Value value,
                                  Type elementType) const {
  Type type = getDeviceElementType(elementType);
  value = ScalarBuilder(b, loc).convert(value, getComputeType(elementType));
  if (elementType.isUnsignedInteger(8))
    return arith::AndIOp::create(
        b, loc, value,
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(255)));
  if (value.getType() == type)
    return value;
  if (value.getType().isInteger(1))
    return arith::UIToFPOp::create(b, loc, type, value);
  if (isa<FloatType>(type))
    return arith::TruncFOp::create(b, loc, type, value);
  // PyTorch's int64 has no wrap at 32 bits: leaving them is an error.
  if (elementType.isInteger(64))
    return arith::TruncIOp::create(b, loc, type, value,
                                   arith::IntegerOverflowFlags::nsw);
  return arith::TruncIOp::create(b, loc, type, value);
}

Value KernelBuilder::buildEmpty(ArrayRef<unsigned> dims, Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : dims)
    sizes.push_back(loops[dim].size);
  return tensor::EmptyOp::create(builder, loc, sizes, elementType);
}

Value KernelBuilder::buildFilled(ArrayRef<unsigned> dims, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  return linalg::FillOp::create(builder, loc, scalar,
                                buildEmpty(dims, value.getType()))
      .getResult(0);
}

SmallVector<Value> KernelBuilder::buildGeneric(
    ArrayRef<std::pair<Value, SmallVector<unsigned>>> ins,
    ArrayRef<std::pair<Value, SmallVector<unsigned>>> outs,
    function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
  // Only dimensions that some tile has are iterated.
  SmallVector<int64_t> position(loops.size(), -1);
  for (auto operands : {ins, outs})
    for (const auto &[value, dims] : operands)
      for (unsigned dim : dims)
        position[dim] = 0;
  int64_t numDims = 0;
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (position[dim] < 0)
      continue;
    position[dim] = numDims++;
    bool isInOut = llvm::is_contained(outs.front().second, dim);
    iterators.push_back(isInOut ? utils::IteratorType::parallel
                                : utils::IteratorType::reduction);
  }
  SmallVector<AffineMap> indexingMaps;
  SmallVector<Value> inputs, inits;
  SmallVector<Type> types;
  auto addOperand = [&](ArrayRef<unsigned> dims) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dim : dims)
      exprs.push_back(builder.getAffineDimExpr(position[dim]));
    indexingMaps.push_back(
        AffineMap::get(numDims, 0, exprs, builder.getContext()));
  };
  for (const auto &[value, dims] : ins) {
    inputs.push_back(value);
    addOperand(dims);
  }
  for (const auto &[value, dims] : outs) {
    inits.push_back(value);
    types.push_back(value.getType());
    addOperand(dims);
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, types, inputs, inits, indexingMaps, iterators,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        linalg::YieldOp::create(b, loc, body(b, arguments));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

/// The loop dimensions that a generic iterates, so that linalg.index finds its
/// position.
static SmallVector<unsigned>
getIteratedDims(ArrayRef<SmallVector<unsigned>> operands, unsigned numLoops) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < numLoops; ++dim)
    if (llvm::any_of(operands, [&](ArrayRef<unsigned> own) {
          return llvm::is_contained(own, dim);
        }))
      dims.push_back(dim);
  return dims;
}

LogicalResult KernelBuilder::buildPointwise() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    nest.emplace_back(dim, enterTiles(dim, none));

  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins;
  SmallVector<unsigned> inputOperands;
  SmallVector<SmallVector<unsigned>> tileDims;
  for (unsigned operand = 0; operand < getInit(); ++operand) {
    // Indices are read by the access itself.
    if (isIndex(operand))
      continue;
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
    inputOperands.push_back(operand);
    tileDims.push_back(getTileDims(operand));
  }
  Type resultType = getElementType(getInit());
  SmallVector<unsigned> outDims = getTileDims(getInit());
  tileDims.push_back(outDims);
  SmallVector<unsigned> iterated = getIteratedDims(tileDims, loops.size());
  // Starts are values outside the generic.
  SmallVector<Value> starts(loops.size());
  auto loopIndexBody = [&](OpBuilder &b, unsigned dim) -> Value {
    auto *position = llvm::find(iterated, dim);
    if (position == iterated.end())
      return starts[dim];
    Value index = linalg::IndexOp::create(b, loc, position - iterated.begin());
    return arith::AddIOp::create(b, loc, index, starts[dim]);
  };
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    starts[dim] = getLoopIndex(builder, dim);
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      ins, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (auto [operand, argument] : llvm::zip(inputOperands, arguments))
          values.push_back(toComputeType(b, argument, getElementType(operand)));
        Value result =
            op.buildElement(b, loc, values, [&](unsigned dim) -> Value {
              return loopIndexBody(b, dim);
            });
        return {toDeviceType(b, result, resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(nest, none);
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static bool isArg(Combiner combiner) {
  return combiner == Combiner::ArgMax || combiner == Combiner::ArgMin;
}

TypedAttr KernelBuilder::getIdentity(Type type) const {
  OpBuilder b(builder.getContext());
  bool isMax = combiner == Combiner::Max || combiner == Combiner::ArgMax;
  bool isMin = combiner == Combiner::Min || combiner == Combiner::ArgMin;
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    if (isMax || isMin)
      return b.getFloatAttr(type, APFloat::getInf(semantics, isMax));
    return b.getFloatAttr(type, combiner == Combiner::Mul ? 1.0 : 0.0);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1) {
    bool one = combiner == Combiner::And || combiner == Combiner::Mul || isMin;
    return b.getIntegerAttr(type, one);
  }
  if (isMax)
    return b.getIntegerAttr(type, APInt::getSignedMinValue(width));
  if (isMin)
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(width));
  return b.getIntegerAttr(type, combiner == Combiner::Mul ? 1 : 0);
}

Value KernelBuilder::combine(OpBuilder &b, Value accumulated,
                             Value value) const {
  ScalarBuilder s(b, loc);
  switch (combiner) {
  case Combiner::Add:
  case Combiner::ScanAdd:
    return s.add(accumulated, value);
  case Combiner::Mul:
    return s.mul(accumulated, value);
  case Combiner::Max:
    return s.maximum(accumulated, value);
  case Combiner::Min:
    return s.minimum(accumulated, value);
  case Combiner::And:
    return s.logicalAnd(accumulated, value);
  case Combiner::Or:
    return s.logicalOr(accumulated, value);
  default:
    llvm_unreachable("has its own combination");
  }
}

SmallVector<Value> KernelBuilder::combineArg(OpBuilder &b, Value bestValue,
                                             Value bestIndex, Value value,
                                             Value index) const {
  ScalarBuilder s(b, loc);
  bool isMax = combiner == Combiner::ArgMax;
  Value isBetter = isMax ? s.lt(bestValue, value) : s.lt(value, bestValue);
  Value isTie = s.eq(value, bestValue);
  if (isa<FloatType>(value.getType())) {
    // NaN beats every number, as in PyTorch.
    Value valueIsNan = s.isNan(value), bestIsNan = s.isNan(bestValue);
    isBetter = s.logicalOr(isBetter,
                           s.logicalAnd(valueIsNan, s.logicalNot(bestIsNan)));
    isTie = s.logicalOr(isTie, s.logicalAnd(valueIsNan, bestIsNan));
  }
  Value take =
      s.logicalOr(isBetter, s.logicalAnd(isTie, s.lt(index, bestIndex)));
  return {s.select(take, value, bestValue), s.select(take, index, bestIndex)};
}

FailureOr<SmallVector<Value>>
KernelBuilder::accumulate(SmallVector<Value> accumulators) {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<int64_t> reductionDims;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (loops[dim].isReduction) {
      nest.emplace_back(dim, enterTiles(dim, accumulators));
      reductionDims.push_back(dim);
    }
  unsigned numInputs = getInit() - op.getNumEpilogueInputs();
  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins, outs;
  SmallVector<SmallVector<unsigned>> tileDims;
  for (unsigned operand = 0; operand < numInputs; ++operand) {
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
    tileDims.push_back(getTileDims(operand));
  }
  SmallVector<unsigned> outDims = getTileDims(getInit());
  tileDims.push_back(outDims);
  for (Value accumulator : accumulators)
    outs.emplace_back(accumulator, outDims);
  SmallVector<unsigned> iterated = getIteratedDims(tileDims, loops.size());
  SmallVector<Value> starts(loops.size());
  if (isArg(combiner))
    for (int64_t dim : reductionDims)
      starts[dim] = getLoopIndex(builder, dim);
  SmallVector<Value> results = buildGeneric(
      ins, outs, [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (unsigned operand = 0; operand < numInputs; ++operand)
          values.push_back(
              toComputeType(b, arguments[operand], getElementType(operand)));
        Value element = op.buildElement(b, loc, values, [](unsigned) -> Value {
          llvm_unreachable("reductions do not use loop indices");
        });
        Value accumulated = arguments[numInputs];
        ScalarBuilder s(b, loc);
        if (!isArg(combiner))
          return {combine(b, accumulated,
                          s.convert(element, accumulated.getType()))};
        // Row-major index over the reduced dimensions.
        Value index;
        for (int64_t dim : reductionDims) {
          Value own = starts[dim];
          auto *position = llvm::find(iterated, static_cast<unsigned>(dim));
          if (position != iterated.end())
            own = arith::AddIOp::create(
                b, loc, own,
                linalg::IndexOp::create(b, loc, position - iterated.begin()));
          if (!index) {
            index = own;
            continue;
          }
          Value extent =
              arith::ConstantIndexOp::create(b, loc, loops[dim].extent);
          index = arith::AddIOp::create(
              b, loc, arith::MulIOp::create(b, loc, index, extent), own);
        }
        index = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
        return combineArg(b, accumulated, arguments[numInputs + 1],
                          s.convert(element, accumulated.getType()), index);
      });
  accumulators = results;
  leaveTiles(nest, accumulators);
  return accumulators;
}

LogicalResult KernelBuilder::buildReduction() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (!loops[dim].isReduction)
      nest.emplace_back(dim, enterTiles(dim, none));

  Type resultType = getElementType(getInit());
  SmallVector<unsigned> outDims = getTileDims(getInit());
  // Floating-point values accumulate in fp32 (spec/numerics.md, "Rounding
  // points"); an index needs the value beside it.
  SmallVector<Value> accumulators;
  Type valueType =
      getComputeType(isArg(combiner) ? getElementType(0) : resultType);
  accumulators.push_back(buildFilled(outDims, getIdentity(valueType)));
  if (isArg(combiner))
    accumulators.push_back(buildFilled(
        outDims,
        builder.getI64IntegerAttr(std::numeric_limits<int64_t>::max())));

  bool isEmpty = llvm::any_of(loops, [](const Loop &loop) {
    return loop.isReduction && loop.extent == 0;
  });
  if (!isEmpty) {
    FailureOr<SmallVector<Value>> accumulated = accumulate(accumulators);
    if (failed(accumulated))
      return failure();
    accumulators = *accumulated;
  }

  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins;
  ins.emplace_back(accumulators.back(), outDims);
  unsigned firstEpilogue = getInit() - op.getNumEpilogueInputs();
  for (unsigned operand = firstEpilogue; operand < getInit(); ++operand) {
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
  }
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      ins, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> epilogueIns;
        for (unsigned operand = firstEpilogue; operand < getInit(); ++operand)
          epilogueIns.push_back(
              toComputeType(b, arguments[1 + operand - firstEpilogue],
                            getElementType(operand)));
        Value result = op.buildEpilogue(b, loc, arguments.front(), epilogueIns);
        return {toDeviceType(b, result, resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(nest, none);
  return success();
}

/// Walks the scanned dimension one step at a time with the running value of
/// every other position as a loop-carried tile.
LogicalResult KernelBuilder::buildScan() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  unsigned scanDim = 0;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (loops[dim].isReduction)
      scanDim = dim;
    else
      nest.emplace_back(dim, enterTiles(dim, none));
  }
  Type resultType = getElementType(getInit());
  SmallVector<unsigned> outDims = getTileDims(getInit());
  // Each step's tile has extent 1 along the scanned dimension.
  SmallVector<Value> accumulators;
  OpFoldResult sliceSize = loops[scanDim].size;
  loops[scanDim].size = builder.getIndexAttr(1);
  accumulators.push_back(
      buildFilled(outDims, getIdentity(getComputeType(resultType))));
  loops[scanDim].size = sliceSize;
  std::pair<unsigned, scf::ForOp> scan(scanDim,
                                       enterTiles(scanDim, accumulators));
  loops[scanDim].size = builder.getIndexAttr(1);
  FailureOr<Value> tile = load(0);
  if (failed(tile))
    return failure();
  accumulators = buildGeneric(
      {{*tile, getTileDims(0)}}, {{accumulators.front(), outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        Value element = op.buildElement(
            b, loc, {toComputeType(b, arguments[0], getElementType(0))},
            [](unsigned) -> Value {
              llvm_unreachable("scans do not use loop indices");
            });
        return {combine(
            b, arguments[1],
            ScalarBuilder(b, loc).convert(element, arguments[1].getType()))};
      });
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      {{accumulators.front(), outDims}}, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        return {toDeviceType(b, arguments[0], resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(scan, accumulators);
  leaveTiles(nest, none);
  return success();
}
