// SPDX-License-Identifier: Apache-2.0
//===- BufferPoolTest.cpp - Buffers of data tiles -------------------------===//

#include "Engine/Values.h"
#include "gtest/gtest.h"

using namespace spyre::runtime;

namespace {

constexpr size_t kLarge = size_t(3) << 20; // 4 MiB with the header

/// Takes `count` buffers at the same time and gives them back.
void use(BufferPool &pool, int count, size_t bytes) {
  std::vector<Buffer *> buffers;
  for (int i = 0; i < count; ++i) {
    buffers.push_back(pool.get(bytes));
    buffers.back()->data()[bytes - 1] = 1;
  }
  for (Buffer *buffer : buffers)
    pool.release(buffer);
}

class BufferPoolTest : public ::testing::Test {
protected:
  void SetUp() override {
    use(pool, 1, kLarge);
    if (pool.getLargeFreeBytes() == 0)
      GTEST_SKIP() << "buffers have their exact sizes under AddressSanitizer";
    pool.endRun(10);
  }
  BufferPool pool;
};

TEST_F(BufferPoolTest, KeepsWhatRunsNeed) {
  for (int second = 11; second < 16; ++second) {
    use(pool, 3, kLarge);
    pool.endRun(second);
    EXPECT_EQ(pool.getLargeFreeBytes(), size_t(12) << 20);
  }
}

TEST_F(BufferPoolTest, GivesBackWhatNoRunNeeds) {
  use(pool, 5, kLarge);
  pool.endRun(11);
  EXPECT_EQ(pool.getLargeFreeBytes(), size_t(20) << 20);
  use(pool, 2, kLarge);
  pool.endRun(12);
  EXPECT_EQ(pool.getLargeFreeBytes(), size_t(8) << 20);
  pool.endRun(13);
  EXPECT_EQ(pool.getLargeFreeBytes(), 0u);
}

TEST_F(BufferPoolTest, CountsAllRunsOfASecond) {
  use(pool, 5, kLarge);
  pool.endRun(11);
  use(pool, 4, kLarge);
  pool.endRun(11.5);
  use(pool, 1, kLarge);
  pool.endRun(12);
  EXPECT_EQ(pool.getLargeFreeBytes(), size_t(16) << 20);
}

TEST_F(BufferPoolTest, BuffersInUseStay) {
  Buffer *held = pool.get(kLarge);
  held->data()[0] = 42;
  pool.endRun(11);
  pool.endRun(12);
  EXPECT_EQ(held->data()[0], 42);
  pool.release(held);
  EXPECT_EQ(pool.getLargeFreeBytes(), size_t(4) << 20);
}

TEST_F(BufferPoolTest, SmallBuffersStay) {
  Buffer *small = pool.get(100);
  pool.release(small);
  pool.endRun(11);
  pool.endRun(12);
  EXPECT_EQ(pool.get(100), small);
  pool.release(small);
}

} // namespace
