// SPDX-License-Identifier: Apache-2.0
#include "SizedPredictions.h"

#include <algorithm>

namespace spyre::pytorch {

std::optional<Prediction>
SizedPredictions::find(const std::vector<int64_t> &sizes) const {
  auto exact = known.find(sizes);
  if (exact != known.end())
    return exact->second;
  for (size_t which = 0; which < sizes.size(); ++which) {
    // Sorted by this size.
    std::vector<std::pair<int64_t, Prediction>> line;
    for (const auto &[other, prediction] : known) {
      std::vector<int64_t> moved = other;
      moved[which] = sizes[which];
      if (moved == sizes)
        line.emplace_back(other[which], prediction);
    }
    std::sort(line.begin(), line.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    if (line.size() < 2)
      continue;
    // The two around it, or the two largest below it.
    auto above = std::find_if(line.begin(), line.end(), [&](const auto &entry) {
      return entry.first > sizes[which];
    });
    if (above == line.begin())
      continue;
    if (above == line.end())
      --above;
    const auto &[high, atHigh] = *above;
    const auto &[low, atLow] = *std::prev(above);
    int64_t reach = std::max(high, sizes[which]);
    if (reach > 2 * low)
      continue;
    double share = static_cast<double>(sizes[which] - low) /
                   static_cast<double>(high - low);
    auto between = [&](double first, double second) {
      return std::max(first + share * (second - first), 0.0);
    };
    return Prediction{between(atLow.seconds, atHigh.seconds),
                      between(atLow.bytes, atHigh.bytes)};
  }
  return std::nullopt;
}

} // namespace spyre::pytorch
