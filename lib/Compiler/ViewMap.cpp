// SPDX-License-Identifier: Apache-2.0
//===- ViewMap.cpp - Strided views as affine maps ---------------*- C++ -*-===//

#include "ViewMap.h"

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"

#include <numeric>

using namespace mlir;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::SizeRange;

namespace {

/// `coefficient x atom`, both non-negative, with the atom at most `max`.
struct Term {
  AffineExpr atom;
  SizeExpr coefficient;
  SizeExpr max;
};

/// What cannot be said of all sizes by one map.
[[noreturn]] void refuse(const char *what) {
  throw spyre::UnsupportedOp(std::string("a view whose ") + what +
                             " depends on a size that varies");
}

/// The number that does not vary.
int64_t numberOf(const SizeExpr &size, const char *what) {
  if (!size.isConstant())
    refuse(what);
  return size.constant();
}

/// A sum of terms and a non-negative constant.
struct Sum {
  SmallVector<Term> terms;
  SizeExpr constant = 0;

  SizeExpr max() const {
    SizeExpr result = constant;
    for (const Term &term : terms)
      result = result + term.coefficient * term.max;
    return result;
  }

  void add(const Sum &other, const SizeExpr &factor) {
    for (const Term &term : other.terms)
      terms.push_back({term.atom, term.coefficient * factor, term.max});
    constant = constant + other.constant * factor;
  }

  AffineExpr build(MLIRContext *context) const {
    AffineExpr result = getAffineConstantExpr(0, context);
    for (const Term &term : terms)
      result = result + term.atom * numberOf(term.coefficient, "stride");
    return result + numberOf(constant, "offset");
  }

  bool varies() const {
    return !constant.isConstant() || llvm::any_of(terms, [](const Term &term) {
      return !term.coefficient.isConstant();
    });
  }
};

/// `sum` as g x coarse + fine with fine < g, for the largest g that divides
/// `period`; g is 1 (and fine empty) if there is no better one.
struct Grains {
  SizeExpr g;
  Sum coarse, fine;
};

/// Finds coordinates in homes of sizes in `ranges`.
class ViewMapper {
public:
  ViewMapper(MLIRContext *context, const std::vector<SizeRange> &ranges)
      : context(context), ranges(ranges) {}

  /// Whether a < b at all sizes.
  bool isLess(const SizeExpr &a, const SizeExpr &b) const {
    return (b - a).lowerBound(ranges) >= 1;
  }

  Sum floorDiv(const Sum &sum, const SizeExpr &divisor) const {
    if (divisor == SizeExpr(1))
      return sum;
    auto [quotient, rest] = split(sum, divisor);
    if (isLess(rest.max(), divisor))
      return quotient;
    Grains grains = splitGrains(rest, divisor);
    if (grains.g != SizeExpr(1)) {
      quotient.add(floorDiv(grains.coarse, *divisor.dividedBy(grains.g)), 1);
      return quotient;
    }
    int64_t number = numberOf(divisor, "stride");
    AffineExpr atom = rest.build(context).floorDiv(number);
    quotient.terms.push_back({atom, 1, largestQuotient(rest.max(), number)});
    return quotient;
  }

  Sum modulo(const Sum &sum, const SizeExpr &divisor) const {
    Sum rest = split(sum, divisor).second;
    if (isLess(rest.max(), divisor))
      return rest;
    Grains grains = splitGrains(rest, divisor);
    if (grains.g != SizeExpr(1)) {
      Sum result = grains.fine;
      result.add(modulo(grains.coarse, *divisor.dividedBy(grains.g)), grains.g);
      return result;
    }
    int64_t number = numberOf(divisor, "stride");
    Sum result;
    result.terms.push_back({rest.build(context) % number, 1, number - 1});
    return result;
  }

private:
  /// At least `most` floordiv `number`; exactly that where `most` does not vary
  /// or `most` + 1 is a multiple of `number`, as in dense views.
  static SizeExpr largestQuotient(const SizeExpr &most, int64_t number) {
    if (most.isConstant())
      return most.constant() / number;
    std::optional<SizeExpr> count = (most + 1).dividedBy(number);
    return count ? *count - 1 : most;
  }

