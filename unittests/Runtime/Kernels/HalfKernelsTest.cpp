// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include <iterator>

using namespace spyre::runtime;

namespace {

/// Tests of gemmOfHalves(), which few sets have.
class HalfKernel : public KernelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalfKernel);

std::vector<const KernelTable *> variantsWithHalves() {
  std::vector<const KernelTable *> all = kernelVariants(), found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [](const KernelTable *table) { return table->gemmOfHalves; });
  return found;
}

/// Random values of at most 16 significant bits.
std::vector<float> randomHalves(size_t n, unsigned seed) {
  std::vector<float> values = randomFloats(n, -1, 1, seed);
  for (float &value : values)
    value = floatOfBits(bitsOfFloat(value) & 0xffffff00);
  return values;
}

/// The bf16 number of the upper 16 bits, and what is left.
struct Parts {
  explicit Parts(float value)
      : high(floatOfBits(bitsOfFloat(value) & 0xffff0000)), low(value - high) {}
  float high, low;
};

/// The sum of products in the order that AmxKernels.cpp states.
float sumAsTiles(float sum, const std::vector<float> &x,
                 const std::vector<float> &y) {
  for (size_t start = 0; start < x.size(); start += 32)
    for (auto [ofX, ofY] : {std::pair{&Parts::high, &Parts::high},
                            {&Parts::high, &Parts::low},
                            {&Parts::low, &Parts::low},
                            {&Parts::low, &Parts::high}}) {
      float chains[2] = {0, 0};
      for (size_t p = start; p < std::min(start + 32, x.size()); ++p)
        chains[p % 2] =
            std::fma(Parts(x[p]).*ofX, Parts(y[p]).*ofY, chains[p % 2]);
      sum += chains[0] + chains[1];
    }
  return sum;
}

TEST_P(HalfKernel, SumsInItsOrder) {
  // The last ones are more rows and k than are packed at a time.
  const size_t sizes[][3] = {
      {9, 16, 16},  {9, 16, 15},  {8, 16, 16},   {9, 15, 16},   {16, 16, 32},
      {17, 31, 33}, {31, 33, 64}, {32, 32, 31},  {33, 65, 100}, {48, 48, 96},
      {64, 64, 63}, {65, 1, 40},  {300, 40, 70}, {40, 70, 600}, {12, 64, 40},
      {8, 130, 70}, {15, 1, 1},   {300, 300, 40}};
  for (auto [m, n, depth] : sizes) {
    size_t space = 4 * (m + 8) * (depth + 8) + 4 * (n + 8) * (depth + 8);
    std::vector<float> a = randomHalves(space, 41), b = randomHalves(space, 42);
    // Numbers of bf16, of which products are left out.
    for (auto *values : {&a, &b})
      if (m % 2 == 0 && (n % 2 == 0 || values == &a))
        for (float &value : *values)
          value = Parts(value).high;
    std::vector<float> initial = randomFloats((m + 1) * (n + 7), -1, 1, 43);
    // The sign of a sum of zeros.
    a[0] = 0;
    initial[0] = -0.0f;
    ptrdiff_t ldc = ptrdiff_t(n) + 7;
    for (Strides sa : stridesOf(m, depth))
      for (Strides sb : stridesOf(depth, n)) {
        std::vector<float> c = initial;
        multiplyHalves(k, m, n, depth, halves(a, sa), halves(b, sb), c.data(),
                       ldc);
        for (size_t i = 0; i < m; ++i)
          for (size_t j = 0; j < size_t(ldc); ++j) {
            std::vector<float> x, y;
            for (size_t p = 0; p < depth && j < n; ++p) {
              x.push_back(
                  a[size_t(ptrdiff_t(i) * sa.row + ptrdiff_t(p) * sa.column)]);
              y.push_back(
                  b[size_t(ptrdiff_t(p) * sb.row + ptrdiff_t(j) * sb.column)]);
            }
            float expected = sumAsTiles(initial[i * size_t(ldc) + j], x, y);
            ASSERT_TRUE(sameFloat(c[i * size_t(ldc) + j], expected))
                << m << "x" << n << "x" << depth << " at " << i << "," << j;
          }
      }
  }
}

