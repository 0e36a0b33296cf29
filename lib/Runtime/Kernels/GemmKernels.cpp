// SPDX-License-Identifier: Apache-2.0
//===- GemmKernels.cpp - Matrix product -----------------------------------===//
//
// A panel of B (up to eight registers wide) is taken over all rows of A, some
// rows at a time, whose elements are broadcast. Each element of C is
// loaded, extended by one multiply-add per k in ascending order and stored, so
// that no blocking decision can change its bits.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"
#include "Kernels.h"
#include "Transpose.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

// Registers: accumulators, one row of the panel, one broadcast.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kMaxRows = 8;
static constexpr int panelVectors(size_t m) {
  return m > 4 ? 2 : m > 2 ? 4 : 8;
}
#else
constexpr int kMaxRows = 6;
static constexpr int panelVectors(size_t m) {
  return m > 3 ? 2 : m > 1 ? 3 : 8;
}
#endif
constexpr int kMaxVectors = 8;

// Floats of a packed panel: two thirds of a first-level cache.
constexpr size_t kPanelFloats = 8192;

// Panels from one row of B to the next that lies near.
constexpr size_t kNearPanels = 4;

namespace {
/// B is floats, or DL16 codes.
template <class Element>
struct Arguments {
  size_t k;
  const float *a;
  ptrdiff_t rowStrideA, colStrideA;
  const Element *b;
  ptrdiff_t rowStrideB;
  float *c;
  ptrdiff_t rowStrideC;
};
using MicroArguments = Arguments<float>;
using CodeArguments = Arguments<uint16_t>;
} // namespace

template <int Rows, int Vectors>
static __attribute__((noinline)) void micro(const MicroArguments &args) {
  VF acc[Rows][Vectors];
  unroll<Rows>([&](auto i) {
    unroll<Vectors>([&](auto v) {
      acc[i][v] = load<VF>(args.c + i * args.rowStrideC + v * kLanes);
    });
  });
  const float *a = args.a;
  const float *b = args.b;
  ptrdiff_t rowStrideA = args.rowStrideA;
  ptrdiff_t colStrideA = args.colStrideA;
  ptrdiff_t rowStrideB = args.rowStrideB;
  for (size_t k = args.k; k > 0; --k) {
    VF row[Vectors];
    unroll<Vectors>([&](auto v) { row[v] = load<VF>(b + v * kLanes); });
    unroll<Rows>([&](auto i) {
      VF value = splat(a[i * rowStrideA]);
      unroll<Vectors>(
          [&](auto v) { acc[i][v] = mulAdd(value, row[v], acc[i][v]); });
    });
    a += colStrideA;
    b += rowStrideB;
  }
  unroll<Rows>([&](auto i) {
    unroll<Vectors>([&](auto v) {
      store(args.c + i * args.rowStrideC + v * kLanes, acc[i][v]);
    });
  });
}

using MicroFunction = void (*)(const MicroArguments &);

/// Shapes that the register file holds; the others are never asked for.
template <int Rows, int Vectors>
static constexpr MicroFunction microFunction() {
  if constexpr (Vectors <= panelVectors(Rows))
    return micro<Rows, Vectors>;
  else
    return nullptr;
}

namespace {
struct MicroTable {
  MicroFunction functions[kMaxRows + 1][kMaxVectors + 1];
};

} // namespace

static constexpr MicroTable makeMicroTable() {
  MicroTable table = {};
#define SPYRE_MICRO_ROW(R)                                                     \
  table.functions[R][1] = microFunction<R, 1>();                               \
  table.functions[R][2] = microFunction<R, 2>();                               \
  table.functions[R][3] = microFunction<R, 3>();                               \
  table.functions[R][4] = microFunction<R, 4>();                               \
  table.functions[R][5] = microFunction<R, 5>();                               \
  table.functions[R][6] = microFunction<R, 6>();                               \
  table.functions[R][7] = microFunction<R, 7>();                               \
  table.functions[R][8] = microFunction<R, 8>();
  SPYRE_MICRO_ROW(1)
  SPYRE_MICRO_ROW(2)
  SPYRE_MICRO_ROW(3)
  SPYRE_MICRO_ROW(4)
  SPYRE_MICRO_ROW(5)
  SPYRE_MICRO_ROW(6)
#if defined(__AVX512F__) || defined(__aarch64__)
  SPYRE_MICRO_ROW(7)
  SPYRE_MICRO_ROW(8)
#endif
#undef SPYRE_MICRO_ROW
  return table;
}

