// SPDX-License-Identifier: Apache-2.0
//===- ViewMap.cpp - Strided views as affine maps ---------------*- C++ -*-===//

#include "ViewMap.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"

#include <numeric>

using namespace mlir;

namespace {

/// `coefficient x atom`, both non-negative, with the atom at most `max`.
struct Term {
  AffineExpr atom;
  int64_t coefficient;
  int64_t max;
};

/// A sum of terms and a non-negative constant.
struct Sum {
  SmallVector<Term> terms;
  int64_t constant = 0;

  int64_t max() const {
    int64_t result = constant;
    for (const Term &term : terms)
      result += term.coefficient * term.max;
    return result;
  }

  void add(const Sum &other, int64_t factor) {
    for (const Term &term : other.terms)
      terms.push_back({term.atom, term.coefficient * factor, term.max});
    constant += other.constant * factor;
  }

  AffineExpr build(MLIRContext *context) const {
    AffineExpr result = getAffineConstantExpr(0, context);
    for (const Term &term : terms)
      result = result + term.atom * term.coefficient;
    return result + constant;
  }
};

/// `sum` as period x quotient + rest, the rest without multiples of the period.
std::pair<Sum, Sum> splitMultiples(const Sum &sum, int64_t period) {
  Sum quotient, rest;
  for (const Term &term : sum.terms)
    if (term.coefficient % period == 0)
      quotient.terms.push_back(
          {term.atom, term.coefficient / period, term.max});
    else
      rest.terms.push_back(term);
  quotient.constant = sum.constant / period;
  rest.constant = sum.constant % period;
  return {quotient, rest};
}

/// `sum` as g x coarse + fine with fine < g, for the largest g that divides
/// `period`; g is 1 (and fine empty) if there is no better one.
struct Grains {
  int64_t g;
  Sum coarse, fine;
};
Grains splitGrains(const Sum &sum, int64_t period) {
  SmallVector<Term> terms(sum.terms);
  // The order of equal coefficients does not matter, they never part: a fine
  // term is smaller than g, which divides every coarse coefficient.
  llvm::sort(terms, [](const Term &x, const Term &y) {
    return x.coefficient < y.coefficient;
  });
  // The more of the small terms are fine, the larger g.
  for (size_t numFine = terms.size(); numFine-- > 0;) {
    int64_t g = period;
    for (const Term &term : llvm::drop_begin(terms, numFine))
      g = std::gcd(g, term.coefficient);
    Grains grains{g, {}, {}};
    grains.coarse.constant = sum.constant / g;
    grains.fine.constant = sum.constant % g;
    for (auto [index, term] : llvm::enumerate(terms))
      if (index < numFine)
        grains.fine.terms.push_back(term);
      else
        grains.coarse.terms.push_back(
            {term.atom, term.coefficient / g, term.max});
    if (g > 1 && grains.fine.max() < g)
      return grains;
  }
  return {1, sum, {}};
}

Sum floorDiv(const Sum &sum, int64_t divisor, MLIRContext *context) {
  if (divisor == 1)
    return sum;
  auto [quotient, rest] = splitMultiples(sum, divisor);
  if (rest.max() < divisor)
    return quotient;
  Grains grains = splitGrains(rest, divisor);
  if (grains.g > 1) {
    quotient.add(floorDiv(grains.coarse, divisor / grains.g, context), 1);
    return quotient;
  }
  quotient.terms.push_back(
      {rest.build(context).floorDiv(divisor), 1, rest.max() / divisor});
  return quotient;
}

Sum modulo(const Sum &sum, int64_t divisor, MLIRContext *context) {
  Sum rest = splitMultiples(sum, divisor).second;
  if (rest.max() < divisor)
    return rest;
  Grains grains = splitGrains(rest, divisor);
  if (grains.g > 1) {
    Sum result = grains.fine;
    result.add(modulo(grains.coarse, divisor / grains.g, context), grains.g);
    return result;
  }
  Sum result;
  result.terms.push_back({rest.build(context) % divisor, 1, divisor - 1});
  return result;
}

/// Dimensions of extent above 1, by decreasing stride.
SmallVector<unsigned> sortDims(ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> strides) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] != 1)
      dims.push_back(dim);
  llvm::sort(dims, [&](unsigned x, unsigned y) {
    return std::make_pair(strides[x], y) > std::make_pair(strides[y], x);
  });
  return dims;
}

} // namespace

bool spyre::isDense(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (llvm::is_contained(sizes, 0))
    return true;
  int64_t expected = 1;
  SmallVector<unsigned> dims = sortDims(sizes, strides);
  for (unsigned dim : llvm::reverse(dims)) {
    if (strides[dim] != expected)
      return false;
    expected *= sizes[dim];
  }
  return true;
}

bool spyre::isNested(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (llvm::is_contained(sizes, 0))
    return true;
  int64_t span = 1;
  SmallVector<unsigned> dims = sortDims(sizes, strides);
  for (unsigned dim : llvm::reverse(dims)) {
    if (strides[dim] < span)
      return false;
    span += (sizes[dim] - 1) * strides[dim];
  }
  return true;
}

AffineMap spyre::getViewMap(MLIRContext *context, ArrayRef<int64_t> sizes,
                            ArrayRef<int64_t> strides, int64_t offset,
                            ArrayRef<int64_t> homeSizes,
                            ArrayRef<int64_t> homeStrides) {
  SmallVector<AffineExpr> coordinates(homeSizes.size(),
                                      getAffineConstantExpr(0, context));
  if (!llvm::is_contained(sizes, 0) && !llvm::is_contained(homeSizes, 0)) {
    Sum address;
    address.constant = offset;
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      if (sizes[dim] > 1 && strides[dim] != 0)
        address.terms.push_back(
            {getAffineDimExpr(dim, context), strides[dim], sizes[dim] - 1});
    int64_t outer = 0;
    for (unsigned dim : sortDims(homeSizes, homeStrides)) {
      int64_t stride = homeStrides[dim];
      // The address of the outer dimensions is a multiple of their stride. If
      // their stride is a multiple of this one, division may come first.
      bool divides = outer % stride == 0;
      if (!divides)
        address = modulo(address, outer, context);
      Sum coordinate = floorDiv(address, stride, context);
      if (outer != 0 && divides)
        coordinate = modulo(coordinate, outer / stride, context);
      coordinates[dim] = coordinate.build(context);
      outer = stride;
    }
  }
  return AffineMap::get(sizes.size(), 0, coordinates, context);
}
