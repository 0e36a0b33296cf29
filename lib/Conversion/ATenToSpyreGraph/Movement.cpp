// SPDX-License-Identifier: Apache-2.0
//===- Movement.cpp - Concatenation, padding, partial updates ---*- C++ -*-===//
//
// A partial update is an `identity` whose init is the updated tensor and whose
// init map says where the source's elements go.
//
//===----------------------------------------------------------------------===//

#include "ATenCall.h"

#include "Indices.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

/// The identity map of a tensor of `rank`, with result `dim` replaced by
/// `expr`.
static AffineMap replaceResult(const ATenCall &c, unsigned rank, unsigned dim,
                               AffineExpr expr) {
  SmallVector<AffineExpr> exprs(c.identityMap(rank).getResults());
  exprs[dim] = expr;
  return AffineMap::get(rank, 0, exprs, c.b.getContext());
}

/// The tensors that are joined, without those that have no elements.
static Values getParts(const ATenCall &c, unsigned rank, int64_t dim) {
  Values parts;
  for (Value part : c.tensors("tensors")) {
    c.require(part != nullptr, "an entry of 'tensors' is None");
    // PyTorch ignores tensors of shape [0] among others.
    if (rankOf(part) == 1 && shapeOf(part)[0] == 0)
      continue;
    c.require(rankOf(part) == rank, "tensors must have one rank");
    if (shapeOf(part)[dim] != 0)
      parts.push_back(part);
  }
  return parts;
}

/// The index of as many elements as `length` says, from `offset` on.
static Value indexFrom(const ATenCall &c, AffineExpr offset,
                       AffineExpr length) {
  Value index = asLine(c, c.sizeNumber(offset));
  if (length == c.b.getAffineConstantExpr(1))
    return index;
  Value steps = c.iota(length, 0);
  return c.withSizes(c.pointwise<AddOp>(typeOf(steps), {steps, index}), length);
}

/// A copy of `part` into `whole`, `offset` further along `dim`: through an
/// index where the offset is a size that varies.
static Value insertAt(const ATenCall &c, Value part, Value whole, int64_t dim,
                      AffineExpr offset) {
  unsigned rank = rankOf(whole);
  if (auto number = dyn_cast<AffineConstantExpr>(offset))
    return c.insert(
        part, whole,
        replaceResult(c, rank, dim,
                      c.b.getAffineDimExpr(dim) + number.getValue()));
  Value index = indexFrom(c, offset, getSizes(part)[dim]);
  return c.mapped<ScatterOp>(
      {part, index}, whole,
      {c.identityMap(rank), AffineMap::get(rank, 0, c.b.getAffineDimExpr(dim)),
       replaceResult(c, rank, dim, c.b.getAffineConstantExpr(0))},
      shapeOf(part), axisAttr(c, dim));
}

/// Whether each part can be copied from its offset on, which maps say at the
/// largest sizes: the largest offsets and sizes are those of one result. Along
/// sticks, lanes would vary.
static bool canInsertParts(const ATenCall &c, ArrayRef<Value> parts,
                           int64_t dim) {
  ArrayRef<int64_t> shape = c.type().getShape();
  if (dim + 1 == static_cast<int64_t>(shape.size()))
    return false;
  AffineExpr offset = c.b.getAffineConstantExpr(0);
  int64_t end = 0;
  for (Value part : parts) {
    if (c.range(offset).second != end)
      return false;
    end += shapeOf(part)[dim];
    offset = offset + getSizes(part)[dim];
  }
  return end == shape[dim];
}

/// A copy of `part` into `whole`, from `offset` on along `dim`. What does not
/// begin at 0 says how large the result is.
static Value insertFrom(const ATenCall &c, Value part, Value whole, int64_t dim,
                        AffineExpr offset) {
  SmallVector<SizeSymbolAttr> symbols =
      getSizeSymbols(c.b.getInsertionBlock()->getParentOp());
  unsigned rank = rankOf(whole);
  AffineMap map = replaceResult(
      c, rank, dim, c.b.getAffineDimExpr(dim) + c.range(offset).second);
  if (offset == c.b.getAffineConstantExpr(0))
    return c.insert(part, whole, map);
  AffineMap offsetMap = AffineMap::get(0, symbols.size(), offset);
  return c.mapped<InsertOp>(
      c.cast(part, elementOf(whole)), whole, {c.identityMap(rank), map},
      shapeOf(part),
      {axisAttr(c, dim), c.attr("offset_map", AffineMapAttr::get(offsetMap))});
}

