//===- Slicing.cpp - The part of a buffer that a core touches ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// coefficient x ((loop floordiv divisor) mod count).
struct Digit {
  unsigned loop;
  int64_t divisor, count, coefficient;

  /// Loop iterations after which the digit is the same again.
  int64_t getPeriod() const { return divisor * count; }
};

/// The digit that `expr` is, without coefficient: d, d floordiv c, d mod c or
/// (d floordiv c) mod c', the loop's extent being a multiple of all of them.
std::optional<Digit> getDigit(AffineExpr expr, ArrayRef<int64_t> extents) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Digit{dim.getPosition(), 1, extents[dim.getPosition()], 1};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (binary.getKind() != AffineExprKind::FloorDiv &&
                  binary.getKind() != AffineExprKind::Mod))
    return std::nullopt;
  auto number = dyn_cast<AffineConstantExpr>(binary.getRHS());
  std::optional<Digit> digit = getDigit(binary.getLHS(), extents);
  if (!number || number.getValue() <= 0 || !digit ||
      digit->count % number.getValue() != 0)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Mod) {
    digit->count = number.getValue();
  } else {
    digit->divisor *= number.getValue();
    digit->count /= number.getValue();
  }
  return digit;
}

/// The terms of `expr` if it is a sum of digits and a constant.
bool collectDigits(AffineExpr expr, int64_t coefficient,
                   ArrayRef<int64_t> extents, SmallVectorImpl<Digit> &digits,
                   int64_t &constant) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
    constant += coefficient * number.getValue();
    return true;
  }
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (binary.getKind() == AffineExprKind::Add)
      return collectDigits(binary.getLHS(), coefficient, extents, digits,
                           constant) &&
             collectDigits(binary.getRHS(), coefficient, extents, digits,
                           constant);
    if (binary.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
        return collectDigits(binary.getLHS(), coefficient * factor.getValue(),
                             extents, digits, constant);
  }
  std::optional<Digit> digit = getDigit(expr, extents);
  if (!digit)
    return false;
  digit->coefficient = coefficient;
  digits.push_back(*digit);
  return true;
}

/// The values of a digit that a slice of its loop has, which follow each other:
/// the same ones in slices a period apart. Nothing if slices begin elsewhere.
std::optional<SliceDim> divide(const Digit &digit, int64_t split, int64_t chunk,
                               int64_t coreStride, int64_t extent) {
  int64_t period = digit.getPeriod();
  if (split == 1 || (period > 0 && chunk % period == 0))
    return SliceDim{1, 1, digit.count, digit.count, 0};
  // The last slices of the leading digit may hold less.
  bool isLeading = period == extent;
  bool endsAtPeriods = chunk > 0 && period % chunk == 0;
  if (chunk % digit.divisor == 0 && (isLeading || endsAtPeriods))
    return SliceDim{coreStride, isLeading ? split : period / chunk,
                    chunk / digit.divisor, digit.count, 0};
  if (chunk > 0 && digit.divisor % chunk == 0)
    return SliceDim{coreStride * (digit.divisor / chunk), digit.count, 1,
                    digit.count, 0};
  return std::nullopt;
}

/// Puts a digit in front of those that count up to `slice.extent`. Returns
/// false if the slices of both together do not follow each other.
bool prepend(SliceDim &slice, const SliceDim &digit) {
  if (slice.split == 1) {
    slice.chunk *= digit.chunk;
    slice.split = digit.split;
    slice.stride = digit.split == 1 ? 1 : digit.stride;
  } else if (digit.extent > 1) {
    // Each core has one value of the digit; the next value begins where the
    // last slice of the others ends.
    bool isEven = slice.chunk * slice.split == slice.extent;
    if (digit.chunk != 1 || digit.split != digit.extent || !isEven ||
        digit.stride != slice.stride * slice.split)
      return false;
    slice.split *= digit.split;
  }
  slice.extent *= digit.extent;
  return true;
}

} // namespace

SmallVector<int64_t> Slicing::getLocalShape() const {
  SmallVector<int64_t> shape;
  for (const SliceDim &dim : dims)
    shape.push_back(std::min(dim.chunk, dim.extent));
  return shape;
}

bool Slicing::covers(ArrayRef<int64_t> shape) const {
  for (auto [dim, extent] : llvm::zip_equal(dims, shape))
    if (dim.offset != 0 || dim.extent != extent)
      return false;
  return true;
}

