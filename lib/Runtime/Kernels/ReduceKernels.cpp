// SPDX-License-Identifier: Apache-2.0
#include "Chain.h"
#include "Codes.h"
#include "Kernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

// Partial results of a row, the same for every instruction set.
constexpr int kPartials = 32;
constexpr int kRegisters = kPartials / kLanes;

namespace {
// `combine` is the operation. `step` is it for values that are not NaN, which
// is one instruction in a chain; operations with `watchesNaN` note NaN aside.
struct SumOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = 0.0f;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a + b;
  }
};
struct MulOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = 1.0f;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a * b;
  }
};
/// Propagates NaN: a NaN on the right is taken by the negated comparison, one
/// on the left by the second test.
struct MaxOp {
  static constexpr bool watchesNaN = true;
  static SPYRE_INLINE VF step(VF a, VF b) { return a > b ? a : b; }
  static constexpr float identity = -kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a > b) | isNaN(a);
    return keep ? a : b;
  }
};
struct MinOp {
  static constexpr bool watchesNaN = true;
  static SPYRE_INLINE VF step(VF a, VF b) { return a < b ? a : b; }
  static constexpr float identity = kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a < b) | isNaN(a);
    return keep ? a : b;
  }
};
struct MaxWithoutNaNOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = -kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a > b ? a : b;
  }
};
struct MinWithoutNaNOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a < b ? a : b;
  }
};
/// The identity of these two is NaN.
struct MaxNumOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = kNaN;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a > b) | isNaN(b);
    return keep ? a : b;
  }
};
struct MinNumOp {
  static constexpr bool watchesNaN = false;
  static constexpr float identity = kNaN;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a < b) | isNaN(b);
    return keep ? a : b;
  }
};

/// The combination of many vectors.
template <class Op>
struct Chain {
  VF value;
  VI hasNaN;

  SPYRE_INLINE void begin(VF first) {
    value = first;
    hasNaN = isNaN(first);
  }
  SPYRE_INLINE void add(VF next) {
    if constexpr (Op::watchesNaN) {
      hasNaN |= isNaN(next);
      value = Op::step(value, next);
    } else {
      value = Op::combine(value, next);
    }
  }
  /// Both, one after the other: one comparison sees a NaN in either.
  SPYRE_INLINE void add(VF next, VF last) {
    if constexpr (Op::watchesNaN) {
      hasNaN |= isNaN(next) | isNaN(last);
      value = Op::step(Op::step(value, next), last);
    } else {
      value = Op::combine(Op::combine(value, next), last);
    }
  }
  SPYRE_INLINE VF end() const {
    return Op::watchesNaN ? select(hasNaN, splat(kNaN), value) : value;
  }
};

} // namespace

