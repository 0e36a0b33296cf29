// SPDX-License-Identifier: Apache-2.0
#include "AmxPacking.h"
#include "Kernels.h"
#include "Vector.h"

namespace spyre::runtime::amx {

static SPYRE_INLINE __m512i loadWords(const void *p) {
  return _mm512_loadu_si512(p);
}

//===----------------------------------------------------------------------===//
// Parts of floats
//===----------------------------------------------------------------------===//

namespace {
/// 16 floats from each of two places. Those that are not finite are zero.
struct TwoVectors {
  __m512i first, second;
  __mmask16 nonFiniteInFirst, nonFiniteInSecond;

  SPYRE_INLINE TwoVectors(const float *p, const float *q)
      : first(loadWords(p)), second(loadWords(q)),
        nonFiniteInFirst(findNonFinite(first)),
        nonFiniteInSecond(findNonFinite(second)) {
    if (__builtin_expect(hasNonFinite(), 0)) {
      first = _mm512_maskz_mov_epi32(__mmask16(~nonFiniteInFirst), first);
      second = _mm512_maskz_mov_epi32(__mmask16(~nonFiniteInSecond), second);
    }
  }
  SPYRE_INLINE bool hasNonFinite() const {
    return (nonFiniteInFirst | nonFiniteInSecond) != 0;
  }

private:
  static SPYRE_INLINE __mmask16 findNonFinite(__m512i x) {
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    return _mm512_cmpeq_epi32_mask(_mm512_and_si512(x, exponent), exponent);
  }
};
} // namespace

/// The low part of a float, whose high part is its upper 16 bits.
static SPYRE_INLINE __m512i lowPart(__m512i x) {
  __m512i high = _mm512_and_si512(x, _mm512_set1_epi32(int(0xffff0000)));
  return _mm512_castps_si512(
      _mm512_sub_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(high)));
}

/// The upper halves of 32 floats.
static SPYRE_INLINE __m512i upperHalves(__m512i first, __m512i second) {
  alignas(64) static constexpr uint16_t odd[32] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(first, loadWords(odd), second);
}

/// Upper halves of floats in pairs: first, second, of each lane.
static SPYRE_INLINE __m512i pairUpperHalves(__m512i first, __m512i second) {
  return _mm512_or_si512(
      _mm512_srli_epi32(first, 16),
      _mm512_and_si512(second, _mm512_set1_epi32(int(0xffff0000))));
}

namespace {
/// Collects what a block's traits say.
struct Findings {
  uint32_t nonFinite = 0;
  __m512i lowBits = _mm512_setzero_si512();

  /// Low parts may be zeros with a sign.
  BlockTraits traits() const {
    const __m512i magnitude = _mm512_set1_epi16(0x7fff);
    return {nonFinite, _mm512_test_epi16_mask(lowBits, magnitude) != 0};
  }
};
} // namespace

/// Packs so many rows of 32 values of A. Values that are not finite become 0.
static void packStepOfA(const float *a, ptrdiff_t rowStride, size_t line,
                        size_t count, uint8_t *step, Findings &findings) {
  uint8_t *high = step + line * kTileRowBytes;
  for (size_t end = line + count; line < end;
       ++line, a += rowStride, high += kTileRowBytes) {
    const TwoVectors x(a, a + kTile);
    findings.nonFinite |= uint32_t(x.hasNonFinite()) << line;
    _mm512_store_si512(high, upperHalves(x.first, x.second));
    __m512i lowParts = upperHalves(lowPart(x.first), lowPart(x.second));
    findings.lowBits = _mm512_or_si512(findings.lowBits, lowParts);
    _mm512_store_si512(high + kLowBytes, lowParts);
  }
}

/// Packs 32 rows of 16 values of B, the first of which is in column `line` of
/// its block.
static void packTileOfB(const float *b, ptrdiff_t rowStride, uint8_t *high,
                        size_t line, Findings &findings) {
  uint8_t *low = high + kLowBytes;
  for (size_t pair = 0; pair < kTile; ++pair, b += 2 * rowStride) {
    const TwoVectors x(b, b + rowStride);
    findings.nonFinite |= uint32_t(x.nonFiniteInFirst | x.nonFiniteInSecond)
                          << line;
    _mm512_store_si512(high + pair * kTileRowBytes,
                       pairUpperHalves(x.first, x.second));
    __m512i lowParts = pairUpperHalves(lowPart(x.first), lowPart(x.second));
    findings.lowBits = _mm512_or_si512(findings.lowBits, lowParts);
    _mm512_store_si512(low + pair * kTileRowBytes, lowParts);
  }
}

//===----------------------------------------------------------------------===//
// Parts of DL16 codes
//===----------------------------------------------------------------------===//

