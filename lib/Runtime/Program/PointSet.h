// SPDX-License-Identifier: Apache-2.0
//===- PointSet.h - Affine expressions and sets at run time -----*- C++ -*-===//
//
// Affine sets that are not boxes, and orders that are not permutations, as
// expressions that are evaluated point by point.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_PROGRAM_POINTSET_H
#define SPYRE_LIB_RUNTIME_PROGRAM_POINTSET_H

#include <cstdint>
#include <string>
#include <vector>

namespace spyre::runtime {

/// A node of an affine expression; children come before their parent.
struct AffineNode {
  enum Kind : uint8_t { Constant, Operand, Add, Mul, FloorDiv, CeilDiv, Mod };
  Kind kind = Constant;
  int64_t value = 0; ///< constant, or operand number
  int lhs = 0, rhs = 0;
};

/// Expressions over operands: dimensions, then symbols.
struct AffineExprs {
  std::vector<AffineNode> nodes;
  std::vector<int> roots;

  /// Value of node `index`. Divisors are positive constants (the loader sees
  /// to it).
  int64_t evaluate(int index, const int64_t *operands) const;
};

/// { d : every constraint >= 0 (== 0) }, with symbols given at run time.
struct PointSet {
  int numDims = 0, numSymbols = 0;
  AffineExprs exprs; ///< one root per constraint
  std::vector<bool> isEquality;

  /// `operands`: numDims coordinates, then numSymbols symbols.
  bool contains(const int64_t *operands) const;
  /// Narrows the inclusive ranges [lo, hi] to what the constraints leave, as
  /// far as interval arithmetic sees it. `operands` holds the symbols behind
  /// numDims unused entries. False if the set is plainly empty.
  bool narrow(const int64_t *operands, int64_t *lo, int64_t *hi) const;

  /// "Not bounded" in ranges.
  static constexpr int64_t kUnbounded = int64_t(1) << 60;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_POINTSET_H
