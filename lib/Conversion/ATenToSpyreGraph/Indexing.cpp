// SPDX-License-Identifier: Apache-2.0
//===- Indexing.cpp - Gather and scatter ------------------------*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

static NamedAttribute axisAttr(const ATenCall &c, int64_t axis) {
  return c.attr("axis", c.immInt(axis));
}

static Value checkIndex(const ATenCall &c, Value index) {
  c.require(isa<IntegerType>(elementOf(index)) && !isBool(elementOf(index)),
            "the result's size depends on the values of a boolean index");
  return index;
}

/// An index whose negative values count from the end.
static Value wrapIndex(const ATenCall &c, Value index, int64_t size) {
  return c.pointwise<WrapIndexOp>(typeOf(index), {index},
                                  {c.attr("size", c.immInt(size))});
}

/// table[..., index, ...] along `axis`: the index's dimensions take the place
/// of `axis`.
static Value gather(const ATenCall &c, Value source, Value index, int64_t axis,
                    RankedTensorType type) {
  return c.device<GatherOp>({source, index}, type, axisAttr(c, axis));
}

/// A scalar as a tensor of one element; anything else as it is.
static Value asLine(const ATenCall &c, Value value) {
  if (rankOf(value) > 0)
    return value;
  return c.view(value, AffineMap::get(1, 0, c.b.getContext()), {1});
}

/// The reverse, where the result has no dimension.
static Value asResult(const ATenCall &c, Value value) {
  if (c.type().getRank() > 0)
    return value;
  return c.view(value, AffineMap::get(0, 0, c.b.getAffineConstantExpr(0)), {});
}

static Value lowerIndexSelect(ATenCall &c) {
  Value self = c.tensor("self"), index = checkIndex(c, c.tensor("index"));
  c.require(rankOf(self) > 0,
            "a tensor without dimensions is not supported here");
  int64_t axis = c.dim("dim", rankOf(self));
  index = asLine(c, index);
  return gather(c, self, index, axis, c.type());
}

static Value lowerGather(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value index = asLine(c, checkIndex(c, c.tensor("index")));
  unsigned rank = rankOf(self);
  int64_t axis = c.dim("dim", rank);
  SmallVector<AffineExpr> exprs(c.identityMap(rank).getResults());
  exprs[axis] = c.b.getAffineConstantExpr(0);
  RankedTensorType type = c.typeLike(index, elementOf(self));
  Value result =
      c.mapped<GatherOp>({self, index}, c.empty(type),
                         {AffineMap::get(rank, 0, exprs, c.b.getContext()),
                          c.identityMap(rank), c.identityMap(rank)},
                         type.getShape(), axisAttr(c, axis));
  return asResult(c, result);
}

/// The index tensors of an `indices` list and the first dimension indexed.
/// Refuses lists whose tensors are apart.
static std::pair<Values, int64_t> getIndices(ATenCall &c) {
  Values list = c.tensors("indices"), found;
  int64_t first = -1, last = -1;
  for (auto [dim, index] : llvm::enumerate(list))
    if (index) {
      found.push_back(checkIndex(c, index));
      first = first < 0 ? dim : first;
      last = dim;
    }
  c.require(!found.empty(), "expects at least one index tensor");
  c.require(last - first + 1 == static_cast<int64_t>(found.size()),
            "index tensors must be in dimensions next to each other");
  return {found, first};
}

/// One index into the dimensions [first, first + n) of a tensor taken as one
/// dimension, from one index per dimension.
static Value combineIndices(ATenCall &c, ArrayRef<Value> indices,
                            ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape;
  for (Value index : indices) {
    SmallVector<int64_t> next;
    unsigned rank = std::max<unsigned>(shape.size(), rankOf(index));
    auto extent = [&](ArrayRef<int64_t> of, unsigned dim) {
      unsigned missing = rank - of.size();
      return dim < missing ? 1 : of[dim - missing];
    };
    for (unsigned dim = 0; dim < rank; ++dim) {
      int64_t x = extent(shape, dim), y = extent(shapeOf(index), dim);
      next.push_back(x == 1 ? y : x);
    }
    shape = next;
  }
  auto type = RankedTensorType::get(shape, c.b.getI64Type());
  Value combined;
  for (auto [index, size] : llvm::zip_equal(indices, sizes)) {
    Value wrapped = wrapIndex(c, index, size);
    combined =
        combined ? c.pointwise<FmaOp>(type, {combined, c.immInt(size), wrapped})
                 : wrapped;
  }
  return combined;
}

