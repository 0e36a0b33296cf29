// SPDX-License-Identifier: Apache-2.0
//===- RankBarrier.h - Where ranks of one machine meet ----------*- C++ -*-===//
//
// A message through sockets takes both ranks a switch of threads; what waits
// here sees a number in memory that all ranks map.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_RANKBARRIER_H
#define SPYRE_LIB_TORCH_TRANSFER_RANKBARRIER_H

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>

namespace spyre::pytorch {

/// The barrier of a group of processes that map one file.
class RankBarrier {
public:
  /// Bytes of the file's memory per rank.
  static constexpr int64_t kBytes = 64;

  /// `file` is a descriptor that this rank has opened for writing itself, which
  /// may be closed afterwards; `memory` is a CPU tensor of size * kBytes bytes
  /// of it, zeros before the first rank comes. Throws if the file cannot be
  /// locked or the memory is not as described.
  RankBarrier(int file, at::Tensor memory, int64_t rank, int64_t size);
  RankBarrier(const RankBarrier &) = delete;
  RankBarrier &operator=(const RankBarrier &) = delete;
  ~RankBarrier();

  /// Returns when all ranks have called it as often. What they wrote before is
  /// there then. Throws if a process has ended that has not, or if one of them
  /// has not come after so many seconds, and in every call after that.
  void wait(double timeout);

private:
  std::atomic<uint32_t> &countOf(int64_t rank) const;
  bool isAlive(int64_t rank) const;
  void waitFor(int64_t rank, double timeout) const;

  int file_;
  at::Tensor memory_;
  int64_t rank_, size_;
  uint32_t count_ = 0;
  bool isLost_ = false;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_RANKBARRIER_H
