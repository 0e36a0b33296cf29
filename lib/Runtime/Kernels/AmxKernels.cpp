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
// sum. Products of low parts that are all zero are left out: they would change
// no bit, because no sum is -0 after the products of high parts. So a model
// whose weights were bf16 numbers takes half of the time.
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
/// Operand of the instruction that configures tiles. 0 and 1 are tiles of C, 4
/// and 5 of A, 6 and 7 of B; 2 and 3 are of C, too, or of B where there is one
/// tile of rows only. Up to 16 rows are so many rows of tiles of C and A.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  explicit TileConfiguration(size_t rowsOfC) {
    for (int tile = 0; tile < 8; ++tile) {
      rowBytes[tile] = kTileRowBytes;
      rows[tile] = tile % 4 < 2 ? uint8_t(rowsOfC) : kTile;
    }
  }
};

/// A packed block and what is known of it.
struct Block {
  const uint8_t *packed;
  bool hasLow;
  size_t lines;
};
} // namespace

/// C += A * B for two tiles of rows, and so many of columns, and packed blocks.
template <int ColumnTiles>
static void multiplyTwoTiles(const Block &blockA, const Block &blockB,
                             size_t steps, float *c, ptrdiff_t rowStride) {
  const uint8_t *a = blockA.packed, *b = blockB.packed;
  const ptrdiff_t bytes = rowStride * ptrdiff_t(sizeof(float));
  float *below = c + ptrdiff_t(kTile) * rowStride;
  // Tiles have to be constants.
  _tile_loadd(0, c, bytes);
  _tile_loadd(2, below, bytes);
  if constexpr (ColumnTiles > 1) {
    _tile_loadd(1, c + kTile, bytes);
    _tile_loadd(3, below + kTile, bytes);
  }
  auto loadA = [&](const uint8_t *part) SPYRE_INLINE_LAMBDA {
    _tile_loadd(4, part, kTileRowBytes);
    _tile_loadd(5, part + kTileBytes, kTileRowBytes);
  };
  auto loadB = [&](const uint8_t *part) SPYRE_INLINE_LAMBDA {
    _tile_loadd(6, part, kTileRowBytes);
    if constexpr (ColumnTiles > 1)
      _tile_loadd(7, part + kTileBytes, kTileRowBytes);
  };
  auto multiply = [&]() SPYRE_INLINE_LAMBDA {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (ColumnTiles > 1)
      _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (ColumnTiles > 1)
      _tile_dpbf16ps(3, 5, 7);
  };
  for (size_t step = 0; step < steps;
       ++step, a += kStepBytes, b += kStepBytes) {
    loadA(a);
    loadB(b);
    multiply();
    if (blockB.hasLow) {
      loadB(b + kLowBytes);
      multiply();
    }
    if (!blockA.hasLow)
      continue;
    loadA(a + kLowBytes);
    if (blockB.hasLow) {
      multiply();
      loadB(b);
    }
    multiply();
  }
  _tile_stored(0, c, bytes);
  _tile_stored(2, below, bytes);
  if constexpr (ColumnTiles > 1) {
    _tile_stored(1, c + kTile, bytes);
    _tile_stored(3, below + kTile, bytes);
  }
}

