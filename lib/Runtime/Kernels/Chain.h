// SPDX-License-Identifier: Apache-2.0
//===- Chain.h - Several operations in one pass -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H
#define SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H

#include "Rounders.h"
#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// A kernel's hold of a ReadAhead.
class Prefetcher {
public:
  SPYRE_INLINE explicit Prefetcher(ReadAhead *ahead) : ahead(ahead) {
    if (ahead) {
      next = ahead->next;
      end = ahead->end;
    }
  }
  SPYRE_INLINE ~Prefetcher() {
    if (ahead)
      ahead->next = next;
  }
  /// Once per 64 * NumLines points.
  template <int NumLines>
  SPYRE_INLINE void fetch() {
    if (next >= end)
      return;
    unroll<NumLines>([&](auto line) SPYRE_INLINE_LAMBDA {
      __builtin_prefetch(next + line * kLineBytes, 0, 2);
    });
    next += NumLines * kLineBytes;
  }

private:
  static constexpr int kLineBytes = 64;
  ReadAhead *ahead;
  const uint8_t *next = nullptr, *end = nullptr;
};

/// What a step does with the value before and the operand.
enum class StepKind : uint8_t { Mul, Add, Sub, SubFrom, Div, DivFrom };

SPYRE_INLINE StepKind kindOf(const ChainStep &step) {
  switch (step.op) {
  case BinaryOp::Mul:
    return StepKind::Mul;
  case BinaryOp::Add:
    return StepKind::Add;
  case BinaryOp::Div:
    return step.isReversed ? StepKind::DivFrom : StepKind::Div;
  default:
    return step.isReversed ? StepKind::SubFrom : StepKind::Sub;
  }
}

/// Calls f with the operation, a function of the value before and the operand.
template <class F>
SPYRE_INLINE void withOperation(StepKind kind, F f) {
  switch (kind) {
  case StepKind::Mul:
    return f([](VF a, VF b) { return a * b; });
  case StepKind::Add:
    return f([](VF a, VF b) { return a + b; });
  case StepKind::Sub:
    return f([](VF a, VF b) { return a - b; });
  case StepKind::SubFrom:
    return f([](VF a, VF b) { return b - a; });
  case StepKind::Div:
    return f([](VF a, VF b) { return a / b; });
  case StepKind::DivFrom:
    return f([](VF a, VF b) { return b / a; });
  }
}

/// value[g] = op of value[g] and other(g).
template <int N, class Other>
SPYRE_INLINE void apply(StepKind kind, VF (&value)[N], Other other) {
  withOperation(kind, [&](auto op) SPYRE_INLINE_LAMBDA {
    for (int g = 0; g < N; ++g)
      value[g] = op(value[g], other(g));
  });
}

/// A chain's steps as the loop over its points wants them.
class Steps {
public:
  struct Step {
    VF uniform; ///< the operand, unless it is an array
    const float *x;
    ptrdiff_t rowStride;
    bool isArray, isRounded;
    StepKind kind;

    /// At points i, i + kLanes, ..., not rounded.
    template <int N>
    SPYRE_INLINE void run(size_t i, VF (&value)[N]) const {
      runAs(kind, isArray, i, value);
    }
    /// The same of a step that is known to be of this kind, and has or has not
    /// an array.
    template <int N>
    SPYRE_INLINE void runAs(StepKind known, bool knownArray, size_t i,
                            VF (&value)[N]) const {
      const float *other = x + i;
      if (knownArray)
        return apply(known, value,
                     [&](int g) { return load<VF>(other + g * kLanes); });
      apply(known, value, [&](int) { return uniform; });
    }
  };

  /// Without `roundsLast` nothing is rounded after the last step.
  SPYRE_INLINE Steps(const ChainStep *given, unsigned count,
                     bool roundsLast = true)
      : count(count) {
    for (unsigned s = 0; s < count; ++s)
      steps[s] = {given[s].step ? VF{} : splat(*given[s].x),
                  given[s].x,
                  given[s].rowStride,
                  given[s].step != 0,
                  given[s].isRounded && (roundsLast || s + 1 < count),
                  kindOf(given[s])};
  }

  SPYRE_INLINE const Step *begin() const { return steps; }
  SPYRE_INLINE const Step *end() const { return steps + count; }
  SPYRE_INLINE unsigned size() const { return count; }
  SPYRE_INLINE const Step &operator[](unsigned s) const { return steps[s]; }

  /// Whether they scale a row by one value, then by an array, and add another,
  /// as normalisations do.
  SPYRE_INLINE bool areAffine() const {
    auto is = [&](unsigned s, StepKind kind, bool isArray) {
      return steps[s].kind == kind && steps[s].isArray == isArray;
    };
    return count == 3 && is(0, StepKind::Mul, false) &&
           is(1, StepKind::Mul, true) && is(2, StepKind::Add, true) &&
           steps[0].isRounded && steps[1].isRounded;
  }

  /// From a row's points to those of the next one, which there is.
  SPYRE_INLINE void moveToNextRow() {
    for (unsigned s = 0; s < count; ++s) {
      steps[s].x += steps[s].rowStride;
      if (!steps[s].isArray)
        steps[s].uniform = splat(*steps[s].x);
    }
  }

private:
  Step steps[kMaxChain];
  unsigned count;
};

/// The chain's values at points i, i + kLanes, ...
template <class Format, int N>
SPYRE_INLINE void runChainGroup(const Operand &first, const Steps &steps,
                                size_t i, GroupRounder<Format> &rounder,
                                VF (&value)[N]) {
  rounder.template run<N>([&](auto round) SPYRE_INLINE_LAMBDA {
    first.read(i, value);
    for (const Steps::Step &step : steps) {
      step.run(i, value);
      if (step.isRounded)
        round(value);
    }
  });
}

/// The same of steps that areAffine(), without decisions between them. The last
/// one is not rounded.
template <class Format, int N>
SPYRE_INLINE void runAffineGroup(const Operand &first, const Steps &steps,
                                 size_t i, GroupRounder<Format> &rounder,
                                 VF (&value)[N]) {
  rounder.template run<N>([&](auto round) SPYRE_INLINE_LAMBDA {
    first.read(i, value);
    steps[0].runAs(StepKind::Mul, false, i, value);
    round(value);
    steps[1].runAs(StepKind::Mul, true, i, value);
    round(value);
    steps[2].runAs(StepKind::Add, true, i, value);
  });
}

/// The chain's values at `rest` points from i on.
template <class Rounder>
SPYRE_INLINE VF chainTail(const Operand &first, const Steps &steps, size_t i,
                          size_t rest, Rounder rounder) {
  VF value[1] = {first.tail(i, rest)};
  for (const Steps::Step &step : steps) {
    VF other = step.isArray ? loadTail(step.x + i, rest) : step.uniform;
    apply(step.kind, value, [&](int) { return other; });
    if (step.isRounded)
      value[0] = rounder.round(value[0]);
  }
  return value[0];
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H
