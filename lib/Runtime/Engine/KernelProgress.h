// SPDX-License-Identifier: Apache-2.0
//===- KernelProgress.h - How far a long kernel is --------------*- C++ -*-===//
//
// A kernel that runs for more than a few seconds says on the standard error
// output, if that is a terminal, how much of it is done. The line is replaced
// about once per second and cleared at the end. SPYRE_PROGRESS_AFTER says after
// how many seconds, and makes lines of it where there is no terminal.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_KERNELPROGRESS_H
#define SPYRE_LIB_RUNTIME_ENGINE_KERNELPROGRESS_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace spyre::runtime {

class KernelProgress {
public:
  /// `expectedSeconds` is what all threads together took the last time;
  /// negative: not known. What is known to be short is not watched.
  KernelProgress(const std::string &kernel, int64_t numTasks,
                 double expectedSeconds);
  /// Clears the line.
  ~KernelProgress();
  KernelProgress(const KernelProgress &) = delete;
  KernelProgress &operator=(const KernelProgress &) = delete;

  /// One of the tasks is done, on any thread.
  void taskDone() {
    if (isWatched)
      note();
  }

private:
  using Clock = std::chrono::steady_clock;
  void note();

  const std::string &kernel;
  int64_t numTasks;
  bool isWatched;
  Clock::time_point start;
  std::atomic<int64_t> numDone{0};
  std::mutex mutex; ///< guards the members below
  Clock::time_point next;
  bool isShown = false;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_KERNELPROGRESS_H
