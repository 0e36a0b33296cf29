// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

using namespace spyre::runtime;

namespace {

class ReduceKernels : public KernelTest {};
class GemmKernel : public KernelTest {};

const ReduceOp kReduceOps[] = {ReduceOp::Sum,    ReduceOp::Mul,
                               ReduceOp::Max,    ReduceOp::Min,
                               ReduceOp::MaxNum, ReduceOp::MinNum};

double combine(ReduceOp op, double a, double b) {
  bool hasNaN = std::isnan(a) || std::isnan(b);
  switch (op) {
  case ReduceOp::Sum:
    return a + b;
  case ReduceOp::Mul:
    return a * b;
  case ReduceOp::Max:
    return hasNaN ? NAN : std::max(a, b);
  case ReduceOp::Min:
    return hasNaN ? NAN : std::min(a, b);
  case ReduceOp::MaxNum:
    return std::fmax(a, b);
  case ReduceOp::MinNum:
    return std::fmin(a, b);
  case ReduceOp::MaxWithoutNaN:
    return std::max(a, b);
  case ReduceOp::MinWithoutNaN:
    return std::min(a, b);
  }
  return NAN;
}

TEST_P(ReduceKernels, RowsAndColumns) {
  for (size_t n : kLengths)
    for (size_t rows : {size_t(1), size_t(5)}) {
      size_t stride = n + 3;
      std::vector<float> x = randomFloats(rows * stride, 0.9f, 1.1f);
      for (ReduceOp op : kReduceOps) {
        std::vector<float> perRow(rows + 1, 1.0f), perColumn(n + 1, 1.0f);
        k.reduceRows(op, x.data(), rows, n, ptrdiff_t(stride), perRow.data());
        k.accumulateRows(op, x.data(), rows, n, ptrdiff_t(stride),
                         perColumn.data());
        // The guards.
        EXPECT_EQ(perRow[rows], 1.0f);
        EXPECT_EQ(perColumn[n], 1.0f);
        for (size_t r = 0; r < rows; ++r) {
          double expected = 1.0;
          for (size_t j = 0; j < n; ++j)
            expected = combine(op, expected, x[r * stride + j]);
          double bound = double(n) * std::ldexp(std::fabs(expected), -24);
          if (op == ReduceOp::Sum || op == ReduceOp::Mul) {
            EXPECT_NEAR(perRow[r], expected, bound) << n;
          } else {
            EXPECT_EQ(perRow[r], expected) << n;
          }
        }
        for (size_t j = 0; j < n; ++j) {
          // Columns are exactly the ascending order.
          float expected = 1.0f;
          for (size_t r = 0; r < rows; ++r)
            expected = float(combine(op, expected, x[r * stride + j]));
          EXPECT_EQ(perColumn[j], expected);
        }
      }
    }
}

TEST_P(ReduceKernels, SumOrderIsThePublishedOne) {
  for (size_t n : kLengths) {
    std::vector<float> x = randomFloats(n, -100.0f, 100.0f, 11);
    float partial[32] = {};
    for (size_t j = 0; j < n; ++j)
      partial[j % 32] += x[j];
    for (int half = 16; half > 0; half /= 2)
      for (int i = 0; i < half; ++i)
        partial[i] += partial[i + half];
    float acc = 0.25f;
    k.reduceRows(ReduceOp::Sum, x.data(), 1, n, 0, &acc);
    EXPECT_EQ(acc, 0.25f + partial[0]) << n;
  }
}

// Rows of codes are reduced as their values are.
TEST_P(ReduceKernels, RowsOfCodes) {
  std::mt19937 generator(5);
  for (size_t n : {0u, 1u, 3u, 31u, 32u, 63u, 64u, 65u, 127u, 1000u, 65536u})
    for (int kind : {0, 1, 2, 3, 4, 5, 6}) {
      // Around one; with one infinity; the least numbers; with one zero; those
      // of which some sums exceed 2^32; the largest ones; every code.
      const unsigned first[] = {0x3d00, 0x3d00, 1, 1, 0x7c00, 0x7e00, 0};
      const unsigned count[] = {0x400, 0x400, 0x3ff, 0x3ff,
                                0x200, 0x1ff, 0x8000};
      const size_t rows = 3, stride = n + 5;
      std::vector<uint16_t> codes(rows * stride);
      for (uint16_t &code : codes)
        code = uint16_t((first[kind] + generator() % count[kind]) |
                        generator() % 2 << 15);
      uint16_t &rare = codes[stride + n / 2];
      if (kind == 1)
        rare = generator() % 2 ? 0x7fff : 0xffff;
      if (kind == 3)
        rare = generator() % 2 ? 0 : 0x8000;
      std::vector<float> values(codes.size());
      k.loadFloatRun(ElementFormat::DL16, codes.data(), values.data(),
                     codes.size());
      for (ReduceOp op : kReduceOps) {
        // Less than the sums.
        std::vector<float> expected(rows + 1, 0x1p-31f), actual = expected;
        k.reduceRows(op, values.data(), rows, n, ptrdiff_t(stride),
                     expected.data());
        k.reduceCodeRows(op, codes.data(), rows, n, ptrdiff_t(stride), n, 0,
                         actual.data());
        for (size_t r = 0; r <= rows; ++r)
          EXPECT_TRUE(sameFloat(actual[r], expected[r]))
              << actual[r] << " instead of " << expected[r] << ", " << n
              << " codes of kind " << kind << ", operation " << int(op);
      }
    }
}

// Rows in parts, as those of tensors are in sticks, have the bits of dense
// ones.
TEST_P(ReduceKernels, RowsOfCodesInParts) {
  std::mt19937 generator(11);
  for (size_t length : {64u, 128u})
    for (size_t n : {65u, 127u, 128u, 129u, 191u, 640u, 1000u})
      for (size_t rows : {1u, 3u, 32u, 33u, 70u})
        for (bool hasInfinity : {false, true}) {
          std::vector<uint16_t> dense(rows * n);
          for (uint16_t &code : dense)
            code = uint16_t(generator() % 0x7fff | generator() % 2 << 15);
          if (hasInfinity)
            dense[rows / 2 * n + n / 3] = generator() % 2 ? 0x7fff : 0xffff;
          // Part by part, all rows of one, and a gap behind them. What is
          // behind the last codes of a row is no part of it.
          size_t numParts = (n + length - 1) / length;
          size_t partStride = rows * length + 24;
          std::vector<uint16_t> parts(numParts * partStride, 0x7fff);
          for (size_t r = 0; r < rows; ++r)
            for (size_t j = 0; j < n; ++j)
              parts[j / length * partStride + r * length + j % length] =
                  dense[r * n + j];
          for (ReduceOp op : kReduceOps) {
            std::vector<float> expected(rows + 1, 0.5f), actual = expected;
            k.reduceCodeRows(op, dense.data(), rows, n, ptrdiff_t(n), n, 0,
                             expected.data());
            k.reduceCodeRows(op, parts.data(), rows, n, ptrdiff_t(length),
                             length, ptrdiff_t(partStride), actual.data());
            for (size_t r = 0; r <= rows; ++r)
              ASSERT_TRUE(sameFloat(actual[r], expected[r]))
                  << actual[r] << " instead of " << expected[r] << ", row " << r
                  << " of " << rows << ", " << n << " codes in parts of "
                  << length << ", operation " << int(op);
          }
        }
}

// Zeros of both signs and infinities, too: equal values have an order.
TEST_P(ReduceKernels, ExtremaOfNumbersDoNotLookForNaN) {
  const std::pair<ReduceOp, ReduceOp> pairs[] = {
      {ReduceOp::Max, ReduceOp::MaxWithoutNaN},
      {ReduceOp::MaxNum, ReduceOp::MaxWithoutNaN},
      {ReduceOp::Min, ReduceOp::MinWithoutNaN},
      {ReduceOp::MinNum, ReduceOp::MinWithoutNaN}};
  std::mt19937 generator(7);
  const float values[] = {0.0f, -0.0f, 1.5f, -2.0f, INFINITY, -INFINITY};
  for (size_t n : {0u, 1u, 31u, 33u, 64u, 200u})
    for (size_t numValues : {2u, 4u, 6u}) {
      const size_t rows = 4;
      std::vector<float> x(rows * n);
      std::vector<uint16_t> codes(rows * n);
      for (float &value : x)
        value = values[generator() % numValues];
      k.storeFloatRun(ElementFormat::DL16, x.data(), codes.data(), x.size());
      for (auto [general, special] : pairs) {
        EXPECT_EQ(reduceIdentity(special),
                  general == ReduceOp::Max || general == ReduceOp::MaxNum
                      ? -INFINITY
                      : INFINITY);
        std::vector<float> expected(rows, -0.0f), actual = expected;
        k.reduceRows(general, x.data(), rows, n, ptrdiff_t(n), expected.data());
        k.reduceRows(special, x.data(), rows, n, ptrdiff_t(n), actual.data());
        for (size_t r = 0; r < rows; ++r)
          EXPECT_TRUE(sameFloat(actual[r], expected[r])) << n;
        actual.assign(rows, -0.0f);
        k.reduceCodeRows(special, codes.data(), rows, n, ptrdiff_t(n), n, 0,
                         actual.data());
        for (size_t r = 0; r < rows; ++r)
          EXPECT_TRUE(sameFloat(actual[r], expected[r])) << n;
        expected.assign(n, -0.0f);
        actual = expected;
        k.accumulateRows(general, x.data(), rows, n, ptrdiff_t(n),
                         expected.data());
        k.accumulateRows(special, x.data(), rows, n, ptrdiff_t(n),
                         actual.data());
        for (size_t j = 0; j < n; ++j)
          EXPECT_TRUE(sameFloat(actual[j], expected[j])) << n;
      }
    }
}

TEST_P(ReduceKernels, NaNAndIdentities) {
  for (size_t n : {size_t(1), size_t(31), size_t(65), size_t(200)})
    for (size_t at = 0; at < n; at += 13) {
      std::vector<float> x = randomFloats(n, -2.0f, 2.0f);
      float expected[] = {0, 0, -INFINITY, INFINITY, -INFINITY, INFINITY};
      for (size_t j = 0; j < n; ++j)
        for (size_t o = 4; o < 6; ++o)
          if (j != at)
            expected[o] = float(combine(kReduceOps[o], expected[o], x[j]));
      x[at] = NAN;
      for (size_t o = 0; o < 6; ++o) {
        float acc = reduceIdentity(kReduceOps[o]);
        k.reduceRows(kReduceOps[o], x.data(), 1, n, 0, &acc);
        if (o < 4 || n == 1) {
          EXPECT_TRUE(std::isnan(acc)) << o << " " << n;
        } else {
          EXPECT_EQ(acc, expected[o]) << o << " " << n << " " << at;
        }
        float column = reduceIdentity(kReduceOps[o]);
        k.accumulateRows(kReduceOps[o], x.data(), n, 1, 1, &column);
        EXPECT_TRUE(sameFloat(acc, column) || o < 2);
      }
    }
  // Fully masked rows.
  std::vector<float> masked(77, -INFINITY);
  float acc = reduceIdentity(ReduceOp::Max);
  k.reduceRows(ReduceOp::Max, masked.data(), 1, masked.size(), 0, &acc);
  EXPECT_EQ(acc, -INFINITY);
}

TEST_P(ReduceKernels, KeepsTheBetterValueAndItsIndex) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float some[] = {nan,
                        0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        2.0f,
                        std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()};
  std::mt19937 generator(7);
  auto check = [&](auto keep, auto zero, bool isMax, size_t n, size_t step,
                   size_t indexStep) {
    using Index = decltype(zero);
    std::vector<float> values(n + 1), best(n + 1);
    std::vector<Index> indices(n + 1), bestIndex(n + 1);
    for (size_t i = 0; i <= n; ++i) {
      values[i] = some[generator() % 8];
      best[i] = some[generator() % 8];
      indices[i] = Index(generator() % 3) - 1;
      bestIndex[i] = generator() % 5 ? Index(generator() % 3) - 1
                                     : std::numeric_limits<Index>::max();
    }
    std::vector<float> expected = best;
    std::vector<Index> expectedIndex = bestIndex;
    for (size_t i = 0; i < n; ++i) {
      float value = values[i * step], old = best[i];
      Index index = indices[i * indexStep];
      bool isBetter = index < bestIndex[i];
      if (std::isnan(value) != std::isnan(old))
        isBetter = std::isnan(value);
      else if (!std::isnan(value) && value != old)
        isBetter = isMax ? value > old : value < old;
      if (!isBetter)
        continue;
      expected[i] = value;
      expectedIndex[i] = index;
    }
    keep(isMax, values.data(), step, indices.data(), indexStep, best.data(),
         bestIndex.data(), n);
    EXPECT_EQ(bestIndex, expectedIndex);
    for (size_t i = 0; i <= n; ++i)
      EXPECT_TRUE(sameFloat(best[i], expected[i])) << "element " << i;
  };
  for (size_t n : kLengths)
    for (int variant = 0; variant < 8; ++variant) {
      bool isMax = variant & 1;
      size_t step = variant >> 1 & 1, indexStep = variant >> 2;
      check(k.keepBetterInt32, int32_t(0), isMax, n, step, indexStep);
      check(k.keepBetterInt64, int64_t(0), isMax, n, step, indexStep);
    }
}

