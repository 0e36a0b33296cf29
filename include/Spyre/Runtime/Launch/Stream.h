// SPDX-License-Identifier: Apache-2.0
//===- Stream.h - Queues of work on a card ----------------------*- C++ -*-===//
//
// A stream runs what it is given one after the other: on a thread of its own,
// on a thread that would wait for it, or, if it is short and nothing comes
// before it, on the thread that has it. Streams wait for each other by events
// only. Times are those of the device model: a launch occupies [max(enqueued,
// end of the stream's last launch, events waited for, card free), + predicted
// time] (DESIGN.md, "Clock").
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_LAUNCH_STREAM_H
#define SPYRE_RUNTIME_LAUNCH_STREAM_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace spyre::runtime {

/// Why work failed; shared by all that the failure drops.
struct Failure {
  std::exception_ptr error;
};
using FailureRef = std::shared_ptr<const Failure>;

/// When a card is free, in seconds of the device clock.
class CardClock {
public:
  /// Occupies the card for `seconds`, not before `earliest`; the start.
  double occupy(double earliest, double seconds);

private:
  std::mutex mutex;
  double freeAt = 0;
};

/// Seconds since the process first asked.
double hostSeconds();

class Stream {
public:
  /// Runs when it is the stream's turn; says why it could not, or null. What it
  /// throws fails the stream.
  using Work = std::function<FailureRef(Stream &)>;
  /// Called, on some thread, instead of work that is dropped or after it
  /// failed.
  using Dropped = std::function<void(const FailureRef &)>;

  explicit Stream(CardClock &card) : card(card) {}
  /// Finishes what is queued.
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  /// Queues work; its number. A failed stream drops it.
  uint64_t submit(Work work, Dropped dropped = {});
  /// As submit() for work that is done sooner than handed over: if nothing of
  /// the stream is queued or running, it is done on the calling thread, and
  /// finished on return. It must not wait for anything.
  uint64_t submitShort(Work work, Dropped dropped = {});
  /// Queues work that runs on a failed stream as well.
  uint64_t submitAlways(Work work);

  /// Whether all queued work is finished.
  bool isIdle() const;
  /// Waits until the work of a number is finished; does not throw.
  void wait(uint64_t number);
  bool isFinished(uint64_t number) const;
  /// Waits for all work queued so far; does not throw.
  void drain();
  /// Waits for all work queued so far. Throws the failure, if there is one, and
  /// forgets it: the stream takes work again.
  void synchronize();
  /// Forgets the failure if it is this one, because it is being reported.
  void forget(const FailureRef &failure);

  /// For work that is running: occupies the card, no earlier than
  /// `enqueued`; the interval.
  std::pair<double, double> occupy(double enqueued, double seconds);
  /// For work that is running: what comes next starts after `time`.
  void delay(double time);
  /// When the last launch ends.
  double time() const;

private:
  struct Item {
    Work work;
    Dropped dropped;
    bool isAlways = false;
  };

  uint64_t push(Item item);
  void run();
  // The caller of these holds `lock`. It is released while work runs.
  void runItem(Item item, std::unique_lock<std::mutex> &lock);
  void runNext(std::unique_lock<std::mutex> &lock);
  /// Returns when the work of a number is finished.
  void finish(uint64_t number, std::unique_lock<std::mutex> &lock);

  CardClock &card;
  mutable std::mutex mutex;
  /// For the stream's thread: it has something to do.
  std::condition_variable hasWork;
  /// For other threads: some work is finished.
  std::condition_variable hasFinished;
  std::deque<Item> queue;
  uint64_t numSubmitted = 0, numFinished = 0;
  FailureRef failure;
  double clock = 0;
  bool isRunning = false, isClosing = false;
  bool isThreadWaiting = false;
  int numWaiting = 0; ///< other threads
  std::thread thread;
};

/// A point in a stream. Thread-safe; may be recorded again.
class Event {
public:
  /// The point after what the stream holds now.
  void record(Stream &stream);
  /// Whether the last recorded point is reached; true before the first.
  bool isReached() const;
  bool isRecorded() const;
  /// Waits on the host.
  void synchronize() const;
  /// Makes later work of the stream wait.
  void block(Stream &stream) const;
  /// Seconds of the device and of the host clock at the point, which must be
  /// reached.
  double deviceTime() const;
  double hostTime() const;

private:
  struct Point {
    std::mutex mutex;
    std::condition_variable reached;
    bool isReached = false;
    double deviceTime = 0, hostTime = 0;
  };
  std::shared_ptr<Point> current() const;

  mutable std::mutex mutex;
  std::shared_ptr<Point> point;
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LAUNCH_STREAM_H
