// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DL16.h"
#include "Reference.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

using namespace spyre;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(DL16, AllCodesDecodeAsTheRulesSay) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    float value = decodeDL16(static_cast<uint16_t>(code));
    double expected = reference::decodeDL16(static_cast<uint16_t>(code));
    ASSERT_EQ(value, expected) << std::hex << code;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << code;
  }
}

TEST(DL16, AllCodesRoundTrip) {
  for (uint32_t code = 0; code < 0x10000; ++code)
    ASSERT_EQ(encodeDL16(decodeDL16(static_cast<uint16_t>(code))), code);
}

TEST(DL16, SampleOfAllFloatsAgreesWithTheRules) {
  // A prime stride meets all exponents and, over them, all low bits.
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1009) {
    float value = reference::floatOfBits(static_cast<uint32_t>(bits));
    ASSERT_EQ(encodeDL16(value), reference::encodeDL16(value))
        << std::hex << bits;
  }
}

// The proof behind the sample, some minutes long. By hand:
//   SpyreDeviceTests --gtest_also_run_disabled_tests --gtest_filter=*AllFloats*
TEST(DL16, DISABLED_AllFloatsAgreeWithTheRules) {
  constexpr uint64_t block = uint64_t(1) << 20;
  std::vector<float> values(block), back(block);
  std::vector<uint16_t> codes(block);
  for (uint64_t first = 0; first < (uint64_t(1) << 32); first += block) {
    for (uint64_t i = 0; i < block; ++i)
      values[i] = reference::floatOfBits(static_cast<uint32_t>(first + i));
    encodeDL16(values.data(), codes.data(), block);
    decodeDL16(codes.data(), back.data(), block);
    for (uint64_t i = 0; i < block; ++i) {
      uint16_t expected = reference::encodeDL16(values[i]);
      ASSERT_EQ(codes[i], expected) << std::hex << first + i;
      ASSERT_EQ(encodeDL16(values[i]), expected) << std::hex << first + i;
      ASSERT_EQ(back[i], reference::decodeDL16(expected))
          << std::hex << first + i;
    }
  }
}

