// SPDX-License-Identifier: Apache-2.0
//===- Chain.h - Several operations in one pass -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H
#define SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H

#include "Rounders.h"
#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// value[g] = op of value[g] and other(g).
template <int N, class Other>
SPYRE_INLINE void apply(const ChainStep &step, VF (&value)[N], Other other) {
  auto forEach = [&](auto op) {
    for (int g = 0; g < N; ++g)
      value[g] = op(value[g], other(g));
  };
  if (step.op == BinaryOp::Mul)
    return forEach([](VF a, VF b) { return a * b; });
  if (step.op == BinaryOp::Add)
    return forEach([](VF a, VF b) { return a + b; });
  if (step.isReversed)
    return forEach([](VF a, VF b) { return b - a; });
  return forEach([](VF a, VF b) { return a - b; });
}

/// The chain's values at points i, i + kLanes, ..., which start as `value`.
/// `uniform` has the operands that do not vary.
template <class Rounder, int N>
SPYRE_INLINE void applyChain(const ChainStep *steps, unsigned numSteps,
                             const VF *uniform, size_t i, Rounder rounder,
                             VF (&value)[N]) {
  for (unsigned s = 0; s < numSteps; ++s) {
    const float *other = steps[s].x + i;
    if (steps[s].step)
      apply(steps[s], value,
            [&](int g) { return load<VF>(other + g * kLanes); });
    else
      apply(steps[s], value, [&](int) { return uniform[s]; });
    roundGroup(rounder, value);
  }
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
    roundGroup(rounder, value);
  }
  return value[0];
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_CHAIN_H
