// SPDX-License-Identifier: Apache-2.0
//===- AmxPacking.h - Factors as tiles of bf16 ------------------*- C++ -*-===//
//
// A number of at most 16 significant bits is the sum of two bf16 numbers, its
// high and its low part.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_AMXPACKING_H
#define SPYRE_LIB_RUNTIME_KERNELS_AMXPACKING_H

#include "Spyre/Runtime/Kernels/TileKernels.h"

#include <cstddef>
#include <cstdint>

namespace spyre::runtime {
namespace avx512 {
const KernelTable *table();
} // namespace avx512

namespace amx {

// Tiles: rows and columns of C, k of a factor.
constexpr size_t kTile = 16;
constexpr size_t kTileDepth = 32;
constexpr size_t kTileBytes = 1024;
constexpr size_t kTileRowBytes = 64;

// What is multiplied at a time: two by two tiles of C. For each 32 k a block of
// a factor has the high parts of its two tiles, then the low ones.
constexpr size_t kBlockLines = 2 * kTile;
constexpr size_t kStepBytes = 4 * kTileBytes;
constexpr size_t kLowBytes = 2 * kTileBytes; // where those are

// So many rows, columns and k are multiplied at a time. A block of B, 16 KiB,
// is in the first-level cache meanwhile, and parts of both factors, of 128 KiB,
// in the second-level one.
constexpr size_t kMaxBlocks = 8;
constexpr size_t kMaxLines = kMaxBlocks * kBlockLines;
constexpr size_t kMaxDepth = 4 * kTileDepth;

// Neither a block of columns nor the k of a step is in two parts.
static_assert(kHalfPart % kBlockLines == 0 && kHalfPart % kTileDepth == 0);

/// A factor of floats.
struct Floats {
  const float *values;
  ptrdiff_t rowStride, columnStride;

  static Floats of(const HalfFactor &factor) {
    return {static_cast<const float *>(factor.values), factor.rowStride,
            factor.columnStride};
  }
  Floats from(size_t row, size_t column) const {
    return {values + ptrdiff_t(row) * rowStride +
                ptrdiff_t(column) * columnStride,
            rowStride, columnStride};
  }
};

/// A factor of DL16 codes whose rows are dense, but for parts (HalfFactor).
struct Codes {
  const uint16_t *codes;
  ptrdiff_t rowStride;
  size_t partLength;
  ptrdiff_t partStride;

  static Codes of(const HalfFactor &factor) {
    return {static_cast<const uint16_t *>(factor.values), factor.rowStride,
            factor.partLength, factor.partStride};
  }
  /// `column` is that of a block or of a step.
  Codes from(size_t row, size_t column) const {
    return {codes + ptrdiff_t(row) * rowStride + offsetOf(column), rowStride,
            partLength, partStride};
  }
  ptrdiff_t offsetOf(size_t column) const {
    return column < partLength ? ptrdiff_t(column)
                               : ptrdiff_t(column / partLength) * partStride +
                                     ptrdiff_t(column % partLength);
  }
};

constexpr size_t atMost(size_t limit, size_t n) {
  return n < limit ? n : limit;
}

constexpr size_t numSteps(size_t depth) {
  return (depth + kTileDepth - 1) / kTileDepth;
}
constexpr size_t blockBytes(size_t depth) {
  return numSteps(depth) * kStepBytes;
}
constexpr size_t numBlocksOf(size_t lines) {
  return (lines + kBlockLines - 1) / kBlockLines;
}

/// What is known of 32 packed lines: rows of A or columns of B.
struct BlockTraits {
  /// A bit for each line with values that are not finite.
  uint32_t nonFinite;
  /// Whether a low part is not zero.
  bool hasLow;
};

/// Rows of A that lie in one place.
template <class A>
struct Rows {
  A a;
  size_t count;
};

// They pack rows of A, from one place after another, or columns of B, at most
// kMaxLines, in blocks of blockBytes(depth). Values that are not finite become
// 0.

void packRows(const Rows<Floats> *places, size_t lines, size_t depth,
              uint8_t *blocks, BlockTraits *traits);
void packRows(const Rows<Codes> *places, size_t lines, size_t depth,
              uint8_t *blocks, BlockTraits *traits);
void packColumns(const Floats &b, size_t columns, size_t depth, uint8_t *blocks,
                 BlockTraits *traits);
void packColumns(const Codes &b, size_t columns, size_t depth, uint8_t *blocks,
                 BlockTraits *traits);

} // namespace amx
} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_KERNELS_AMXPACKING_H
