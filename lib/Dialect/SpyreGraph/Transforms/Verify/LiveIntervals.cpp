//===- LiveIntervals.cpp - Disjoint in space or time ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LiveIntervals.h"
#include <map>

using namespace mlir;
using namespace mlir::spyre_graph;

/// Whether `next` begins its life at the operation that ends that of
/// `previous`, and each iteration there writes the element that it alone
/// reads.
static bool isInPlace(const Interval &previous, const Interval &next) {
  if (previous.begin != next.begin || previous.end != next.end ||
      previous.lastUser != next.firstUser)
    return false;
  auto op = dyn_cast<SpyreOpInterface>(next.firstUser);
  if (!op || op.getSpyreInit() != next.alloc->getResult(0) ||
      op.getCombiner() != Combiner::None || op.getIndirectAccess() ||
      previous.alloc->getResult(0).getType() !=
          next.alloc->getResult(0).getType())
    return false;
  // No core writes what another has still to read.
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (op.getAccessDivision(operand) != op.getWorkDivision())
      return false;
  // Elements are accessed through one map.
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  AffineMap map = simplifyWithRanges(maps.back(), extents);
  for (OpOperand &operand : op->getOpOperands())
    if ((operand.get() == previous.alloc->getResult(0) ||
         operand.get() == next.alloc->getResult(0)) &&
        simplifyWithRanges(maps[operand.getOperandNumber()], extents) != map)
      return false;
  // No two iterations access the same element: each loop dimension is a
  // coordinate.
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (extent > 1 &&
        !llvm::is_contained(map.getResults(),
                            getAffineDimExpr(dim, op->getContext())))
      return false;
  return true;
}

/// Sweeps over time, keeping the live intervals by address. A buffer that
/// takes over another's memory in place replaces it.
LogicalResult spyre_graph::verifyDisjoint(std::vector<Interval> &intervals) {
  llvm::sort(intervals, [](const Interval &a, const Interval &b) {
    return std::make_pair(a.first, a.begin) < std::make_pair(b.first, b.begin);
  });
  std::multimap<int64_t, const Interval *> ends;
  std::map<int64_t, const Interval *> live;
  for (const Interval &interval : intervals) {
    while (!ends.empty() && ends.begin()->first < interval.first) {
      auto ended = live.find(ends.begin()->second->begin);
      if (ended != live.end() && ended->second == ends.begin()->second)
        live.erase(ended);
      ends.erase(ends.begin());
    }
    auto next = live.lower_bound(interval.begin);
    const Interval *other = nullptr;
    if (next != live.end() && next->second->begin < interval.end &&
        !isInPlace(*next->second, interval))
      other = next->second;
    if (next != live.begin() && std::prev(next)->second->end > interval.begin)
      other = std::prev(next)->second;
    // SG-PLAN-C6
    if (other) {
      InFlightDiagnostic diagnostic =
          interval.alloc->emitOpError()
          << "bytes " << interval.begin << " to " << interval.end
          << " overlap those of another live buffer, " << other->begin << " to "
          << other->end;
      diagnostic.attachNote(other->alloc->getLoc())
          << "the other buffer is allocated here";
      return diagnostic;
    }
    live[interval.begin] = &interval;
    ends.emplace(interval.last, &interval);
  }
  return success();
}
