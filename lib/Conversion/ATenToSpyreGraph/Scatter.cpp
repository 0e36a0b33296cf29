// SPDX-License-Identifier: Apache-2.0
//===- Scatter.cpp - Writing through indices --------------------*- C++ -*-===//
//
// Sums and products are accumulated in fp32 and rounded once. What meets in one
// place is combined in the order of the source.
//
//===----------------------------------------------------------------------===//

#include "Builders.h"
#include "Indices.h"

#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

namespace {
/// Which element of a tensor each iteration writes: the coordinate along `axis`
/// is the index's element. `maps` are those of source, index and tensor.
struct Places {
  Value index;
  int64_t axis;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> extents;
  /// What the extents are, of the function's symbols.
  SmallVector<AffineExpr> sizes;

  /// Writes the elements of `source`, or one number everywhere.
  template <typename OpTy>
  Value write(const ATenCall &c, Operand source, Value init) const {
    // SuperDSC says a source of the index's shape, and not one element.
    Value elements = source.tensor;
    if (!elements)
      elements =
          c.withSizes(c.full(RankedTensorType::get(extents, elementOf(init)),
                             source.number),
                      sizes);
    return c.mapped<OpTy>({elements, index}, init, maps, extents,
                          axisAttr(c, axis));
  }
};
} // namespace

/// Source, index and tensor have the same dimensions, as in torch.scatter.
static Places placesOfElements(const ATenCall &c, Value index, int64_t axis) {
  unsigned rank = rankOf(index);
  SmallVector<AffineExpr> exprs(c.identityMap(rank).getResults());
  exprs[axis] = c.b.getAffineConstantExpr(0);
  return {index,
          axis,
          {c.identityMap(rank), c.identityMap(rank),
           AffineMap::get(rank, 0, exprs, c.b.getContext())},
          SmallVector<int64_t>(shapeOf(index)),
          getSizes(index)};
}

/// The index has the dimensions of the source in place of the tensor's `axis`.
/// `source` is broadcast to what is written.
static Places placesOfRows(const ATenCall &c, Value index, int64_t axis,
                           Value init, Value source) {
  int64_t indexRank = rankOf(index);
  SmallVector<int64_t> extents(shapeOf(init).take_front(axis));
  llvm::append_range(extents, shapeOf(index));
  llvm::append_range(extents, shapeOf(init).drop_front(axis + 1));
  SmallVector<AffineExpr> initSizes = getSizes(init);
  SmallVector<AffineExpr> sizes(ArrayRef(initSizes).take_front(axis));
  llvm::append_range(sizes, getSizes(index));
  llvm::append_range(sizes, ArrayRef(initSizes).drop_front(axis + 1));
  int64_t numLoops = extents.size();
  SmallVector<AffineExpr> initExprs, indexExprs, sourceExprs;
  for (int64_t dim = 0; dim < rankOf(init); ++dim)
    initExprs.push_back(
        dim == axis
            ? c.b.getAffineConstantExpr(0)
            : c.b.getAffineDimExpr(dim < axis ? dim : dim - 1 + indexRank));
  for (int64_t dim = 0; dim < indexRank; ++dim)
    indexExprs.push_back(c.b.getAffineDimExpr(axis + dim));
  c.require(rankOf(source) <= numLoops,
            "what is written has more dimensions than the indexed part");
  int64_t missing = numLoops - rankOf(source);
  for (auto [dim, extent] : llvm::enumerate(shapeOf(source))) {
    c.require(extent == 1 || extent == extents[missing + dim],
              "what is written does not have the shape of the indexed part");
    sourceExprs.push_back(extent == 1 ? c.b.getAffineConstantExpr(0)
                                      : c.b.getAffineDimExpr(missing + dim));
  }
  auto makeMap = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(numLoops, 0, exprs, c.b.getContext());
  };
  return {index,
          axis,
          {makeMap(sourceExprs), makeMap(indexExprs), makeMap(initExprs)},
          extents,
          sizes};
}

//===----------------------------------------------------------------------===//
// Combining
//===----------------------------------------------------------------------===//

/// PyTorch's names of reductions, and what they are without elements.
enum class Reduction { Sum, Product, Mean, Max, Min };

static Reduction getReduction(const ATenCall &c, StringRef parameter) {
  std::string name = c.text(parameter);
  if (name == "sum" || name == "add")
    return Reduction::Sum;
  if (name == "prod" || name == "multiply")
    return Reduction::Product;
  if (name == "mean")
    return Reduction::Mean;
  if (name == "amax")
    return Reduction::Max;
  c.require(name == "amin", "unknown reduction '" + name + "'");
  return Reduction::Min;
}