constexpr MicroTable kMicro = makeMicroTable();

/// panel[p * width + j] = B[p, j], zero for columns from `columns` on.
static void packPanel(float *panel, size_t width, size_t depth, size_t columns,
                      const float *b, ptrdiff_t rowStride,
                      ptrdiff_t colStride) {
  if (colStride == 1) {
    for (size_t p = 0; p < depth; ++p, b += rowStride, panel += width) {
      size_t j = 0;
      for (; j + kLanes <= columns; j += kLanes)
        store(panel + j, load<VF>(b + j));
      if (j < width) {
        VF last = VF{};
        __builtin_memcpy(&last, b + j, (columns - j) * sizeof(float));
        store(panel + j, last);
      }
    }
    return;
  }
  size_t j = 0;
  if (rowStride == 1) {
    for (; j + kLanes <= columns; j += kLanes) {
      const float *source = b + ptrdiff_t(j) * colStride;
      size_t p = 0;
      constexpr size_t pieceDepth = kQuarterLanes<float>;
      for (; p + pieceDepth <= depth; p += pieceDepth)
        transposeBlock<kQuarters>(panel + p * width + j, ptrdiff_t(width),
                                  source + p, colStride);
      for (; p < depth; ++p)
        for (size_t i = 0; i < size_t(kLanes); ++i)
          panel[p * width + j + i] =
              source[ptrdiff_t(i) * colStride + ptrdiff_t(p)];
    }
  }
  for (size_t p = 0; p < depth; ++p)
    for (size_t i = j; i < width; ++i)
      panel[p * width + i] =
          i < columns ? b[ptrdiff_t(p) * rowStride + ptrdiff_t(i) * colStride]
                      : 0.0f;
}

/// C += A * B for any number of rows and a panel B. If its columns are not
/// whole registers, they are less than one. Calls `beforeRows` before each
/// kMaxRows rows.
template <class F>
static SPYRE_INLINE void multiplyPanel(size_t m, MicroArguments args,
                                       size_t columns, F beforeRows) {
  bool isPartial = columns < size_t(kLanes);
  size_t vectors = isPartial ? 1 : columns / kLanes;
  alignas(64) float edge[kMaxRows * kLanes];
  const float *a = args.a;
  float *target = args.c;
  ptrdiff_t rowStrideC = args.rowStrideC;
  for (size_t i = 0; i < m; i += kMaxRows) {
    size_t rows = m - i < size_t(kMaxRows) ? m - i : size_t(kMaxRows);
    beforeRows();
    args.a = a + ptrdiff_t(i) * args.rowStrideA;
    args.c = target;
    if (isPartial) {
      args.c = edge;
      args.rowStrideC = kLanes;
      for (size_t r = 0; r < rows; ++r)
        store(edge + r * kLanes,
              loadTail(target + ptrdiff_t(r) * rowStrideC, columns));
    }
    kMicro.functions[rows][vectors](args);
    if (isPartial)
      for (size_t r = 0; r < rows; ++r)
        __builtin_memcpy(target + ptrdiff_t(r) * rowStrideC, edge + r * kLanes,
                         columns * sizeof(float));
    target += kMaxRows * rowStrideC;
  }
}

void gemm(size_t m, size_t n, size_t k, const float *a, ptrdiff_t rowStrideA,
          ptrdiff_t colStrideA, const float *b, ptrdiff_t rowStrideB,
          ptrdiff_t colStrideB, float *c, ptrdiff_t rowStrideC) {
  if (m == 0 || n == 0 || k == 0)
    return;
  alignas(64) float panel[kPanelFloats];
  const size_t fullWidth = size_t(panelVectors(m)) * kLanes;
  // Reading rows of B that lie far apart pays off for few rows of A only. Near
  // ones are read where they are, fewer at once: what lies between them takes
  // room in the cache, too.
  const bool hasManyRows = m > 4 * kMaxRows;
  const bool isNear = colStrideB == 1 && rowStrideB > 0 &&
                      rowStrideB <= ptrdiff_t(kNearPanels * fullWidth);
  const bool isWide = hasManyRows && isNear && size_t(rowStrideB) > fullWidth;
  const size_t maxDepth =
      kPanelFloats / (isWide ? size_t(rowStrideB) : fullWidth);

  // A part of the rows of A stays in the second-level cache for all panels.
  for (size_t p = 0; p < k; p += maxDepth) {
    MicroArguments args;
    args.k = k - p < maxDepth ? k - p : maxDepth;
    args.a = a + ptrdiff_t(p) * colStrideA;
    args.rowStrideA = rowStrideA;
    args.colStrideA = colStrideA;
    args.rowStrideC = rowStrideC;
    for (size_t j = 0, columns; j < n; j += columns) {
      columns = n - j < fullWidth ? n - j : fullWidth;
      // The last register alone is incomplete, and a panel of its own.
      if (columns > size_t(kLanes))
        columns -= columns % kLanes;
      size_t vectors = (columns + kLanes - 1) / kLanes;
      size_t width = vectors * kLanes;
      bool isPartial = columns != width;
      bool isPacked = isPartial || colStrideB != 1 || (hasManyRows && !isNear);
      args.b = b + ptrdiff_t(p) * rowStrideB + ptrdiff_t(j) * colStrideB;
      args.rowStrideB = rowStrideB;
      if (isPacked) {
        packPanel(panel, width, args.k, columns, args.b, rowStrideB,
                  colStrideB);
        args.b = panel;
        args.rowStrideB = ptrdiff_t(width);
      }
      args.c = c + j;
      multiplyPanel(m, args, columns, [] {});
    }
  }
}

