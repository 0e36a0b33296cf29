// SPDX-License-Identifier: Apache-2.0
#include "Chain.h"
#include "Codes.h"
#include "Kernels.h"
#include "Reduce.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// Combines the values of a row with *acc.
template <class Op>
static SPYRE_INLINE void reduceRow(const float *x, size_t n, float *acc) {
  Chain<Op> partial[kRegisters];
  unroll<kRegisters>([&](auto r) { partial[r].begin(splat(Op::identity)); });
  size_t j = 0;
  for (; j + 2 * kPartials <= n; j += 2 * kPartials)
    unroll<kRegisters>([&](auto r) {
      const float *p = x + j + r * kLanes;
      partial[r].add(load<VF>(p), load<VF>(p + kPartials));
    });
  finishRow(x, j, n, partial, acc);
}

template <class Op>
static __attribute__((noinline)) void
rowsOf(const float *x, size_t rows, size_t n, ptrdiff_t rowStride, float *acc) {
  for (size_t r = 0; r < rows; ++r)
    reduceRow<Op>(x + ptrdiff_t(r) * rowStride, n, acc + r);
}

/// Vectors that are decoded or computed, and reduced, side by side: as many as
/// there are registers for.
constexpr int kReduced = kLanes == 16 ? 8 : kRegisters > 4 ? kRegisters : 4;
static_assert(kReduced % kRegisters == 0 && kReduced % kGroup == 0);

// Fetches nothing ahead: what follows has more time to.
template <class Op>
static __attribute__((noinline)) void
decodeRow(const uint16_t *x, float *values, size_t n, float *acc) {
  Chain<Op> partial[kRegisters];
  unroll<kRegisters>([&](auto r) { partial[r].begin(splat(Op::identity)); });
  constexpr size_t count = kReduced * kLanes;
  size_t j = 0;
  for (; j + count <= n; j += count) {
    unroll<kReduced / kGroup>([&](auto part) SPYRE_INLINE_LAMBDA {
      VF value[kGroup];
      decodeGroup<FormatDL16, VH>(x + j + part * kGroup * kLanes, value);
      unroll<kGroup>([&](auto g) SPYRE_INLINE_LAMBDA {
        constexpr int at = part * kGroup + g;
        store(values + j + at * kLanes, value[g]);
        partial[at % kRegisters].add(value[g]);
      });
    });
  }
  for (size_t i = j; i < n; i += kLanes) {
    size_t rest = n - i < size_t(kLanes) ? n - i : size_t(kLanes);
    uint16_t codes[kLanes] = {};
    __builtin_memcpy(codes, x + i, rest * sizeof(uint16_t));
    storeTail(values + i,
              FormatDL16::decode(__builtin_convertvector(load<VH>(codes), VU)),
              rest);
  }
  finishRow(values, j, n, partial, acc);
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

void sumChain(const float *x, size_t step, const ChainStep *givenSteps,
              unsigned numSteps, size_t n, Rounding rounding, float *acc,
              ReadAhead *ahead) {
  Steps steps(givenSteps, numSteps);
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
      runChainGroup(first, steps, j, groups, value);
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
        storeTail(last + (i - j), chainTail(first, steps, i, rest, rounder),
                  rest);
      }
      unroll<kRegisters>(
          [&](auto r) { partial[r].add(load<VF>(last + r * kLanes)); });
    }
    *acc = SumOp::combine(*acc, foldPartials(partial));
  });
}

namespace {
/// chainAndSum(), group by group.
struct ChainAndSum {
  ChainAndSum(const float *x, size_t step, const ChainStep *steps,
              unsigned numSteps, float *result, const ChainStep *sumSteps,
              unsigned numSumSteps, size_t n)
      : first(x, step, n), steps(steps, numSteps), result(result),
        sumSteps(sumSteps, numSumSteps) {
    unroll<kRegisters>(
        [&](auto r) { partial[r].begin(splat(SumOp::identity)); });
  }

  SPYRE_INLINE void runGroup(size_t j) {
    VF value[kReduced], summand[kReduced];
    groups.run<kReduced>([&](auto round) SPYRE_INLINE_LAMBDA {
      first.read(j, value);
      for (const Steps::Step &step : steps) {
        step.run(j, value);
        round(value);
      }
      for (int g = 0; g < kReduced; ++g)
        summand[g] = value[g];
      for (const Steps::Step &step : sumSteps) {
        // What reads the result finds it in registers.
        if (step.isArray && step.x == result)
          apply(step.kind, summand, [&](int g) { return value[g]; });
        else
          step.run(j, summand);
        round(summand);
      }
    });
    unroll<kReduced>([&](auto g) {
      store(result + j + g * kLanes, value[g]);
      partial[g % kRegisters].add(summand[g]);
    });
  }

