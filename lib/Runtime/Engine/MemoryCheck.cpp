// SPDX-License-Identifier: Apache-2.0
//===- MemoryCheck.cpp - What --check=full watches of memory --------------===//

#include "MemoryCheck.h"

#include <algorithm>
#include <cstdio>

using namespace spyre;
using namespace spyre::runtime;

static constexpr int64_t kDevice = -1;

static int64_t spaceOf(const Core &core, const ViewVal &view) {
  if (!view.isLX)
    return kDevice;
  return view.lxCore < 0 ? core.coreId : view.lxCore;
}

static std::string placeText(int64_t space, int64_t address) {
  return (space == kDevice ? std::string("device memory")
                           : "LX of core " + std::to_string(space)) +
         " byte " + std::to_string(address);
}

void MemoryCheck::beginKernel(int64_t numCores) {
  ++kernel;
  clocks.assign(numCores, std::vector<uint32_t>(numCores, 0));
  for (int64_t core = 0; core < numCores; ++core)
    clocks[core][core] = 1;
}

std::vector<uint32_t> MemoryCheck::send(int64_t core) {
  std::vector<uint32_t> knowledge = clocks[core];
  ++clocks[core][core];
  return knowledge;
}

void MemoryCheck::receive(int64_t core,
                          const std::vector<uint32_t> &knowledge) {
  for (size_t i = 0; i < knowledge.size(); ++i)
    clocks[core][i] = std::max(clocks[core][i], knowledge[i]);
}

MemoryCheck::Cell &MemoryCheck::cellOf(int64_t space, int64_t address) {
  uint64_t key = uint64_t(space + 1) << 48 | uint64_t(address / kPageBytes);
  if (key != lastKey) {
    std::unique_ptr<Page> &page = pages[key];
    if (!page)
      page = std::make_unique<Page>();
    lastKey = key;
    lastPage = page.get();
  }
  return lastPage->cells[address % kPageBytes];
}

uint32_t MemoryCheck::addRecord(Core &core, int location, const ViewVal &view) {
  int64_t low = 0, high = 0;
  for (int d = 0; d < view.rank; ++d) {
    int64_t first = view.lo[d] * view.strides[d];
    int64_t last = view.hi[d] * view.strides[d];
    low += std::min(first, last);
    high += std::max(first, last);
  }
  int64_t size = deviceSize(view.elem);
  Region region{spaceOf(core, view), view.byteAddress + low * size,
                view.byteAddress + (high + 1) * size};
  auto [it, isNew] =
      regionNumbers.try_emplace(region, static_cast<int>(regions.size()));
  if (isNew)
    regions.push_back(region);
  records.push_back({location, core.coreId, kernel,
                     clocks[core.coreId][core.coreId], it->second,
                     view.location});
  return static_cast<uint32_t>(records.size()) - 1;
}

bool MemoryCheck::isUnordered(const Record &mine, uint32_t other) const {
  if (other == 0)
    return false;
  const Record &r = records[other];
  return r.kernel == mine.kernel && r.core != mine.core &&
         clocks[mine.core][r.core] < r.time;
}

std::string MemoryCheck::note(uint32_t index, const char *what) const {
  const Record &r = records[index];
  return "\n" + plan.locations[r.location] + ": note: core " +
         std::to_string(r.core) + " " + what + " here";
}

/// Whether the first of two byte ranges contains the second.
static bool contains(int64_t a, int64_t aEnd, int64_t b, int64_t bEnd) {
  return a <= b && bEnd <= aEnd;
}

/// Whether two byte ranges overlap, and neither contains the other.
static bool overlapPartly(int64_t a, int64_t aEnd, int64_t b, int64_t bEnd) {
  return a < bEnd && b < aEnd && !contains(a, aEnd, b, bEnd) &&
         !contains(b, bEnd, a, aEnd);
}

void MemoryCheck::checkDefined(Core &core, const Record &mine, int64_t space,
                               int64_t address) const {
  std::string note;
  if (space == kDevice) {
    for (const UndefinedRange &range : undefined)
      if (address >= range.first && address < range.end)
        note = range.note;
    if (note.empty())
      return;
  } else {
    auto [owner, first, end] = regions[mine.region];
    note = plan.locations[mine.viewLocation] +
           ": note: a view gives these bytes a type here, LX bytes " +
           std::to_string(first) + " to " + std::to_string(end - 1);
  }
  core.fail(mine.location, "reads " + placeText(space, address) +
                               ", which no operation has written\n" + note);
}

