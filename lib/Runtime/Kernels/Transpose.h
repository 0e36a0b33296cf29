// SPDX-License-Identifier: Apache-2.0
//===- Transpose.h - Transposition of a square of registers -----*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
#define SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H

#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// A register of elements of four bytes, and four of them: the part of a
/// register that cheap shuffles stay within.
template <class T>
struct VectorsOf {
  typedef T Register __attribute__((vector_size(kVectorBytes)));
  typedef T Quad __attribute__((vector_size(16)));
};

/// Elements Low and Low + 1 of each quad of a and of b, alternating element by
/// element (Pairs false) or pair by pair.
template <int Low, bool Pairs, class V, int... I>
SPYRE_INLINE V zipQuads(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b,
                                 (I / 4 * 4 + Low +
                                  (Pairs ? I % 2 : I % 4 / 2) +
                                  (Pairs ? I % 4 / 2 : I % 2) * kLanes)...);
}

/// The registers that hold the quads of the rows first, first + 4, ...
template <class T>
SPYRE_INLINE typename VectorsOf<T>::Register loadQuads(const T *src,
                                                       ptrdiff_t stride) {
  using V = typename VectorsOf<T>::Register;
  using Quad = typename VectorsOf<T>::Quad;
  if constexpr (kLanes == 4) {
    (void)stride;
    return load<V>(src);
  } else {
    Quad a = load<Quad>(src), b = load<Quad>(src + 4 * stride);
    auto ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    if constexpr (kLanes == 8) {
      return ab;
    } else {
      Quad c = load<Quad>(src + 8 * stride), d = load<Quad>(src + 12 * stride);
      auto cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
      return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                     11, 12, 13, 14, 15);
    }
  }
}

/// dst[c * dstStride + r] = src[r * srcStride + c] for kLanes rows and columns
/// of elements of four bytes. Loads of quads do the moves between the quads of
/// a register, which are slow as shuffles.
template <class T>
SPYRE_INLINE void transposeSquare(T *dst, ptrdiff_t dstStride, const T *src,
                                  ptrdiff_t srcStride) {
  using V = typename VectorsOf<T>::Register;
  using Lanes = std::make_integer_sequence<int, kLanes>;
  unroll<kLanes / 4>([&](auto quad) {
    constexpr int column = 4 * decltype(quad)::value;
    V rows[4];
    unroll<4>([&](auto r) {
      rows[r] = loadQuads(src + r * srcStride + column, srcStride);
    });
    V low01 = zipQuads<0, false>(rows[0], rows[1], Lanes());
    V high01 = zipQuads<2, false>(rows[0], rows[1], Lanes());
    V low23 = zipQuads<0, false>(rows[2], rows[3], Lanes());
    V high23 = zipQuads<2, false>(rows[2], rows[3], Lanes());
    T *to = dst + column * dstStride;
    store(to, zipQuads<0, true>(low01, low23, Lanes()));
    store(to + dstStride, zipQuads<2, true>(low01, low23, Lanes()));
    store(to + 2 * dstStride, zipQuads<0, true>(high01, high23, Lanes()));
    store(to + 3 * dstStride, zipQuads<2, true>(high01, high23, Lanes()));
  });
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_TRANSPOSE_H
