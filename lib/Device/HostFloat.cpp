// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/HostFloat.h"

using namespace spyre;

/// Compiles a function for each of these processors; the one that fits is
/// chosen when the library is loaded. They differ in speed only: what is called
/// has no product whose rounding a fused addition would skip.
#if defined(__x86_64__)
#define SPYRE_FOR_EACH_PROCESSOR                                               \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SPYRE_FOR_EACH_PROCESSOR
#endif

SPYRE_FOR_EACH_PROCESSOR
void spyre::halfToDL16(const uint16_t *__restrict halves,
                       uint16_t *__restrict codes, size_t count) {
  // A block of zeros and normal numbers, as most are, needs 16-bit lanes only.
  constexpr size_t kBlock = 64;
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    uint16_t hasOthers = 0;
    for (size_t k = i; k < i + kBlock; ++k) {
      auto magnitude = static_cast<uint16_t>(halves[k] & 0x7FFFu);
      bool isSubnormal = magnitude != 0 && magnitude < 0x400u;
      hasOthers |= static_cast<uint16_t>(isSubnormal | (magnitude >= 0x7C00u));
    }
    if (hasOthers) {
      for (size_t k = i; k < i + kBlock; ++k)
        codes[k] = halfToDL16(halves[k]);
      continue;
    }
    for (size_t k = i; k < i + kBlock; ++k) {
      auto magnitude = static_cast<uint16_t>(halves[k] & 0x7FFFu);
      auto code = static_cast<uint16_t>(((magnitude + 1u) >> 1) + (16u << 9));
      code = magnitude == 0 ? uint16_t(0) : code;
      codes[k] = static_cast<uint16_t>(code | (halves[k] & 0x8000u));
    }
  }
  for (; i < count; ++i)
    codes[i] = halfToDL16(halves[i]);
}

SPYRE_FOR_EACH_PROCESSOR
void spyre::dl16ToHalf(const uint16_t *__restrict codes,
                       uint16_t *__restrict halves, size_t count) {
  for (size_t i = 0; i < count; ++i)
    halves[i] = dl16ToHalf(codes[i]);
}

SPYRE_FOR_EACH_PROCESSOR
void spyre::bfloat16ToDL16(const uint16_t *__restrict values,
                           uint16_t *__restrict codes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    codes[i] = encodeDL16(bfloat16ToFloat(values[i]));
}

SPYRE_FOR_EACH_PROCESSOR
void spyre::dl16ToBFloat16(const uint16_t *__restrict codes,
                           uint16_t *__restrict values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = floatToBFloat16(decodeDL16(codes[i]));
}

SPYRE_FOR_EACH_PROCESSOR
int64_t spyre::countBFloat16OutsideDL16(const uint16_t *values, size_t count) {
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i)
    total += isBFloat16OutsideDL16(values[i]);
  return total;
}
