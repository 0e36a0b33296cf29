// SPDX-License-Identifier: Apache-2.0
//===- AmxKernels.cpp - Matrix product on tiles of bf16 -------------------===//
//
// The kernels of AVX-512, but for products of halves, which AMX multiplies.
// Four products of bf16 parts (AmxPacking.h), each exact in fp32, are one of
// halves.
//
// What an element of C becomes depends on k alone. For each 32 k, filled up
// with zeros, it is increased by the products of the high parts, then of high
// and low ones, low and low ones, and low and high ones. The instruction makes
// two chains of multiply-adds from zero, of even and of odd k, and adds their
// sum.
//
//===----------------------------------------------------------------------===//

#include "AmxPacking.h"
#include "Kernels.h"
#include "Vector.h"

#include <new>
#include <sys/syscall.h>
#include <unistd.h>

namespace spyre::runtime::amx {

namespace {
/// Operand of the instruction that configures tiles.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  TileConfiguration() {
    for (int tile = 0; tile < 8; ++tile) {
      rowBytes[tile] = kTileRowBytes;
      rows[tile] = kTile;
    }
  }
};

} // namespace

/// C += A * B for so many tiles of rows and of columns, and packed blocks.
template <int RowTiles, int ColumnTiles>
static void multiply(const uint8_t *a, const uint8_t *b, size_t steps, float *c,
                     ptrdiff_t rowStride) {
  const ptrdiff_t bytes = rowStride * ptrdiff_t(sizeof(float));
  float *below = c + ptrdiff_t(kTile) * rowStride;
  // Tiles 0 to 3 are those of C, 4 and 5 of A, 6 and 7 of B. Tiles have to be
  // constants.
  _tile_loadd(0, c, bytes);
  if constexpr (ColumnTiles > 1)
    _tile_loadd(1, c + kTile, bytes);
  if constexpr (RowTiles > 1)
    _tile_loadd(2, below, bytes);
  if constexpr (RowTiles > 1 && ColumnTiles > 1)
    _tile_loadd(3, below + kTile, bytes);
  auto loadA = [&](const uint8_t *part) SPYRE_INLINE_LAMBDA {
    _tile_loadd(4, part, kTileRowBytes);
    if constexpr (RowTiles > 1)
      _tile_loadd(5, part + kTileBytes, kTileRowBytes);
  };
  auto loadB = [&](const uint8_t *part) SPYRE_INLINE_LAMBDA {
    _tile_loadd(6, part, kTileRowBytes);
    if constexpr (ColumnTiles > 1)
      _tile_loadd(7, part + kTileBytes, kTileRowBytes);
  };
  auto multiplyTiles = [&]() SPYRE_INLINE_LAMBDA {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (ColumnTiles > 1)
      _tile_dpbf16ps(1, 4, 7);
    if constexpr (RowTiles > 1)
      _tile_dpbf16ps(2, 5, 6);
    if constexpr (RowTiles > 1 && ColumnTiles > 1)
      _tile_dpbf16ps(3, 5, 7);
  };
  constexpr size_t low = 2 * kTileBytes;
  for (size_t step = 0; step < steps;
       ++step, a += kStepBytes, b += kStepBytes) {
    loadA(a);
    loadB(b);
    multiplyTiles();
    loadB(b + low);
    multiplyTiles();
    loadA(a + low);
    multiplyTiles();
    loadB(b);
    multiplyTiles();
  }
  _tile_stored(0, c, bytes);
  if constexpr (ColumnTiles > 1)
    _tile_stored(1, c + kTile, bytes);
  if constexpr (RowTiles > 1)
    _tile_stored(2, below, bytes);
  if constexpr (RowTiles > 1 && ColumnTiles > 1)
    _tile_stored(3, below + kTile, bytes);
}

