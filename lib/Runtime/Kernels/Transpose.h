// SPDX-License-Identifier: Apache-2.0
//===- Transpose.h - Transposition of a square of registers -----*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
#define SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H

#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// a0 b0 a1 b1 ... of the lower (Half = 0) or upper (1) halves.
template <int Half, class V, int... I>
SPYRE_INLINE V interleave(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
  return __builtin_shufflevector(
      a, b, (Half * lanes / 2 + I / 2 + (I % 2) * lanes)...);
}

/// Transposes the square of kLanes x kLanes elements held in `rows`. Each step
/// shuffles rows i and i + kLanes / 2 together; after log2(kLanes) of them
/// rows and columns have changed places.
template <class V>
SPYRE_INLINE void transposeSquare(V (&rows)[kLanes]) {
  using Lanes = std::make_integer_sequence<int, kLanes>;
  constexpr int steps = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2;
  unroll<steps>([&](auto) {
    V next[kLanes];
    unroll<kLanes / 2>([&](auto i) {
      constexpr int r = decltype(i)::value;
      next[2 * r] = interleave<0>(rows[r], rows[r + kLanes / 2], Lanes());
      next[2 * r + 1] = interleave<1>(rows[r], rows[r + kLanes / 2], Lanes());
    });
    unroll<kLanes>([&](auto i) {
      constexpr int r = decltype(i)::value;
      rows[r] = next[r];
    });
  });
}

/// dst[c * dstStride + r] = src[r * srcStride + c] for a square of elements of
/// four bytes.
template <class V, class T>
SPYRE_INLINE void transposeSquare(T *dst, ptrdiff_t dstStride, const T *src,
                                  ptrdiff_t srcStride) {
  V rows[kLanes];
  unroll<kLanes>([&](auto i) {
    constexpr int r = decltype(i)::value;
    rows[r] = load<V>(src + r * srcStride);
  });
  transposeSquare(rows);
  unroll<kLanes>([&](auto i) {
    constexpr int r = decltype(i)::value;
    store(dst + r * dstStride, rows[r]);
  });
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