TEST_P(HalfKernel, KnowsFactorsByTheirVersions) {
  // Two parts of k, and of rows.
  const size_t m = 300, n = 70, depth = 600;
  std::vector<float> a(m * depth), b(depth * n);
  auto product = [&](uint64_t versionA, uint64_t versionB) {
    std::vector<float> c(m * n);
    multiplyHalves(k, m, n, depth, halves(a, rowMajor(depth), versionA),
                   halves(b, rowMajor(n), versionB), c.data(), ptrdiff_t(n));
    return c;
  };
  unsigned seed = 0;
  const std::pair<uint64_t, uint64_t> changes[] = {
      {1, 2}, {1, 3}, {4, 3}, {0, 3}, {0, 0}, {0, 0}, {5, 0}, {6, 7}};
  std::pair<uint64_t, uint64_t> last;
  for (auto versions : changes) {
    if (versions.first == 0 || versions.first != last.first)
      a = randomHalves(m * depth, ++seed);
    if (versions.second == 0 || versions.second != last.second)
      b = randomHalves(depth * n, ++seed);
    last = versions;
    std::vector<float> found = product(versions.first, versions.second);
    // At other addresses, nothing is known.
    std::vector<float> otherA = a, otherB = b, expected(m * n);
    multiplyHalves(k, m, n, depth, halves(otherA, rowMajor(depth)),
                   halves(otherB, rowMajor(n)), expected.data(), ptrdiff_t(n));
    ASSERT_EQ(found, expected) << versions.first << " " << versions.second;
    ASSERT_EQ(product(versions.first, versions.second), expected);
  }
}

/// A matrix of DL16 codes whose rows are in parts, as tiles of sticks are, and
/// its values, row by row.
struct MatrixOfCodes {
  std::vector<uint16_t> codes;
  std::vector<float> values;
  HalfFactor factor;

  /// All codes in turn, or those of bf16 numbers only.
  MatrixOfCodes(const KernelTable &k, size_t rows, size_t columns,
                size_t partLength, bool isNarrow, bool hasInfinity) {
    const size_t gap = 3, lastPart = (columns - 1) % partLength + 1;
    const size_t partStride = rows * (partLength + gap) + 1;
    const size_t numParts = (columns + partLength - 1) / partLength;
    // No byte behind the last code.
    codes = someCodes((numParts - 1) * partStride +
                          (rows - 1) * (partLength + gap) + lastPart,
                      uint16_t(rows + 3 * columns));
    for (uint16_t &code : codes)
      code &= isNarrow ? 0xfffc : 0xffff;
    auto at = [&](size_t row, size_t column) {
      return column / partLength * partStride + row * (partLength + gap) +
             column % partLength;
    };
    if (hasInfinity)
      codes[at(rows / 2, columns / 3)] = 0x7fff;
    values.resize(rows * columns);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        k.loadFloatRun(ElementFormat::DL16, &codes[at(row, column)],
                       &values[row * columns + column], 1);
    factor.values = codes.data();
    factor.areCodes = true;
    factor.rowStride = ptrdiff_t(partLength + gap);
    factor.partLength = partLength;
    factor.partStride = ptrdiff_t(partStride);
  }
};

