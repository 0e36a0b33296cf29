// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/HostFloat.h"
#include "Reference.h"

#include <gtest/gtest.h>

using namespace spyre;

namespace {

TEST(HostFloat, AllHalvesDecodeExactly) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    float value = halfToFloat(static_cast<uint16_t>(code));
    double expected = reference::decodeHalf(static_cast<uint16_t>(code));
    ASSERT_EQ(std::isnan(value), std::isnan(expected)) << std::hex << code;
    if (std::isnan(value))
      continue;
    ASSERT_EQ(value, expected) << std::hex << code;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << code;
  }
}

TEST(HostFloat, SampleOfAllFloatsRoundsToHalf) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    float value = reference::floatOfBits(static_cast<uint32_t>(bits));
    ASSERT_EQ(floatToHalf(value), reference::encodeHalf(value))
        << std::hex << bits;
  }
}

TEST(HostFloat, HalvesOfHalvesGoToEven) {
  for (uint32_t code = 0; code < 0x7BFF; ++code) {
    double low = reference::decodeHalf(static_cast<uint16_t>(code));
    double high = reference::decodeHalf(static_cast<uint16_t>(code + 1));
    auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(floatToHalf(middle), code + (code & 1));
    ASSERT_EQ(floatToHalf(std::nextafter(middle, 0.0f)), code);
    ASSERT_EQ(floatToHalf(std::nextafter(middle, 1e9f)), code + 1);
  }
  EXPECT_EQ(floatToHalf(65519.996f), 0x7BFF);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7C00);
}

TEST(HostFloat, BFloat16) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    float value = bfloat16ToFloat(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      ASSERT_EQ(floatToBFloat16(value), 0x7FC0);
      continue;
    }
    ASSERT_EQ(floatToBFloat16(value), code);
    if ((code & 0x7FFF) >= 0x7F80)
      continue;
    // The middle to the next larger magnitude goes to even.
    float middle = reference::floatOfBits((code << 16) + 0x8000);
    ASSERT_EQ(floatToBFloat16(middle), code + (code & 1));
    ASSERT_EQ(floatToBFloat16(reference::floatOfBits((code << 16) + 0x8001)),
              code + 1);
  }
}

TEST(HostFloat, AllHalvesEncodeAsDL16) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    uint16_t half = static_cast<uint16_t>(code);
    ASSERT_EQ(halfToDL16(half),
              reference::encodeDL16(reference::decodeHalf(half)))
        << std::hex << code;
    ASSERT_EQ(halfToDL16(half), encodeDL16(halfToFloat(half)));
  }
}

TEST(HostFloat, AllDL16RoundToHalf) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    uint16_t dl16 = static_cast<uint16_t>(code);
    double value = reference::decodeDL16(dl16);
    // spec/numerics.md, "Host formats".
    uint16_t expected = std::fabs(value) == 65536
                            ? reference::encodeHalf(std::copysign(65504, value))
                            : reference::encodeHalf(value);
    ASSERT_EQ(dl16ToHalf(dl16), expected) << std::hex << code;
  }
}

} // namespace
