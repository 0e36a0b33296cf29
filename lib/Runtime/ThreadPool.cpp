// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.cpp - Host threads that run simulated cores -------------===//

#include "ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>

using namespace spyre::runtime;

// A worker that has just finished waits this long for the next kernel before
// it sleeps: kernels of one sequence follow each other within microseconds.
static constexpr auto kSpinTime = std::chrono::microseconds(60);

// The low bits of `generation` hold the number of active workers.
static constexpr uint64_t kActiveMask = 0xFFFF;

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

ThreadPool &ThreadPool::instance() {
  // Threads do not survive fork: the child starts with a pool of its own.
  static ThreadPool *pool = new ThreadPool;
  static bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { pool = new ThreadPool; });
    return true;
  }();
  (void)registered;
  return *pool;
}

int ThreadPool::defaultThreads() {
  static int threads = [] {
    if (const char *text = std::getenv("SPYRE_NUM_THREADS")) {
      int value = std::atoi(text);
      if (value > 0)
        return std::min(value, 256);
    }
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
      return std::max(1, CPU_COUNT(&set));
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }();
  return threads;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(sleepMutex);
    stopping = true;
    generation.fetch_add(kActiveMask + 1);
  }
  wakeUp.notify_all();
  for (std::thread &thread : workers)
    thread.join();
}

void ThreadPool::grow(int numWorkers) {
  while (static_cast<int>(workers.size()) < numWorkers) {
    int worker = static_cast<int>(workers.size()) + 1;
    workers.emplace_back([this, worker] { work(worker); });
  }
}

void ThreadPool::work(int worker) {
  uint64_t seen = 0;
  while (true) {
    auto spinEnd = std::chrono::steady_clock::now() + kSpinTime;
    uint64_t current;
    int spins = 0;
    while ((current = generation.load(std::memory_order_acquire)) == seen) {
      pause();
      if (++spins % 64 != 0 || std::chrono::steady_clock::now() < spinEnd)
        continue;
      std::unique_lock<std::mutex> lock(sleepMutex);
      numSleeping.fetch_add(1);
      wakeUp.wait(lock, [&] { return generation.load() != seen; });
      numSleeping.fetch_sub(1);
    }
    seen = current;
    if (stopping)
      return;
    // A worker outside the section must touch nothing but this word: the
    // fields may already be those of the next section.
    if (worker > static_cast<int>(current & kActiveMask))
      continue;
    int64_t task;
    while ((task = nextTask.fetch_add(1, std::memory_order_relaxed)) <
           numTasks)
      function(context, task, worker);
    numPending.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(int64_t tasks, int threads, Function f, void *c) {
  threads = static_cast<int>(std::min<int64_t>(threads, tasks));
  std::unique_lock<std::mutex> section(sectionMutex, std::defer_lock);
  if (threads <= 1 || !section.try_lock()) {
    for (int64_t task = 0; task < tasks; ++task)
      f(c, task, 0);
    return;
  }
  grow(threads - 1);
  // Every worker of the previous section has left it: numPending was 0.
  function = f;
  context = c;
  numTasks = tasks;
  nextTask.store(0, std::memory_order_relaxed);
  numPending.store(threads - 1, std::memory_order_relaxed);
  uint64_t epoch = (generation.load() & ~kActiveMask) + kActiveMask + 1;
  generation.store(epoch | static_cast<uint64_t>(threads - 1));
  if (numSleeping.load() > 0) {
    std::lock_guard<std::mutex> lock(sleepMutex);
    wakeUp.notify_all();
  }
  int64_t task;
  while ((task = nextTask.fetch_add(1, std::memory_order_relaxed)) < tasks)
    f(c, task, 0);
  int spins = 0;
  while (numPending.load(std::memory_order_acquire) > 0) {
    pause();
    // A worker may have lost its processor: let it have ours.
    if (++spins % 256 == 0)
      sched_yield();
  }
}
