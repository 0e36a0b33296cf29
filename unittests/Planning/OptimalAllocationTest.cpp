// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/BufferAllocation.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace spyre;
using namespace spyre::planning;

namespace {

AllocationProblem makeProblem(std::vector<std::array<int64_t, 3>> buffers) {
  AllocationProblem problem;
  for (auto [lower, upper, size] : buffers)
    problem.buffers.push_back({lower, upper, size});
  return problem;
}

/// Whether there is a placement, by trying every offset of every buffer.
bool canPlace(const AllocationProblem &problem, std::vector<int64_t> &offsets) {
  const std::vector<Buffer> &buffers = problem.buffers;
  size_t i = offsets.size();
  if (i == buffers.size())
    return true;
  for (int64_t offset = 0; offset + buffers[i].size <= problem.capacity;
       ++offset) {
    bool isFree = true;
    for (size_t j = 0; j < i && isFree; ++j)
      isFree = buffers[j].upper <= buffers[i].lower ||
               buffers[i].upper <= buffers[j].lower ||
               offsets[j] + buffers[j].size <= offset ||
               offset + buffers[i].size <= offsets[j];
    if (!isFree)
      continue;
    offsets.push_back(offset);
    if (canPlace(problem, offsets))
      return true;
    offsets.pop_back();
  }
  return false;
}

/// Buffers of `height` bytes in all at every time: some die, others of as many
/// bytes are born.
AllocationProblem makeFullTimes(std::mt19937 &random, int64_t height,
                                int numTimes) {
  AllocationProblem problem;
  std::vector<Buffer> live;
  for (int64_t time = 0; time < numTimes; ++time) {
    int64_t bytesLeft = height;
    std::vector<Buffer> survivors;
    for (Buffer buffer : live) {
      if (random() % 3 == 0) {
        buffer.upper = time;
        problem.buffers.push_back(buffer);
      } else {
        survivors.push_back(buffer);
        bytesLeft -= buffer.size;
      }
    }
    live = survivors;
    while (bytesLeft > 0) {
      int64_t size = std::min<int64_t>(bytesLeft, 1 + random() % 3);
      live.push_back({time, 0, size});
      bytesLeft -= size;
    }
  }
  for (Buffer buffer : live) {
    buffer.upper = numTimes;
    problem.buffers.push_back(buffer);
  }
  std::sort(problem.buffers.begin(), problem.buffers.end(),
            [](const Buffer &a, const Buffer &b) { return a.lower < b.lower; });
  return problem;
}

TEST(OptimalAllocation, PlacesNothing) {
  SolveResult result = solve({{}, 0});
  EXPECT_EQ(result.status, SolveStatus::Solved);
  EXPECT_TRUE(result.offsets.empty());
  EXPECT_EQ(minimizeHeight({}).status, SolveStatus::Solved);
}

TEST(OptimalAllocation, PlacesBuffersOfNoSize) {
  AllocationProblem problem = makeProblem({{0, 2, 0}, {1, 3, 5}});
  problem.capacity = 5;
  SolveResult result = solve(problem);
  EXPECT_EQ(result.status, SolveStatus::Solved);
  EXPECT_EQ(checkOffsets(problem, result.offsets), "");
}

TEST(OptimalAllocation, SaysWhatIsLiveTogether) {
  AllocationProblem problem = makeProblem({{0, 4, 3}, {2, 6, 3}, {5, 8, 4}});
  problem.capacity = 6;
  SolveResult result = solve(problem);
  EXPECT_EQ(result.status, SolveStatus::Infeasible);
  EXPECT_EQ(result.reason, "7 bytes are live together at time 5, but the "
                           "capacity is 6");
}

// Some of these have no placement as low as what is live, which only a search
// can tell.
TEST(OptimalAllocation, AgreesWithBruteForce) {
  std::mt19937 random(3);
  int numGaps = 0;
  for (int trial = 0; trial < 60000; ++trial) {
    AllocationProblem problem = makeFullTimes(random, 4 + trial % 6, 6);
    int64_t bound = getLiveMaximum(problem).bytes;
    int64_t expected = bound;
    for (;; ++expected) {
      problem.capacity = expected;
      std::vector<int64_t> offsets;
      bool exists = canPlace(problem, offsets);
      SolveResult result = solve(problem);
      ASSERT_EQ(result.status,
                exists ? SolveStatus::Solved : SolveStatus::Infeasible)
          << "trial " << trial << ", capacity " << expected;
      if (exists) {
        ASSERT_EQ(checkOffsets(problem, result.offsets), "");
        break;
      }
      EXPECT_NE(result.reason.find("the search is complete"),
                std::string::npos);
    }
    numGaps += expected > bound;
    SolveResult lowest = minimizeHeight(problem);
    ASSERT_EQ(lowest.status, SolveStatus::Solved) << "trial " << trial;
    ASSERT_EQ(lowest.height, expected) << "trial " << trial;
    ASSERT_EQ(lowest.lowerBound, expected) << "trial " << trial;
    ASSERT_EQ(checkOffsets(problem, lowest.offsets), "");
  }
  // The trials must contain the case.
  EXPECT_GT(numGaps, 3);
}

TEST(OptimalAllocation, KeepsTheAlignment) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    AllocationProblem problem;
    problem.alignment = 128;
    for (int i = 0; i < 40; ++i) {
      int64_t lower = random() % 30;
      problem.buffers.push_back({lower,
                                 lower + 1 + static_cast<int64_t>(random() % 8),
                                 static_cast<int64_t>(random() % 1000)});
    }
    SolveResult result = minimizeHeight(problem);
    ASSERT_EQ(checkOffsets(problem, result.offsets), "");
    EXPECT_EQ(result.height % 128, 0);
    problem.capacity = result.height;
    EXPECT_EQ(solve(problem).status, SolveStatus::Solved);
  }
}