/// Where sizes of parts vary and these cannot be inserted, one operation writes
/// all of the result first: it repeats the first element of the last part.
static Value lowerCat(ATenCall &c) {
  RankedTensorType type = c.type();
  unsigned rank = type.getRank();
  int64_t dim = c.dim("dim", rank, 0);
  Values parts = getParts(c, rank, dim);
  if (parts.empty())
    return c.full(type, c.immInt(0));
  AffineExpr zero = c.b.getAffineConstantExpr(0), offset = zero;
  Value result = c.empty(type);
  bool isVarying = parts.size() > 1 && llvm::any_of(parts, [&](Value part) {
                     return varies(part, dim);
                   });
  bool isInserted = isVarying && canInsertParts(c, parts, dim);
  if (isVarying && !isInserted) {
    Value last = parts.back();
    result =
        c.withSizes(c.mapped<IdentityOp>(last, result,
                                         {replaceResult(c, rank, dim, zero),
                                          c.identityMap(rank)},
                                         type.getShape()),
                    c.resultSizes());
    if (shapeOf(last)[dim] == 1)
      parts.pop_back();
  }
  for (Value part : parts) {
    result = isInserted ? insertFrom(c, part, result, dim, offset)
                        : insertAt(c, part, result, dim, offset);
    offset = offset + getSizes(part)[dim];
  }
  return result;
}

static Value lowerStack(ATenCall &c) {
  RankedTensorType type = c.type();
  unsigned rank = type.getRank();
  int64_t dim = c.dim("dim", rank, 0);
  Value result = c.empty(type);
  for (auto [index, part] : llvm::enumerate(c.tensors("tensors"))) {
    c.require(part != nullptr, "an entry of 'tensors' is None");
    SmallVector<AffineExpr> exprs;
    for (unsigned i = 0, source = 0; i < rank; ++i)
      exprs.push_back(static_cast<int64_t>(i) == dim
                          ? c.b.getAffineConstantExpr(index)
                          : c.b.getAffineDimExpr(source++));
    result = c.insert(part, result,
                      AffineMap::get(rank - 1, 0, exprs, c.b.getContext()));
  }
  return result;
}

/// Padding with negative amounts crops. Where a size that varies is before the
/// elements, they are stored through an index.
static Value lowerPad(ATenCall &c) {
  Value self = c.tensor("self");
  RankedTensorType type = c.type();
  unsigned rank = type.getRank();
  SmallVector<AffineExpr> pad = c.sizeList("pad");
  c.require(pad.size() % 2 == 0 && pad.size() / 2 <= rank,
            "'pad' does not fit the rank");
  SmallVector<AffineExpr> from, to, sizes = getSizes(self);
  SmallVector<int64_t> extents;
  std::optional<unsigned> indexed;
  AffineExpr start;
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned pair = rank - 1 - dim;
    AffineExpr index = c.b.getAffineDimExpr(dim);
    int64_t before = 0;
    if (2 * pair < pad.size()) {
      if (auto number = dyn_cast<AffineConstantExpr>(pad[2 * pair])) {
        before = number.getValue();
      } else {
        start = pad[2 * pair];
        c.require(!indexed && c.range(start).first >= 0,
                  "where its elements begin varies");
        indexed = dim;
      }
      auto [least, most] = c.range(pad[2 * pair + 1]);
      c.require(least >= 0 || most < 0,
                "it crops at some sizes, and pads at others");
      sizes[dim] = sizes[dim] + std::min<int64_t>(before, 0);
      if (most < 0)
        sizes[dim] = sizes[dim] + pad[2 * pair + 1];
    }
    from.push_back(index + std::max<int64_t>(-before, 0));
    to.push_back(indexed == dim ? c.b.getAffineConstantExpr(0)
                                : index + std::max<int64_t>(before, 0));
    extents.push_back(std::max<int64_t>(0, c.range(sizes[dim]).second));
  }
  Type element = type.getElementType();
  TypedAttr number = c.has("value") ? c.elementNumber("value", element)
                                    : c.immElement(0.0, element);
  bool keepsAll = !indexed && type.getShape() == ArrayRef<int64_t>(extents) &&
                  c.resultSizes() == sizes;
  Value init = keepsAll ? c.empty(type)
                        : c.withSizes(c.full(type, number), c.resultSizes());
  MLIRContext *context = c.b.getContext();
  AffineMap source = AffineMap::get(rank, 0, from, context),
            target = AffineMap::get(rank, 0, to, context);
  if (!indexed)
    return c.withSizes(
        c.mapped<IdentityOp>(self, init, {source, target}, extents), sizes);
  AffineMap places =
      AffineMap::get(rank, 0, c.b.getAffineDimExpr(*indexed), context);
  return c.withSizes(
      c.mapped<ScatterOp>({self, indexFrom(c, start, sizes[*indexed])}, init,
                          {source, places, target}, extents,
                          axisAttr(c, *indexed)),
      sizes);
}

