// SPDX-License-Identifier: Apache-2.0
//===- SizedPredictions.h - Predicted runs of several sizes -----*- C++ -*-===//
//
// The timing engine predicts a run at one combination of sizes. A program for
// many sizes would pay for it at each new one, so what lies between or close to
// sizes that were predicted is interpolated.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_SIZEDPREDICTIONS_H
#define SPYRE_LIB_TORCH_LAUNCH_SIZEDPREDICTIONS_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace spyre::pytorch {

/// What a run takes.
struct Prediction {
  double seconds = 0;
  double bytes = 0; ///< of device memory, read and written
};

/// Not thread-safe.
class SizedPredictions {
public:
  void add(const std::vector<int64_t> &sizes, Prediction prediction) {
    known[sizes] = prediction;
  }
  /// The prediction for these sizes, or a line through two that differ from
  /// them in one size only and are not further apart than a factor of 2.
  /// Nothing if the timing engine has to be asked.
  std::optional<Prediction> find(const std::vector<int64_t> &sizes) const;

private:
  std::map<std::vector<int64_t>, Prediction> known;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_SIZEDPREDICTIONS_H
