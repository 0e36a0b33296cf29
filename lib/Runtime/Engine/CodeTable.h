// SPDX-License-Identifier: Apache-2.0
//===- CodeTable.h - What a loop makes of each code -------------*- C++ -*-===//
//
// A loop that makes a number of 16 bits of another one knows but 65,536 of
// them. Where it computes transcendental functions, and has many elements, it
// runs once on all codes, and its results are looked up. Bits are the same:
// every element is computed by itself.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_CODETABLE_H
#define SPYRE_LIB_RUNTIME_ENGINE_CODETABLE_H

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace spyre::runtime {

class Core;
class StructuredLoop;

/// Of one loop, for one kind of numerics. Thread-safe.
class CodeTable {
public:
  static constexpr int64_t kCodes = 65536;

  /// Whether a table may serve the loop, if all its inputs are the same tile:
  /// it takes longer than to look up what it makes of a code.
  static bool isFor(const StructuredLoop &loop);

  /// What the loop makes of each code. Null as long as it has run on too few
  /// points, of which these are `points` more.
  const uint16_t *find(Core &core, const StructuredLoop &loop, int64_t points);

private:
  std::atomic<int64_t> numPoints = 0;
  std::once_flag made;
  std::vector<uint16_t> results;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_CODETABLE_H