/// Combines the partial results of a row.
template <class Op>
static SPYRE_INLINE float foldLanes(float (&lanes)[kPartials]) {
  for (int half = kPartials / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = Op::combine(lanes[i], lanes[i + half]);
  return lanes[0];
}
template <class Op>
static SPYRE_INLINE float foldPartials(const Chain<Op> (&partial)[kRegisters]) {
  float lanes[kPartials];
  unroll<kRegisters>(
      [&](auto r) { store(lanes + r * kLanes, partial[r].end()); });
  return foldLanes<Op>(lanes);
}

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

template <class Op>
static SPYRE_INLINE float reduceRow(const float *x, size_t n) {
  Chain<Op> partial[kRegisters];
  unroll<kRegisters>([&](auto r) { partial[r].begin(splat(Op::identity)); });
  size_t j = 0;
  for (; j + 2 * kPartials <= n; j += 2 * kPartials)
    unroll<kRegisters>([&](auto r) {
      const float *p = x + j + r * kLanes;
      partial[r].add(load<VF>(p), load<VF>(p + kPartials));
    });
  for (; j + kPartials <= n; j += kPartials)
    unroll<kRegisters>(
        [&](auto r) { partial[r].add(load<VF>(x + j + r * kLanes)); });
  if (j < n) {
    float last[kPartials];
    for (int i = 0; i < kPartials; ++i)
      last[i] = Op::identity;
    __builtin_memcpy(last, x + j, (n - j) * sizeof(float));
    unroll<kRegisters>(
        [&](auto r) { partial[r].add(load<VF>(last + r * kLanes)); });
  }
  return foldPartials(partial);
}

template <class Op>
static __attribute__((noinline)) void
rowsOf(const float *x, size_t rows, size_t n, ptrdiff_t rowStride, float *acc) {
  for (size_t r = 0; r < rows; ++r)
    acc[r] =
        Op::combine(acc[r], reduceRow<Op>(x + ptrdiff_t(r) * rowStride, n));
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

/// The same of DL16 codes, which are decoded in registers. Unless `TakesAll`,
/// infinities are noted only: the result is of no use if there is one.
template <class Op, bool TakesAll>
static SPYRE_INLINE float reduceCodeRow(const uint16_t *x, size_t n,
                                        ptrdiff_t ahead, bool &hasInfinity) {
  // In packed order until they are folded.
  Chain<Op> partial[kRegisters];
  unroll<kRegisters>([&](auto r) { partial[r].begin(splat(Op::identity)); });
  VW largest = {};
  constexpr size_t count = 2 * kPartials;
  size_t j = 0;
  for (; j + count <= n; j += count) {
    fetchAhead<count * sizeof(uint16_t), false>(x + j, ahead);
    unroll<kRegisters>([&](auto pair) SPYRE_INLINE_LAMBDA {
      VW codes = load<VW>(x + j + pair * 2 * kLanes), doubled = codes + codes;
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
  hasInfinity = mayHold(largest == VW{} + uint16_t(0xfffe));
  float lanes[kPartials];
  unroll<kRegisters>(
      [&](auto r) { store(lanes + r * kLanes, partial[r].end()); });
  float ordered[kPartials];
  fromPackedOrder(lanes, ordered);
  addLastCodes<Op>(x, j, n, ordered);
  return foldLanes<Op>(ordered);
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
  constexpr size_t count = 2 * kPartials;
  size_t j = 0;
  for (; j + count <= n; j += count) {
    fetchAhead<count * sizeof(uint16_t), false>(x + j, ahead);
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

template <class Op>
static __attribute__((noinline)) void columnsOf(const float *x, size_t rows,
                                                size_t n, ptrdiff_t rowStride,
                                                float *acc) {
  // Four registers of columns at a time stay in registers over all rows.
  constexpr size_t chunk = 4 * kLanes;
  size_t j = 0;
  for (; j + chunk <= n; j += chunk) {
    Chain<Op> partial[4];
    unroll<4>(
        [&](auto c) { partial[c].begin(load<VF>(acc + j + c * kLanes)); });
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      unroll<4>([&](auto c) { partial[c].add(load<VF>(p + c * kLanes)); });
    unroll<4>([&](auto c) { store(acc + j + c * kLanes, partial[c].end()); });
  }
  for (; j + kLanes <= n; j += kLanes) {
    Chain<Op> partial;
    partial.begin(load<VF>(acc + j));
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      partial.add(load<VF>(p));
    store(acc + j, partial.end());
  }
  for (; j < n; ++j) {
    float partial = acc[j];
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      partial = Op::combine(partial, *p);
    acc[j] = partial;
  }
}

void sumChain(const float *x, size_t step, const ChainStep *steps,
              unsigned numSteps, size_t n, Rounding rounding, float *acc,
              ReadAhead *ahead) {
  VF uniform[kMaxChain];
  for (unsigned s = 0; s < numSteps; ++s)
    uniform[s] = splat(*steps[s].x);
  Operand first(x, step, n);
  dispatchRounding(rounding, [&](auto rounder) {
    Chain<SumOp> partial[kRegisters];
    unroll<kRegisters>(
        [&](auto r) { partial[r].begin(splat(SumOp::identity)); });
    GroupRounder<decltype(rounder)> groups;
    size_t j = 0;
    Prefetcher prefetcher(ahead);
    auto sumGroup = [&](auto numVectors) {
      prefetcher.fetch<(numVectors * kLanes + 63) / 64>();
      VF value[numVectors];
      runChainGroup(first, steps, numSteps, uniform, j, groups, value);
      unroll<numVectors>(
          [&](auto r) { partial[r % kRegisters].add(value[r]); });
      j += size_t(numVectors) * kLanes;
    };
    constexpr std::integral_constant<int, kRegisters> one;
    constexpr std::integral_constant<int, 8> eight;
    static_assert(eight % kRegisters == 0);
    while (j + eight * kLanes <= n)
      sumGroup(eight);
    while (j + kPartials <= n)
      sumGroup(one);
    if (j < n) {
      float last[kPartials];
      for (int i = 0; i < kPartials; ++i)
        last[i] = SumOp::identity;
      for (size_t i = j; i < n; i += kLanes) {
        size_t rest = n - i < size_t(kLanes) ? n - i : size_t(kLanes);
        storeTail(last + (i - j),
                  chainTail(first, steps, numSteps, uniform, i, rest, rounder),
                  rest);
      }
      unroll<kRegisters>(
          [&](auto r) { partial[r].add(load<VF>(last + r * kLanes)); });
    }
    *acc = SumOp::combine(*acc, foldPartials(partial));
  });
}

#define SPYRE_REDUCE(FUNCTION)                                                 \
  switch (op) {                                                                \
  case ReduceOp::Sum:                                                          \
    return FUNCTION<SumOp>(x, rows, n, rowStride, acc);                        \
  case ReduceOp::Mul:                                                          \
    return FUNCTION<MulOp>(x, rows, n, rowStride, acc);                        \
  case ReduceOp::Max:                                                          \
    return FUNCTION<MaxOp>(x, rows, n, rowStride, acc);                        \
  case ReduceOp::Min:                                                          \
    return FUNCTION<MinOp>(x, rows, n, rowStride, acc);                        \
  case ReduceOp::MaxNum:                                                       \
    return FUNCTION<MaxNumOp>(x, rows, n, rowStride, acc);                     \
  case ReduceOp::MinNum:                                                       \
    return FUNCTION<MinNumOp>(x, rows, n, rowStride, acc);                     \
  case ReduceOp::MaxWithoutNaN:                                                \
    return FUNCTION<MaxWithoutNaNOp>(x, rows, n, rowStride, acc);              \
  case ReduceOp::MinWithoutNaN:                                                \
    return FUNCTION<MinWithoutNaNOp>(x, rows, n, rowStride, acc);              \
  }

void reduceRows(ReduceOp op, const float *x, size_t rows, size_t n,
                ptrdiff_t rowStride, float *acc) {
  SPYRE_REDUCE(rowsOf)
}

void reduceCodeRows(ReduceOp op, const void *codes, size_t rows, size_t n,
                    ptrdiff_t rowStride, float *acc) {
  auto *x = static_cast<const uint16_t *>(codes);
  SPYRE_REDUCE(codeRowsOf)
}

void accumulateRows(ReduceOp op, const float *x, size_t rows, size_t n,
                    ptrdiff_t rowStride, float *acc) {
  SPYRE_REDUCE(columnsOf)
}
#undef SPYRE_REDUCE

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
