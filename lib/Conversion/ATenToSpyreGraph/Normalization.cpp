// SPDX-License-Identifier: Apache-2.0
//===- Normalization.cpp - Softmax and norms --------------------*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

static Value lowerSoftmax(ATenCall &c, bool log) {
  Value self = c.tensor("self");
  c.require(isa<FloatType>(elementOf(self)) ||
                isa<FloatType>(c.type().getElementType()),
            "softmax of integers is not supported");
  if (!isa<FloatType>(elementOf(self)))
    self = c.cast(self, c.type().getElementType());
  if (rankOf(self) == 0) {
    // 0, unless it is not finite.
    Value less = c.pointwise<SubOp>(c.type(), {self, self});
    return log ? less : c.pointwise<ExpOp>(c.type(), {less});
  }
  return SoftmaxOp::create(c.b, c.loc, c.type(), self,
                           c.dim("dim", rankOf(self)), log);
}

/// f32 statistics of a norm over the last `numDims` dimensions.
static RankedTensorType statisticsType(const ATenCall &c, Value input,
                                       int64_t numDims) {
  SmallVector<int64_t> shape(shapeOf(input));
  std::fill(shape.end() - numDims, shape.end(), 1);
  return RankedTensorType::get(shape, c.b.getF32Type());
}

static int64_t getNumDims(const ATenCall &c, Value input) {
  SmallVector<AffineExpr> shape = c.sizeList("normalized_shape");
  SmallVector<AffineExpr> sizes = getSizes(input);
  c.require(!shape.empty() && shape.size() <= sizes.size() &&
                ArrayRef(sizes).take_back(shape.size()) == ArrayRef(shape),
            "'normalized_shape' is not the shape of the last dimensions");
  return shape.size();
}

LayerNormResults aten::buildLayerNorm(const ATenCall &c, Value input,
                                      Value weight, Value bias, int64_t numDims,
                                      double eps, RankedTensorType type) {
  RankedTensorType statistics = statisticsType(c, input, numDims);
  auto op = LayerNormOp::create(c.b, c.loc, type, statistics, statistics, input,
                                weight, bias, numDims, llvm::APFloat(eps));
  return {op.getResult(), op.getMean(), op.getRstd()};
}

static Values lowerLayerNorm(ATenCall &c) {
  Value input = c.tensor("input");
  RankedTensorType type =
      c.wants(0) ? c.type(0) : c.typeLike(input, elementOf(input));
  LayerNormResults norm =
      buildLayerNorm(c, input, c.tensorOrNull("weight"), c.tensorOrNull("bias"),
                     getNumDims(c, input), c.number("eps", 1e-5), type);
  Values values{norm.result, nullptr, nullptr};
  if (c.wants(1))
    values[1] = c.cast(norm.mean, c.type(1).getElementType());
  if (c.wants(2))
    values[2] = c.cast(norm.rstd, c.type(2).getElementType());
  return values;
}

static Values lowerRmsNorm(ATenCall &c) {
  Value input = c.tensor("input");
  int64_t numDims = getNumDims(c, input);
  double eps = 0;
  if (c.has("eps"))
    eps = c.number("eps");
  else
    // PyTorch uses the machine epsilon of the type it computes in.
    eps = std::numeric_limits<float>::epsilon();
  RankedTensorType type =
      c.wants(0) ? c.type(0) : c.typeLike(input, elementOf(input));
  auto op = RmsNormOp::create(
      c.b, c.loc, type, statisticsType(c, input, numDims), input,
      c.tensorOrNull("weight"), numDims, llvm::APFloat(eps));
  Values values{op.getResult(), nullptr};
  if (c.wants(1))
    values[1] = c.cast(op.getRstd(), c.type(1).getElementType());
  return values;
}

void aten::addNormalizationRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"aten._softmax.default"}, "self dim half_to_float",
            [](ATenCall &c) { return lowerSoftmax(c, false); });
  table.add({"aten._log_softmax.default"}, "self dim half_to_float",
            [](ATenCall &c) { return lowerSoftmax(c, true); });
  table.add({"aten.softmax.int"}, "self dim dtype",
            [](ATenCall &c) { return lowerSoftmax(c, false); });
  table.add({"aten.log_softmax.int"}, "self dim dtype",
            [](ATenCall &c) { return lowerSoftmax(c, true); });
  table.addMany({"aten.native_layer_norm.default"},
                "input normalized_shape weight bias eps", lowerLayerNorm);
  table.addMany({"aten.layer_norm.default"},
                "input normalized_shape weight bias eps cudnn_enable",
                lowerLayerNorm);
  table.addMany({"aten._fused_rms_norm.default", "aten.rms_norm.default"},
                "input normalized_shape weight eps", lowerRmsNorm);
}
