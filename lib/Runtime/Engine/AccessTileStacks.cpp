// SPDX-License-Identifier: Apache-2.0
//===- AccessTileStacks.cpp - Tiles that lie behind each other ------------===//

#include "AccessTile.h"

#include <algorithm>

using namespace spyre::runtime;

void TileVal::setRowMajor() {
  int64_t step = 1;
  for (int d = plan->rank - 1; d >= 0; --d) {
    tileStrides[d] = step;
    step *= sizes[d];
  }
}

bool TileVal::isRowMajor() const {
  int64_t step = 1;
  for (int d = plan->rank - 1; d >= 0; --d) {
    if (sizes[d] > 1 && tileStrides[d] != step)
      return false;
    step *= sizes[d];
  }
  return true;
}

bool TileVal::isDense() const {
  if (!isRowMajor() || states.size() > 1)
    return false;
  // Memory is dense if it has the strides of the host tile.
  if (!states.empty()) {
    const GroupState &state = states[0];
    const std::vector<int> &vars = plan->groups[0].vars;
    if (state.runs.size() != 1 ||
        (state.runs[0].length > 1 &&
         state.runs[0].stride != tileStrides[vars.back()]))
      return false;
  }
  return std::all_of(
      linearLoops.begin(), linearLoops.end(),
      [](const Loop &loop) { return loop.memoryStride == loop.tileStride; });
}

std::optional<int64_t> TileVal::bytesTo(const TileVal &other) const {
  auto sameLoop = [](const Loop &a, const Loop &b) {
    return a.extent == b.extent && a.memoryStride == b.memoryStride &&
           a.dim == b.dim;
  };
  if (view.elem != other.view.elem || plan->rank != other.plan->rank ||
      !std::equal(sizes, sizes + plan->rank, other.sizes) ||
      primary != other.primary || states.size() != other.states.size() ||
      !std::equal(linearLoops.begin(), linearLoops.end(),
                  other.linearLoops.begin(), other.linearLoops.end(), sameLoop))
    return std::nullopt;
  for (size_t g = 0; g < states.size(); ++g) {
    const GroupState &a = states[g], &b = other.states[g];
    if (static_cast<int>(g) == primary) {
      int64_t moved = b.runs.front().offset - a.runs.front().offset;
      auto sameRun = [&](const Run &x, const Run &y) {
        return x.start == y.start && x.length == y.length &&
               x.offset + moved == y.offset && x.stride == y.stride;
      };
      if (a.rowStart != b.rowStart ||
          !std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(),
                      b.runs.end(), sameRun))
        return std::nullopt;
    } else {
      int64_t moved = b.table.front() - a.table.front();
      auto sameEntry = [&](int64_t x, int64_t y) { return x + moved == y; };
      if (!std::equal(a.table.begin(), a.table.end(), b.table.begin(),
                      b.table.end(), sameEntry))
        return std::nullopt;
    }
  }
  return other.firstByte() - firstByte();
}

void TileVal::stack(int64_t count, int64_t distance) {
  if (count == 1)
    return;
  // One run, or one loop, may become as much longer.
  if (linearLoops.empty() && states.size() == 1 && states[0].runs.size() == 1 &&
      states[0].runs[0].length == numElements) {
    Run &run = states[0].runs[0];
    if (run.length == 1 || run.length * run.stride == distance) {
      run.stride = run.length == 1 ? distance : run.stride;
      run.length *= count;
      return;
    }
  }
  if (linearLoops.size() == 1 && linearLoops[0].extent == numElements &&
      numElements * linearLoops[0].memoryStride == distance) {
    linearLoops[0].extent *= count;
    return;
  }
  linearLoops.push_back({count, distance, numElements, kMaxRank});
}
