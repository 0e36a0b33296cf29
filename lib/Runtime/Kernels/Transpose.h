// SPDX-License-Identifier: Apache-2.0
//===- Transpose.h - Transposition in registers -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
#define SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H

#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// So many quarters of elements of type T. A quarter is 16 bytes: the part of a
/// register that cheap shuffles stay within.
template <class T, int Quarters>
struct QuartersOf {
  typedef T Vector __attribute__((vector_size(16 * Quarters)));
};
constexpr int kQuarters = kVectorBytes / 16;

/// Elements of a quarter.
template <class T>
constexpr int kQuarterLanes = int(16 / sizeof(T));

template <class V, int... I>
SPYRE_INLINE auto join(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}

/// The quarters that lie `stride` apart, in one register.
template <int Quarters, class T>
SPYRE_INLINE auto loadQuarters(const T *src, ptrdiff_t stride) {
  if constexpr (Quarters == 1) {
    (void)stride;
    return load<typename QuartersOf<T, 1>::Vector>(src);
  } else {
    return join(loadQuarters<Quarters / 2>(src, stride),
                loadQuarters<Quarters / 2>(src + Quarters / 2 * stride, stride),
                std::make_integer_sequence<int, Quarters * kQuarterLanes<T>>());
  }
}

/// Elements of the first or second half of each quarter of a and of b,
/// alternating.
template <int Lanes, bool Second, class V, int... I>
SPYRE_INLINE V zipHalves(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b,
                                 (I / Lanes * Lanes + I % Lanes / 2 +
                                  (Second ? Lanes / 2 : 0) +
                                  I % 2 * int(sizeof...(I)))...);
}

/// dst[c * dstStride + r] = src[r * srcStride + c] for kQuarterLanes columns
/// and so many rows for each of the quarters. Loads do the moves between the
/// quarters of a register, which are slow as shuffles.
template <int Quarters, class T>
SPYRE_INLINE void transposeBlock(T *dst, ptrdiff_t dstStride, const T *src,
                                 ptrdiff_t srcStride) {
  using V = typename QuartersOf<T, Quarters>::Vector;
  constexpr int lanes = kQuarterLanes<T>;
  using All = std::make_integer_sequence<int, Quarters * lanes>;
  V rows[lanes];
  unroll<lanes>([&](auto r) SPYRE_INLINE_LAMBDA {
    rows[r] = loadQuarters<Quarters>(src + r * srcStride, lanes * srcStride);
  });
  // Each round doubles how many elements of a column lie side by side.
  constexpr int rounds = lanes == 16 ? 4 : lanes == 8 ? 3 : lanes == 4 ? 2 : 1;
  unroll<rounds>([&](auto) SPYRE_INLINE_LAMBDA {
    V zipped[lanes];
    unroll<lanes / 2>([&](auto r) SPYRE_INLINE_LAMBDA {
      V a = rows[r], b = rows[r + lanes / 2];
      zipped[2 * r] = zipHalves<lanes, false>(a, b, All());
      zipped[2 * r + 1] = zipHalves<lanes, true>(a, b, All());
    });
    unroll<lanes>([&](auto r) SPYRE_INLINE_LAMBDA { rows[r] = zipped[r]; });
  });
  unroll<lanes>(
      [&](auto c) SPYRE_INLINE_LAMBDA { store(dst + c * dstStride, rows[c]); });
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
