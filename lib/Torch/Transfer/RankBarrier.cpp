// SPDX-License-Identifier: Apache-2.0
//===- RankBarrier.cpp - Where ranks of one machine meet ------------------===//
//
// Each rank counts how often it has come. Who waits for a rank looks at its
// count for a while, then sleeps until it changes (futex(2)). Each rank holds a
// lock on a byte of the file, which the kernel gives back when the process
// ends, however it ends: that is how the others see it.
//
//===----------------------------------------------------------------------===//

#include "RankBarrier.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace spyre::pytorch {

using Clock = std::chrono::steady_clock;

// About what it takes to wake a thread that sleeps.
constexpr std::chrono::microseconds kSpin(50);
// How long a rank that is lost stays unnoticed.
constexpr std::chrono::milliseconds kSleep(100);

static struct flock lockOf(int64_t rank, int type) {
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

RankBarrier::RankBarrier(int file, at::Tensor memory, int64_t rank,
                         int64_t size)
    : file_(-1), memory_(std::move(memory)), rank_(rank), size_(size) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  TORCH_CHECK(0 <= rank && rank < size, "rank ", rank, " of ", size);
  TORCH_CHECK(
      memory_.device().is_cpu() && memory_.scalar_type() == c10::kByte &&
          memory_.is_contiguous() && memory_.numel() == size * kBytes &&
          reinterpret_cast<uintptr_t>(memory_.const_data_ptr()) % kBytes == 0,
      "expected ", size * kBytes, " bytes that start a cache line");
  file_ = fcntl(file, F_DUPFD_CLOEXEC, 0);
  struct flock lock = lockOf(rank, F_WRLCK);
  if (file_ < 0 || fcntl(file_, F_OFD_SETLK, &lock) != 0) {
    int error = errno;
    if (file_ >= 0)
      close(file_);
    TORCH_CHECK(false, "cannot lock the file of a group: ",
                std::generic_category().message(error));
  }
}

RankBarrier::~RankBarrier() { close(file_); }

std::atomic<uint32_t> &RankBarrier::countOf(int64_t rank) const {
  auto *bytes = static_cast<char *>(memory_.mutable_data_ptr());
  return *reinterpret_cast<std::atomic<uint32_t> *>(bytes + rank * kBytes);
}

bool RankBarrier::isAlive(int64_t rank) const {
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void RankBarrier::waitFor(int64_t rank, double timeout) const {
  std::atomic<uint32_t> &count = countOf(rank);
  auto hasCome = [&](uint32_t seen) {
    // Counts may wrap around; no rank is further than one ahead.
    return static_cast<int32_t>(seen - count_) >= 0;
  };
  auto load = [&] { return count.load(std::memory_order_acquire); };
  Clock::time_point start = Clock::now();
  while (Clock::now() - start < kSpin) {
    if (hasCome(load()))
      return;
    std::this_thread::yield();
  }
  while (true) {
    bool wasAlive = isAlive(rank);
    // It may have come and ended since.
    uint32_t seen = load();
    if (hasCome(seen))
      return;
    TORCH_CHECK(wasAlive, "rank ", rank, " has ended while others wait for it");
    std::chrono::duration<double> waited = Clock::now() - start;
    TORCH_CHECK(waited.count() < timeout, "rank ", rank,
                " has not come to a collective after ", timeout, " s");
    struct timespec limit = {};
    limit.tv_nsec = std::chrono::nanoseconds(kSleep).count();
    // Whatever ends this, the count says whether to go on.
    syscall(SYS_futex, &count, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
}

void RankBarrier::wait(double timeout) {
  // Who has left one of them early would take a later one for it.
  TORCH_CHECK(!isLost_, "rank ", rank_,
              " has lost the others in an earlier collective");
  isLost_ = true;
  ++count_;
  std::atomic<uint32_t> &own = countOf(rank_);
  own.store(count_, std::memory_order_release);
  syscall(SYS_futex, &own, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (int64_t rank = 0; rank < size_; ++rank)
    if (rank != rank_)
      waitFor(rank, timeout);
  isLost_ = false;
}

} // namespace spyre::pytorch
