// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

namespace {

// Partial results of a row, the same for every instruction set.
constexpr int kPartials = 32;
typedef float VP __attribute__((vector_size(4 * kPartials)));
typedef int32_t VPI __attribute__((vector_size(4 * kPartials)));

struct SumOp {
  static constexpr float identity = 0.0f;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a + b;
  }
};
struct MulOp {
  static constexpr float identity = 1.0f;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    return a * b;
  }
};
/// Propagates NaN: a NaN on the right is taken by the negated comparison, one
/// on the left by the second test.
struct MaxOp {
  static constexpr float identity = -kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a > b) | (a != a);
    return keep ? a : b;
  }
};
struct MinOp {
  static constexpr float identity = kInfinity;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a < b) | (a != a);
    return keep ? a : b;
  }
};
/// The identity of these two is NaN.
struct MaxNumOp {
  static constexpr float identity = kNaN;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a > b) | (b != b);
    return keep ? a : b;
  }
};
struct MinNumOp {
  static constexpr float identity = kNaN;
  template <class V>
  static SPYRE_INLINE V combine(V a, V b) {
    auto keep = (a < b) | (b != b);
    return keep ? a : b;
  }
};

template <class Op>
SPYRE_INLINE float reduceRow(const float *x, size_t n) {
  VP partial = Op::identity - VP{};
  size_t j = 0;
  for (; j + kPartials <= n; j += kPartials)
    partial = Op::combine(partial, load<VP>(x + j));
  if (j < n) {
    VP last = Op::identity - VP{};
    __builtin_memcpy(&last, x + j, (n - j) * sizeof(float));
    partial = Op::combine(partial, last);
  }
  float lanes[kPartials];
  __builtin_memcpy(lanes, &partial, sizeof(lanes));
  for (int half = kPartials / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = Op::combine(lanes[i], lanes[i + half]);
  return lanes[0];
}

template <class Op>
__attribute__((noinline)) void rowsOf(const float *x, size_t rows, size_t n,
                                      ptrdiff_t rowStride, float *acc) {
  for (size_t r = 0; r < rows; ++r)
    acc[r] =
        Op::combine(acc[r], reduceRow<Op>(x + ptrdiff_t(r) * rowStride, n));
}

template <class Op>
__attribute__((noinline)) void columnsOf(const float *x, size_t rows, size_t n,
                                         ptrdiff_t rowStride, float *acc) {
  // Four registers of columns at a time stay in registers over all rows.
  constexpr size_t chunk = 4 * kLanes;
  size_t j = 0;
  for (; j + chunk <= n; j += chunk) {
    VF partial[4];
    for (int c = 0; c < 4; ++c)
      partial[c] = load<VF>(acc + j + c * kLanes);
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      for (int c = 0; c < 4; ++c)
        partial[c] = Op::combine(partial[c], load<VF>(p + c * kLanes));
    for (int c = 0; c < 4; ++c)
      store(acc + j + c * kLanes, partial[c]);
  }
  for (; j + kLanes <= n; j += kLanes) {
    VF partial = load<VF>(acc + j);
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      partial = Op::combine(partial, load<VF>(p));
    store(acc + j, partial);
  }
  for (; j < n; ++j) {
    float partial = acc[j];
    const float *p = x + j;
    for (size_t r = 0; r < rows; ++r, p += rowStride)
      partial = Op::combine(partial, *p);
    acc[j] = partial;
  }
}

} // namespace

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
  }

void reduceRows(ReduceOp op, const float *x, size_t rows, size_t n,
                ptrdiff_t rowStride, float *acc) {
  SPYRE_REDUCE(rowsOf)
}

void accumulateRows(ReduceOp op, const float *x, size_t rows, size_t n,
                    ptrdiff_t rowStride, float *acc) {
  SPYRE_REDUCE(columnsOf)
}
#undef SPYRE_REDUCE

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
