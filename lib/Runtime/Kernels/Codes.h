// SPDX-License-Identifier: Apache-2.0
//===- Codes.h - Floats from codes and back, in groups ----------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_CODES_H
#define SPYRE_LIB_RUNTIME_KERNELS_CODES_H

#include "Rounders.h"
#include "Vector.h"

#include <type_traits>

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// How far ahead codes are fetched.
constexpr ptrdiff_t kAheadBytes = 8192;

/// Fetches what comes `ahead` bytes behind `Bytes` bytes. The hardware's
/// prefetcher stops at pages; what follows is often the next row, or the next
/// tile. `Cache` is 3 for the first one and 2 for the second one.
template <int Bytes, bool IsWrite, int Cache = 3>
SPYRE_INLINE void fetchAhead(const void *p, ptrdiff_t ahead = kAheadBytes) {
  constexpr int line = 64;
  static_assert(Bytes < line || Bytes % line == 0);
  unroll<(Bytes + line - 1) / line>([&](auto i) SPYRE_INLINE_LAMBDA {
    __builtin_prefetch(static_cast<const char *>(p) + i * line + ahead, IsWrite,
                       Cache);
  });
}

/// How far ahead to fetch codes of rows of `columns`, `stride` elements apart:
/// as many rows as `bytes` hold. Behind the last row there often is the next
/// tile's first.
template <class Code>
SPYRE_INLINE ptrdiff_t aheadOf(size_t rows, ptrdiff_t stride, size_t columns,
                               ptrdiff_t bytes = kAheadBytes) {
  size_t rowBytes = columns * sizeof(Code);
  if (rows == 1 || rowBytes == 0 || rowBytes >= size_t(bytes))
    return bytes;
  return ptrdiff_t(size_t(bytes) / rowBytes) * stride * ptrdiff_t(sizeof(Code));
}

/// Whether rows that are fetched so far ahead would drive each other out of the
/// first-level cache before they are read: lines that lie a multiple of 4 KiB
/// apart share its eight ways.
template <class Code>
SPYRE_INLINE bool shareWays(ptrdiff_t stride, size_t columns) {
  constexpr ptrdiff_t distance = 4096;
  constexpr size_t ways = 8;
  return stride * ptrdiff_t(sizeof(Code)) % distance == 0 &&
         columns * sizeof(Code) * ways < size_t(kAheadBytes);
}

/// The order of lanes in a group: that of memory, or one that takes fewer
/// instructions, the same for all vectors of kGroup * kLanes values or codes.
enum class LaneOrder { Memory, Packed };

/// The values of as many codes as kGroup vectors hold. VCode is a vector of
/// codes with as many lanes as VF.
template <class Format, class VCode, LaneOrder Order = LaneOrder::Memory,
          class Code>
SPYRE_INLINE void decodeGroup(const Code *src, VF (&values)[kGroup]) {
  if constexpr (std::is_same_v<Format, FormatDL16>) {
    VW codes[kGroup / 2], largest = {};
    for (int g = 0; g < kGroup / 2; ++g) {
      codes[g] = load<VW>(src + 2 * g * kLanes);
      if constexpr (Order == LaneOrder::Memory)
        codes[g] = toPackedOrder(codes[g]);
      VW doubled = codes[g] + codes[g];
      largest = doubled > largest ? doubled : largest;
    }
    if (!mayHold(largest == VW{} + uint16_t(0xfffe))) {
      for (int g = 0; g < kGroup / 2; ++g)
        Format::decodePair(codes[g], values[2 * g], values[2 * g + 1]);
      return;
    }
    if constexpr (Order == LaneOrder::Packed) {
      for (int g = 0; g < kGroup / 2; ++g) {
        unpackHalves(codes[g], VW{}, values[2 * g], values[2 * g + 1]);
        for (int i = 2 * g; i < 2 * g + 2; ++i)
          values[i] = Format::decode(bitsAs<VU>(values[i]));
      }
      return;
    }
  }
  for (int g = 0; g < kGroup; ++g)
    values[g] = Format::decode(
        __builtin_convertvector(load<VCode>(src + g * kLanes), VU));
}

/// The codes of kGroup vectors of any floats, rounded. The common ones are
/// streamed if `Streams`.
template <class Format, class VCode, LaneOrder Order = LaneOrder::Memory,
          bool Streams = false, class Code>
SPYRE_INLINE void encodeGroup(const VF (&values)[kGroup], Code *dst) {
  if constexpr (std::is_same_v<Format, FormatDL16>) {
    auto put = [&](int g, VW codes) SPYRE_INLINE_LAMBDA {
      if constexpr (Order == LaneOrder::Memory)
        codes = fromPackedOrder(codes);
      if constexpr (Streams)
        stream(dst + 2 * g * kLanes, codes);
      else
        store(dst + 2 * g * kLanes, codes);
    };
    VW codes[kGroup / 2], any = {};
    for (int g = 0; g < kGroup / 2; ++g) {
      codes[g] = Format::encodeMagnitudes(values[2 * g], values[2 * g + 1]);
      any |= codes[g];
    }
    if (!mayHold(bitsAs<VS>(any) < int16_t(0))) {
      for (int g = 0; g < kGroup / 2; ++g)
        put(g, codes[g] | packSigns(values[2 * g], values[2 * g + 1]));
      return;
    }
    if constexpr (Order == LaneOrder::Packed) {
      for (int g = 0; g < kGroup / 2; ++g)
        put(g, packUnsigned(bitsAs<VI>(Format::encode(values[2 * g])),
                            bitsAs<VI>(Format::encode(values[2 * g + 1]))));
      return;
    }
  }
  for (int g = 0; g < kGroup; ++g)
    store(dst + g * kLanes,
          __builtin_convertvector(Format::encode(values[g]), VCode));
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_CODES_H
