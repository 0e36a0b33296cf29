// SPDX-License-Identifier: Apache-2.0
//===- KernelProgress.cpp - How far a long kernel is ----------------------===//

#include "KernelProgress.h"
#include "Spyre/Support/Environment.h"

#include <cstdio>
#include <optional>
#include <unistd.h>

using namespace spyre;
using namespace spyre::runtime;

/// Kernels with less work are not worth a look at the clock per task.
static constexpr double kLeastSeconds = 0.1;
/// After what time a terminal shows progress.
static constexpr int64_t kSecondsOnTerminal = 3;
static constexpr auto kSecondsBetween = std::chrono::seconds(1);

/// The setting, which is read once: every kernel asks.
static std::optional<int64_t> secondsAsked() {
  static const std::optional<int64_t> seconds = environment::progressAfter();
  return seconds;
}

KernelProgress::KernelProgress(const std::string &kernel, int64_t numTasks,
                               double expectedSeconds)
    : kernel(kernel), numTasks(numTasks),
      isWatched(expectedSeconds < 0 || expectedSeconds > kLeastSeconds) {
  if (!isWatched)
    return;
  start = Clock::now();
  next =
      start + std::chrono::seconds(secondsAsked().value_or(kSecondsOnTerminal));
}

void KernelProgress::note() {
  int64_t done = numDone.fetch_add(1, std::memory_order_relaxed) + 1;
  Clock::time_point now = Clock::now();
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock || now < next)
    return;
  next = now + kSecondsBetween;
  bool isTerminal = isatty(STDERR_FILENO);
  if (!isTerminal && !secondsAsked())
    return;
  std::fprintf(stderr, "%s%s: %d %% after %.0f s%s", isTerminal ? "\r" : "",
               kernel.c_str(), static_cast<int>(100 * done / numTasks),
               std::chrono::duration<double>(now - start).count(),
               isTerminal ? "\x1b[K" : "\n");
  isShown = isTerminal;
}

KernelProgress::~KernelProgress() {
  if (isShown)
    std::fputs("\r\x1b[K", stderr);
}
