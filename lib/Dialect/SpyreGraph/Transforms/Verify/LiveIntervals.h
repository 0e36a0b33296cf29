//===- LiveIntervals.h - Disjoint in space or time --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Part of --spyre-verify-plan; uses nothing of the planners on purpose.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_LIVEINTERVALS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_LIVEINTERVALS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// The bytes of a buffer, [begin, end), and its first and last use.
struct Interval {
  int64_t begin, end;
  int64_t first, last;
  Operation *alloc;
  /// The operations at `first` and `last`.
  Operation *firstUser = nullptr, *lastUser = nullptr;
};

/// SG-PLAN-C6: fails with a diagnostic unless intervals that are live together
/// are apart, or one takes over the other's memory in place.
LogicalResult verifyDisjoint(std::vector<Interval> &intervals);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_LIVEINTERVALS_H
