// SPDX-License-Identifier: Apache-2.0
//===- SizedPredictions.cpp - Predicted runs of several sizes -------------===//

#include "Spyre/Runtime/Launch/SizedPredictions.h"

#include <algorithm>
#include <numeric>

using namespace spyre::runtime;

using Sizes = std::vector<int64_t>;

/// Whether no size is more than twice the same one of the others.
static bool areClose(const Sizes &a, const Sizes &b, const Sizes &c) {
  for (size_t i = 0; i < a.size(); ++i) {
    auto [least, most] = std::minmax({a[i], b[i], c[i]});
    if (most > 2 * least)
      return false;
  }
  return true;
}

std::optional<Prediction> SizedPredictions::find(const Sizes &sizes) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto exact = known.find(sizes);
  if (exact != known.end())
    return exact->second;
  // The lines through `sizes`, by direction, and how many steps of it from them
  // the known sizes lie. The first size that differs grows along a direction.
  using Known = std::pair<const Sizes, Prediction>;
  std::map<Sizes, std::map<int64_t, const Known *>> lines;
  for (const Known &entry : known) {
    Sizes step(sizes.size());
    int64_t count = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      step[i] = entry.first[i] - sizes[i];
      count = std::gcd(count, step[i]);
    }
    auto first = std::find_if(step.begin(), step.end(),
                              [](int64_t size) { return size != 0; });
    if (*first < 0)
      count = -count;
    for (int64_t &size : step)
      size /= count;
    lines[step][count] = &entry;
  }
  for (const auto &[direction, line] : lines) {
    if (line.size() < 2)
      continue;
    // The two around the sizes, or the two largest below them.
    auto above = line.upper_bound(0);
    if (above == line.begin())
      continue;
    if (above == line.end())
      --above;
    const auto &[high, atHigh] = *above;
    const auto &[low, atLow] = *std::prev(above);
    if (!areClose(sizes, atHigh->first, atLow->first))
      continue;
    double share = static_cast<double>(-low) / static_cast<double>(high - low);
    auto between = [&](double first, double second) {
      return std::max(first + share * (second - first), 0.0);
    };
    const Prediction &a = atLow->second, &b = atHigh->second;
    return Prediction{between(a.seconds, b.seconds), between(a.bytes, b.bytes)};
  }
  return std::nullopt;
}
