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

/// Calls f with the operation of a step, a function of the value before and the
/// operand.
template <class F>
SPYRE_INLINE void withOperation(const ChainStep &step, F f) {
  if (step.op == BinaryOp::Mul)
    return f([](VF a, VF b) { return a * b; });
  if (step.op == BinaryOp::Add)
    return f([](VF a, VF b) { return a + b; });
  if (step.op == BinaryOp::Div) {
    if (step.isReversed)
      return f([](VF a, VF b) { return b / a; });
    return f([](VF a, VF b) { return a / b; });
  }
  if (step.isReversed)
    return f([](VF a, VF b) { return b - a; });
  return f([](VF a, VF b) { return a - b; });
}

/// The first value of each operand: all of those that do not vary.
SPYRE_INLINE void splatOperands(const ChainStep *steps, unsigned numSteps,
                                VF (&uniform)[kMaxChain]) {
  for (unsigned s = 0; s < numSteps; ++s)
    uniform[s] = splat(*steps[s].x);
}

/// value[g] = op of value[g] and other(g).
template <int N, class Other>
SPYRE_INLINE void apply(const ChainStep &step, VF (&value)[N], Other other) {
  withOperation(step, [&](auto op) SPYRE_INLINE_LAMBDA {
    for (int g = 0; g < N; ++g)
      value[g] = op(value[g], other(g));
  });
}

/// One step at points i, i + kLanes, ..., not rounded. `uniform` has the
/// operands that do not vary.
template <int N>
SPYRE_INLINE void applyStep(const ChainStep *steps, unsigned s,
                            const VF *uniform, size_t i, VF (&value)[N]) {
  const float *other = steps[s].x + i;
  if (steps[s].step)
    apply(steps[s], value, [&](int g) { return load<VF>(other + g * kLanes); });
  else
    apply(steps[s], value, [&](int) { return uniform[s]; });
}

/// The chain's values at points i, i + kLanes, ... The last step is rounded if
/// `RoundsLast`.
template <bool RoundsLast = true, class Format, int N>
SPYRE_INLINE void runChainGroup(const Operand &first, const ChainStep *steps,
                                unsigned numSteps, const VF *uniform, size_t i,
                                GroupRounder<Format> &rounder, VF (&value)[N]) {
  rounder.template run<N>([&](auto round) SPYRE_INLINE_LAMBDA {
    unroll<N>([&](auto g) { value[g] = first.at(i + g * kLanes); });
    for (unsigned s = 0; s < numSteps; ++s) {
      applyStep(steps, s, uniform, i, value);
      if (steps[s].isRounded && (RoundsLast || s + 1 < numSteps))
        round(value);
    }
  });
}

/// The chain's values at `rest` points from i on.
template <class Rounder>
SPYRE_INLINE VF chainTail(const Operand &first, const ChainStep *steps,
                          unsigned numSteps, const VF *uniform, size_t i,
                          size_t rest, Rounder rounder) {
  VF value[1] = {first.tail(i, rest)};
  for (unsigned s = 0; s < numSteps; ++s) {
    VF other = steps[s].step ? loadTail(steps[s].x + i, rest) : uniform[s];
    apply(steps[s], value, [&](int) { return other; });
    if (steps[s].isRounded)
      value[0] = rounder.round(value[0]);
  }
  return value[0];
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H