namespace {
/// bf16 parts of 32 codes.
struct Parts {
  __m512i high, low;
};
} // namespace

/// A code has 6 bits of exponent, bias 31, and 9 bits of fraction. The high
/// part has 7 of them, and the low part is one of the four numbers that the
/// other two bits are.
static SPYRE_INLINE Parts partsOf(__m512i codes) {
  // To be taken from the exponent of the high part, 128 times; of a fraction
  // of 3 the low part has one bit itself.
  constexpr int16_t one = 9 * 128, two = 8 * 128, three = two - 64;
  const __m512i distance = _mm512_set4_epi32(three << 16 | two, one << 16,
                                             three << 16 | two, one << 16);
  const __m512i sign = _mm512_set1_epi16(int16_t(0x8000));
  const __m512i magnitude = _mm512_andnot_si512(sign, codes);
  // The difference of the two biases, 96.
  __m512i high = _mm512_maskz_add_epi16(
      _mm512_test_epi16_mask(magnitude, magnitude),
      _mm512_srli_epi16(magnitude, 2), _mm512_set1_epi16(96 * 128));
  high = _mm512_or_si512(high, _mm512_and_si512(codes, sign));
  __m512i low = _mm512_maskz_sub_epi16(
      _mm512_test_epi16_mask(codes, _mm512_set1_epi16(3)),
      _mm512_and_si512(high, _mm512_set1_epi16(int16_t(0xff80))),
      _mm512_permutexvar_epi16(codes, distance));
  return {high, low};
}

