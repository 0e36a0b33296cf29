// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.h - Host threads of the device model ----------*- C++ -*-===//
//
// They run simulated cores, and convert values on their way to and from device
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_SUPPORT_THREADPOOL_H
#define SPYRE_SUPPORT_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spyre {

/// The worker threads of the process, created on first use; more are added on
/// demand. The pool runs one parallel section at a time: a second caller runs
/// its section on its own thread.
class ThreadPool {
public:
  static ThreadPool &instance();
  ~ThreadPool();

  /// Number of threads for RunOptions::threads == 0.
  static int defaultThreads();

  /// Calls body(task, worker) for every task in [0, numTasks), on `threads`
  /// threads including the caller, which take tasks in ascending order.
  /// `worker` is in [0, threads). body must not throw.
  template <typename Body>
  void forEach(int64_t numTasks, int threads, Body &&body) {
    run(
        numTasks, threads,
        [](void *context, int64_t task, int worker) {
          (*static_cast<std::remove_reference_t<Body> *>(context))(task,
                                                                   worker);
        },
        &body);
  }

private:
  using Function = void (*)(void *, int64_t, int);
  void run(int64_t numTasks, int threads, Function function, void *context);
  void work(int worker);
  void runTasks(int worker);
  void grow(int numWorkers);

  std::mutex sectionMutex;
  std::vector<std::thread> workers;

  // The current section. `claim` holds its number, how many workers may take
  // part, and the next task. The other fields change only while `claim` lets no
  // worker take a task. Nobody waits for a worker that wakes late: it finds no
  // task left.
  Function function = nullptr;
  void *context = nullptr;
  std::atomic<int64_t> numTasks{0};
  alignas(64) std::atomic<uint64_t> claim{0};
  alignas(64) std::atomic<int64_t> numDone{0};

  std::mutex sleepMutex;
  std::condition_variable wakeUp;
  std::atomic<int> numSleeping{0};
  std::atomic<bool> stopping{false};
};

} // namespace spyre

#endif // SPYRE_SUPPORT_THREADPOOL_H
