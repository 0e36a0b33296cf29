// SPDX-License-Identifier: Apache-2.0
//===- SizeExpr.cpp - Sizes that may vary -----------------------*- C++ -*-===//

#include "Spyre/Support/SizeExpr.h"

#include "Spyre/Support/Error.h"

#include <algorithm>

using namespace spyre;

static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error("sizes overflow 64 bits");
  return product;
}

static int64_t sumOf(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    throw Error("sizes overflow 64 bits");
  return sum;
}

SizeExpr SizeExpr::symbol(int position) { return term(1, {position}); }

SizeExpr SizeExpr::term(int64_t factor, std::vector<int> symbols) {
  if (symbols.empty())
    return factor;
  std::sort(symbols.begin(), symbols.end());
  SizeExpr result;
  result.add({std::move(symbols), factor});
  return result;
}

void SizeExpr::add(const Term &term) {
  auto place = std::lower_bound(
      sum.begin(), sum.end(), term,
      [](const Term &a, const Term &b) { return a.symbols < b.symbols; });
  if (place == sum.end() || place->symbols != term.symbols)
    place = sum.insert(place, {term.symbols, 0});
  place->factor = sumOf(place->factor, term.factor);
  if (place->factor == 0)
    sum.erase(place);
}

SizeExpr SizeExpr::operator+(const SizeExpr &other) const {
  SizeExpr result = *this;
  result.number = sumOf(number, other.number);
  for (const Term &term : other.sum)
    result.add(term);
  return result;
}

SizeExpr SizeExpr::operator-(const SizeExpr &other) const {
  return *this + other * SizeExpr(-1);
}

SizeExpr SizeExpr::operator*(const SizeExpr &other) const {
  SizeExpr result(multiply(number, other.number));
  for (const Term &term : sum)
    if (other.number != 0)
      result.add({term.symbols, multiply(term.factor, other.number)});
  for (const Term &term : other.sum) {
    if (number != 0)
      result.add({term.symbols, multiply(term.factor, number)});
    for (const Term &own : sum) {
      std::vector<int> symbols(own.symbols);
      symbols.insert(symbols.end(), term.symbols.begin(), term.symbols.end());
      result =
          result + SizeExpr::term(multiply(own.factor, term.factor), symbols);
    }
  }
  return result;
}

/// The term that gives `own` when multiplied with `other`.
static std::optional<SizeExpr::Term> divide(const SizeExpr::Term &own,
                                            const SizeExpr::Term &other) {
  std::vector<int> symbols;
  std::set_difference(own.symbols.begin(), own.symbols.end(),
                      other.symbols.begin(), other.symbols.end(),
                      std::back_inserter(symbols));
  if (symbols.size() + other.symbols.size() != own.symbols.size() ||
      own.factor % other.factor != 0)
    return std::nullopt;
  return SizeExpr::Term{symbols, own.factor / other.factor};
}

std::optional<SizeExpr> SizeExpr::dividedBy(const SizeExpr &divisor) const {
  if (isConstant() && number == 0)
    return SizeExpr(0);
  // The last terms have the quotient as ratio, or, without terms, the numbers.
  SizeExpr quotient;
  if (divisor.isConstant()) {
    if (divisor.number == 0 || number % divisor.number != 0)
      return std::nullopt;
    quotient.number = number / divisor.number;
    for (const Term &term : sum) {
      if (term.factor % divisor.number != 0)
        return std::nullopt;
      quotient.add({term.symbols, term.factor / divisor.number});
    }
    return quotient;
  }
  if (divisor.number == 0 && divisor.sum.size() == 1) {
    if (number != 0)
      return std::nullopt;
    for (const Term &own : sum) {
      std::optional<Term> ratio = divide(own, divisor.sum.front());
      if (!ratio)
        return std::nullopt;
      quotient = quotient + term(ratio->factor, ratio->symbols);
    }
    return quotient;
  }
  if (isConstant())
    return std::nullopt;
  std::optional<Term> ratio = divide(sum.back(), divisor.sum.back());
  if (!ratio)
    return std::nullopt;
  quotient = term(ratio->factor, ratio->symbols);
  if (quotient * divisor != *this)
    return std::nullopt;
  return quotient;
}

int64_t SizeExpr::at(const std::vector<int64_t> &sizes) const {
  int64_t value = number;
  for (const Term &term : sum) {
    int64_t product = term.factor;
    for (int symbol : term.symbols)
      product = multiply(product, sizes.at(symbol));
    value = sumOf(value, product);
  }
  return value;
}

int64_t SizeExpr::lowerBound(const std::vector<SizeRange> &ranges) const {
  // Of each symbol, how much larger than its least size it is: a x b - b is
  // then a sum without negative terms.
  SizeExpr beyond = number;
  for (const Term &term : sum) {
    SizeExpr product = term.factor;
    for (int symbol : term.symbols)
      product = product * (SizeExpr::symbol(symbol) + ranges.at(symbol).least);
    beyond = beyond + product;
  }
  int64_t bound = beyond.number;
  for (const Term &term : beyond.sum) {
    if (term.factor > 0)
      continue;
    int64_t product = term.factor;
    for (int symbol : term.symbols)
      product =
          multiply(product, ranges.at(symbol).most - ranges.at(symbol).least);
    bound = sumOf(bound, product);
  }
  return bound;
}

int64_t SizeExpr::upperBound(const std::vector<SizeRange> &ranges) const {
  return isConstant() ? number : -(SizeExpr(0) - *this).lowerBound(ranges);
}

std::string SizeExpr::str() const {
  std::string text;
  for (const Term &term : sum) {
    text += text.empty() ? "" : " + ";
    if (term.factor != 1)
      text += std::to_string(term.factor) + " x ";
    for (size_t i = 0; i < term.symbols.size(); ++i)
      text += (i ? " x s" : "s") + std::to_string(term.symbols[i]);
  }
  if (text.empty() || number != 0)
    text += (text.empty() ? "" : " + ") + std::to_string(number);
  return text;
}

bool SizeList::varies() const {
  return std::any_of(begin(), end(),
                     [](const SizeExpr &size) { return !size.isConstant(); });
}

std::vector<int64_t> SizeList::at(const std::vector<int64_t> &sizes) const {
  std::vector<int64_t> numbers;
  for (const SizeExpr &size : *this)
    numbers.push_back(size.at(sizes));
  return numbers;
}

std::vector<int64_t>
SizeList::upperBounds(const std::vector<SizeRange> &ranges) const {
  std::vector<int64_t> numbers;
  for (const SizeExpr &size : *this)
    numbers.push_back(size.upperBound(ranges));
  return numbers;
}

std::string SizeList::str() const {
  std::string text = "[";
  for (const SizeExpr &size : *this)
    text += (text.size() > 1 ? ", " : "") + size.str();
  return text + "]";
}
