//===- AffineRanges.cpp - Affine expressions over a box ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// A sum of `coefficient x atom` plus a constant; an atom is a dimension, a
/// symbol, or a floor division or modulus.
struct LinearForm {
  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  int64_t constant = 0;
  /// No coefficient left 64 bits. Else the form says nothing.
  bool fits = true;

  LinearForm() = default;
  explicit LinearForm(AffineExpr expr) { add(expr, 1); }

  void addTerm(AffineExpr atom, int64_t coefficient) {
    for (auto &[other, sum] : terms)
      if (other == atom) {
        fits &= !llvm::AddOverflow(sum, coefficient, sum);
        return;
      }
    terms.emplace_back(atom, coefficient);
  }

  void add(AffineExpr expr, int64_t factor) {
    int64_t product;
    if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
      fits &= !llvm::MulOverflow(number.getValue(), factor, product) &&
              !llvm::AddOverflow(constant, product, constant);
      return;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (binary && binary.getKind() == AffineExprKind::Add) {
      add(binary.getLHS(), factor);
      add(binary.getRHS(), factor);
      return;
    }
    if (binary && binary.getKind() == AffineExprKind::Mul) {
      if (auto number = dyn_cast<AffineConstantExpr>(binary.getRHS())) {
        fits &= !llvm::MulOverflow(factor, number.getValue(), product);
        if (fits)
          add(binary.getLHS(), product);
        return;
      }
      if (auto number = dyn_cast<AffineConstantExpr>(binary.getLHS())) {
        fits &= !llvm::MulOverflow(factor, number.getValue(), product);
        if (fits)
          add(binary.getRHS(), product);
        return;
      }
    }
    addTerm(expr, factor);
  }

  AffineExpr build(MLIRContext *context) const {
    AffineExpr result = getAffineConstantExpr(0, context);
    for (auto [atom, coefficient] : terms)
      if (coefficient != 0)
        result = result + atom * coefficient;
    return result + constant;
  }
};

} // namespace

int64_t spyre_graph::evaluate(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = evaluate(binary.getLHS(), point),
          right = evaluate(binary.getRHS(), point);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(left, right);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(left, right);
  default:
    return llvm::mod(left, right);
  }
}

/// Adds the smallest and largest value of `coefficient x atom`. False if they
/// leave 64 bits.
static bool addTerm(std::pair<int64_t, int64_t> atom, int64_t coefficient,
                    int64_t &low, int64_t &high) {
  int64_t first, last;
  return !llvm::MulOverflow(coefficient, atom.first, first) &&
         !llvm::MulOverflow(coefficient, atom.second, last) &&
         !llvm::AddOverflow(low, std::min(first, last), low) &&
         !llvm::AddOverflow(high, std::max(first, last), high);
}