  /// A number, and how often the period is in what is left of a constant
  /// without it.
  static std::pair<int64_t, SizeExpr> splitNumber(const SizeExpr &constant,
                                                  const SizeExpr &period) {
    if (period.isConstant()) {
      int64_t number = constant.constant() % period.constant();
      if (auto times = (constant - number).dividedBy(period))
        return {number, *times};
      refuse("offset");
    }
    // The period may have a number of its own, as often as it is in there.
    int64_t own = period.constant(), all = constant.constant();
    int64_t most = own ? all / own + 1 : 0, least = own ? most - 2 : 0;
    for (int64_t count = least; count <= most; ++count)
      if (auto times = (constant - (all - count * own)).dividedBy(period))
        return {all - count * own, *times};
    refuse("offset");
  }

  /// `sum` as period x quotient + rest: the rest is below the period if it can
  /// be, and has no multiples of it.
  std::pair<Sum, Sum> split(const Sum &sum, const SizeExpr &period) const {
    auto parts = splitMultiples(sum, period);
    if (isLess(parts.second.max(), period))
      return parts;
    // A diagonal steps to the next row and to the next column.
    Sum stepwise;
    stepwise.constant = sum.constant;
    for (const Term &term : sum.terms) {
      SizeExpr times = wholeTimes(term.coefficient, period);
      for (const SizeExpr &part :
           {times * period, term.coefficient - times * period})
        if (part != SizeExpr(0))
          stepwise.terms.push_back({term.atom, part, term.max});
    }
    auto steps = splitMultiples(stepwise, period);
    return isLess(steps.second.max(), period) ? steps : parts;
  }

  /// How often a period is in a stride that is no multiple of it; 0 if that
  /// depends on the sizes.
  SizeExpr wholeTimes(const SizeExpr &stride, const SizeExpr &period) const {
    if (stride.isConstant() && period.isConstant())
      return stride.constant() / period.constant();
    if (stride.isConstant() || period.isConstant())
      return 0;
    const SizeExpr::Term &last = period.terms().back();
    for (const SizeExpr::Term &term : stride.terms()) {
      std::optional<SizeExpr> times =
          SizeExpr::term(term.factor, term.symbols)
              .dividedBy(SizeExpr::term(last.factor, last.symbols));
      if (times && times->lowerBound(ranges) > 0 &&
          (stride - *times * period).lowerBound(ranges) >= 0)
        return *times;
    }
    return 0;
  }

  /// As split(), of each term as a whole.
  std::pair<Sum, Sum> splitMultiples(const Sum &sum,
                                     const SizeExpr &period) const {
    Sum quotient, rest;
    for (const Term &term : sum.terms)
      if (auto times = term.coefficient.dividedBy(period))
        quotient.terms.push_back({term.atom, *times, term.max});
      else
        rest.terms.push_back(term);
    if (sum.constant.isConstant() && period.isConstant()) {
      quotient.constant = sum.constant.constant() / period.constant();
      rest.constant = sum.constant.constant() % period.constant();
    } else if (isLess(sum.constant, period)) {
      rest.constant = sum.constant;
    } else {
      // The multiple of the period that is in it, and a number. What is left
      // of a negative one is below the next multiple.
      auto [number, times] = splitNumber(sum.constant, period);
      quotient.constant = number < 0 ? times - 1 : times;
      rest.constant = number < 0 ? period + number : SizeExpr(number);
      if (rest.constant.lowerBound(ranges) < 0)
        refuse("offset");
    }
    return {quotient, rest};
  }

