//===- DivisionSizes.cpp - One plan for many sizes --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Which of the plans for several sizes serves all of them, and whether two
// would be much better.
//
//===----------------------------------------------------------------------===//

#include "DivisionPlanner.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Planning/SizePrices.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace ::spyre::planning;

/// A plan for the largest sizes is left only for one that is better by this
/// fraction at the size where it is worst: what timing adds, as sub-tiles, is
/// not priced here.
constexpr double kLeastSavingAtSizes = 0.04;

/// Where one plan for all sizes costs so much more at some of them than the
/// best one there, sizes want two plans.
constexpr double kMostLossAtSizes = 0.15;

/// Plans for each size, as if it were the only one, and from each of these one
/// for which all sizes count alike. The one is taken that costs least, at the
/// size where it is worst, of what the fastest one for that size costs: in time
/// or in bytes. The plan for the largest sizes has been made.
void DivisionPlanner::chooseForSizes(unsigned numSizes, unsigned sweeps) {
  // What does not vary stays as it is.
  std::vector<Node *> varying;
  for (Node &node : nodes) {
    auto varies = [&](const Node::Edge &edge) {
      return !nodes[edge.node].divisions->atSmallerSizes.empty();
    };
    if (!node.divisions->atSmallerSizes.empty() ||
        llvm::any_of(node.producers, varies) ||
        llvm::any_of(node.users, varies))
      varying.push_back(&node);
  }
  std::vector<SmallVector<int>> plans;
  // Of each plan, at each size.
  std::vector<std::vector<SizePrice>> planPrices;
  auto addPlan = [&] {
    SmallVector<int> plan;
    for (Node *node : varying)
      plan.push_back(node->chosen);
    if (llvm::is_contained(plans, plan))
      return;
    std::vector<SizePrice> &pricesOfPlan = planPrices.emplace_back();
    for (unsigned size = 0; size < numSizes; ++size) {
      Price price = getPriceOfAll(varying, size);
      pricesOfPlan.push_back({price.seconds, price.movedBytes});
    }
    plans.push_back(std::move(plan));
  };
  auto takePlan = [&](unsigned number) {
    for (auto [node, chosen] : llvm::zip_equal(varying, plans[number]))
      node->chosen = chosen;
  };
  std::vector<SizePrice> least;
  auto getWorst = [&](unsigned number) {
    return getWorstShare(planPrices[number], least,
                         static_cast<double>(spec.stickBytes));
  };
  auto getBest = [&] {
    least = findLeastPrices(planPrices, tolerance);
    unsigned best = 0;
    auto getSeconds = [&](unsigned number) {
      return getWorstShareOfSeconds(planPrices[number], least);
    };
    for (unsigned number = 1; number < plans.size(); ++number) {
      double worst = getWorst(number), most = getWorst(best);
      if (worst < most * (1 - kRounding) ||
          (worst < most * (1 + kRounding) &&
           getSeconds(number) < getSeconds(best) * (1 - kRounding)))
        best = number;
    }
    return best;
  };
  addPlan();
  for (unsigned size = 1; size < numSizes; ++size) {
    weights.assign(numSizes, 0);
    weights[size] = 1;
    plan(varying, sweeps);
    addPlan();
  }
  auto chooseFrom = [&](unsigned number) {
    takePlan(number);
    chooseAll(varying, /*sweeps=*/1);
    addPlan();
  };
  if (getWorst(getBest()) > 1 + kLeastSavingAtSizes) {
    for (unsigned size = 0; size < numSizes; ++size)
      weights[size] = getSizeWeight(least[size].seconds);
    for (unsigned number = 0, count = plans.size(); number < count; ++number)
      chooseFrom(number);
  }
  auto isWorthwhile = [&](unsigned number, unsigned instead) {
    return getWorst(number) < getWorst(instead) * (1 - kLeastSavingAtSizes);
  };
  unsigned best = getBest();
  // Choices are made by time. Where that takes many more bytes than needed,
  // each of them counts twice.
  if (getWorst(best) > 1 + kLeastSavingAtSizes) {
    extraSecondsPerByte = 1 / spec.effectiveMemoryBytesPerSecond;
    chooseFrom(best);
    extraSecondsPerByte = 0;
    if (unsigned other = getBest(); isWorthwhile(other, best))
      best = other;
  }
  // The first one is for the largest sizes.
  unsigned taken = isWorthwhile(best, 0) ? best : 0;
  takePlan(taken);
  if (double worst = getWorst(taken); worst > 1 + kMostLossAtSizes) {
    RangeCut cut = findBestCut(planPrices, least, spec.stickBytes);
    // Both ranges are planned anew, and then nearer.
    if (cut.worst < worst * (1 - tolerance))
      numLargeSizes = cut.numFirst;
  }
}

std::optional<std::pair<unsigned, int64_t>> DivisionPlanner::findSizesApart() {
  if (numLargeSizes == 0)
    return std::nullopt;
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(nodes.front().op);
  llvm::SmallBitVector used(symbols.size());
  for (Node &node : nodes)
    if (AffineMap extents = node.op.getLoopExtentMap())
      for (unsigned number = 0; number < symbols.size(); ++number)
        if (extents.isFunctionOfSymbol(number))
          used.set(number);
  // Each of several would be cut, which made four ranges of two.
  if (used.count() != 1)
    return std::nullopt;
  unsigned number = used.find_first();
  int64_t above = numLargeSizes == 1 ? symbols[number].getMost()
                                     : smallerSizes[numLargeSizes - 2][number];
  // A power of two that is not less than the next size: the ranges of several
  // graphs then agree.
  int64_t size = std::max(smallerSizes[numLargeSizes - 1][number],
                          int64_t(llvm::bit_floor<uint64_t>(above - 1)));
  if (size >= above)
    return std::nullopt;
  return std::make_pair(number, size);
}
