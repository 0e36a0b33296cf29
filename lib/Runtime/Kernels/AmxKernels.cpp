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

#include "AmxFactors.h"
#include "Kernels.h"
#include "Vector.h"

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

/// A tile of C, or a row of them.
struct Tile {
  float *first;
  ptrdiff_t rowStride;

  ptrdiff_t rowBytes() const { return rowStride * ptrdiff_t(sizeof(float)); }
};
} // namespace

/// C += A * B for two tiles of rows, and so many of columns, and packed blocks.
template <int ColumnTiles>
static void multiplyTwoTiles(const Block &blockA, const Block &blockB, float *c,
                             ptrdiff_t bytes, float *below,
                             ptrdiff_t bytesBelow) {
  const uint8_t *a = blockA.packed, *b = blockB.packed;
  // Tiles have to be constants.
  _tile_loadd(0, c, bytes);
  _tile_loadd(2, below, bytesBelow);
  if constexpr (ColumnTiles > 1) {
    _tile_loadd(1, c + kTile, bytes);
    _tile_loadd(3, below + kTile, bytesBelow);
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
  for (size_t step = 0; step < blockA.steps;
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
  _tile_stored(2, below, bytesBelow);
  if constexpr (ColumnTiles > 1) {
    _tile_stored(1, c + kTile, bytes);
    _tile_stored(3, below + kTile, bytesBelow);
  }
}

/// The same for one tile of rows, and both parts of both factors in tiles.
template <int ColumnTiles>
static void multiplyOneTile(const Block &blockA, const Block &blockB, float *c,
                            ptrdiff_t bytes) {
  const uint8_t *a = blockA.packed, *b = blockB.packed;
  _tile_loadd(0, c, bytes);
  if constexpr (ColumnTiles > 1)
    _tile_loadd(1, c + kTile, bytes);
  for (size_t step = 0; step < blockA.steps;
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

namespace {
/// Rows of A that lie in one place, with their sums.
template <class A>
struct Group : Rows<A> {
  uint64_t version;
  float *c;
  ptrdiff_t rowStrideC;
};

/// Rows of one or several products, at most kMaxLines.
template <class A>
struct Batch {
  Group<A> groups[kMaxPlaces];
  size_t numGroups = 0, lines = 0;

  /// Takes as many rows as there is room for from a product from `row` on.
  /// Returns how many.
  size_t add(const HalfProduct &product, size_t row) {
    size_t count = atMost(product.rows - row, kMaxLines - lines);
    if (numGroups == kMaxPlaces || count == 0)
      return 0;
    Group<A> &group = groups[numGroups++];
    group.a = A::of(product.a).from(row, 0);
    group.count = count;
    group.version = product.a.version;
    group.c = product.c + ptrdiff_t(row) * product.rowStrideC;
    group.rowStrideC = product.rowStrideC;
    lines += count;
    return count;
  }
};

/// Some columns of C for a batch: where its tiles of rows are.
struct Sums {
  Tile tiles[kMaxLines / kTile];

  float *row(size_t line) const {
    const Tile &tile = tiles[line / kTile];
    return tile.first + ptrdiff_t(line % kTile) * tile.rowStride;
  }
};
} // namespace

/// The sums from column `column` on: tiles that are whole, and in one place,
/// where they are, and copies of others.
template <class A>
static Sums makeSums(const Batch<A> &batch, size_t column, size_t columns) {
  Sums sums;
  const size_t tileRows = atMost(kTile, batch.lines);
  size_t line = 0;
  for (size_t i = 0; i < batch.numGroups; ++i) {
    const Group<A> &group = batch.groups[i];
    float *row = group.c + column;
    for (size_t left = group.count; left > 0;
         --left, ++line, row += group.rowStrideC) {
      Tile &tile = sums.tiles[line / kTile];
      if (line % kTile == 0 && columns % kTile == 0 && left >= tileRows)
        tile = {row, group.rowStrideC};
      else if (line % kTile == 0)
        tile = {packedFactors().roomForSums() + line * kMaxLines,
                ptrdiff_t(kMaxLines)};
      if (sums.row(line) != row)
        __builtin_memcpy(sums.row(line), row, columns * sizeof(float));
    }
  }
  return sums;
}

template <class A>
static void storeSums(const Batch<A> &batch, const Sums &sums, size_t column,
                      size_t columns) {
  size_t line = 0;
  for (size_t i = 0; i < batch.numGroups; ++i) {
    const Group<A> &group = batch.groups[i];
    for (size_t j = 0; j < group.count; ++j, ++line) {
      float *row = group.c + ptrdiff_t(j) * group.rowStrideC + column;
      if (sums.row(line) != row)
        __builtin_memcpy(row, sums.row(line), columns * sizeof(float));
    }
  }
}

/// Rows of A with values that are not finite give no finite sums, nor do such
/// columns of B. They are zero on tiles, so that no other sum notices them, and
/// their own sums get the products again, as they are.
template <class A, class B>
static void addNonFinite(const Batch<A> &batch, const Part &rows,
                         const Part &columns, const B &b, size_t p,
                         const Sums &sums) {
  const size_t n = columns.lines, k = rows.depth;
  // Not in a std::vector: the linker might take what is compiled of it here for
  // other objects, too. Kernels throw nothing.
  auto *row = static_cast<float *>(::operator new((1 + n) * k * sizeof(float)));
  float *floatsOfB = row + k;
  copyFloats(b, k, n, floatsOfB);
  size_t line = 0;
  auto multiply = [&](size_t column, size_t numColumns) {
    avx512::table()->gemm(1, numColumns, k, row, ptrdiff_t(k), 1,
                          floatsOfB + column, ptrdiff_t(n), 1,
                          sums.row(line) + column, 0);
  };
  for (size_t i = 0; i < batch.numGroups; ++i)
    for (size_t j = 0; j < batch.groups[i].count; ++j, ++line) {
      copyFloats(batch.groups[i].a.from(j, p), 1, k, row);
      if (rows.isNonFinite(line))
        multiply(0, n);
      else
        columns.forNonFinite([&](size_t column) { multiply(column, 1); });
    }
  ::operator delete(row);
}

/// The sums get the products of k from `p` on, of columns of B.
template <class A, class B>
static void multiplyParts(const Batch<A> &batch, const B &b, uint64_t versionB,
                          size_t p, size_t n, size_t k, const Sums &sums) {
  PackedFactors &factors = packedFactors();
  Part wantedRows(k), wantedColumns(k);
  Rows<A> places[kMaxPlaces];
  for (size_t i = 0; i < batch.numGroups; ++i) {
    places[i] = {batch.groups[i].a.from(0, p), batch.groups[i].count};
    wantedRows.add({places[i].a, batch.groups[i].version, places[i].count});
  }
  wantedColumns.add({b, versionB, n});
  const Part &rows =
      factors.a.find(wantedRows, [&](uint8_t *to, BlockTraits *traits) {
        packRows(places, batch.lines, k, to, traits);
      });
  const Part &columns =
      factors.b.find(wantedColumns, [&](uint8_t *to, BlockTraits *traits) {
        packColumns(b, n, k, to, traits);
      });
  for (size_t j = 0; j < columns.numBlocks(); ++j) {
    const Block blockB = columns.block(j);
    const size_t column = j * kBlockLines;
    const bool isWide = blockB.lines > kTile;
    for (size_t i = 0; i < rows.numBlocks(); ++i) {
      const Block blockA = rows.block(i);
      const Tile &upper = sums.tiles[2 * i], &lower = sums.tiles[2 * i + 1];
      if (blockA.lines > kTile)
        (isWide ? multiplyTwoTiles<2>
                : multiplyTwoTiles<1>)(blockA, blockB, upper.first + column,
                                       upper.rowBytes(), lower.first + column,
                                       lower.rowBytes());
      else
        (isWide ? multiplyOneTile<2> : multiplyOneTile<1>)(blockA, blockB,
                                                           upper.first + column,
                                                           upper.rowBytes());
    }
  }
  if (rows.hasNonFinite() || columns.hasNonFinite())
    addNonFinite(batch, rows, columns, b, p, sums);
}

/// The products of `depth` k from `p` on, and of so many columns of B.
template <class A, class B>
static void multiplyBatch(const Batch<A> &batch, const B &b, uint64_t versionB,
                          size_t p, size_t depth, size_t column,
                          size_t columns) {
  const TileConfiguration configuration(atMost(kTile, batch.lines));
  _tile_loadconfig(&configuration);
  const Sums sums = makeSums(batch, column, columns);
  for (size_t end = p + depth; p < end; p += kMaxDepth)
    multiplyParts(batch, b.from(p, column), versionB, p, columns,
                  atMost(kMaxDepth, end - p), sums);
  _tile_release();
  storeSums(batch, sums, column, columns);
}

/// Calls `function` with the rows of all products in batches.
template <class A, class F>
static void forBatches(const HalfProduct *products, size_t numProducts,
                       F function) {
  Batch<A> batch;
  for (size_t i = 0; i < numProducts; ++i)
    for (size_t row = 0; row < products[i].rows;) {
      size_t count = batch.add(products[i], row);
      row += count;
      if (count > 0)
        continue;
      function(batch);
      batch = {};
    }
  if (batch.lines > 0)
    function(batch);
}

template <class A, class B>
static void multiplyOnTiles(const HalfProduct *products, size_t numProducts,
                            size_t n, size_t k, const B &b, uint64_t versionB) {
  // Parts of B for so many k are kept, and read by all batches. Sums may have
  // to be copied each time.
  constexpr size_t maxDepth = 4 * kMaxDepth;
  for (size_t p = 0; p < k; p += maxDepth)
    for (size_t column = 0; column < n; column += kMaxLines)
      forBatches<A>(products, numProducts, [&](const Batch<A> &batch) {
        multiplyBatch(batch, b, versionB, p, atMost(maxDepth, k - p), column,
                      atMost(kMaxLines, n - column));
      });
  packedFactors().a.forgetUnversioned();
  packedFactors().b.forgetUnversioned();
}

template <class A>
static void multiplyRows(const HalfProduct *products, size_t numProducts,
                         size_t n, size_t k, const HalfFactor &b) {
  if (b.areCodes)
    multiplyOnTiles<A>(products, numProducts, n, k, Codes::of(b), b.version);
  else
    multiplyOnTiles<A>(products, numProducts, n, k, Floats::of(b), b.version);
}

void gemmOfHalves(const HalfProduct *products, size_t numProducts, size_t n,
                  size_t k, const HalfFactor &b) {
  (products[0].a.areCodes
       ? multiplyRows<Codes>
       : multiplyRows<Floats>)(products, numProducts, n, k, b);
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
