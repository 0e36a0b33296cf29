// SPDX-License-Identifier: Apache-2.0
//===- SizePrices.cpp - Plans for many sizes --------------------*- C++ -*-===//

#include "Spyre/Planning/SizePrices.h"

#include <algorithm>
#include <limits>

using namespace spyre::planning;

double spyre::planning::getShare(double price, double least) {
  if (price <= least)
    return 1;
  return least > 0 ? price / least : std::numeric_limits<double>::infinity();
}

double spyre::planning::getSizeWeight(double least) {
  return least > 0 ? 1 / least : 0;
}

std::vector<SizePrice> spyre::planning::findLeastPrices(
    const std::vector<std::vector<SizePrice>> &plans, double tolerance) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<SizePrice> least(plans.front().size(), {kInfinity, kInfinity});
  for (size_t size = 0; size < least.size(); ++size) {
    for (const std::vector<SizePrice> &plan : plans)
      least[size].seconds = std::min(least[size].seconds, plan[size].seconds);
    for (const std::vector<SizePrice> &plan : plans)
      if (plan[size].seconds <= least[size].seconds * (1 + tolerance))
        least[size].movedBytes =
            std::min(least[size].movedBytes, plan[size].movedBytes);
  }
  return least;
}

double spyre::planning::getWorstShare(const std::vector<SizePrice> &plan,
                                      const std::vector<SizePrice> &least,
                                      double grainInBytes) {
  double worst = getWorstShareOfSeconds(plan, least);
  for (size_t size = 0; size < plan.size(); ++size)
    worst = std::max(worst, getShare(plan[size].movedBytes + grainInBytes,
                                     least[size].movedBytes + grainInBytes));
  return worst;
}

RangeCut
spyre::planning::findBestCut(const std::vector<std::vector<SizePrice>> &plans,
                             const std::vector<SizePrice> &least,
                             double grainInBytes) {
  using Prices = std::vector<SizePrice>;
  auto getBestShare = [&](size_t from, size_t to) {
    auto getRange = [&](const Prices &prices) {
      auto begin = prices.begin();
      return Prices(begin + static_cast<std::ptrdiff_t>(from),
                    begin + static_cast<std::ptrdiff_t>(to));
    };
    double best = std::numeric_limits<double>::infinity();
    for (const Prices &plan : plans)
      best = std::min(
          best, getWorstShare(getRange(plan), getRange(least), grainInBytes));
    return best;
  };
  RangeCut cut{1, std::numeric_limits<double>::infinity()};
  for (size_t first = 1; first < least.size(); ++first) {
    double worst =
        std::max(getBestShare(0, first), getBestShare(first, least.size()));
    if (worst < cut.worst)
      cut = {first, worst};
  }
  return cut;
}

double
spyre::planning::getWorstShareOfSeconds(const std::vector<SizePrice> &plan,
                                        const std::vector<SizePrice> &least) {
  double worst = 0;
  for (size_t size = 0; size < plan.size(); ++size)
    worst = std::max(worst, getShare(plan[size].seconds, least[size].seconds));
  return worst;
}
