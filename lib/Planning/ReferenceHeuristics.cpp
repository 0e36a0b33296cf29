// SPDX-License-Identifier: Apache-2.0
//===- ReferenceHeuristics.cpp - The reference's LX solvers -----*- C++ -*-===//

#include "PlacedByTime.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace spyre;
using namespace spyre::planning;

std::vector<int64_t>
planning::allocateGreedy(const AllocationProblem &problem) {
  const std::vector<Buffer> &buffers = problem.buffers;
  std::vector<int64_t> offsets(buffers.size(), kUnplaced);
  // Births and deaths by time; lists are in input order.
  std::map<int64_t, std::pair<std::vector<size_t>, std::vector<size_t>>> times;
  for (size_t i = 0; i < buffers.size(); ++i) {
    times[buffers[i].lower].first.push_back(i);
    times[buffers[i].upper].second.push_back(i);
  }
  // Live buffers by offset. A slot that a child took over is the child's.
  std::map<int64_t, size_t> live;
  auto endOf = [&](const std::pair<const int64_t, size_t> &slot) {
    return roundUp(slot.first + buffers[slot.second].size, problem.alignment);
  };
  for (auto &[time, changes] : times) {
    for (size_t i : changes.second) {
      auto slot = live.find(offsets[i]);
      if (offsets[i] != kUnplaced && slot != live.end() && slot->second == i)
        live.erase(slot);
    }
    for (size_t i : changes.first) {
      int64_t size = buffers[i].size;
      if (size == 0) {
        offsets[i] = 0;
        continue;
      }
      int64_t parent = buffers[i].inPlaceParent;
      if (parent >= 0 && offsets[parent] != kUnplaced &&
          size <= buffers[parent].size) {
        auto slot = live.find(offsets[parent]);
        if (slot != live.end() && slot->second == static_cast<size_t>(parent)) {
          slot->second = i;
          offsets[i] = offsets[parent];
          continue;
        }
      }
      int64_t offset = kUnplaced;
      if (live.empty() || live.begin()->first >= size) {
        offset = 0;
      } else if (endOf(*live.rbegin()) + size <= problem.capacity) {
        offset = endOf(*live.rbegin());
      } else {
        for (auto slot = live.begin(), next = std::next(slot);
             next != live.end() && offset == kUnplaced; slot = next++)
          if (next->first - endOf(*slot) >= size)
            offset = endOf(*slot);
      }
      if (offset == kUnplaced || size > problem.capacity - offset)
        continue;
      offsets[i] = offset;
      live[offset] = i;
    }
  }
  return offsets;
}

std::vector<int64_t> planning::allocateByFit(const AllocationProblem &problem,
                                             GapChoice choice) {
  const std::vector<Buffer> &buffers = problem.buffers;
  std::vector<bool> isParent(buffers.size(), false);
  for (const Buffer &buffer : buffers)
    if (buffer.inPlaceParent >= 0)
      isParent[buffer.inPlaceParent] = true;
  auto score = [&](size_t i) {
    const Buffer &buffer = buffers[i];
    double span = static_cast<double>(buffer.upper - buffer.lower) -
                  (buffer.inPlaceParent >= 0 ? 0.25 : 0) -
                  (isParent[i] ? 0.25 : 0);
    return span / (static_cast<double>(buffer.numUses) +
                   (buffer.isFirstUseWrite ? 0.5 : 0));
  };
  std::vector<size_t> sorted(buffers.size());
  for (size_t i = 0; i < sorted.size(); ++i)
    sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
    return std::make_tuple(score(a), buffers[a].upper - buffers[a].lower, a) <
           std::make_tuple(score(b), buffers[b].upper - buffers[b].lower, b);
  });
  // A child moves behind its ancestors, which stay as early as they can.
  std::vector<size_t> order, chain;
  std::vector<bool> isOrdered(buffers.size(), false);
  for (size_t i : sorted) {
    for (auto j = static_cast<int64_t>(i); j >= 0 && !isOrdered[j];
         j = buffers[j].inPlaceParent) {
      isOrdered[j] = true;
      chain.push_back(j);
    }
    order.insert(order.end(), chain.rbegin(), chain.rend());
    chain.clear();
  }

  std::vector<int64_t> offsets(buffers.size(), kUnplaced);
  PlacedByTime placed(buffers);
  for (size_t i : order) {
    const Buffer &buffer = buffers[i];
    int64_t parent = buffer.inPlaceParent;
    std::vector<std::pair<int64_t, int64_t>> taken;
    bool isParentsSlotFree = parent >= 0 && offsets[parent] != kUnplaced &&
                             buffer.size <= buffers[parent].size;
    placed.visitLiveWith(buffer, [&](size_t j) {
      if (static_cast<int64_t>(j) == parent)
        return;
      taken.push_back({offsets[j], offsets[j] + buffers[j].size});
      if (isParentsSlotFree && offsets[parent] < taken.back().second &&
          taken.back().first < offsets[parent] + buffer.size)
        isParentsSlotFree = false;
    });
    if (isParentsSlotFree) {
      offsets[i] = offsets[parent];
      placed.add(i, buffer);
      continue;
    }
    // Beside its parent, it is live together with it.
    if (parent >= 0 && offsets[parent] != kUnplaced)
      taken.push_back(
          {offsets[parent], offsets[parent] + buffers[parent].size});
    taken.push_back({problem.capacity, problem.capacity});
    std::sort(taken.begin(), taken.end());
    int64_t leastLeft = 0, begin = 0;
    for (auto [low, high] : taken) {
      int64_t left = low - begin - buffer.size;
      if (left >= 0 && (offsets[i] == kUnplaced ||
                        (choice == GapChoice::Best && left < leastLeft))) {
        offsets[i] = begin;
        leastLeft = left;
      }
      begin = std::max(begin, roundUp(high, problem.alignment));
    }
    if (offsets[i] != kUnplaced)
      placed.add(i, buffer);
  }
  return offsets;
}
