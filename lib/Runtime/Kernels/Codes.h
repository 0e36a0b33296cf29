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
/// tile.
template <int Bytes, bool IsWrite>
SPYRE_INLINE void fetchAhead(const void *p, ptrdiff_t ahead = kAheadBytes) {
  constexpr int line = 64;
  static_assert(Bytes < line || Bytes % line == 0);
  unroll<(Bytes + line - 1) / line>([&](auto i) SPYRE_INLINE_LAMBDA {
    __builtin_prefetch(static_cast<const char *>(p) + i * line + ahead,
                       IsWrite);
  });
}

/// How far ahead to fetch codes of rows of `columns`, `stride` elements apart:
/// as many rows as kAheadBytes hold. Behind the last row there often is the
/// next tile's first.
template <class Code>
SPYRE_INLINE ptrdiff_t aheadOf(size_t rows, ptrdiff_t stride, size_t columns) {
  size_t rowBytes = columns * sizeof(Code);
  if (rows == 1 || rowBytes >= size_t(kAheadBytes))
    return kAheadBytes;
  return ptrdiff_t(size_t(kAheadBytes) / rowBytes) * stride *
         ptrdiff_t(sizeof(Code));
}

/// The values of as many codes as kGroup vectors hold. VCode is a vector of
/// codes with as many lanes as VF.
template <class Format, class VCode, class Code>
SPYRE_INLINE void decodeGroup(const Code *src, VF (&values)[kGroup]) {
  VCode codes[kGroup];
  for (int g = 0; g < kGroup; ++g)
    codes[g] = load<VCode>(src + g * kLanes);
  if constexpr (std::is_same_v<Format, FormatDL16>) {
    VCode largest = {};
    for (VCode code : codes) {
      VCode magnitude = code & 0x7fff;
      largest = largest > magnitude ? largest : magnitude;
    }
    if (!mayHold(largest == (VCode{} + 0x7fff))) {
      for (int g = 0; g < kGroup; ++g)
        values[g] = Format::decodeNumber(__builtin_convertvector(codes[g], VU));
      return;
    }
  }
  for (int g = 0; g < kGroup; ++g)
    values[g] = Format::decode(__builtin_convertvector(codes[g], VU));
}

/// The codes of kGroup vectors of any floats, rounded.
template <class Format, class VCode, class Code>
SPYRE_INLINE void encodeGroup(const VF (&values)[kGroup], Code *dst) {
  if constexpr (std::is_same_v<Format, FormatDL16>) {
    VW top[kGroup / 2], largest = {};
    for (int g = 0; g < kGroup / 2; ++g) {
      top[g] = highHalves(values[2 * g], values[2 * g + 1]);
      VW magnitude = top[g] & uint16_t(0x7fff);
      largest = magnitude > largest ? magnitude : largest;
    }
    if (!mayHold(largest >= VW{} + Format::kNotInHalves)) {
      for (int g = 0; g < kGroup / 2; ++g)
        store(dst + 2 * g * kLanes,
              Format::encodePair(bitsAs<VU>(values[2 * g]),
                                 bitsAs<VU>(values[2 * g + 1]), top[g]));
      return;
    }
  }
  for (int g = 0; g < kGroup; ++g)
    store(dst + g * kLanes,
          __builtin_convertvector(Format::encode(values[g]), VCode));
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_CODES_H
