// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Runtime/Launch/Stream.h"

#include "gtest/gtest.h"

#include <atomic>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace spyre::runtime;

TEST(StreamTest, runsInOrder) {
  CardClock card;
  Stream stream(card);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    stream.submit([&order, i](Stream &) -> FailureRef {
      order.push_back(i);
      return nullptr;
    });
  stream.synchronize();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[i], i);
  EXPECT_TRUE(stream.isIdle());
}

TEST(StreamTest, failureDropsWorkUntilRaisedOnce) {
  CardClock card;
  Stream stream(card);
  int dropped = 0, ran = 0;
  auto count = [&dropped](const FailureRef &) { ++dropped; };
  stream.submit(
      [](Stream &) -> FailureRef { throw std::runtime_error("broken"); },
      count);
  for (int i = 0; i < 3; ++i)
    stream.submit(
        [&ran](Stream &) -> FailureRef {
          ++ran;
          return nullptr;
        },
        count);
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(dropped, 4);
  stream.submit([&ran](Stream &) -> FailureRef {
    ++ran;
    return nullptr;
  });
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(StreamTest, workThatCannotRunDoesNotFailTheStream) {
  CardClock card;
  Stream stream(card);
  auto reason = std::make_shared<Failure>();
  FailureRef seen;
  stream.submit([&](Stream &) { return FailureRef(reason); },
                [&](const FailureRef &why) { seen = why; });
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_EQ(seen, reason);
}

TEST(StreamTest, threadThatEndsInWorkEndsNeitherStreamNorProcess) {
  CardClock card;
  Stream stream(card);
  std::string dropped;
  std::thread thread([&] {
    stream.submitShort([](Stream &) -> FailureRef { pthread_exit(nullptr); },
                       [&](const FailureRef &why) {
                         try {
                           std::rethrow_exception(why->error);
                         } catch (const std::runtime_error &error) {
                           dropped = error.what();
                         }
                       });
    ADD_FAILURE() << "the thread has gone on";
  });
  thread.join();
  EXPECT_TRUE(stream.isIdle());
  EXPECT_EQ(dropped, "the thread that ran work of a stream has ended");
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  int ran = 0;
  stream.submit([&ran](Stream &) -> FailureRef {
    ++ran;
    return nullptr;
  });
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(StreamTest, destructorFinishesWork) {
  CardClock card;
  std::atomic<int> ran = 0;
  {
    Stream stream(card);
    for (int i = 0; i < 10; ++i)
      stream.submit([&ran](Stream &) -> FailureRef {
        ++ran;
        return nullptr;
      });
  }
  EXPECT_EQ(ran, 10);
}

TEST(StreamTest, eventsOrderStreams) {
  CardClock card;
  Stream first(card), second(card);
  int value = 0; // no lock: the event orders the accesses
  Event event;
  EXPECT_TRUE(event.isReached());
  first.submit([&value](Stream &) -> FailureRef {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value = 1;
    return nullptr;
  });
  event.record(first);
  event.block(second);
  int seen = 0;
  second.submit([&](Stream &) -> FailureRef {
    seen = value;
    return nullptr;
  });
  second.synchronize();
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(event.isReached());
}

TEST(StreamTest, eventsOfAFailedStreamAreReached) {
  CardClock card;
  Stream stream(card);
  stream.submit([](Stream &) -> FailureRef { throw std::runtime_error("x"); });
  Event event;
  event.record(stream);
  event.synchronize();
  EXPECT_TRUE(event.isReached());
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
}

TEST(StreamTest, launchesShareTheCard) {
  CardClock card;
  Stream first(card), second(card);
  std::pair<double, double> a, b, c;
  first.submit([&](Stream &self) -> FailureRef {
    a = self.occupy(5.0, 1.0);
    return nullptr;
  });
  first.synchronize();
  second.submit([&](Stream &self) -> FailureRef {
    b = self.occupy(2.0, 0.5); // the card is busy until 6
    c = self.occupy(9.0, 0.5);
    return nullptr;
  });
  second.synchronize();
  EXPECT_EQ(a, std::make_pair(5.0, 6.0));
  EXPECT_EQ(b, std::make_pair(6.0, 6.5));
  EXPECT_EQ(c, std::make_pair(9.0, 9.5));
}

TEST(StreamTest, manyThreads) {
  CardClock card;
  Stream stream(card);
  std::atomic<int> ran = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        uint64_t number = stream.submit([&](Stream &) -> FailureRef {
          ++ran;
          return nullptr;
        });
        if (i % 16 == 0)
          stream.wait(number);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  stream.synchronize();
  EXPECT_EQ(ran, 800);
}

TEST(StreamTest, shortWorkRunsAtOnceIfNothingComesBefore) {
  CardClock card;
  Stream stream(card);
  std::thread::id ranOn;
  auto work = [&](Stream &) -> FailureRef {
    ranOn = std::this_thread::get_id();
    return nullptr;
  };
  uint64_t number = stream.submitShort(work);
  EXPECT_TRUE(stream.isFinished(number));
  EXPECT_TRUE(stream.isIdle());
  EXPECT_EQ(ranOn, std::this_thread::get_id());

  // Behind work that has not ended it takes its turn.
  std::atomic<bool> mayEnd = false, ended = false;
  stream.submit([&](Stream &) -> FailureRef {
    while (!mayEnd)
      std::this_thread::yield();
    ended = true;
    return nullptr;
  });
  bool wasAfter = false;
  number = stream.submitShort([&](Stream &) -> FailureRef {
    wasAfter = ended;
    return nullptr;
  });
  EXPECT_FALSE(stream.isFinished(number));
  mayEnd = true;
  stream.wait(number);
  EXPECT_TRUE(wasAfter);
}

TEST(StreamTest, shortWorkFailsTheStreamAsOtherWorkDoes) {
  CardClock card;
  Stream stream(card);
  int dropped = 0;
  auto count = [&dropped](const FailureRef &) { ++dropped; };
  EXPECT_NO_THROW(stream.submitShort(
      [](Stream &) -> FailureRef { throw std::runtime_error("broken"); },
      count));
  EXPECT_EQ(dropped, 1);
  bool ran = false;
  stream.submitShort(
      [&](Stream &) -> FailureRef {
        ran = true;
        return nullptr;
      },
      count);
  EXPECT_EQ(dropped, 2);
  EXPECT_FALSE(ran);
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
}

TEST(StreamTest, threadsThatWaitKeepTheOrder) {
  CardClock card;
  Stream stream(card);
  std::atomic<int> numRunning = 0;
  bool overlapped = false;
  std::vector<int> order; // guarded by the stream's order
  std::atomic<int> next = 0;
  std::mutex submission;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        uint64_t number;
        {
          std::lock_guard<std::mutex> lock(submission);
          int own = next++;
          auto work = [&, own](Stream &) -> FailureRef {
            overlapped |= ++numRunning != 1;
            order.push_back(own);
            --numRunning;
            return nullptr;
          };
          number = own % 3 ? stream.submit(work) : stream.submitShort(work);
        }
        if (i % 2 == 0)
          continue;
        stream.wait(number);
        EXPECT_TRUE(stream.isFinished(number));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  stream.drain();
  EXPECT_FALSE(overlapped);
  ASSERT_EQ(order.size(), 2000u);
  for (int i = 0; i < 2000; ++i)
    EXPECT_EQ(order[i], i);
}
