// SPDX-License-Identifier: Apache-2.0
//===- BufferAllocation.h - Buffers in one linear memory --------*- C++ -*-===//
//
// Buffers that are live for known half-open intervals of time get offsets in
// one memory, so that no two that are live together overlap. The problem is
// NP-complete; here are the reference's heuristics (spec/passes.md, "LX
// scratchpad planning") and a solver that searches until it knows.
//
// Plain C++: no MLIR, no torch. Sizes and offsets are bytes; times are counted
// in whatever the caller likes.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_PLANNING_BUFFERALLOCATION_H
#define SPYRE_PLANNING_BUFFERALLOCATION_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace spyre::planning {

/// Offset of a buffer that has no place.
constexpr int64_t kUnplaced = -1;

/// A buffer that is live during [lower, upper).
struct Buffer {
  int64_t lower = 0, upper = 0;
  int64_t size = 0;

  // Members that only the reference's heuristics use.

  /// A buffer that dies where this one is born and whose memory this one may
  /// take over, or -1. Its `upper` is then this one's `lower` + 1: both are
  /// touched by the operation at `lower`.
  int64_t inPlaceParent = -1;
  /// Operations that touch it.
  int64_t numUses = 1;
  bool isFirstUseWrite = true;
};

struct AllocationProblem {
  std::vector<Buffer> buffers;
  int64_t capacity = std::numeric_limits<int64_t>::max();
  /// Offsets are multiples of it.
  int64_t alignment = 1;
};

/// Throws Error unless the capacity is not negative, the alignment positive,
/// every lifetime not empty, every size not negative, every parent another
/// buffer whose lifetime ends where the child's begins, and all sums fit.
void verifyProblem(const AllocationProblem &problem);

/// Nothing if `offsets` (kUnplaced allowed) are a solution, else what is wrong.
/// Compares every pair that is live together.
std::string checkOffsets(const AllocationProblem &problem,
                         const std::vector<int64_t> &offsets);

/// The end of the highest placed buffer.
int64_t getHeight(const AllocationProblem &problem,
                  const std::vector<int64_t> &offsets);

struct LiveMaximum {
  int64_t bytes = 0;
  /// A time at which so many are live.
  int64_t time = 0;
};

/// The most bytes that are live at one time, sizes rounded up to the alignment:
/// no placement without in-place reuse is lower, except by what the topmost
/// buffer lacks to a multiple of it.
LiveMaximum getLiveMaximum(const AllocationProblem &problem);

inline int64_t roundUp(int64_t size, int64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

//===----------------------------------------------------------------------===//
// The reference's heuristics
//===----------------------------------------------------------------------===//

/// Walks over the times at which buffers are born and die. What has died is
/// freed first; then each newborn in input order takes its parent's slot if
/// that fits, or address 0 if nothing lives or the lowest address is high
/// enough, else the end of the highest live one, else the first gap.
/// "Stays in the parent's slot" ends the parent's life at its child's birth.
std::vector<int64_t> allocateGreedy(const AllocationProblem &problem);

enum class GapChoice { First, Best };

/// FirstFit and BestFit of the reference. Buffers ascend by
///   ((upper - lower) - 0.25 isChild - 0.25 isParent) / (uses + 0.5 if the
///   first use is a write),
/// then by upper - lower, then in input order, but no child comes before its
/// parent. Each takes a gap between the placed buffers that are live with it:
/// if it has a placed parent and fits at its offset, that; else the first gap
/// that is large enough, or the one of which the least is left over.
///
/// The specification says "ascending" with a doubt ("Readings"): short-lived
/// and often used buffers come first, which is what saves most traffic per byte
/// and time, so ascending is taken.
std::vector<int64_t> allocateByFit(const AllocationProblem &problem,
                                   GapChoice choice);

//===----------------------------------------------------------------------===//
// The solver that searches
//===----------------------------------------------------------------------===//

enum class SolveStatus {
  /// A placement was found; nothing lower than it needs to be exists.
  Solved,
  /// There is none: `reason` says how that is known.
  Infeasible,
  /// Out of time or nodes.
  Unknown
};

struct SolveOptions {
  /// Seconds of wall-clock time; results found within it do not depend on it.
  double timeoutSeconds = 60;
  /// Nodes of the search, after which to give up; results within it are the
  /// same on every machine.
  int64_t maxNodes = std::numeric_limits<int64_t>::max();
};

struct SolveResult {
  SolveStatus status = SolveStatus::Unknown;
  /// Empty unless solved.
  std::vector<int64_t> offsets;
  int64_t height = 0;
  /// No placement is lower than this.
  int64_t lowerBound = 0;
  std::string reason;
  /// Nodes of the search; 0 if a heuristic was enough.
  int64_t numNodes = 0;
};

/// Places all buffers below the capacity. Deterministic but for the timeout.
/// In-place parents are not considered: such pairs have disjoint lifetimes in
/// the problem that the caller states, or are one buffer.
SolveResult solve(const AllocationProblem &problem,
                  const SolveOptions &options = {});

/// The lowest placement of all buffers; the capacity is ignored. Solved means
/// that height == lowerBound; Unknown has a placement too, and a gap.
SolveResult minimizeHeight(const AllocationProblem &problem,
                           const SolveOptions &options = {});

//===----------------------------------------------------------------------===//
// When not everything fits
//===----------------------------------------------------------------------===//

/// Offsets below the capacity of buffers that are together worth as much as
/// possible; `values` are not negative. Buffers linked by `inPlaceParent` are
/// at one offset or apart. If all fit and the search finds it within `maxNodes`
/// nodes, all are placed; the result is never worth less than what the
/// reference's heuristics place.
std::vector<int64_t> placeMostValuable(const AllocationProblem &problem,
                                       const std::vector<double> &values,
                                       int64_t maxNodes);

/// No placement is worth more: at times when more is live than fits, the bytes
/// worth least are left out, as if buffers could be cut.
double boundValue(const AllocationProblem &problem,
                  const std::vector<double> &values);

} // namespace spyre::planning

#endif // SPYRE_PLANNING_BUFFERALLOCATION_H