TEST_P(GemmKernel, MatchesOneChainPerElement) {
  const size_t sizes[][3] = {
      {1, 1, 1},     {1, 64, 64},    {1, 200, 33}, {2, 130, 70}, {3, 17, 300},
      {4, 65, 5},    {5, 15, 1},     {6, 48, 64},  {7, 33, 257}, {8, 32, 600},
      {16, 64, 64},  {17, 31, 129},  {40, 70, 40}, {65, 1, 100}, {33, 100, 520},
      {40, 64, 300}, {34, 200, 150}, {0, 3, 3},    {3, 0, 3},    {3, 3, 0}};
  bool isFused = std::string(k.name) != "baseline";
  for (auto [m, n, depth] : sizes) {
    size_t space = 4 * (m + 8) * (depth + 8) + 4 * (n + 8) * (depth + 8);
    std::vector<float> a = randomFloats(space, -1, 1, 21);
    std::vector<float> b = randomFloats(space, -1, 1, 22);
    std::vector<float> initial = randomFloats((m + 1) * (n + 7), -1, 1, 23);
    ptrdiff_t ldc = ptrdiff_t(n) + 7;
    for (Strides sa : stridesOf(m, depth))
      for (Strides sb : stridesOf(depth, n)) {
        std::vector<float> c = initial;
        k.gemm(m, n, depth, a.data(), sa.row, sa.column, b.data(), sb.row,
               sb.column, c.data(), ldc);
        for (size_t i = 0; i < m; ++i)
          for (size_t j = 0; j < size_t(ldc); ++j) {
            float expected = initial[i * size_t(ldc) + j];
            for (size_t p = 0; p < depth && j < n; ++p) {
              float x =
                  a[size_t(ptrdiff_t(i) * sa.row + ptrdiff_t(p) * sa.column)];
              float y =
                  b[size_t(ptrdiff_t(p) * sb.row + ptrdiff_t(j) * sb.column)];
              if (isFused) {
                expected = std::fma(x, y, expected);
              } else {
                volatile float product = x * y;
                expected += product;
              }
            }
            ASSERT_EQ(c[i * size_t(ldc) + j], expected)
                << m << "x" << n << "x" << depth << " at " << i << "," << j;
          }
      }
  }
}

