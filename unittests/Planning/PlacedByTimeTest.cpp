// SPDX-License-Identifier: Apache-2.0
#include "PlacedByTime.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace spyre::planning;

TEST(PlacedByTime, FindsEachThatIsLiveOnce) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Buffer> buffers(random() % 40);
    for (Buffer &buffer : buffers) {
      buffer.lower = static_cast<int64_t>(random() % 30) - 10;
      buffer.upper = buffer.lower + 1 + static_cast<int64_t>(random() % 12);
    }
    PlacedByTime placed(buffers);
    std::set<size_t> added;
    for (size_t i = 0; i < buffers.size(); ++i) {
      std::multiset<size_t> found;
      placed.visitLiveWith(buffers[i], [&](size_t j) { found.insert(j); });
      std::multiset<size_t> expected;
      for (size_t j : added)
        if (buffers[j].lower < buffers[i].upper &&
            buffers[i].lower < buffers[j].upper)
          expected.insert(j);
      ASSERT_EQ(found, expected) << "trial " << trial << ", buffer " << i;
      if (random() % 3 != 0) {
        placed.add(i, buffers[i]);
        added.insert(i);
      }
    }
  }
}
