// SPDX-License-Identifier: Apache-2.0
//===- ThreadPool.cpp - Host threads of the device model ------------------===//

#include "Spyre/Support/ThreadPool.h"
#include "Spyre/Support/Environment.h"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <sched.h>

using namespace spyre;

// A worker that has just finished waits this long for the next kernel before
// it sleeps: kernels of one sequence follow each other within microseconds.
static constexpr auto kSpinTime = std::chrono::microseconds(100);

// Layout of `claim`: section number, active workers, next task.
static constexpr int kTaskBits = 22, kActiveBits = 10;
static constexpr uint64_t kTaskMask = (uint64_t(1) << kTaskBits) - 1;
static constexpr uint64_t kActiveMask = (uint64_t(1) << kActiveBits) - 1;
static constexpr uint64_t kSectionStep = uint64_t(1)
                                         << (kTaskBits + kActiveBits);

static uint64_t sectionOf(uint64_t claim) { return claim / kSectionStep; }

static void spareCycles() {
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
    if (std::optional<int64_t> number = environment::numThreads())
      return static_cast<int>(*number);
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
    claim.fetch_add(kSectionStep);
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

void ThreadPool::runTasks(int worker) {
  uint64_t current = claim.load(std::memory_order_acquire);
  while (true) {
    int64_t task = static_cast<int64_t>(current & kTaskMask);
    int active = static_cast<int>((current >> kTaskBits) & kActiveMask);
    if (worker > active || task >= numTasks.load(std::memory_order_relaxed))
      return;
    // Success proves that the section has not changed since `current` was
    // read, and it cannot end before this task is done.
    if (!claim.compare_exchange_weak(current, current + 1,
                                     std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      continue;
    function(context, task, worker);
    numDone.fetch_add(1, std::memory_order_release);
    current = claim.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int worker) {
  uint64_t seen = 0;
  while (true) {
    auto spinEnd = std::chrono::steady_clock::now() + kSpinTime;
    uint64_t current;
    int spins = 0;
    while ((current = sectionOf(claim.load(std::memory_order_acquire))) ==
           seen) {
      spareCycles();
      if (++spins % 64 != 0 || std::chrono::steady_clock::now() < spinEnd)
        continue;
      std::unique_lock<std::mutex> lock(sleepMutex);
      numSleeping.fetch_add(1);
      wakeUp.wait(lock, [&] { return sectionOf(claim.load()) != seen; });
      numSleeping.fetch_sub(1);
    }
    seen = current;
    if (stopping)
      return;
    runTasks(worker);
  }
}

void ThreadPool::run(int64_t tasks, int threads, Function f, void *c) {
  threads = static_cast<int>(
      std::min<int64_t>({threads, tasks, int64_t(kActiveMask)}));
  std::unique_lock<std::mutex> section(sectionMutex, std::defer_lock);
  if (threads <= 1 || tasks >= static_cast<int64_t>(kTaskMask) ||
      !section.try_lock()) {
    for (int64_t task = 0; task < tasks; ++task)
      f(c, task, 0);
    return;
  }
  grow(threads - 1);
  uint64_t next = sectionOf(claim.load()) * kSectionStep;
  // Close the section, change the fields, and open the next. Each step has a
  // new section number, so that a task can no longer be claimed with an old
  // one.
  claim.store(next + kSectionStep + kTaskMask);
  function = f;
  context = c;
  numTasks.store(tasks, std::memory_order_relaxed);
  numDone.store(0, std::memory_order_relaxed);
  claim.store(next + 2 * kSectionStep +
              (static_cast<uint64_t>(threads - 1) << kTaskBits));
  if (numSleeping.load() > 0) {
    std::lock_guard<std::mutex> lock(sleepMutex);
    wakeUp.notify_all();
  }
  runTasks(0);
  int spins = 0;
  while (numDone.load(std::memory_order_acquire) < tasks) {
    spareCycles();
    // The host may have suspended a worker: let it use this processor.
    if (++spins % 256 == 0)
      sched_yield();
  }
}
