// SPDX-License-Identifier: Apache-2.0
//===- Reductions.cpp - Sums, extrema, statistics ---------------*- C++ -*-===//

#include "ATenCall.h"

#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

static NamedAttribute dimsAttr(const ATenCall &c, ArrayRef<int64_t> dims) {
  return c.attr("dims", c.b.getDenseI64ArrayAttr(dims));
}

static SmallVector<int64_t> keptShape(Value value, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape(shapeOf(value));
  for (int64_t dim : dims)
    shape[dim] = 1;
  return shape;
}

static int64_t countOf(Value value, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(value)[dim];
  return count;
}

/// A reduction of `self` over `dims`; a tensor without dimensions is its own.
template <typename OpTy>
static Value reduce(ATenCall &c, Value self, ArrayRef<int64_t> dims,
                    RankedTensorType type) {
  if (rankOf(self) == 0)
    return c.copy(self, type);
  return c.device<OpTy>(self, type, dimsAttr(c, dims));
}

/// any and all compute a boolean, whatever PyTorch keeps it in (uint8 stays).
template <typename OpTy>
static Value reduceBool(ATenCall &c) {
  Value self = c.tensor("self");
  RankedTensorType type = c.type();
  Value result =
      reduce<OpTy>(c, self, c.dims("dim", rankOf(self)),
                   RankedTensorType::get(type.getShape(), c.b.getI1Type()));
  return c.cast(result, type.getElementType());
}

/// Rows whose dimensions are the argument `dim`, or all without one.
template <typename OpTy>
static void addReduction(ATenTable &table, ArrayRef<StringRef> full,
                         ArrayRef<StringRef> overDims) {
  auto lower = [](ATenCall &c) {
    Value self = c.tensor("self");
    return reduce<OpTy>(c, self, c.dims("dim", rankOf(self)), c.type());
  };
  table.add(overDims, "self dim keepdim dtype", lower);
  table.add(full, "self dtype", [](ATenCall &c) {
    Value self = c.tensor("self");
    return reduce<OpTy>(c, self,
                        llvm::to_vector(llvm::seq<int64_t>(0, rankOf(self))),
                        c.type());
  });
}

/// Largest or smallest; of booleans, any or all.
template <typename OpTy, typename BoolOpTy>
static Value reduceExtremum(ATenCall &c, Value self, ArrayRef<int64_t> dims,
                            RankedTensorType type) {
  c.require(rankOf(self) == 0 || countOf(self, dims) > 0 ||
                type.getNumElements() == 0,
            "there is no maximum or minimum of no elements");
  if (isBool(elementOf(self)))
    return reduce<BoolOpTy>(c, self, dims, type);
  return reduce<OpTy>(c, self, dims, type);
}

template <typename ArgOpTy>
static Value reduceArg(ATenCall &c, Value self, ArrayRef<int64_t> dims,
                       RankedTensorType type) {
  if (rankOf(self) == 0)
    return c.full(type, c.immInt(0));
  c.require(countOf(self, dims) > 0 || type.getNumElements() == 0,
            "there is no maximum or minimum of no elements");
  // Booleans and bytes compare as 32-bit integers.
  if (isBool(elementOf(self)))
    self = c.cast(self, c.b.getIntegerType(32));
  return c.device<ArgOpTy>(self, type, dimsAttr(c, dims));
}

template <typename OpTy, typename BoolOpTy, typename ArgOpTy>
static void addExtremum(ATenTable &table, StringRef ofAll, StringRef alongDim) {
  auto allDims = [](Value self) {
    return llvm::to_vector(llvm::seq<int64_t>(0, rankOf(self)));
  };
  table.add({ofAll}, "self", [allDims](ATenCall &c) {
    Value self = c.tensor("self");
    return reduceExtremum<OpTy, BoolOpTy>(c, self, allDims(self), c.type());
  });
  table.addMany({alongDim}, "self dim keepdim", [](ATenCall &c) {
    Value self = c.tensor("self");
    int64_t dim = c.dim("dim", rankOf(self));
    Values values(2);
    if (c.wants(0))
      values[0] = reduceExtremum<OpTy, BoolOpTy>(c, self, dim, c.type(0));
    if (c.wants(1))
      values[1] = reduceArg<ArgOpTy>(c, self, dim, c.type(1));
    return values;
  });
}

