// SPDX-License-Identifier: Apache-2.0
//===- AccessTileTiming.cpp - What the timing engine asks of a tile -------===//

#include "AccessTile.h"

#include "Spyre/Device/DataFormat.h"

#include <algorithm>

using namespace spyre::runtime;

static uint64_t mix(uint64_t hash, int64_t value) {
  hash = (hash ^ uint64_t(value)) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

uint64_t TileVal::shapeKey() const {
  uint64_t hash = mix(0, int64_t(view.elem));
  for (const Loop &loop : linearLoops)
    hash = mix(mix(hash, loop.extent), loop.memoryStride);
  // Where the first point lies decides for all others.
  int64_t first = baseOffset;
  for (size_t g = 0; g < states.size(); ++g) {
    const GroupState &state = states[g];
    hash = mix(hash, int64_t(g));
    if (static_cast<int>(g) == primary) {
      int64_t origin = state.runs.empty() ? 0 : state.runs.front().offset;
      first += origin;
      for (const Run &run : state.runs)
        hash = mix(mix(mix(hash, run.offset - origin), run.length), run.stride);
    } else {
      int64_t origin = state.table.empty() ? 0 : state.table.front();
      first += origin;
      for (int64_t offset : state.table)
        hash = mix(hash, offset - origin);
    }
    for (auto [view, low, high] : state.indexBytes)
      hash = mix(mix(mix(hash, indexViews[view]->isLX), low), high);
  }
  int64_t address = view.byteAddress + first * deviceSize(view.elem);
  return mix(hash, address & (kStickBytes - 1));
}

uint64_t TileVal::identityKey() const {
  uint64_t hash = mix(shapeKey(), view.byteAddress);
  // The captured values determine which rows a gather reads.
  if (!indexViews.empty())
    for (int64_t value : captured)
      hash = mix(hash, value);
  auto [low, high] = byteRange();
  return mix(mix(mix(hash, low), high), view.isLX);
}

std::pair<int64_t, int64_t> TileVal::byteRange() const {
  auto [low, high] = offsetRange();
  int64_t size = deviceSize(view.elem);
  return {view.byteAddress + low * size, view.byteAddress + (high + 1) * size};
}

std::vector<std::pair<int, int64_t>> TileVal::countDistributed(
    const std::vector<const ViewVal *> &partitions) const {
  if (plan->isEnumerated)
    return countEnumerated(partitions);
  std::vector<std::pair<int, int64_t>> result;
  for (size_t i = 0; i < partitions.size(); ++i) {
    const ViewVal &part = *partitions[i];
    int64_t points = 1;
    for (int t = 0; t < plan->rank; ++t) {
      int d = plan->linearTerms[t].front().first;
      int64_t origin = formBase[plan->constantForms[d]] + lo[t];
      int64_t first = std::max(origin, part.lo[d]);
      int64_t last = std::min(origin + sizes[t] - 1, part.hi[d]);
      points *= std::max<int64_t>(last - first + 1, 0);
    }
    if (points > 0)
      result.push_back({static_cast<int>(i), points});
  }
  return result;
}
