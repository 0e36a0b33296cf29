// SPDX-License-Identifier: Apache-2.0
//===- SizePricesTest.cpp - Plans for many sizes ----------------*- C++ -*-===//

#include "Spyre/Planning/SizePrices.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace spyre::planning;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(SizePricesTest, SharesOfNothing) {
  EXPECT_EQ(getShare(6, 4), 1.5);
  EXPECT_EQ(getShare(3, 4), 1);
  EXPECT_EQ(getShare(0, 0), 1);
  EXPECT_EQ(getShare(1e-9, 0), kInfinity);
}

TEST(SizePricesTest, SizesWithoutTimeDoNotCount) {
  EXPECT_EQ(getSizeWeight(4), 0.25);
  EXPECT_EQ(getSizeWeight(0), 0);
}

TEST(SizePricesTest, LeastBytesAreThoseOfAFastPlan) {
  // The last plan moves least, but is not among the fastest.
  std::vector<std::vector<SizePrice>> plans{
      {{100, 500}}, {{100.5, 400}}, {{120, 10}}};
  std::vector<SizePrice> least = findLeastPrices(plans, 0.01);
  ASSERT_EQ(least.size(), 1u);
  EXPECT_EQ(least[0].seconds, 100);
  EXPECT_EQ(least[0].movedBytes, 400);
}

TEST(SizePricesTest, WorstSizeDecides) {
  std::vector<SizePrice> least{{100, 1000}, {10, 100}};
  EXPECT_EQ(getWorstShare({{100, 1000}, {10, 100}}, least, 0), 1);
  EXPECT_EQ(getWorstShare({{110, 1000}, {15, 100}}, least, 0), 1.5);
  EXPECT_EQ(getWorstShare({{100, 2000}, {15, 100}}, least, 0), 2);
  EXPECT_EQ(getWorstShareOfSeconds({{100, 2000}, {15, 100}}, least), 1.5);
}

TEST(SizePricesTest, PlansThatCostNothing) {
  std::vector<std::vector<SizePrice>> plans{
      {{0, 0}, {3, 0}}, {{0, 0}, {2, 0}}, {{1, 256}, {1, 0}}};
  std::vector<SizePrice> least = findLeastPrices(plans, 0.01);
  EXPECT_EQ(getWorstShare(plans[0], least, 128), 3);
  EXPECT_EQ(getWorstShare(plans[1], least, 128), 2);
  EXPECT_EQ(getWorstShare(plans[2], least, 128), kInfinity);
  // Bytes alone never divide by 0: at least one access counts.
  EXPECT_EQ(getWorstShare({{0, 256}}, {{0, 0}}, 128), 3);
}

TEST(SizePricesTest, RangesAreCutWhereTheBestPlanChanges) {
  std::vector<std::vector<SizePrice>> plans{
      {{10, 8}, {10, 8}, {11, 8}, {15, 8}},
      {{14, 8}, {13, 8}, {10, 8}, {10, 8}},
      {{12, 8}, {12, 8}, {12, 8}, {12, 8}}};
  std::vector<SizePrice> least = findLeastPrices(plans, 0);
  RangeCut cut = findBestCut(plans, least, 0);
  EXPECT_EQ(cut.numFirst, 2u);
  EXPECT_EQ(cut.worst, 1);
  // Bytes count, too.
  plans[1][2].movedBytes = 12;
  cut = findBestCut(plans, least, 0);
  EXPECT_EQ(cut.numFirst, 3u);
  EXPECT_EQ(cut.worst, 1.1);
}

} // namespace
