// SPDX-License-Identifier: Apache-2.0
//===- ResumableTasks.cpp - Tasks that wait for each other ----------------===//

#include "ResumableTasks.h"
#include "Fiber.h"
#include "Spyre/Support/ThreadPool.h"

#include <utility>

using namespace spyre;
using namespace spyre::runtime;

ResumableTasks::ResumableTasks(int64_t numTasks,
                               std::function<void(int64_t)> body)
    : body(std::move(body)), tasks(static_cast<size_t>(numTasks)) {}

ResumableTasks::~ResumableTasks() = default;

void ResumableTasks::run(int threads) {
  for (size_t task = 0; task < tasks.size(); ++task) {
    tasks[task].fiber = std::make_unique<Fiber>(
        [this, task] { body(static_cast<int64_t>(task)); });
    ready.push_back(static_cast<int64_t>(task));
  }
  // If the pool is busy, its tasks run one after the other on this thread; the
  // first one then does everything.
  ThreadPool::instance().forEach(threads, threads,
                                 [&](int64_t, int) { work(); });
}

void ResumableTasks::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (numEnded < static_cast<int64_t>(tasks.size())) {
    if (ready.empty()) {
      changed.wait(lock);
      continue;
    }
    int64_t number = ready.front();
    ready.pop_front();
    Task &task = tasks[static_cast<size_t>(number)];
    lock.unlock();
    task.fiber->resume();
    lock.lock();
    if (task.fiber->isEnded()) {
      if (++numEnded == static_cast<int64_t>(tasks.size()))
        changed.notify_all();
    } else if (task.isWoken) {
      task.isWoken = false;
      ready.push_back(number);
    } else {
      task.isParked = true;
    }
  }
}

void ResumableTasks::suspend(int64_t task) {
  tasks[static_cast<size_t>(task)].fiber->suspend();
}

void ResumableTasks::yield(int64_t task) {
  wake(task);
  suspend(task);
}

void ResumableTasks::wake(int64_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  Task &task = tasks[static_cast<size_t>(number)];
  if (!task.isParked) {
    task.isWoken = true;
    return;
  }
  task.isParked = false;
  ready.push_back(number);
  changed.notify_one();
}
