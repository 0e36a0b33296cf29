// SPDX-License-Identifier: Apache-2.0
//===- OptimalAllocation.cpp - Heuristics, then search ----------*- C++ -*-===//

#include "SkylineSearch.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

using namespace spyre;
using namespace spyre::planning;

namespace {

/// Nodes of the first run of the search; each later one has more.
constexpr int64_t kFirstNodes = 1000;
constexpr double kNodesGrowth = 1.1;

/// The search recurses once per buffer; more are left to the heuristics.
constexpr size_t kMaxSearched = 4000;

/// A part of the problem that no buffer connects with the rest. Sizes are
/// multiples of the alignment.
class Part {
public:
  void add(size_t index, Buffer buffer) {
    indices.push_back(index);
    buffers.push_back(buffer);
  }

  void begin() {
    AllocationProblem problem{buffers};
    lowerBound = getLiveMaximum(problem).bytes;
    offsets.assign(buffers.size(), 0);
    height = std::numeric_limits<int64_t>::max();
    step = 0;
    for (const Buffer &buffer : buffers)
      step = std::gcd(step, buffer.size);
    // Buffers come in the order in which their lives begin.
    for (size_t i = 0; i < buffers.size(); i += kBuffersPerPeriod)
      periods.push_back(buffers[i].lower);
    placed.resize(periods.size());
  }

  /// First fit in several orders, until one is not higher than `target`.
  void tryHeuristics(int64_t target) {
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    auto width = [&](size_t i) { return buffers[i].upper - buffers[i].lower; };
    auto area = [&](size_t i) {
      return static_cast<double>(width(i)) *
             static_cast<double>(buffers[i].size);
    };
    auto attempt = [&](auto isBefore) {
      if (height <= target)
        return;
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        bool isFirst = isBefore(a, b);
        return isFirst || isBefore(b, a) ? isFirst : a < b;
      });
      tryOrder(order, target);
    };
    attempt([&](size_t a, size_t b) {
      return width(a) != width(b) ? width(a) > width(b)
                                  : buffers[a].size > buffers[b].size;
    });
    attempt([&](size_t a, size_t b) {
      return buffers[a].lower != buffers[b].lower
                 ? buffers[a].lower < buffers[b].lower
                 : width(a) > width(b);
    });
    attempt([&](size_t a, size_t b) { return area(a) > area(b); });
    attempt([&](size_t a, size_t b) {
      return buffers[a].size != buffers[b].size
                 ? buffers[a].size > buffers[b].size
                 : width(a) > width(b);
    });
  }

  /// One run of the search below `capacity`.
  SkylineSearch::Result search(int64_t capacity, int64_t nodesLeft,
                               const std::function<bool()> &isOutOfTime) {
    if (!skyline)
      skyline = std::make_unique<SkylineSearch>(buffers);
    constexpr auto numOrders =
        static_cast<unsigned>(SkylineSearch::Order::NumOrders);
    auto order = static_cast<SkylineSearch::Order>(numRuns % numOrders);
    SkylineSearch::Result result =
        skyline->run(capacity, order, numRuns / numOrders,
                     std::min(maxNodes, nodesLeft), isOutOfTime);
    ++numRuns;
    maxNodes =
        static_cast<int64_t>(static_cast<double>(maxNodes) * kNodesGrowth);
    if (result == SkylineSearch::Result::Found)
      take(skyline->getOffsets());
    return result;
  }

  bool maySearch() const { return buffers.size() <= kMaxSearched; }
  int64_t getNumNodes() const { return skyline ? skyline->getNumNodes() : 0; }

  std::vector<size_t> indices;
  std::vector<Buffer> buffers;
  std::vector<int64_t> offsets;
  int64_t height = 0, lowerBound = 0, step = 1;

