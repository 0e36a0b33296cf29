// SPDX-License-Identifier: Apache-2.0
//===- GemmKernels.cpp - Matrix product -----------------------------------===//
//
// A panel of B (up to eight registers wide) is taken over all rows of A, some
// rows at a time, whose elements are broadcast. Each element of C is
// loaded, extended by one multiply-add per k in ascending order and stored, so
// that no blocking decision can change its bits.
//
//===----------------------------------------------------------------------===//

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

namespace {
struct MicroArguments {
  size_t k;
  const float *a;
  ptrdiff_t rowStrideA, colStrideA;
  const float *b;
  ptrdiff_t rowStrideB;
  float *c;
  ptrdiff_t rowStrideC;
};

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
      for (; p + kLanes <= depth; p += kLanes)
        transposeSquare(panel + p * width + j, ptrdiff_t(width), source + p,
                        colStride);
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

void gemm(size_t m, size_t n, size_t k, const float *a, ptrdiff_t rowStrideA,
          ptrdiff_t colStrideA, const float *b, ptrdiff_t rowStrideB,
          ptrdiff_t colStrideB, float *c, ptrdiff_t rowStrideC) {
  if (m == 0 || n == 0 || k == 0)
    return;
  alignas(64) float panel[kPanelFloats];
  alignas(64) float edge[kMaxRows * kLanes];
  const size_t fullWidth = size_t(panelVectors(m)) * kLanes;

  for (size_t j = 0, columns; j < n; j += columns) {
    columns = n - j < fullWidth ? n - j : fullWidth;
    // The last register alone is incomplete, and a panel of its own.
    if (columns > size_t(kLanes))
      columns -= columns % kLanes;
    size_t vectors = (columns + kLanes - 1) / kLanes;
    size_t width = vectors * kLanes;
    bool isPartial = columns != width;
    // Reading rows of B that lie far apart pays off for few rows of A only.
    bool isPacked = isPartial || colStrideB != 1 ||
                    (m > 4 * kMaxRows && rowStrideB != ptrdiff_t(width));
    size_t maxDepth = kPanelFloats / width;
    for (size_t p = 0; p < k; p += maxDepth) {
      MicroArguments args;
      args.k = k - p < maxDepth ? k - p : maxDepth;
      args.b = b + ptrdiff_t(p) * rowStrideB + ptrdiff_t(j) * colStrideB;
      args.rowStrideB = rowStrideB;
      if (isPacked) {
        packPanel(panel, width, args.k, columns, args.b, rowStrideB,
                  colStrideB);
        args.b = panel;
        args.rowStrideB = ptrdiff_t(width);
      }
      args.rowStrideA = rowStrideA;
      args.colStrideA = colStrideA;
      for (size_t i = 0; i < m; i += kMaxRows) {
        size_t rows = m - i < size_t(kMaxRows) ? m - i : size_t(kMaxRows);
        args.a = a + ptrdiff_t(i) * rowStrideA + ptrdiff_t(p) * colStrideA;
        float *target = c + ptrdiff_t(i) * rowStrideC + j;
        args.c = target;
        args.rowStrideC = rowStrideC;
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
            __builtin_memcpy(target + ptrdiff_t(r) * rowStrideC,
                             edge + r * kLanes, columns * sizeof(float));
      }
    }
  }
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
