// SPDX-License-Identifier: Apache-2.0
//===- DL16.h - The 16-bit device format SEN169_FP16 ------------*- C++ -*-===//
//
// 1 sign, 6 exponent, 9 fraction bits, bias 31, no subnormals. Rules:
// spec/numerics.md, "Number formats, rounding, tolerances". The non-number
// (exponent 63, fraction 511) stands for infinity; NaN encodes as 0x7FFF.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_DL16_H
#define SPYRE_DEVICE_DL16_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spyre {

namespace detail {
inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
} // namespace detail

/// The DL16 code nearest to `value`, halves away from zero. Selects only, so
/// that loops over it vectorise.
inline uint16_t encodeDL16(float value) {
  uint32_t bits = detail::bitsOf(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Half a unit of fraction bit 9 of 23, then the 14 lower bits go; the carry
  // reaches the exponent by itself.
  uint32_t rounded = (magnitude + 0x2000u) >> 14;
  // fp32 bias 127 to bias 31: (127 - 31) << 9.
  constexpr uint32_t kRebias = 96u << 9;
  uint32_t code = rounded - kRebias;
  // Biased exponent 0 with fraction 0 is zero, and so is everything below.
  code = rounded <= kRebias ? 0u : code;
  // Above the largest finite code, infinities and NaN.
  bool isTooLarge = rounded >= kRebias + 0x7FFFu;
  code = isTooLarge ? 0x7FFFu : code;
  // A NaN has no sign on the device.
  sign = magnitude > 0x7F800000u ? 0u : sign;
  return static_cast<uint16_t>(code | sign);
}

/// Exact; the non-number gives the infinity of its sign.
inline float decodeDL16(uint16_t code) {
  uint32_t sign = static_cast<uint32_t>(code & 0x8000u) << 16;
  uint32_t magnitude = code & 0x7FFFu;
  uint32_t bits = (magnitude + (96u << 9)) << 14;
  bits = magnitude == 0 ? 0u : bits;
  bits = magnitude == 0x7FFFu ? 0x7F800000u : bits;
  return detail::floatOf(bits | sign);
}

/// Likewise, but the non-number gives a NaN: the strict zDNN reading,
/// NonNumber::NaN of DeviceSpec.
inline float decodeDL16Strictly(uint16_t code) {
  float value = decodeDL16(code);
  uint32_t magnitude = code & 0x7FFFu;
  return magnitude == 0x7FFFu ? detail::floatOf(0x7FC00000u) : value;
}

/// Codes of larger numbers are the non-number, of numbers nearer to 0 zeros.
inline constexpr float kLargestDL16 = (2 - 2 / 512.0f) * 4294967296.0f;
inline constexpr float kSmallestDL16 = (1 + 1 / 512.0f) / 2147483648.0f;

/// Whether a number is finite and not 0, but its code need not be.
inline bool isBeyondDL16(double number) {
  double magnitude = std::abs(number);
  return std::isfinite(number) && magnitude != 0 &&
         (magnitude < kSmallestDL16 || magnitude > kLargestDL16);
}

/// decodeDL16(encodeDL16(value)).
inline float roundDL16(float value) { return decodeDL16(encodeDL16(value)); }

/// `count` conversions.
void encodeDL16(const float *values, uint16_t *codes, size_t count);
void decodeDL16(const uint16_t *codes, float *values, size_t count);

} // namespace spyre

#endif // SPYRE_DEVICE_DL16_H
