// SPDX-License-Identifier: Apache-2.0
//===- SizeExpr.h - Sizes that may vary -------------------------*- C++ -*-===//
//
// Sizes, strides and offsets of tensors as polynomials of symbols, which stand
// for sizes that are known when a program runs. Most are plain numbers.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_SUPPORT_SIZEEXPR_H
#define SPYRE_SUPPORT_SIZEEXPR_H

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace spyre {

/// The sizes that a symbol stands for: multiples of `step` from `least` to
/// `most`.
struct SizeRange {
  int64_t least = 1, most = 1, step = 1;
};

/// constant + sum of factor x product of symbols, which are numbered from 0.
class SizeExpr {
public:
  struct Term {
    std::vector<int> symbols; ///< ascending, with repetitions; not empty
    int64_t factor = 0;       ///< not 0
    bool operator==(const Term &other) const {
      return symbols == other.symbols && factor == other.factor;
    }
  };

  SizeExpr(int64_t constant = 0) : number(constant) {}
  static SizeExpr symbol(int position);
  static SizeExpr term(int64_t factor, std::vector<int> symbols);

  bool isConstant() const { return sum.empty(); }
  /// The part without symbols.
  int64_t constant() const { return number; }
  /// In the order of their symbols.
  const std::vector<Term> &terms() const { return sum; }

  SizeExpr operator+(const SizeExpr &other) const;
  SizeExpr operator-(const SizeExpr &other) const;
  SizeExpr operator*(const SizeExpr &other) const;
  bool operator==(const SizeExpr &other) const {
    return number == other.number && sum == other.sum;
  }
  bool operator!=(const SizeExpr &other) const { return !(*this == other); }

  /// The expression that gives this one when multiplied with `divisor`, if it
  /// or `divisor` is a single term.
  std::optional<SizeExpr> dividedBy(const SizeExpr &divisor) const;
  /// The value where the symbols have these sizes.
  int64_t at(const std::vector<int64_t> &sizes) const;
  /// A number below which it is at none of the symbols' sizes; at times a
  /// larger one would do.
  int64_t lowerBound(const std::vector<SizeRange> &ranges) const;
  /// A number above which it is at none of the symbols' sizes; at times a
  /// smaller one would do.
  int64_t upperBound(const std::vector<SizeRange> &ranges) const;

  /// "64 x s0 + 1".
  std::string str() const;

private:
  void add(const Term &term);

  int64_t number = 0;
  std::vector<Term> sum;
};

/// A list of sizes, strides or the like, which numbers alone become, too.
class SizeList : public std::vector<SizeExpr> {
public:
  using std::vector<SizeExpr>::vector;
  SizeList(const std::vector<int64_t> &numbers)
      : std::vector<SizeExpr>(numbers.begin(), numbers.end()) {}

  /// Whether any of them varies.
  bool varies() const;
  std::vector<int64_t> at(const std::vector<int64_t> &sizes) const;
  /// The upper bound of each.
  std::vector<int64_t> upperBounds(const std::vector<SizeRange> &ranges) const;
  std::string str() const;

  friend bool operator==(const SizeList &a, const SizeList &b) {
    return static_cast<const std::vector<SizeExpr> &>(a) ==
           static_cast<const std::vector<SizeExpr> &>(b);
  }
  friend bool operator!=(const SizeList &a, const SizeList &b) {
    return !(a == b);
  }
};

} // namespace spyre

#endif // SPYRE_SUPPORT_SIZEEXPR_H
