// SPDX-License-Identifier: Apache-2.0
//===- Backward.cpp - Operators that autograd leaves ------------*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

Value aten::buildSum(const ATenCall &c, Value value, ArrayRef<int64_t> dims,
                     RankedTensorType type) {
  return c.device<SumOp>(value, type,
                         c.attr("dims", c.b.getDenseI64ArrayAttr(dims)));
}

static RankedTensorType keptType(const ATenCall &c, Value value,
                                 ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape(shapeOf(value));
  for (int64_t dim : dims)
    shape[dim] = 1;
  return RankedTensorType::get(shape, c.b.getF32Type());
}

/// (x - shift) x scale x weight + bias, rounded once.
static Value normalize(const ATenCall &c, RankedTensorType type, Operand x,
                       Operand shift, Operand scale, Operand weight,
                       Operand bias) {
  return c.pointwise<LayerNormNormOp>(type, {x, shift, scale, weight, bias});
}

//===----------------------------------------------------------------------===//
// Functions of one element
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void addBackward(ATenTable &table, StringRef name,
                        StringRef parameters) {
  table.add({name}, parameters, [parameters](ATenCall &c) {
    auto [gradient, rest] = parameters.split(' ');
    return c.pointwise<OpTy>(
        c.type(), {c.tensor(gradient), c.tensor(rest.split(' ').first)});
  });
}

static NamedAttribute f64(const ATenCall &c, StringRef name, double value) {
  return c.attr(name, c.b.getF64FloatAttr(value));
}

