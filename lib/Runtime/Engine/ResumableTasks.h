// SPDX-License-Identifier: Apache-2.0
//===- ResumableTasks.h - Tasks that wait for each other --------*- C++ -*-===//
//
// Many tasks over few host threads. A task has a stack of its own and may
// suspend itself anywhere; any thread resumes it once it was woken.
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

  /// To be called by a task: gives its thread to others until it is woken. A
  /// wake-up that came before counts, so the caller looks at its condition
  /// again afterwards.
  void suspend(int64_t task);
  /// From any thread.
  void wake(int64_t task);

private:
  struct Task {
    std::unique_ptr<Fiber> fiber;
    bool isParked = false, isWoken = false;
  };
  void work();

  std::function<void(int64_t)> body;
  std::vector<Task> tasks;
  std::mutex mutex; ///< of all that follows, and the tasks' flags
  std::condition_variable changed;
  std::deque<int64_t> ready;
  int64_t numEnded = 0;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_RESUMABLETASKS_H
