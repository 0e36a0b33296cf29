// SPDX-License-Identifier: Apache-2.0
//===- ResumableTasks.h - Tasks that wait for each other --------*- C++ -*-===//
//
// Runs many tasks on a few host threads. A task has its own stack, so it can
// suspend itself anywhere. After a wake-up, any thread can resume it.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_RESUMABLETASKS_H
#define SPYRE_LIB_RUNTIME_ENGINE_RESUMABLETASKS_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace spyre::runtime {

class Fiber;

class ResumableTasks {
public:
  /// `body(task)` must not throw, and must not suspend itself while it handles
  /// an exception.
  ResumableTasks(int64_t numTasks, std::function<void(int64_t)> body);
  ~ResumableTasks();

  /// Runs all tasks over `threads` host threads including the caller; begins
  /// them in ascending order. Returns when all have ended. Throws Error if
  /// there is no room for their stacks; then none has begun.
  void run(int threads);

  /// Called by a task: gives its thread to other tasks until it is woken.
  /// Returns at once if a wake-up came earlier, so the caller must check its
  /// condition again afterwards.
  void suspend(int64_t task);
  /// Called by a task: lets the other tasks that can run do so first.
  void yield(int64_t task);
  /// Wakes a task; may be called from any thread.
  void wake(int64_t task);

private:
  struct Task {
    std::unique_ptr<Fiber> fiber;
    bool isParked = false, isWoken = false;
  };
  void work();

  std::function<void(int64_t)> body;
  std::vector<Task> tasks;
  std::mutex mutex; ///< guards the members below and the tasks' flags
  std::condition_variable changed;
  std::deque<int64_t> ready;
  int64_t numEnded = 0;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_RESUMABLETASKS_H
