// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the inter-tile operations.

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

using namespace mlir;
using namespace mlir::ktdp;

/// Cores of a group: one dimension, one symbol.
static LogicalResult verifyGroupSet(Operation *op, IntegerSet set,
                                    StringRef name) {
  if (set.getNumDims() == 1 && set.getNumSymbols() == 1)
    return success();
  return op->emitOpError()
         << name
         << " must have one dimension (core) and one symbol (group), but got "
         << set.getNumDims() << " and " << set.getNumSymbols();
}

/// Producers of a consumer: one dimension; the consumer, or group and consumer.
static LogicalResult verifyDependency(Operation *op,
                                      std::optional<IntegerSet> set) {
  if (!set || (set->getNumDims() == 1 && set->getNumSymbols() >= 1 &&
               set->getNumSymbols() <= 2))
    return success();
  return op->emitOpError("producer_dependency_per_consumer must have one "
                         "dimension (producer) and one or two symbols "
                         "((group and) consumer), but got ")
         << set->getNumDims() << " and " << set->getNumSymbols();
}

static LogicalResult verifyIdentity(Operation *op, Type identity, Type tile) {
  // KTDP-INTER_TILE-C11
  if (identity == tile)
    return success();
  return op->emitOpError("identity must have the future's tile type ")
         << tile << ", but got " << identity;
}

static LogicalResult verifyCombinerArguments(Operation *op, Region &region,
                                             Type tile) {
  TypeRange types = region.front().getArgumentTypes();
  if (types.size() == 2 && types[0] == tile && types[1] == tile)
    return success();
  return op->emitOpError("expected a region with two arguments of type ")
         << tile << ", but got (" << types << ")";
}

template <typename YieldOp>
static LogicalResult verifyTerminator(Operation *op, Region &region) {
  Block &block = region.front();
  if (!block.empty() && isa<YieldOp>(block.back()))
    return success();
  return op->emitOpError("expected its region to end in '")
         << YieldOp::getOperationName() << "'";
}

static LogicalResult verifyDimension(Operation *op, int64_t dimension,
                                     RankedTensorType tile, StringRef name) {
  if (dimension >= 0 && dimension < tile.getRank())
    return success();
  return op->emitOpError() << name << " must be a dimension of " << tile
                           << ", but got " << dimension;
}

/// Whether `multiple` may be n times `part` (n >= 1); true if either is
/// dynamic.
static bool mayBeMultiple(int64_t multiple, int64_t part) {
  if (ShapedType::isDynamic(multiple) || ShapedType::isDynamic(part))
    return true;
  return part == 0 ? multiple == 0 : multiple >= part && multiple % part == 0;
}

/// Same element type, rank and sizes, apart from the sizes of `exceptions`.
static bool agreeExcept(RankedTensorType lhs, RankedTensorType rhs,
                        ArrayRef<int64_t> exceptions) {
  if (lhs.getElementType() != rhs.getElementType() ||
      lhs.getRank() != rhs.getRank())
    return false;
  for (int64_t dim = 0; dim < lhs.getRank(); ++dim)
    if (!llvm::is_contained(exceptions, dim) &&
        lhs.getDimSize(dim) != rhs.getDimSize(dim))
      return false;
  return true;
}

/// The result is an equal part of the tile along `dimension`.
static LogicalResult verifyPart(Operation *op, RankedTensorType tile,
                                RankedTensorType result, int64_t dimension) {
  if (agreeExcept(tile, result, dimension) &&
      mayBeMultiple(tile.getDimSize(dimension), result.getDimSize(dimension)))
    return success();
  return op->emitOpError("expected the result to be an equal part of ")
         << tile << " along dimension " << dimension << ", but got " << result;
}

static RankedTensorType getTile(Value future) {
  return cast<RankedTensorType>(
      cast<TileFutureType>(future.getType()).getTileType());
}

//===----------------------------------------------------------------------===//
// Produce
//===----------------------------------------------------------------------===//

LogicalResult InterTileProduceOp::verify() {
  // KTDP-INTER_TILE_PRODUCE-C1
  if (failed(verifyGroupSet(*this, getProducerTilesPerGroup(),
                            "producer_tiles_per_group")))
    return failure();
  // KTDP-INTER_TILE_PRODUCE-C2
  TypeRange types = getBody().front().getArgumentTypes();
  if (types.size() != 1 || !types.front().isIndex())
    return emitOpError("expected a region with one argument of type 'index' "
                       "(the group), but got (")
           << types << ")";
  return success();
}

LogicalResult InterTileProduceOp::verifyRegions() {
  // KTDP-INTER_TILE_PRODUCE-C3
  return verifyTerminator<YieldPartialOp>(*this, getBody());
}

LogicalResult YieldPartialOp::verify() {
  // KTDP-YIELD_PARTIAL-C1: by the HasParent trait.
  // KTDP-YIELD_PARTIAL-C2
  auto produce = cast<InterTileProduceOp>((*this)->getParentOp());
  Type tile = getTile(produce.getFuture());
  if (getValue().getType() != tile)
    return emitOpError("expected a value of the future's tile type ")
           << tile << ", but got " << getValue().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Reduce, reduce_scatter
//===----------------------------------------------------------------------===//

LogicalResult InterTileReduceOp::verify() {
  // KTDP-INTER_TILE_REDUCE-C1
  // KTDP-INTER_TILE_REDUCE-C2
  // KTDP-INTER_TILE_REDUCE-C3
  RankedTensorType tile = getTile(getFuture());
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDependency(*this, getProducerDependencyPerConsumer())) ||
      failed(verifyIdentity(*this, getIdentity().getType(), tile)))
    return failure();
  // KTDP-INTER_TILE_REDUCE-C4
  RankedTensorType result = getType();
  bool sameCount = !tile.hasStaticShape() || !result.hasStaticShape() ||
                   tile.getNumElements() == result.getNumElements();
  if (tile.getElementType() != result.getElementType() || !sameCount)
    return emitOpError("expected a result with the elements of ")
           << tile << ", but got " << result;
  // KTDP-INTER_TILE_REDUCE-C5
  return verifyCombinerArguments(*this, getCombiner(), tile);
}

