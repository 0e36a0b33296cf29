// SPDX-License-Identifier: Apache-2.0
//===- TransposeSquare.h - Transposition of small squares -------*- C++ -*-===//

#ifndef SPYRE_LIB_DEVICE_TRANSPOSESQUARE_H
#define SPYRE_LIB_DEVICE_TRANSPOSESQUARE_H

#include <cstddef>
#include <cstring>
#include <utility>

namespace spyre {

/// Rows and columns of the squares of T: a row fills a register of 16 bytes,
/// which every processor has.
template <typename T>
inline constexpr int kSquare = 16 / sizeof(T);

namespace detail {
/// The elements of a and b in turns, from element `First` of each.
template <int First, typename V, int... I>
V interleave(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int kLanes = sizeof...(I);
  return __builtin_shufflevector(a, b, (First + I / 2 + I % 2 * kLanes)...);
}
} // namespace detail

/// target[c * targetStride + r] = source[r * sourceStride + c] for kSquare<T>
/// rows r and columns c.
template <typename T>
void transposeSquare(const T *source, ptrdiff_t sourceStride, T *target,
                     ptrdiff_t targetStride) {
  constexpr int kSize = kSquare<T>;
  typedef T Vector __attribute__((vector_size(16)));
  using Lanes = std::make_integer_sequence<int, kSize>;
  Vector rows[kSize], next[kSize];
  for (int r = 0; r < kSize; ++r)
    std::memcpy(&rows[r], source + r * sourceStride, sizeof(Vector));
  // With the bits of a row's number before those of a column's, each round
  // moves the first bit behind the last. When half of them have moved, rows are
  // columns.
  for (int round = 1; round < kSize; round *= 2) {
    for (int r = 0; r < kSize / 2; ++r) {
      Vector a = rows[r], b = rows[r + kSize / 2];
      next[2 * r] = detail::interleave<0>(a, b, Lanes());
      next[2 * r + 1] = detail::interleave<kSize / 2>(a, b, Lanes());
    }
    for (int r = 0; r < kSize; ++r)
      rows[r] = next[r];
  }
  for (int c = 0; c < kSize; ++c)
    std::memcpy(target + c * targetStride, &rows[c], sizeof(Vector));
}

/// Likewise, for any number of rows and columns.
template <typename T>
void transpose(const T *source, ptrdiff_t sourceStride, T *target,
               ptrdiff_t targetStride, ptrdiff_t numRows,
               ptrdiff_t numColumns) {
  constexpr ptrdiff_t kSize = kSquare<T>;
  for (ptrdiff_t c = 0; c < numColumns; c += kSize)
    for (ptrdiff_t r = 0; r < numRows; r += kSize) {
      const T *from = source + r * sourceStride + c;
      T *to = target + c * targetStride + r;
      if (r + kSize <= numRows && c + kSize <= numColumns) {
        transposeSquare(from, sourceStride, to, targetStride);
        continue;
      }
      for (ptrdiff_t j = 0; j < kSize && c + j < numColumns; ++j)
        for (ptrdiff_t i = 0; i < kSize && r + i < numRows; ++i)
          to[j * targetStride + i] = from[i * sourceStride + j];
    }
}

} // namespace spyre

#endif // SPYRE_LIB_DEVICE_TRANSPOSESQUARE_H
