// SPDX-License-Identifier: Apache-2.0
//===- CodeReduceKernels.cpp - Reductions of rows of DL16 codes -----------===//

#include "Codes.h"
#include "Kernels.h"
#include "Reduce.h"
#include "Vector.h"

#include <type_traits>

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// Values of pairs of vectors in packed order to the order of memory.
static SPYRE_INLINE void fromPackedOrder(const float (&lanes)[kPartials],
                                         float (&ordered)[kPartials]) {
  for (int i = 0; i < kPartials; i += 4) {
    int pair = i / (2 * kLanes), second = i / kLanes % 2;
    int block = i % kLanes / 4;
    __builtin_memcpy(ordered + pair * 2 * kLanes + block * 8 + second * 4,
                     lanes + i, 4 * sizeof(float));
  }
}

/// Combines codes from x[j] on with the partial results, one vector at a time.
template <class Op>
static SPYRE_INLINE void addLastCodes(const uint16_t *x, size_t j, size_t n,
                                      float (&partial)[kPartials]) {
  for (; j < n; j += kLanes) {
    size_t rest = n - j < size_t(kLanes) ? n - j : size_t(kLanes);
    uint16_t codes[kLanes] = {};
    __builtin_memcpy(codes, x + j, rest * sizeof(uint16_t));
    VF value = FormatDL16::decode(__builtin_convertvector(load<VH>(codes), VU));
    float *into = partial + j % kPartials;
    for (size_t i = 0; i < rest; ++i)
      into[i] = Op::combine(into[i], value[i]);
  }
}

/// Codes that are combined at a time.
constexpr size_t kReducedCodes = 2 * kPartials;

/// Combines so many codes, which are decoded in registers, with partial results
/// in packed order. Unless `TakesAll`, infinities are only noted in `largest`:
/// the results are of no use if there is one.
template <class Op, bool TakesAll>
static SPYRE_INLINE void
addCodes(const uint16_t *x, Chain<Op> (&partial)[kRegisters], VW &largest) {
  unroll<kRegisters>([&](auto pair) SPYRE_INLINE_LAMBDA {
    VW codes = load<VW>(x + pair * 2 * kLanes), doubled = codes + codes;
    VF value[2];
    if constexpr (TakesAll) {
      unpackHalves(codes, VW{}, value[0], value[1]);
      for (VF &v : value)
        v = FormatDL16::decode(bitsAs<VU>(v));
    } else {
      largest = doubled > largest ? doubled : largest;
      FormatDL16::decodePair(codes, value[0], value[1]);
    }
    unroll<2>([&](auto g) SPYRE_INLINE_LAMBDA {
      partial[(2 * pair + g) % kRegisters].add(value[g]);
    });
  });
}

static SPYRE_INLINE bool holdInfinity(VW largest) {
  return mayHold(largest == VW{} + uint16_t(0xfffe));
}

/// The result of a row from partial results in packed order and the last of its
/// codes, those of x from j on.
template <class Op>
static SPYRE_INLINE float finishCodeRow(const Chain<Op> (&partial)[kRegisters],
                                        const uint16_t *x, size_t j, size_t n) {
  float lanes[kPartials];
  unroll<kRegisters>(
      [&](auto r) { store(lanes + r * kLanes, partial[r].end()); });
  float ordered[kPartials];
  fromPackedOrder(lanes, ordered);
  addLastCodes<Op>(x, j, n, ordered);
  return foldLanes<Op>(ordered);
}

/// The combination of a row.
template <class Op, bool TakesAll>
static SPYRE_INLINE float reduceCodeRow(const uint16_t *x, size_t n,
                                        ptrdiff_t ahead, bool &hasInfinity) {
  Chain<Op> partial[kRegisters];
  unroll<kRegisters>([&](auto r) { partial[r].begin(splat(Op::identity)); });
  VW largest = {};
  size_t j = 0;
  for (; j + kReducedCodes <= n; j += kReducedCodes) {
    fetchAhead<kReducedCodes * sizeof(uint16_t), false>(x + j, ahead);
    addCodes<Op, TakesAll>(x + j, partial, largest);
  }
  hasInfinity = holdInfinity(largest);
  return finishCodeRow<Op>(partial, x, j, n);
}

/// Sums of DL16 codes as floats that are 2^96 times as large, whose exponents
/// take the least instructions: there the infinities, and what else has their
/// exponent, are no finite numbers. Returns false, with a sum of no use, if one
/// of them was added, a partial sum overflowed, or there may be a zero, which
/// has no float of this kind.
static SPYRE_INLINE bool sumScaledCodes(const uint16_t *x, size_t n,
                                        ptrdiff_t ahead, float &sum) {
  // Those of even elements and those of odd ones by turns.
  VF partial[kRegisters] = {};
  VW least = VW{} + uint16_t(0xffff);
  size_t j = 0;
  for (; j + kReducedCodes <= n; j += kReducedCodes) {
    fetchAhead<kReducedCodes * sizeof(uint16_t), false>(x + j, ahead);
    unroll<kRegisters>([&](auto pair) SPYRE_INLINE_LAMBDA {
      VW codes = load<VW>(x + j + pair * 2 * kLanes), doubled = codes + codes;
      least = doubled < least ? doubled : least;
      VF value[2];
      FormatDL16::decodeScaled(codes, value[0], value[1]);
      unroll<2>([&](auto g) SPYRE_INLINE_LAMBDA {
        partial[(2 * pair + g) % kRegisters] += value[g];
      });
    });
  }
  if (mayHold(least == VW{}))
    return false;
  float lanes[kPartials];
  unroll<kRegisters>([&](auto r) {
    store(lanes + r * kLanes, partial[r] * splat(FormatDL16::kUnscale));
  });
  float ordered[kPartials];
  for (int i = 0; i < kPartials; ++i)
    ordered[i / (2 * kLanes) * 2 * kLanes + i % kLanes * 2 + i / kLanes % 2] =
        lanes[i];
  addLastCodes<SumOp>(x, j, n, ordered);
  sum = foldLanes<SumOp>(ordered);
  return __builtin_fabsf(sum) < kInfinity;
}