TEST_P(HalfKernel, CodesGiveTheBitsOfTheirValues) {
  const size_t sizes[][3] = {{8, 1, 1},     {9, 33, 63},  {16, 64, 64},
                             {17, 65, 129}, {33, 31, 31}, {64, 200, 300},
                             {290, 300, 70}};
  for (const auto &size : sizes)
    for (size_t partLength : {32, 64, 4096})
      for (int variant = 0; variant < 8; ++variant) {
        const size_t m = size[0], n = size[1], depth = size[2];
        bool isNarrow = variant & 1;
        MatrixOfCodes a(k, m, depth, partLength, isNarrow && n % 2 != 0,
                        variant & 2);
        MatrixOfCodes b(k, depth, n, partLength, isNarrow, variant & 4);
        HalfFactor valuesOfA = halves(a.values, rowMajor(depth));
        HalfFactor valuesOfB = halves(b.values, rowMajor(n));
        auto product = [&](const HalfFactor &x, const HalfFactor &y) {
          std::vector<float> c = randomFloats(m * (n + 3), -1, 1, 32);
          multiplyHalves(k, m, n, depth, x, y, c.data(), ptrdiff_t(n) + 3);
          return c;
        };
        std::vector<float> expected = product(valuesOfA, valuesOfB);
        for (const HalfFactor *x : {&a.factor, &valuesOfA}) {
          std::vector<float> found = product(*x, b.factor);
          for (size_t i = 0; i < found.size(); ++i)
            ASSERT_TRUE(sameFloat(found[i], expected[i]))
                << m << "x" << n << "x" << depth << " parts of " << partLength
                << " at " << i;
        }
      }
}

TEST_P(HalfKernel, ProductsOfOneRightFactorAreAsEachAlone) {
  const std::vector<size_t> rowsOfProducts[] = {{8, 8, 8, 8},
                                                {16, 16},
                                                {16, 16, 16},
                                                {8, 16, 24, 32},
                                                {9, 8, 15, 17, 31},
                                                {64, 64, 64, 64, 64},
                                                {300, 8, 290},
                                                {8, 8},
                                                {8, 8, 8, 8, 8, 8, 8, 8, 8, 8},
                                                {12},
                                                {32, 8}};
  unsigned seed = 50;
  for (const std::vector<size_t> &rows : rowsOfProducts)
    for (size_t n : {16, 37, 300})
      for (size_t depth : {32, 65, 600})
        for (int variant = 0; variant < 8; ++variant) {
          const bool areCodes = variant & 1, hasInfinity = variant & 2;
          // All of them, or every other one.
          const bool haveVersions = variant & 4;
          MatrixOfCodes b(k, depth, n, 64, n == 37, hasInfinity);
          std::vector<MatrixOfCodes> factors;
          std::vector<std::vector<float>> sums, expected;
          for (size_t m : rows) {
            factors.emplace_back(k, m, depth, 64, false,
                                 hasInfinity && factors.size() % 2 == 1);
            sums.push_back(randomFloats(m * (n + 3), -1, 1, ++seed));
          }
          expected = sums;
          std::vector<HalfProduct> products;
          for (size_t i = 0; i < rows.size(); ++i) {
            HalfFactor a = areCodes
                               ? factors[i].factor
                               : halves(factors[i].values, rowMajor(depth));
            multiplyHalves(k, rows[i], n, depth, a, b.factor,
                           expected[i].data(), ptrdiff_t(n) + 3);
            if (haveVersions || i % 2 == 1)
              a.version = 1000 * ++seed;
            products.push_back({a, rows[i], sums[i].data(), ptrdiff_t(n) + 3});
          }
          // The second time, packed rows are found.
          for (int time = 0; time < 2; ++time) {
            k.gemmOfHalves(products.data(), products.size(), n, depth,
                           b.factor);
            for (size_t i = 0; i < rows.size(); ++i)
              for (size_t j = 0; j < sums[i].size(); ++j)
                ASSERT_TRUE(sameFloat(sums[i][j], expected[i][j]))
                    << "product " << i << " of " << rows.size() << ", n " << n
                    << ", k " << depth << ", variant " << variant << " at "
                    << j;
            for (size_t i = 0; time == 0 && i < rows.size(); ++i)
              multiplyHalves(k, rows[i], n, depth, products[i].a, b.factor,
                             expected[i].data(), ptrdiff_t(n) + 3);
          }
        }
}

INSTANTIATE_TEST_SUITE_P(Variants, HalfKernel,
                         testing::ValuesIn(variantsWithHalves()),
                         [](const auto &info) {
                           return std::string(info.param->name);
                         });

} // namespace