  Grains splitGrains(const Sum &sum, const SizeExpr &period) const {
    if (sum.varies() || !period.isConstant())
      return splitVaryingGrains(sum, period);
    auto factor = [](const Term &term) { return term.coefficient.constant(); };
    SmallVector<Term> terms(sum.terms);
    // The order of equal coefficients does not matter, they never part: a fine
    // term is smaller than g, which divides every coarse coefficient.
    llvm::sort(terms, [&](const Term &x, const Term &y) {
      return factor(x) < factor(y);
    });
    // The more of the small terms are fine, the larger g.
    for (size_t numFine = terms.size(); numFine-- > 0;) {
      int64_t g = period.constant();
      for (const Term &term : llvm::drop_begin(terms, numFine))
        g = std::gcd(g, factor(term));
      Grains grains{SizeExpr(g), {}, {}};
      grains.coarse.constant = sum.constant.constant() / g;
      grains.fine.constant = sum.constant.constant() % g;
      for (auto [index, term] : llvm::enumerate(terms))
        if (index < numFine)
          grains.fine.terms.push_back(term);
        else
          grains.coarse.terms.push_back(
              {term.atom, factor(term) / g, term.max});
      if (g > 1 && isLess(grains.fine.max(), g))
        return grains;
    }
    return {1, sum, {}};
  }

  /// As splitGrains(), for the coefficient of a term as g.
  Grains splitVaryingGrains(const Sum &sum, const SizeExpr &period) const {
    for (const Term &candidate : sum.terms) {
      const SizeExpr &g = candidate.coefficient;
      if (g == SizeExpr(1) || !period.dividedBy(g))
        continue;
      Grains grains{g, {}, {}};
      for (const Term &term : sum.terms)
        if (std::optional<SizeExpr> times = term.coefficient.dividedBy(g))
          grains.coarse.terms.push_back({term.atom, *times, term.max});
        else
          grains.fine.terms.push_back(term);
      if (std::optional<SizeExpr> times = sum.constant.dividedBy(g))
        grains.coarse.constant = *times;
      else
        grains.fine.constant = sum.constant;
      if (isLess(grains.fine.max(), g))
        return grains;
    }
    return {1, sum, {}};
  }

  MLIRContext *context;
  const std::vector<SizeRange> &ranges;
};

/// Dimensions of extent above 1, by decreasing stride.
SmallVector<unsigned> sortDims(const SizeList &sizes, const SizeList &strides,
                               const std::vector<SizeRange> &ranges) {
  std::vector<int64_t> most = strides.upperBounds(ranges);
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] != SizeExpr(1))
      dims.push_back(dim);
  llvm::sort(dims, [&](unsigned x, unsigned y) {
    return std::make_pair(most[x], y) > std::make_pair(most[y], x);
  });
  return dims;
}

bool isEmpty(const SizeList &sizes) {
  return llvm::is_contained(sizes, SizeExpr(0));
}

} // namespace

bool spyre::isDense(const SizeList &sizes, const SizeList &strides,
                    const std::vector<SizeRange> &ranges) {
  if (isEmpty(sizes))
    return true;
  SizeExpr expected = 1;
  SmallVector<unsigned> dims = sortDims(sizes, strides, ranges);
  for (unsigned dim : llvm::reverse(dims)) {
    if (strides[dim] != expected)
      return false;
    expected = expected * sizes[dim];
  }
  return true;
}

bool spyre::isNested(const SizeList &sizes, const SizeList &strides,
                     const std::vector<SizeRange> &ranges) {
  if (isEmpty(sizes))
    return true;
  SizeExpr span = 1;
  SmallVector<unsigned> dims = sortDims(sizes, strides, ranges);
  for (unsigned dim : llvm::reverse(dims)) {
    if ((strides[dim] - span).lowerBound(ranges) < 0)
      return false;
    span = span + (sizes[dim] - 1) * strides[dim];
  }
  return true;
}

AffineMap spyre::getViewMap(MLIRContext *context, const SizeList &sizes,
                            const SizeList &strides, const SizeExpr &offset,
                            const SizeList &homeSizes,
                            const SizeList &homeStrides,
                            const std::vector<SizeRange> &ranges) {
  ShiftedViewMap shifted = getShiftedViewMap(context, sizes, strides, offset,
                                             homeSizes, homeStrides, ranges);
  if (!shifted.shifts.empty())
    refuse("offset");
  return shifted.map;
}

