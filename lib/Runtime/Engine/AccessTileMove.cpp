// SPDX-License-Identifier: Apache-2.0
//===- AccessTileMove.cpp - Moving the data of access tiles ---------------===//

#include "AccessTile.h"

#include "Spyre/Device/DataFormat.h"

#include <algorithm>
#include <cstdlib>

using namespace spyre::runtime;

template <typename Visit>
void TileVal::forEachRow(const int64_t *steps, Visit &&visit) const {
  const AccessTilePlan &p = *plan;
  if (primary < 0) {
    visit(baseOffset, int64_t(0), nullptr, nullptr);
    return;
  }
  const AccessTilePlan::Group &main = p.groups[primary];
  const GroupState &mainState = states[primary];
  int64_t mainRows = static_cast<int64_t>(mainState.rowStart.size()) - 1;

  auto tileOffset = [&](const AccessTilePlan::Group &group, int64_t point,
                        int numVars) {
    int64_t offset = 0;
    for (int i = numVars - 1; i >= 0; --i) {
      int v = group.vars[i];
      offset += point % sizes[v] * steps[v];
      point /= sizes[v];
    }
    return offset;
  };
  auto walkMain = [&](int64_t memory, int64_t tile) {
    int outer = static_cast<int>(main.vars.size()) - 1;
    for (int64_t row = 0; row < mainRows; ++row) {
      int64_t rowTile =
          tile + (mainRows > 1 ? tileOffset(main, row, outer) : 0);
      const Run *runs = mainState.runs.data();
      visit(memory, rowTile, runs + mainState.rowStart[row],
            runs + mainState.rowStart[row + 1]);
    }
  };
  // Odometer over the points of the other groups.
  int others[kMaxRank];
  int64_t point[kMaxRank] = {};
  int numOthers = 0;
  for (size_t g = 0; g < p.groups.size(); ++g)
    if (static_cast<int>(g) != primary) {
      if (numOthers == kMaxRank)
        return;
      others[numOthers++] = static_cast<int>(g);
    }
  while (true) {
    int64_t memory = baseOffset, tile = 0;
    for (int i = 0; i < numOthers; ++i) {
      const AccessTilePlan::Group &group = p.groups[others[i]];
      memory += states[others[i]].table[point[i]];
      tile += tileOffset(group, point[i], static_cast<int>(group.vars.size()));
    }
    walkMain(memory, tile);
    int i = numOthers - 1;
    for (; i >= 0; --i) {
      if (++point[i] < static_cast<int64_t>(states[others[i]].table.size()))
        break;
      point[i] = 0;
    }
    if (i < 0)
      return;
  }
}

int64_t TileVal::runTileStride(const int64_t *steps) const {
  if (primary < 0 || plan->groups[primary].vars.empty())
    return 0;
  return steps[plan->groups[primary].vars.back()];
}

template <typename Visit>
void TileVal::forEachBlock(Visit &&visit) const {
  int64_t stride = runTileStride(tileStrides);
  forEachRow(tileStrides, [&](int64_t memory, int64_t tile, const Run *first,
                              const Run *end) {
    if (!first)
      return visit(memory, tile, nullptr);
    for (const Run *run = first; run != end; ++run)
      visit(memory + run->offset, tile + run->start * stride, run);
  });
}

/// How many of the runs from `first` on are alike and lie at constant
/// distances.
static int64_t countAlike(const Run *first, const Run *end) {
  const Run *last = first;
  while (last + 1 != end && last[1].length == first->length &&
         last[1].stride == first->stride &&
         last[1].start - last->start == first[1].start - first->start &&
         last[1].offset - last->offset == first[1].offset - first->offset)
    ++last;
  return last + 1 - first;
}

namespace {
/// Rows of runs that are alike and lie at constant distances, in memory and in
/// the tile.
struct AlikeRows {
  int64_t memory = 0, tile = 0;               ///< offsets of the first one
  const Run *first = nullptr, *end = nullptr; ///< its runs
  int64_t count = 0, memoryStep = 0, tileStep = 0;

