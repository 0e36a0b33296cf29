// SPDX-License-Identifier: Apache-2.0
//
// Kernels that need to be right for values of DL16 only, of which there are
// few.
//
#include "KernelTestUtils.h"

#include "Spyre/Device/DL16.h"

using namespace spyre::runtime;

namespace {

class CodeKernels : public KernelTest {};

// Other polynomials are enough for the values of DL16: for each of them the
// rounded result is the same. Large ones and infinities change the way that
// groups of vectors go.
TEST_P(CodeKernels, ExponentialsOfAllCodes) {
  auto check = [&](const std::vector<uint16_t> &codes) {
    size_t n = codes.size();
    std::vector<float> x(n), expected(n), found(n + 1, 77.0f);
    k.loadFloatRun(ElementFormat::DL16, codes.data(), x.data(), n);
    k.unary(UnaryOp::Exp, x.data(), expected.data(), n, Rounding::DL16);
    k.expOfChain(x.data(), 1, nullptr, 0, found.data(), n, nullptr, nullptr);
    EXPECT_EQ(found[n], 77.0f);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(bitsOfFloat(found[i]), bitsOfFloat(expected[i])) << x[i];
  };
  std::vector<uint16_t> codes(65536);
  for (unsigned step : {1, 3, 40503}) {
    for (unsigned i = 0; i < codes.size(); ++i)
      codes[i] = uint16_t(i * step);
    check(codes);
  }
  // Those of common magnitudes, all in groups of their own.
  std::vector<uint16_t> common;
  for (uint16_t code : codes)
    if (std::abs(spyre::decodeDL16(code)) <= 21.0f)
      common.push_back(code);
  check(common);
  for (size_t n : {1, 15, 16, 63, 64, 65, 200})
    check({common.begin() + 1000, common.begin() + 1000 + ptrdiff_t(n)});
}

// The engine divides values of DL16 by one of them that way. Significands of
// all pairs, and quotients about where numbers begin and end.
TEST_P(CodeKernels, QuotientsOfCodesAreProductsWithTheInverse) {
  std::vector<float> x(512), quotients(512), products(512);
  auto check = [&](float y) {
    ChainStep divide{BinaryOp::Div, false, &y, 0};
    float inverse = 1.0f / y;
    ChainStep multiply{BinaryOp::Mul, false, &inverse, 0};
    k.chain(x.data(), 1, &divide, 1, quotients.data(), x.size(), Rounding::DL16,
            nullptr);
    k.chain(x.data(), 1, &multiply, 1, products.data(), x.size(),
            Rounding::DL16, nullptr);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(bitsOfFloat(products[i]), bitsOfFloat(quotients[i]))
          << x[i] << " / " << y;
  };
  for (int exponent : {0, 24, -31})
    for (unsigned divisor = 512; divisor < 1024; ++divisor) {
      for (unsigned i = 0; i < 512; ++i)
        x[i] = std::ldexp(float(512 + i), exponent - 9);
      for (int power : {-9, 15, -16, -18})
        check(std::ldexp(float(divisor), power));
    }
  // Every code by the special ones.
  const float infinity = std::numeric_limits<float>::infinity();
  for (unsigned first = 0; first < 65536; first += 512) {
    for (unsigned i = 0; i < 512; ++i)
      x[i] = spyre::decodeDL16(uint16_t(first + i));
    for (float y : {0.0f, -0.0f, infinity, -infinity, 1.0f, -3.0f, 0x1.008p-31f,
                    0x1.ff8p32f})
      check(y);
  }
}

TEST_P(CodeKernels, ExponentialsOfChains) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t n : {5, 64, 1000}) {
    std::vector<float> x = randomFloats(n, -8, 8), y = randomFloats(n, -2, 2);
    for (float rare :
         {1.0f, 0.0f, 1e-20f, -30.0f, 50.0f, 1e30f, -infinity, infinity}) {
      x[n / 2] = rare;
      k.round(x.data(), x.data(), n, Rounding::DL16);
      k.round(y.data(), y.data(), n, Rounding::DL16);
      float one = 1.25f;
      std::vector<ChainStep> steps = {{BinaryOp::Sub, false, x.data(), 0},
                                      {BinaryOp::Mul, false, y.data(), 1},
                                      {BinaryOp::Sub, true, &one, 0}};
      for (const float *first : {&one, x.data() + n / 2}) {
        steps[0].x = first;
        for (unsigned numSteps : {0, 1, 2, 3}) {
          std::vector<float> expected = x, found(n);
          if (numSteps > 0)
            k.chain(x.data(), 1, steps.data(), numSteps, expected.data(), n,
                    Rounding::DL16, nullptr);
          k.unary(UnaryOp::Exp, expected.data(), expected.data(), n,
                  Rounding::DL16);
          float sum = 0.5f, expectedSum = 0.5f;
          k.reduceRows(ReduceOp::Sum, expected.data(), 1, n, ptrdiff_t(n),
                       &expectedSum);
          for (float *added : {static_cast<float *>(nullptr), &sum}) {
            k.expOfChain(x.data(), 1, steps.data(), numSteps, found.data(), n,
                         added, nullptr);
            for (size_t i = 0; i < n; ++i)
              ASSERT_EQ(bitsOfFloat(found[i]), bitsOfFloat(expected[i]))
                  << n << " " << rare << " " << numSteps << " " << x[i];
          }
          ASSERT_EQ(bitsOfFloat(sum), bitsOfFloat(expectedSum));
        }
      }
    }
  }
}

