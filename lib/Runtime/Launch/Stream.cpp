// SPDX-License-Identifier: Apache-2.0
//===- Stream.cpp - Queues of work on a card --------------------*- C++ -*-===//

#include "Spyre/Runtime/Launch/Stream.h"

#include <algorithm>
#include <chrono>
#include <cxxabi.h>
#include <stdexcept>

using namespace spyre::runtime;

double spyre::runtime::hostSeconds() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point start = Clock::now();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double CardClock::occupy(double earliest, double seconds) {
  std::lock_guard<std::mutex> lock(mutex);
  double start = std::max(earliest, freeAt);
  freeAt = start + seconds;
  return start;
}

//===----------------------------------------------------------------------===//
// Stream
//===----------------------------------------------------------------------===//

Stream::~Stream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isClosing = true;
  }
  hasWork.notify_one();
  if (thread.joinable())
    thread.join();
}

uint64_t Stream::push(Item item) {
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!thread.joinable())
      thread = std::thread([this] { run(); });
    queue.push_back(std::move(item));
    number = ++numSubmitted;
    if (isThreadWaiting && !isRunning)
      hasWork.notify_one();
  }
  return number;
}

uint64_t Stream::submit(Work work, Dropped dropped) {
  return push({std::move(work), std::move(dropped), false});
}

uint64_t Stream::submitAlways(Work work) {
  return push({std::move(work), {}, true});
}

uint64_t Stream::submitShort(Work work, Dropped dropped) {
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (numFinished == numSubmitted) {
      uint64_t number = ++numSubmitted;
      runItem({std::move(work), std::move(dropped), false}, lock);
      return number;
    }
  }
  return submit(std::move(work), std::move(dropped));
}

void Stream::runItem(Item item, std::unique_lock<std::mutex> &lock) {
  isRunning = true;
  FailureRef why = item.isAlways ? nullptr : failure;
  lock.unlock();
  FailureRef own;
  auto finishItem = [&] {
    if (why && item.dropped)
      item.dropped(why);
    // Release what the work holds before anybody sees it as finished.
    item = Item();
    lock.lock();
    if (own && !failure)
      failure = own;
    isRunning = false;
    ++numFinished;
    if (numWaiting > 0)
      hasFinished.notify_all();
    if (isThreadWaiting && (isClosing || !queue.empty()))
      hasWork.notify_one();
  };
  auto fail = [&](std::exception_ptr error) {
    own = std::make_shared<Failure>(Failure{std::move(error)});
    why = own;
  };
  try {
    if (!why)
      why = item.work(*this);
  } catch (const abi::__forced_unwind &) {
    // The thread ends (pthread_exit), or the process does if that stops here.
    // Others may wait for the work.
    fail(std::make_exception_ptr(
        std::runtime_error("the thread that ran work of a stream has ended")));
    finishItem();
    throw;
  } catch (...) {
    fail(std::current_exception());
  }
  finishItem();
}

void Stream::runNext(std::unique_lock<std::mutex> &lock) {
  Item item = std::move(queue.front());
  queue.pop_front();
  runItem(std::move(item), lock);
}

void Stream::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    isThreadWaiting = true;
    hasWork.wait(lock,
                 [&] { return !isRunning && (isClosing || !queue.empty()); });
    isThreadWaiting = false;
    if (queue.empty())
      return;
    runNext(lock);
  }
}

void Stream::finish(uint64_t number, std::unique_lock<std::mutex> &lock) {
  while (numFinished < number) {
    if (!isRunning && !queue.empty()) {
      runNext(lock);
      continue;
    }
    ++numWaiting;
    hasFinished.wait(lock);
    --numWaiting;
  }
}

bool Stream::isIdle() const {
  std::lock_guard<std::mutex> lock(mutex);
  return numFinished == numSubmitted;
}

bool Stream::isFinished(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex);
  return numFinished >= number;
}

void Stream::wait(uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex);
  finish(number, lock);
}

void Stream::drain() {
  std::unique_lock<std::mutex> lock(mutex);
  finish(numSubmitted, lock);
}

void Stream::synchronize() {
  FailureRef raised;
  {
    std::unique_lock<std::mutex> lock(mutex);
    finish(numSubmitted, lock);
    std::swap(raised, failure);
  }
  if (raised)
    std::rethrow_exception(raised->error);
}

void Stream::forget(const FailureRef &reported) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failure == reported)
    failure = nullptr;
}

std::pair<double, double> Stream::occupy(double enqueued, double seconds) {
  double start = card.occupy(std::max(enqueued, time()), seconds);
  delay(start + seconds);
  return {start, start + seconds};
}

void Stream::delay(double time) {
  std::lock_guard<std::mutex> lock(mutex);
  clock = std::max(clock, time);
}

double Stream::time() const {
  std::lock_guard<std::mutex> lock(mutex);
  return clock;
}

//===----------------------------------------------------------------------===//
// Event
//===----------------------------------------------------------------------===//

std::shared_ptr<Event::Point> Event::current() const {
  std::lock_guard<std::mutex> lock(mutex);
  return point;
}

void Event::record(Stream &stream) {
  auto next = std::make_shared<Point>();
  {
    std::lock_guard<std::mutex> lock(mutex);
    point = next;
  }
  double enqueued = hostSeconds();
  stream.submitAlways([next, enqueued](Stream &self) -> FailureRef {
    double deviceTime = std::max(enqueued, self.time());
    {
      std::lock_guard<std::mutex> lock(next->mutex);
      next->deviceTime = deviceTime;
      next->hostTime = hostSeconds();
      next->isReached = true;
    }
    next->reached.notify_all();
    return nullptr;
  });
}

bool Event::isRecorded() const { return current() != nullptr; }

bool Event::isReached() const {
  std::shared_ptr<Point> p = current();
  if (!p)
    return true;
  std::lock_guard<std::mutex> lock(p->mutex);
  return p->isReached;
}

void Event::synchronize() const {
  std::shared_ptr<Point> p = current();
  if (!p)
    return;
  std::unique_lock<std::mutex> lock(p->mutex);
  p->reached.wait(lock, [&] { return p->isReached; });
}

void Event::block(Stream &stream) const {
  std::shared_ptr<Point> p = current();
  if (!p)
    return;
  stream.submitAlways([p](Stream &self) -> FailureRef {
    double time;
    {
      std::unique_lock<std::mutex> lock(p->mutex);
      p->reached.wait(lock, [&] { return p->isReached; });
      time = p->deviceTime;
    }
    self.delay(time);
    return nullptr;
  });
}

double Event::deviceTime() const {
  std::shared_ptr<Point> p = current();
  std::lock_guard<std::mutex> lock(p->mutex);
  return p->deviceTime;
}

double Event::hostTime() const {
  std::shared_ptr<Point> p = current();
  std::lock_guard<std::mutex> lock(p->mutex);
  return p->hostTime;
}
