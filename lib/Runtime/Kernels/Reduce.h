// SPDX-License-Identifier: Apache-2.0
//===- Reduce.h - Partial results of reductions -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_REDUCE_H
#define SPYRE_LIB_RUNTIME_KERNELS_REDUCE_H

#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

// Partial results of a row, the same for every instruction set.
constexpr int kPartials = 32;
constexpr int kRegisters = kPartials / kLanes;

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

/// Calls f with the operation.
template <class F>
SPYRE_INLINE void withReduceOp(ReduceOp op, F f) {
  switch (op) {
  case ReduceOp::Sum:
    return f(SumOp());
  case ReduceOp::Mul:
    return f(MulOp());
  case ReduceOp::Max:
    return f(MaxOp());
  case ReduceOp::Min:
    return f(MinOp());
  case ReduceOp::MaxNum:
    return f(MaxNumOp());
  case ReduceOp::MinNum:
    return f(MinNumOp());
  case ReduceOp::MaxWithoutNaN:
    return f(MaxWithoutNaNOp());
  case ReduceOp::MinWithoutNaN:
    return f(MinWithoutNaNOp());
  }
}

/// The combination of many vectors.
template <class Op, bool WatchesNaN = Op::watchesNaN>
struct Chain {
  VF value;

  SPYRE_INLINE void begin(VF first) { value = first; }
  SPYRE_INLINE void add(VF next) { value = Op::combine(value, next); }
  /// Both, one after the other.
  SPYRE_INLINE void add(VF next, VF last) {
    add(next);
    add(last);
  }
  SPYRE_INLINE VF end() const { return value; }
};

template <class Op>
struct Chain<Op, /*WatchesNaN=*/true> {
  VF value;
  VI hasNaN;

  SPYRE_INLINE void begin(VF first) {
    value = first;
    hasNaN = isNaN(first);
  }
  SPYRE_INLINE void add(VF next) {
    hasNaN |= isNaN(next);
    value = Op::step(value, next);
  }
  /// One comparison sees a NaN in either.
  SPYRE_INLINE void add(VF next, VF last) {
    hasNaN |= isNaN(next) | isNaN(last);
    value = Op::step(Op::step(value, next), last);
  }
  SPYRE_INLINE VF end() const { return select(hasNaN, splat(kNaN), value); }
};

/// Combines the partial results of a row.
template <class Op>
SPYRE_INLINE float foldLanes(float (&lanes)[kPartials]) {
  for (int half = kPartials / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = Op::combine(lanes[i], lanes[i + half]);
  return lanes[0];
}
template <class Op>
SPYRE_INLINE float foldPartials(const Chain<Op> (&partial)[kRegisters]) {
  float lanes[kPartials];
  unroll<kRegisters>(
      [&](auto r) { store(lanes + r * kLanes, partial[r].end()); });
  return foldLanes<Op>(lanes);
}

/// Combines the values of a row from j on, fewer than a whole group, with the
/// partial results, and these with *acc.
template <class Op>
SPYRE_INLINE void finishRow(const float *x, size_t j, size_t n,
                            Chain<Op> (&partial)[kRegisters], float *acc) {
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
  *acc = Op::combine(*acc, foldPartials(partial));
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_REDUCE_H
