// SPDX-License-Identifier: Apache-2.0
//===- ValuablePlacement.cpp - When not everything fits ---------*- C++ -*-===//

#include "PlacedByTime.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace spyre;
using namespace spyre::planning;

namespace {

/// Rounds that look for disjoint sets of buffers that are live together.
constexpr int kMaxBoundRounds = 64;

/// Bytes that are live at each time; a segment tree over the times at which
/// anything changes.
class Load {
public:
  explicit Load(const std::vector<Buffer> &buffers) {
    for (const Buffer &buffer : buffers) {
      times.push_back(buffer.lower);
      times.push_back(buffer.upper);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    added.assign(4 * times.size() + 4, 0);
    most.assign(4 * times.size() + 4, 0);
  }

  int64_t getMost(const Buffer &buffer) const {
    return getMost(0, 0, times.size(), find(buffer.lower), find(buffer.upper));
  }

  void add(const Buffer &buffer, int64_t bytes) {
    add(0, 0, times.size(), find(buffer.lower), find(buffer.upper), bytes);
  }

private:
  size_t find(int64_t time) const {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  }

  int64_t getMost(size_t node, size_t low, size_t high, size_t first,
                  size_t last) const {
    if (last <= low || high <= first)
      return 0;
    if (first <= low && high <= last)
      return most[node];
    size_t middle = (low + high) / 2;
    return added[node] +
           std::max(getMost(2 * node + 1, low, middle, first, last),
                    getMost(2 * node + 2, middle, high, first, last));
  }

  void add(size_t node, size_t low, size_t high, size_t first, size_t last,
           int64_t bytes) {
    if (last <= low || high <= first)
      return;
    if (first <= low && high <= last) {
      added[node] += bytes;
      most[node] += bytes;
      return;
    }
    size_t middle = (low + high) / 2;
    add(2 * node + 1, low, middle, first, last, bytes);
    add(2 * node + 2, middle, high, first, last, bytes);
    most[node] = added[node] + std::max(most[2 * node + 1], most[2 * node + 2]);
  }

  std::vector<int64_t> times;
  /// Bytes added to a whole node, and the most below and including it.
  std::vector<int64_t> added, most;
};

/// Buffers of which each takes over the memory of the one before.
struct Chain {
  std::vector<size_t> members;
  Buffer whole;
  double value = 0;
};

std::vector<Chain> makeChains(const AllocationProblem &problem,
                              const std::vector<double> &values) {
  size_t count = problem.buffers.size();
  // A parent has one heir.
  std::vector<int64_t> child(count, -1);
  std::vector<bool> isChild(count, false);
  for (size_t i = 0; i < count; ++i) {
    int64_t parent = problem.buffers[i].inPlaceParent;
    if (parent >= 0 && child[parent] < 0) {
      child[parent] = static_cast<int64_t>(i);
      isChild[i] = true;
    }
  }
  std::vector<Chain> chains;
  for (size_t i = 0; i < count; ++i) {
    if (isChild[i])
      continue;
    Chain chain;
    chain.whole = problem.buffers[i];
    for (auto j = static_cast<int64_t>(i); j >= 0; j = child[j]) {
      const Buffer &buffer = problem.buffers[j];
      chain.members.push_back(j);
      chain.value += values[j];
      chain.whole.upper = buffer.upper;
      chain.whole.size = std::max(chain.whole.size, buffer.size);
    }
    chain.whole.size = roundUp(chain.whole.size, problem.alignment);
    chain.whole.inPlaceParent = -1;
    chains.push_back(std::move(chain));
  }
  return chains;
}

} // namespace

/// Each chain of `order` at the lowest free offset, if it has one.
static std::vector<int64_t> placeInOrder(const std::vector<Chain> &chains,
                                         const std::vector<size_t> &order,
                                         int64_t capacity) {
  std::vector<Buffer> wholes;
  for (const Chain &chain : chains)
    wholes.push_back(chain.whole);
  PlacedByTime placed(wholes);
  std::vector<int64_t> offsets(chains.size(), kUnplaced);
  for (size_t i : order) {
    const Buffer &buffer = wholes[i];
    std::vector<std::pair<int64_t, int64_t>> taken; // offset, end
    placed.visitLiveWith(buffer, [&](size_t j) {
      taken.push_back({offsets[j], offsets[j] + wholes[j].size});
    });
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (begin >= offset + buffer.size)
        break;
      offset = std::max(offset, end);
    }
    if (buffer.size > capacity - offset)
      continue;
    offsets[i] = offset;
    placed.add(i, buffer);
  }
  return offsets;
}

