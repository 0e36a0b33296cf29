// SPDX-License-Identifier: Apache-2.0
//===- HostConversions.h - Elements of the host and the device --*- C++ -*-===//

#ifndef SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H
#define SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H

#include "Lines.h"
#include "Spyre/Device/DL16.h"
#include "Spyre/Device/HostFloat.h"
#include "TransposeSquare.h"

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

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// A line of the device from as many host elements.
template <typename C>
SPYRE_INLINE void lineToDevice(C, const typename C::Host *source,
                               Line<typename C::Device> &line) {
  constexpr int kLength = kLineLength<typename C::Device>;
  typename C::Device elements[kLength];
  for (int i = 0; i < kLength; ++i)
    elements[i] = C::toDevice(source[i]);
  std::memcpy(&line, elements, kLineBytes);
}

template <typename T>
SPYRE_INLINE bool isAny(const Line<T> &line) {
  return __builtin_reduce_or(line) != 0;
}

/// In lanes of 16 bits; zeros and normal numbers, which most are, first.
SPYRE_INLINE void lineToDevice(HalfConversion, const uint16_t *source,
                               Line<uint16_t> &line) {
  using Codes = Line<uint16_t>;
  using Signed = Line<int16_t>;
  // Comparisons give lanes of ones.
  auto where = [](const auto &lanes) SPYRE_INLINE_LAMBDA {
    return reinterpret_cast<Codes>(lanes);
  };
  std::memcpy(&line, source, kLineBytes);
  const Codes magnitude = line & 0x7FFF;
  Codes code = ((magnitude + 1) >> 1) + (16 << 9);
  Codes sign = line & 0x8000;
  const Codes isZero = where(magnitude == 0);
  const Codes isSubnormal = where(magnitude - 1 < 0x3FF);
  const Codes isSpecial = where(magnitude >= 0x7C00);
  if (isAny<uint16_t>(isSubnormal | isSpecial)) {
    // An integer below 1024 times 2^-24: its first bit goes to bit 10, which
    // adds 1 to the exponent behind it, of 2^-14.
    Codes shifted = magnitude, exponent = {};
    SPYRE_UNROLL for (int steps = 8; steps > 0; steps /= 2) {
      Codes isSmall = where(shifted < uint16_t(1 << (11 - steps)));
      shifted = ((shifted << steps) & isSmall) | (shifted & ~isSmall);
      exponent -= uint16_t(steps << 10) & isSmall;
    }
    auto rounded = reinterpret_cast<Signed>(shifted + exponent + 1) >> 1;
    Codes subnormal = reinterpret_cast<Codes>(rounded) + (16 << 9);
    code = (subnormal & isSubnormal) | (code & ~isSubnormal);
    code |= isSpecial & 0x7FFF;
    sign &= ~where(magnitude > 0x7C00);
  }
  line = (code & ~isZero) | sign;
}

//===----------------------------------------------------------------------===//
// Rows: elements that follow each other on both sides
//===----------------------------------------------------------------------===//

template <typename C>
SPYRE_INLINE void rowToDevice(C c, const typename C::Host *__restrict source,
                              typename C::Device *__restrict target,
                              int64_t count, bool pastCaches) {
  constexpr int kLength = kLineLength<typename C::Device>;
  pastCaches &= beginsLine(target);
  int64_t i = 0;
  for (; i + kLength <= count; i += kLength) {
    Line<typename C::Device> line;
    lineToDevice(c, source + i, line);
    storeLine(line, target + i, pastCaches);
  }
  for (; i < count; ++i)
    target[i] = C::toDevice(source[i]);
}

template <typename C>
SPYRE_INLINE void rowToHost(C, const typename C::Device *__restrict source,
                            typename C::Host *__restrict target,
                            int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    target[i] = C::toHost(source[i]);
}

//===----------------------------------------------------------------------===//
// Copies, those of halves with the widest vectors that the processor has
//===----------------------------------------------------------------------===//

/// Elements that follow each other on both sides.
template <typename C>
void convertToDevice(C c, const typename C::Host *source,
                     typename C::Device *target, int64_t count,
                     bool pastCaches) {
  rowToDevice(c, source, target, count, pastCaches);
}
template <typename C>
void convertToHost(C c, const typename C::Device *source,
                   typename C::Host *target, int64_t count) {
  rowToHost(c, source, target, count);
}

/// Rows of the host are columns of the device: the strides between them, in
/// elements, and how many elements of the host, and of the device, follow each
/// other.
struct Transposition {
  int64_t hostStride, deviceStride;
  int64_t rowLength, columnLength;
};

/// Edge of the tiles in which both sides of a transposition stay in the cache.
inline constexpr int64_t kTile = 64;
/// Elements of a tile along host rows, which lie far apart in memory. Long
/// enough for the processor's prefetcher.
inline constexpr int64_t kTileRow = 256;
/// From one row of a tile to the next: rows do not share their cache sets.
inline constexpr int64_t kTilePitch = kTileRow + 32;

template <typename C>
void transposeTilesToDevice(C conversion, const typename C::Host *host,
                            typename C::Device *device,
                            const Transposition &t) {
  typename C::Device tile[kTile][kTilePitch];
  for (int64_t c = 0; c < t.columnLength; c += kTile)
    for (int64_t r = 0; r < t.rowLength; r += kTileRow) {
      int64_t columns = std::min(kTile, t.columnLength - c);
      int64_t rows = std::min(kTileRow, t.rowLength - r);
      for (int64_t i = 0; i < columns; ++i)
        convertToDevice(conversion, host + (c + i) * t.hostStride + r, tile[i],
                        rows, false);
      transpose(tile[0], kTilePitch, device + r * t.deviceStride + c,
                t.deviceStride, columns, rows);
    }
}

template <typename C>
void transposeToDevice(C conversion, const typename C::Host *host,
                       typename C::Device *device, const Transposition &t,
                       bool /*pastCaches*/) {
  transposeTilesToDevice(conversion, host, device, t);
}

template <typename C>
void transposeToHost(C conversion, const typename C::Device *device,
                     typename C::Host *host, const Transposition &t) {
  typename C::Device tile[kTile][kTile];
  for (int64_t c = 0; c < t.columnLength; c += kTile)
    for (int64_t r = 0; r < t.rowLength; r += kTile) {
      int64_t columns = std::min(kTile, t.columnLength - c);
      int64_t rows = std::min(kTile, t.rowLength - r);
      transpose(device + r * t.deviceStride + c, t.deviceStride, tile[0], kTile,
                rows, columns);
      for (int64_t i = 0; i < columns; ++i)
        convertToHost(conversion, tile[i], host + (c + i) * t.hostStride + r,
                      rows);
    }
}

#define SPYRE_HALVES(C)                                                        \
  void convertToDevice(C, const uint16_t *source, uint16_t *target,            \
                       int64_t count, bool pastCaches);                        \
  void convertToHost(C, const uint16_t *source, uint16_t *target,              \
                     int64_t count);                                           \
  void transposeToDevice(C, const uint16_t *host, uint16_t *device,            \
                         const Transposition &t, bool pastCaches);
SPYRE_HALVES(HalfConversion)
SPYRE_HALVES(BFloat16Conversion)
#undef SPYRE_HALVES

} // namespace spyre

#endif // SPYRE_LIB_DEVICE_HOSTCONVERSIONS_H