/// A copy of `source` with the dimensions [first, first + n) as one.
static Value mergeDims(ATenCall &c, Value source, int64_t first, int64_t n) {
  ArrayRef<int64_t> shape = shapeOf(source);
  SmallVector<int64_t> merged(shape.take_front(first));
  int64_t extent = 1;
  for (int64_t size : shape.slice(first, n))
    extent *= size;
  merged.push_back(extent);
  llvm::append_range(merged, shape.drop_front(first + n));
  SmallVector<AffineExpr> exprs;
  AffineExpr index = c.b.getAffineDimExpr(first);
  int64_t step = extent;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t position = dim;
    if (position < first || position >= first + n) {
      exprs.push_back(
          c.b.getAffineDimExpr(position < first ? position : position - n + 1));
      continue;
    }
    step /= std::max<int64_t>(size, 1);
    exprs.push_back(index.floorDiv(std::max<int64_t>(step, 1)) %
                    std::max<int64_t>(size, 1));
  }
  AffineMap map = simplifyWithRanges(
      AffineMap::get(merged.size(), 0, exprs, c.b.getContext()), merged);
  auto type = RankedTensorType::get(merged, elementOf(source));
  return c.mapped<IdentityOp>(source, c.empty(type),
                              {map, c.identityMap(merged.size())}, merged);
}

static Value lowerIndex(ATenCall &c) {
  Value self = c.tensor("self");
  auto [indices, first] = getIndices(c);
  if (indices.size() == 1)
    return gather(c, self, wrapIndex(c, indices[0], shapeOf(self)[first]),
                  first, c.type());
  Value index =
      combineIndices(c, indices, shapeOf(self).slice(first, indices.size()));
  return gather(c, mergeDims(c, self, first, indices.size()), index, first,
                c.type());
}

/// Elements of all of a tensor, counted in its order.
static Value lowerTake(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value index = checkIndex(c, c.tensor("index"));
  int64_t count = typeOf(self).getNumElements();
  c.require(count > 0, "cannot take elements of an empty tensor");
  return gather(c, mergeDims(c, self, 0, rankOf(self)),
                wrapIndex(c, index, count), 0, c.type());
}

/// self plus alpha x the rows of `values` summed per index: a product with the
/// one-hot matrix of the indices, rounded once.
static Value accumulateRows(ATenCall &c, Value self, Value index, Value values,
                            double alpha) {
  int64_t rows = shapeOf(self)[0], count = typeOf(index).getNumElements();
  if (count == 0 || typeOf(self).getNumElements() == 0)
    return c.copy(self, typeOf(self));
  c.require(isa<FloatType>(elementOf(self)) &&
                elementOf(values) == elementOf(self),
            "values to accumulate must be floats of self's type");
  int64_t width = typeOf(self).getNumElements() / rows;
  c.require(typeOf(values).getNumElements() == count * width,
            "values to accumulate must not be broadcast");
  Value oneHot = buildOneHot(c, index, rows, elementOf(self));
  auto type = RankedTensorType::get({rows, width}, elementOf(self));
  Value sum = buildMatmul(c, oneHot, flattenTo(c, values, count),
                          flattenTo(c, self, rows), type, alpha);
  // Back to self's shape.
  SmallVector<AffineExpr> exprs{c.b.getAffineDimExpr(0)};
  AffineExpr column = c.b.getAffineConstantExpr(0);
  for (auto [dim, extent] : llvm::enumerate(shapeOf(self).drop_front()))
    column = column * extent + c.b.getAffineDimExpr(dim + 1);
  exprs.push_back(column);
  if (rankOf(self) == 2)
    return sum;
  return c.view(sum, AffineMap::get(rankOf(self), 0, exprs, c.b.getContext()),
                shapeOf(self));
}

/// `source` with its dimensions [0, n) at `to`, or those at `from` first.
static Value moveDims(const ATenCall &c, Value source, unsigned from,
                      unsigned to, unsigned n) {
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(rankOf(source)));
  auto begin = order.begin();
  if (to == 0)
    std::rotate(begin, begin + from, begin + from + n);
  else
    std::rotate(begin, begin + n, begin + n + to);
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs(order.size());
  for (auto [position, dim] : llvm::enumerate(order)) {
    shape.push_back(shapeOf(source)[dim]);
    exprs[dim] = c.b.getAffineDimExpr(position);
  }
  return c.view(
      source, AffineMap::get(order.size(), 0, exprs, c.b.getContext()), shape);
}

/// Adds to rows along `axis`; `values` has the dimensions of the index there.
static Value accumulate(ATenCall &c, Value self, int64_t axis, Value index,
                        Value values, double alpha) {
  unsigned rank = std::max<unsigned>(rankOf(index), 1);
  if (axis == 0)
    return accumulateRows(c, self, index, values, alpha);
  c.require(rankOf(values) == rankOf(self) - 1 + rank,
            "values to accumulate must not be broadcast");
  Value sum = accumulateRows(c, moveDims(c, self, axis, 0, 1), index,
                             moveDims(c, values, axis, 0, rank), alpha);
  return moveDims(c, sum, 0, axis, 1);
}

