// SPDX-License-Identifier: Apache-2.0
//===- Ordering.cpp - Scans, the largest, sorts -----------------*- C++ -*-===//

#include "ATenCall.h"
#include "Indices.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

/// A core sorts whole runs in its LX; longer ones are sorted in parts, by
/// decompositions.
static constexpr int64_t kMostSorted = 1 << 14;
/// Passes over the dimension that find one result each.
static constexpr int64_t kMostPasses = 64;

static NamedAttribute dimAttr(const ATenCall &c, int64_t dim) {
  return c.attr("dim", c.immInt(dim));
}

static NamedAttribute flagAttr(const ATenCall &c, StringRef name) {
  return c.attr(name, c.b.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

static Value lowerCumSum(ATenCall &c) {
  Value self = c.tensor("self");
  if (rankOf(self) == 0)
    return c.copy(self, c.type());
  return c.device<CumSumOp>(self, c.type(),
                            dimAttr(c, c.dim("dim", rankOf(self))));
}

template <typename OpTy>
static Values lowerCumExtremum(ATenCall &c) {
  Value self = c.tensor("self");
  int64_t dim = c.dim("dim", rankOf(self));
  Values results(2);
  if (rankOf(self) == 0) {
    if (c.wants(0))
      results[0] = c.copy(self, c.type(0));
    if (c.wants(1))
      results[1] = c.full(c.type(1), c.immInt(0));
    return results;
  }
  if (c.wants(0))
    results[0] = c.device<OpTy>(self, c.type(0), dimAttr(c, dim));
  if (c.wants(1))
    results[1] = c.device<OpTy>(self, c.type(1),
                                {dimAttr(c, dim), flagAttr(c, "indices")});
  return results;
}

//===----------------------------------------------------------------------===//
// Sorts
//===----------------------------------------------------------------------===//

/// A number that no element of a type comes after, where they are in order.
static TypedAttr getLastNumber(const ATenCall &c, Type element,
                               bool descending) {
  if (isa<FloatType>(element)) {
    if (descending)
      return c.imm(-std::numeric_limits<double>::infinity());
    // DL16 has infinity in its place.
    return c.imm(element.isF32() ? std::numeric_limits<double>::quiet_NaN()
                                 : std::numeric_limits<double>::infinity());
  }
  // 64-bit integers are stored in 32 bits (spec/layouts.md).
  unsigned width = std::min(element.getIntOrFloatBitWidth(), 32u);
  if (isBool(element) || element.isUnsignedInteger())
    return c.immInt(descending ? 0 : llvm::maxUIntN(width));
  return c.immInt(descending ? llvm::minIntN(width) : llvm::maxIntN(width));
}

static void requireSortable(const ATenCall &c, Value self, int64_t dim) {
  c.require(shapeOf(self)[dim] <= kMostSorted,
            "more than " + Twine(kMostSorted) +
                " elements are sorted in parts");
}

/// `self`, with a dimension whose size varies filled up to the largest: each
/// size has its own order of comparisons. What fills comes after all elements,
/// for equal ones keep their order.
static Value fillToLargest(const ATenCall &c, Value self, int64_t dim,
                           bool descending) {
  requireSortable(c, self, dim);
  if (!varies(self, dim))
    return self;
  SmallVector<AffineExpr> sizes = getSizes(self), filled = sizes;
  filled[dim] = c.b.getAffineConstantExpr(shapeOf(self)[dim]);
  Value last =
      c.full(typeOf(self), getLastNumber(c, elementOf(self), descending));
  return c.withSizes(
      c.insert(self, c.withSizes(last, filled), c.identityMap(rankOf(self))),
      sizes);
}

/// The elements of `self` along `dim` in order, or their indices.
static Value sort(const ATenCall &c, Value self, int64_t dim, bool descending,
                  bool indices) {
  SmallVector<NamedAttribute> attrs{dimAttr(c, dim)};
  if (descending)
    attrs.push_back(flagAttr(c, "descending"));
  if (indices)
    attrs.push_back(flagAttr(c, "indices"));
  return c.device<SortOp>(
      self, c.typeLike(self, indices ? c.b.getI64Type() : elementOf(self)),
      attrs);
}

/// What the two results of an ordering have at coordinates `map` of all that is
/// in order.
static Values lowerInOrder(const ATenCall &c, Value self, int64_t dim,
                           bool descending, AffineMap map) {
  if (rankOf(self) != 0)
    self = fillToLargest(c, self, dim, descending);
  Values results(2);
  for (unsigned number : {0u, 1u}) {
    if (!c.wants(number))
      continue;
    RankedTensorType type = c.type(number);
    if (rankOf(self) == 0) {
      results[number] =
          number == 0 ? c.copy(self, type) : c.full(type, c.immInt(0));
      continue;
    }
    Value sorted = sort(c, self, dim, descending, number == 1);
    SmallVector<AffineExpr> sizes = c.resultSizes(number);
    if (getSizes(sorted) != sizes &&
        !llvm::all_of(sizes, llvm::IsaPred<AffineConstantExpr>))
      // How many of them, varies.
      results[number] =
          c.withSizes(c.mapped<IdentityOp>(sorted, c.empty(type),
                                           {map, c.identityMap(type.getRank())},
                                           type.getShape()),
                      sizes);
    else
      results[number] = map.isIdentity() && typeOf(sorted) == type
                            ? sorted
                            : c.view(sorted, map, type.getShape());
  }
  return results;
}

static Values lowerSort(ATenCall &c) {
  Value self = c.tensor("self");
  int64_t rank = rankOf(self), dim = c.dim("dim", rank, -1);
  return lowerInOrder(c, self, dim, c.flag("descending"), c.identityMap(rank));
}

/// The last dimension of `keys` in order, and the places that belong to the
/// keys.
static Values lowerSortPairs(ATenCall &c) {
  Value keys = c.tensor("keys"), places = c.tensor("places");
  int64_t dim = rankOf(keys) - 1;
  c.require(dim >= 0 && shapeOf(keys) == shapeOf(places),
            "keys and places must have the same shape, of one dimension or "
            "more");
  c.require(!varies(keys, dim), "the size of what is sorted varies");
  requireSortable(c, keys, dim);
  SmallVector<NamedAttribute> attrs{dimAttr(c, dim),
                                    c.attr("run", c.immInt(c.integer("run")))};
  if (c.flag("descending"))
    attrs.push_back(flagAttr(c, "descending"));
  Values results(2);
  for (unsigned number : {0u, 1u}) {
    if (number == 1)
      attrs.push_back(flagAttr(c, "indices"));
    if (c.wants(number))
      results[number] = c.device<SortOp>({keys, places}, c.type(number), attrs);
  }
  return results;
}

/// The k-th smallest along a dimension, where k varies: found through an index.
/// `source` says where it is but for `dim`, at which it has 0.
static Values lowerVaryingKthValue(const ATenCall &c, Value self, int64_t dim,
                                   AffineExpr k, AffineMap source) {
  self = fillToLargest(c, self, dim, /*descending=*/false);
  Value index = asLine(c, c.sizeNumber(k - 1));
  unsigned rank = source.getNumDims();
  AffineMap only =
      AffineMap::get(rank, 0, c.b.getAffineConstantExpr(0), c.b.getContext());
  Values results(2);
  for (unsigned number : {0u, 1u})
    if (c.wants(number))
      results[number] = c.mapped<GatherOp>(
          {sort(c, self, dim, /*descending=*/false, number == 1), index},
          c.empty(c.type(number)), {source, only, c.identityMap(rank)},
          c.type(number).getShape(), axisAttr(c, dim));
  return results;
}

/// The k-th smallest along a dimension.
static Values lowerKthValue(ATenCall &c) {
  Value self = c.tensor("self");
  int64_t rank = rankOf(self), dim = c.dim("dim", rank, -1);
  bool keepsDim = c.flag("keepdim");
  auto getMap = [&](int64_t place) {
    SmallVector<AffineExpr> exprs;
    for (int64_t own = 0, next = 0; own < rank; ++own) {
      exprs.push_back(own == dim ? c.b.getAffineConstantExpr(place)
                                 : c.b.getAffineDimExpr(next));
      next += own != dim || keepsDim;
    }
    int64_t resultRank = rank == 0 || keepsDim ? rank : rank - 1;
    return AffineMap::get(resultRank, 0, exprs, c.b.getContext());
  };
  if (std::optional<AffineExpr> k = c.varyingSize("k"); k && rank > 0)
    return lowerVaryingKthValue(c, self, dim, *k, getMap(0));
  int64_t k = c.integer("k");
  c.require(k >= 1 && k <= (rank == 0 ? 1 : shapeOf(self)[dim]),
            "k is not within the dimension");
  return lowerInOrder(c, self, dim, /*descending=*/false, getMap(k - 1));
}

/// The k largest along a dimension, each found in a pass of its own.
static Values findLargest(const ATenCall &c, Value keys, int64_t dim,
                          int64_t k) {
  int64_t rank = rankOf(keys);
  SmallVector<int64_t> extents = llvm::to_vector(shapeOf(keys));
  extents.push_back(k);
  AffineMap source =
      AffineMap::getMultiDimIdentityMap(rank + 1, c.b.getContext())
          .dropResult(rank);
  SmallVector<AffineExpr> kept(source.getResults());
  kept[dim] = c.b.getAffineDimExpr(rank);
  AffineMap target = AffineMap::get(rank + 1, 0, kept, c.b.getContext());
  Values results(2);
  for (unsigned number : {0u, 1u}) {
    if (!c.wants(number))
      continue;
    SmallVector<NamedAttribute> attrs;
    if (number == 1)
      attrs.push_back(flagAttr(c, "indices"));
    SmallVector<AffineExpr> sizes = getSizes(keys);
    sizes.push_back(c.resultSizes(number)[dim]);
    results[number] =
        c.withSizes(c.mapped<TopKOp>(keys, c.empty(c.type(number)),
                                     {source, target}, extents, attrs),
                    sizes);
  }
  return results;
}

/// The k largest or smallest along a dimension, and where they are: few by
/// passes over the dimension, many by a sort.
static Values lowerTopK(ATenCall &c) {
  Value self = c.tensor("self");
  Type element = elementOf(self);
  int64_t rank = rankOf(self), dim = c.dim("dim", rank, -1);
  bool largest = c.flag("largest", true);
  // The most, where it varies.
  int64_t k = rank > 0 && c.varyingSize("k")
                  ? c.type(c.wants(0) ? 0 : 1).getDimSize(dim)
                  : c.integer("k");
  bool isPassable =
      isa<FloatType>(element) || element.isInteger(32) || element.isInteger(64);
  // A NaN is the largest; its negative must not be.
  isPassable &= largest || !element.isF32();
  if (rank == 0 || !isPassable || k > kMostPasses)
    return lowerInOrder(c, self, dim, largest, c.identityMap(rank));
  // -1 - x is exact for all integers, -x for all floating values.
  auto reverse = [&](Value value, RankedTensorType type) {
    if (isa<FloatType>(element))
      return c.pointwise<NegOp>(type, {value});
    return c.pointwise<SubOp>(type, {c.immInt(-1), value});
  };
  Values results =
      findLargest(c, largest ? self : reverse(self, typeOf(self)), dim, k);
  if (results[0] && !largest)
    results[0] = reverse(results[0], c.type(0));
  return results;
}

void aten::addOrderingRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"aten.cumsum.default"}, "self dim dtype", lowerCumSum);
  table.addMany({"aten.topk.default"}, "self k dim largest sorted", lowerTopK);
  table.addMany({"aten.cummax.default"}, "self dim",
                lowerCumExtremum<CumMaxOp>);
  table.addMany({"aten.cummin.default"}, "self dim",
                lowerCumExtremum<CumMinOp>);
  table.addMany({"aten.sort.default"}, "self dim descending", lowerSort);
  table.addMany({"aten.sort.stable"}, "self stable dim descending", lowerSort);
  table.addMany({"spyre.sort_pairs.default"}, "keys places descending run",
                lowerSortPairs);
  table.addMany({"aten.kthvalue.default"}, "self k dim keepdim", lowerKthValue);
}
