// SPDX-License-Identifier: Apache-2.0
//===- Lines.h - Vectors as long as a cache line ----------------*- C++ -*-===//
//
// What is here is inlined, so that it is compiled for the processor that the
// function around it is compiled for.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DEVICE_LINES_H
#define SPYRE_LIB_DEVICE_LINES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define SPYRE_INLINE inline __attribute__((always_inline))
#define SPYRE_INLINE_LAMBDA __attribute__((always_inline))
#define SPYRE_UNROLL _Pragma("clang loop unroll(full)")

namespace spyre {

inline constexpr size_t kLineBytes = 64;

/// Elements of T in a line.
template <typename T>
inline constexpr int kLineLength = kLineBytes / sizeof(T);

namespace detail {
template <typename T>
struct LineOf {
  typedef T Type __attribute__((vector_size(kLineBytes)));
};
} // namespace detail

/// A line of elements. References to them are passed: how values are depends on
/// the processor.
template <typename T>
using Line = typename detail::LineOf<T>::Type;

template <typename T>
SPYRE_INLINE bool beginsLine(const T *p) {
  return reinterpret_cast<uintptr_t>(p) % kLineBytes == 0;
}

/// With `pastCaches`, memory is written without being read into a cache first;
/// `target` begins a line, and other threads see it after finishStores().
template <typename T>
SPYRE_INLINE void storeLine(const Line<T> &line, T *target, bool pastCaches) {
  if (pastCaches)
    __builtin_nontemporal_store(line, reinterpret_cast<Line<T> *>(target));
  else
    std::memcpy(target, &line, kLineBytes);
}
SPYRE_INLINE void finishStores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

namespace detail {
/// In each quarter of a line, the elements of a and b in turns: those of the
/// first half of the quarter, or of the second.
template <int Half, typename V, int... I>
SPYRE_INLINE void interleave(const V &a, const V &b, V &result,
                             std::integer_sequence<int, I...>) {
  constexpr int kLength = sizeof...(I), kQuarter = kLength / 4;
  result =
      __builtin_shufflevector(a, b,
                              (I / kQuarter * kQuarter + Half * (kQuarter / 2) +
                               I % kQuarter / 2 + I % 2 * kLength)...);
}

/// Quarters X and Y of a, and those of b.
template <int X, int Y, typename V, int... I>
SPYRE_INLINE void join(const V &a, const V &b, V &result,
                       std::integer_sequence<int, I...>) {
  constexpr int kLength = sizeof...(I), kQuarter = kLength / 4;
  result =
      __builtin_shufflevector(a, b,
                              ((I / kQuarter % 2 ? Y : X) * kQuarter +
                               I % kQuarter + I / kQuarter / 2 * kLength)...);
}
} // namespace detail

/// Makes element j of line i element i of line j, of as many lines as one has
/// elements.
template <typename T>
SPYRE_INLINE void transposeLines(Line<T> (&lines)[kLineLength<T>]) {
  constexpr int kQuarter = kLineLength<T> / 4;
  using Lanes = std::make_integer_sequence<int, kLineLength<T>>;
  using detail::join;
  Line<T> next[kQuarter];
  // Quarters of lines are registers of every processor. Of each kQuarter lines
  // the four squares are transposed: with the bits of a line's number before
  // those of a column's, each round moves the first bit behind the last, and
  // when half of them have moved, lines are columns.
  SPYRE_UNROLL for (int first = 0; first < 4 * kQuarter; first += kQuarter) {
    SPYRE_UNROLL for (int round = 1; round < kQuarter; round *= 2) {
      SPYRE_UNROLL for (int i = 0; i < kQuarter / 2; ++i) {
        const Line<T> &a = lines[first + i];
        const Line<T> &b = lines[first + i + kQuarter / 2];
        detail::interleave<0>(a, b, next[2 * i], Lanes());
        detail::interleave<1>(a, b, next[2 * i + 1], Lanes());
      }
      SPYRE_UNROLL for (int i = 0; i < kQuarter; ++i) lines[first + i] =
          next[i];
    }
  }
  // Then the squares.
  SPYRE_UNROLL for (int i = 0; i < kQuarter; ++i) {
    Line<T> &a = lines[i], &b = lines[i + kQuarter];
    Line<T> &c = lines[i + 2 * kQuarter], &d = lines[i + 3 * kQuarter];
    Line<T> firstOfAB, firstOfCD, lastOfAB, lastOfCD;
    join<0, 1>(a, b, firstOfAB, Lanes());
    join<0, 1>(c, d, firstOfCD, Lanes());
    join<2, 3>(a, b, lastOfAB, Lanes());
    join<2, 3>(c, d, lastOfCD, Lanes());
    join<0, 2>(firstOfAB, firstOfCD, a, Lanes());
    join<1, 3>(firstOfAB, firstOfCD, b, Lanes());
    join<0, 2>(lastOfAB, lastOfCD, c, Lanes());
    join<1, 3>(lastOfAB, lastOfCD, d, Lanes());
  }
}

} // namespace spyre

#endif // SPYRE_LIB_DEVICE_LINES_H