/// Stores two rows of 32 columns as pairs, in two tiles.
static SPYRE_INLINE void storePairs(__m512i first, __m512i second,
                                    uint8_t *tile) {
  alignas(64) static constexpr uint16_t pairs[32] = {
      0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
      8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  __m512i index = loadWords(pairs);
  _mm512_store_si512(tile, _mm512_permutex2var_epi16(first, index, second));
  index = _mm512_add_epi16(index, _mm512_set1_epi16(16));
  _mm512_store_si512(tile + kTileBytes,
                     _mm512_permutex2var_epi16(first, index, second));
}

/// The parts of as many of 32 codes as `mask` has bits. Infinities become 0.
/// Returns which codes are some.
static SPYRE_INLINE uint32_t loadParts(const uint16_t *codes, __mmask32 mask,
                                       Parts &parts) {
  const __m512i infinity = _mm512_set1_epi16(0x7fff);
  __m512i row = _mm512_maskz_loadu_epi16(mask, codes);
  __mmask32 found =
      _mm512_cmpeq_epi16_mask(_mm512_and_si512(row, infinity), infinity);
  if (__builtin_expect(found != 0, 0))
    row = _mm512_mask_mov_epi16(row, found, _mm512_setzero_si512());
  parts = partsOf(row);
  return found;
}

static SPYRE_INLINE __mmask32 firstOf32(size_t count) {
  return count < 32 ? (1U << count) - 1 : ~0U;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// As many rows and columns of `source` as asked for, up to 32 by 32, zeros
/// behind them.
static Floats copyPadded(const Floats &source, size_t rows, size_t columns,
                         float *target) {
  if (rows < kBlockLines || columns < kBlockLines)
    __builtin_memset(target, 0, kBlockLines * kBlockLines * sizeof(float));
  const ptrdiff_t dense[] = {ptrdiff_t(kBlockLines), 1};
  const ptrdiff_t strides[] = {source.rowStride, source.columnStride};
  const size_t shape[] = {rows, columns};
  avx512::table()->copyFloat(target, dense, source.values, strides, shape, 2);
  return {target, ptrdiff_t(kBlockLines), 1};
}

/// Packs so many rows of A as those of a block from `line` on.
static void packLines(const Floats &a, size_t line, size_t count, size_t depth,
                      uint8_t *block, Findings &findings) {
  alignas(64) float copy[kBlockLines * kBlockLines];
  for (size_t k = 0; k < depth; k += kTileDepth, block += kStepBytes) {
    Floats part = a.from(0, k);
    size_t partDepth = atMost(kTileDepth, depth - k);
    if (part.columnStride != 1 || partDepth < kTileDepth)
      part = copyPadded(part, count, partDepth, copy);
    packStepOfA(part.values, part.rowStride, line, count, block, findings);
  }
}

// Each row for all k, because rows often lie far apart.
static void packLines(const Codes &a, size_t line, size_t count, size_t depth,
                      uint8_t *block, Findings &findings) {
  const size_t steps = numSteps(depth);
  ptrdiff_t offsets[kMaxDepth / kTileDepth];
  for (size_t step = 0; step < steps; ++step)
    offsets[step] = a.offsetOf(step * kTileDepth);
  const __mmask32 lastMask = firstOf32(depth - (steps - 1) * kTileDepth);
  const uint16_t *row = a.codes;
  for (size_t end = line + count; line < end; ++line, row += a.rowStride) {
    uint8_t *high = block + line * kTileRowBytes;
    for (size_t step = 0; step < steps; ++step, high += kStepBytes) {
      Parts parts;
      uint32_t found = loadParts(row + offsets[step],
                                 step + 1 < steps ? ~0U : lastMask, parts);
      findings.nonFinite |= uint32_t(found != 0) << line;
      findings.lowBits = _mm512_or_si512(findings.lowBits, parts.low);
      _mm512_store_si512(high, parts.high);
      _mm512_store_si512(high + kLowBytes, parts.low);
    }
  }
}

template <class A>
static void packRowsOf(const Rows<A> *place, size_t lines, size_t depth,
                       uint8_t *block, BlockTraits *traits) {
  size_t row = 0; // of the place
  for (size_t first = 0; first < lines;
       first += kBlockLines, block += blockBytes(depth)) {
    Findings findings;
    size_t line = 0, end = atMost(kBlockLines, lines - first);
    while (line < end) {
      size_t count = atMost(place->count - row, end - line);
      packLines(place->a.from(row, 0), line, count, depth, block, findings);
      line += count;
      row += count;
      if (row == place->count) {
        ++place;
        row = 0;
      }
    }
    for (size_t step = 0; step < numSteps(depth); ++step)
      for (line = end; line % kTile != 0; ++line)
        for (size_t part : {size_t(0), kLowBytes})
          __builtin_memset(block + step * kStepBytes + part +
                               line * kTileRowBytes,
                           0, kTileRowBytes);
    *traits++ = findings.traits();
  }
}

void packRows(const Rows<Floats> *places, size_t lines, size_t depth,
              uint8_t *blocks, BlockTraits *traits) {
  packRowsOf(places, lines, depth, blocks, traits);
}
void packRows(const Rows<Codes> *places, size_t lines, size_t depth,
              uint8_t *blocks, BlockTraits *traits) {
  packRowsOf(places, lines, depth, blocks, traits);
}

void packColumns(const Floats &b, size_t columns, size_t depth, uint8_t *blocks,
                 BlockTraits *traits) {
  alignas(64) float copy[kBlockLines * kBlockLines];
  for (size_t j = 0; j < columns; j += kBlockLines) {
    const size_t count = atMost(kBlockLines, columns - j);
    Findings findings;
    for (size_t k = 0; k < depth; k += kTileDepth, blocks += kStepBytes) {
      Floats part = b.from(k, j);
      size_t partDepth = atMost(kTileDepth, depth - k);
      if (part.columnStride != 1 || count % kTile != 0 ||
          partDepth < kTileDepth)
        part = copyPadded(part, partDepth, count, copy);
      for (size_t line = 0; line < count; line += kTile)
        packTileOfB(part.values + line, part.rowStride,
                    blocks + line / kTile * kTileBytes, line, findings);
    }
    *traits++ = findings.traits();
  }
}

// A row of all blocks after another: where rows lie far apart, memory is faster
// so.
void packColumns(const Codes &b, size_t columns, size_t depth, uint8_t *blocks,
                 BlockTraits *traits) {
  const size_t bytes = blockBytes(depth), numBlocks = numBlocksOf(columns);
  Findings findings[kMaxBlocks];
  ptrdiff_t offsets[kMaxBlocks];
  for (size_t j = 0; j < numBlocks; ++j)
    offsets[j] = b.offsetOf(j * kBlockLines);
  for (size_t k = 0; k < numSteps(depth) * kTileDepth; k += 2) {
    uint8_t *target = blocks + k / kTileDepth * kStepBytes +
                      k % kTileDepth / 2 * kTileRowBytes;
    const uint16_t *row = b.codes + ptrdiff_t(k) * b.rowStride;
    for (size_t j = 0; j < numBlocks; ++j, target += bytes) {
      const __mmask32 mask = firstOf32(columns - j * kBlockLines);
      const Parts zero = {_mm512_setzero_si512(), _mm512_setzero_si512()};
      Parts first = zero, second = zero;
      uint32_t found = 0;
      if (k < depth)
        found |= loadParts(row + offsets[j], mask, first);
      if (k + 1 < depth)
        found |= loadParts(row + offsets[j] + b.rowStride, mask, second);
      findings[j].nonFinite |= found;
      findings[j].lowBits = _mm512_or_si512(
          findings[j].lowBits, _mm512_or_si512(first.low, second.low));
      storePairs(first.high, second.high, target);
      storePairs(first.low, second.low, target + kLowBytes);
    }
  }
  for (size_t j = 0; j < numBlocks; ++j)
    traits[j] = findings[j].traits();
}

} // namespace spyre::runtime::amx