TEST(DL16, HalvesGoAwayFromZeroBetweenAllNeighbours) {
  for (uint32_t code = 1; code < 0x7FFE; ++code) {
    uint16_t low = static_cast<uint16_t>(code);
    uint16_t high = static_cast<uint16_t>(code + 1);
    // Exact: both have ten significant bits.
    float middle = static_cast<float>(
        (reference::decodeDL16(low) + reference::decodeDL16(high)) / 2);
    ASSERT_EQ(encodeDL16(middle), high);
    ASSERT_EQ(encodeDL16(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(encodeDL16(-middle), high | 0x8000);
    ASSERT_EQ(encodeDL16(std::nextafter(-middle, 0.0f)), low | 0x8000);
  }
}

TEST(DL16, NumbersThatItLacks) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (double number :
       {0.0, -0.0, 1.0, double(kSmallestDL16), -double(kLargestDL16), infinity,
        -infinity, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(isBeyondDL16(number)) << number;
  for (double number :
       {1e-300, -4e-10, 8.6e9, -1e10, std::nextafter(kLargestDL16, infinity)})
    EXPECT_TRUE(isBeyondDL16(number)) << number;
}

TEST(DL16, LargestFiniteAndOverflow) {
  float largest = std::ldexp(2.0f - 2.0f / 512, 32);
  EXPECT_EQ(encodeDL16(largest), 0x7FFE);
  // Half a unit above, the first value that rounds to the non-number.
  float half = std::ldexp(2.0f - 1.5f / 512, 32);
  EXPECT_EQ(encodeDL16(std::nextafter(half, 0.0f)), 0x7FFE);
  EXPECT_EQ(encodeDL16(half), 0x7FFF);
  EXPECT_EQ(encodeDL16(-half), 0xFFFF);
  EXPECT_EQ(encodeDL16(std::ldexp(1.0f, 33)), 0x7FFF);
  EXPECT_EQ(encodeDL16(std::numeric_limits<float>::max()), 0x7FFF);
  EXPECT_EQ(encodeDL16(std::numeric_limits<float>::lowest()), 0xFFFF);
  EXPECT_EQ(decodeDL16(0x7FFF), kInfinity);
  EXPECT_EQ(decodeDL16(0xFFFF), -kInfinity);
}

TEST(DL16, SmallestAndUnderflow) {
  float smallest = std::ldexp(1.0f + 1.0f / 512, -31);
  EXPECT_EQ(encodeDL16(smallest), 0x0001);
  EXPECT_EQ(encodeDL16(-smallest), 0x8001);
  // 2^-31 is exponent 0, fraction 0: the code of zero.
  EXPECT_EQ(encodeDL16(std::ldexp(1.0f, -31)), 0x0000);
  EXPECT_EQ(encodeDL16(-std::ldexp(1.0f, -31)), 0x8000);
  // Halfway from there to the smallest.
  float half = std::ldexp(1.0f + 0.5f / 512, -31);
  EXPECT_EQ(encodeDL16(half), 0x0001);
  EXPECT_EQ(encodeDL16(std::nextafter(half, 0.0f)), 0x0000);
  // Rounds up to 2^-31, which is zero too.
  EXPECT_EQ(encodeDL16(std::nextafter(std::ldexp(1.0f, -31), 0.0f)), 0x0000);
  EXPECT_EQ(encodeDL16(std::ldexp(1.5f, -32)), 0x0000);
  EXPECT_EQ(encodeDL16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(encodeDL16(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(DL16, ZerosInfinitiesAndNaN) {
  EXPECT_EQ(encodeDL16(0.0f), 0x0000);
  EXPECT_EQ(encodeDL16(-0.0f), 0x8000);
  EXPECT_EQ(encodeDL16(kInfinity), 0x7FFF);
  EXPECT_EQ(encodeDL16(-kInfinity), 0xFFFF);
  // A NaN of either sign.
  EXPECT_EQ(encodeDL16(kNaN), 0x7FFF);
  EXPECT_EQ(encodeDL16(std::copysign(kNaN, -1.0f)), 0x7FFF);
  EXPECT_EQ(encodeDL16(reference::floatOfBits(0xFF800001u)), 0x7FFF);
  EXPECT_EQ(roundDL16(kNaN), kInfinity);
}

TEST(DL16, StrictReadingOfTheNonNumber) {
  EXPECT_TRUE(std::isnan(decodeDL16Strictly(0x7FFF)));
  EXPECT_TRUE(std::isnan(decodeDL16Strictly(0xFFFF)));
  for (uint32_t code = 0; code < 0x10000; ++code)
    if ((code & 0x7FFF) != 0x7FFF)
      ASSERT_EQ(decodeDL16Strictly(static_cast<uint16_t>(code)),
                decodeDL16(static_cast<uint16_t>(code)));
}

TEST(DL16, Examples) {
  EXPECT_EQ(encodeDL16(1.0f), 0x3E00);
  EXPECT_EQ(encodeDL16(-2.0f), 0xC000);
  EXPECT_EQ(encodeDL16(65504.0f), 0x5E00); // 65536: spec/numerics.md
  EXPECT_EQ(roundDL16(65504.0f), 65536.0f);
  EXPECT_EQ(roundDL16(1.0f + 1.0f / 1024), 1.0f + 1.0f / 512);
}

TEST(DL16, BulkConversionsAreTheScalarOnes) {
  // An odd length leaves a tail after the vectors.
  std::vector<float> values;
  for (uint32_t i = 0; i < 10007; ++i)
    values.push_back(reference::floatOfBits(i * 2654435761u));
  std::vector<uint16_t> codes(values.size());
  encodeDL16(values.data(), codes.data(), values.size());
  std::vector<float> decoded(values.size());
  decodeDL16(codes.data(), decoded.data(), codes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(codes[i], encodeDL16(values[i]));
    ASSERT_EQ(decoded[i], roundDL16(values[i]));
  }
}

} // namespace