TEST_P(GemmKernel, SpecialValuesStayInTheirElement) {
  for (bool areHalves : {false, k.gemmOfHalves != nullptr})
    for (size_t m : {9, 40}) {
      size_t n = 37, depth = 300;
      std::vector<float> a(m * depth, 1.0f), b(depth * n, 1.0f), c(m * n, 0.0f);
      a[2 * depth + 3] = INFINITY;
      a[5 * depth + 270] = -INFINITY;
      a[(m - 1) * depth + 3] = INFINITY;
      a[(m - 1) * depth + 280] = -INFINITY;
      b[5 * n + 36] = NAN;
      b[5 * n + 7] = -INFINITY;
      b[3 * n + 20] = 0;
      if (areHalves)
        multiplyHalves(k, m, n, depth, halves(a, rowMajor(depth)),
                       halves(b, rowMajor(n)), c.data(), ptrdiff_t(n));
      else
        k.gemm(m, n, depth, a.data(), ptrdiff_t(depth), 1, b.data(),
               ptrdiff_t(n), 1, c.data(), ptrdiff_t(n));
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          float expected = float(depth) - (j == 20);
          // An infinity times zero is none, nor is the sum of both.
          if (j == 36 || i == m - 1 || (i == 2 && (j == 7 || j == 20)))
            expected = NAN;
          else if (i == 2)
            expected = INFINITY;
          else if (i == 5 || j == 7)
            expected = -INFINITY;
          EXPECT_TRUE(sameFloat(c[i * n + j], expected)) << i << " " << j;
        }
    }
}

