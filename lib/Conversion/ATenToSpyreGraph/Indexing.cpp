// SPDX-License-Identifier: Apache-2.0
//===- Indexing.cpp - Gathers ---------------------------------------------===//

#include "ATenCall.h"
#include "Indices.h"

#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

Value aten::checkIndex(const ATenCall &c, Value index) {
  c.require(isa<IntegerType>(elementOf(index)) && !isBool(elementOf(index)),
            "the result's size depends on the values of a boolean index");
  return index;
}

/// An index whose negative values count from the end.
static Value wrapIndex(const ATenCall &c, Value index, int64_t size) {
  return c.pointwise<WrapIndexOp>(typeOf(index), {index},
                                  {c.attr("size", c.immInt(size))});
}

/// The same for an index into a dimension whose size may vary.
static Value wrapIndex(const ATenCall &c, Value index, AffineExpr size) {
  if (auto number = dyn_cast<AffineConstantExpr>(size))
    return wrapIndex(c, index, number.getValue());
  Value isNegative = c.pointwise<LtOp>(c.typeLike(index, c.b.getI1Type()),
                                       {index, c.immInt(0)});
  Value fromEnd =
      c.pointwise<AddOp>(typeOf(index), {index, c.sizeNumber(size)});
  return c.pointwise<WhereOp>(typeOf(index), {isNegative, fromEnd, index});
}

/// table[..., index, ...] along `axis`: the index's dimensions take the place
/// of `axis`.
static Value gather(const ATenCall &c, Value source, Value index, int64_t axis,
                    RankedTensorType type) {
  return c.device<GatherOp>({source, index}, type, axisAttr(c, axis));
}

Value aten::asLine(const ATenCall &c, Value value) {
  if (rankOf(value) > 0)
    return value;
  return c.view(value, AffineMap::get(1, 0, c.b.getContext()), {1});
}