template <typename ArgOpTy>
static void addArg(ATenTable &table, StringRef name) {
  table.add({name}, "self dim keepdim", [](ATenCall &c) {
    Value self = c.tensor("self");
    return reduceArg<ArgOpTy>(c, self, c.dims("dim", rankOf(self)), c.type());
  });
}

//===----------------------------------------------------------------------===//
// Variance
//===----------------------------------------------------------------------===//

/// What divides by `count` less `correction`.
static double getScale(int64_t count, double correction) {
  double degrees = static_cast<double>(count) - correction;
  return degrees > 0 ? 1.0 / degrees : std::numeric_limits<double>::infinity();
}

/// The sum of squares over `dims` by their number less `correction`.
static Value sumSquares(ATenCall &c, ValueRange ins, ArrayRef<int64_t> dims,
                        RankedTensorType type, double correction) {
  // The kernel counts what varies, in each run.
  bool counts =
      llvm::any_of(dims, [&](int64_t dim) { return varies(ins.front(), dim); });
  double scale =
      counts ? 1.0 : getScale(countOf(ins.front(), dims), correction);
  SmallVector<NamedAttribute> attributes{
      dimsAttr(c, dims), c.attr("scale", c.b.getF64FloatAttr(scale))};
  if (counts)
    attributes.push_back(c.attr("correction", c.b.getF64FloatAttr(correction)));
  return c.device<SumSquaresOp>(ins, type, attributes);
}

/// Variance in f32 of type `type`'s shape, and the mean it is about.
static std::pair<Value, Value> lowerVariance(ATenCall &c,
                                             ArrayRef<int64_t> shape) {
  Value self = c.tensor("self");
  c.require(isa<FloatType>(elementOf(self)),
            "variance of integers is not supported");
  SmallVector<int64_t> dims = c.dims("dim", rankOf(self));
  Type f32 = c.b.getF32Type();
  Value mean = reduce<MeanOp>(
      c, self, dims, RankedTensorType::get(keptShape(self, dims), f32));
  double correction = c.number("correction", 1.0);
  auto type = RankedTensorType::get(shape, f32);
  if (rankOf(self) == 0) {
    // 0 without correction, else 0 x infinity, unless it is not finite.
    Value distance = c.pointwise<SubOp>(type, {c.cast(self, f32), mean});
    Value square = c.pointwise<MulOp>(type, {distance, distance});
    return {c.pointwise<MulOp>(type, {square, c.imm(getScale(1, correction))}),
            mean};
  }
  return {sumSquares(c, {self, mean}, dims, type, correction), mean};
}

/// A mean with its dimensions kept, in the shape PyTorch wants.
static Value dropDims(ATenCall &c, Value kept, RankedTensorType type) {
  if (shapeOf(kept) != type.getShape()) {
    SmallVector<AffineExpr> exprs;
    Value self = c.tensor("self");
    SmallVector<int64_t> dims = c.dims("dim", rankOf(self));
    for (int64_t dim = 0, next = 0; dim < rankOf(kept); ++dim)
      exprs.push_back(llvm::is_contained(dims, dim)
                          ? c.b.getAffineConstantExpr(0)
                          : c.b.getAffineDimExpr(next++));
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, c.b.getContext());
    return c.mapped<IdentityOp>(kept, c.empty(type),
                                {map, c.identityMap(type.getRank())},
                                type.getShape());
  }
  return c.cast(kept, type.getElementType());
}

static Value lowerVar(ATenCall &c) {
  auto [variance, mean] = lowerVariance(c, c.type().getShape());
  return c.cast(variance, c.type().getElementType());
}

static Value lowerStd(ATenCall &c) {
  auto [variance, mean] = lowerVariance(c, c.type().getShape());
  return c.pointwise<SqrtOp>(c.type(), {variance});
}