static void addElementwise(ATenTable &table) {
  addBackward<SigmoidBackwardOp>(table, "aten.sigmoid_backward.default",
                                 "grad_output output");
  addBackward<TanhBackwardOp>(table, "aten.tanh_backward.default",
                              "grad_output output");
  addBackward<SiluBackwardOp>(table, "aten.silu_backward.default",
                              "grad_output self");
  table.add({"aten.gelu_backward.default"}, "grad_output self approximate",
            [](ATenCall &c) {
              std::string approximate = c.text("approximate", "none");
              SmallVector<Operand> operands{c.tensor("grad_output"),
                                            c.tensor("self")};
              if (approximate == "tanh")
                return c.pointwise<GeluTanhBackwardOp>(c.type(), operands);
              c.require(approximate == "none",
                        "unknown approximation '" + approximate + "'");
              return c.pointwise<GeluBackwardOp>(c.type(), operands);
            });
  table.add({"aten.threshold_backward.default"}, "grad_output self threshold",
            [](ATenCall &c) {
              return c.pointwise<ThresholdBackwardOp>(
                  c.type(), {c.tensor("grad_output"), c.tensor("self")},
                  {f64(c, "threshold", c.number("threshold"))});
            });
  table.add({"aten.softplus_backward.default"},
            "grad_output self beta threshold", [](ATenCall &c) {
              return c.pointwise<SoftplusBackwardOp>(
                  c.type(), {c.tensor("grad_output"), c.tensor("self")},
                  {f64(c, "beta", c.number("beta")),
                   f64(c, "threshold", c.number("threshold"))});
            });
  table.add({"aten.leaky_relu_backward.default"},
            "grad_output self negative_slope self_is_result", [](ATenCall &c) {
              return c.pointwise<LeakyReluBackwardOp>(
                  c.type(), {c.tensor("grad_output"), c.tensor("self")},
                  {f64(c, "slope", c.number("negative_slope"))});
            });
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static Value lowerSoftmaxBackward(ATenCall &c) {
  Value gradient = c.tensor("grad_output"), output = c.tensor("output");
  if (rankOf(output) == 0) {
    Value dot = c.pointwise<MulOp>(c.type(), {gradient, output});
    Value rest = c.pointwise<SubOp>(c.type(), {gradient, dot});
    return c.pointwise<MulOp>(c.type(), {rest, output});
  }
  int64_t dim = c.dim("dim", rankOf(output));
  Value dot =
      buildSumProducts(c, gradient, output, dim, keptType(c, output, dim));
  // (gradient - dot) x output.
  return normalize(c, c.type(), gradient, dot, output, c.imm(1.0), c.imm(0.0));
}

static Value lowerLogSoftmaxBackward(ATenCall &c) {
  Value gradient = c.tensor("grad_output"), output = c.tensor("output");
  if (rankOf(output) == 0) {
    Value probability = c.pointwise<ExpOp>(c.type(), {output});
    Value part = c.pointwise<MulOp>(c.type(), {probability, gradient});
    return c.pointwise<SubOp>(c.type(), {gradient, part});
  }
  int64_t dim = c.dim("dim", rankOf(output));
  Value sum = buildSum(c, gradient, dim, keptType(c, output, dim));
  Value probability = c.pointwise<ExpOp>(typeOf(output), {output});
  // gradient - probability x sum.
  return normalize(c, c.type(), probability, c.imm(0.0), sum, c.imm(-1.0),
                   gradient);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// The last dimensions from `first` on, and those before.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>>
splitDims(int64_t rank, int64_t first) {
  return {llvm::to_vector(llvm::seq<int64_t>(first, rank)),
          llvm::to_vector(llvm::seq<int64_t>(0, first))};
}

/// How many elements there are along dimensions of which none varies.
static double countOf(Value value, ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(value)[dim];
  return count;
}

static bool anyVaries(Value value, ArrayRef<int64_t> dims) {
  return llvm::any_of(dims, [&](int64_t dim) { return varies(value, dim); });
}

/// `factor` divided by how many elements there are along dimensions of which
/// some vary.
static Value overCount(const ATenCall &c, double factor, Value value,
                       ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> sizes = getSizes(value);
  auto type = RankedTensorType::get({}, c.b.getF32Type());
  for (int64_t dim : dims)
    if (!varies(value, dim))
      factor /= shapeOf(value)[dim];
  Operand result = c.imm(factor);
  for (int64_t dim : dims)
    if (varies(value, dim))
      result = c.pointwise<DivOp>(
          type,
          {result, c.cast(c.sizeNumber(sizes[dim]), type.getElementType())});
  return result.tensor;
}

/// Gradients of a norm x -> (x - mean) x rstd x weight + bias; without `mean`
/// those of the rms norm.
static Values buildNormBackward(ATenCall &c, Value mean, Value bias) {
  Value gradient = c.tensor("grad_out"), x = c.tensor("input"),
        rstd = c.tensor("rstd"), weight = c.tensorOrNull("weight");
  int64_t rank = rankOf(x);
  int64_t first = rank - c.sizeList("normalized_shape").size();
  auto [inner, outer] = splitDims(rank, first);
  c.require(typeOf(x).getNumElements() > 0, "the input is empty");
  Operand shift = mean ? Operand(mean) : Operand(c.imm(0.0));
  Type element = elementOf(x);
  Value normalized = normalize(c, c.typeLike(x, element), x, shift, rstd,
                               c.imm(1.0), c.imm(0.0));
  Values values(3);
  if (c.wants(0)) {
    Value weighted =
        weight ? c.pointwise<MulOp>(c.typeLike(x, element), {gradient, weight})
               : gradient;
    bool isVarying = anyVaries(x, inner);
    double scale = isVarying ? 1.0 : 1.0 / countOf(x, inner);
    Value dot = buildSumProducts(c, weighted, normalized, inner,
                                 keptType(c, x, inner), scale);
    Operand negated =
        isVarying ? Operand(overCount(c, -1.0, x, inner)) : c.imm(-1.0);
    // weighted - normalized x dot, then minus its mean, times rstd.
    Value corrected = normalize(c, c.typeLike(x, element), normalized,
                                c.imm(0.0), dot, negated, weighted);
    if (mean) {
      Value average =
          c.device<MeanOp>(weighted, keptType(c, x, inner),
                           c.attr("dims", c.b.getDenseI64ArrayAttr(inner)));
      values[0] = normalize(c, c.type(0), corrected, average, rstd, c.imm(1.0),
                            c.imm(0.0));
    } else {
      values[0] = c.pointwise<MulOp>(c.type(0), {corrected, rstd});
    }
  }
  if (c.wants(1)) {
    c.require(weight != nullptr, "has no weight whose gradient is asked for");
    values[1] =
        outer.empty()
            ? c.pointwise<MulOp>(c.type(1), {gradient, normalized})
            : buildSumProducts(c, gradient, normalized, outer, c.type(1));
  }
  if (c.wants(2)) {
    c.require(bias != nullptr, "has no bias whose gradient is asked for");
    values[2] = outer.empty() ? c.copy(gradient, c.type(2))
                              : buildSum(c, gradient, outer, c.type(2));
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Losses and embedding
//===----------------------------------------------------------------------===//

static Value lowerMseLossBackward(ATenCall &c) {
  Value self = c.tensor("self"), target = c.tensor("target");
  int64_t reduction = c.integer("reduction", 1);
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, rankOf(self)));
  Operand scale = c.imm(2.0);
  if (reduction == 1)
    scale = anyVaries(self, all) ? Operand(overCount(c, 2.0, self, all))
                                 : c.imm(2.0 / countOf(self, all));
  return normalize(c, c.type(), self, target, c.tensor("grad_output"), scale,
                   c.imm(0.0));
}

void aten::addBackwardRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  addElementwise(table);
  table.add({"aten._softmax_backward_data.default"},
            "grad_output output dim input_dtype", lowerSoftmaxBackward);
  table.add({"aten._log_softmax_backward_data.default"},
            "grad_output output dim input_dtype", lowerLogSoftmaxBackward);
  table.addMany({"aten.native_layer_norm_backward.default"},
                "grad_out input normalized_shape mean rstd weight bias "
                "output_mask",
                [](ATenCall &c) {
                  return buildNormBackward(c, c.tensor("mean"),
                                           c.tensorOrNull("bias"));
                });
  table.addMany(
      {"aten._fused_rms_norm_backward.default"},
      "grad_out input normalized_shape rstd weight output_mask",
      [](ATenCall &c) { return buildNormBackward(c, nullptr, nullptr); });
  table.add({"aten.mse_loss_backward.default"},
            "grad_output self target reduction", lowerMseLossBackward);
}