static TypedAttr getIdentity(const ATenCall &c, Reduction reduction,
                             Type element) {
  if (reduction == Reduction::Sum || reduction == Reduction::Mean)
    return c.immInt(0);
  if (reduction == Reduction::Product)
    return c.immInt(1);
  bool isMax = reduction == Reduction::Max;
  if (isa<FloatType>(element)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return c.imm(isMax ? -kInfinity : kInfinity);
  }
  unsigned width = std::min(element.getIntOrFloatBitWidth(), 32u);
  bool isUnsigned = width == 1 || element.isUnsignedInteger();
  APInt limit = isUnsigned ? (isMax ? APInt::getMinValue(width)
                                    : APInt::getMaxValue(width))
                           : (isMax ? APInt::getSignedMinValue(width)
                                    : APInt::getSignedMaxValue(width));
  return c.immInt(isUnsigned ? limit.getZExtValue() : limit.getSExtValue());
}

static Value combine(const ATenCall &c, Reduction reduction,
                     const Places &places, Operand source, Value init) {
  switch (reduction) {
  case Reduction::Sum:
  case Reduction::Mean:
    return places.write<ScatterAddOp>(c, source, init);
  case Reduction::Product:
    return places.write<ScatterMulOp>(c, source, init);
  case Reduction::Max:
    return places.write<ScatterMaxOp>(c, source, init);
  case Reduction::Min:
    return places.write<ScatterMinOp>(c, source, init);
  }
  llvm_unreachable("unknown reduction");
}

/// `sums`, as large as `sizes` say, by how many elements went into each; none
/// counts as one.
static Value divideByCounts(const ATenCall &c, const Places &places, Value sums,
                            ArrayRef<AffineExpr> sizes, bool includesSelf) {
  bool isFloat = isa<FloatType>(elementOf(sums));
  RankedTensorType type =
      c.typeLike(sums, isFloat ? c.b.getF32Type() : elementOf(sums));
  Value counts =
      c.withSizes(c.full(type, c.immInt(includesSelf ? 1 : 0)), sizes);
  counts = places.write<ScatterAddOp>(c, c.immInt(1), counts);
  if (!includesSelf)
    counts = c.pointwise<MaximumOp>(type, {counts, c.immInt(1)});
  return isFloat ? c.pointwise<DivOp>(type, {sums, counts})
                 : c.pointwise<FloorDivOp>(type, {sums, counts});
}

