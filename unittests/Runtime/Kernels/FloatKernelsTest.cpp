// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include "Spyre/Device/DL16.h"

#include <algorithm>
#include <functional>

using namespace spyre::runtime;

namespace {

class FloatKernels : public KernelTest {
protected:
  std::vector<float> unary(UnaryOp op, const std::vector<float> &x,
                           Rounding rounding = Rounding::None) {
    std::vector<float> y(x.size());
    k.unary(op, x.data(), y.data(), x.size(), rounding);
    return y;
  }
  std::vector<float> binary(BinaryOp op, const std::vector<float> &a,
                            const std::vector<float> &b) {
    std::vector<float> y(a.size());
    k.binary(op, a.data(), 1, b.data(), 1, y.data(), a.size(), Rounding::None);
    return y;
  }
  std::vector<float> round(Rounding rounding, const std::vector<float> &x) {
    std::vector<float> y(x.size());
    k.round(x.data(), y.data(), x.size(), rounding);
    return y;
  }
};

struct UnaryCase {
  UnaryOp op;
  const char *name;
  double (*reference)(double);
  double maxUlp;
};

const UnaryCase kUnaryCases[] = {
    {UnaryOp::Neg, "neg", [](double x) { return -x; }, 0},
    {UnaryOp::Abs, "abs", [](double x) { return std::fabs(x); }, 0},
    {UnaryOp::Exp, "exp", [](double x) { return std::exp(x); }, 1.1},
    {UnaryOp::Exp2, "exp2", [](double x) { return std::exp2(x); }, 1.25},
    {UnaryOp::Expm1, "expm1", [](double x) { return std::expm1(x); }, 0.51},
    {UnaryOp::Log, "log", [](double x) { return std::log(x); }, 0.51},
    {UnaryOp::Log2, "log2", [](double x) { return std::log2(x); }, 0.51},
    {UnaryOp::Log10, "log10", [](double x) { return std::log10(x); }, 0.51},
    {UnaryOp::Log1p, "log1p", [](double x) { return std::log1p(x); }, 0.51},
    {UnaryOp::Sqrt, "sqrt", [](double x) { return std::sqrt(x); }, 0.5},
    {UnaryOp::Rsqrt, "rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1.5},
    {UnaryOp::Reciprocal, "reciprocal", [](double x) { return 1 / x; }, 0.5},
    {UnaryOp::Sin, "sin", [](double x) { return std::sin(x); }, 1},
    {UnaryOp::Cos, "cos", [](double x) { return std::cos(x); }, 1},
    {UnaryOp::Tan, "tan", [](double x) { return std::tan(x); }, 1},
    {UnaryOp::Asin, "asin", [](double x) { return std::asin(x); }, 2},
    {UnaryOp::Acos, "acos", [](double x) { return std::acos(x); }, 2},
    {UnaryOp::Atan, "atan", [](double x) { return std::atan(x); }, 0.51},
    {UnaryOp::Sinh, "sinh", [](double x) { return std::sinh(x); }, 0.51},
    {UnaryOp::Cosh, "cosh", [](double x) { return std::cosh(x); }, 0.51},
    {UnaryOp::Tanh, "tanh", [](double x) { return std::tanh(x); }, 2.5},
    {UnaryOp::Asinh, "asinh", [](double x) { return std::asinh(x); }, 2},
    {UnaryOp::Acosh, "acosh", [](double x) { return std::acosh(x); }, 2},
    {UnaryOp::Atanh, "atanh", [](double x) { return std::atanh(x); }, 2},
    {UnaryOp::Erf, "erf", [](double x) { return std::erf(x); }, 2},
    {UnaryOp::Erfc, "erfc", [](double x) { return std::erfc(x); }, 0.51},
    {UnaryOp::Cbrt, "cbrt", [](double x) { return std::cbrt(x); }, 0.51},
    {UnaryOp::Floor, "floor", [](double x) { return std::floor(x); }, 0},
    {UnaryOp::Ceil, "ceil", [](double x) { return std::ceil(x); }, 0},
    {UnaryOp::Round, "round", [](double x) { return std::round(x); }, 0},
    {UnaryOp::RoundEven, "roundeven",
     [](double x) { return std::nearbyint(x); }, 0},
    {UnaryOp::Trunc, "trunc", [](double x) { return std::trunc(x); }, 0},
    {UnaryOp::Copy, "copy", [](double x) { return x; }, 0},
};

TEST_P(FloatKernels, UnaryAccuracy) {
  std::vector<float> x = sampleFloats(200000);
  // The part of the line where most functions do something.
  for (float limit : {1.5f, 12.0f, 150.0f, 1e5f}) {
    std::vector<float> more = randomFloats(20000, -limit, limit);
    x.insert(x.end(), more.begin(), more.end());
  }
  ASSERT_EQ(std::size(kUnaryCases), kNumUnaryOps);
  for (const UnaryCase &test : kUnaryCases) {
    std::vector<float> y = unary(test.op, x);
    double worst = -1;
    float worstX = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double reference = test.reference(x[i]);
      double error = ulpError(y[i], reference);
      if (error > worst) {
        worst = error;
        worstX = x[i];
      }
      if (reference == 0 && !std::isnan(y[i])) {
        EXPECT_EQ(std::signbit(y[i]), std::signbit(reference))
            << test.name << "(" << x[i] << ")";
      }
    }
    EXPECT_LE(worst, test.maxUlp) << test.name << "(" << worstX << ")";
    RecordProperty(std::string("ulp_") + test.name, std::to_string(worst));
  }
}

TEST_P(FloatKernels, UnaryLengthsAndRoundings) {
  for (size_t n : kLengths) {
    std::vector<float> x = randomFloats(n, 0.1f, 3.0f);
    for (const UnaryCase &test : kUnaryCases) {
      std::vector<float> exact = unary(test.op, x);
      for (Rounding rounding :
           {Rounding::DL16, Rounding::IEEEHalf, Rounding::BF16,
            Rounding::F8E4M3FN, Rounding::F8E5M2}) {
        // A guard value behind the end must survive.
        std::vector<float> y(n + 1, 42.0f), inPlace = x;
        k.unary(test.op, x.data(), y.data(), n, rounding);
        EXPECT_EQ(y[n], 42.0f);
        k.unary(test.op, inPlace.data(), inPlace.data(), n, rounding);
        std::vector<float> expected = round(rounding, exact);
        for (size_t i = 0; i < n; ++i) {
          EXPECT_TRUE(sameFloat(y[i], expected[i])) << test.name << " " << n;
          EXPECT_TRUE(sameFloat(inPlace[i], expected[i])) << test.name;
        }
      }
    }
  }
}

TEST_P(FloatKernels, RoundsToDL16AsTheDeviceLibraryDoes) {
  std::vector<float> x = sampleFloats(300000);
  for (uint32_t code = 0; code < 0x10000; ++code) {
    float value = spyre::decodeDL16(uint16_t(code));
    x.push_back(value);
    // Halfway to the next value, and its neighbours.
    uint32_t tie = bitsOfFloat(value) + 0x2000;
    for (uint32_t bits : {tie - 1, tie, tie + 1})
      x.push_back(floatOfBits(bits));
  }
  std::vector<float> y = round(Rounding::DL16, x);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(sameFloat(y[i], spyre::roundDL16(x[i]))) << x[i];
}

/// The nearest value of a small IEEE-like format, by search.
float roundBySearch(float x, int exponentBits, int fraction, bool finiteOnly) {
  if (std::isnan(x))
    return x;
  int bias = (1 << (exponentBits - 1)) - 1;
  int exponent = std::isinf(x) || x == 0 ? 0 : std::ilogb(x);
  exponent = std::max(exponent, 1 - bias);
  double unit = std::ldexp(1.0, exponent - fraction);
  // The default rounding mode is to nearest even.
  double rounded = std::isinf(x) ? x : std::nearbyint(x / unit) * unit;
  int topExponent = (1 << exponentBits) - 1 - bias;
  double limit = finiteOnly
                     ? std::ldexp(2.0 - std::ldexp(1.0, -fraction), topExponent)
                     : std::ldexp(1.0, topExponent);
  if (std::fabs(rounded) >= limit)
    return finiteOnly
               ? std::numeric_limits<float>::quiet_NaN()
               : std::copysign(std::numeric_limits<float>::infinity(), x);
  return float(std::copysign(rounded, x));
}

TEST_P(FloatKernels, RoundsToIEEELikeFormats) {
  struct {
    Rounding rounding;
    int exponentBits, fraction;
    bool finiteOnly;
  } formats[] = {{Rounding::IEEEHalf, 5, 10, false},
                 {Rounding::BF16, 8, 7, false},
                 {Rounding::F8E4M3FN, 4, 3, true},
                 {Rounding::F8E5M2, 5, 2, false}};
  std::vector<float> x = sampleFloats(100000);
  std::vector<float> more = randomFloats(50000, -600, 600);
  x.insert(x.end(), more.begin(), more.end());
  // Ties of every format.
  for (uint32_t i = 0; i < 4096; ++i)
    x.push_back(floatOfBits(0x30000000u + i * 0x10000u + (i & 15) * 0x1000u));
  for (auto &format : formats) {
    std::vector<float> y = round(format.rounding, x);
    for (size_t i = 0; i < x.size(); ++i) {
      float expected = roundBySearch(x[i], format.exponentBits, format.fraction,
                                     format.finiteOnly);
      ASSERT_TRUE(sameFloat(y[i], expected))
          << int(format.rounding) << ": " << x[i] << " gave " << y[i]
          << ", expected " << expected;
    }
  }
}

float referenceBinary(BinaryOp op, float a, float b) {
  double x = a, y = b;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  auto ordered = [](float p, float q) {
    return p < q || (p == q && std::signbit(p) > std::signbit(q));
  };
  switch (op) {
  case BinaryOp::Add:
    return a + b;
  case BinaryOp::Sub:
    return a - b;
  case BinaryOp::Mul:
    return a * b;
  case BinaryOp::Div:
    return a / b;
  case BinaryOp::Rem:
    return std::fmod(a, b);
  case BinaryOp::Maximum:
    return std::isnan(a) || std::isnan(b) ? nan : ordered(a, b) ? b : a;
  case BinaryOp::Minimum:
    return std::isnan(a) || std::isnan(b) ? nan : ordered(a, b) ? a : b;
  case BinaryOp::MaxNum:
    return std::isnan(a) ? b : std::isnan(b) || !ordered(a, b) ? a : b;
  case BinaryOp::MinNum:
    return std::isnan(a) ? b : std::isnan(b) || ordered(a, b) ? a : b;
  case BinaryOp::Pow:
    return float(std::pow(x, y));
  case BinaryOp::Atan2:
    return float(std::atan2(x, y));
  case BinaryOp::CopySign:
    return std::copysign(a, b);
  }
  return nan;
}

const BinaryOp kBinaryOps[] = {
    BinaryOp::Add,    BinaryOp::Sub,     BinaryOp::Mul,     BinaryOp::Div,
    BinaryOp::Rem,    BinaryOp::Maximum, BinaryOp::Minimum, BinaryOp::MaxNum,
    BinaryOp::MinNum, BinaryOp::Pow,     BinaryOp::Atan2,   BinaryOp::CopySign};
static_assert(std::size(kBinaryOps) == kNumBinaryOps);

TEST_P(FloatKernels, BinaryAccuracy) {
  std::vector<float> a, b;
  std::vector<float> special = specialFloats();
  for (float x : special)
    for (float y : special) {
      a.push_back(x);
      b.push_back(y);
    }
  std::vector<float> wide = sampleFloats(50000);
  for (size_t i = 0; i < wide.size(); ++i) {
    a.push_back(wide[i]);
    b.push_back(wide[(i * 7 + 3) % wide.size()]);
  }
  std::vector<float> bases = randomFloats(50000, 0.0f, 20.0f, 3);
  std::vector<float> exponents = randomFloats(50000, -30.0f, 30.0f, 4);
  for (size_t i = 0; i < bases.size(); ++i) {
    a.push_back(i % 3 ? bases[i] : -bases[i]);
    b.push_back(i % 3 ? exponents[i] : std::round(exponents[i]));
  }
  for (BinaryOp op : kBinaryOps) {
    std::vector<float> y = binary(op, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      float expected = referenceBinary(op, a[i], b[i]);
      bool isExact = op != BinaryOp::Pow && op != BinaryOp::Atan2;
      bool ok = sameFloat(y[i], expected);
      if (!ok && !isExact)
        ok = ulpError(y[i], op == BinaryOp::Pow
                                ? std::pow(double(a[i]), double(b[i]))
                                : std::atan2(double(a[i]), double(b[i]))) <=
                 0.51 &&
             std::signbit(y[i]) == std::signbit(expected);
      ASSERT_TRUE(ok) << "op " << int(op) << "(" << a[i] << ", " << b[i]
                      << ") gave " << y[i] << ", expected " << expected;
    }
  }
}

TEST_P(FloatKernels, BinaryStepsLengthsAndRoundings) {
  for (size_t n : kLengths) {
    std::vector<float> a = randomFloats(n + 1, 0.5f, 4.0f, 5);
    std::vector<float> b = randomFloats(n + 1, 0.5f, 4.0f, 6);
    for (BinaryOp op : kBinaryOps)
      for (size_t stepA : {0, 1})
        for (size_t stepB : {0, 1}) {
          std::vector<float> fullA(n), fullB(n);
          for (size_t i = 0; i < n; ++i) {
            fullA[i] = a[i * stepA];
            fullB[i] = b[i * stepB];
          }
          std::vector<float> exact = binary(op, fullA, fullB);
          for (Rounding rounding :
               {Rounding::None, Rounding::DL16, Rounding::BF16}) {
            std::vector<float> expected = round(rounding, exact);
            std::vector<float> y(n + 1, 42.0f);
            k.binary(op, a.data(), stepA, b.data(), stepB, y.data(), n,
                     rounding);
            EXPECT_EQ(y[n], 42.0f);
            for (size_t i = 0; i < n; ++i)
              EXPECT_TRUE(sameFloat(y[i], expected[i])) << int(op);
          }
        }
  }
}

// Groups of vectors take a short way for usual magnitudes, one that knows no
// zero, one that does, and the exact one: a single value decides, wherever it
// stands.
TEST_P(FloatKernels, OneRareValueAmongCommonOnes) {
  const size_t n = 1000;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> rare = {0.0f,          -0.0f,    1e-40f,
                             std::nanf(""), infinity, -infinity};
  for (float edge : {0x1p-31f, 0x1.004p-31f, 0x1.008p-31f, 0x1.ff4p32f,
                     0x1.ff8p32f, 0x1.ffcp32f, 0x1p33f, 0x1p-24f, 0x1p8f})
    for (float x :
         {std::nextafterf(edge, 0.0f), edge, std::nextafterf(edge, infinity)}) {
      rare.push_back(x);
      rare.push_back(-x);
    }
  const std::vector<float> common = randomFloats(n, 0.5f, 3.0f), one(n, 1.0f);
  auto rounded = [](float x) {
    return spyre::decodeDL16(spyre::encodeDL16(x));
  };
  for (float value : rare)
    for (size_t zero : {n, size_t(0), size_t(200)}) // n: none
      for (size_t at : {size_t(3), size_t(500), n - 1}) {
        std::vector<float> x = common, product(n), chained(n);
        if (zero < n)
          x[zero] = 0.0f;
        x[at] = value;
        k.binary(BinaryOp::Mul, x.data(), 1, one.data(), 1, product.data(), n,
                 Rounding::DL16);
        const float two = 2.0f, half = 0.5f;
        const ChainStep steps[] = {{BinaryOp::Mul, false, one.data(), 1},
                                   {BinaryOp::Mul, false, &half, 0},
                                   {BinaryOp::Mul, false, &two, 0}};
        k.chain(x.data(), 1, steps, 3, chained.data(), n, Rounding::DL16,
                nullptr);
        for (size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(sameFloat(product[i], rounded(x[i]))) << x[i];
          float y = rounded(rounded(rounded(x[i]) * half) * two);
          ASSERT_TRUE(sameFloat(chained[i], y)) << x[i];
        }
      }
}

// Exponentials of groups of vectors take a short way that holds for normal
// results: a value beside which others are does not change its bits.
TEST_P(FloatKernels, ExponentialsBesideOthers) {
  const size_t n = 200;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f, infinity, floatOfBits(0x7fc00000),
                               floatOfBits(0x7fc001ff),
                               floatOfBits(0x7fffffff)};
  for (float edge : {0.625f, 0.9375f, 4.0f, 10.0f, 86.0f, 87.4f, 88.8f, 89.0f,
                     104.0f, 1e30f})
    for (float x :
         {std::nextafterf(edge, 0.0f), edge, std::nextafterf(edge, infinity)})
      values.push_back(x);
  const std::vector<float> common = randomFloats(n, -3.0f, 3.0f);
  for (UnaryOp op : {UnaryOp::Exp, UnaryOp::Tanh, UnaryOp::Erf})
    for (float value : values)
      for (float x : {value, -value}) {
        float alone = 0.0f;
        k.unary(op, &x, &alone, 1, Rounding::None);
        for (size_t at : {size_t(0), size_t(77), n - 1}) {
          std::vector<float> in = common, out(n), expected(n);
          k.unary(op, common.data(), expected.data(), n, Rounding::None);
          in[at] = x;
          expected[at] = alone;
          k.unary(op, in.data(), out.data(), n, Rounding::None);
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(bitsOfFloat(out[i]), bitsOfFloat(expected[i]))
                << x << " at " << at << ", element " << i;
        }
      }
}

