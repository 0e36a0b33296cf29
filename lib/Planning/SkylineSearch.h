// SPDX-License-Identifier: Apache-2.0
//===- SkylineSearch.h - Complete search for a placement --------*- C++ -*-===//
//
// Decides whether buffers fit below a height. A partial placement is a skyline:
// per section of time the height below which nothing more will be placed.
// Without loss, every buffer of a solution rests on something, so that the
// lowest valleys of the skyline are filled first: of some section in a valley,
// either one of the buffers that fit into the valley rests on its floor, or the
// floor there is wasted and rises to the next height at which anything could
// rest. Branching over exactly these makes the search complete and lets no
// solution appear twice. The section with the fewest options is taken.
//
// Sections are the moments at which a set of live buffers is maximal; no
// others can be full. At every node:
// - a floor rises to the lowest height that any buffer of its section can have,
//   and a section that does not hold what remains ends the branch;
// - parts of time that no remaining buffer connects are solved one by one;
// - a buffer that is live during all of its part goes to the top of it: what
//   is above it could move below it;
// - a skyline and set of remaining buffers that failed before fails again.
//
// The ideas of sections, canonical left-justified solutions and decomposition
// are MiniMalloc's (ASPLOS 2023, doi 10.1145/3623278.3624752); branching on
// one floor of a valley with its waste, peeling from the top and remembered
// states are not.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_PLANNING_SKYLINESEARCH_H
#define SPYRE_LIB_PLANNING_SKYLINESEARCH_H

#include "Spyre/Planning/BufferAllocation.h"

#include <functional>
#include <random>
#include <unordered_set>

namespace spyre::planning {

class SkylineSearch {
public:
  enum class Result { Found, Failed, Limit };

  /// Sizes must be positive.
  explicit SkylineSearch(const std::vector<Buffer> &buffers);

  /// Order in which the options of a section are tried.
  enum class Order { Longest, Area, Largest, WidestFit, NumOrders };

  /// One run: a placement below `capacity`, the proof that there is none, or
  /// Limit after `maxNodes` nodes or when `isOutOfTime` says so. Runs learn
  /// from those before.
  Result run(int64_t capacity, Order order, unsigned seed, int64_t maxNodes,
             const std::function<bool()> &isOutOfTime);

  /// The offsets of the last run that found a placement.
  const std::vector<int64_t> &getOffsets() const { return offsets; }
  int64_t getNumNodes() const { return numNodes; }

private:
  struct Change {
    enum Kind : int { Floor, MinOffset, Placed } kind;
    int index;
    int64_t old;
  };
  struct Option {
    int buffer; ///< -1: waste
    double rank;
  };

  void reset();
  Result search(int first, int last, int64_t limit);
  Result searchParts(int first, int last, int64_t limit);
  /// Numbers the valleys: runs of equal floors between higher ones.
  void markValleys(int first, int last);
  /// The end of the valley, or of the run outside of valleys, around a section.
  int findValleyEnd(int section, int last) const;
  /// Whether a buffer can be placed on the floor of a valley.
  bool isCandidate(int buffer) const;
  /// Counts, per section, such buffers and the smallest beside it.
  void countCandidates(int first, int last);
  /// The rank of a buffer. Buffers of a section are tried by descending rank.
  double getRank(int buffer);
  int chooseSection(int first, int last, int64_t limit,
                    std::vector<Option> &options, int64_t &wasteFloor);
  /// Raises floors until nothing changes; false if a section overflows.
  bool propagate(int64_t limit);
  void place(int buffer, int64_t offset, bool onTop);
  void setFloor(int section, int64_t floor);
  void touch(int section);
  void undo(size_t mark);
  uint64_t getStateHash(int first, int last, int64_t limit) const;

  int numBuffers, numSections;
  std::vector<int64_t> size;
  /// Sections [first, last) of each buffer.
  std::vector<int> firstSection, lastSection;
  /// Buffers by first section, and where those of a section start.
  std::vector<int> byFirst, byFirstStart;
  /// Buffers live in each section.
  std::vector<std::vector<int>> live;
  std::vector<uint64_t> bufferKey, sectionKey;

  // The partial placement.
  std::vector<int64_t> floorOf, remaining, minOffset, offsets;
  std::vector<char> isPlaced;
  /// Unplaced buffers of a section, and of it and the next one.
  std::vector<int> numUnplaced, numCrossing;
  std::vector<Change> trail;
  std::vector<int> dirty;
  std::vector<char> isDirty;

  // State of a run.
  Order order = Order::Longest;
  std::minstd_rand random;
  double noise = 0;
  int64_t nodesLeft = 0;
  const std::function<bool()> *outOfTime = nullptr;

  // Learned.
  std::unordered_set<uint64_t> failedStates;
  std::vector<double> weight;
  int64_t numNodes = 0;

  // Scratch of chooseSection().
  std::vector<int> valley, count;
  std::vector<int64_t> lowBefore, lowAfter;
};

} // namespace spyre::planning

#endif // SPYRE_LIB_PLANNING_SKYLINESEARCH_H
