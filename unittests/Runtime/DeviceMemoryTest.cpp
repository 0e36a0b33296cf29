// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Runtime/Memory/DeviceMemory.h"

#include "gtest/gtest.h"

#include <map>
#include <random>

using namespace spyre;
using namespace spyre::runtime;

TEST(DeviceMemory, StartsAtFirstAddressInBlocksOf128) {
  DeviceMemory memory;
  uint64_t a = memory.allocate(1), b = memory.allocate(129);
  uint64_t c = memory.allocate(0);
  EXPECT_EQ(a, 0x10000u);
  EXPECT_EQ(b, 0x10080u);
  EXPECT_EQ(c, 0x10180u);
  EXPECT_EQ(memory.sizeOf(a), 128u);
  EXPECT_EQ(memory.sizeOf(b), 256u);
  EXPECT_EQ(memory.sizeOf(b + 128), 0u);
  EXPECT_EQ(memory.blockOf(b + 200), (std::pair<uint64_t, uint64_t>{b, c}));
  EXPECT_EQ(memory.blockOf(0), (std::pair<uint64_t, uint64_t>{0, 0}));
}

TEST(DeviceMemory, ReusesAndJoinsFreedBlocks) {
  DeviceMemory memory(0x10000 + 1024);
  uint64_t a = memory.allocate(256), b = memory.allocate(256);
  uint64_t c = memory.allocate(256), d = memory.allocate(256);
  EXPECT_THROW(memory.allocate(1), OutOfMemory);
  memory.free(b);
  EXPECT_EQ(memory.allocate(100), b);
  memory.free(b);
  memory.free(a);
  memory.free(c);
  EXPECT_THROW(memory.allocate(769), OutOfMemory);
  EXPECT_EQ(memory.allocate(768), a);
  memory.free(d);
  EXPECT_THROW(memory.free(d), Error);
  EXPECT_THROW(memory.free(a + 128), Error);
}

TEST(DeviceMemory, SaysWhatWasAskedAndWhatIsLeft) {
  DeviceMemory memory(0x10000 + 1024);
  try {
    memory.allocate(2000);
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_NE(std::string(e.what()).find("2000 bytes requested"),
              std::string::npos);
    EXPECT_NE(std::string(e.what()).find("1024"), std::string::npos);
  }
  EXPECT_THROW(DeviceMemory(uint64_t(1) << 40), Error);
}

TEST(DeviceMemory, IsSparse) {
  DeviceMemory memory;
  uint64_t a = memory.allocate(uint64_t(100) << 30);
  memory.at(a + (uint64_t(99) << 30))[0] = 7;
  EXPECT_EQ(memory.at(a + (uint64_t(99) << 30))[0], 7);
  memory.free(a);
  memory.releaseUnused();
  EXPECT_EQ(memory.at(a + (uint64_t(99) << 30))[0], 0);
  memory.lx(31)[memory.lxSizeInBytes() - 1] = 5;
  EXPECT_EQ(memory.lx(31)[memory.lxSizeInBytes() - 1], 5);
}

TEST(DeviceMemory, CountsAllocations) {
  DeviceMemory memory;
  uint64_t a = memory.allocate(1000);
  memory.allocate(1);
  memory.free(a);
  MemoryStats s = memory.stats();
  EXPECT_EQ(s.allocatedBytes, 128u);
  EXPECT_EQ(s.peakBytes, 1152u);
  EXPECT_EQ(s.numAllocations, 1u);
  EXPECT_EQ(s.totalAllocations, 2u);
  EXPECT_EQ(s.totalFrees, 1u);
  memory.resetPeakStats();
  memory.resetAccumulatedStats();
  EXPECT_EQ(memory.stats().peakBytes, 128u);
  EXPECT_EQ(memory.stats().totalAllocations, 0u);
}

TEST(DeviceMemory, BlocksNeverOverlap) {
  DeviceMemory memory(0x10000 + (1 << 20));
  std::mt19937 random(1);
  std::map<uint64_t, uint64_t> live;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 || live.empty()) {
      uint64_t size = random() % 20000 + 1;
      uint64_t a;
      try {
        a = memory.allocate(size);
      } catch (const OutOfMemory &) {
        continue;
      }
      EXPECT_EQ(a % 128, 0u);
      auto next = live.lower_bound(a);
      if (next != live.end())
        ASSERT_LE(a + size, next->first);
      if (next != live.begin())
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, a);
      live[a] = size;
    } else {
      auto it = std::next(live.begin(), random() % live.size());
      memory.free(it->first);
      live.erase(it);
    }
  }
  for (auto [a, size] : live)
    memory.free(a);
  EXPECT_EQ(memory.allocate(1 << 20), 0x10000u);
}