  /// Adds the row behind the last one, if it is like those.
  bool add(int64_t rowMemory, int64_t rowTile, const Run *from, const Run *to) {
    if (count == 0 || to - from != end - first || from == to)
      return false;
    int64_t moved = from->offset - first->offset;
    int64_t memoryMoved = rowMemory + moved - memory;
    if (count == 1) {
      memoryStep = memoryMoved;
      tileStep = rowTile - tile;
    } else if (memoryMoved != count * memoryStep ||
               rowTile - tile != count * tileStep) {
      return false;
    }
    auto isAlike = [&](const Run &a, const Run &b) {
      return a.start == b.start && a.length == b.length &&
             a.stride == b.stride && a.offset + moved == b.offset;
    };
    if (!std::equal(first, end, from, isAlike))
      return false;
    ++count;
    return true;
  }
};
} // namespace

template <typename Visit>
void TileVal::forEachBox(Box &box, const int64_t *steps, Visit &&visit) const {
  int64_t stride = runTileStride(steps);
  unsigned numLinear = box.rank;
  auto add = [&](int64_t count, int64_t memoryStride, int64_t tileStride) {
    if (count == 1)
      return;
    box.shape[box.rank] = size_t(count);
    box.memoryStrides[box.rank] = memoryStride;
    box.tileStrides[box.rank++] = tileStride;
  };
  AlikeRows rows;
  auto visitRows = [&] {
    for (const Run *run = rows.first; run != rows.end;) {
      int64_t count = countAlike(run, rows.end);
      box.rank = numLinear;
      add(rows.count, rows.memoryStep, rows.tileStep);
      if (count > 1)
        add(count, run[1].offset - run->offset,
            (run[1].start - run->start) * stride);
      add(run->length, run->stride, stride);
      visit(rows.memory + run->offset, rows.tile + run->start * stride);
      run += count;
    }
  };
  forEachRow(steps, [&](int64_t memory, int64_t tile, const Run *first,
                        const Run *end) {
    if (!first)
      return visit(memory, tile);
    if (rows.add(memory, tile, first, end))
      return;
    visitRows();
    rows = {memory, tile, first, end, 1, 0, 0};
  });
  visitRows();
}

template <typename Visit>
void TileVal::forEachElement(Visit &&visit) const {
  int64_t runStep = runTileStride(tileStrides);
  forEachBlock([&](int64_t memory, int64_t tile, const Run *run) {
    int64_t length = run ? run->length : 1;
    int64_t runStride = run ? run->stride : 0;
    for (int64_t i = 0; i < length; ++i) {
      int64_t index[kMaxRank + 1] = {};
      while (true) {
        int64_t m = memory + i * runStride, t = tile + i * runStep;
        for (size_t l = 0; l < linearLoops.size(); ++l) {
          m += index[l] * linearLoops[l].memoryStride;
          t += index[l] * linearLoops[l].tileStride;
        }
        visit(m, t);
        int l = static_cast<int>(linearLoops.size()) - 1;
        for (; l >= 0; --l) {
          if (++index[l] < linearLoops[l].extent)
            break;
          index[l] = 0;
        }
        if (l < 0)
          break;
      }
    }
  });
}

void TileVal::visitElements(const std::function<void(int64_t)> &visit) const {
  if (numElements == 0)
    return;
  int64_t size = deviceSize(view.elem);
  forEachElement([&](int64_t memory, int64_t) {
    int64_t byte = memory * size;
    if (!isPartlyOutside ||
        (byte >= view.limitLo && byte + size <= view.limitHi))
      visit(view.byteAddress + byte);
  });
}

std::vector<TileVal::IndexBytes> TileVal::indexRanges() const {
  std::vector<IndexBytes> ranges;
  for (const GroupState &state : states)
    ranges.insert(ranges.end(), state.indexBytes.begin(),
                  state.indexBytes.end());
  return ranges;
}

