// SPDX-License-Identifier: Apache-2.0
#include "KernelTestUtils.h"

#include <algorithm>

using namespace spyre::runtime;

namespace {

/// Keys [numBlocks, 2, distance, columns].
struct Stage {
  size_t numBlocks, distance, columns;
  bool isMirrored;
  size_t at(size_t block, size_t side, size_t place, size_t column) const {
    return ((block * 2 + side) * distance + place) * columns + column;
  }
  size_t size() const { return numBlocks * 2 * distance * columns; }
};

std::vector<int64_t> expectedOf(const Stage &s,
                                const std::vector<int64_t> &keys) {
  std::vector<int64_t> result(keys);
  for (size_t block = 0; block < s.numBlocks; ++block)
    for (size_t place = 0; place < s.distance; ++place)
      for (size_t column = 0; column < s.columns; ++column) {
        size_t own = s.at(block, 0, place, column);
        size_t partner = s.isMirrored ? s.distance - 1 - place : place;
        size_t other = s.at(block, 1, partner, column);
        result[own] = std::min(keys[own], keys[other]);
        result[other] = std::max(keys[own], keys[other]);
      }
  return result;
}

class PairKernels : public KernelTest {};

TEST_P(PairKernels, PutTheSmallerKeyFirst) {
  std::mt19937_64 random(7);
  for (size_t numBlocks : {0, 1, 3, 64})
    for (size_t distance : {1, 2, 3, 4, 5, 8, 16, 31, 64})
      for (size_t columns : {1, 2, 3, 7, 8, 64, 65})
        for (bool isMirrored : {false, true}) {
          const Stage stage{numBlocks, distance, columns, isMirrored};
          std::vector<int64_t> keys(stage.size());
          for (int64_t &key : keys)
            // Equal ones, negative ones, and the ends of the type.
            switch (random() % 4) {
            case 0:
              key = int64_t(random() % 5) - 2;
              break;
            case 1:
              key = random() % 2 ? std::numeric_limits<int64_t>::max()
                                 : std::numeric_limits<int64_t>::min();
              break;
            default:
              key = int64_t(random());
            }
          std::vector<int64_t> found(keys.size() + 1, 77);
          k.comparePairs(keys.data(), found.data(), numBlocks, distance,
                         columns, isMirrored);
          ASSERT_EQ(found.back(), 77);
          found.pop_back();
          ASSERT_EQ(found, expectedOf(stage, keys))
              << numBlocks << " " << distance << " " << columns << " "
              << isMirrored;
        }
}

SPYRE_INSTANTIATE_KERNEL_TEST(PairKernels);

} // namespace
