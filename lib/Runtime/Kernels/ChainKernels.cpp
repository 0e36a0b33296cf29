// SPDX-License-Identifier: Apache-2.0
#include "Chain.h"
#include "Codes.h"
#include "Kernels.h"
#include "Reduce.h"
#include "Rounders.h"
#include "VectorMath.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

void chain(const float *x, size_t step, const ChainStep *givenSteps,
           unsigned numSteps, float *result, size_t n, Rounding rounding,
           ReadAhead *ahead) {
  Steps steps(givenSteps, numSteps);
  Operand first(x, step, n);
  dispatchRounding(rounding, [&](auto rounder) {
    GroupRounder<decltype(rounder)> groups;
    Prefetcher prefetcher(ahead);
    size_t i = 0;
    auto runGroup = [&](auto numVectors) {
      VF value[numVectors];
      runChainGroup(first, steps, i, groups, value);
      for (int g = 0; g < numVectors; ++g)
        store(result + i + g * kLanes, value[g]);
      i += size_t(numVectors) * kLanes;
    };
    constexpr std::integral_constant<int, 8> eight;
    constexpr std::integral_constant<int, 1> one;
    while (i + 8 * kLanes <= n) {
      prefetcher.fetch<(8 * kLanes + 63) / 64>();
      runGroup(eight);
    }
    while (i + kLanes <= n)
      runGroup(one);
    for (; i < n; i += kLanes) {
      size_t rest = n - i < size_t(kLanes) ? n - i : size_t(kLanes);
      VF value = chainTail(first, steps, i, rest, rounder);
      storeTail(result + i, value, rest);
    }
  });
}

/// The codes of the first `rest` values.
static SPYRE_INLINE void storeTail(uint16_t *out, VF value, size_t rest) {
  VH codes = __builtin_convertvector(FormatDL16::encode(value), VH);
  __builtin_memcpy(out, &codes, rest * sizeof(uint16_t));
}

/// The codes of what `compute(i, value)` makes, which is not rounded, of points
/// i, i + kLanes, ... Returns how many there are.
template <bool Streams, class Compute>
static SPYRE_INLINE size_t makeCodes(uint16_t *out, size_t n, ReadAhead *ahead,
                                     Compute compute) {
  Prefetcher prefetcher(ahead);
  constexpr int count = 2 * kGroup * kLanes;
  size_t i = 0;
  for (; i + count <= n; i += count) {
    prefetcher.fetch<(count + 63) / 64>();
    if constexpr (!Streams)
      fetchAhead<2 * count, true>(out + i);
    VF value[2 * kGroup];
    compute(i, value);
    unroll<2>([&](auto half) SPYRE_INLINE_LAMBDA {
      VF part[kGroup];
      for (int g = 0; g < kGroup; ++g)
        part[g] = value[half * kGroup + g];
      encodeGroup<FormatDL16, VH, LaneOrder::Memory, Streams>(
          part, out + i + half * kGroup * kLanes);
    });
  }
  if constexpr (Streams)
    finishStreams();
  return i;
}

/// makeCodes() of one step, for each operation a loop.
template <bool Streams>
static __attribute__((noinline)) size_t stepToCodes(const float *x, size_t step,
                                                    const ChainStep &only,
                                                    uint16_t *out, size_t n,
                                                    ReadAhead *ahead) {
  size_t done = 0;
  Operand first(x, step, n), other(only.x, only.step, n);
  withOperation(kindOf(only), [&](auto op) {
    done = makeCodes<Streams>(out, n, ahead, [&](size_t i, auto &value) {
      unroll<2 * kGroup>([&](auto g) {
        value[g] = op(first.at(i + g * kLanes), other.at(i + g * kLanes));
      });
    });
  });
  return done;
}

template <bool Streams>
static __attribute__((noinline)) void
makeChainCodes(const float *x, size_t step, const ChainStep *givenSteps,
               unsigned numSteps, uint16_t *out, size_t n, ReadAhead *ahead) {
  // The last rounding is that of the code.
  Steps steps(givenSteps, numSteps, /*roundsLast=*/false);
  Operand first(x, step, n);
  size_t i;
  if (numSteps == 1) {
    i = stepToCodes<Streams>(x, step, givenSteps[0], out, n, ahead);
  } else {
    GroupRounder<FormatDL16> groups;
    auto general = [&](size_t at, auto &value) SPYRE_INLINE_LAMBDA {
      runChainGroup(first, steps, at, groups, value);
    };
    auto affine = [&](size_t at, auto &value) SPYRE_INLINE_LAMBDA {
      runAffineGroup(first, steps, at, groups, value);
    };
    i = steps.areAffine() ? makeCodes<Streams>(out, n, ahead, affine)
                          : makeCodes<Streams>(out, n, ahead, general);
  }
  for (; i < n; i += kLanes) {
    size_t rest = n - i < size_t(kLanes) ? n - i : size_t(kLanes);
    VF value = chainTail(first, steps, i, rest, FormatDL16());
    storeTail(out + i, value, rest);
  }
}

