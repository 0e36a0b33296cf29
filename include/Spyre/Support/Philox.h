// SPDX-License-Identifier: Apache-2.0
//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC11): a 128-bit counter and a 64-bit key give four 32-bit numbers. Element i
// of a random tensor, in logical order, takes lane i mod 4 at counter
// offset + i div 4; a draw of n elements advances the offset by ceil(n / 4).
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_SUPPORT_PHILOX_H
#define SPYRE_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>

namespace spyre {

using PhiloxBlock = std::array<uint32_t, 4>;

/// The four numbers at a counter, least significant word first.
inline PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * counter[0];
    uint64_t p1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0,
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1,
               static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

/// The four numbers at a 64-bit counter.
inline PhiloxBlock philox4x32(uint64_t counter, uint64_t key) {
  return philox4x32({static_cast<uint32_t>(counter),
                     static_cast<uint32_t>(counter >> 32), 0, 0},
                    key);
}

} // namespace spyre

#endif // SPYRE_SUPPORT_PHILOX_H