//===----------------------------------------------------------------------===//
// B as DL16 codes
//===----------------------------------------------------------------------===//

// Codes are decoded in registers, for so many rows of A at once.
constexpr size_t kMaxRowsOfCodes = 4;

// How far ahead of them codes are fetched, which mostly come from memory. A
// decode step of a Llama takes 28 ms with 2 KiB, 30 with 4 KiB and 33 with 8
// KiB where AVX-512 was measured (Xeon with AMX).
constexpr ptrdiff_t kAheadOfStream = kVectorBytes == 64 ? 2048 : kAheadBytes;

// More rows than these take panels that are decoded to memory.
constexpr size_t kMaxRowsInRegisters = 2 * kMaxRowsOfCodes;

// Columns that are decoded to memory, where there are too few for registers, or
// infinities.
constexpr size_t kPieceColumns = 64;

/// Registers of a panel of codes; their number is even.
static constexpr int codeVectors(size_t m) {
#if defined(__AVX512F__) || defined(__aarch64__)
  return m > 2 ? 4 : 8;
#else
  return m > 2 ? 2 : m > 1 ? 4 : 8;
#endif
}

// Sums of 2 * kLanes columns are in packed order (Vector.h), as the values of
// their codes.
static constexpr int columnOfLane(int lane) { return lane / 4 * 8 + lane % 4; }
static constexpr int laneOfColumn(int column) {
  return column / 8 * 4 + column % 4 + (column % 8 < 4 ? 0 : kLanes);
}

template <int Start, int... I>
static SPYRE_INLINE VF takeLanes(VF first, VF second,
                                 std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(first, second, (Start + columnOfLane(I))...);
}
template <int Start, int... I>
static SPYRE_INLINE VF putLanes(VF first, VF second,
                                std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(first, second, laneOfColumn(Start + I)...);
}

using AllLanes = std::make_integer_sequence<int, kLanes>;

