// SPDX-License-Identifier: Apache-2.0
//===- HostConversions.h - Elements of the host and the device --*- C++ -*-===//

#ifndef SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H
#define SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H

#include "Spyre/Device/DL16.h"
#include "Spyre/Device/HostFloat.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace spyre {

/// Host and Device are the stored types.
struct HalfConversion {
  using Host = uint16_t;
  using Device = uint16_t;
  static Device toDevice(Host value) { return halfToDL16(value); }
  static Host toHost(Device code) { return dl16ToHalf(code); }
};
struct BFloat16Conversion {
  using Host = uint16_t;
  using Device = uint16_t;
  static Device toDevice(Host value) {
    return encodeDL16(bfloat16ToFloat(value));
  }
  static Host toHost(Device code) { return floatToBFloat16(decodeDL16(code)); }
};
struct BoolConversion {
  using Host = uint8_t;
  using Device = uint16_t;
  static constexpr Device kOne = 31 << 9;
  static Device toDevice(Host value) { return value ? kOne : 0; }
  static Host toHost(Device code) { return (code & 0x7FFF) != 0; }
};
template <typename H, typename D>
struct PlainConversion {
  using Host = H;
  using Device = D;
  static Device toDevice(Host value) { return static_cast<Device>(value); }
  static Host toHost(Device value) { return static_cast<Host>(value); }
};
struct SaturatingConversion : PlainConversion<int64_t, int32_t> {
  static Device toDevice(Host value) {
    return static_cast<Device>(
        std::clamp<Host>(value, std::numeric_limits<Device>::min(),
                         std::numeric_limits<Device>::max()));
  }
};

/// Converts `count` elements that follow each other on both sides.
template <typename C>
void convertToDevice(C, const typename C::Host *__restrict source,
                     typename C::Device *__restrict target, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    target[i] = C::toDevice(source[i]);
}
inline void convertToDevice(HalfConversion, const uint16_t *source,
                            uint16_t *target, int64_t count) {
  halfToDL16(source, target, static_cast<size_t>(count));
}
inline void convertToDevice(BFloat16Conversion, const uint16_t *source,
                            uint16_t *target, int64_t count) {
  bfloat16ToDL16(source, target, static_cast<size_t>(count));
}

template <typename C>
void convertToHost(C, const typename C::Device *__restrict source,
                   typename C::Host *__restrict target, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    target[i] = C::toHost(source[i]);
}
inline void convertToHost(HalfConversion, const uint16_t *source,
                          uint16_t *target, int64_t count) {
  dl16ToHalf(source, target, static_cast<size_t>(count));
}
inline void convertToHost(BFloat16Conversion, const uint16_t *source,
                          uint16_t *target, int64_t count) {
  dl16ToBFloat16(source, target, static_cast<size_t>(count));
}

} // namespace spyre

#endif // SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H