void MemoryCheck::touch(Core &core, uint32_t index, int64_t space,
                        int64_t address, int64_t sizeInBytes, bool isStore) {
  const Record mine = records[index];
  for (int64_t at = address; at < address + sizeInBytes; ++at) {
    Cell &cell = cellOf(space, at);
    if (isUnordered(mine, cell.writer))
      core.fail(mine.location, std::string(isStore ? "writes " : "reads ") +
                                   placeText(space, at) + ", which core " +
                                   std::to_string(records[cell.writer].core) +
                                   " writes, and nothing orders the two" +
                                   note(cell.writer, "writes"));
    if (!isStore) {
      if (cell.writer == 0)
        checkDefined(core, mine, space, at);
      if (cell.overwritten && records[cell.overwritten].region == mine.region)
        core.fail(mine.location,
                  "reads " + placeText(space, at) +
                      ", which was overwritten through a view that overlaps "
                      "this one" +
                      note(cell.overwritten, "wrote the live value") +
                      note(cell.writer, "overwrote it"));
      // Two readers on different cores are enough: any writer is on another
      // core than one of them.
      bool isStale = cell.readers[0] == 0 ||
                     records[cell.readers[0]].kernel != mine.kernel;
      if (isStale || records[cell.readers[0]].core == mine.core) {
        cell.readers[0] = index;
        if (isStale)
          cell.readers[1] = 0;
      } else {
        cell.readers[1] = index;
      }
      continue;
    }
    for (uint32_t reader : cell.readers)
      if (isUnordered(mine, reader))
        core.fail(mine.location, "writes " + placeText(space, at) +
                                     ", which core " +
                                     std::to_string(records[reader].core) +
                                     " reads, and nothing orders the two" +
                                     note(reader, "reads"));
    if (space != kDevice) {
      auto [owner, first, end] = regions[mine.region];
      uint32_t before = cell.overwritten ? cell.overwritten : cell.writer;
      if (before) {
        auto [oldOwner, oldFirst, oldEnd] = regions[records[before].region];
        // What is written whole again, alone or in a larger view, is new.
        if (cell.overwritten && contains(first, end, oldFirst, oldEnd))
          cell.overwritten = 0;
        else if (!cell.overwritten &&
                 overlapPartly(oldFirst, oldEnd, first, end))
          cell.overwritten = cell.writer;
      }
    }
    cell.writer = index;
    cell.readers[0] = cell.readers[1] = 0;
  }
}

void MemoryCheck::access(Core &core, int location, const TileVal &tile,
                         bool isStore) {
  if (tile.numElements == 0)
    return;
  const std::vector<TileVal::IndexBytes> indices = tile.indexRanges();
  for (size_t i = 0; i < tile.indexViews.size(); ++i) {
    const ViewVal &view = *tile.indexViews[i];
    uint32_t record = addRecord(core, location, view);
    for (const TileVal::IndexBytes &bytes : indices)
      if (bytes.view == int(i))
        touch(core, record, spaceOf(core, view), bytes.first,
              bytes.last - bytes.first + 1, false);
  }
  uint32_t record = addRecord(core, location, tile.view);
  int64_t space = spaceOf(core, tile.view);
  int64_t size = deviceSize(tile.view.elem);
  tile.visitElements([&](int64_t address) {
    touch(core, record, space, address, size, isStore);
  });
}

void MemoryCheck::access(Core &core, int location, const TileVal &tile,
                         const std::vector<const ViewVal *> &partitions,
                         bool isStore) {
  std::vector<uint32_t> made(partitions.size(), 0);
  tile.visitDistributed(partitions, isStore,
                        [&](size_t partition, int64_t address) {
                          const ViewVal &view = *partitions[partition];
                          if (!made[partition])
                            made[partition] = addRecord(core, location, view);
                          touch(core, made[partition], spaceOf(core, view),
                                address, deviceSize(view.elem), isStore);
                        });
}