/// C += A * B for Rows rows and Vectors registers of columns. Returns false,
/// with C as it was, if there is a code of an infinity.
template <int Rows, int Vectors>
static __attribute__((noinline)) bool microOfCodes(const CodeArguments &args) {
  VF acc[Rows][Vectors];
  unroll<Rows>([&](auto i) SPYRE_INLINE_LAMBDA {
    unroll<Vectors / 2>([&](auto v) SPYRE_INLINE_LAMBDA {
      const float *c = args.c + i * args.rowStrideC + 2 * v * kLanes;
      VF first = load<VF>(c), second = load<VF>(c + kLanes);
      acc[i][2 * v] = takeLanes<0>(first, second, AllLanes());
      acc[i][2 * v + 1] = takeLanes<4>(first, second, AllLanes());
    });
  });
  const float *a = args.a;
  const uint16_t *b = args.b;
  ptrdiff_t rowStrideA = args.rowStrideA;
  ptrdiff_t colStrideA = args.colStrideA;
  ptrdiff_t rowStrideB = args.rowStrideB;
  ptrdiff_t ahead =
      aheadOf<uint16_t>(args.k, rowStrideB, Vectors * kLanes, kAheadOfStream);
  VW infinities = {};
  for (size_t k = args.k; k > 0; --k) {
    fetchAhead<Vectors * kLanes * 2, false>(b, ahead);
    VF row[Vectors];
    unroll<Vectors / 2>([&](auto v) SPYRE_INLINE_LAMBDA {
      VW code = load<VW>(b + 2 * v * kLanes);
      // The highest bit changes if all others are set.
      infinities |= (code + uint16_t(1)) ^ code;
      FormatDL16::decodePair(code, row[2 * v], row[2 * v + 1]);
    });
    unroll<Rows>([&](auto i) SPYRE_INLINE_LAMBDA {
      VF value = splat(a[i * rowStrideA]);
      unroll<Vectors>([&](auto v) SPYRE_INLINE_LAMBDA {
        acc[i][v] = mulAdd(value, row[v], acc[i][v]);
      });
    });
    a += colStrideA;
    b += rowStrideB;
  }
  for (int lane = 0; lane < 2 * kLanes; ++lane)
    if (infinities[lane] & 0x8000)
      return false;
  unroll<Rows>([&](auto i) SPYRE_INLINE_LAMBDA {
    unroll<Vectors / 2>([&](auto v) SPYRE_INLINE_LAMBDA {
      float *c = args.c + i * args.rowStrideC + 2 * v * kLanes;
      VF first = acc[i][2 * v], second = acc[i][2 * v + 1];
      store(c, putLanes<0>(first, second, AllLanes()));
      store(c + kLanes, putLanes<kLanes>(first, second, AllLanes()));
    });
  });
  return true;
}

/// As many of the columns as registers hold, at most codeVectors(Rows) of them.
/// Returns how many that were: none if there are too few, or infinities.
template <int Rows, int Vectors = codeVectors(Rows)>
static size_t sumCodes(const CodeArguments &args, size_t columns) {
  if constexpr (Vectors < 2)
    return 0;
  else if (columns < size_t(Vectors * kLanes))
    return sumCodes<Rows, Vectors / 2>(args, columns);
  else
    return microOfCodes<Rows, Vectors>(args) ? size_t(Vectors * kLanes) : 0;
}

/// The same for one to kMaxRowsOfCodes rows.
static size_t sumCodes(size_t rows, const CodeArguments &args, size_t columns) {
  switch (rows) {
  case 1:
    return sumCodes<1>(args, columns);
  case 2:
    return sumCodes<2>(args, columns);
  case 3:
    return sumCodes<3>(args, columns);
  default:
    return sumCodes<kMaxRowsOfCodes>(args, columns);
  }
}

/// Any rows and columns by way of decoded pieces of B.
static void gemmOfPieces(size_t m, const CodeArguments &args, size_t columns) {
  alignas(64) float piece[kPanelFloats];
  size_t maxDepth = kPanelFloats / columns;
  for (size_t p = 0; p < args.k; p += maxDepth) {
    size_t depth = args.k - p < maxDepth ? args.k - p : maxDepth;
    for (size_t row = 0; row < depth; ++row)
      loadFloatRun(ElementFormat::DL16,
                   args.b + ptrdiff_t(p + row) * args.rowStrideB,
                   piece + row * columns, columns);
    gemm(m, columns, depth, args.a + ptrdiff_t(p) * args.colStrideA,
         args.rowStrideA, args.colStrideA, piece, ptrdiff_t(columns), 1, args.c,
         args.rowStrideC);
  }
}

// Many rows take panels of two registers, a row of which has the codes of one.
constexpr size_t kPanelColumns = 2 * kLanes;
static_assert(panelVectors(kMaxRowsInRegisters + 1) * kLanes == kPanelColumns);
// Rows of a panel, of 16 KiB, which stay in the first-level cache beside those
// of A; and columns of a block of panels, which stays in the second-level one:
// short rows take long to read.
constexpr size_t kPanelDepth = 4096 / kPanelColumns;
constexpr size_t kBlockColumns = 8 * kPanelColumns;

namespace {
/// Decoded rows of B, one panel behind the other.
struct PanelBlock {
  static constexpr size_t kPanelSize = kPanelDepth * kPanelColumns;
  alignas(64) float values[kBlockColumns / kPanelColumns * kPanelSize];

