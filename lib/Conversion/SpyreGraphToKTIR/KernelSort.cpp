// SPDX-License-Identifier: Apache-2.0
//===- KernelSort.cpp - A network that sorts a tile -------------*- C++ -*-===//
//
// An element and its place are one key of 64 bits: the element's order above,
// its index, or the one that an input gives it, below. Keys are distinct, so
// that whatever order a network leaves equal elements in, the sort is stable,
// and a stage is the smaller and the greater of two integers.
//
// The network is Batcher's bitonic one. Runs of n elements in order become runs
// of 2n: the first stage compares each element with the one as far from the
// other end, the next ones with those n/2, n/4, ... 1 away. The smaller one
// always goes to the front, so that all stages are one operation over tiles of
// which one dimension is cut in three.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Bits of a key: the order of the element, its index, and whether it is -0,
/// which the order does not tell from 0.
static constexpr int64_t kOrderBits = 32, kMinusZeroBits = 1;

namespace {
/// Tiles of keys, of which dimension `dim` is sorted.
class SortNetwork {
public:
  SortNetwork(OpBuilder &b, Location loc, SmallVector<OpFoldResult> sizes,
              unsigned dim, int64_t count, int64_t sortedRun)
      : b(b), loc(loc), sizes(std::move(sizes)), dim(dim), count(count),
        sortedRun(sortedRun), padded(llvm::PowerOf2Ceil(count)) {}

  /// The keys in order, from `count` of them, in runs that are in order.
  Value sort(Value keys);

private:
  Value addPadding(Value keys);
  Value dropPadding(Value keys);
  /// Compares what lies `distance` apart in blocks of twice as many, or, if
  /// `isMirrored`, as far from either end of the block.
  Value compare(Value keys, int64_t distance, bool isMirrored);
  SmallVector<OpFoldResult> getSizes(int64_t length) const {
    SmallVector<OpFoldResult> result(sizes);
    result[dim] = b.getIndexAttr(length);
    return result;
  }

  OpBuilder &b;
  Location loc;
  SmallVector<OpFoldResult> sizes;
  unsigned dim;
  int64_t count, sortedRun, padded;
  /// Whether the first of two that are compared keeps the smaller one.
  Value keepsSmaller;
};
} // namespace

/// Keys behind all others, up to a power of two.
Value SortNetwork::addPadding(Value keys) {
  if (padded == count)
    return keys;
  Value last = arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(std::numeric_limits<int64_t>::max()));
  Value empty =
      tensor::EmptyOp::create(b, loc, getSizes(padded), b.getI64Type());
  Value filled = linalg::FillOp::create(b, loc, last, empty).getResult(0);
  SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0)),
      ones(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, keys, filled, zeros,
                                       getSizes(count), ones);
}

Value SortNetwork::dropPadding(Value keys) {
  if (padded == count)
    return keys;
  SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0)),
      ones(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, keys, zeros, getSizes(count),
                                        ones);
}

Value SortNetwork::compare(Value keys, int64_t distance, bool isMirrored) {
  MLIRContext *context = b.getContext();
  unsigned rank = sizes.size();
  // Dimension `dim` becomes (block, side, place).
  SmallVector<ReassociationIndices> groups;
  SmallVector<OpFoldResult> cut;
  SmallVector<AffineExpr> partner;
  for (unsigned own = 0, next = 0; own < rank; ++own) {
    ReassociationIndices &group = groups.emplace_back();
    unsigned numParts = own == dim ? 3 : 1;
    for (unsigned part = 0; part < numParts; ++part) {
      group.push_back(next);
      partner.push_back(getAffineDimExpr(next++, context));
    }
    if (own != dim) {
      cut.push_back(sizes[own]);
      continue;
    }
    cut.push_back(b.getIndexAttr(padded / (2 * distance)));
    cut.push_back(b.getIndexAttr(2));
    cut.push_back(b.getIndexAttr(distance));
  }
  unsigned side = dim + 1, place = dim + 2;
  partner[side] = 1 - partner[side];
  if (isMirrored)
    partner[place] = distance - 1 - partner[place];
  AffineMap identity = b.getMultiDimIdentityMap(rank + 2);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(cut, dynamic, shape);
  auto type = RankedTensorType::get(shape, b.getI64Type());
  Value blocks = tensor::ExpandShapeOp::create(b, loc, type, keys, groups, cut);
  Value init = tensor::EmptyOp::create(b, loc, cut, b.getI64Type());
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange(type), ValueRange{blocks, blocks, keepsSmaller}, init,
      {identity, AffineMap::get(rank + 2, 0, partner, context),
       AffineMap::get(rank + 2, 0, getAffineDimExpr(side, context)), identity},
      SmallVector<utils::IteratorType>(rank + 2, utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange in) {
        Value smaller = arith::MinSIOp::create(b, loc, in[0], in[1]);
        Value greater = arith::MaxSIOp::create(b, loc, in[0], in[1]);
        linalg::YieldOp::create(
            b, loc,
            arith::SelectOp::create(b, loc, in[2], smaller, greater)
                .getResult());
      });
  return tensor::CollapseShapeOp::create(b, loc, keys.getType(),
                                         generic.getResult(0), groups);
}

