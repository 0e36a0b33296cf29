//===- PlanBoxes.cpp - What each core touches of a buffer -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "PlanBoxes.h"
#include "PlanDivisions.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::spyre_graph;

void spyre_graph::subtract(Box box, const Box &hole,
                           SmallVectorImpl<Box> &rest) {
  for (unsigned dim = 0; dim < box.dims.size(); ++dim)
    if (hole.dims[dim].first >= box.dims[dim].second ||
        hole.dims[dim].second <= box.dims[dim].first) {
      rest.push_back(box);
      return;
    }
  for (unsigned dim = 0; dim < box.dims.size(); ++dim) {
    auto [low, high] = box.dims[dim];
    auto [holeLow, holeHigh] = hole.dims[dim];
    if (low < holeLow) {
      rest.push_back(box);
      rest.back().dims[dim] = {low, holeLow};
    }
    if (holeHigh < high) {
      rest.push_back(box);
      rest.back().dims[dim] = {holeHigh, high};
    }
    box.dims[dim] = {std::max(low, holeLow), std::min(high, holeHigh)};
  }
}

bool spyre_graph::isSameOnAllCores(ArrayRef<Box> boxes, unsigned dim) {
  const Box *first = nullptr;
  for (const Box &box : boxes) {
    if (box.isEmpty())
      continue;
    if (first && box.dims[dim] != first->dims[dim])
      return false;
    first = first ? first : &box;
  }
  return true;
}

bool spyre_graph::isHeld(ArrayRef<Box> held, ArrayRef<Box> boxes,
                         int64_t core) {
  if (held[core].isEmpty() || boxes[core].isEmpty())
    return boxes[core].isEmpty();
  for (unsigned dim = 0; dim < held[core].dims.size(); ++dim)
    if (held[core].dims[dim] != boxes[core].dims[dim] &&
        !(isSameOnAllCores(held, dim) && isSameOnAllCores(boxes, dim)))
      return false;
  return true;
}

std::optional<SmallVector<PlanBoxes::Range>>
PlanBoxes::getImage(ArrayRef<AffineExpr> exprs, ArrayRef<Range> loops) {
  /// Slices of more iterations are not looked at, and no box then: LX holds
  /// fewer elements.
  constexpr int64_t kMaxPoints = 1 << 24;
  std::vector<const void *> key;
  SmallVector<unsigned> used;
  for (AffineExpr expr : exprs)
    key.push_back(expr.getAsOpaquePointer());
  std::vector<int64_t> ranges;
  int64_t count = 1;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    if (llvm::none_of(exprs, [dim = dim](AffineExpr expr) {
          return expr.isFunctionOfDim(dim);
        }))
      continue;
    used.push_back(dim);
    ranges.insert(ranges.end(), {loop.first, loop.second});
    if (loop.second <= loop.first)
      return SmallVector<Range>(exprs.size(), {0, 0});
    if (loop.second - loop.first > kMaxPoints / count)
      return std::nullopt;
    count *= loop.second - loop.first;
  }
  auto [known, isNew] = images.try_emplace({key, ranges});
  if (!isNew)
    return known->second;
  SmallVector<int64_t> point(loops.size(), 0);
  auto forEachPoint = [&](auto visit) {
    for (unsigned dim : used)
      point[dim] = loops[dim].first;
    for (int64_t number = 0; number < count; ++number) {
      visit();
      for (unsigned dim : llvm::reverse(used)) {
        if (++point[dim] < loops[dim].second)
          break;
        point[dim] = loops[dim].first;
      }
    }
  };
  SmallVector<Range> image(exprs.size(), {std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min()});
  forEachPoint([&] {
    for (auto [expr, range] : llvm::zip_equal(exprs, image)) {
      int64_t value = evaluate(expr, point);
      range.first = std::min(range.first, value);
      range.second = std::max(range.second, value + 1);
    }
  });
  int64_t volume = 1;
  for (auto [low, high] : image) {
    if (high - low > count / volume)
      return std::nullopt;
    volume *= high - low;
  }
  llvm::BitVector seen(volume);
  forEachPoint([&] {
    int64_t index = 0;
    for (auto [expr, range] : llvm::zip_equal(exprs, image))
      index = index * (range.second - range.first) + evaluate(expr, point) -
              range.first;
    seen.set(index);
  });
  if (seen.all())
    known->second = image;
  return known->second;
}

