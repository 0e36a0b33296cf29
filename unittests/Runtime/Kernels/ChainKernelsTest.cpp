// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include <algorithm>

using namespace spyre::runtime;

namespace {
class ChainKernels : public KernelTest {};

// A chain has the bits of its operations one by one, whatever the values, also
// when the result replaces an operand.
TEST_P(ChainKernels, ChainsAreTheirOperations) {
  for (size_t n : {1u, 15u, 63u, 64u, 65u, 257u, 2048u, 2049u}) {
    // Odd lengths with values of every kind, even ones with common values,
    // where whole groups of vectors take the short way.
    std::vector<float> all =
        n % 2 ? sampleFloats(4 * n) : randomFloats(4 * n, -3.0f, 3.0f);
    auto part = [&](size_t i) {
      return std::vector<float>(all.begin() + i * n, all.begin() + (i + 1) * n);
    };
    std::vector<float> x = part(0), y = part(1), z = part(2), w = part(3);
    for (Rounding rounding : {Rounding::None, Rounding::DL16,
                              Rounding::IEEEHalf, Rounding::F8E4M3FN})
      for (size_t step : {0, 1}) {
        ChainStep steps[] = {{BinaryOp::Mul, false, y.data(), step},
                             {BinaryOp::Sub, true, z.data(), 1},
                             {BinaryOp::Add, true, w.data(), 1 - step},
                             {BinaryOp::Div, step == 0, w.data(), 1},
                             {BinaryOp::Sub, false, y.data(), step}};
        std::vector<float> expected = x;
        for (const ChainStep &s : steps) {
          std::vector<float> value = expected;
          if (s.isReversed)
            k.binary(s.op, s.x, s.step, value.data(), 1, expected.data(), n,
                     rounding);
          else
            k.binary(s.op, value.data(), 1, s.x, s.step, expected.data(), n,
                     rounding);
        }
        for (bool inPlace : {false, true}) {
          // Need not be mapped.
          ReadAhead ahead{reinterpret_cast<const uint8_t *>(uintptr_t(4096)),
                          reinterpret_cast<const uint8_t *>(uintptr_t(4226))};
          std::vector<float> target = z;
          target.push_back(42.0f);
          if (inPlace)
            steps[1].x = target.data();
          k.chain(x.data(), 1, steps, 5, target.data(), n, rounding, &ahead);
          EXPECT_EQ(target[n], 42.0f);
          for (size_t i = 0; i < n; ++i)
            EXPECT_TRUE(sameFloat(target[i], expected[i]))
                << n << " " << i << " " << int(rounding);
        }
      }
  }
}

// From codes to codes, or to codes, a chain is what loads, the chain and a
// store are.
TEST_P(ChainKernels, ChainsOfCodes) {
  std::mt19937 generator(7);
  for (size_t n : {1u, 15u, 63u, 64u, 65u, 257u, 2048u, 65536u})
    for (bool isCommon : {false, true}) {
      // Every code, or codes around that of one, which take the short way.
      std::vector<uint16_t> codes[3];
      for (std::vector<uint16_t> &own : codes)
        for (size_t i = 0; i < n; ++i)
          own.push_back(uint16_t(isCommon ? 0x3e00 + generator() % 0x800 |
                                                generator() % 2 << 15
                                          : generator()));
      if (n == 65536 && !isCommon)
        for (size_t i = 0; i < n; ++i)
          codes[0][i] = uint16_t(i);
      std::vector<float> values[3];
      for (size_t v = 0; v < 3; ++v) {
        values[v].resize(n);
        k.loadFloatRun(ElementFormat::DL16, codes[v].data(), values[v].data(),
                       n);
      }
      float one = 0.75f;
      for (unsigned numSteps : {1, 2, 3})
        for (BinaryOp op :
             {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div})
          for (bool isReversed : {false, true})
            for (size_t step : {0, 1})
              for (size_t first : {0, 1}) {
                if (first + step == 0)
                  continue;
                auto chainOf = [&](const float *y, const float *z) {
                  return std::vector<ChainStep>{
                      {op, isReversed, step ? y : &one, step},
                      {BinaryOp::Mul, false, z, 1},
                      // Of three steps, one chain scales a row and shifts it.
                      isReversed ? ChainStep{BinaryOp::Sub, true, &one, 0}
                                 : ChainStep{BinaryOp::Add, false, y, 1}};
                };
                std::vector<float> result(n);
                std::vector<ChainStep> steps =
                    chainOf(values[1].data(), values[2].data());
                k.chain(first ? values[0].data() : &one, first, steps.data(),
                        numSteps, result.data(), n, Rounding::DL16, nullptr);
                std::vector<uint16_t> expected(n), actual = codes[1];
                k.storeFloatRun(ElementFormat::DL16, result.data(),
                                expected.data(), n);
                // At the start of a cache line, and beside it.
                constexpr size_t line = 64 / sizeof(uint16_t);
                for (size_t beside : {0, 1})
                  for (bool pastCaches : {false, true}) {
                    std::vector<uint16_t> room(n + 2 * line, 0x1234);
                    size_t at = line - uintptr_t(room.data()) / 2 % line;
                    uint16_t *fromFloats = room.data() + at + beside;
                    k.chainToCodes(first ? values[0].data() : &one, first,
                                   steps.data(), numSteps, fromFloats, n,
                                   nullptr, pastCaches);
                    EXPECT_EQ(fromFloats[-1], 0x1234);
                    EXPECT_EQ(fromFloats[n], 0x1234);
                    ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                                           fromFloats))
                        << n << " " << numSteps << " " << int(op) << " "
                        << beside << pastCaches;
                  }
                // In place of an operand.
                actual.push_back(0x1234);
                auto asFloats = [](const std::vector<uint16_t> &own) {
                  return reinterpret_cast<const float *>(own.data());
                };
                steps = chainOf(asFloats(actual), asFloats(codes[2]));
                const void *x = &one;
                if (first)
                  x = codes[0].data();
                k.chainOfCodes(x, first, steps.data(), numSteps, actual.data(),
                               n);
                EXPECT_EQ(actual.back(), 0x1234);
                actual.pop_back();
                ASSERT_EQ(actual, expected)
                    << n << " " << numSteps << " " << int(op);
              }
    }
}