namespace {
/// Rows of codes in parts (KernelTable::reduceCodeRows).
struct CodeParts {
  const uint16_t *first;
  size_t columns;
  ptrdiff_t rowStride;
  size_t length;
  ptrdiff_t stride;
};
} // namespace

/// Rows in parts that are reduced side by side: neighbours lie one behind
/// another, part by part, and their partial results fill a part of the first
/// cache.
constexpr size_t kPartRows = 32;

/// Combines at most kPartRows rows with acc. Returns false, and does nothing,
/// if there is an infinity and not `TakesAll`.
template <class Op, bool TakesAll>
static __attribute__((noinline)) bool reduceParts(const CodeParts &x,
                                                  size_t rows, float *acc) {
  Chain<Op> partial[kPartRows][kRegisters];
  for (size_t r = 0; r < rows; ++r)
    unroll<kRegisters>(
        [&](auto g) { partial[r][g].begin(splat(Op::identity)); });
  VW largest = {};
  const uint16_t *part = x.first;
  size_t begin = 0, length = x.length;
  for (;; begin += x.length, part += x.stride) {
    length = x.columns - begin < x.length ? x.columns - begin : x.length;
    for (size_t r = 0; r < rows; ++r) {
      const uint16_t *row = part + ptrdiff_t(r) * x.rowStride;
      Chain<Op> own[kRegisters];
      unroll<kRegisters>([&](auto g) { own[g] = partial[r][g]; });
      for (size_t j = 0; j + kReducedCodes <= length; j += kReducedCodes) {
        // Of the next part.
        fetchAhead<kReducedCodes * sizeof(uint16_t), false>(
            row + j, x.stride * ptrdiff_t(sizeof(uint16_t)));
        addCodes<Op, TakesAll>(row + j, own, largest);
      }
      unroll<kRegisters>([&](auto g) { partial[r][g] = own[g]; });
    }
    if (begin + length == x.columns)
      break;
  }
  if (!TakesAll && holdInfinity(largest))
    return false;
  for (size_t r = 0; r < rows; ++r)
    acc[r] = Op::combine(
        acc[r],
        finishCodeRow<Op>(partial[r], part + ptrdiff_t(r) * x.rowStride,
                          length / kReducedCodes * kReducedCodes, length));
  return true;
}

template <class Op>
static void codePartsOf(CodeParts x, size_t rows, float *acc) {
  for (size_t r = 0; r < rows; r += kPartRows) {
    size_t count = rows - r < kPartRows ? rows - r : kPartRows;
    if (!reduceParts<Op, false>(x, count, acc + r))
      reduceParts<Op, true>(x, count, acc + r);
    x.first += ptrdiff_t(kPartRows) * x.rowStride;
  }
}

template <class Op>
static __attribute__((noinline)) void codeRowsOf(const uint16_t *x, size_t rows,
                                                 size_t n, ptrdiff_t rowStride,
                                                 float *acc) {
  ptrdiff_t ahead = aheadOf<uint16_t>(rows, rowStride, n);
  // Until a row has something that costs it twice.
  [[maybe_unused]] bool isScaled = true;
  for (size_t r = 0; r < rows; ++r, x += rowStride) {
    float row;
    if constexpr (std::is_same_v<Op, SumOp>) {
      isScaled = isScaled && sumScaledCodes(x, n, ahead, row);
      if (isScaled) {
        acc[r] += row;
        continue;
      }
    }
    bool hasInfinity;
    row = reduceCodeRow<Op, false>(x, n, ahead, hasInfinity);
    if (hasInfinity)
      row = reduceCodeRow<Op, true>(x, n, ahead, hasInfinity);
    acc[r] = Op::combine(acc[r], row);
  }
}

void reduceCodeRows(ReduceOp op, const void *codes, size_t rows, size_t n,
                    ptrdiff_t rowStride, size_t partLength,
                    ptrdiff_t partStride, float *acc) {
  auto *x = static_cast<const uint16_t *>(codes);
  withReduceOp(op, [&](auto combiner) {
    using Op = decltype(combiner);
    if (partLength < n)
      codePartsOf<Op>({x, n, rowStride, partLength, partStride}, rows, acc);
    else
      codeRowsOf<Op>(x, rows, n, rowStride, acc);
  });
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