// Rows of every length up to several groups, without and with zeros and
// infinities.
TEST_P(CodeKernels, RowsAreReducedWhereTheyAreDecoded) {
  std::mt19937 random(7);
  for (size_t n = 1; n < 300; n += n < 140 ? 1 : 23)
    for (bool isAny : {false, true}) {
      std::vector<uint16_t> codes(n);
      for (uint16_t &code : codes)
        code = uint16_t(isAny ? random() : 0x3c00 + random() % 2048);
      std::vector<float> expected(n), found(n + 1, 77.0f);
      k.loadFloatRun(ElementFormat::DL16, codes.data(), expected.data(), n);
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Mul, ReduceOp::MaxWithoutNaN,
                          ReduceOp::MinWithoutNaN}) {
        float acc = 1.5f, expectedAcc = 1.5f;
        k.decodeAndReduce(op, codes.data(), found.data(), n, &acc);
        k.reduceRows(op, expected.data(), 1, n, ptrdiff_t(n), &expectedAcc);
        ASSERT_EQ(bitsOfFloat(acc), bitsOfFloat(expectedAcc)) << n;
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(bitsOfFloat(found[i]), bitsOfFloat(expected[i])) << n;
        ASSERT_EQ(found[n], 77.0f);
      }
    }
}

// The result may take the place of what is read, and be summed as it is or by
// another chain, which may read it more than once.
TEST_P(CodeKernels, ChainsAreSummedWhereTheyAreMade) {
  for (size_t n : {1, 7, 31, 32, 33, 64, 100, 128, 129, 255, 256, 1000, 2048})
    for (float rare : {1.0f, 0.0f, 1e-12f, 1e9f}) {
      std::vector<float> x = randomFloats(n, -8, 8), y = randomFloats(n, -2, 2);
      x[n / 2] = rare;
      k.round(x.data(), x.data(), n, Rounding::DL16);
      k.round(y.data(), y.data(), n, Rounding::DL16);
      float one = 1.25f;
      for (bool isInPlace : {false, true})
        for (unsigned numSteps : {1, 2})
          for (unsigned numSumSteps : {0, 1, 2, 3}) {
            std::vector<float> from = x, made(n), expected(n);
            float *result = isInPlace ? from.data() : made.data();
            ChainStep steps[] = {{BinaryOp::Sub, true, &one, 0},
                                 {BinaryOp::Mul, false, y.data(), 1}};
            ChainStep summing[] = {{BinaryOp::Mul, false, result, 1},
                                   {BinaryOp::Sub, false, y.data(), 1},
                                   {BinaryOp::Add, true, &one, 0}};
            float sum = 0.25f, expectedSum = 0.25f;
            k.chain(x.data(), 1, steps, numSteps, expected.data(), n,
                    Rounding::DL16, nullptr);
            k.chainAndSum(from.data(), 1, steps, numSteps, result, summing,
                          numSumSteps, n, &sum, nullptr);
            summing[0].x = expected.data();
            if (numSumSteps == 0)
              k.reduceRows(ReduceOp::Sum, expected.data(), 1, n, ptrdiff_t(n),
                           &expectedSum);
            else
              k.sumChain(expected.data(), 1, summing, numSumSteps, n,
                         Rounding::DL16, &expectedSum, nullptr);
            ASSERT_EQ(bitsOfFloat(sum), bitsOfFloat(expectedSum))
                << n << " " << rare << " " << numSteps << " " << numSumSteps;
            for (size_t i = 0; i < n; ++i)
              ASSERT_EQ(bitsOfFloat(result[i]), bitsOfFloat(expected[i])) << n;
          }
    }
}

SPYRE_INSTANTIATE_KERNEL_TEST(CodeKernels);

} // namespace
