// SPDX-License-Identifier: Apache-2.0
#include "HostConversions.h"

using namespace spyre;

// Functions are compiled for each of these processors; those that fit are
// chosen when the library is loaded. They differ in speed only: what is called
// has no product whose rounding a fused addition would skip.
#if defined(__x86_64__)
#define SPYRE_FOR_EACH_PROCESSOR                                               \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SPYRE_FOR_EACH_PROCESSOR
#endif

#define SPYRE_CONVERT(C)                                                       \
  SPYRE_FOR_EACH_PROCESSOR                                                     \
  void spyre::convertToDevice(C c, const uint16_t *source, uint16_t *target,   \
                              int64_t count, bool pastCaches) {                \
    rowToDevice(c, source, target, count, pastCaches);                         \
  }                                                                            \
  SPYRE_FOR_EACH_PROCESSOR                                                     \
  void spyre::convertToHost(C c, const uint16_t *source, uint16_t *target,     \
                            int64_t count) {                                   \
    rowToHost(c, source, target, count);                                       \
  }
SPYRE_CONVERT(HalfConversion)
SPYRE_CONVERT(BFloat16Conversion)

template <typename C>
SPYRE_INLINE void blockToDevice(C c, const uint16_t *host, uint16_t *device,
                                const Transposition &t, bool pastCaches) {
  constexpr int kLength = kLineLength<uint16_t>;
  Line<uint16_t> lines[kLength];
  SPYRE_UNROLL for (int i = 0; i < kLength; ++i)
      lineToDevice(c, host + i * t.hostStride, lines[i]);
  transposeLines<uint16_t>(lines);
  SPYRE_UNROLL for (int i = 0; i < kLength; ++i)
      storeLine(lines[i], device + i * t.deviceStride, pastCaches);
}

/// From block to block along a stick, which is two lines, so that it is written
/// whole; then along the host's rows.
template <typename C>
SPYRE_INLINE void blocksToDevice(C c, const uint16_t *host, uint16_t *device,
                                 const Transposition &t, bool pastCaches) {
  constexpr int64_t kLength = kLineLength<uint16_t>;
  const int64_t rows = t.rowLength / kLength * kLength;
  const int64_t columns = t.columnLength / (2 * kLength) * (2 * kLength);
  pastCaches &= beginsLine(device) && t.deviceStride % kLength == 0;
  for (int64_t stick = 0; stick < columns; stick += 2 * kLength)
    for (int64_t row = 0; row < rows; row += kLength)
      for (int64_t column : {stick, stick + kLength})
        blockToDevice(c, host + column * t.hostStride + row,
                      device + row * t.deviceStride + column, t, pastCaches);
  Transposition rest = t;
  rest.rowLength -= rows;
  transposeTilesToDevice(c, host + rows, device + rows * t.deviceStride, rest);
  rest.rowLength = rows;
  rest.columnLength -= columns;
  transposeTilesToDevice(c, host + columns * t.hostStride, device + columns,
                         rest);
}

// 32 lines are in registers at once, of which other processors have fewer, and
// narrower ones.
#if defined(__x86_64__)
#define SPYRE_TRANSPOSE(C)                                                     \
  __attribute__((target("arch=x86-64-v4"))) static void transposeWide(         \
      C c, const uint16_t *host, uint16_t *device, const Transposition &t,     \
      bool pastCaches) {                                                       \
    blocksToDevice(c, host, device, t, pastCaches);                            \
  }                                                                            \
  void spyre::transposeToDevice(C c, const uint16_t *host, uint16_t *device,   \
                                const Transposition &t, bool pastCaches) {     \
    if (__builtin_cpu_supports("x86-64-v4"))                                   \
      transposeWide(c, host, device, t, pastCaches);                           \
    else                                                                       \
      transposeTilesToDevice(c, host, device, t);                              \
  }
#else
#define SPYRE_TRANSPOSE(C)                                                     \
  void spyre::transposeToDevice(C c, const uint16_t *host, uint16_t *device,   \
                                const Transposition &t, bool) {                \
    transposeTilesToDevice(c, host, device, t);                                \
  }
#endif
SPYRE_TRANSPOSE(HalfConversion)
SPYRE_TRANSPOSE(BFloat16Conversion)

SPYRE_FOR_EACH_PROCESSOR
int64_t spyre::countBFloat16OutsideDL16(const uint16_t *values, size_t count) {
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i)
    total += isBFloat16OutsideDL16(values[i]);
  return total;
}
