// SPDX-License-Identifier: Apache-2.0
//===- Engine.cpp - Running decoded programs ------------------------------===//

#include "Engine.h"
#include "InterTile.h"
#include "KernelProgress.h"
#include "MemoryCheck.h"
#include "Spyre/Support/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

using namespace spyre;
using namespace spyre::runtime;

// Kernels with less work than this run on the calling thread: waking another
// costs several microseconds, and it waits spinning afterwards.
static constexpr double kParallelSeconds = 30e-6;

/// The current exception on a core, as an Error.
static std::exception_ptr currentFailure(const Plan &plan,
                                         const Function &function) {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return std::make_exception_ptr(Error(
        plan.locations[function.location] +
        ": error: out of host memory for the data tiles of @" + function.name));
  } catch (...) {
    return std::current_exception();
  }
}

Core &RunState::core(int worker, const Function &function, int member) {
  Worker &w = *workers[worker];
  std::vector<std::unique_ptr<Core>> &cores = w.cores[function.index];
  while (static_cast<int>(cores.size()) <= member) {
    cores.push_back(std::make_unique<Core>(plan, function, w.pool.get(), ieee));
    cores.back()->run = this;
  }
  Core &core = *cores[member];
  if (core.epoch != epoch) {
    core.epoch = epoch;
    core.work = HostWork();
    core.pool = w.pool.get();
    w.used.push_back(&core);
    core.memory = memory;
    core.zeroOutside = zeroOutside;
    core.check = check;
    core.shadow = shadow.get();
    core.forgetBlocks();
  }
  return core;
}

// Buffers are shared by all programs, one pool per running worker: a process
// may hold thousands of small programs.
namespace {
struct IdlePools {
  std::mutex mutex;
  std::vector<std::unique_ptr<BufferPool>> pools;
};
} // namespace

static IdlePools &idlePools() {
  // Never destroyed: programs may outlive static destructors.
  static IdlePools *pools = new IdlePools;
  return *pools;
}

static std::unique_ptr<BufferPool> takePool() {
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  if (idle.pools.empty())
    return std::make_unique<BufferPool>();
  std::unique_ptr<BufferPool> pool = std::move(idle.pools.back());
  idle.pools.pop_back();
  return pool;
}

void RunState::finish() {
  shadow.reset();
  for (std::unique_ptr<Worker> &worker : workers) {
    for (Core *core : worker->used) {
      hostWork.tables += core->work.tables;
      hostWork.keptTiles += core->work.keptTiles;
      hostWork.repeatedIterations += core->work.repeatedIterations;
      core->releaseAll();
    }
    worker->used.clear();
  }
  double now = secondsSince(Clock::time_point());
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  // The last worker's pool goes back first, so that the first worker gets its
  // own pool again.
  for (size_t i = workers.size(); i-- > 0;)
    if (workers[i]->pool)
      idle.pools.push_back(std::move(workers[i]->pool));
  for (std::unique_ptr<BufferPool> &pool : idle.pools)
    pool->endRun(now);
}

RunState::RunState(const Plan &plan, bool ieee) : plan(plan), ieee(ieee) {}

RunState::~RunState() {
  // Cores give the buffers of constants back to a pool when they are destroyed.
  for (std::unique_ptr<Worker> &worker : workers) {
    if (!worker->pool)
      worker->pool = takePool();
    for (auto &cores : worker->cores)
      for (std::unique_ptr<Core> &core : cores)
        core->pool = worker->pool.get();
  }
  for (std::unique_ptr<Worker> &worker : workers) {
    worker->used.clear();
    worker->cores.clear();
  }
  finish();
}

void RunState::addWorkers(int count) {
  while (static_cast<int>(workers.size()) < count) {
    workers.push_back(std::make_unique<Worker>());
    workers.back()->cores.resize(plan.functions.size());
  }
  for (int i = 0; i < count; ++i)
    if (!workers[i]->pool)
      workers[i]->pool = takePool();
}

void RunState::start(DeviceMemory &deviceMemory, const RunOptions &options) {
  memory = &deviceMemory;
  zeroOutside = options.oob == OutOfBounds::Zero;
  check = options.check;
  hostWork = HostWork();
  threads = options.threads > 0 ? std::min(options.threads, 256)
                                : ThreadPool::defaultThreads();
  addWorkers(1);
  work.resize(plan.functions.size(), -1);
  knownKernels.resize(plan.functions.size());
  ++epoch;
}

void spyre::runtime::callFunction(Core &caller, const Function &callee,
                                  const Scalar *args) {
  caller.run->call(callee, args);
}

int RunState::threadsFor(const Function &callee, int64_t numTasks) const {
  double known = work[callee.index];
  if (shadow || (known >= 0 && known < kParallelSeconds))
    return 1;
  return static_cast<int>(std::min<int64_t>(numTasks, threads));
}

void RunState::noteWork(const Function &callee, double seconds) {
  double &known = work[callee.index];
  known = known < 0 ? seconds : 0.75 * known + 0.25 * seconds;
}

// The most kinds of arguments of a kernel for which shortcuts are kept.
static constexpr size_t kMaxKinds = 8;

static std::unique_ptr<Shortcut> makeShortcut(const Function &callee,
                                              const TileBlock *tiles) {
  if (tiles)
    return std::make_unique<KernelStacks>(*tiles);
  return KernelMoves::find(callee);
}