void chainToCodes(const float *x, size_t step, const ChainStep *steps,
                  unsigned numSteps, void *result, size_t n, ReadAhead *ahead,
                  bool pastCaches) {
  auto *out = static_cast<uint16_t *>(result);
  if (pastCaches && uintptr_t(out) % kVectorBytes == 0)
    return makeChainCodes<true>(x, step, steps, numSteps, out, n, ahead);
  makeChainCodes<false>(x, step, steps, numSteps, out, n, ahead);
}

/// chainOfRows() with a rounding, to floats or to codes.
template <class Result, class Format>
static SPYRE_INLINE void
runRows(const float *x, size_t step, ptrdiff_t rowStride,
        const ChainStep *givenSteps, unsigned numSteps, Result *out,
        size_t rows, size_t columns, Format rounder) {
  constexpr bool makesCodes = std::is_same_v<Result, uint16_t>;
  constexpr size_t count = kGroup * kLanes;
  if (rows == 0)
    return;
  // The last rounding is that of the code.
  Steps steps(givenSteps, numSteps, /*roundsLast=*/!makesCodes);
  GroupRounder<Format> groups;
  for (size_t row = 0;;) {
    Operand first(x, step, columns);
    size_t i = 0;
    for (; i + count <= columns; i += count) {
      VF value[kGroup];
      runChainGroup(first, steps, i, groups, value);
      if constexpr (makesCodes)
        encodeGroup<FormatDL16, VH>(value, out + i);
      else
        for (int g = 0; g < kGroup; ++g)
          store(out + i + g * kLanes, value[g]);
    }
    for (; i < columns; i += kLanes) {
      size_t rest = columns - i < size_t(kLanes) ? columns - i : size_t(kLanes);
      VF value = chainTail(first, steps, i, rest, rounder);
      storeTail(out + i, value, rest);
    }
    if (++row == rows)
      return;
    x += rowStride;
    out += columns;
    steps.moveToNextRow();
  }
}

void chainOfRows(const float *x, size_t step, ptrdiff_t rowStride,
                 const ChainStep *steps, unsigned numSteps, void *result,
                 size_t rows, size_t columns, Rounding rounding,
                 bool makesCodes) {
  if (makesCodes)
    return runRows(x, step, rowStride, steps, numSteps,
                   static_cast<uint16_t *>(result), rows, columns,
                   FormatDL16());
  dispatchRounding(rounding, [&](auto rounder) {
    runRows(x, step, rowStride, steps, numSteps, static_cast<float *>(result),
            rows, columns, rounder);
  });
}

#ifdef SPYRE_HAS_VECTOR_FMA
/// exp() of values that are to be rounded to DL16 before and after.
static SPYRE_INLINE void expGroup(VF (&x)[kGroup]) {
  VF value[kGroup];
  VU largest = {};
  for (int g = 0; g < kGroup; ++g) {
    // Magnitudes that should become zero have the same exponential.
    value[g] = FormatDL16::roundCommon(x[g]);
    VU magnitude = bitsAs<VU>(absV(value[g]));
    largest = select(magnitude > largest, magnitude, largest);
  }
  if (!mayHold(largest > bitsAs<VU>(splat(kExpCommon)))) {
    expOfCodes(value);
    for (int g = 0; g < kGroup; ++g)
      x[g] = FormatDL16::roundCommon(value[g]);
    return;
  }
  VI isOther = {};
  for (const VF &v : value)
    isOther |= ~(v <= splat(kExpCommon));
  if (!mayHold(isOther)) {
    // Less than that is zero: what is masked, for instance.
    constexpr float none = -2 * kExpCommon;
    for (VF &v : value)
      v = select(v < none, splat(none), v);
    expOfCodes(value);
    for (int g = 0; g < kGroup; ++g)
      x[g] = FormatDL16::roundBelowNonNumber(value[g]);
    return;
  }
  for (VF &v : x)
    v = FormatDL16::round(expV(FormatDL16::round(v)));
}
#endif