Value aten::asResult(const ATenCall &c, Value value) {
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

/// A copy, for views that begin at a size that varies: a map says all others.
static Value lowerSlice(ATenCall &c) {
  Value self = c.tensor("self");
  int64_t axis = c.dim("dim", rankOf(self), 0);
  c.require(c.integer("step", 1) == 1,
            "only slices with a step of 1 are written");
  Value steps = c.iota(c.resultSizes()[axis], 0);
  Value index = c.pointwise<AddOp>(typeOf(steps), {steps, c.operand("start")});
  return gather(c, self, index, axis, c.type());
}

static Value lowerGather(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value index = asLine(c, checkIndex(c, c.tensor("index")));
  unsigned rank = rankOf(self);
  // An index without elements may have any rank.
  if (rankOf(index) != rank && typeOf(index).getNumElements() == 0)
    return c.full(c.type(), c.immInt(0));
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

Value aten::permute(const ATenCall &c, Value source, ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return source;
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs(order.size());
  for (auto [position, dim] : llvm::enumerate(order)) {
    shape.push_back(shapeOf(source)[dim]);
    exprs[dim] = c.b.getAffineDimExpr(position);
  }
  return c.view(
      source, AffineMap::get(order.size(), 0, exprs, c.b.getContext()), shape);
}

/// The shape that operands of these shapes broadcast to.
static SmallVector<int64_t> broadcast(ArrayRef<int64_t> a,
                                      ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  auto extent = [&](ArrayRef<int64_t> of, size_t dim) {
    size_t missing = rank - of.size();
    return dim < missing ? 1 : of[dim - missing];
  };
  SmallVector<int64_t> shape;
  for (size_t dim = 0; dim < rank; ++dim)
    shape.push_back(extent(a, dim) == 1 ? extent(b, dim) : extent(a, dim));
  return shape;
}

/// One index into dimensions taken as one, from one index per dimension. The
/// first one's size is `first`, which may vary.
static Value combineIndices(ATenCall &c, ArrayRef<Value> indices,
                            ArrayRef<int64_t> sizes, AffineExpr first) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  c.require(count <= std::numeric_limits<int32_t>::max(),
            "the indexed dimensions have " + Twine(count) +
                " elements together, which 32 bits do not count");
  if (indices.size() == 1)
    return wrapIndex(c, indices[0], first);
  Operand combined = c.immInt(0);
  SmallVector<int64_t> shape;
  if (!isa<AffineConstantExpr>(first)) {
    // What is outside of the first one is outside of all together.
    combined = wrapIndex(c, indices[0], first);
    shape.assign(shapeOf(indices[0]).begin(), shapeOf(indices[0]).end());
    indices = indices.drop_front();
    sizes = sizes.drop_front();
  }
  for (auto [index, size] : llvm::zip_equal(indices, sizes)) {
    shape = broadcast(shape, shapeOf(index));
    combined = c.pointwise<FlatIndexOp>(
        RankedTensorType::get(shape, c.b.getI64Type()), {combined, index},
        {c.attr("size", c.immInt(size))});
  }
  return combined.tensor;
}

/// The index of each dimension of `self`, or null.
static Values getIndices(ATenCall &c, Value self) {
  Values result = c.tensors("indices");
  c.require(static_cast<int64_t>(result.size()) <= rankOf(self),
            "there are more indices than dimensions");
  result.resize(rankOf(self));
  return result;
}

IndexedDims::IndexedDims(ATenCall &c) : self(c.tensor("self")) {
  Values list = getIndices(c, self), found;
  SmallVector<int64_t> dims, others;
  for (int64_t dim = 0; dim < rankOf(self); ++dim) {
    if (list[dim]) {
      found.push_back(checkIndex(c, list[dim]));
      dims.push_back(dim);
      sizes.push_back(shapeOf(self)[dim]);
    } else {
      others.push_back(dim);
    }
  }
  c.require(!found.empty(), "expects at least one index tensor");
  bool areAdjacent =
      dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
  axis = areAdjacent ? dims.front() : 0;
  // One that varies counts slowest: the others' sizes are what to multiply by.
  for (size_t i = 1; i < dims.size(); ++i)
    if (varies(self, dims[i])) {
      c.require(!varies(self, dims[0]),
                "several of the indexed dimensions have sizes that vary");
      std::swap(dims[0], dims[i]);
      std::swap(found[0], found[i]);
      std::swap(sizes[0], sizes[i]);
    }
  order = others;
  order.insert(order.begin() + axis, dims.begin(), dims.end());
  index = combineIndices(c, found, sizes, getSizes(self)[dims[0]]);
}

/// A copy of `source`, whose sizes are `sizes`, with the dimensions [first,
/// first + n) as one. Of these only the first one's size may vary.
static Value mergeDims(ATenCall &c, Value source, ArrayRef<AffineExpr> sizes,
                       int64_t first, int64_t n) {
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
  Value copy = c.mapped<IdentityOp>(
      source, c.empty(type), {map, c.identityMap(merged.size())}, merged);
  if (llvm::all_of(sizes, llvm::IsaPred<AffineConstantExpr>))
    return copy;
  SmallVector<AffineExpr> mergedSizes(sizes.take_front(first));
  mergedSizes.push_back(sizes[first]);
  for (AffineExpr size : sizes.slice(first + 1, n - 1))
    mergedSizes.back() = mergedSizes.back() * size;
  llvm::append_range(mergedSizes, sizes.drop_front(first + n));
  return c.withSizes(copy, mergedSizes);
}

Value IndexedDims::merge(ATenCall &c) const {
  Value ordered = permute(c, self, order);
  if (sizes.size() == 1)
    return ordered;
  SmallVector<AffineExpr> own = getSizes(self), orderedSizes;
  for (int64_t dim : order)
    orderedSizes.push_back(own[dim]);
  return mergeDims(c, ordered, orderedSizes, axis, sizes.size());
}

Value IndexedDims::split(ATenCall &c, Value merged) const {
  int64_t rank = order.size(), count = sizes.size();
  SmallVector<int64_t> shape, inverse(rank);
  SmallVector<AffineExpr> own = getSizes(self), ordered;
  for (auto [position, dim] : llvm::enumerate(order)) {
    shape.push_back(shapeOf(self)[dim]);
    ordered.push_back(own[dim]);
    inverse[dim] = position;
  }
  if (count == 1)
    return permute(c, merged, inverse);
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < rank - count + 1; ++dim) {
    AffineExpr expr = c.b.getAffineDimExpr(dim <= axis ? dim : dim + count - 1);
    for (int64_t more = 1; dim == axis && more < count; ++more)
      expr = expr * sizes[more] + c.b.getAffineDimExpr(axis + more);
    exprs.push_back(expr);
  }
  Value whole =
      c.view(merged, AffineMap::get(rank, 0, exprs, c.b.getContext()), shape);
  // The map does not say how long the parts of a dimension are.
  auto view = whole.getDefiningOp<ViewOp>();
  if (AffineMap map =
          makeSizeMap(ordered, getSizeSymbols(view).size(), c.b.getContext()))
    view.setSizeMapAttr(AffineMapAttr::get(map));
  return permute(c, whole, inverse);
}

