// SPDX-License-Identifier: Apache-2.0
//===- MiniMallocFormat.h - Allocation problems as CSV ----------*- C++ -*-===//
//
// MiniMalloc's format: a header `id,lower,upper,size` and one buffer per line,
// live during [lower, upper). A solution has a column `offset` more.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_PLANNING_MINIMALLOCFORMAT_H
#define SPYRE_PLANNING_MINIMALLOCFORMAT_H

#include "Spyre/Planning/BufferAllocation.h"

namespace spyre::planning {

struct MiniMallocFile {
  /// The name of each buffer.
  std::vector<std::string> ids;
  AllocationProblem problem;
};

/// Reads `text`. The four columns may come in any order; a column `offset`, as
/// solutions have it, is ignored. Throws Error, "name:line: what is wrong", for
/// anything else: other columns, missing or surplus fields, numbers that are
/// none or do not fit, an upper that is not above its lower, negative sizes,
/// ids twice.
MiniMallocFile parseMiniMalloc(const std::string &text,
                               const std::string &name);

/// Prints the buffers in input order with their offsets.
std::string printMiniMalloc(const MiniMallocFile &file,
                            const std::vector<int64_t> &offsets);

} // namespace spyre::planning

#endif // SPYRE_PLANNING_MINIMALLOCFORMAT_H