private:
  void take(const std::vector<int64_t> &found) {
    int64_t top = 0;
    for (size_t i = 0; i < buffers.size(); ++i)
      top = std::max(top, found[i] + buffers[i].size);
    if (top < height) {
      height = top;
      offsets = found;
    }
  }

  /// Places each buffer at the lowest offset that is free during its life.
  void tryOrder(const std::vector<size_t> &order, int64_t target) {
    std::vector<int64_t> found(buffers.size());
    for (std::vector<Slot> &slots : placed)
      slots.clear();
    for (size_t i : order) {
      const Buffer &buffer = buffers[i];
      size_t first = getPeriod(buffer.lower),
             last = getPeriod(buffer.upper - 1);
      int64_t offset = 0;
      // A higher offset may be taken in the periods before.
      for (size_t period = first, numFree = 0; numFree <= last - first;
           period = period == last ? first : period + 1) {
        int64_t higher = raise(offset, buffer, placed[period]);
        numFree = higher == offset ? numFree + 1 : 1;
        offset = higher;
      }
      found[i] = offset;
      if (offset + buffer.size >= height && height > target &&
          height != std::numeric_limits<int64_t>::max())
        return;
      Slot slot{offset, offset + buffer.size, buffer.lower, buffer.upper};
      for (size_t period = first; period <= last; ++period)
        placed[period].insert(
            std::upper_bound(placed[period].begin(), placed[period].end(), slot,
                             [](const Slot &a, const Slot &b) {
                               return a.offset < b.offset;
                             }),
            slot);
    }
    take(found);
  }

  struct Slot {
    int64_t offset, end, lower, upper;
  };

  /// The lowest offset from `offset` on that `slots`, in order, leave free.
  static int64_t raise(int64_t offset, const Buffer &buffer,
                       const std::vector<Slot> &slots) {
    for (const Slot &slot : slots) {
      if (slot.offset >= offset + buffer.size)
        break;
      if (slot.lower < buffer.upper && buffer.lower < slot.upper)
        offset = std::max(offset, slot.end);
    }
    return offset;
  }

  /// The period of a time; what is before the first counts as in it.
  size_t getPeriod(int64_t time) const {
    size_t begun = std::upper_bound(periods.begin(), periods.end(), time) -
                   periods.begin();
    return std::max<size_t>(begun, 1) - 1;
  }

  /// Times are cut into periods, so that only buffers of about the same time
  /// are compared: when each begins, and what is placed in it, by offset.
  static constexpr size_t kBuffersPerPeriod = 32;
  std::vector<int64_t> periods;
  std::vector<std::vector<Slot>> placed;
  std::unique_ptr<SkylineSearch> skyline;
  unsigned numRuns = 0;
  int64_t maxNodes = kFirstNodes;
};

class Clock {
public:
  explicit Clock(double seconds)
      : end(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(
                    std::min(std::max(seconds, 0.0), 1e8)))),
        test([this] { return std::chrono::steady_clock::now() >= end; }) {}

  const std::function<bool()> &isOver() const { return test; }

private:
  std::chrono::steady_clock::time_point end;
  std::function<bool()> test;
};

} // namespace

static std::vector<Part> makeParts(const AllocationProblem &problem) {
  std::vector<size_t> order;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(problem.buffers[a].lower, a) <
           std::make_pair(problem.buffers[b].lower, b);
  });
  std::vector<Part> parts;
  int64_t end = std::numeric_limits<int64_t>::min();
  for (size_t i : order) {
    Buffer buffer = problem.buffers[i];
    buffer.size = roundUp(buffer.size, problem.alignment);
    if (buffer.lower >= end)
      parts.emplace_back();
    end = std::max(end, buffer.upper);
    parts.back().add(i, buffer);
  }
  for (Part &part : parts)
    part.begin();
  return parts;
}

static void finish(const AllocationProblem &problem,
                   const std::vector<Part> &parts, SolveResult &result) {
  result.offsets.assign(problem.buffers.size(), 0);
  for (const Part &part : parts)
    for (size_t i = 0; i < part.indices.size(); ++i)
      result.offsets[part.indices[i]] = part.offsets[i];
  result.height =
      roundUp(getHeight(problem, result.offsets), problem.alignment);
}