/// The same for up to 32 rows and columns.
static void multiplyBlock(const uint8_t *a, const uint8_t *b, size_t steps,
                          float *c, ptrdiff_t rowStride, size_t rows,
                          size_t columns) {
  alignas(64) float copy[kBlockLines * kBlockLines];
  float *target = c;
  ptrdiff_t targetStride = rowStride;
  bool isPartial = rows % kTile != 0 || columns % kTile != 0;
  if (isPartial) {
    copyPadded({c, rowStride, 1}, rows, columns, copy);
    target = copy;
    targetStride = kBlockLines;
  }
  if (rows > kTile)
    (columns > kTile ? multiply<2, 2> : multiply<2, 1>)(a, b, steps, target,
                                                        targetStride);
  else
    (columns > kTile ? multiply<1, 2> : multiply<1, 1>)(a, b, steps, target,
                                                        targetStride);
  if (isPartial)
    for (size_t row = 0; row < rows; ++row)
      __builtin_memcpy(c + ptrdiff_t(row) * rowStride, copy + row * kBlockLines,
                       columns * sizeof(float));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static void multiplyWithoutTiles(size_t m, size_t n, size_t k, const Floats &a,
                                 const Floats &b, float *c,
                                 ptrdiff_t rowStrideC) {
  avx512::table()->gemm(m, n, k, a.values, a.rowStride, a.columnStride,
                        b.values, b.rowStride, b.columnStride, c, rowStrideC,
                        {});
}
static void multiplyWithoutTiles(size_t m, size_t n, size_t k, const Floats &a,
                                 const Codes &b, float *c,
                                 ptrdiff_t rowStrideC) {
  avx512::table()->gemmOfCodes(m, n, k, a.values, a.rowStride, a.columnStride,
                               b.codes, b.rowStride, c, rowStrideC, {});
}

namespace {
/// A part of a factor, so many lines (rows of A, columns of B) and k, packed.
/// It is known by the place and the version of its values.
struct Part {
  uint64_t version;
  const void *values;
  ptrdiff_t rowStride, columnStride;
  size_t lines, depth;
  uint8_t *packed;
  /// By block, a bit for each line with values that are not finite.
  uint32_t nonFinite[kMaxBlocks];

  Part(const Floats &factor, uint64_t version, size_t lines, size_t depth)
      : version(version), values(factor.values), rowStride(factor.rowStride),
        columnStride(factor.columnStride), lines(lines), depth(depth) {}
  /// No part of floats has the stride of columns.
  Part(const Codes &factor, uint64_t version, size_t lines, size_t depth)
      : version(version), values(factor.codes), rowStride(factor.rowStride),
        columnStride(PTRDIFF_MAX), lines(lines), depth(depth) {}
  Part() = default;

  size_t numBlocks() const { return (lines + kBlockLines - 1) / kBlockLines; }
  const uint8_t *block(size_t i) const {
    return packed + i * blockBytes(depth);
  }
  size_t linesOf(size_t block) const {
    return atMost(kBlockLines, lines - block * kBlockLines);
  }
  bool isSame(const Part &other) const {
    return version == other.version && values == other.values &&
           rowStride == other.rowStride && columnStride == other.columnStride &&
           lines == other.lines && depth == other.depth;
  }
  /// Calls `function` with the number of each line that is not finite.
  template <class F>
  void forNonFinite(F function) const {
    for (size_t i = 0; i < numBlocks(); ++i) {
      size_t line = i * kBlockLines;
      for (uint32_t rest = nonFinite[i]; rest != 0; rest >>= 1, ++line)
        if (rest & 1)
          function(line);
    }
  }
};

/// Parts of one factor that a thread has packed, as many as there is room for.
class PackedFactor {
public:
  /// With room for so many of the largest parts.
  explicit PackedFactor(size_t room) : capacity(room * kMaxPartBytes) {}
  PackedFactor(const PackedFactor &) = delete;
  PackedFactor &operator=(const PackedFactor &) = delete;
  ~PackedFactor() { ::operator delete(memory, kPage); }

  /// The part as it is packed, or packed by `pack`, which is called with it. It
  /// stays until the next call.
  template <class F>
  const Part &find(const Part &wanted, F pack) {
    for (size_t i = 0; i < numParts; ++i)
      if (parts[i].isSame(wanted))
        return parts[i];
    size_t bytes = wanted.numBlocks() * blockBytes(wanted.depth);
    forgetUnversioned();
    if (numParts == kMaxParts || used + bytes > capacity)
      numParts = used = 0;
    if (!memory)
      memory = static_cast<uint8_t *>(::operator new(capacity, kPage));
    Part &part = parts[numParts++];
    part = wanted;
    part.packed = memory + used;
    used += bytes;
    pack(part);
    return part;
  }

  /// To be called before the values of a part without a version change.
  void forgetUnversioned() {
    // There is at most one, the last.
    if (numParts > 0 && parts[numParts - 1].version == 0)
      used = size_t(parts[--numParts].packed - memory);
  }

private:
  static constexpr size_t kMaxParts = 32;
  static constexpr size_t kMaxPartBytes = kMaxBlocks * blockBytes(kMaxDepth);
  static constexpr std::align_val_t kPage{4096};
  const size_t capacity;
  uint8_t *memory = nullptr;
  size_t used = 0, numParts = 0;
  Part parts[kMaxParts];
};

/// Each core of a group often has rows of its own, for all iterations of a
/// loop, but columns are the same for all cores.
struct PackedFactors {
  PackedFactor a{8}, b{2};
};
} // namespace

static PackedFactors &packedFactors() {
  static thread_local PackedFactors factors;
  return factors;
}

/// C += A * B for parts. Rows of A with values that are not finite give no
/// finite sums, nor do such columns of B. They are zero on tiles, so that no
/// other sum notices them, and their own sums get the products again, as they
/// are.
template <class B>
static void multiplyParts(size_t m, size_t n, size_t k, const Floats &a,
                          const B &b, float *c, ptrdiff_t rowStrideC,
                          FactorTraits traits) {
  PackedFactors &factors = packedFactors();
  const Part &rows =
      factors.a.find(Part(a, traits.versionA, m, k), [&](Part &part) {
        packRows(a, m, k, part.packed, part.nonFinite);
      });
  const Part &columns =
      factors.b.find(Part(b, traits.versionB, n, k), [&](Part &part) {
        packColumns(b, n, k, part.packed, part.nonFinite);
      });
  for (size_t j = 0; j < columns.numBlocks(); ++j)
    for (size_t i = 0; i < rows.numBlocks(); ++i)
      multiplyBlock(rows.block(i), columns.block(j), numSteps(k),
                    c + ptrdiff_t(i * kBlockLines) * rowStrideC +
                        j * kBlockLines,
                    rowStrideC, rows.linesOf(i), columns.linesOf(j));
  rows.forNonFinite([&](size_t row) {
    multiplyWithoutTiles(1, n, k, a.from(row, 0), b,
                         c + ptrdiff_t(row) * rowStrideC, rowStrideC);
  });
  columns.forNonFinite([&](size_t column) {
    multiplyWithoutTiles(m, 1, k, a, b.from(0, column), c + column, rowStrideC);
  });
}

template <class B>
static void multiplyOnTiles(size_t m, size_t n, size_t k, const Floats &a,
                            const B &b, float *c, ptrdiff_t rowStrideC,
                            FactorTraits traits) {
  static const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  for (size_t p = 0; p < k; p += kMaxDepth)
    for (size_t i = 0; i < m; i += kMaxLines)
      for (size_t j = 0; j < n; j += kMaxLines)
        multiplyParts(atMost(kMaxLines, m - i), atMost(kMaxLines, n - j),
                      atMost(kMaxDepth, k - p), a.from(i, p), b.from(p, j),
                      c + ptrdiff_t(i) * rowStrideC + j, rowStrideC, traits);
  _tile_release();
  packedFactors().a.forgetUnversioned();
  packedFactors().b.forgetUnversioned();
}

/// Tiles of fewer rows would be mostly empty, and the columns are packed for
/// them alone.
static bool usesTiles(size_t m, FactorTraits traits) {
  return traits.areHalves && m > kTile / 2;
}

void gemm(size_t m, size_t n, size_t k, const float *a, ptrdiff_t rowStrideA,
          ptrdiff_t colStrideA, const float *b, ptrdiff_t rowStrideB,
          ptrdiff_t colStrideB, float *c, ptrdiff_t rowStrideC,
          FactorTraits traits) {
  if (usesTiles(m, traits))
    multiplyOnTiles(m, n, k, {a, rowStrideA, colStrideA},
                    Floats{b, rowStrideB, colStrideB}, c, rowStrideC, traits);
  else
    avx512::table()->gemm(m, n, k, a, rowStrideA, colStrideA, b, rowStrideB,
                          colStrideB, c, rowStrideC, traits);
}

void gemmOfCodes(size_t m, size_t n, size_t k, const float *a,
                 ptrdiff_t rowStrideA, ptrdiff_t colStrideA, const void *b,
                 ptrdiff_t rowStrideB, float *c, ptrdiff_t rowStrideC,
                 FactorTraits traits) {
  if (usesTiles(m, traits))
    multiplyOnTiles(m, n, k, {a, rowStrideA, colStrideA},
                    Codes{static_cast<const uint16_t *>(b), rowStrideB}, c,
                    rowStrideC, traits);
  else
    avx512::table()->gemmOfCodes(m, n, k, a, rowStrideA, colStrideA, b,
                                 rowStrideB, c, rowStrideC, traits);
}

static KernelTable makeTable() {
  KernelTable result = *avx512::table();
  result.name = "amx";
  result.gemm = gemm;
  result.gemmOfCodes = gemmOfCodes;
  return result;
}

/// Asks the kernel of the host, which has to keep tiles when it switches
/// threads. That is so for all threads of the process from then on.
static bool mayUseTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

/// Null if tiles may not be used.
const KernelTable *table() {
  static const KernelTable result = makeTable();
  static const bool isAllowed = mayUseTiles();
  return isAllowed ? &result : nullptr;
}

} // namespace spyre::runtime::amx
