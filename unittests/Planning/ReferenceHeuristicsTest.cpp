// SPDX-License-Identifier: Apache-2.0
// Each expectation is derived by hand from spec/passes.md, "LX scratchpad
// planning".
#include "Spyre/Planning/BufferAllocation.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <random>

using namespace spyre;
using namespace spyre::planning;

namespace {

using Offsets = std::vector<int64_t>;

TEST(ReferenceHeuristics, GreedyGoesToTheTopFirst) {
  AllocationProblem problem;
  problem.capacity = 12;
  // 0 and 1 are born together: 0 finds nothing alive (address 0), 1 goes on
  // top. 2 is born when 0 is dead: the lowest live address, 4, holds its 3
  // bytes. 3 is born with 2: end of the highest, 8.
  problem.buffers = {{0, 2, 4}, {0, 5, 4}, {2, 5, 3}, {2, 4, 4}};
  EXPECT_EQ(allocateGreedy(problem), (Offsets{0, 4, 0, 8}));
}

TEST(ReferenceHeuristics, GreedyTakesTheFirstGapWhenTheTopIsFull) {
  AllocationProblem problem;
  problem.capacity = 10;
  // After 1 died there is a gap [3, 6); 3 needs 3 bytes, the lowest address
  // is 0 and the top is full. 4 finds no room and stays in device memory.
  problem.buffers = {{0, 9, 3}, {0, 2, 3}, {0, 9, 4}, {2, 9, 3}, {3, 9, 1}};
  EXPECT_EQ(allocateGreedy(problem), (Offsets{0, 3, 6, 3, kUnplaced}));
}

TEST(ReferenceHeuristics, GreedyFreesBeforeItAllocates) {
  AllocationProblem problem;
  problem.capacity = 4;
  problem.buffers = {{0, 2, 4}, {2, 3, 4}};
  EXPECT_EQ(allocateGreedy(problem), (Offsets{0, 0}));
}

TEST(ReferenceHeuristics, GreedyTakesTheParentsSlot) {
  AllocationProblem problem;
  problem.capacity = 8;
  problem.buffers = {{0, 3, 4}, {0, 9, 4}, {2, 5, 4}};
  // Without the parent there would be no room.
  EXPECT_EQ(allocateGreedy(problem), (Offsets{0, 4, kUnplaced}));
  problem.buffers[2].inPlaceParent = 0;
  Offsets offsets = allocateGreedy(problem);
  EXPECT_EQ(offsets, (Offsets{0, 4, 0}));
  EXPECT_EQ(checkOffsets(problem, offsets), "");
  // The child holds the slot after its parent's death.
  problem.buffers.push_back({4, 6, 4});
  EXPECT_EQ(allocateGreedy(problem), (Offsets{0, 4, 0, kUnplaced}));
}

// Scores: 0 has span 8 / (2 + 0.5), 1 has 2 / 2.5, 2 has 2 / (4 + 0.5); so 2,
// 1, 0. 0 lives with both.
TEST(ReferenceHeuristics, FitPlacesShortAndOftenUsedBuffersFirst) {
  AllocationProblem problem;
  problem.capacity = 9;
  problem.buffers = {{0, 8, 2, -1, 2}, {1, 3, 4, -1, 2}, {4, 6, 3, -1, 4}};
  EXPECT_EQ(allocateByFit(problem, GapChoice::First), (Offsets{4, 0, 0}));
  // With capacity 5, 0 is the one that stays out.
  problem.capacity = 5;
  EXPECT_EQ(allocateByFit(problem, GapChoice::First),
            (Offsets{kUnplaced, 0, 0}));
}

// Uses decide the order: 0, 1, 2 (all of equal span), then 3. 1 and 3 are not
// live together, so 3 finds the gaps [4, 10) and, above 2, [12, 16).
TEST(ReferenceHeuristics, BestFitLeavesTheLeast) {
  AllocationProblem problem;
  problem.capacity = 16;
  problem.buffers = {
      {0, 4, 4, -1, 9}, {0, 4, 6, -1, 8}, {0, 4, 2, -1, 7}, {3, 8, 4, -1, 2}};
  problem.buffers[1].upper = 3;
  problem.buffers[1].numUses = 6;
  problem.buffers[2].numUses = 7;
  // Scores: 4/9.5, 3/6.5, 4/7.5, 5/2.5.
  EXPECT_EQ(allocateByFit(problem, GapChoice::First), (Offsets{0, 4, 10, 4}));
  EXPECT_EQ(allocateByFit(problem, GapChoice::Best), (Offsets{0, 4, 10, 12}));
}

TEST(ReferenceHeuristics, FitPrefersTheGapOfTheParent) {
  AllocationProblem problem;
  problem.capacity = 16;
  // The parent's score is 1.75 / 2.5, the child's 1.75 / 2.5 too; 1 comes
  // first by its uses and takes offset 0; then the parent 4; the child would
  // fit at 0 after 1's death, but prefers its parent's 4.
  problem.buffers = {{0, 2, 4, -1, 2}, {0, 1, 4, -1, 9}, {1, 3, 4, 0, 2}};
  EXPECT_EQ(allocateByFit(problem, GapChoice::First), (Offsets{4, 0, 4}));
}

TEST(ReferenceHeuristics, FitPlacesParentsBeforeChildren) {
  AllocationProblem problem;
  problem.capacity = 4;
  // The child's score is lower, but it waits for its parent.
  problem.buffers = {{0, 8, 4, -1, 2}, {7, 9, 4, 0, 9}};
  EXPECT_EQ(allocateByFit(problem, GapChoice::First), (Offsets{0, 0}));
}

TEST(ReferenceHeuristics, RandomPlacementsAreValid) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    AllocationProblem problem;
    problem.capacity = 2000;
    problem.alignment = trial % 2 ? 128 : 1;
    for (int i = 0; i < 30; ++i) {
      Buffer buffer;
      buffer.lower = random() % 40;
      buffer.upper = buffer.lower + 1 + random() % 9;
      buffer.size = random() % 600;
      buffer.numUses = 1 + random() % 4;
      buffer.isFirstUseWrite = random() % 2;
      for (int j = 0; j < i; ++j)
        if (problem.buffers[j].upper == buffer.lower + 1 &&
            problem.buffers[j].lower < buffer.lower &&
            problem.buffers[j].size == buffer.size)
          buffer.inPlaceParent = j;
      if (i % 3 == 0 && i > 0) {
        // A child of the one before.
        buffer = problem.buffers[i - 1];
        buffer.lower = buffer.upper - 1;
        buffer.upper += 3;
        buffer.inPlaceParent =
            problem.buffers[i - 1].lower < buffer.lower ? i - 1 : -1;
      }
      problem.buffers.push_back(buffer);
    }
    verifyProblem(problem);
    EXPECT_EQ(checkOffsets(problem, allocateGreedy(problem)), "");
    EXPECT_EQ(checkOffsets(problem, allocateByFit(problem, GapChoice::First)),
              "");
    EXPECT_EQ(checkOffsets(problem, allocateByFit(problem, GapChoice::Best)),
              "");
  }
}

TEST(ReferenceHeuristics, RefusesParentsThatDoNotDieAtTheBirth) {
  AllocationProblem problem;
  problem.buffers = {{0, 2, 4}, {3, 5, 4}};
  problem.buffers[1].inPlaceParent = 0;
  EXPECT_THROW(verifyProblem(problem), Error);
  problem.buffers[1].inPlaceParent = 7;
  EXPECT_THROW(verifyProblem(problem), Error);
}

} // namespace