/// A placement cut into pieces: without a gap at any time, so that only an
/// exact one fits.
AllocationProblem makePerfectPacking(std::mt19937 &random, int64_t numTimes,
                                     int64_t height, int numCuts) {
  struct Box {
    int64_t lower, upper, low, high;
  };
  std::vector<Box> boxes = {{0, numTimes, 0, height}};
  while (static_cast<int>(boxes.size()) < numCuts) {
    size_t i = random() % boxes.size();
    Box &box = boxes[i];
    Box other = box;
    if (random() % 2 && box.upper - box.lower > 1) {
      box.upper = other.lower =
          box.lower + 1 +
          static_cast<int64_t>(random() % (box.upper - box.lower - 1));
      boxes.push_back(other);
    } else if (box.high - box.low > 1) {
      box.high = other.low =
          box.low + 1 +
          static_cast<int64_t>(random() % (box.high - box.low - 1));
      boxes.push_back(other);
    }
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  AllocationProblem problem;
  problem.capacity = height;
  for (const Box &box : boxes)
    problem.buffers.push_back({box.lower, box.upper, box.high - box.low});
  return problem;
}

TEST(OptimalAllocation, FindsPerfectPackings) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    AllocationProblem problem =
        makePerfectPacking(random, 100, 1000, 20 + trial * 2);
    SolveResult result = solve(problem, {30});
    ASSERT_EQ(result.status, SolveStatus::Solved) << "trial " << trial;
    EXPECT_EQ(checkOffsets(problem, result.offsets), "");
  }
}

TEST(OptimalAllocation, GivesUpInTime) {
  std::mt19937 random(13);
  AllocationProblem problem = makePerfectPacking(random, 4000, 1000000, 1500);
  SolveResult result = solve(problem, {0.05});
  EXPECT_NE(result.status, SolveStatus::Infeasible);
  if (result.status == SolveStatus::Unknown) {
    EXPECT_NE(result.reason.find("out of time"), std::string::npos);
  }
  SolveResult lowest = minimizeHeight(problem, {0.05});
  EXPECT_GE(lowest.height, lowest.lowerBound);
  EXPECT_EQ(lowest.lowerBound, 1000000);
  problem.capacity = lowest.height;
  EXPECT_EQ(checkOffsets(problem, lowest.offsets), "");
}

TEST(OptimalAllocation, IsDeterministic) {
  std::mt19937 random(17);
  AllocationProblem problem = makePerfectPacking(random, 60, 500, 40);
  EXPECT_EQ(solve(problem).offsets, solve(problem).offsets);
}

TEST(OptimalAllocation, ChecksOffsets) {
  AllocationProblem problem = makeProblem({{0, 2, 4}, {1, 3, 4}, {2, 4, 4}});
  problem.capacity = 8;
  EXPECT_EQ(checkOffsets(problem, {0, 4, 0}), "");
  EXPECT_EQ(checkOffsets(problem, {0, 4, kUnplaced}), "");
  EXPECT_NE(checkOffsets(problem, {0, 3, 0}), "");
  EXPECT_NE(checkOffsets(problem, {0, 5, 0}), "");
  EXPECT_NE(checkOffsets(problem, {0, -4, 0}), "");
  EXPECT_NE(checkOffsets(problem, {0, 4}), "");
  problem.alignment = 8;
  EXPECT_NE(checkOffsets(problem, {0, 4, 0}), "");
}

TEST(OptimalAllocation, RefusesWhatIsNoProblem) {
  EXPECT_THROW(solve(makeProblem({{3, 3, 1}})), Error);
  EXPECT_THROW(solve(makeProblem({{0, 1, -1}})), Error);
  int64_t large = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_THROW(solve(makeProblem({{0, 1, large}, {0, 1, large}})), Error);
  AllocationProblem problem = makeProblem({{0, 1, 1}});
  problem.alignment = 0;
  EXPECT_THROW(solve(problem), Error);
  problem.alignment = 1;
  problem.capacity = -1;
  EXPECT_THROW(solve(problem), Error);
}

} // namespace
