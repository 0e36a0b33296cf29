// SPDX-License-Identifier: Apache-2.0
//===- SizedPredictions.h - Predicted runs of several sizes -----*- C++ -*-===//
//
// The timing engine predicts a run at one combination of sizes. A program for
// many sizes would pay for it at each new one, so what lies between or close to
// sizes that were predicted is interpolated.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_RUNTIME_LAUNCH_SIZEDPREDICTIONS_H
#define SPYRE_RUNTIME_LAUNCH_SIZEDPREDICTIONS_H

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace spyre::runtime {

/// What a run takes.
struct Prediction {
  double seconds = 0;
  double bytes = 0; ///< of device memory, read and written
};

/// Thread-safe: several cards may run a program at once.
class SizedPredictions {
public:
  void add(const std::vector<int64_t> &sizes, Prediction prediction) {
    std::lock_guard<std::mutex> lock(mutex);
    known[sizes] = prediction;
  }
  /// The prediction for these sizes, or that of the straight line through two
  /// others: on both sides of them, or both smaller, with no size more than
  /// twice the same one of another. Nothing if the timing engine has to be
  /// asked.
  std::optional<Prediction> find(const std::vector<int64_t> &sizes) const;

private:
  mutable std::mutex mutex;
  std::map<std::vector<int64_t>, Prediction> known;
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LAUNCH_SIZEDPREDICTIONS_H