/// `self` with the elements of a source combined into it. Without
/// `includesSelf` what a place holds counts only if nothing goes there.
static Value reduceInto(const ATenCall &c, Value self, const Places &places,
                        Operand source, Reduction reduction,
                        bool includesSelf) {
  Type element = elementOf(self);
  // A mean fits where its sum does not.
  c.require(reduction != Reduction::Mean || !element.isSignlessInteger(64),
            "sums of 64-bit integers wrap, their means must not");
  bool isExtremum = reduction == Reduction::Max || reduction == Reduction::Min;
  Value init = self;
  if (isa<FloatType>(element) && !isExtremum)
    init = c.cast(self, c.b.getF32Type());
  if (!includesSelf)
    init = places.write<ScatterOp>(c, getIdentity(c, reduction, element), init);
  Value result = combine(c, reduction, places, source, init);
  if (reduction == Reduction::Mean)
    result = divideByCounts(c, places, result, getSizes(self), includesSelf);
  return c.cast(result, element);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// alpha x source.
static Value scaled(const ATenCall &c, Value source) {
  if (c.number("alpha", 1.0) == 1.0)
    return source;
  Type element = elementOf(source);
  bool isFloat = isa<FloatType>(element);
  return c.pointwise<MulOp>(
      c.typeLike(source, isFloat ? c.b.getF32Type() : element),
      {source,
       isFloat ? c.imm(c.number("alpha")) : c.elementNumber("alpha", element)});
}

/// The place of rows of `source` along the argument `dim`. Callers other than
/// PyTorch may give an index of any rank.
static Places placesAlongDim(ATenCall &c, Value self, Value source) {
  c.requireOneType({"self", "source"});
  Value index = asLine(c, checkIndex(c, c.tensor("index")));
  Places places =
      placesOfRows(c, index, c.dim("dim", rankOf(self)), self, source);
  // PyTorch's decompositions would broadcast it.
  if (shapeOf(source) != ArrayRef(places.extents))
    c.wrong("source must have the shape of self but for its rows");
  return places;
}

static Value lowerIndexAdd(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value source = asLine(c, c.tensor("source"));
  Value sum =
      reduceInto(c, self, placesAlongDim(c, self, source), scaled(c, source),
                 Reduction::Sum, /*includesSelf=*/true);
  return asResult(c, sum);
}

static Value lowerIndexReduce(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value source = asLine(c, c.tensor("source"));
  return asResult(c, reduceInto(c, self, placesAlongDim(c, self, source),
                                source, getReduction(c, "reduce"),
                                c.flag("include_self", true)));
}

static Value lowerIndexCopy(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Value source = asLine(c, c.tensor("source"));
  return asResult(
      c, placesAlongDim(c, self, source).write<ScatterOp>(c, source, self));
}

static Value lowerIndexPut(ATenCall &c) {
  c.requireOneType({"self", "values"});
  IndexedDims indexed(c);
  Value self = indexed.merge(c), values = c.tensor("values");
  Places places = placesOfRows(c, indexed.index, indexed.axis, self, values);
  Value result = c.flag("accumulate")
                     ? reduceInto(c, self, places, values, Reduction::Sum,
                                  /*includesSelf=*/true)
                     : places.write<ScatterOp>(c, values, self);
  return indexed.split(c, result);
}

/// An empty tensor of the rank of another.
static Value emptyLike(ATenCall &c, Value other, Type element,
                       TypedAttr number) {
  SmallVector<int64_t> nothing(rankOf(other), 0);
  return c.full(RankedTensorType::get(nothing, element), number);
}

/// What a scatter writes: a tensor, or a number.
static Operand getSource(ATenCall &c, Value self) {
  if (!c.isTensor("src"))
    return c.element("src", elementOf(self));
  Value source = asLine(c, c.tensor("src"));
  c.require(isa<FloatType>(elementOf(self)) ||
                elementOf(source) == elementOf(self),
            "a number for integers must be known");
  // An index without elements may have any rank, and so may its source.
  if (rankOf(source) != rankOf(self) && typeOf(source).getNumElements() == 0)
    return emptyLike(c, self, elementOf(source), c.imm(0.0));
  return source;
}

static Places placesOfScatter(ATenCall &c, Value self) {
  Value index = asLine(c, checkIndex(c, c.tensor("index")));
  c.require(rankOf(index) == rankOf(self) ||
                typeOf(index).getNumElements() == 0,
            "self and index must have one rank");
  if (rankOf(index) == rankOf(self))
    return placesOfElements(c, index, c.dim("dim", rankOf(self)));
  index = emptyLike(c, self, c.b.getI64Type(), c.immInt(0));
  return placesOfElements(c, index, 0);
}

static Value lowerScatter(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  Places places = placesOfScatter(c, self);
  return asResult(c, places.write<ScatterOp>(c, getSource(c, self), self));
}

static Value lowerScatterReduce(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  return asResult(c, reduceInto(c, self, placesOfScatter(c, self),
                                getSource(c, self), getReduction(c, "reduce"),
                                c.flag("include_self", true)));
}

static Value lowerScatterAdd(ATenCall &c) {
  Value self = asLine(c, c.tensor("self"));
  return asResult(c, reduceInto(c, self, placesOfScatter(c, self),
                                getSource(c, self), Reduction::Sum,
                                /*includesSelf=*/true));
}

/// The rows of the gradient summed per index.
static Value lowerEmbeddingBackward(ATenCall &c) {
  Value gradient = c.tensor("grad_output");
  Value index = asLine(c, checkIndex(c, c.tensor("indices")));
  Value init = c.withSizes(c.full(c.type().clone(c.b.getF32Type()), c.imm(0.0)),
                           c.resultSizes());
  Places places = placesOfRows(c, index, 0, init, gradient);
  Value sums = places.write<ScatterAddOp>(c, gradient, init);
  if (c.flag("scale_grad_by_freq"))
    sums = divideByCounts(c, places, sums, c.resultSizes(),
                          /*includesSelf=*/false);
  Value result = c.cast(sums, c.type().getElementType());
  int64_t padding = c.integer("padding_idx", -1);
  if (padding < 0)
    return result;
  Value zero = c.full(
      RankedTensorType::get({1, c.type().getDimSize(1)}, elementOf(result)),
      c.imm(0.0));
  return c.insert(zero, result,
                  AffineMap::get(2, 0,
                                 {c.b.getAffineDimExpr(0) + padding,
                                  c.b.getAffineDimExpr(1)},
                                 c.b.getContext()));
}

void aten::addScatterRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"aten.index_put.default", "aten._unsafe_index_put.default",
             "aten._index_put_impl.default"},
            "self indices values accumulate unsafe", lowerIndexPut);
  table.add({"aten.index_add.default"}, "self dim index source alpha",
            lowerIndexAdd);
  table.add({"aten.index_copy.default"}, "self dim index source",
            lowerIndexCopy);
  table.add({"aten.index_reduce.default"},
            "self dim index source reduce include_self", lowerIndexReduce);
  table.add({"aten.scatter.src", "aten.scatter.value"}, "self dim index src",
            lowerScatter);
  table.add({"aten.scatter.reduce", "aten.scatter.value_reduce"},
            "self dim index src reduce include_self", lowerScatterReduce);
  table.add({"aten.scatter_reduce.two"},
            "self dim index src reduce include_self", lowerScatterReduce);
  table.add({"aten.scatter_add.default"}, "self dim index src",
            lowerScatterAdd);
  table.add({"aten.embedding_dense_backward.default"},
            "grad_output indices num_weights padding_idx scale_grad_by_freq",
            lowerEmbeddingBackward);
}