std::optional<Slicing> Slicing::getHeld(ArrayRef<int64_t> shape) const {
  Slicing held = *this;
  for (auto [dim, extent] : llvm::zip_equal(held.dims, shape)) {
    bool isWhole = dim.offset == 0 && dim.extent == extent;
    if (dim.split == 1 && !(isWhole && dim.extentAt))
      dim = {1, 1, extent, extent, 0};
    else if (!isWhole)
      return std::nullopt;
  }
  return held;
}

bool Slicing::varies() const {
  return llvm::any_of(dims,
                      [](const SliceDim &dim) { return bool(dim.extentAt); });
}

bool spyre_graph::isInLoopDims(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr result : map.getResults()) {
    if (isa<AffineConstantExpr>(result))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (!dim || seen.test(dim.getPosition()))
      return false;
    seen.set(dim.getPosition());
  }
  return true;
}

std::optional<Slicing>
spyre_graph::getSlicing(AffineMap map, ArrayRef<int64_t> extents,
                        ArrayRef<int64_t> splits, ArrayRef<int64_t> chunks,
                        ArrayRef<int64_t> coreStrides, AffineMap extentMap,
                        AffineMap chunkMap) {
  Slicing slicing;
  slicing.numCores = 1;
  for (int64_t split : splits)
    slicing.numCores *= split;
  bool hasWindows = false;
  SmallVector<Digit> seen;
  for (AffineExpr result : map.getResults()) {
    SliceDim &slice = slicing.dims.emplace_back(SliceDim{1, 1, 1, 1, 0});
    SmallVector<Digit, 2> digits;
    if (!collectDigits(result, 1, extents, digits, slice.offset))
      return std::nullopt;
    // Each part of a loop's count once: else the coordinates are a diagonal.
    for (const Digit &digit : digits) {
      if (llvm::any_of(seen, [&](const Digit &other) {
            return digit.loop == other.loop &&
                   digit.divisor < other.getPeriod() &&
                   other.divisor < digit.getPeriod();
          }))
        return std::nullopt;
      seen.push_back(digit);
    }
    llvm::sort(digits, [](const Digit &a, const Digit &b) {
      return std::tie(a.coefficient, a.count) <
             std::tie(b.coefficient, b.count);
    });
    for (const Digit &digit : digits) {
      int64_t split = splits[digit.loop];
      if (digit.count == 1 && split == 1)
        continue;
      // No gaps. Windows have elements of each other: a core has all of them.
      if (digit.coefficient > 0 && digit.coefficient < slice.extent &&
          split == 1 && slice.split == 1 && !slice.extentAt &&
          !spyre_graph::varies(extentMap, digit.loop)) {
        slice.extent += digit.coefficient * (digit.count - 1);
        slice.chunk = slice.extent;
        hasWindows = true;
        continue;
      }
      if (digit.coefficient != slice.extent)
        return std::nullopt;
      if (spyre_graph::varies(extentMap, digit.loop)) {
        if (digit.divisor != 1 || digit.getPeriod() != extents[digit.loop] ||
            &digit != &digits.back() || slice.split != 1)
          return std::nullopt;
        slice.extentAt = extentMap.getResult(digit.loop) * slice.extent;
        slice.chunkAt = split == 1
                            ? slice.extentAt
                            : chunkMap.getResult(digit.loop) * slice.chunk;
      }
      std::optional<SliceDim> values =
          divide(digit, split, chunks[digit.loop], coreStrides[digit.loop],
                 extents[digit.loop]);
      if (!values || !prepend(slice, *values))
        return std::nullopt;
    }
  }
  // All of an operand would go around the ring to every core.
  if (hasWindows && slicing.numCores > 1 &&
      llvm::all_of(slicing.dims,
                   [](const SliceDim &dim) { return dim.split == 1; }))
    return std::nullopt;
  return slicing;
}

std::optional<Slicing> spyre_graph::getSlicing(SpyreOpInterface op,
                                               unsigned operand) {
  WorkDivisionAttr division = op.getAccessDivision(operand);
  return getSlicing(op.getIndexingMaps()[operand], op.getLoopExtents(),
                    division.getSplits(), division.getChunks(),
                    division.getCoreStrides(), op.getLoopExtentMap(),
                    division.getChunkMap());
}
