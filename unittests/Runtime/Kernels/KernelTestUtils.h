// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_UNITTESTS_RUNTIME_KERNELS_KERNELTESTUTILS_H
#define SPYRE_UNITTESTS_RUNTIME_KERNELS_KERNELTESTUTILS_H

#include "Spyre/Runtime/Kernels/TileKernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace spyre::runtime {

// Prints the variant's name instead of its bytes.
inline void PrintTo(const KernelTable *table, std::ostream *os) {
  *os << table->name;
}

/// Every test of the kernels runs on each instruction set of the host.
class KernelTest : public ::testing::TestWithParam<const KernelTable *> {
protected:
  const KernelTable &k = *GetParam();
};

#define SPYRE_INSTANTIATE_KERNEL_TEST(CLASS)                                   \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Variants, CLASS, ::testing::ValuesIn(kernelVariants()),                  \
      [](const auto &info) { return std::string(info.param->name); })

inline const size_t kLengths[] = {0, 1, 3, 63, 64, 65, 1000};

inline float floatOfBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}
inline uint32_t bitsOfFloat(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(f));
  return bits;
}

/// Same bits, or both NaN.
inline bool sameFloat(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || bitsOfFloat(a) == bitsOfFloat(b);
}

/// Zeros, ones, infinities, NaN, subnormals, ties and the ends of the formats.
inline std::vector<float> specialFloats() {
  std::vector<float> values;
  for (float v : {0.0f,           1.0f,
                  0.5f,           1.5f,
                  2.0f,           2.5f,
                  3.0f,           0.49999997f,
                  8388607.5f,     8388608.0f,
                  16777216.0f,    65504.0f,
                  65519.9f,       65520.0f,
                  65536.0f,       448.0f,
                  464.0f,         464.1f,
                  57344.0f,       61440.0f,
                  0.70710678f,    1.4142135f,
                  0.78539816f,    1.57079633f,
                  3.14159265f,    0.625f,
                  0.9375f,        4.0f,
                  88.7f,          88.8f,
                  103.9f,         104.1f,
                  127.9f,         128.1f,
                  149.9f,         150.1f,
                  1e5f,           1e6f,
                  1.0000001f,     0.99999994f,
                  1e-8f,          1e-20f,
                  1e-38f,         1e-45f,
                  1.1754944e-38f, 1e20f,
                  3.4028235e38f,  6.1035156e-5f,
                  5.9604645e-8f,  2.9802322e-8f,
                  4.656613e-10f,  4.66e-10f,
                  8581545984.0f,  8585740288.0f,
                  8589934592.0f,  std::numeric_limits<float>::infinity()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

/// Special values and `count` bit patterns spread over all floats.
inline std::vector<float> sampleFloats(size_t count) {
  std::vector<float> values = specialFloats();
  uint32_t bits = 12345;
  for (size_t i = 0; i < count; ++i) {
    bits += 0x9e3779b1u;
    values.push_back(floatOfBits(bits));
  }
  return values;
}

/// Uniform values with a fixed seed.
inline std::vector<float> randomFloats(size_t count, float low, float high,
                                       unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &v : values)
    v = distribution(generator);
  return values;
}

/// Every code of DL16 in turn, but for the infinities, from `first` on.
inline std::vector<uint16_t> someCodes(size_t count, uint16_t first) {
  std::vector<uint16_t> codes(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t code = uint16_t(first + 7919 * i);
    codes[i] = (code & 0x7fff) == 0x7fff ? uint16_t(0x8000) : code;
  }
  return codes;
}

/// Of a matrix, in elements.
struct Strides {
  ptrdiff_t row, column;
};

/// Row-major, transposed, padded both ways.
inline std::vector<Strides> stridesOf(size_t rows, size_t columns) {
  return {{ptrdiff_t(columns), 1},
          {1, ptrdiff_t(rows)},
          {ptrdiff_t(columns) + 5, 1},
          {2, 2 * ptrdiff_t(rows) + 1}};
}

/// Values of at most 16 significant bits as a factor.
inline HalfFactor halves(const std::vector<float> &values, Strides strides,
                         uint64_t version = 0) {
  HalfFactor factor;
  factor.values = values.data();
  factor.rowStride = strides.row;
  factor.columnStride = strides.column;
  factor.version = version;
  return factor;
}
inline Strides rowMajor(size_t columns) { return {ptrdiff_t(columns), 1}; }
/// C += A * B by gemmOfHalves().
inline void multiplyHalves(const KernelTable &k, size_t m, size_t n,
                           size_t depth, const HalfFactor &a,
                           const HalfFactor &b, float *c,
                           ptrdiff_t rowStrideC) {
  const HalfProduct product = {a, m, c, rowStrideC};
  k.gemmOfHalves(&product, 1, n, depth, b);
}

/// Distance of `value` from `reference` in units of the last place of the
/// nearest float; 0 for equal infinities and NaNs.
inline double ulpError(float value, double reference) {
  float nearest = float(reference);
  if (std::isnan(nearest) || std::isnan(value))
    return std::isnan(nearest) == std::isnan(value)
               ? 0
               : std::numeric_limits<double>::infinity();
  if (std::isinf(nearest) || std::isinf(value)) {
    if (value == nearest)
      return 0;
    // Next to the largest float an infinity may be the neighbour.
    constexpr float largest = std::numeric_limits<float>::max();
    return std::fabs(value) >= largest && std::fabs(nearest) >= largest &&
                   std::signbit(value) == std::signbit(nearest)
               ? 1
               : std::numeric_limits<double>::infinity();
  }
  int exponent;
  std::frexp(nearest, &exponent);
  double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double(value) - reference) / unit;
}

} // namespace spyre::runtime

#endif // SPYRE_UNITTESTS_RUNTIME_KERNELS_KERNELTESTUTILS_H
