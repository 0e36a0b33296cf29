// SPDX-License-Identifier: Apache-2.0
//===- Reference.h - Slow conversions, written from the rules ---*- C++ -*-===//
//
// In double arithmetic from spec/numerics.md, without the library's code.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_UNITTESTS_DEVICE_REFERENCE_H
#define SPYRE_UNITTESTS_DEVICE_REFERENCE_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace spyre::reference {

inline float floatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// (-1)^s x 2^(e-31) x (1 + f/512).
inline double decodeDL16(uint16_t code) {
  int sign = code >> 15, exponent = (code >> 9) & 63, fraction = code & 511;
  double value;
  if (exponent == 0 && fraction == 0)
    value = 0;
  else if (exponent == 63 && fraction == 511)
    value = std::numeric_limits<double>::infinity();
  else
    value = std::ldexp(1 + fraction / 512.0, exponent - 31);
  return sign ? -value : value;
}

inline uint16_t encodeDL16(double value) {
  if (std::isnan(value))
    return 0x7FFF;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return sign | 0x7FFF;
  int exponent = std::ilogb(magnitude);
  // Units of the last fraction bit, halves away from zero.
  double units = std::floor(std::ldexp(magnitude, 9 - exponent) + 0.5);
  if (units == 1024) {
    units = 512;
    ++exponent;
  }
  int biased = exponent + 31;
  if (biased < 0)
    return sign;
  int code = biased * 512 + static_cast<int>(units) - 512;
  if (code >= 0x7FFF)
    return sign | 0x7FFF;
  return sign | static_cast<uint16_t>(code);
}

/// IEEE half: 5 exponent bits, 10 fraction bits.
inline double decodeHalf(uint16_t code) {
  int sign = code >> 15, exponent = (code >> 10) & 31, fraction = code & 1023;
  double value;
  if (exponent == 31)
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(fraction, -24);
  else
    value = std::ldexp(1024 + fraction, exponent - 25);
  return sign ? -value : value;
}

/// To nearest, halves to even (the default mode of nearbyint).
inline uint16_t encodeHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7E00;
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return sign | 0x7C00;
  int exponent = std::ilogb(magnitude);
  if (exponent < -14)
    exponent = -14;
  double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  // Below 1024: subnormal. 2048: the carry reaches the exponent.
  int code = (exponent + 14) * 1024 + static_cast<int>(units);
  if (exponent > 15 || code > 0x7C00)
    code = 0x7C00;
  return sign | static_cast<uint16_t>(code);
}

inline double decodeBFloat16(uint16_t code) {
  return floatOfBits(static_cast<uint32_t>(code) << 16);
}

} // namespace spyre::reference

#endif // SPYRE_UNITTESTS_DEVICE_REFERENCE_H
