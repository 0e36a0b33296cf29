// SPDX-License-Identifier: Apache-2.0
//===- LinearForm.cpp - Expressions that are linear -------------*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

std::optional<SmallVector<int64_t>>
spyre_graph::getLinearForm(AffineExpr expr, unsigned numDims) {
  SmallVector<int64_t> form(numDims + 1, 0);
  if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
    form.back() = number.getValue();
    return form;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    form[dim.getPosition()] = 1;
    return form;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (binary.getKind() != AffineExprKind::Add &&
                  binary.getKind() != AffineExprKind::Mul))
    return std::nullopt;
  auto left = getLinearForm(binary.getLHS(), numDims);
  auto right = getLinearForm(binary.getRHS(), numDims);
  if (!left || !right)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    for (auto [sum, other] : llvm::zip(*left, *right))
      sum += other;
    return left;
  }
  // A product with a constant.
  auto isConstant = [](ArrayRef<int64_t> form) {
    return llvm::all_of(form.drop_back(), [](int64_t c) { return c == 0; });
  };
  if (!isConstant(*right))
    std::swap(left, right);
  if (!isConstant(*right))
    return std::nullopt;
  for (int64_t &coefficient : *left)
    coefficient *= right->back();
  return left;
}