void TileVal::loadInside(void *tile, bool ieee) const {
  ElementFormat format = elementFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem), size = hostSize(view.elem);
  std::memset(tile, 0, size_t(numElements) * size);
  forEachElement([&](int64_t memory, int64_t offset) {
    int64_t byte = memory * memorySize;
    if (byte < view.limitLo || byte + memorySize > view.limitHi)
      return;
    uint8_t *dst = static_cast<uint8_t *>(tile) + offset * size;
    loadBox(view.elem, format, dst, nullptr, view.base + byte, nullptr, nullptr,
            0);
  });
}

void TileVal::storeInside(const void *tile, bool ieee) const {
  ElementFormat format = elementFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem), size = hostSize(view.elem);
  forEachElement([&](int64_t memory, int64_t offset) {
    int64_t byte = memory * memorySize;
    if (byte < view.limitLo || byte + memorySize > view.limitHi)
      return;
    const uint8_t *src = static_cast<const uint8_t *>(tile) + offset * size;
    storeBox(view.elem, format, view.base + byte, nullptr, src, nullptr,
             nullptr, 0);
  });
}

bool TileVal::isStrip(int dim) const {
  if (isPartlyOutside || plan->groupOfVar[dim] >= 0 ||
      tileStrides[dim] * sizes[dim] != numElements)
    return false;
  for (const Loop &loop : linearLoops)
    if (loop.dim == dim)
      return true;
  return false;
}

template <typename Visit>
void TileVal::forEachStridedPart(Visit &&visit) const {
  if (isPartlyOutside || plan->isEnumerated || plan->groups.size() > 1 ||
      numElements == 0)
    return;
  StridedPart part{};
  part.dim = -1;
  for (const Loop &loop : linearLoops) {
    if (loop.dim == kMaxRank)
      return;
    part.strides[loop.dim] = loop.memoryStride;
  }
  if (primary >= 0 && plan->groups[primary].vars.size() > 1)
    return;
  if (primary >= 0 && !plan->groups[primary].vars.empty())
    part.dim = plan->groups[primary].vars[0];
  int64_t size = deviceSize(view.elem);
  forEachBlock([&](int64_t memory, int64_t, const Run *run) {
    part.first = view.base + memory * size;
    if (part.dim >= 0) {
      part.start = run->start;
      part.length = run->length;
      part.strides[part.dim] = run->stride;
    }
    visit(part);
  });
}

std::vector<TileVal::StridedPart> TileVal::stridedParts() const {
  std::vector<StridedPart> parts;
  forEachStridedPart([&](const StridedPart &part) { parts.push_back(part); });
  return parts;
}

std::optional<TileVal::StridedPart> TileVal::onlyPart() const {
  if (primary >= 0 && states[primary].runs.size() != 1)
    return std::nullopt;
  std::optional<StridedPart> only;
  forEachStridedPart([&](const StridedPart &part) { only = part; });
  return only;
}

std::optional<TileVal::EvenParts> TileVal::evenParts() const {
  EvenParts even{};
  StridedPart last{};
  int64_t count = 0, size = deviceSize(view.elem);
  bool isEven = true;
  forEachStridedPart([&](const StridedPart &part) {
    if (count == 0) {
      even.first = part;
    } else {
      int64_t distance = (part.first - last.first) / size;
      if (count == 1)
        even.distance = distance;
      isEven = isEven && distance == even.distance &&
               last.length == even.first.length && part.length <= last.length &&
               part.start == last.start + last.length &&
               part.strides[part.dim] == last.strides[part.dim];
    }
    last = part;
    ++count;
  });
  if (count == 0 || !isEven || (count > 1 && even.distance == 0))
    return std::nullopt;
  return even;
}

bool TileVal::isApart(const StridedPart &part) const {
  return isApart(EvenParts{part, 0});
}

