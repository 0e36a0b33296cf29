// SPDX-License-Identifier: Apache-2.0
//===- PlacedByTime.h - Which placed buffers are live together --*- C++ -*-===//
//
// Heuristics ask for each buffer what is live during its life. To look at all
// that are placed would take a time that is quadratic in their number.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_PLANNING_PLACEDBYTIME_H
#define SPYRE_LIB_PLANNING_PLACEDBYTIME_H

#include "Spyre/Planning/BufferAllocation.h"

#include <algorithm>
#include <map>
#include <vector>

namespace spyre::planning {

/// Numbers of buffers, found by the time in which they are live. A query takes
/// a time that is logarithmic in the number of all, and linear in that of those
/// found.
class PlacedByTime {
public:
  /// `buffers` are all that may be added, or asked for.
  explicit PlacedByTime(const std::vector<Buffer> &buffers) {
    for (const Buffer &buffer : buffers)
      times.push_back(buffer.lower);
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    liveThroughout.resize(4 * times.size() + 4);
  }

  void add(size_t number, const Buffer &buffer) {
    begins.emplace(buffer.lower, number);
    add(0, 0, times.size(), find(buffer.lower), find(buffer.upper), number);
  }

  /// Calls visit(number) for each that is live at some time of `buffer`.
  template <typename Visit>
  void visitLiveWith(const Buffer &buffer, Visit &&visit) const {
    if (times.empty())
      return;
    // Those that are live when it begins, then those that begin later.
    size_t time = find(buffer.lower), node = 0, low = 0, high = times.size();
    while (true) {
      std::for_each(liveThroughout[node].begin(), liveThroughout[node].end(),
                    visit);
      if (high - low <= 1)
        break;
      size_t middle = (low + high) / 2;
      if (time < middle) {
        node = 2 * node + 1;
        high = middle;
      } else {
        node = 2 * node + 2;
        low = middle;
      }
    }
    for (auto it = begins.upper_bound(buffer.lower);
         it != begins.end() && it->first < buffer.upper; ++it)
      visit(it->second);
  }

private:
  size_t find(int64_t time) const {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  }

  void add(size_t node, size_t low, size_t high, size_t first, size_t last,
           size_t number) {
    if (last <= low || high <= first)
      return;
    if (first <= low && high <= last)
      return liveThroughout[node].push_back(number);
    size_t middle = (low + high) / 2;
    add(2 * node + 1, low, middle, first, last, number);
    add(2 * node + 2, middle, high, first, last, number);
  }

  /// At which any begins.
  std::vector<int64_t> times;
  /// A segment tree over them: per node, those that are live throughout it, and
  /// not throughout the node above.
  std::vector<std::vector<size_t>> liveThroughout;
  std::multimap<int64_t, size_t> begins;
};

} // namespace spyre::planning

#endif // SPYRE_LIB_PLANNING_PLACEDBYTIME_H