SolveResult planning::solve(const AllocationProblem &problem,
                            const SolveOptions &options) {
  verifyProblem(problem);
  Clock clock(options.timeoutSeconds);
  SolveResult result;
  LiveMaximum maximum = getLiveMaximum(problem);
  result.lowerBound = maximum.bytes;
  int64_t capacity = problem.capacity - problem.capacity % problem.alignment;
  if (maximum.bytes > capacity) {
    result.status = SolveStatus::Infeasible;
    result.reason = std::to_string(maximum.bytes) +
                    " bytes are live together at time " +
                    std::to_string(maximum.time) + ", but the capacity is " +
                    std::to_string(problem.capacity);
    return result;
  }
  std::vector<Part> parts = makeParts(problem);
  result.status = SolveStatus::Solved;
  for (Part &part : parts) {
    part.tryHeuristics(capacity);
    int64_t nodesLeft = options.maxNodes - result.numNodes;
    while (part.height > capacity && result.status == SolveStatus::Solved) {
      if (!part.maySearch() || part.getNumNodes() >= nodesLeft ||
          clock.isOver()()) {
        result.status = SolveStatus::Unknown;
        result.reason = !part.maySearch() ? "too many buffers to search"
                        : clock.isOver()()
                            ? "out of time after " +
                                  std::to_string(options.timeoutSeconds) + " s"
                            : "out of search nodes";
        result.reason += ": neither a placement nor a proof that there is "
                         "none was found";
      } else if (part.search(capacity, nodesLeft - part.getNumNodes(),
                             clock.isOver()) == SkylineSearch::Result::Failed) {
        result.status = SolveStatus::Infeasible;
        result.reason = "the search is complete: no placement of the " +
                        std::to_string(problem.buffers.size()) +
                        " buffers is as low as " +
                        std::to_string(problem.capacity) + " bytes";
      }
    }
    result.numNodes += part.getNumNodes();
    if (result.status != SolveStatus::Solved)
      return result;
  }
  finish(problem, parts, result);
  return result;
}

SolveResult planning::minimizeHeight(const AllocationProblem &problem,
                                     const SolveOptions &options) {
  verifyProblem(problem);
  Clock clock(options.timeoutSeconds);
  std::vector<Part> parts = makeParts(problem);
  SolveResult result;
  for (Part &part : parts) {
    result.lowerBound = std::max(result.lowerBound, part.lowerBound);
    part.tryHeuristics(part.lowerBound);
  }
  // A part need not be lower than the bound of another.
  for (Part &part : parts) {
    part.lowerBound = std::max(part.lowerBound, result.lowerBound);
    int64_t nodesLeft = options.maxNodes - result.numNodes;
    while (part.height > part.lowerBound && part.maySearch() &&
           part.getNumNodes() < nodesLeft && !clock.isOver()()) {
      // The bound itself first, then half of the gap in turn.
      int64_t half =
          (part.height - part.lowerBound) / 2 / part.step * part.step;
      for (int64_t capacity : {part.lowerBound, part.lowerBound + half}) {
        if (capacity >= part.height || capacity < part.lowerBound)
          continue;
        if (part.search(capacity,
                        std::max<int64_t>(nodesLeft - part.getNumNodes(), 0),
                        clock.isOver()) == SkylineSearch::Result::Failed)
          part.lowerBound = capacity / part.step * part.step + part.step;
      }
    }
    result.lowerBound = std::max(result.lowerBound, part.lowerBound);
    result.numNodes += part.getNumNodes();
  }
  finish(problem, parts, result);
  bool isProven = result.height <= result.lowerBound;
  result.status = isProven ? SolveStatus::Solved : SolveStatus::Unknown;
  if (!isProven)
    result.reason = "out of time or nodes: a placement may be as low as " +
                    std::to_string(result.lowerBound) + " bytes";
  return result;
}