Value SortNetwork::sort(Value keys) {
  auto sides = RankedTensorType::get({2}, b.getI1Type());
  keepsSmaller = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(sides, ArrayRef<bool>{true, false}));
  keys = addPadding(keys);
  for (int64_t run = sortedRun; run < padded; run *= 2) {
    keys = compare(keys, run, /*isMirrored=*/true);
    for (int64_t distance = run / 2; distance > 0; distance /= 2)
      keys = compare(keys, distance, /*isMirrored=*/false);
  }
  return dropPadding(keys);
}

/// Loads whole runs of the sorted dimension, sorts their keys in LX, and stores
/// the elements, or where they came from.
LogicalResult KernelBuilder::buildSort() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  unsigned sortDim = 0;
  for (unsigned dim : order) {
    if (loops[dim].isReduction)
      sortDim = dim;
    else
      nest.emplace_back(dim, enterTiles(dim, none));
  }
  SmallVector<std::pair<Value, SmallVector<unsigned>>> inputs;
  for (unsigned input = 0; input < getInit(); ++input) {
    FailureOr<Value> tile = load(input);
    if (failed(tile))
      return failure();
    inputs.emplace_back(*tile, getTileDims(input));
  }
  SmallVector<unsigned> dims = getTileDims(getInit());
  auto *position = llvm::find(dims, sortDim);
  bool isDescending = combiner == Combiner::SortDescending;
  SmallVector<Value> keys = buildGeneric(
      inputs, {{buildEmpty(dims, builder.getI64Type()), dims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        ScalarBuilder s(b, loc);
        Value element = op.buildElement(
            b, loc, {toComputeType(b, loc, arguments[0], getElementType(0))},
            [](unsigned) -> Value {
              llvm_unreachable("sorts do not use loop indices");
            });
        Value order = s.orderOf(element);
        if (isDescending)
          order = s.bitXor(order, s.constantInt(order.getType(), -1));
        Value index;
        if (inputs.size() > 1)
          index =
              s.convert(toComputeType(b, loc, arguments[1], getElementType(1)),
                        b.getI64Type());
        else if (position == dims.end())
          index = arith::ConstantIndexOp::create(b, loc, 0);
        else
          index = linalg::IndexOp::create(b, loc, position - dims.begin());
        if (index.getType().isIndex())
          index = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
        return {packKey(s, element, order, index)};
      });
  Value sorted = keys.front();
  if (position != dims.end())
    sorted =
        SortNetwork(builder, loc,
                    llvm::map_to_vector(
                        dims, [&](unsigned dim) { return loops[dim].size; }),
                    position - dims.begin(), loops[sortDim].extent,
                    op.getSortedRun())
            .sort(sorted);
  Type resultType = getElementType(getInit());
  SmallVector<Value> results = buildGeneric(
      {{sorted, dims}},
      {{buildEmpty(dims, getDeviceElementType(resultType)), dims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        ScalarBuilder s(b, loc);
        return {toDeviceType(b, loc, unpackKey(s, arguments[0]), resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(nest, none);
  return success();
}

Value KernelBuilder::packKey(ScalarBuilder &s, Value element, Value order,
                             Value index) const {
  Type i64 = index.getType();
  auto shift = [&](Value value, int64_t bits) -> Value {
    OpBuilder &b = s.getBuilder();
    return arith::ShLIOp::create(b, loc, value, s.constantInt(i64, bits));
  };
  Value place = shift(index, kMinusZeroBits);
  if (isa<FloatType>(element.getType())) {
    Value zero = s.zeroLike(element);
    Value isMinusZero =
        s.logicalAnd(s.eq(element, zero), s.lt(s.reciprocal(element), zero));
    place = s.bitOr(place, isMinusZero);
  }
  return s.bitOr(shift(s.convert(order, i64), kOrderBits), place);
}

Value KernelBuilder::unpackKey(ScalarBuilder &s, Value key) {
  Type i64 = key.getType();
  auto lowest = [&](int64_t bits) {
    return s.bitAnd(key, s.constantInt(i64, (int64_t(1) << bits) - 1));
  };
  auto shift = [&](Value value, int64_t bits) -> Value {
    OpBuilder &b = s.getBuilder();
    return arith::ShRSIOp::create(b, loc, value, s.constantInt(i64, bits));
  };
  if (op.getRankedResult() == RankedResult::Index)
    return shift(lowest(kOrderBits), kMinusZeroBits);
  Type type = getComputeType(getElementType(0));
  Value order = s.convert(shift(key, kOrderBits), builder.getI32Type());
  if (combiner == Combiner::SortDescending)
    order = s.bitXor(order, s.constantInt(order.getType(), -1));
  if (!isa<FloatType>(type))
    return s.convert(order, type);
  Value isMinusZero =
      s.logicalAnd(s.eq(order, s.zeroLike(order)), lowest(kMinusZeroBits));
  return s.select(isMinusZero, s.constantF32(-0.0), s.floatOfOrder(order));
}
