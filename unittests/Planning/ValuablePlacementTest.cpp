// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/BufferAllocation.h"

#include <gtest/gtest.h>

#include <random>

using namespace spyre::planning;

namespace {

constexpr int64_t kNodes = 2000;

double valueOf(const std::vector<double> &values,
               const std::vector<int64_t> &offsets) {
  double value = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    value += offsets[i] == kUnplaced ? 0 : values[i];
  return value;
}

TEST(ValuablePlacement, LeavesOutWhatIsWorthLeast) {
  AllocationProblem problem;
  problem.capacity = 8;
  problem.buffers = {{0, 2, 4}, {0, 2, 4}, {0, 2, 4}};
  EXPECT_EQ(placeMostValuable(problem, {5, 1, 6}, kNodes)[1], kUnplaced);
  EXPECT_EQ(valueOf({5, 1, 6}, placeMostValuable(problem, {5, 1, 6}, kNodes)),
            11);
}

TEST(ValuablePlacement, LinksSaveRoom) {
  AllocationProblem problem;
  problem.capacity = 4;
  problem.buffers = {{0, 3, 4}, {2, 5, 4}, {4, 7, 4}};
  EXPECT_EQ(valueOf({1, 1, 1}, placeMostValuable(problem, {1, 1, 1}, kNodes)),
            2);
  problem.buffers[1].inPlaceParent = 0;
  problem.buffers[2].inPlaceParent = 1;
  EXPECT_EQ(placeMostValuable(problem, {1, 1, 1}, kNodes),
            (std::vector<int64_t>{0, 0, 0}));
}

TEST(ValuablePlacement, IsNeverWorthLessThanTheReference) {
  std::mt19937 random(19);
  int numBetter = 0;
  for (int trial = 0; trial < 200; ++trial) {
    AllocationProblem problem;
    problem.capacity = 3000;
    problem.alignment = 128;
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) {
      Buffer buffer;
      buffer.lower = static_cast<int64_t>(random() % 30);
      buffer.upper = buffer.lower + 2 + static_cast<int64_t>(random() % 6);
      buffer.size = static_cast<int64_t>(random() % 1200);
      buffer.numUses = 2;
      for (int j = 0; j < i; ++j)
        if (problem.buffers[j].upper == buffer.lower + 1 &&
            problem.buffers[j].lower < buffer.lower) {
          buffer.inPlaceParent = j;
          buffer.size = problem.buffers[j].size;
        }
      problem.buffers.push_back(buffer);
      values.push_back(2.0 * static_cast<double>(buffer.size));
    }
    std::vector<int64_t> offsets = placeMostValuable(problem, values, kNodes);
    ASSERT_EQ(checkOffsets(problem, offsets), "") << "trial " << trial;
    double reference = 0;
    for (const std::vector<int64_t> &other :
         {allocateGreedy(problem), allocateByFit(problem, GapChoice::First),
          allocateByFit(problem, GapChoice::Best)})
      reference = std::max(reference, valueOf(values, other));
    ASSERT_GE(valueOf(values, offsets), reference) << "trial " << trial;
    numBetter += valueOf(values, offsets) > reference;
  }
  EXPECT_GT(numBetter, 50);
}

TEST(ValuablePlacement, BoundsWhatCanBePlaced) {
  AllocationProblem problem;
  problem.capacity = 8;
  problem.buffers = {{0, 2, 4}, {0, 2, 4}, {0, 2, 4}, {3, 5, 6}, {3, 5, 6}};
  EXPECT_EQ(boundValue(problem, {5, 1, 6, 12, 30}), 11 + 30 + 4);
  // What is larger than the memory is placed nowhere.
  problem.buffers = {{0, 2, 9}, {0, 2, 8}};
  EXPECT_EQ(boundValue(problem, {9, 8}), 8);
  problem.buffers = {{0, 3, 6}, {2, 5, 6}};
  EXPECT_EQ(boundValue(problem, {6, 6}), 8);
  problem.buffers[1].inPlaceParent = 0;
  EXPECT_EQ(boundValue(problem, {6, 6}), 12);
}

TEST(ValuablePlacement, NoPlacementIsWorthMoreThanTheBound) {
  std::mt19937 random(23);
  int numBelowSum = 0, numReached = 0;
  for (int trial = 0; trial < 200; ++trial) {
    AllocationProblem problem;
    problem.capacity = 8;
    std::vector<double> values;
    double sum = 0;
    for (int i = 0; i < 8; ++i) {
      auto lower = static_cast<int64_t>(random() % 6);
      problem.buffers.push_back({lower,
                                 lower + 1 + static_cast<int64_t>(random() % 3),
                                 1 + static_cast<int64_t>(random() % 5)});
      values.push_back(static_cast<double>(random() % 20));
      sum += values.back();
    }
    double most = 0;
    for (unsigned chosen = 0; chosen < 256; ++chosen) {
      AllocationProblem part;
      part.capacity = problem.capacity;
      double value = 0;
      for (unsigned i = 0; i < 8; ++i)
        if (chosen >> i & 1) {
          part.buffers.push_back(problem.buffers[i]);
          value += values[i];
        }
      if (value > most && solve(part).status == SolveStatus::Solved)
        most = value;
    }
    double bound = boundValue(problem, values);
    ASSERT_GE(bound, most) << "trial " << trial;
    numBelowSum += bound < sum;
    numReached += bound < most + 1;
  }
  EXPECT_GT(numBelowSum, 150);
  EXPECT_GT(numReached, 50);
}

} // namespace
