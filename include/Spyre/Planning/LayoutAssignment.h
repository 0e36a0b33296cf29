// SPDX-License-Identifier: Apache-2.0
//===- LayoutAssignment.h - One choice for each value -----------*- C++ -*-===//
//
// Values are made one after the other, each in one of a few ways (layouts); a
// value that is used in another way than it was made is copied first, once for
// all users that need the same copy. The cheapest choices of all values
// together are found by dynamic programming over the values that are still
// used: of all choices for the past only those differ that the future can see.
//
// Plain C++: no MLIR, no torch. Prices are in any one unit.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_PLANNING_LAYOUTASSIGNMENT_H
#define SPYRE_PLANNING_LAYOUTASSIGNMENT_H

#include <cstdint>
#include <limits>
#include <vector>

namespace spyre::planning {

struct LayoutProblem {
  /// Price of what cannot be.
  static constexpr int64_t kImpossible =
      std::numeric_limits<int64_t>::max() / 4;
  static constexpr int kNoCopy = -1;

  /// How one value is used to make another, for one choice of each.
  struct Way {
    int64_t price = 0;
    /// Number of the copy that it needs, among those of the value used.
    int copy = kNoCopy;
  };

  struct Use {
    /// The value used, made before.
    unsigned value;
    /// [choice of the value used x choices of the user + choice of the user]
    std::vector<Way> ways;
  };

  struct Value {
    /// Price of each choice; at least one.
    std::vector<int64_t> prices;
    std::vector<Use> uses;
    /// Price of each of its copies, which all its users share. What a copy
    /// costs may depend on the choice: each choice then has its own copies.
    std::vector<int64_t> copyPrices;
  };

  std::vector<Value> values;
};

struct LayoutAssignment {
  /// The choice of each value.
  std::vector<unsigned> choices;
  int64_t price = 0;
  /// Nothing was left out: no assignment is cheaper.
  bool isProven = false;
};

/// One problem for several with the same values, ways and copies, such as a
/// function at several sizes. Each problem counts alike: its prices are scaled
/// so that the least ones of all values and uses, whether they go together or
/// not, have the same sum as in the first problem. What is impossible is so in
/// all of them.
LayoutProblem addUp(const std::vector<LayoutProblem> &problems);

/// The price of given choices; at least kImpossible if they cannot be.
int64_t getPrice(const LayoutProblem &problem,
                 const std::vector<unsigned> &choices);

/// The cheapest assignment if at most `width` states ever have to be kept at
/// once; otherwise the cheapest of those found when keeping the `width`
/// cheapest, never dearer than what a plain beam search (the reference's,
/// spec/layouts.md, "Restickify optimiser") of width 64 finds. Of equal ones
/// the one with the earlier choices. Throws Error for uses of values made
/// later, tables of other sizes, or if nothing is possible.
LayoutAssignment assignLayouts(const LayoutProblem &problem,
                               unsigned width = 1024);

} // namespace spyre::planning

#endif // SPYRE_PLANNING_LAYOUTASSIGNMENT_H
