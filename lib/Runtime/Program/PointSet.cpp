// SPDX-License-Identifier: Apache-2.0
//===- PointSet.cpp - Affine expressions and sets at run time -------------===//

#include "PointSet.h"

#include <algorithm>
#include <utility>

using namespace spyre::runtime;

static int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

int64_t AffineExprs::evaluate(int index, const int64_t *operands) const {
  const AffineNode &node = nodes[index];
  switch (node.kind) {
  case AffineNode::Constant:
    return node.value;
  case AffineNode::Operand:
    return operands[node.value];
  default:
    break;
  }
  int64_t x = evaluate(node.lhs, operands), y = evaluate(node.rhs, operands);
  switch (node.kind) {
  case AffineNode::Add:
    return x + y;
  case AffineNode::Mul:
    return x * y;
  case AffineNode::FloorDiv:
    return floorDiv(x, y);
  case AffineNode::CeilDiv:
    return -floorDiv(-x, y);
  default:
    return x - floorDiv(x, y) * y;
  }
}

bool PointSet::contains(const int64_t *operands) const {
  for (size_t i = 0; i < exprs.roots.size(); ++i) {
    int64_t value = exprs.evaluate(exprs.roots[i], operands);
    if (isEquality[i] ? value != 0 : value < 0)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {
constexpr int64_t kUnbounded = PointSet::kUnbounded;

/// Inclusive; an end of kUnbounded or beyond is open.
struct Interval {
  int64_t lo, hi;
};

int64_t saturate(__int128 value) {
  return static_cast<int64_t>(
      std::clamp<__int128>(value, -kUnbounded, kUnbounded));
}

bool isOpen(int64_t end) { return end <= -kUnbounded || end >= kUnbounded; }

Interval scaled(Interval x, int64_t factor) {
  if (factor == 0)
    return {0, 0};
  auto end = [&](int64_t v) {
    return isOpen(v) ? ((v > 0) == (factor > 0) ? kUnbounded : -kUnbounded)
                     : saturate(__int128(v) * factor);
  };
  return factor > 0 ? Interval{end(x.lo), end(x.hi)}
                    : Interval{end(x.hi), end(x.lo)};
}

/// The values an expression may take.
class Evaluator {
public:
  Evaluator(const PointSet &set, const int64_t *operands, const int64_t *lo,
            const int64_t *hi)
      : set(set), operands(operands), lo(lo), hi(hi) {}

  Interval range(int index) const {
    const AffineNode &node = set.exprs.nodes[index];
    if (node.kind == AffineNode::Constant)
      return {saturate(node.value), saturate(node.value)};
    if (node.kind == AffineNode::Operand) {
      if (node.value < set.numDims)
        return {lo[node.value], hi[node.value]};
      return {saturate(operands[node.value]), saturate(operands[node.value])};
    }
    Interval x = range(node.lhs), y = range(node.rhs);
    switch (node.kind) {
    case AffineNode::Add:
      return {isOpen(x.lo) || isOpen(y.lo) ? -kUnbounded
                                           : saturate(__int128(x.lo) + y.lo),
              isOpen(x.hi) || isOpen(y.hi) ? kUnbounded
                                           : saturate(__int128(x.hi) + y.hi)};
    case AffineNode::Mul:
      if (x.lo == x.hi)
        return scaled(y, x.lo);
      if (y.lo == y.hi)
        return scaled(x, y.lo);
      return {-kUnbounded, kUnbounded};
    case AffineNode::FloorDiv:
    case AffineNode::CeilDiv: {
      auto divide = [&](int64_t v) {
        return isOpen(v)                           ? v
               : node.kind == AffineNode::FloorDiv ? floorDiv(v, y.lo)
                                                   : -floorDiv(-v, y.lo);
      };
      return {divide(x.lo), divide(x.hi)};
    }
    default:
      return {0, y.lo - 1};
    }
  }

private:
  const PointSet &set;
  const int64_t *operands, *lo, *hi;
};

/// Adds `factor * node` to the coefficients of single dimensions and to the
/// list of everything else.
void flatten(const PointSet &set, int index, int64_t factor,
             std::vector<int64_t> &coefficients,
             std::vector<std::pair<int, int64_t>> &rest) {
  const AffineNode &node = set.exprs.nodes[index];
  if (node.kind == AffineNode::Operand && node.value < set.numDims) {
    coefficients[node.value] += factor;
    return;
  }
  if (node.kind == AffineNode::Add) {
    flatten(set, node.lhs, factor, coefficients, rest);
    flatten(set, node.rhs, factor, coefficients, rest);
    return;
  }
  if (node.kind == AffineNode::Mul)
    for (bool swapped : {false, true}) {
      const AffineNode &c = set.exprs.nodes[swapped ? node.lhs : node.rhs];
      if (c.kind == AffineNode::Constant)
        return flatten(set, swapped ? node.rhs : node.lhs, factor * c.value,
                       coefficients, rest);
    }
  rest.push_back({index, factor});
}
} // namespace

bool PointSet::narrow(const int64_t *operands, int64_t *lo, int64_t *hi) const {
  Evaluator evaluator(*this, operands, lo, hi);
  // Each pass carries bounds over one more constraint.
  for (int pass = 0; pass < numDims + 2; ++pass) {
    bool changed = false;
    for (size_t i = 0; i < exprs.roots.size(); ++i) {
      std::vector<int64_t> coefficients(numDims, 0);
      std::vector<std::pair<int, int64_t>> rest;
      flatten(*this, exprs.roots[i], 1, coefficients, rest);
      // sum of coefficient x dimension + rest >= 0, and <= 0 if equal.
      for (int sign : {1, -1}) {
        if (sign < 0 && !isEquality[i])
          break;
        for (int d = 0; d < numDims; ++d) {
          int64_t own = sign * coefficients[d];
          if (own == 0)
            continue;
          __int128 others = 0;
          bool isBounded = true;
          auto add = [&](Interval x) {
            isBounded &= !isOpen(x.hi);
            others += x.hi;
          };
          for (int e = 0; e < numDims; ++e)
            if (e != d && coefficients[e] != 0)
              add(scaled({lo[e], hi[e]}, sign * coefficients[e]));
          for (auto [node, factor] : rest)
            add(scaled(evaluator.range(node), sign * factor));
          if (!isBounded)
            continue;
          int64_t most = saturate(others);
          if (isOpen(most))
            continue;
          // own * x >= -most.
          if (own > 0) {
            int64_t bound = -floorDiv(most, own);
            if (bound > lo[d])
              lo[d] = bound, changed = true;
          } else {
            int64_t bound = floorDiv(most, -own);
            if (bound < hi[d])
              hi[d] = bound, changed = true;
          }
          if (lo[d] > hi[d])
            return false;
        }
      }
    }
    if (!changed)
      break;
  }
  return true;
}