bool PlanBoxes::getBox(AffineMap map, ArrayRef<int64_t> extents,
                       WorkDivisionAttr division, int64_t core, Box &box) {
  SmallVector<Range> loops;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    int64_t low =
        getPlannedSlice(division, core, dim) * division.getChunks()[dim];
    loops.push_back(
        {low, std::min(low + division.getChunks()[dim], extents[dim])});
  }
  box.dims.assign(map.getNumResults(), {0, 0});
  if (core >= division.getNumCores())
    return true;
  llvm::SmallBitVector seen(map.getNumDims());
  bool isPlain = true;
  for (auto [expr, range] : llvm::zip_equal(map.getResults(), box.dims)) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      range = {constant.getValue(), constant.getValue() + 1};
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || seen.test(dim.getPosition())) {
      isPlain = false;
      break;
    }
    seen.set(dim.getPosition());
    range = loops[dim.getPosition()];
  }
  if (isPlain)
    return true;
  // Coordinates that depend on common loops are looked at together.
  unsigned numResults = map.getNumResults();
  llvm::EquivalenceClasses<unsigned> together;
  for (auto [number, expr] : llvm::enumerate(map.getResults())) {
    together.insert(number);
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (expr.isFunctionOfDim(dim))
        together.unionSets(number, numResults + dim);
  }
  for (const auto *group : together) {
    if (!group->isLeader())
      continue;
    SmallVector<unsigned> numbers;
    SmallVector<AffineExpr> exprs;
    for (unsigned member : together.members(*group))
      if (member < numResults) {
        numbers.push_back(member);
        exprs.push_back(map.getResult(member));
      }
    auto image = getImage(exprs, loops);
    if (!image)
      return false;
    for (auto [number, range] : llvm::zip_equal(numbers, *image))
      box.dims[number] = range;
  }
  return true;
}

/// The lengths of runs that a sum of loop dimensions, which count in mixed
/// radix, consists of, innermost first, and how far apart they start; a third
/// loop that belongs to neither makes it none.
static std::optional<SmallVector<std::pair<int64_t, int64_t>>>
getRuns(ArrayRef<int64_t> form, ArrayRef<int64_t> extents,
        llvm::SmallBitVector &seen) {
  SmallVector<std::pair<int64_t, unsigned>> terms;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (form[dim] == 0 || extents[dim] == 1)
      continue;
    if (seen.test(dim))
      return std::nullopt;
    seen.set(dim);
    terms.push_back({form[dim], dim});
  }
  llvm::sort(terms);
  SmallVector<std::pair<int64_t, int64_t>> runs{{1, 1}};
  for (auto [coefficient, dim] : terms) {
    auto &[count, step] = runs.back();
    if (coefficient == count * step)
      count *= extents[dim];
    else if (runs.size() == 1 && coefficient > count)
      runs.push_back({extents[dim], coefficient});
    else
      return std::nullopt;
  }
  return runs;
}

std::optional<Box> RowParts::add(AffineMap map, ArrayRef<int64_t> extents,
                                 const Box &accessed, bool mayBePart) {
  llvm::SmallBitVector seen(map.getNumDims());
  Box whole = accessed;
  std::optional<unsigned> cut;
  int64_t period = 0, first = 0, width = 0;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto form = getLinearForm(expr, map.getNumDims());
    if (!form)
      return std::nullopt;
    auto runs = getRuns(ArrayRef(*form).drop_back(), extents, seen);
    if (!runs || (runs->size() > 1 && (cut || !mayBePart)))
      return std::nullopt;
    if (runs->size() == 1)
      continue;
    cut = dim;
    auto [count, step] = runs->back();
    period = step;
    width = runs->front().first;
    first = llvm::mod(form->back(), period);
    if (first + width > period)
      return std::nullopt;
    int64_t start = form->back() - first;
    whole.dims[dim] = {start, start + count * period};
  }
  if (!cut)
    return accessed;
  std::vector<int64_t> key{*cut, period};
  for (auto [low, high] : whole.dims)
    key.insert(key.end(), {low, high});
  auto [rest, isNew] = missing.try_emplace(std::move(key));
  if (isNew)
    rest->second.push_back({{{0, period}}});
  SmallVector<Box> still;
  for (const Box &part : rest->second)
    subtract(part, {{{first, first + width}}}, still);
  rest->second = std::move(still);
  if (!rest->second.empty())
    return std::nullopt;
  return whole;
}