static Values lowerVarMean(ATenCall &c, bool root) {
  Value self = c.tensor("self");
  SmallVector<int64_t> shape = keptShape(self, c.dims("dim", rankOf(self)));
  if (c.wants(0))
    shape = llvm::to_vector(c.type(0).getShape());
  auto [variance, mean] = lowerVariance(c, shape);
  Values values(2);
  if (c.wants(0))
    values[0] = root ? c.pointwise<SqrtOp>(c.type(0), {variance})
                     : c.cast(variance, c.type(0).getElementType());
  if (c.wants(1))
    values[1] = dropDims(c, mean, c.type(1));
  return values;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static Value lowerVectorNorm(ATenCall &c) {
  Value self = c.tensor("self");
  SmallVector<int64_t> dims = c.dims("dim", rankOf(self));
  c.require(c.number("ord", 2.0) == 2.0, "only the 2-norm is supported");
  if (rankOf(self) == 0)
    return c.pointwise<AbsOp>(c.type(), {self});
  auto f32 = RankedTensorType::get(c.type().getShape(), c.b.getF32Type());
  Value squares = c.device<SumSquaresOp>(
      self, f32,
      {dimsAttr(c, dims), c.attr("scale", c.b.getF64FloatAttr(1.0))});
  return c.pointwise<SqrtOp>(c.type(), {squares});
}

/// mse_loss: reduction 0 none, 1 mean, 2 sum.
static Value lowerMseLoss(ATenCall &c) {
  Value self = c.tensor("self"), target = c.tensor("target");
  int64_t reduction = c.integer("reduction", 1);
  c.require(shapeOf(self) == shapeOf(target),
            "self and target must have one shape");
  c.require(reduction >= 0 && reduction <= 2, "unknown reduction");
  auto difference = [&] {
    Value d =
        c.pointwise<SubOp>(c.typeLike(self, c.b.getF32Type()), {self, target});
    return c.pointwise<SquareOp>(c.typeLike(self, c.type().getElementType()),
                                 {d});
  };
  if (reduction == 0 || rankOf(self) == 0)
    return difference();
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(self)));
  if (reduction == 1)
    return sumSquares(c, {self, target}, all, c.type(), 0.0);
  return c.device<SumSquaresOp>(
      {self, target}, c.type(),
      {dimsAttr(c, all), c.attr("scale", c.b.getF64FloatAttr(1.0))});
}

static void addStatistics(ATenTable &table) {
  table.add({"aten.var.correction"}, "self dim correction keepdim", lowerVar);
  table.add({"aten.std.correction"}, "self dim correction keepdim", lowerStd);
  table.addMany({"aten.var_mean.correction"}, "self dim correction keepdim",
                [](ATenCall &c) { return lowerVarMean(c, false); });
  table.addMany({"aten.std_mean.correction"}, "self dim correction keepdim",
                [](ATenCall &c) { return lowerVarMean(c, true); });
}

void aten::addReductionRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  addStatistics(table);
  addReduction<SumOp>(table, {"aten.sum.default"}, {"aten.sum.dim_IntList"});
  addReduction<MeanOp>(table, {"aten.mean.default"}, {"aten.mean.dim"});
  addReduction<ProdOp>(table, {"aten.prod.default"}, {"aten.prod.dim_int"});
  table.add({"aten.any.default", "aten.any.dim", "aten.any.dims"},
            "self dim keepdim", reduceBool<AnyOp>);
  table.add({"aten.all.default", "aten.all.dim", "aten.all.dims"},
            "self dim keepdim", reduceBool<AllOp>);
  table.add({"aten.amax.default"}, "self dim keepdim", [](ATenCall &c) {
    Value self = c.tensor("self");
    return reduceExtremum<MaxOp, AnyOp>(c, self, c.dims("dim", rankOf(self)),
                                        c.type());
  });
  table.add({"aten.amin.default"}, "self dim keepdim", [](ATenCall &c) {
    Value self = c.tensor("self");
    return reduceExtremum<MinOp, AllOp>(c, self, c.dims("dim", rankOf(self)),
                                        c.type());
  });
  addExtremum<MaxOp, AnyOp, ArgMaxOp>(table, "aten.max.default",
                                      "aten.max.dim");
  addExtremum<MinOp, AllOp, ArgMinOp>(table, "aten.min.default",
                                      "aten.min.dim");
  addArg<ArgMaxOp>(table, "aten.argmax.default");
  addArg<ArgMinOp>(table, "aten.argmin.default");
  table.add({"aten.linalg_vector_norm.default"}, "self ord dim keepdim dtype",
            lowerVectorNorm);
  table.add({"aten.mse_loss.default"}, "self target reduction", lowerMseLoss);
}