  /// Sums of squares of differences from one value, and the like.
  bool isSumOfSquares() const {
    return steps.size() == 1 && first.isArray && !steps[0].isArray &&
           sumSteps.size() == 1 && sumSteps[0].isArray &&
           sumSteps[0].x == result && sumSteps[0].kind == StepKind::Mul;
  }
  Operand first;
  Steps steps;
  float *result;
  Steps sumSteps;
  Chain<SumOp> partial[kRegisters];
  GroupRounder<FormatDL16> groups;
};
} // namespace

/// A group of a sum of squares with one test. Returns false, and has done
/// nothing, if magnitudes are not usual.
template <class F>
static SPYRE_INLINE bool squareGroup(const float *x, VF uniform, float *result,
                                     Chain<SumOp> (&partial)[kRegisters],
                                     F op) {
  // From 2^-15 to below 2^17: squares are numbers if they are not too large,
  // which their sum shows.
  constexpr uint32_t least = (127u - 15u) << 23, upperBits = 0x70000000u;
  VF value[kReduced];
  VU seen{};
  for (int g = 0; g < kReduced; ++g) {
    value[g] = op(load<VF>(x + g * kLanes), uniform);
    seen |= bitsAs<VU>(value[g]) - least;
  }
  if (mayHold((seen & upperBits) != VU{}))
    return false;
  unroll<kReduced>([&](auto g) {
    VF rounded = FormatDL16::roundCommon(value[g]);
    store(result + g * kLanes, rounded);
    partial[g % kRegisters].add(FormatDL16::roundCommon(rounded * rounded));
  });
  return true;
}

static __attribute__((noinline)) void runGroup(ChainAndSum &run, size_t j) {
  run.runGroup(j);
}

/// All whole groups of n values. Returns how many values they have.
static __attribute__((noinline)) size_t allGroups(ChainAndSum &given, size_t n,
                                                  ReadAhead *ahead) {
  constexpr size_t count = kReduced * kLanes;
  // A copy that nobody else sees can be in registers.
  ChainAndSum run = given;
  Prefetcher prefetcher(ahead);
  size_t j = 0;
  for (; j + count <= n; j += count) {
    prefetcher.fetch<(count + 63) / 64>();
    run.runGroup(j);
  }
  unroll<kRegisters>([&](auto r) { given.partial[r] = run.partial[r]; });
  return j;
}

/// The same of sums of squares.
static __attribute__((noinline)) size_t squareGroups(ChainAndSum &run, size_t n,
                                                     ReadAhead *ahead) {
  constexpr size_t count = kReduced * kLanes;
  Prefetcher prefetcher(ahead);
  size_t j = 0;
  withOperation(run.steps[0].kind, [&](auto op) {
    // Groups that are unusual cost twice: not more than one in ten.
    constexpr unsigned cost = 10, most = 4 * cost;
    unsigned unusual = 0;
    const float *x = run.first.data;
    float *result = run.result;
    VF uniform = run.steps[0].uniform;
    Chain<SumOp> partial[kRegisters];
    unroll<kRegisters>([&](auto r) { partial[r] = run.partial[r]; });
    for (; j + count <= n; j += count) {
      prefetcher.fetch<(count + 63) / 64>();
      if (unusual < most) {
        if (squareGroup(x + j, uniform, result + j, partial, op)) {
          unusual -= unusual > 0;
          continue;
        }
        unusual += cost;
      }
      unroll<kRegisters>([&](auto r) { run.partial[r] = partial[r]; });
      runGroup(run, j);
      unroll<kRegisters>([&](auto r) { partial[r] = run.partial[r]; });
    }
    unroll<kRegisters>([&](auto r) { run.partial[r] = partial[r]; });
  });
  return j;
}