/// gemmOfCodes() against gemm() on decoded values.
void checkProductOfCodes(const KernelTable &k, size_t m, size_t n, size_t depth,
                         size_t gap, bool hasInfinity) {
  size_t stride = n + gap;
  // No byte behind the last code.
  std::vector<uint16_t> codes =
      someCodes(depth == 0 ? 0 : (depth - 1) * stride + n,
                uint16_t(m + 3 * n + 5 * depth));
  if (hasInfinity && depth > 0)
    codes[(depth / 2) * stride + n / 2] = 0xffff;
  std::vector<float> b(codes.size());
  k.loadFloatRun(ElementFormat::DL16, codes.data(), b.data(), codes.size());
  std::vector<float> a = randomFloats(m * (depth + 2), -1, 1, 31);
  std::vector<float> c = randomFloats(m * (n + 3), -1, 1, 32);
  std::vector<float> expected = c;
  k.gemm(m, n, depth, a.data(), 1, ptrdiff_t(m), b.data(), ptrdiff_t(stride), 1,
         expected.data(), ptrdiff_t(n) + 3);
  k.gemmOfCodes(m, n, depth, a.data(), 1, ptrdiff_t(m), codes.data(),
                ptrdiff_t(stride), c.data(), ptrdiff_t(n) + 3);
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_TRUE(sameFloat(c[i], expected[i]))
        << m << "x" << n << "x" << depth << " gap " << gap << " at " << i;
}

TEST_P(GemmKernel, CodesGiveTheBitsOfTheirValues) {
  for (bool hasInfinity : {false, true}) {
    for (size_t m : {1, 2, 3, 4, 5, 8, 9, 13})
      for (size_t n : {1, 15, 16, 31, 32, 63, 64, 65, 96, 128, 200})
        for (size_t depth : {0, 1, 2, 63, 300})
          for (size_t gap : {0, 5})
            checkProductOfCodes(k, m, n, depth, gap, hasInfinity);
    // Several blocks of panels of each instruction set.
    for (size_t n : {256, 300, 545})
      for (size_t depth : {128, 129, 600})
        checkProductOfCodes(k, 21, n, depth, 5, hasInfinity);
  }
}

SPYRE_INSTANTIATE_KERNEL_TEST(ReduceKernels);
SPYRE_INSTANTIATE_KERNEL_TEST(GemmKernel);

} // namespace
