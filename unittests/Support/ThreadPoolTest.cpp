// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Support/ThreadPool.h"

#include "gtest/gtest.h"

#include <atomic>
#include <memory>
#include <thread>

using namespace spyre;

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    for (int repeat = 0; repeat < 200; ++repeat) {
      int64_t numTasks = repeat % 37;
      auto counts = std::make_unique<std::atomic<int>[]>(numTasks + 1);
      ThreadPool::instance().forEach(numTasks, threads,
                                     [&](int64_t task, int worker) {
                                       EXPECT_LT(worker, threads);
                                       counts[task].fetch_add(1);
                                     });
      for (int64_t task = 0; task < numTasks; ++task)
        ASSERT_EQ(counts[task].load(), 1);
    }
  }
}

TEST(ThreadPool, ServesSeveralCallers) {
  std::atomic<int> total{0};
  auto caller = [&] {
    for (int repeat = 0; repeat < 300; ++repeat)
      ThreadPool::instance().forEach(10, 3,
                                     [&](int64_t, int) { total.fetch_add(1); });
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(total.load(), 6000);
}
