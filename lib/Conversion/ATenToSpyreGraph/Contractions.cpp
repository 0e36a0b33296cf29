// SPDX-License-Identifier: Apache-2.0
//===- Contractions.cpp - Matrix products -----------------------*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

Value aten::buildMatmul(const ATenCall &c, Value x, Value y, Value bias,
                        RankedTensorType type, double alpha, double beta) {
  int64_t rank = type.getRank();
  c.require(rank >= 2 && rankOf(x) >= 2 && rankOf(y) >= 2 &&
                rankOf(x) <= rank && rankOf(y) <= rank &&
                shapeOf(x).back() == shapeOf(y)[rankOf(y) - 2],
            "the operands must be matrices of matching sizes");
  if (beta == 0.0)
    bias = nullptr;
  SmallVector<NamedAttribute> attrs{
      c.attr("alpha", c.b.getF64FloatAttr(alpha)),
      c.attr("beta", c.b.getF64FloatAttr(bias ? beta : 1.0))};
  Values ins{x, y};
  if (bias) {
    ins.push_back(bias);
    attrs.push_back(c.attr("has_bias", c.b.getUnitAttr()));
  }
  return c.device<MatmulOp>(ins, type, attrs);
}

Value aten::buildLinear(const ATenCall &c, Value x, Value weight, Value bias,
                        RankedTensorType type) {
  c.require(rankOf(x) >= 2, "the input has fewer than two dimensions");
  return buildMatmul(c, x, c.transpose(weight), bias, type);
}

Value aten::buildSumProducts(const ATenCall &c, Value x, Value y,
                             ArrayRef<int64_t> dims, RankedTensorType type,
                             double scale) {
  return c.device<SumProductsOp>(
      {x, y}, type,
      {c.attr("dims", c.b.getDenseI64ArrayAttr(dims)),
       c.attr("scale", c.b.getF64FloatAttr(scale))});
}

static Value lowerMatmul(ATenCall &c, StringRef x, StringRef y) {
  return buildMatmul(c, c.tensor(x), c.tensor(y), nullptr, c.type());
}

/// beta x self + alpha x (x . y).
static Value lowerAddMatmul(ATenCall &c, StringRef x, StringRef y) {
  return buildMatmul(c, c.tensor(x), c.tensor(y), c.tensor("self"), c.type(),
                     c.number("alpha", 1.0), c.number("beta", 1.0));
}

/// torch.matmul of operands with at least two dimensions.
static Value lowerAnyMatmul(ATenCall &c) {
  Value x = c.tensor("self"), y = c.tensor("other");
  if (rankOf(x) == 1 && rankOf(y) == 1)
    return buildSumProducts(c, x, y, 0, c.type());
  c.require(rankOf(x) >= 2 && rankOf(y) >= 2,
            "the product of a vector and a batch of matrices is not supported");
  return buildMatmul(c, x, y, nullptr, c.type());
}

void aten::addContractionRows(ATenTable &table) {
  table.add({"aten.mm.default"}, "self mat2",
            [](ATenCall &c) { return lowerMatmul(c, "self", "mat2"); });
  table.add({"aten.bmm.default"}, "self mat2",
            [](ATenCall &c) { return lowerMatmul(c, "self", "mat2"); });
  table.add({"aten.matmul.default"}, "self other", lowerAnyMatmul);
  table.add({"aten.addmm.default"}, "self mat1 mat2 beta alpha",
            [](ATenCall &c) { return lowerAddMatmul(c, "mat1", "mat2"); });
  table.add({"aten.baddbmm.default"}, "self batch1 batch2 beta alpha",
            [](ATenCall &c) { return lowerAddMatmul(c, "batch1", "batch2"); });
  table.add({"aten.linear.default"}, "input weight bias", [](ATenCall &c) {
    return buildLinear(c, c.tensor("input"), c.tensor("weight"),
                       c.tensorOrNull("bias"), c.type());
  });
  // Matrix times vector has no second dimension for the systolic array.
  table.add({"aten.mv.default"}, "self vec", [](ATenCall &c) {
    return buildSumProducts(c, c.tensor("self"), c.tensor("vec"), 1, c.type());
  });
  table.add({"aten.dot.default", "aten.vdot.default"}, "self tensor",
            [](ATenCall &c) {
              return buildSumProducts(c, c.tensor("self"), c.tensor("tensor"),
                                      0, c.type());
            });
  table.add({"aten.addmv.default"}, "self mat vec beta alpha", [](ATenCall &c) {
    double alpha = c.number("alpha", 1.0), beta = c.number("beta", 1.0);
    auto product = [&](RankedTensorType type) {
      return buildSumProducts(c, c.tensor("mat"), c.tensor("vec"), 1, type,
                              alpha);
    };
    // With beta 0, self is not read, so that its NaN do not spread.
    if (beta == 0.0)
      return product(c.type());
    auto exact = RankedTensorType::get(c.type().getShape(), c.b.getF32Type());
    return c.pointwise<FmaOp>(c.type(),
                              {c.tensor("self"), c.imm(beta), product(exact)});
  });
}