#ifdef SPYRE_HAS_VECTOR_FMA
/// expOfChain(), which with `Sums` adds the sum of the results to *sum.
template <bool Sums>
static __attribute__((noinline)) void
runExpOfChain(const float *x, size_t step, const ChainStep *givenSteps,
              unsigned numSteps, float *result, size_t n, float *sum,
              ReadAhead *ahead) {
  // expGroup() rounds what it takes.
  Steps steps(givenSteps, numSteps, /*roundsLast=*/false);
  Operand first(x, step, n);
  GroupRounder<FormatDL16> groups;
  Prefetcher prefetcher(ahead);
  constexpr int count = kGroup * kLanes;
  // The group's registers are whole rounds of the partial sums.
  constexpr bool sumsGroups = Sums && kGroup % kRegisters == 0;
  [[maybe_unused]] Chain<SumOp> partial[kRegisters];
  if constexpr (sumsGroups)
    unroll<kRegisters>(
        [&](auto r) { partial[r].begin(splat(SumOp::identity)); });
  size_t i = 0;
  for (; i + count <= n; i += count) {
    prefetcher.fetch<(count + 63) / 64>();
    VF value[kGroup];
    runChainGroup(first, steps, i, groups, value);
    expGroup(value);
    unroll<kGroup>([&](auto g) SPYRE_INLINE_LAMBDA {
      store(result + i + g * kLanes, value[g]);
      if constexpr (sumsGroups)
        partial[g % kRegisters].add(value[g]);
    });
  }
  size_t summed = i;
  for (; i < n; i += kLanes) {
    size_t rest = n - i < size_t(kLanes) ? n - i : size_t(kLanes);
    VF value = chainTail(first, steps, i, rest, FormatDL16());
    value = FormatDL16::round(expV(FormatDL16::round(value)));
    storeTail(result + i, value, rest);
  }
  if constexpr (sumsGroups)
    finishRow(result, summed, n, partial, sum);
  else if constexpr (Sums)
    reduceRows(ReduceOp::Sum, result, 1, n, ptrdiff_t(n), sum);
}
#endif

void expOfChain(const float *x, size_t step, const ChainStep *steps,
                unsigned numSteps, float *result, size_t n, float *sum,
                ReadAhead *ahead) {
#ifdef SPYRE_HAS_VECTOR_FMA
  (sum ? runExpOfChain<true> : runExpOfChain<false>)(x, step, steps, numSteps,
                                                     result, n, sum, ahead);
#else
  if (numSteps > 0) {
    chain(x, step, steps, numSteps, result, n, Rounding::DL16, ahead);
    x = result;
  }
  unary(UnaryOp::Exp, x, result, n, Rounding::DL16);
  if (sum)
    reduceRows(ReduceOp::Sum, result, 1, n, ptrdiff_t(n), sum);
#endif
}

/// An operand of chainOfCodes().
static SPYRE_INLINE void readCodes(const void *x, size_t step, VF uniform,
                                   size_t i, VF (&value)[kGroup]) {
  if (step)
    return decodeGroup<FormatDL16, VH, LaneOrder::Packed>(
        static_cast<const uint16_t *>(x) + i, value);
  for (VF &v : value)
    v = uniform;
}

namespace {
/// An operand of an operation on codes: an array, or one value.
template <bool IsArray>
struct CodeOperand {
  const uint16_t *codes;
  VF value;
  /// The values of two vectors of codes from i on, in packed order, if none is
  /// infinite. `largest` becomes that of all codes without their signs, twice.
  SPYRE_INLINE void read(size_t i, VW &largest, VF &a, VF &b) const {
    if constexpr (IsArray) {
      VW pair = load<VW>(codes + i), doubled = pair + pair;
      largest = doubled > largest ? doubled : largest;
      FormatDL16::decodePair(pair, a, b);
    } else {
      a = b = value;
    }
  }
};
} // namespace

/// Codes that oneOfCodes() does at a time.
constexpr size_t kOneStep = 2 * kGroup * kLanes;

/// out[i] = op(x[i], y[i]) for kOneStep codes at a time, where no code is rare;
/// `rare(i)` is called for those from i on where one is. Returns how many.
template <bool IsArrayX, bool IsArrayY, class Op, class Rare>
static SPYRE_INLINE size_t oneOfCodes(CodeOperand<IsArrayX> x,
                                      CodeOperand<IsArrayY> y, uint16_t *out,
                                      size_t n, Op op, Rare rare) {
  size_t i = 0;
  for (; i + kOneStep <= n; i += kOneStep) {
    VW result[kGroup], largest = {}, any = {};
    unroll<kGroup>([&](auto p) SPYRE_INLINE_LAMBDA {
      size_t at = i + size_t(p) * 2 * kLanes;
      VF a[2], b[2];
      x.read(at, largest, a[0], a[1]);
      y.read(at, largest, b[0], b[1]);
      for (int g = 0; g < 2; ++g)
        a[g] = op(a[g], b[g]);
      result[p] = FormatDL16::encodeMagnitudes(a[0], a[1]);
      any |= result[p];
      result[p] |= packSigns(a[0], a[1]);
    });
    VW isInfinite = bitsAs<VW>(largest == VW{} + uint16_t(0xfffe));
    if (mayHold(bitsAs<VS>(VW(any | isInfinite)) < int16_t(0))) {
      rare(i);
      continue;
    }
    unroll<kGroup>([&](auto p) SPYRE_INLINE_LAMBDA {
      store(out + i + size_t(p) * 2 * kLanes, result[p]);
    });
  }
  return i;
}