static Value lowerSliceScatter(ATenCall &c) {
  Value self = c.tensor("self"), source = c.tensor("src");
  unsigned rank = rankOf(self);
  int64_t dim = c.dim("dim", rank, 0);
  int64_t size = shapeOf(self)[dim];
  int64_t step = c.integer("step", 1);
  if (std::optional<AffineExpr> begin = c.varyingSize("start")) {
    c.require(step == 1 && rankOf(source) == static_cast<int64_t>(rank) &&
                  c.range(*begin).first >= 0,
              "where its elements begin varies");
    return insertAt(c, source, self, dim, *begin);
  }
  int64_t start = c.integer("start", 0);
  c.require(start >= 0 || !varies(self, dim),
            "where its elements begin varies");
  if (start < 0)
    start += size;
  start = std::clamp<int64_t>(start, 0, size);
  c.require(step >= 1, "step must be positive");
  c.require(rankOf(source) == static_cast<int64_t>(rank),
            "source and self must have one rank");
  // Functionalisation wraps updates in updates of whole dimensions.
  if (typeOf(source).getShape() == shapeOf(self) &&
      getSizes(source) == getSizes(self) && start == 0 && step == 1 &&
      elementOf(source) == elementOf(self) &&
      source.getDefiningOp<DestinationStyleOpInterface>())
    return source;
  return c.insert(
      source, self,
      replaceResult(c, rank, dim, c.b.getAffineDimExpr(dim) * step + start));
}

static Value lowerSelectScatter(ATenCall &c) {
  Value self = c.tensor("self"), source = c.tensor("src");
  unsigned rank = rankOf(self);
  int64_t dim = c.dim("dim", rank);
  int64_t index = c.integer("index");
  c.require(index >= 0 || !varies(self, dim), "where its elements lie varies");
  if (index < 0)
    index += shapeOf(self)[dim];
  SmallVector<AffineExpr> exprs;
  for (unsigned i = 0, from = 0; i < rank; ++i)
    exprs.push_back(static_cast<int64_t>(i) == dim
                        ? c.b.getAffineConstantExpr(index)
                        : c.b.getAffineDimExpr(from++));
  return c.insert(source, self,
                  AffineMap::get(rank - 1, 0, exprs, c.b.getContext()));
}

static Value lowerRepeat(ATenCall &c) {
  Value self = c.tensor("self");
  RankedTensorType type = c.type();
  unsigned rank = type.getRank(), leading = rank - rankOf(self);
  SmallVector<AffineExpr> exprs, whole = c.resultSizes();
  for (auto [dim, extent] : llvm::enumerate(shapeOf(self))) {
    AffineExpr index = c.b.getAffineDimExpr(leading + dim);
    bool isOnce = getSizes(self)[dim] == whole[leading + dim];
    c.require(isOnce || !varies(self, dim),
              "a dimension whose size varies is repeated");
    exprs.push_back(extent == 0 || isOnce ? index : index % extent);
  }
  AffineMap map = simplifyWithRanges(
      AffineMap::get(rank, 0, exprs, c.b.getContext()), type.getShape());
  return c.mapped<IdentityOp>(self, c.empty(type), {map, c.identityMap(rank)},
                              type.getShape());
}

/// A copy with the last `count` dimensions as one.
static Value lowerMergeLast(ATenCall &c) {
  Value x = c.tensor("x");
  int64_t count = c.integer("count");
  ArrayRef<int64_t> shape = shapeOf(x);
  c.require(count >= 1 && count <= rankOf(x),
            "count must be 1 to " + Twine(rankOf(x)) +
                ", the tensor's rank, but is " + Twine(count));
  int64_t kept = shape.size() - count;
  for (int64_t dim = kept; dim < rankOf(x); ++dim)
    c.require(!varies(x, dim), "a dimension whose size varies is counted with "
                               "others as one");
  SmallVector<AffineExpr> results;
  for (int64_t dim = 0; dim < kept; ++dim)
    results.push_back(c.b.getAffineDimExpr(dim));
  llvm::append_range(results,
                     delinearize(c.b.getAffineDimExpr(kept),
                                 computeStrides(shape.drop_front(kept))));
  SmallVector<int64_t> extents(c.type().getShape());
  AffineMap map = AffineMap::get(extents.size(), 0, results, c.b.getContext());
  return c.mapped<IdentityOp>(
      x, c.empty(c.type()),
      {simplifyWithRanges(map, extents), c.identityMap(extents.size())},
      extents);
}

void aten::addMovementRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"aten.cat.default"}, "tensors dim", lowerCat);
  table.add({"aten.stack.default"}, "tensors dim", lowerStack);
  table.add({"aten.constant_pad_nd.default"}, "self pad value", lowerPad);
  table.add({"aten.slice_scatter.default"}, "self src dim start end step",
            lowerSliceScatter);
  table.add({"aten.select_scatter.default"}, "self src dim index",
            lowerSelectScatter);
  table.add({"aten.repeat.default"}, "self repeats", lowerRepeat);
  table.add({"spyre.merge_last.default"}, "x count", lowerMergeLast);
}