  /// Whole panels. Returns false if there is a code of an infinity.
  bool decode(const uint16_t *b, ptrdiff_t rowStride, size_t depth,
              size_t columns) {
    ptrdiff_t ahead = aheadOf<uint16_t>(depth, rowStride, columns);
    VW infinities = {};
    for (size_t p = 0; p < depth; ++p, b += rowStride) {
      float *row = values + p * kPanelColumns;
      for (size_t j = 0; j < columns; j += kPanelColumns, row += kPanelSize) {
        fetchAhead<kPanelColumns * sizeof(uint16_t), false>(b + j, ahead);
        VW code = toPackedOrder(load<VW>(b + j));
        // The highest bit changes if all others are set.
        infinities |= (code + uint16_t(1)) ^ code;
        VF first, second;
        FormatDL16::decodePair(code, first, second);
        store(row, first);
        store(row + kLanes, second);
      }
    }
    return !mayHold((infinities & uint16_t(0x8000)) != VW{});
  }
};
} // namespace

namespace {
/// Fetches rows of codes that will be decoded next into the second-level cache,
/// some at a time.
class RowFetcher {
public:
  RowFetcher(const uint16_t *first, ptrdiff_t rowStride, size_t columns,
             size_t rows, size_t times)
      : next(first), rowStride(rowStride), columns(columns), rows(rows),
        rowsAtATime((rows + times - 1) / times) {}
  void operator()() {
    for (size_t i = 0; i < rowsAtATime && rows > 0; ++i, --rows) {
      constexpr size_t codesPerLine = 64 / sizeof(uint16_t);
      for (size_t j = 0; j < columns; j += codesPerLine)
        __builtin_prefetch(next + j, 0, 2);
      next += rowStride;
    }
  }

private:
  const uint16_t *next;
  ptrdiff_t rowStride;
  size_t columns, rows, rowsAtATime;
};
} // namespace

/// Many rows and at most kBlockColumns columns, all of whole panels.
static __attribute__((noinline)) void
gemmOfPanels(size_t m, const CodeArguments &args, size_t columns) {
  PanelBlock block;
  for (size_t p = 0; p < args.k; p += kPanelDepth) {
    CodeArguments part = args;
    part.k = args.k - p < kPanelDepth ? args.k - p : kPanelDepth;
    part.a += ptrdiff_t(p) * args.colStrideA;
    part.b += ptrdiff_t(p) * args.rowStrideB;
    if (!block.decode(part.b, part.rowStrideB, part.k, columns)) {
      gemmOfPieces(m, part, columns);
      continue;
    }
    // Behind the last rows there often are those of the next tile.
    RowFetcher fetcher(
        part.b + ptrdiff_t(part.k) * part.rowStrideB, part.rowStrideB, columns,
        kPanelDepth, columns / kPanelColumns * ((m + kMaxRows - 1) / kMaxRows));
    for (size_t j = 0; j < columns; j += kPanelColumns) {
      MicroArguments panel = {part.k,
                              part.a,
                              part.rowStrideA,
                              part.colStrideA,
                              block.values +
                                  j / kPanelColumns * PanelBlock::kPanelSize,
                              ptrdiff_t(kPanelColumns),
                              part.c + j,
                              part.rowStrideC};
      multiplyPanel(m, panel, kPanelColumns, [&] { fetcher(); });
    }
  }
}

void gemmOfCodes(size_t m, size_t n, size_t k, const float *a,
                 ptrdiff_t rowStrideA, ptrdiff_t colStrideA, const void *b,
                 ptrdiff_t rowStrideB, float *c, ptrdiff_t rowStrideC) {
  const auto *codes = static_cast<const uint16_t *>(b);
  if (m > kMaxRowsInRegisters && k > 0)
    for (size_t columns; n >= kPanelColumns; n -= columns) {
      columns = n < kBlockColumns ? n - n % kPanelColumns : kBlockColumns;
      gemmOfPanels(
          m, {k, a, rowStrideA, colStrideA, codes, rowStrideB, c, rowStrideC},
          columns);
      codes += columns;
      c += columns;
    }
  for (size_t i = 0; i < m && k > 0; i += kMaxRowsOfCodes) {
    size_t rows = m - i < kMaxRowsOfCodes ? m - i : kMaxRowsOfCodes;
    for (size_t j = 0, columns; j < n; j += columns) {
      CodeArguments args = {k,
                            a + ptrdiff_t(i) * rowStrideA,
                            rowStrideA,
                            colStrideA,
                            codes + j,
                            rowStrideB,
                            c + ptrdiff_t(i) * rowStrideC + j,
                            rowStrideC};
      columns = sumCodes(rows, args, n - j);
      if (columns > 0)
        continue;
      columns = n - j < kPieceColumns ? n - j : kPieceColumns;
      gemmOfPieces(rows, args, columns);
    }
  }
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
