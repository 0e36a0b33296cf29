//===- PlanDivisions.h - Each iteration once --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Part of --spyre-verify-plan; uses nothing of the planners on purpose.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANDIVISIONS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANDIVISIONS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// What a plan may use, and what it is.
struct PlanLimits {
  int64_t cores, scratchpadBytes, maxSpanBytes;
  bool isPartial; ///< between two passes: not all is decided
  /// The plan is one of several sizes, and made for the largest: the last
  /// slices may have nothing to do.
  bool mayBeEmpty = false;
};

/// Which slice of loop dimension `dim` core `core` has.
int64_t getPlannedSlice(WorkDivisionAttr division, int64_t core, unsigned dim);

/// The least and the greatest value of an expression over the loops, which have
/// `extents` in all, on a core.
std::pair<int64_t, int64_t> getPlannedRange(AffineExpr expr,
                                            ArrayRef<int64_t> extents,
                                            WorkDivisionAttr division,
                                            int64_t core);

/// How many bytes of device memory the most that a core accesses of an operand
/// spans, which is `buffer` or a tile of it.
int64_t getPlannedSpan(SpyreOpInterface op, unsigned number, MemRefType buffer);

/// SG-PLAN-C2 and the first half of SG-PLAN-C3: the operation has maps, extents
/// and divisions whose slices cover its loops once.
LogicalResult verifyDivision(SpyreOpInterface op, const PlanLimits &limits);

/// The second half of SG-PLAN-C3: iterations on two sides of a cut write
/// different sticks. `isInLX`: of a result there each core has its own.
LogicalResult verifyWrittenSticks(SpyreOpInterface op, bool isInLX);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANDIVISIONS_H
