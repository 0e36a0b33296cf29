// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// The halves of a block, of n keys each. What the first one has at i is
/// compared with what the second one has at i, or at n - 1 - i.
template <bool IsMirrored>
static SPYRE_INLINE void compareHalves(const int64_t *__restrict keys,
                                       int64_t *__restrict result, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const size_t other = n + (IsMirrored ? n - 1 - i : i);
    const int64_t x = keys[i], y = keys[other];
    result[i] = x < y ? x : y;
    result[other] = x < y ? y : x;
  }
}

/// All blocks of a stage; a constant distance lets the compiler put several of
/// them into one vector.
template <bool IsMirrored, size_t Distance>
static void compareNear(const int64_t *keys, int64_t *result,
                        size_t numBlocks) {
  for (size_t block = 0; block < numBlocks; ++block)
    compareHalves<IsMirrored>(keys + block * 2 * Distance,
                              result + block * 2 * Distance, Distance);
}

template <bool IsMirrored>
static void compareKeys(const int64_t *keys, int64_t *result, size_t numBlocks,
                        size_t distance) {
  switch (distance) {
  case 1:
    return compareNear<IsMirrored, 1>(keys, result, numBlocks);
  case 2:
    return compareNear<IsMirrored, 2>(keys, result, numBlocks);
  case 4:
    return compareNear<IsMirrored, 4>(keys, result, numBlocks);
  case 8:
    return compareNear<IsMirrored, 8>(keys, result, numBlocks);
  default:
    for (size_t block = 0; block < numBlocks; ++block)
      compareHalves<IsMirrored>(keys + block * 2 * distance,
                                result + block * 2 * distance, distance);
  }
}

void comparePairs(const int64_t *keys, int64_t *result, size_t numBlocks,
                  size_t distance, size_t columns, bool isMirrored) {
  if (!isMirrored)
    return compareKeys<false>(keys, result, numBlocks, distance * columns);
  if (columns == 1)
    return compareKeys<true>(keys, result, numBlocks, distance);
  for (size_t block = 0; block < numBlocks; ++block)
    for (size_t row = 0; row < distance; ++row) {
      const size_t own = (block * 2 * distance + row) * columns,
                   other = (block * 2 * distance + 2 * distance - 1 - row) *
                           columns;
      const int64_t *__restrict a = keys + own;
      const int64_t *__restrict b = keys + other;
      int64_t *__restrict smaller = result + own;
      int64_t *__restrict greater = result + other;
      for (size_t i = 0; i < columns; ++i) {
        const int64_t x = a[i], y = b[i];
        smaller[i] = x < y ? x : y;
        greater[i] = x < y ? y : x;
      }
    }
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
