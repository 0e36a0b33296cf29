// SPDX-License-Identifier: Apache-2.0
//===- HostFloat.h - IEEE half and bfloat16 on any host ---------*- C++ -*-===//
//
// Integer arithmetic and selects only: independent of what the processor knows,
// of its denormal and rounding modes (floatToHalf: of the former), and loops
// over them vectorise.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_HOSTFLOAT_H
#define SPYRE_DEVICE_HOSTFLOAT_H

#include "Spyre/Device/DL16.h"

namespace spyre {

/// Exact; a NaN keeps its payload.
inline float halfToFloat(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7FFFu;
  // fp32 bias 127, half bias 15.
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t special = (magnitude << 13) | 0x7F800000u;
  // Subnormal: an integer number of 2^-24, which fp32 holds as a normal number.
  uint32_t subnormal =
      detail::bitsOf(static_cast<float>(static_cast<int32_t>(magnitude))) -
      (24u << 23);
  subnormal = magnitude == 0 ? 0u : subnormal;
  uint32_t bits = magnitude < 0x400u ? subnormal : normal;
  bits = magnitude >= 0x7C00u ? special : bits;
  return detail::floatOf(bits | sign);
}

/// To nearest, halves to even; too large gives infinity, NaN 0x7E00 with its
/// sign.
inline uint16_t floatToHalf(float value) {
  uint32_t bits = detail::bitsOf(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t normal =
      ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  // Below 2^-14: adding 0.5 aligns the unit 2^-24 of half's subnormals with the
  // last fraction bit of fp32, so that the addition rounds.
  uint32_t subnormal =
      detail::bitsOf(detail::floatOf(magnitude) + 0.5f) - 0x3F000000u;
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477FF000u ? 0x7C00u : half;
  half = magnitude > 0x7F800000u ? 0x7E00u : half;
  return static_cast<uint16_t>(half | sign);
}

/// Exact.
inline float bfloat16ToFloat(uint16_t value) {
  return detail::floatOf(static_cast<uint32_t>(value) << 16);
}

/// To nearest, halves to even; NaN gives 0x7FC0.
inline uint16_t floatToBFloat16(float value) {
  uint32_t bits = detail::bitsOf(value);
  uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  rounded = (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded;
  return static_cast<uint16_t>(rounded);
}

/// encodeDL16(halfToFloat(half)), in fewer steps.
inline uint16_t halfToDL16(uint16_t half) {
  uint32_t sign = half & 0x8000u;
  uint32_t magnitude = half & 0x7FFFu;
  // One fraction bit fewer, halves away from zero; bias 15 to 31.
  uint32_t normal = ((magnitude + 1u) >> 1) + (16u << 9);
  // An integer below 1024, times 2^-24.
  uint32_t integer =
      detail::bitsOf(static_cast<float>(static_cast<int32_t>(magnitude)));
  uint32_t subnormal = ((integer + 0x2000u) >> 14) - ((96u + 24u) << 9);
  subnormal = magnitude == 0 ? 0u : subnormal;
  uint32_t code = magnitude < 0x400u ? subnormal : normal;
  code = magnitude >= 0x7C00u ? 0x7FFFu : code;
  sign = magnitude > 0x7C00u ? 0u : sign;
  return static_cast<uint16_t>(code | sign);
}

/// To nearest, halves to even, but 65536 gives 65504, the half that encodes as
/// it; what is larger gives infinity (spec/numerics.md, "Host formats").
inline uint16_t dl16ToHalf(uint16_t code) {
  uint32_t magnitude = code & 0x7FFFu;
  uint32_t half = floatToHalf(decodeDL16(code)) & 0x7FFFu;
  half = magnitude == (47u << 9) ? 0x7BFFu : half;
  return static_cast<uint16_t>(half | (code & 0x8000u));
}

/// Whether a finite value other than zero becomes zero or a non-number on the
/// device: all outside 2^-31 < |x| < 2^33 (spec/numerics.md, "Host formats").
inline bool isBFloat16OutsideDL16(uint16_t value) {
  uint32_t magnitude = value & 0x7FFFu;
  // 2^-31 is the code of zero.
  constexpr uint32_t kSmallest = (127 - 31) << 7;
  constexpr uint32_t kTooLarge = (127 + 33) << 7;
  constexpr uint32_t kInfinity = 0x7F80;
  bool isTooSmall = magnitude != 0 && magnitude <= kSmallest;
  bool isTooLarge = magnitude >= kTooLarge && magnitude < kInfinity;
  return isTooSmall | isTooLarge;
}

/// How many of these values are, with the widest vectors that the processor
/// has.
int64_t countBFloat16OutsideDL16(const uint16_t *values, size_t count);

} // namespace spyre

#endif // SPYRE_DEVICE_HOSTFLOAT_H
