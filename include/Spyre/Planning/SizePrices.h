// SPDX-License-Identifier: Apache-2.0
//===- SizePrices.h - Plans for many sizes ----------------------*- C++ -*-===//
//
// A program for many sizes has one plan for all of them. What it costs at each
// size is compared with the best plan for that size.
//
// Plain C++: no MLIR, no torch.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_PLANNING_SIZEPRICES_H
#define SPYRE_PLANNING_SIZEPRICES_H

#include <cstddef>
#include <vector>

namespace spyre::planning {

/// What a plan costs at one size.
struct SizePrice {
  double seconds = 0;
  /// From and to device memory.
  double movedBytes = 0;
};

/// How many times `least` a price is, and at least 1, also where both are 0;
/// infinity if only `least` is 0. Neither is negative.
double getShare(double price, double least);

/// With which a time counts in a sum over sizes, at a size where the best plan
/// takes `least`: all sizes count alike, but for those at which nothing takes
/// time.
double getSizeWeight(double least);

/// At each size, the time of the fastest plan, and the least bytes of a plan
/// that takes at most 1 + `tolerance` of it. `plans` has the prices of at least
/// one plan, of equally many sizes.
std::vector<SizePrice>
findLeastPrices(const std::vector<std::vector<SizePrice>> &plans,
                double tolerance);

/// What a plan costs of the least prices at the size where it is worst, in time
/// or in bytes. `grainInBytes`, what one access moves, is added to bytes: there
/// may be nothing to move.
double getWorstShare(const std::vector<SizePrice> &plan,
                     const std::vector<SizePrice> &least, double grainInBytes);

/// The same in time alone.
double getWorstShareOfSeconds(const std::vector<SizePrice> &plan,
                              const std::vector<SizePrice> &least);

/// Where sizes are best cut in two ranges that have a plan each.
struct RangeCut {
  /// How many of the first sizes are in the first range: at least one, and not
  /// all of them.
  size_t numFirst = 1;
  /// What the best plan of a range costs of the least prices, at the size where
  /// that is worst in both.
  double worst = 0;
};

/// Of prices as getWorstShare() has them, at two or more sizes.
RangeCut findBestCut(const std::vector<std::vector<SizePrice>> &plans,
                     const std::vector<SizePrice> &least, double grainInBytes);

} // namespace spyre::planning

#endif // SPYRE_PLANNING_SIZEPRICES_H