TEST_P(FloatKernels, FusedMultiplyAddRoundsOnce) {
  std::vector<float> a = sampleFloats(3000), b = a, c = a;
  std::reverse(b.begin(), b.end());
  std::rotate(c.begin(), c.begin() + 777, c.end());
  // Needs the exact product: 1 + 2^-11 + 2^-24 - 1.
  a.push_back(1.000244140625f);
  b.push_back(1.000244140625f);
  c.push_back(-1.00048828125f);
  for (size_t stepC : {0, 1}) {
    std::vector<float> y(a.size());
    k.fma(a.data(), 1, b.data(), 1, c.data(), stepC, y.data(), a.size(),
          Rounding::None);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(sameFloat(y[i], std::fma(a[i], b[i], c[i * stepC])));
  }
}

TEST_P(FloatKernels, ComparesAndSelects) {
  std::vector<float> special = specialFloats(), a, b;
  for (float x : special)
    for (float y : special) {
      a.push_back(x);
      b.push_back(y);
    }
  size_t n = a.size();
  ASSERT_NE(n % 16, 0u);
  auto reference = [](FloatPredicate p, float x, float y) {
    bool unordered = std::isnan(x) || std::isnan(y);
    // 1 equal, 2 greater, 4 less, 8 unordered; by the order of the enum.
    const unsigned relations[] = {0, 1,  2,  3,  4,  5,  6, 7,
                                  9, 10, 11, 12, 13, 14, 8, 15};
    unsigned actual = unordered ? 8 : x == y ? 1 : x > y ? 2 : 4;
    return (relations[unsigned(p)] & actual) != 0;
  };
  for (unsigned p = 0; p <= unsigned(FloatPredicate::True); ++p) {
    std::vector<int32_t> r(n);
    k.compareFloat(FloatPredicate(p), a.data(), 1, b.data(), 1, r.data(), n);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(r[i], reference(FloatPredicate(p), a[i], b[i]))
          << p << ": " << a[i] << " " << b[i];
    std::vector<int32_t> scalar(n);
    k.compareFloat(FloatPredicate(p), a.data() + 2, 0, b.data(), 1,
                   scalar.data(), n);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(scalar[i], reference(FloatPredicate(p), a[2], b[i]));

    std::vector<float> chosen(n);
    for (size_t stepCondition : {0, 1})
      for (size_t stepA : {0, 1})
        for (size_t stepB : {0, 1}) {
          k.selectFloat(r.data(), stepCondition, a.data(), stepA, b.data(),
                        stepB, chosen.data(), n);
          for (size_t i = 0; i < n; ++i)
            ASSERT_TRUE(sameFloat(
                chosen[i], r[i * stepCondition] ? a[i * stepA] : b[i * stepB]));
        }
  }
}

SPYRE_INSTANTIATE_KERNEL_TEST(FloatKernels);

} // namespace