// Summing a chain has the bits of summing its values.
TEST_P(ChainKernels, SumsOfChains) {
  for (size_t n : {1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 96u, 257u, 2048u}) {
    std::vector<float> x = n % 2 ? sampleFloats(n) : randomFloats(n, -3, 3);
    std::vector<float> y = randomFloats(n, -2, 2), value(n);
    for (Rounding rounding :
         {Rounding::None, Rounding::DL16, Rounding::IEEEHalf, Rounding::BF16})
      for (size_t step : {0, 1})
        for (unsigned count : {1u, 2u}) {
          const ChainStep steps[] = {{BinaryOp::Mul, false, y.data(), step},
                                     {BinaryOp::Sub, true, y.data(), 1}};
          k.chain(x.data(), 1, steps, count, value.data(), n, rounding,
                  nullptr);
          float expected = 0.25f, found = 0.25f;
          k.reduceRows(ReduceOp::Sum, value.data(), 1, n, 0, &expected);
          k.sumChain(x.data(), 1, steps, count, n, rounding, &found, nullptr);
          EXPECT_TRUE(sameFloat(found, expected))
              << n << " " << int(rounding) << " " << found << " " << expected;
        }
  }
}

// Rows of a block, whose operands are dense, the same for all rows, or one
// value for each of them.
TEST_P(ChainKernels, Rows) {
  constexpr size_t rows = 5, most = 150;
  std::vector<float> x = randomFloats(rows * most, -3, 3),
                     dense = randomFloats(rows * most, -3, 3),
                     column = randomFloats(most, -3, 3),
                     row = randomFloats(2 * rows, -3, 3);
  for (size_t columns : {1u, 7u, 15u, 16u, 63u, 64u, 65u, 128u, 150u})
    for (size_t numRows : {size_t(1), rows})
      for (Rounding rounding :
           {Rounding::None, Rounding::DL16, Rounding::IEEEHalf})
        for (bool isMixed : {false, true})
          for (size_t step : {0, 1}) {
            if (columns == 7) // zeros, subnormals, infinities
              dense = sampleFloats(rows * most);
            auto width = ptrdiff_t(columns);
            ChainStep steps[] = {
                {BinaryOp::Sub, true, row.data(), 0, !isMixed, 2},
                {BinaryOp::Mul, false, column.data(), 1, !isMixed, 0},
                {BinaryOp::Add, false, dense.data(), 1, true, width},
                {BinaryOp::Div, false, row.data() + 1, 0, !isMixed, 0}};
            ptrdiff_t rowStride = step ? width : 1;
            std::vector<float> expected(numRows * columns);
            for (size_t r = 0; r < numRows; ++r) {
              ChainStep shifted[4];
              for (int s = 0; s < 4; ++s) {
                shifted[s] = steps[s];
                shifted[s].x += ptrdiff_t(r) * steps[s].rowStride;
              }
              k.chain(x.data() + ptrdiff_t(r) * rowStride, step, shifted, 4,
                      expected.data() + r * columns, columns, rounding,
                      nullptr);
            }
            std::vector<float> found(numRows * columns + 1, 42.0f);
            k.chainOfRows(x.data(), step, rowStride, steps, 4, found.data(),
                          numRows, columns, rounding, false);
            EXPECT_EQ(found.back(), 42.0f);
            for (size_t i = 0; i < expected.size(); ++i)
              ASSERT_TRUE(sameFloat(found[i], expected[i]))
                  << numRows << " x " << columns << " " << i;
            if (rounding != Rounding::DL16)
              continue;
            std::vector<uint16_t> codes(found.size(), 0x1234),
                wanted(expected.size());
            k.storeFloatRun(ElementFormat::DL16, expected.data(), wanted.data(),
                            wanted.size());
            k.chainOfRows(x.data(), step, rowStride, steps, 4, codes.data(),
                          numRows, columns, rounding, true);
            EXPECT_EQ(codes.back(), 0x1234);
            codes.pop_back();
            ASSERT_EQ(codes, wanted) << numRows << " x " << columns;
          }
}