std::pair<int64_t, int64_t> spyre_graph::getRange(AffineExpr expr,
                                                  ArrayRef<int64_t> extents) {
  constexpr std::pair<int64_t, int64_t> anything = {
      std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return {number.getValue(), number.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {0, std::max<int64_t>(extents[dim.getPosition()] - 1, 0)};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() == AffineExprKind::Add ||
      binary.getKind() == AffineExprKind::Mul) {
    LinearForm form(expr);
    if (!form.fits)
      return anything;
    int64_t low = form.constant, high = form.constant;
    for (auto [atom, coefficient] : form.terms) {
      assert(atom != expr && "product of two non-constants is not affine");
      if (!addTerm(getRange(atom, extents), coefficient, low, high))
        return anything;
    }
    return {low, high};
  }
  int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  auto [low, high] = getRange(binary.getLHS(), extents);
  switch (binary.getKind()) {
  case AffineExprKind::FloorDiv:
    return {llvm::divideFloorSigned(low, divisor),
            llvm::divideFloorSigned(high, divisor)};
  case AffineExprKind::CeilDiv:
    return {llvm::divideCeilSigned(low, divisor),
            llvm::divideCeilSigned(high, divisor)};
  default: // Mod
    if (llvm::divideFloorSigned(low, divisor) ==
        llvm::divideFloorSigned(high, divisor))
      return {llvm::mod(low, divisor), llvm::mod(high, divisor)};
    return {0, divisor - 1};
  }
}

namespace {
/// A sum as divisor x quotient + rest.
struct Split {
  LinearForm quotient, rest;
};
} // namespace

/// Multiples of the divisor only.
static int64_t divideWhole(int64_t coefficient, int64_t divisor) {
  return coefficient % divisor == 0 ? coefficient / divisor : 0;
}

/// `getTimes` says how often the divisor is taken out of a coefficient. A
/// diagonal has strides that are one period and a bit, or one less a bit.
static Split divide(const LinearForm &sum, int64_t divisor,
                    int64_t (*getTimes)(int64_t, int64_t)) {
  Split split;
  for (auto [atom, coefficient] : sum.terms) {
    int64_t times = getTimes(coefficient, divisor), taken, left;
    if (llvm::MulOverflow(times, divisor, taken) ||
        llvm::SubOverflow(coefficient, taken, left))
      std::tie(times, left) = std::pair(int64_t(0), coefficient);
    if (times != 0)
      split.quotient.addTerm(atom, times);
    if (left != 0)
      split.rest.addTerm(atom, left);
  }
  split.quotient.constant = llvm::divideFloorSigned(sum.constant, divisor);
  split.rest.constant = llvm::mod(sum.constant, divisor);
  return split;
}

/// The quotient or the remainder of a sum of which the rest stays inside one
/// period; else null.
static AffineExpr decide(const Split &split, int64_t divisor, bool isQuotient,
                         ArrayRef<int64_t> extents, MLIRContext *context) {
  LinearForm quotient = split.quotient, rest = split.rest;
  auto [low, high] = getRange(rest.build(context), extents);
  int64_t period = llvm::divideFloorSigned(low, divisor), start;
  if (period != llvm::divideFloorSigned(high, divisor) ||
      llvm::AddOverflow(quotient.constant, period, quotient.constant) ||
      llvm::MulOverflow(period, divisor, start) ||
      llvm::SubOverflow(rest.constant, start, rest.constant))
    return {};
  return isQuotient ? quotient.build(context) : rest.build(context);
}

AffineExpr spyre_graph::simplifyWithRanges(AffineExpr expr,
                                           ArrayRef<int64_t> extents) {
  MLIRContext *context = expr.getContext();
  if (isa<AffineConstantExpr, AffineSymbolExpr>(expr))
    return expr;
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return extents[dim.getPosition()] <= 1 ? getAffineConstantExpr(0, context)
                                           : expr;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  AffineExpr lhs = simplifyWithRanges(binary.getLHS(), extents);
  AffineExpr rhs = simplifyWithRanges(binary.getRHS(), extents);
  // MLIR's own folding of sums wraps where a constant leaves 64 bits.
  LinearForm sum;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    sum.add(lhs, 1);
    sum.add(rhs, 1);
    return sum.fits ? sum.build(context) : expr;
  case AffineExprKind::Mul:
    if (!isa<AffineConstantExpr>(rhs))
      std::swap(lhs, rhs);
    if (auto factor = dyn_cast<AffineConstantExpr>(rhs))
      sum.add(lhs, factor.getValue());
    else
      sum.addTerm(lhs * rhs, 1);
    return sum.fits ? sum.build(context) : expr;
  case AffineExprKind::CeilDiv:
    return lhs.ceilDiv(rhs);
  default:
    break;
  }

  int64_t divisor = cast<AffineConstantExpr>(rhs).getValue();
  // (x mod (a*b)) mod a is x mod a.
  if (binary.getKind() == AffineExprKind::Mod)
    if (auto inner = dyn_cast<AffineBinaryOpExpr>(lhs);
        inner && inner.getKind() == AffineExprKind::Mod)
      if (auto innerDivisor = dyn_cast<AffineConstantExpr>(inner.getRHS());
          innerDivisor && innerDivisor.getValue() % divisor == 0)
        return simplifyWithRanges(inner.getLHS() % divisor, extents);

  // (x floordiv a) floordiv b is x floordiv (a*b).
  if (binary.getKind() == AffineExprKind::FloorDiv)
    if (auto inner = dyn_cast<AffineBinaryOpExpr>(lhs);
        inner && inner.getKind() == AffineExprKind::FloorDiv)
      if (auto innerDivisor = dyn_cast<AffineConstantExpr>(inner.getRHS())) {
        int64_t product;
        if (llvm::MulOverflow(innerDivisor.getValue(), divisor, product))
          return lhs.floorDiv(divisor);
        return simplifyWithRanges(inner.getLHS().floorDiv(product), extents);
      }

  // Split the sum into multiples of the divisor and the rest; where the rest
  // stays inside one period, the floor division and modulus are decided.
  LinearForm form(lhs);
  bool isQuotient = binary.getKind() == AffineExprKind::FloorDiv;
  if (!form.fits)
    return isQuotient ? lhs.floorDiv(divisor) : lhs % divisor;
  const Split split = divide(form, divisor, divideWhole);
  for (const Split &tried :
       {split, divide(form, divisor, llvm::divideFloorSigned<int64_t>),
        divide(form, divisor, llvm::divideCeilSigned<int64_t>)})
    if (AffineExpr known = decide(tried, divisor, isQuotient, extents, context))
      return known;
  AffineExpr rest = split.rest.build(context);
  return isQuotient ? split.quotient.build(context) + rest.floorDiv(divisor)
                    : rest % divisor;
}

AffineMap spyre_graph::simplifyWithRanges(AffineMap map,
                                          ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults())
    results.push_back(simplifyWithRanges(expr, extents));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}