void chainAndSum(const float *x, size_t step, const ChainStep *steps,
                 unsigned numSteps, float *result, const ChainStep *sumSteps,
                 unsigned numSumSteps, size_t n, float *acc, ReadAhead *ahead) {
  constexpr size_t count = kReduced * kLanes;
  ChainAndSum run(x, step, steps, numSteps, result, sumSteps, numSumSteps, n);
  bool squares = run.isSumOfSquares();
  size_t j = (squares ? squareGroups : allGroups)(run, n, ahead);
  float sum = 0;
  if (j < n) {
    // What is left, one pass after the other.
    size_t rest = n - j;
    float last[count];
    ChainStep shifted[kMaxChain];
    auto shift = [&](const ChainStep *from, unsigned number) {
      for (unsigned s = 0; s < number; ++s) {
        shifted[s] = from[s];
        if (from[s].step)
          shifted[s].x += j;
      }
      return shifted;
    };
    chain(step ? x + j : x, step, shift(steps, numSteps), numSteps, result + j,
          rest, Rounding::DL16, nullptr);
    chain(result + j, 1, shift(sumSteps, numSumSteps), numSumSteps, last, rest,
          Rounding::DL16, nullptr);
    finishRow(last, 0, rest, run.partial, &sum);
  } else {
    sum = foldPartials(run.partial);
  }
  // A square from 2^33 on would have become infinite.
  if (squares && !(sum < 0x1p32f))
    return sumChain(result, 1, sumSteps, numSumSteps, n, Rounding::DL16, acc,
                    nullptr);
  *acc = SumOp::combine(*acc, sum);
}

void reduceRows(ReduceOp op, const float *x, size_t rows, size_t n,
                ptrdiff_t rowStride, float *acc) {
  withReduceOp(op, [&](auto combiner) {
    rowsOf<decltype(combiner)>(x, rows, n, rowStride, acc);
  });
}

void decodeAndReduce(ReduceOp op, const void *codes, float *values, size_t n,
                     float *acc) {
  auto *x = static_cast<const uint16_t *>(codes);
  withReduceOp(op, [&](auto combiner) {
    decodeRow<decltype(combiner)>(x, values, n, acc);
  });
}

void accumulateRows(ReduceOp op, const float *x, size_t rows, size_t n,
                    ptrdiff_t rowStride, float *acc) {
  withReduceOp(op, [&](auto combiner) {
    columnsOf<decltype(combiner)>(x, rows, n, rowStride, acc);
  });
}

template <bool IsMax, class Index>
static void keepBetter(const float *values, size_t step, const Index *indices,
                       size_t indexStep, float *best, Index *bestIndex,
                       size_t n) {
  // One loop per kind of operands, so that each vectorises.
  auto run = [&](auto valueStep, auto stepOfIndex) SPYRE_INLINE_LAMBDA {
    for (size_t i = 0; i < n; ++i) {
      float value = values[i * valueStep], old = best[i];
      Index index = indices[i * stepOfIndex], oldIndex = bestIndex[i];
      bool isNaN = value != value, wasNaN = old != old;
      bool isBeyond = IsMax ? value > old : value < old;
      bool isSame = (value == old) | (isNaN & wasNaN);
      bool isBetter =
          isBeyond | (isNaN & !wasNaN) | (isSame & (index < oldIndex));
      best[i] = isBetter ? value : old;
      bestIndex[i] = isBetter ? index : oldIndex;
    }
  };
  using One = std::integral_constant<size_t, 1>;
  using Zero = std::integral_constant<size_t, 0>;
  if (step && indexStep)
    run(One(), One());
  else if (step)
    run(One(), Zero());
  else if (indexStep)
    run(Zero(), One());
  else
    run(Zero(), Zero());
}

template <class Index>
static SPYRE_INLINE void
keepBetter(bool isMax, const float *values, size_t step, const Index *indices,
           size_t indexStep, float *best, Index *bestIndex, size_t n) {
  (isMax ? keepBetter<true, Index>
         : keepBetter<false, Index>)(values, step, indices, indexStep, best,
                                     bestIndex, n);
}

void keepBetterInt32(bool isMax, const float *values, size_t step,
                     const int32_t *indices, size_t indexStep, float *best,
                     int32_t *bestIndex, size_t n) {
  keepBetter(isMax, values, step, indices, indexStep, best, bestIndex, n);
}

void keepBetterInt64(bool isMax, const float *values, size_t step,
                     const int64_t *indices, size_t indexStep, float *best,
                     int64_t *bestIndex, size_t n) {
  keepBetter(isMax, values, step, indices, indexStep, best, bestIndex, n);
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