bool TileVal::isApart(const EvenParts &parts) const {
  std::pair<int64_t, int64_t> dims[kMaxRank + 1]; // distance, size
  int count = 0;
  auto add = [&](int64_t distance, int64_t size) {
    if (size > 1)
      dims[count++] = {std::abs(distance), size};
  };
  for (int d = 0; d < plan->rank; ++d) {
    bool isSplit = parts.distance != 0 && d == parts.first.dim;
    add(parts.first.strides[d], isSplit ? parts.first.length : sizes[d]);
    if (isSplit)
      add(parts.distance,
          (sizes[d] + parts.first.length - 1) / parts.first.length);
  }
  std::sort(dims, dims + count);
  int64_t reach = 0; // of the dimensions before
  for (int d = 0; d < count; ++d) {
    if (dims[d].first <= reach)
      return false;
    reach += dims[d].first * (dims[d].second - 1);
  }
  return true;
}

bool TileVal::isGapless() const {
  if (isPartlyOutside || plan->isEnumerated || numElements == 0)
    return false;
  Box box = linearBox();
  int numBoxes = 0;
  bool isFull = false;
  forEachBox(box, tileStrides, [&](int64_t, int64_t) {
    ++numBoxes;
    std::pair<ptrdiff_t, size_t> dims[kMaxRank + 2]; // distance, size
    unsigned count = 0;
    for (unsigned d = 0; d < box.rank; ++d)
      if (box.shape[d] > 1)
        dims[count++] = {box.memoryStrides[d], box.shape[d]};
    std::sort(dims, dims + count);
    // Each dimension begins where those before it end.
    ptrdiff_t covered = 1;
    for (unsigned d = 0; d < count && dims[d].first == covered; ++d)
      covered *= ptrdiff_t(dims[d].second);
    isFull = covered == numElements;
  });
  return numBoxes == 1 && isFull;
}

TileVal::Box TileVal::linearBox() const {
  Box box;
  for (const Loop &loop : linearLoops) {
    box.shape[box.rank] = size_t(loop.extent);
    box.memoryStrides[box.rank] = loop.memoryStride;
    box.tileStrides[box.rank++] = loop.tileStride;
  }
  return box;
}

void TileVal::load(void *tile, bool ieee, int dim, int64_t start,
                   int64_t length) const {
  if (numElements == 0)
    return;
  if (isPartlyOutside)
    return loadInside(tile, ieee);
  ElementFormat format = elementFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem);
  size_t tileSize = hostSize(view.elem);
  Box box = linearBox();
  const uint8_t *base = view.base;
  for (size_t l = 0; l < linearLoops.size(); ++l)
    if (linearLoops[l].dim == dim) {
      box.shape[l] = size_t(length);
      base += start * linearLoops[l].memoryStride * memorySize;
    }
  forEachBox(box, tileStrides, [&](int64_t memory, int64_t offset) {
    const uint8_t *src = base + memory * memorySize;
    uint8_t *dst = static_cast<uint8_t *>(tile) + offset * tileSize;
    if (box.isRun())
      loadRun(view.elem, ieee, src, dst, box.shape[0]);
    else
      loadBox(view.elem, format, dst, box.tileStrides, src, box.memoryStrides,
              box.shape, box.rank);
  });
}

template <typename Visit>
bool TileVal::forEachBoxOfCodes(const int64_t *strides, Visit &&visit) const {
  if (isPartlyOutside || plan->isEnumerated)
    return false;
  Box box = linearBox();
  for (size_t l = 0; l < linearLoops.size(); ++l)
    if (linearLoops[l].dim < kMaxRank)
      box.tileStrides[l] = strides[linearLoops[l].dim];
  auto *memory = reinterpret_cast<int16_t *>(view.base);
  if (numElements > 0)
    forEachBox(box, strides, [&](int64_t offset, int64_t position) {
      visit(box, memory + offset, position);
    });
  return true;
}

