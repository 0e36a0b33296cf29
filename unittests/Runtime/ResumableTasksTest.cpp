// SPDX-License-Identifier: Apache-2.0
#include "Engine/ResumableTasks.h"
#include "Engine/Fiber.h"

#include "gtest/gtest.h"

#include <atomic>
#include <stdexcept>
#include <string>

using namespace spyre::runtime;

TEST(Fiber, RunsBetweenSuspensions) {
  std::string trace;
  Fiber *self = nullptr;
  Fiber fiber([&] {
    trace += "a";
    self->suspend();
    trace += "b";
  });
  self = &fiber;
  fiber.resume();
  EXPECT_EQ(trace, "a");
  EXPECT_FALSE(fiber.isEnded());
  fiber.resume();
  EXPECT_EQ(trace, "ab");
  EXPECT_TRUE(fiber.isEnded());
}

TEST(Fiber, HandlesItsExceptions) {
  // Two of them unwind at different places of their stacks.
  Fiber *self[2] = {};
  int caught = 0;
  auto body = [&](int i) {
    for (int round = 0; round < 3; ++round) {
      try {
        self[i]->suspend();
        throw std::runtime_error("of " + std::to_string(i));
      } catch (const std::runtime_error &error) {
        caught += error.what() == "of " + std::to_string(i);
      }
    }
  };
  Fiber a([&] { body(0); }), b([&] { body(1); });
  self[0] = &a;
  self[1] = &b;
  while (!a.isEnded() || !b.isEnded())
    for (Fiber *fiber : self)
      if (!fiber->isEnded())
        fiber->resume();
  EXPECT_EQ(caught, 6);
}

/// Bytes of stack that `depth` calls need, from the outermost one.
static size_t __attribute__((noinline)) useStack(int depth, char *outermost) {
  volatile char room[1024];
  room[0] = room[1023] = 1;
  // Under a sanitizer variables may lie elsewhere.
  if (depth == 0)
    return size_t(outermost - static_cast<char *>(__builtin_frame_address(0)));
  size_t used = useStack(depth - 1, outermost);
  return used + room[0] - room[1023];
}

static inline char *__attribute__((always_inline)) frame() {
  return static_cast<char *>(__builtin_frame_address(0));
}

TEST(Fiber, HasItsStack) {
  size_t used = 0;
  Fiber fiber([&] { used = useStack(500, frame()); });
  fiber.resume();
  EXPECT_TRUE(fiber.isEnded());
  EXPECT_GT(used, size_t(500) * 16);
  EXPECT_LT(used, Fiber::kStackBytes);
}

TEST(ResumableTasksDeathTest, StackEndsAtAGuard) {
  EXPECT_DEATH(
      {
        Fiber fiber([] { useStack(int(Fiber::kStackBytes / 16), frame()); });
        fiber.resume();
      },
      "");
}

/// Each task hands a number to the next one, `rounds` times round the ring.
static void passAround(int threads, int64_t numTasks, int rounds) {
  std::vector<std::atomic<int>> seen(numTasks);
  ResumableTasks *self = nullptr;
  ResumableTasks tasks(numTasks, [&](int64_t task) {
    int64_t before = (task + numTasks - 1) % numTasks;
    int64_t after = (task + 1) % numTasks;
    for (int round = 0; round < rounds; ++round) {
      // Task 0 begins each round, the others follow their neighbour.
      int wanted = task == 0 ? round : round + 1;
      while (seen[before].load() < wanted)
        self->suspend(task);
      seen[task].fetch_add(1);
      self->wake(after);
    }
  });
  self = &tasks;
  tasks.run(threads);
  for (std::atomic<int> &value : seen)
    EXPECT_EQ(value.load(), rounds);
}

TEST(ResumableTasks, WaitForEachOther) {
  for (int threads : {1, 2, 5})
    for (int64_t numTasks : {1, 2, 7, 32})
      passAround(threads, numTasks, 50);
}

TEST(ResumableTasks, AreMoreThanThreadsCouldBe) { passAround(2, 1024, 3); }

TEST(ResumableTasks, NoneAtAll) { passAround(3, 0, 1); }

TEST(ResumableTasks, BeginInOrder) {
  std::vector<int64_t> order;
  ResumableTasks tasks(9, [&](int64_t task) { order.push_back(task); });
  tasks.run(1);
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ResumableTasks, LetOthersRunFirst) {
  std::vector<int64_t> order;
  ResumableTasks *self = nullptr;
  ResumableTasks tasks(3, [&](int64_t task) {
    for (int round = 0; round < 2; ++round) {
      order.push_back(task);
      self->yield(task);
    }
  });
  self = &tasks;
  tasks.run(1);
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
}