spyre::ShiftedViewMap
spyre::getShiftedViewMap(MLIRContext *context, const SizeList &sizes,
                         const SizeList &strides, const SizeExpr &offset,
                         const SizeList &homeSizes, const SizeList &homeStrides,
                         const std::vector<SizeRange> &ranges) {
  ShiftedViewMap result;
  SmallVector<AffineExpr> coordinates(homeSizes.size(),
                                      getAffineConstantExpr(0, context));
  ViewMapper mapper(context, ranges);
  if (!isEmpty(sizes) && !isEmpty(homeSizes)) {
    Sum address;
    address.constant = offset;
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      if (sizes[dim] != SizeExpr(1) && strides[dim] != SizeExpr(0))
        address.terms.push_back(
            {getAffineDimExpr(dim, context), strides[dim], sizes[dim] - 1});
    SizeExpr outer = 0;
    for (unsigned dim : sortDims(homeSizes, homeStrides, ranges)) {
      const SizeExpr &stride = homeStrides[dim];
      // The address of the outer dimensions is a multiple of their stride. If
      // their stride is a multiple of this one, division may come first.
      std::optional<SizeExpr> ratio = outer.dividedBy(stride);
      if (!ratio)
        address = mapper.modulo(address, outer);
      Sum coordinate = mapper.floorDiv(address, stride);
      if (outer != SizeExpr(0) && ratio)
        coordinate = mapper.modulo(coordinate, *ratio);
      if (!coordinate.constant.isConstant()) {
        result.shifts.push_back({dim, coordinate.constant, 1});
        coordinate.constant = 0;
        result.shifts.back().length = coordinate.max() + 1;
      }
      coordinates[dim] = coordinate.build(context);
      outer = stride;
    }
  }
  result.map = AffineMap::get(sizes.size(), 0, coordinates, context);
  return result;
}

spyre::SizeList spyre::getRowMajorStrides(const SizeList &sizes) {
  SizeList strides(sizes);
  SizeExpr stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride = stride * sizes[dim];
  }
  return strides;
}

std::vector<spyre::Regrouping>
spyre::getRegroupings(const SizeList &strides, const SizeList &homeSizes,
                      const SizeList &homeStrides,
                      const std::vector<SizeRange> &ranges) {
  SizeList sizes;
  for (unsigned dim : sortDims(homeSizes, homeStrides, ranges))
    sizes.push_back(homeSizes[dim]);
  SizeList rowMajor = getRowMajorStrides(sizes);
  std::vector<Regrouping> found;
  // A dimension and the `count` before it, of `outer` elements together.
  auto merge = [&](unsigned dim, unsigned count, const SizeExpr &outer) {
    Regrouping merged;
    merged.axis = dim - count;
    merged.outer = outer;
    merged.inner = sizes[dim];
    merged.before.assign(sizes.begin(), sizes.begin() + merged.axis);
    merged.after = merged.before;
    merged.before.push_back(outer);
    merged.after.push_back(merged.inner * outer);
    merged.before.insert(merged.before.end(), sizes.begin() + dim, sizes.end());
    merged.after.insert(merged.after.end(), sizes.begin() + dim + 1,
                        sizes.end());
    found.push_back(std::move(merged));
  };
  auto split = [&](unsigned dim, const SizeExpr &outer, const SizeExpr &inner) {
    Regrouping parted{sizes, sizes, dim, outer, inner};
    parted.after[dim] = outer;
    parted.after.insert(parted.after.begin() + dim + 1, inner);
    if (llvm::none_of(found, [&](const Regrouping &other) {
          return other.after == parted.after;
        }))
      found.push_back(std::move(parted));
  };
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].isConstant())
      continue;
    SizeExpr outer = 1;
    for (unsigned count = 1; count <= dim; ++count) {
      // A map takes one of them that varies with numbers as one dimension.
      if (!outer.isConstant() && !sizes[dim - count].isConstant())
        break;
      outer = outer * sizes[dim - count];
      merge(dim, count, outer);
    }
    // The view steps from one part to the next one.
    for (const SizeExpr &stride : strides) {
      std::optional<SizeExpr> inner = stride.dividedBy(rowMajor[dim]);
      if (!inner || inner->isConstant())
        continue;
      std::optional<SizeExpr> parts = sizes[dim].dividedBy(*inner);
      if (parts && parts->isConstant() && parts->constant() > 1)
        split(dim, *parts, *inner);
    }
  }
  return found;
}