// A step in fp32 is not rounded to the type of the others.
TEST_P(ChainKernels, StepsThatAreNotRounded) {
  for (size_t n : {1u, 63u, 64u, 257u}) {
    std::vector<float> x = randomFloats(n, -3, 3), y = randomFloats(n, -3, 3),
                       exact(n), expected(n), found(n);
    for (Rounding rounding :
         {Rounding::DL16, Rounding::IEEEHalf, Rounding::BF16}) {
      ChainStep steps[] = {{BinaryOp::Mul, false, y.data(), 1, false},
                           {BinaryOp::Add, false, y.data(), 1, true},
                           {BinaryOp::Mul, false, y.data(), 1, false}};
      k.binary(BinaryOp::Mul, x.data(), 1, y.data(), 1, exact.data(), n,
               Rounding::None);
      k.binary(BinaryOp::Add, exact.data(), 1, y.data(), 1, expected.data(), n,
               rounding);
      k.binary(BinaryOp::Mul, expected.data(), 1, y.data(), 1, exact.data(), n,
               Rounding::None);
      k.chain(x.data(), 1, steps, 3, found.data(), n, rounding, nullptr);
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(sameFloat(found[i], exact[i])) << n << " " << i;
    }
  }
}

SPYRE_INSTANTIATE_KERNEL_TEST(ChainKernels);

} // namespace
