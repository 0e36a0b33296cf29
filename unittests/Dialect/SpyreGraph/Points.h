// SPDX-License-Identifier: Apache-2.0
//===- Points.h - Affine expressions point by point -------------*- C++ -*-===//
//
// What the analyses of affine maps are compared with: every point of a box, and
// arithmetic that cannot overflow.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_POINTS_H
#define SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_POINTS_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <random>
#include <string>

namespace spyre_test {

using llvm::cast;
using llvm::dyn_cast;
using mlir::AffineExpr;
using mlir::AffineMap;
using mlir::ArrayRef;
using mlir::SmallVector;

/// Calls `visit` at every point of a box, the last coordinate first.
template <typename Visit>
void forEachPoint(ArrayRef<int64_t> extents, Visit visit) {
  if (llvm::is_contained(extents, 0))
    return;
  SmallVector<int64_t> point(extents.size(), 0);
  while (true) {
    visit(ArrayRef<int64_t>(point));
    size_t dim = extents.size();
    while (dim > 0 && ++point[dim - 1] == extents[dim - 1])
      point[--dim] = 0;
    if (dim == 0)
      return;
  }
}

using Wide = __int128;

inline Wide floorDiv(Wide value, Wide divisor) {
  Wide quotient = value / divisor;
  return quotient - (quotient * divisor > value ? 1 : 0);
}

/// The value of an expression at a point; nothing if a step to it leaves 120
/// bits. `fits` turns false if one leaves 64.
inline std::optional<Wide> evaluateWide(AffineExpr expr,
                                        ArrayRef<int64_t> point, bool &fits) {
  auto check = [&](Wide value) -> std::optional<Wide> {
    fits &= value >= INT64_MIN && value <= INT64_MAX;
    Wide most = Wide(1) << 120;
    if (value > most || value < -most)
      return std::nullopt;
    return value;
  };
  if (auto number = dyn_cast<mlir::AffineConstantExpr>(expr))
    return number.getValue();
  if (auto dim = dyn_cast<mlir::AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<mlir::AffineBinaryOpExpr>(expr);
  auto left = evaluateWide(binary.getLHS(), point, fits),
       right = evaluateWide(binary.getRHS(), point, fits);
  if (!left || !right)
    return std::nullopt;
  Wide product;
  switch (binary.getKind()) {
  case mlir::AffineExprKind::Add:
    return check(*left + *right);
  case mlir::AffineExprKind::Mul:
    if (__builtin_mul_overflow(*left, *right, &product))
      return std::nullopt;
    return check(product);
  case mlir::AffineExprKind::FloorDiv:
    return floorDiv(*left, *right);
  case mlir::AffineExprKind::CeilDiv:
    return -floorDiv(-*left, *right);
  default:
    return *left - floorDiv(*left, *right) * *right;
  }
}

inline int64_t valueAt(AffineExpr expr, ArrayRef<int64_t> point) {
  bool fits = true;
  return static_cast<int64_t>(*evaluateWide(expr, point, fits));
}

inline SmallVector<int64_t> valuesAt(AffineMap map, ArrayRef<int64_t> point) {
  SmallVector<int64_t> values;
  for (AffineExpr expr : map.getResults())
    values.push_back(valueAt(expr, point));
  return values;
}

/// What a test prints of a case.
template <typename T>
std::string text(const T &value) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << value;
  return result;
}
inline std::string text(ArrayRef<int64_t> values) {
  std::string result = "[";
  llvm::raw_string_ostream os(result);
  llvm::interleaveComma(values, os);
  return result + "]";
}
inline std::string text(const SmallVector<int64_t> &values) {
  return text(ArrayRef<int64_t>(values));
}

/// Numbers and expressions from a fixed seed.
class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}

  /// A number from low to high. Not std::uniform_int_distribution, which is
  /// another one in every library.
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % uint64_t(high - low + 1));
  }
  int64_t pick(ArrayRef<int64_t> values) {
    return values[number(0, values.size() - 1)];
  }
  bool chance(int64_t one, int64_t in) { return number(1, in) <= one; }

  /// An expression of `numDims` dimensions, `depth` operations deep.
  AffineExpr expression(mlir::MLIRContext *context, unsigned numDims, int depth,
                        ArrayRef<int64_t> factors, ArrayRef<int64_t> divisors) {
    if (depth == 0 || chance(1, 6)) {
      if (numDims == 0 || chance(1, 5))
        return getAffineConstantExpr(pick(factors), context);
      return getAffineDimExpr(number(0, numDims - 1), context);
    }
    AffineExpr left =
        expression(context, numDims, depth - 1, factors, divisors);
    switch (number(0, 5)) {
    case 0:
    case 1:
      return left + expression(context, numDims, depth - 1, factors, divisors);
    case 2:
      return left * pick(factors);
    case 3:
      return left.floorDiv(pick(divisors));
    case 4:
      return left.ceilDiv(pick(divisors));
    default:
      return left % pick(divisors);
    }
  }

private:
  std::mt19937_64 engine;
};

} // namespace spyre_test

#endif // SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_POINTS_H