template <bool IsArrayX, bool IsArrayY, class Rare>
static __attribute__((noinline)) size_t stepOfCodes(BinaryOp op,
                                                    CodeOperand<IsArrayX> x,
                                                    CodeOperand<IsArrayY> y,
                                                    uint16_t *out, size_t n,
                                                    Rare rare) {
  auto run = [&](auto f) { return oneOfCodes(x, y, out, n, f, rare); };
  switch (op) {
  case BinaryOp::Add:
    return run([](VF a, VF b) { return a + b; });
  case BinaryOp::Sub:
    return run([](VF a, VF b) { return a - b; });
  case BinaryOp::Mul:
    return run([](VF a, VF b) { return a * b; });
  case BinaryOp::Div:
    return run([](VF a, VF b) { return a / b; });
  default:
    return 0;
  }
}

// Fetches nothing ahead: the hardware follows dense arrays by itself, and ran
// slower with help.
void chainOfCodes(const void *x, size_t step, const ChainStep *steps,
                  unsigned numSteps, void *result, size_t n) {
  constexpr int count = kGroup * kLanes;
  VF first = step ? VF{} : splat(*static_cast<const float *>(x));
  VF uniform[kMaxChain];
  for (unsigned s = 0; s < numSteps; ++s)
    uniform[s] = steps[s].step ? VF{} : splat(*steps[s].x);
  GroupRounder<FormatDL16> groups;
  auto runGroup = [&](const void *x, const ChainStep *steps, size_t i,
                      uint16_t *out) SPYRE_INLINE_LAMBDA {
    VF value[kGroup];
    groups.run<kGroup>([&](auto round) SPYRE_INLINE_LAMBDA {
      readCodes(x, step, first, i, value);
      for (unsigned s = 0; s < numSteps; ++s) {
        VF other[kGroup];
        readCodes(steps[s].x, steps[s].step, uniform[s], i, other);
        apply(kindOf(steps[s]), value, [&](int g) { return other[g]; });
        // The last rounding is that of the code.
        if (s + 1 < numSteps)
          round(value);
      }
    });
    encodeGroup<FormatDL16, VH, LaneOrder::Packed>(value, out);
  };
  auto *out = static_cast<uint16_t *>(result);
  size_t i = 0;
  if (numSteps == 1) {
    auto rare = [&](size_t at) __attribute__((noinline)) {
      for (size_t end = at + kOneStep; at < end; at += count)
        runGroup(x, steps, at, out + at);
    };
    const ChainStep &only = steps[0];
    auto *codesX = static_cast<const uint16_t *>(x);
    auto *codesY = reinterpret_cast<const uint16_t *>(only.x);
    CodeOperand<true> manyX{codesX, VF{}}, manyY{codesY, VF{}};
    CodeOperand<false> oneX{nullptr, first}, oneY{nullptr, uniform[0]};
    auto run = [&](auto a, auto b) {
      return only.isReversed ? stepOfCodes(only.op, b, a, out, n, rare)
                             : stepOfCodes(only.op, a, b, out, n, rare);
    };
    i = step && only.step ? run(manyX, manyY)
        : step            ? run(manyX, oneY)
                          : run(oneX, manyY);
  }
  for (; i + count <= n; i += count)
    runGroup(x, steps, i, out + i);
  if (i == n)
    return;
  // What is left, with zeros behind it.
  uint16_t codes[kMaxChain + 2][count] = {};
  size_t bytes = (n - i) * sizeof(uint16_t);
  auto copy = [&](unsigned number, const void *from) {
    __builtin_memcpy(codes[number], static_cast<const uint16_t *>(from) + i,
                     bytes);
    return codes[number];
  };
  ChainStep rest[kMaxChain];
  for (unsigned s = 0; s < numSteps; ++s) {
    rest[s] = steps[s];
    if (steps[s].step)
      rest[s].x = reinterpret_cast<const float *>(copy(s, steps[s].x));
  }
  runGroup(step ? copy(kMaxChain, x) : x, rest, 0, codes[kMaxChain + 1]);
  __builtin_memcpy(out + i, codes[kMaxChain + 1], bytes);
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