/// The same for one tile of rows, and both parts of both factors in tiles.
template <int ColumnTiles>
static void multiplyOneTile(const Block &blockA, const Block &blockB,
                            size_t steps, float *c, ptrdiff_t rowStride) {
  const uint8_t *a = blockA.packed, *b = blockB.packed;
  const ptrdiff_t bytes = rowStride * ptrdiff_t(sizeof(float));
  _tile_loadd(0, c, bytes);
  if constexpr (ColumnTiles > 1)
    _tile_loadd(1, c + kTile, bytes);
  for (size_t step = 0; step < steps;
       ++step, a += kStepBytes, b += kStepBytes) {
    _tile_loadd(4, a, kTileRowBytes);
    _tile_loadd(6, b, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (ColumnTiles > 1) {
      _tile_loadd(7, b + kTileBytes, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (blockB.hasLow) {
      _tile_loadd(2, b + kLowBytes, kTileRowBytes);
      _tile_dpbf16ps(0, 4, 2);
      if constexpr (ColumnTiles > 1) {
        _tile_loadd(3, b + kLowBytes + kTileBytes, kTileRowBytes);
        _tile_dpbf16ps(1, 4, 3);
      }
    }
    if (!blockA.hasLow)
      continue;
    _tile_loadd(5, a + kLowBytes, kTileRowBytes);
    if (blockB.hasLow) {
      _tile_dpbf16ps(0, 5, 2);
      if constexpr (ColumnTiles > 1)
        _tile_dpbf16ps(1, 5, 3);
    }
    _tile_dpbf16ps(0, 5, 6);
    if constexpr (ColumnTiles > 1)
      _tile_dpbf16ps(1, 5, 7);
  }
  _tile_stored(0, c, bytes);
  if constexpr (ColumnTiles > 1)
    _tile_stored(1, c + kTile, bytes);
}

/// The same for up to 32 rows and columns. Tiles of C have `tileRows` rows.
static void multiplyBlock(const Block &a, const Block &b, size_t tileRows,
                          size_t steps, float *c, ptrdiff_t rowStride) {
  alignas(64) float copy[kBlockLines * kBlockLines];
  float *target = c;
  ptrdiff_t targetStride = rowStride;
  bool isPartial = a.lines % tileRows != 0 || b.lines % kTile != 0;
  if (isPartial) {
    copyPadded({c, rowStride, 1}, a.lines, b.lines, copy);
    target = copy;
    targetStride = kBlockLines;
  }
  if (a.lines > kTile)
    (b.lines > kTile ? multiplyTwoTiles<2>
                     : multiplyTwoTiles<1>)(a, b, steps, target, targetStride);
  else
    (b.lines > kTile ? multiplyOneTile<2>
                     : multiplyOneTile<1>)(a, b, steps, target, targetStride);
  if (isPartial)
    for (size_t row = 0; row < a.lines; ++row)
      __builtin_memcpy(c + ptrdiff_t(row) * rowStride, copy + row * kBlockLines,
                       b.lines * sizeof(float));
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

namespace {
/// A part of a factor, so many lines (rows of A, columns of B) and k, packed.
/// It is known by the place and the version of its values.
struct Part {
  uint64_t version;
  const void *values;
  ptrdiff_t rowStride, otherStride;
  size_t lines, depth;
  uint8_t *packed;
  BlockTraits traits[kMaxBlocks];

  Part(const Floats &factor, uint64_t version, size_t lines, size_t depth)
      : version(version), values(factor.values), rowStride(factor.rowStride),
        otherStride(factor.columnStride), lines(lines), depth(depth) {}
  Part(const Codes &factor, uint64_t version, size_t lines, size_t depth)
      : version(version), values(factor.codes), rowStride(factor.rowStride),
        otherStride(factor.partStride), lines(lines), depth(depth) {}
  Part() = default;

  size_t numBlocks() const { return numBlocksOf(lines); }
  Block block(size_t i) const {
    return {packed + i * blockBytes(depth), traits[i].hasLow,
            atMost(kBlockLines, lines - i * kBlockLines)};
  }
  bool isSame(const Part &other) const {
    return version == other.version && values == other.values &&
           rowStride == other.rowStride && otherStride == other.otherStride &&
           lines == other.lines && depth == other.depth;
  }
  bool hasNonFinite() const {
    uint32_t lines = 0;
    for (size_t i = 0; i < numBlocks(); ++i)
      lines |= traits[i].nonFinite;
    return lines != 0;
  }
  /// Calls `function` with the number of each line that is not finite.
  template <class F>
  void forNonFinite(F function) const {
    for (size_t i = 0; i < numBlocks(); ++i) {
      size_t line = i * kBlockLines;
      for (uint32_t rest = traits[i].nonFinite; rest != 0; rest >>= 1, ++line)
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

  /// The part as it is packed, or packed by a call of `pack` with where it has
  /// to be and its traits. It stays until the next call.
  template <class F>
  const Part &find(const Part &wanted, F pack) {
    // Products often want parts in the order of the last time.
    for (size_t i = 0; i < numParts; ++i) {
      if (++last >= numParts)
        last = 0;
      if (parts[last].isSame(wanted))
        return parts[last];
    }
    size_t bytes = wanted.numBlocks() * blockBytes(wanted.depth);
    if (numParts == kMaxParts || used + bytes > capacity)
      numParts = used = 0;
    if (!memory)
      memory = static_cast<uint8_t *>(::operator new(capacity, kPage));
    last = numParts++;
    Part &part = parts[last];
    part = wanted;
    part.packed = memory + used;
    used += bytes;
    pack(part.packed, part.traits);
    return part;
  }

  /// To be called before the values of a part without a version change. All
  /// parts of a product have one, or none.
  void forgetUnversioned() {
    while (numParts > 0 && parts[numParts - 1].version == 0)
      used = size_t(parts[--numParts].packed - memory);
  }

private:
  static constexpr size_t kMaxParts = 128;
  static constexpr size_t kMaxPartBytes = kMaxBlocks * blockBytes(kMaxDepth);
  static constexpr std::align_val_t kPage{4096};
  const size_t capacity;
  uint8_t *memory = nullptr;
  size_t used = 0, numParts = 0, last = 0;
  Part parts[kMaxParts];
};

/// Each core of a group often has rows of its own, for all iterations of a
/// loop, but columns are the same for all cores.
struct PackedFactors {
  PackedFactor a{32}, b{8};
};
} // namespace

static PackedFactors &packedFactors() {
  static thread_local PackedFactors factors;
  return factors;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static void copyFloats(const Floats &factor, size_t rows, size_t columns,
                       float *result) {
  const size_t shape[] = {rows, columns};
  const ptrdiff_t to[] = {ptrdiff_t(columns), 1};
  const ptrdiff_t from[] = {factor.rowStride, factor.columnStride};
  avx512::table()->copyFloat(result, to, factor.values, from, shape, 2);
}
static void copyFloats(const Codes &factor, size_t rows, size_t columns,
                       float *result) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t j = 0; j < columns; j += kBlockLines)
      avx512::table()->loadFloatRun(
          ElementFormat::DL16, factor.from(row, j).codes,
          result + row * columns + j, atMost(kBlockLines, columns - j));
}

/// Rows of A with values that are not finite give no finite sums, nor do such
/// columns of B. They are zero on tiles, so that no other sum notices them, and
/// their own sums get the products again, as they are.
template <class A, class B>
static void addNonFinite(const Part &rows, const Part &columns, const A &a,
                         const B &b, float *c, ptrdiff_t rowStrideC) {
  const size_t m = rows.lines, n = columns.lines, k = rows.depth;
  // Not in a std::vector: the linker might take what is compiled of it here for
  // other objects, too. Kernels throw nothing.
  auto *floatsOfA =
      static_cast<float *>(::operator new((m + n) * k * sizeof(float)));
  float *floatsOfB = floatsOfA + m * k;
  copyFloats(a, m, k, floatsOfA);
  copyFloats(b, k, n, floatsOfB);
  auto multiply = [&](size_t row, size_t numRows, size_t column,
                      size_t numColumns) {
    avx512::table()->gemm(numRows, numColumns, k, floatsOfA + row * k,
                          ptrdiff_t(k), 1, floatsOfB + column, ptrdiff_t(n), 1,
                          c + ptrdiff_t(row) * rowStrideC + column, rowStrideC);
  };
  rows.forNonFinite([&](size_t row) { multiply(row, 1, 0, n); });
  columns.forNonFinite([&](size_t column) { multiply(0, m, column, 1); });
  ::operator delete(floatsOfA);
}

/// C += A * B for parts of so many rows, columns and k.
template <class A, class B>
static void multiplyParts(size_t m, size_t n, size_t k, const A &a,
                          uint64_t versionA, const B &b, uint64_t versionB,
                          size_t tileRows, float *c, ptrdiff_t rowStrideC) {
  PackedFactors &factors = packedFactors();
  const Part &rows = factors.a.find(
      Part(a, versionA, m, k),
      [&](uint8_t *to, BlockTraits *traits) { packRows(a, m, k, to, traits); });
  const Part &columns = factors.b.find(Part(b, versionB, n, k),
                                       [&](uint8_t *to, BlockTraits *traits) {
                                         packColumns(b, n, k, to, traits);
                                       });
  for (size_t j = 0; j < columns.numBlocks(); ++j) {
    const Block blockB = columns.block(j);
    for (size_t i = 0; i < rows.numBlocks(); ++i)
      multiplyBlock(rows.block(i), blockB, tileRows, numSteps(k),
                    c + ptrdiff_t(i * kBlockLines) * rowStrideC +
                        j * kBlockLines,
                    rowStrideC);
  }
  if (rows.hasNonFinite() || columns.hasNonFinite())
    addNonFinite(rows, columns, a, b, c, rowStrideC);
}

template <class A, class B>
static void multiplyOnTiles(size_t m, size_t n, size_t k, const A &a,
                            uint64_t versionA, const B &b, uint64_t versionB,
                            float *c, ptrdiff_t rowStrideC) {
  const size_t tileRows = atMost(kTile, m);
  const TileConfiguration configuration(tileRows);
  _tile_loadconfig(&configuration);
  for (size_t p = 0; p < k; p += kMaxDepth)
    for (size_t j = 0; j < n; j += kMaxLines)
      for (size_t i = 0; i < m; i += kMaxLines)
        multiplyParts(atMost(kMaxLines, m - i), atMost(kMaxLines, n - j),
                      atMost(kMaxDepth, k - p), a.from(i, p), versionA,
                      b.from(p, j), versionB, tileRows,
                      c + ptrdiff_t(i) * rowStrideC + j, rowStrideC);
  _tile_release();
  packedFactors().a.forgetUnversioned();
  packedFactors().b.forgetUnversioned();
}

/// Calls `function` with the factor as Floats or Codes.
template <class F>
static void withFactor(const HalfFactor &x, F function) {
  if (x.areCodes)
    function(Codes{static_cast<const uint16_t *>(x.values), x.rowStride,
                   x.partLength, x.partStride});
  else
    function(Floats{static_cast<const float *>(x.values), x.rowStride,
                    x.columnStride});
}

void gemmOfHalves(size_t m, size_t n, size_t k, const HalfFactor &a,
                  const HalfFactor &b, float *c, ptrdiff_t rowStrideC) {
  withFactor(a, [&](const auto &factorA) {
    withFactor(b, [&](const auto &factorB) {
      multiplyOnTiles(m, n, k, factorA, a.version, factorB, b.version, c,
                      rowStrideC);
    });
  });
}

static KernelTable makeTable() {
  KernelTable result = *avx512::table();
  result.name = "amx";
  result.gemmOfHalves = gemmOfHalves;
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
