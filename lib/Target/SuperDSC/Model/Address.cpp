// SPDX-License-Identifier: Apache-2.0
//===- Address.cpp - Values that depend on sizes ----------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/Model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace spyre::superdsc;

bool Sdsc::isSized() const {
  return std::any_of(dims.begin(), dims.end(),
                     [](const Dim &dim) { return dim.symbol.has_value(); });
}

bool spyre::superdsc::isSizeName(const std::string &name) {
  return !name.empty() && name.size() <= 64 &&
         !llvm::StringRef(name).ends_with("_base") &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::optional<size_t> Address::getSize() const {
  bool isPlain = base == None && offset == 0 && sizes.size() == 1 &&
                 sizes[0].factor == 1 && sizes[0].divisor == 1 &&
                 std::all_of(strides.begin(), strides.end(),
                             [](int64_t stride) { return stride == 0; });
  if (!isPlain)
    return std::nullopt;
  return sizes[0].size;
}

bool Address::add(const SizeTerm &term) {
  auto place = std::lower_bound(
      sizes.begin(), sizes.end(), term.size,
      [](const SizeTerm &own, size_t size) { return own.size < size; });
  SizeTerm sum = term;
  if (place != sizes.end() && place->size == term.size) {
    int64_t left, right;
    if (llvm::MulOverflow(place->factor, term.divisor, left) ||
        llvm::MulOverflow(term.factor, place->divisor, right) ||
        llvm::AddOverflow(left, right, sum.factor) ||
        llvm::MulOverflow(place->divisor, term.divisor, sum.divisor))
      return false;
    place = sizes.erase(place);
  }
  if (sum.factor == 0)
    return true;
  int64_t common = std::gcd(sum.factor, sum.divisor);
  sum.factor /= common;
  sum.divisor /= common;
  sizes.insert(place, sum);
  return true;
}