LogicalResult InterTileReduceOp::verifyRegions() {
  // KTDP-INTER_TILE_REDUCE-C6
  return verifyTerminator<YieldReducedOp>(*this, getCombiner());
}

LogicalResult InterTileReduceScatterOp::verify() {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C1
  // KTDP-INTER_TILE_REDUCE_SCATTER-C2
  // KTDP-INTER_TILE_REDUCE_SCATTER-C3
  // KTDP-INTER_TILE_REDUCE_SCATTER-C4
  // KTDP-INTER_TILE_REDUCE_SCATTER-C5
  RankedTensorType tile = getTile(getFuture());
  int64_t dimension = getScatterDimension();
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDimension(*this, dimension, tile, "scatter_dimension")) ||
      failed(verifyIdentity(*this, getIdentity().getType(), tile)) ||
      failed(verifyPart(*this, tile, getType(), dimension)))
    return failure();
  return verifyCombinerArguments(*this, getCombiner(), tile);
}

LogicalResult InterTileReduceScatterOp::verifyRegions() {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C6
  return verifyTerminator<YieldReducedOp>(*this, getCombiner());
}

LogicalResult YieldReducedOp::verify() {
  // KTDP-YIELD_REDUCED-C1: by the ParentOneOf trait.
  // KTDP-YIELD_REDUCED-C2
  Operation *parent = (*this)->getParentOp();
  auto reduce = dyn_cast<InterTileReduceOp>(parent);
  Type tile =
      getTile(reduce ? reduce.getFuture()
                     : cast<InterTileReduceScatterOp>(parent).getFuture());
  if (getValue().getType() != tile)
    return emitOpError("expected a value of the future's tile type ")
           << tile << ", but got " << getValue().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Consume, gather, scatter, all_to_all
//===----------------------------------------------------------------------===//

LogicalResult InterTileConsumeOp::verify() {
  // KTDP-INTER_TILE_CONSUME-C1
  // KTDP-INTER_TILE_CONSUME-C2
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDependency(*this, getProducerDependencyPerConsumer())))
    return failure();
  // KTDP-INTER_TILE_CONSUME-C3
  if (getType() != getTile(getFuture()))
    return emitOpError("expected a result of the future's tile type ")
           << getTile(getFuture()) << ", but got " << getType();
  return success();
}

LogicalResult InterTileGatherOp::verify() {
  // KTDP-INTER_TILE_GATHER-C1
  // KTDP-INTER_TILE_GATHER-C2
  RankedTensorType tile = getTile(getFuture());
  int64_t dimension = getGatherDimension();
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDimension(*this, dimension, tile, "gather_dimension")))
    return failure();
  // KTDP-INTER_TILE_GATHER-C3
  RankedTensorType result = getType();
  if (!agreeExcept(tile, result, dimension) ||
      !mayBeMultiple(result.getDimSize(dimension), tile.getDimSize(dimension)))
    return emitOpError("expected the result to be a multiple of ")
           << tile << " along dimension " << dimension << ", but got "
           << result;
  return success();
}

LogicalResult InterTileScatterOp::verify() {
  // KTDP-INTER_TILE_SCATTER-C1
  // KTDP-INTER_TILE_SCATTER-C2
  // KTDP-INTER_TILE_SCATTER-C3
  RankedTensorType tile = getTile(getFuture());
  int64_t dimension = getScatterDimension();
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDimension(*this, dimension, tile, "scatter_dimension")))
    return failure();
  return verifyPart(*this, tile, getType(), dimension);
}

LogicalResult InterTileAllToAllOp::verify() {
  // KTDP-INTER_TILE_ALL_TO_ALL-C1
  // KTDP-INTER_TILE_ALL_TO_ALL-C2
  RankedTensorType tile = getTile(getFuture());
  int64_t split = getSplitDimension();
  int64_t concat = getConcatDimension();
  if (failed(verifyGroupSet(*this, getConsumerTilesPerGroup(),
                            "consumer_tiles_per_group")) ||
      failed(verifyDimension(*this, split, tile, "split_dimension")) ||
      failed(verifyDimension(*this, concat, tile, "concat_dimension")))
    return failure();
  // KTDP-INTER_TILE_ALL_TO_ALL-C3
  RankedTensorType result = getType();
  bool valid = agreeExcept(tile, result, {split, concat});
  if (valid && split == concat) {
    valid = tile == result;
  } else if (valid) {
    int64_t whole = tile.getDimSize(split), part = result.getDimSize(split);
    int64_t one = tile.getDimSize(concat), all = result.getDimSize(concat);
    valid = mayBeMultiple(whole, part) && mayBeMultiple(all, one);
    bool isStatic = ShapedType::isStaticShape({whole, part, one, all});
    if (valid && isStatic && part != 0 && one != 0)
      valid = whole / part == all / one;
  }
  if (!valid)
    return emitOpError("expected the result to be ")
           << tile << " with dimension " << split
           << " divided, and then dimension " << concat
           << " multiplied, by the number of cores of a group, but got "
           << result;
  return success();
}