bool TileVal::loadCodes(uint8_t *to, const int64_t *strides) const {
  auto *codes = reinterpret_cast<int16_t *>(to);
  return forEachBoxOfCodes(strides, [&](const Box &b, int16_t *p, int64_t at) {
    kernels().copyInt16(codes + at, b.tileStrides, p, b.memoryStrides, b.shape,
                        b.rank);
  });
}

bool TileVal::storeCodes(const uint8_t *from) const {
  auto *codes = reinterpret_cast<const int16_t *>(from);
  return forEachBoxOfCodes(
      tileStrides, [&](const Box &b, int16_t *p, int64_t at) {
        kernels().copyInt16(p, b.memoryStrides, codes + at, b.tileStrides,
                            b.shape, b.rank);
      });
}

void TileVal::store(const void *tile, bool ieee) const {
  if (numElements == 0)
    return;
  if (isPartlyOutside)
    return storeInside(tile, ieee);
  ElementFormat format = elementFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem);
  size_t tileSize = hostSize(view.elem);
  Box box = linearBox();
  forEachBox(box, tileStrides, [&](int64_t memory, int64_t offset) {
    uint8_t *dst = view.base + memory * memorySize;
    const uint8_t *src = static_cast<const uint8_t *>(tile) + offset * tileSize;
    if (box.isRun())
      storeRun(view.elem, ieee, src, 1, dst, box.shape[0]);
    else
      storeBox(view.elem, format, dst, box.memoryStrides, src, box.tileStrides,
               box.shape, box.rank);
  });
}

int64_t TileVal::firstOffset() const {
  int64_t offset = baseOffset;
  for (size_t g = 0; g < states.size(); ++g)
    offset += static_cast<int>(g) == primary ? states[g].runs.front().offset
                                             : states[g].table.front();
  return offset;
}

uint8_t *TileVal::firstByte() const {
  return view.base + firstOffset() * deviceSize(view.elem);
}

void TileVal::appendSticks(
    std::vector<std::pair<int64_t, int64_t>> &data) const {
  if (numElements == 0)
    return;
  constexpr int64_t stick = kStickBytes;
  int64_t elemSize = deviceSize(view.elem);
  auto add = [&](int64_t firstByte, int64_t lastByte) {
    int64_t first = firstByte / stick, last = lastByte / stick;
    if (!data.empty() && first >= data.back().first &&
        first <= data.back().second + 1)
      data.back().second = std::max(data.back().second, last);
    else
      data.push_back({first, last});
  };
  auto addRun = [&](int64_t offset, int64_t stride, int64_t length) {
    int64_t start = view.byteAddress + offset * elemSize;
    int64_t step = stride * elemSize;
    if (step >= -stick && step <= stick) {
      int64_t end = start + (length - 1) * step;
      add(std::min(start, end), std::max(start, end) + elemSize - 1);
      return;
    }
    for (int64_t i = 0; i < length; ++i)
      add(start + i * step, start + i * step + elemSize - 1);
  };
  forEachBlock([&](int64_t memory, int64_t, const Run *run) {
    // Make the loop with the smallest step the innermost one, so that intervals
    // merge.
    Loop loops[kMaxRank + 1];
    int n = 0;
    for (const Loop &loop : linearLoops)
      loops[n++] = loop;
    if (run && run->length > 1)
      loops[n++] = {run->length, run->stride, 0, -1};
    std::sort(loops, loops + n, [](const Loop &a, const Loop &b) {
      return std::abs(a.memoryStride) > std::abs(b.memoryStride);
    });
    if (n == 0) {
      addRun(memory, 1, 1);
      return;
    }
    int64_t index[kMaxRank + 1] = {};
    while (true) {
      int64_t offset = memory;
      for (int i = 0; i + 1 < n; ++i)
        offset += index[i] * loops[i].memoryStride;
      addRun(offset, loops[n - 1].memoryStride, loops[n - 1].extent);
      int i = n - 2;
      for (; i >= 0; --i) {
        if (++index[i] < loops[i].extent)
          break;
        index[i] = 0;
      }
      if (i < 0)
        break;
    }
  });
}