Shortcut *RunState::shortcutOf(const Function &callee, const Scalar *args) {
  if (shadow || zeroOutside)
    return nullptr;
  KnownKernel &kernel = knownKernels[callee.index];
  if (!kernel.isKnown) {
    kernel.isKnown = true;
    kernel.tiles = TileBlock::find(callee);
    if (auto shortcut = makeShortcut(callee, kernel.tiles.get()))
      kernel.shortcuts.push_back(std::move(shortcut));
  }
  if (kernel.shortcuts.empty())
    return nullptr;
  kernel.shortcuts.front()->kindOf(core(0, callee), args, kind);
  for (const std::unique_ptr<Shortcut> &shortcut : kernel.shortcuts)
    if (shortcut->isFor(kind))
      return shortcut.get();
  if (kernel.shortcuts.size() < kMaxKinds)
    kernel.shortcuts.push_back(makeShortcut(callee, kernel.tiles.get()));
  Shortcut &oldest = *kernel.shortcuts[kernel.next++ % kMaxKinds];
  oldest.restart(kind);
  return &oldest;
}

void RunState::runGang(const Function &callee, const Scalar *args, int worker,
                       int64_t first, int64_t count) {
  Core *members[Function::kLargeGang];
  auto numMembers = static_cast<int>(count);
  for (int i = 0; i < numMembers; ++i) {
    members[i] = &core(worker, callee, i);
    members[i]->enter(first + i, args);
  }
  if (numMembers == 1) {
    callee.body.run(*members[0]);
    return;
  }
  std::exception_ptr failure;
  try {
    callee.body.runGang(members, numMembers);
    return;
  } catch (...) {
    failure = std::current_exception();
  }
  // That is the first instruction at which one fails. Report the first core
  // that fails, whatever the size of the gang.
  for (int i = 0; i < numMembers; ++i) {
    members[i]->enter(first + i, args);
    callee.body.run(*members[i]);
  }
  // Alone none fails: an index, say, was overwritten in the meantime.
  std::rethrow_exception(failure);
}

void RunState::call(const Function &callee, const Scalar *args) {
  int64_t numCores = callee.numCores();
  if (shadow && !callee.hasCalls)
    shadow->beginKernel(numCores);
  if (callee.numProduceOps > 0) {
    callCommunicating(callee, args);
  } else if (callee.hasCalls) {
    Core &core = this->core(0, callee);
    core.execute(0, args);
  } else {
    // No thread is without a gang.
    int64_t gang =
        shadow ? 1
               : std::min((numCores + threads - 1) / threads, callee.gangSize);
    Shortcut *shortcut = shortcutOf(callee, args);
    bool isShort = shortcut && shortcut->prepare(core(0, callee), args);
    int64_t numTasks =
        isShort ? shortcut->size() : (numCores + gang - 1) / gang;
    std::atomic<int64_t> failedTask{numTasks};
    std::exception_ptr failure;
    std::mutex failureMutex;
    int useThreads = threadsFor(callee, numTasks);
    addWorkers(useThreads);
    KernelProgress progress(callee.name, numTasks, work[callee.index]);
    auto body = [&](int64_t task, int worker) {
      // The failing core with the lowest number is reported, whatever the
      // number of threads.
      if (task > failedTask.load(std::memory_order_relaxed))
        return;
      try {
        if (isShort)
          shortcut->run(this->core(worker, callee), task);
        else
          runGang(callee, args, worker, task * gang,
                  std::min(gang, numCores - task * gang));
      } catch (...) {
        std::lock_guard<std::mutex> lock(failureMutex);
        if (task < failedTask.load()) {
          failedTask.store(task);
          failure = currentFailure(plan, callee);
        }
      }
      progress.taskDone();
    };
    Clock::time_point start = Clock::now();
    if (useThreads == 1) {
      for (int64_t task = 0; task < numTasks; ++task)
        body(task, 0);
      noteWork(callee, secondsSince(start));
    } else {
      // The time that threads wait is no work: count that of the tasks which
      // this thread runs.
      double busy = 0;
      int64_t numOwn = 0;
      auto timed = [&](int64_t task, int worker) {
        if (worker != 0)
          return body(task, worker);
        Clock::time_point begin = Clock::now();
        body(task, worker);
        busy += secondsSince(begin);
        ++numOwn;
      };
      ThreadPool::instance().forEach(numTasks, useThreads, timed);
      if (numOwn > 0)
        noteWork(callee, busy / double(numOwn) * double(numTasks));
    }
    if (failure)
      std::rethrow_exception(failure);
    if (isShort)
      hostWork.shortcutTasks += numTasks;
    else if (shortcut)
      shortcut->noteRun();
  }
}

void RunState::callCommunicating(const Function &callee, const Scalar *args) {
  int64_t numCores = callee.numCores();
  // A core keeps its buffers while it waits, so each needs its own pool.
  addWorkers(static_cast<int>(numCores));
  std::vector<std::exception_ptr> failures(numCores);
  Exchange *exchange = nullptr;
  KernelProgress progress(callee.name, numCores, work[callee.index]);
  ResumableTasks tasks(numCores, [&](int64_t index) {
    bool failed = true;
    try {
      Core &core = this->core(static_cast<int>(index), callee);
      core.exchange = exchange;
      core.produced.assign(callee.numProduceOps, 0);
      core.execute(index, args);
      failed = false;
    } catch (const CoreStopped &) {
      // The core that failed reports the error.
    } catch (...) {
      failures[index] = currentFailure(plan, callee);
    }
    exchange->leave(failed);
    progress.taskDone();
  });
  Exchange meeting(numCores, tasks);
  exchange = &meeting;
  int useThreads = threadsFor(callee, numCores);
  Clock::time_point start = Clock::now();
  tasks.run(useThreads);
  noteWork(callee, secondsSince(start) * useThreads);
  for (std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
}