static Value lowerIndexAdd(ATenCall &c) {
  Value self = c.tensor("self"), index = checkIndex(c, c.tensor("index"));
  c.require(rankOf(self) > 0,
            "a tensor without dimensions is not supported here");
  return accumulate(c, self, c.dim("dim", rankOf(self)), index,
                    c.tensor("source"), c.number("alpha", 1.0));
}

static Value lowerIndexPut(ATenCall &c) {
  Value self = c.tensor("self"), values = c.tensor("values");
  auto [indices, first] = getIndices(c);
  c.require(indices.size() == 1, "several index tensors are not supported");
  Value index = wrapIndex(c, indices[0], shapeOf(self)[first]);
  if (c.flag("accumulate"))
    return accumulate(c, self, first, index, values, 1.0);
  // Loops: the dimensions before `first`, those of the index, the rest.
  unsigned indexRank = rankOf(index), rank = rankOf(self);
  SmallVector<int64_t> extents(shapeOf(self).take_front(first));
  llvm::append_range(extents, shapeOf(index));
  llvm::append_range(extents, shapeOf(self).drop_front(first + 1));
  unsigned numLoops = extents.size();
  SmallVector<AffineExpr> initExprs, indexExprs, valueExprs;
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (static_cast<int64_t>(dim) == first)
      initExprs.push_back(c.b.getAffineConstantExpr(0));
    else
      initExprs.push_back(c.b.getAffineDimExpr(
          static_cast<int64_t>(dim) < first ? dim : dim - 1 + indexRank));
  }
  for (unsigned dim = 0; dim < indexRank; ++dim)
    indexExprs.push_back(c.b.getAffineDimExpr(first + dim));
  // Values broadcast to the loops.
  c.require(rankOf(values) <= static_cast<int64_t>(numLoops),
            "'values' has more dimensions than the indexed part");
  unsigned missing = numLoops - rankOf(values);
  for (auto [dim, extent] : llvm::enumerate(shapeOf(values)))
    valueExprs.push_back(extent == 1 ? c.b.getAffineConstantExpr(0)
                                     : c.b.getAffineDimExpr(missing + dim));
  MLIRContext *context = c.b.getContext();
  return c.mapped<ScatterOp>({values, index}, self,
                             {AffineMap::get(numLoops, 0, valueExprs, context),
                              AffineMap::get(numLoops, 0, indexExprs, context),
                              AffineMap::get(numLoops, 0, initExprs, context)},
                             extents, axisAttr(c, first));
}

static Value lowerIndexCopy(ATenCall &c) {
  Value self = c.tensor("self"), source = c.tensor("source");
  Value index = checkIndex(c, c.tensor("index"));
  c.require(rankOf(self) > 0 && rankOf(source) == rankOf(self),
            "self and source must have one rank");
  index = asLine(c, index);
  return c.device<ScatterOp>({source, index}, self,
                             axisAttr(c, c.dim("dim", rankOf(self))));
}

static Value lowerScatter(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value index = asLine(c, checkIndex(c, c.tensor("index")));
  unsigned rank = rankOf(self);
  int64_t axis = c.dim("dim", rank);
  Value source;
  if (c.isTensor("src")) {
    source = asLine(c, c.tensor("src"));
  } else {
    TypedAttr number = c.scalar("src");
    source = c.full(c.typeLike(index, elementOf(self)), number);
  }
  SmallVector<AffineExpr> exprs(c.identityMap(rank).getResults());
  exprs[axis] = c.b.getAffineConstantExpr(0);
  Value result =
      c.mapped<ScatterOp>({source, index}, self,
                          {c.identityMap(rank), c.identityMap(rank),
                           AffineMap::get(rank, 0, exprs, c.b.getContext())},
                          shapeOf(index), axisAttr(c, axis));
  return asResult(c, result);
}

void aten::addIndexingRows(ATenTable &table) {
  table.add({"aten.embedding.default"},
            "weight indices padding_idx scale_grad_by_freq sparse",
            [](ATenCall &c) {
              return gather(c, c.tensor("weight"),
                            checkIndex(c, c.tensor("indices")), 0, c.type());
            });
  table.add({"aten.index_select.default"}, "self dim index", lowerIndexSelect);
  table.add({"aten.gather.default"}, "self dim index sparse_grad", lowerGather);
  table.add({"aten.take.default"}, "self index", lowerTake);
  table.add({"aten.index.Tensor", "aten._unsafe_index.Tensor"}, "self indices",
            lowerIndex);
  table.add({"aten.index_put.default", "aten._unsafe_index_put.default"},
            "self indices values accumulate", lowerIndexPut);
  table.add({"aten.index_add.default"}, "self dim index source alpha",
            lowerIndexAdd);
  table.add({"aten.index_copy.default"}, "self dim index source",
            lowerIndexCopy);
  table.add({"aten.scatter.src", "aten.scatter.value"}, "self dim index src",
            lowerScatter);
}