std::vector<int64_t>
planning::placeMostValuable(const AllocationProblem &problem,
                            const std::vector<double> &values,
                            int64_t maxNodes) {
  verifyProblem(problem);
  std::vector<int64_t> best(problem.buffers.size(), kUnplaced);
  double bestValue = -1;
  auto offer = [&](const std::vector<int64_t> &offsets) {
    double value = 0;
    for (size_t i = 0; i < offsets.size(); ++i)
      if (offsets[i] != kUnplaced)
        value += values[i];
    if (value > bestValue) {
      bestValue = value;
      best = offsets;
    }
  };
  std::vector<Chain> chains = makeChains(problem, values);
  auto offerChains = [&](const std::vector<int64_t> &offsets) {
    std::vector<int64_t> ofBuffers(problem.buffers.size(), kUnplaced);
    for (size_t i = 0; i < chains.size(); ++i)
      for (size_t member : chains[i].members)
        ofBuffers[member] = offsets[i];
    offer(ofBuffers);
  };

  // Buffers that save most per byte and time come first.
  std::vector<double> density;
  std::vector<Buffer> wholes;
  for (const Chain &chain : chains) {
    wholes.push_back(chain.whole);
    density.push_back(
        chain.value /
        (static_cast<double>(std::max<int64_t>(chain.whole.size, 1)) *
         static_cast<double>(chain.whole.upper - chain.whole.lower)));
  }
  std::vector<size_t> order(chains.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return density[a] != density[b] ? density[a] > density[b] : a < b;
  });
  Load load(wholes);
  AllocationProblem chosen;
  chosen.capacity = problem.capacity;
  chosen.alignment = problem.alignment;
  std::vector<size_t> chosenChains;
  for (size_t i : order) {
    if (wholes[i].size > problem.capacity - load.getMost(wholes[i]))
      continue;
    load.add(wholes[i], wholes[i].size);
    chosen.buffers.push_back(wholes[i]);
    chosenChains.push_back(i);
  }
  SolveOptions options;
  options.maxNodes = maxNodes;
  options.timeoutSeconds = 1e8;
  SolveResult result = solve(chosen, options);
  if (result.status == SolveStatus::Solved) {
    std::vector<int64_t> offsets(chains.size(), kUnplaced);
    for (size_t i = 0; i < chosenChains.size(); ++i)
      offsets[chosenChains[i]] = result.offsets[i];
    offerChains(offsets);
    if (chosenChains.size() == chains.size())
      return best;
  }
  offerChains(placeInOrder(chains, order, problem.capacity));
  offer(allocateGreedy(problem));
  offer(allocateByFit(problem, GapChoice::First));
  offer(allocateByFit(problem, GapChoice::Best));
  return best;
}

double planning::boundValue(const AllocationProblem &problem,
                            const std::vector<double> &values) {
  verifyProblem(problem);
  struct Item {
    int64_t lower, upper, size;
    double value;
  };
  std::vector<Item> items;
  double bound = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    // Linked buffers count once while one takes over the memory of the other.
    int64_t lower = buffer.inPlaceParent < 0
                        ? buffer.lower
                        : problem.buffers[buffer.inPlaceParent].upper;
    if (buffer.size > problem.capacity)
      continue;
    bound += values[i];
    if (lower < buffer.upper && buffer.size > 0)
      items.push_back({lower, buffer.upper, buffer.size, values[i]});
  }
  for (int round = 0; round < kMaxBoundRounds; ++round) {
    // At the time at which most is live, the cheapest bytes find no room;
    // other buffers may lose something at other times.
    std::map<int64_t, int64_t> changes;
    for (const Item &item : items) {
      changes[item.lower] += item.size;
      changes[item.upper] -= item.size;
    }
    int64_t load = 0, most = 0, time = 0;
    for (auto [at, change] : changes) {
      load += change;
      if (load > most) {
        most = load;
        time = at;
      }
    }
    if (most <= problem.capacity)
      break;
    auto live =
        std::partition(items.begin(), items.end(), [&](const Item &item) {
          return item.lower > time || item.upper <= time;
        });
    std::sort(live, items.end(), [](const Item &a, const Item &b) {
      return a.value * static_cast<double>(b.size) <
             b.value * static_cast<double>(a.size);
    });
    int64_t excess = most - problem.capacity;
    for (auto item = live; item != items.end() && excess > 0; ++item) {
      int64_t out = std::min(excess, item->size);
      bound -= item->value * static_cast<double>(out) /
               static_cast<double>(item->size);
      excess -= out;
    }
    items.erase(live, items.end());
  }
  return bound;
}