/// The dimension, of the `count` that indices are broadcast to, along which one
/// runs, from `first` on. Nothing if it runs along several, or an earlier one.
static std::optional<int64_t> findRun(Value index, int64_t count,
                                      int64_t first) {
  int64_t run = -1, missing = count - rankOf(index);
  for (auto [own, extent] : llvm::enumerate(shapeOf(index))) {
    if (extent == 1)
      continue;
    if (run >= 0)
      return std::nullopt;
    run = missing + static_cast<int64_t>(own);
  }
  if (run < 0)
    run = first;
  return run >= first && run < count ? std::optional(run) : std::nullopt;
}

/// What `index` has along dimension `run` of the `count` that it is broadcast
/// to, along which alone it runs.
static Value asLine(const ATenCall &c, Value index, int64_t run,
                    int64_t count) {
  SmallVector<AffineExpr> exprs(rankOf(index), c.b.getAffineConstantExpr(0));
  int64_t own = run - (count - rankOf(index)), length = 1;
  if (own >= 0) {
    exprs[own] = c.b.getAffineDimExpr(0);
    length = shapeOf(index)[own];
  }
  return c.view(index, AffineMap::get(1, 0, exprs, c.b.getContext()), {length});
}

/// `source` with dimensions of one element among those from `first` on, which
/// get the places `runs` of `count`.
static Value spread(const ATenCall &c, Value source, int64_t first,
                    ArrayRef<int64_t> runs, int64_t count) {
  int64_t rank = rankOf(source), own = runs.size();
  SmallVector<int64_t> shape(rank - own + count, 1);
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t place = dim < first         ? dim
                    : dim < first + own ? first + runs[dim - first]
                                        : dim - own + count;
    shape[place] = shapeOf(source)[dim];
    exprs.push_back(c.b.getAffineDimExpr(place));
  }
  return c.view(
      source, AffineMap::get(shape.size(), 0, exprs, c.b.getContext()), shape);
}

/// The crossings of rows and columns, where one index each says which these
/// are: first the rows, of these the columns. So sizes of several dimensions
/// may vary, which are not taken as one. Null for other indices, and where no
/// more than one varies.
static Value gatherCrossings(ATenCall &c) {
  Value self = c.tensor("self"), result = self;
  Values list = getIndices(c, self);
  SmallVector<int64_t> dims, runs;
  int64_t numVarying = 0, count = 0;
  for (auto [dim, index] : llvm::enumerate(list)) {
    if (!index)
      continue;
    dims.push_back(dim);
    numVarying += varies(self, dim);
    count = std::max(count, rankOf(checkIndex(c, index)));
  }
  if (numVarying < 2 ||
      dims.back() - dims.front() + 1 != static_cast<int64_t>(dims.size()))
    return nullptr;
  for (int64_t dim : dims) {
    std::optional<int64_t> run =
        findRun(list[dim], count, runs.empty() ? 0 : runs.back() + 1);
    if (!run)
      return nullptr;
    runs.push_back(*run);
  }
  for (auto [dim, run] : llvm::zip_equal(dims, runs)) {
    Value line = asLine(c, list[dim], run, count);
    SmallVector<int64_t> shape(shapeOf(result));
    shape[dim] = shapeOf(line)[0];
    result = gather(c, result, wrapIndex(c, line, getSizes(self)[dim]), dim,
                    RankedTensorType::get(shape, elementOf(result)));
  }
  return spread(c, result, dims.front(), runs, count);
}

static Value lowerIndex(ATenCall &c) {
  if (Value crossings = gatherCrossings(c))
    return crossings;
  IndexedDims indexed(c);
  return gather(c, indexed.merge(c), indexed.index, indexed.axis, c.type());
}

/// Elements of all of a tensor, counted in its order.
static Value lowerTake(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value index = checkIndex(c, c.tensor("index"));
  int64_t count = typeOf(self).getNumElements();
  c.require(count > 0, "cannot take elements of an empty tensor");
  return gather(c, mergeDims(c, self, getSizes(self), 0, rankOf(self)),
                wrapIndex(c, index, count), 0, c.type());
}

void aten::addIndexingRows(ATenTable &table) {
  {
    ATenTable::ForAnySize rows(table);
    table.add({"aten.embedding.default"},
              "weight indices padding_idx scale_grad_by_freq sparse",
              [](ATenCall &c) {
                return gather(c, c.tensor("weight"),
                              checkIndex(c, c.tensor("indices")), 0, c.type());
              });
    table.add({"aten.index_select.default"}, "self dim index",
              lowerIndexSelect);
    table.add({"aten.slice.Tensor"}, "self dim start end step", lowerSlice);
    table.add({"aten.gather.default"}, "self dim index sparse_grad",
              lowerGather);
    table.add({"aten.index.Tensor", "aten._unsafe_index.Tensor"},
              "self indices", lowerIndex);
  }
  table.add({"aten.take.default"}, "self index", lowerTake);
}
