// SPDX-License-Identifier: Apache-2.0
//===- MemorySteps.cpp - Loads and stores without data --------------------===//

#include "../Engine/Instrs.h"
#include "CoreSteps.h"
#include "Ring.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>
#include <limits>

using namespace spyre;
using namespace spyre::runtime;

/// Intervals of 128-byte sticks, inclusive.
using Sticks = std::vector<std::pair<int64_t, int64_t>>;

/// Sorts and joins, so that runs are left; returns how many sticks there are.
static uint64_t mergeSticks(Sticks &sticks) {
  std::sort(sticks.begin(), sticks.end());
  uint64_t count = 0;
  size_t kept = 0;
  for (auto [first, last] : sticks) {
    if (kept > 0 && first <= sticks[kept - 1].second + 1) {
      int64_t &end = sticks[kept - 1].second;
      if (last > end) {
        count += last - end;
        end = last;
      }
      continue;
    }
    count += last - first + 1;
    sticks[kept++] = {first, last};
  }
  sticks.resize(kept);
  return count;
}

static int argumentOf(const CoreSteps &steps, int64_t address) {
  int result = -1;
  for (auto [first, argument] : *steps.arguments) {
    if (first > address)
      break;
    result = argument;
  }
  return result;
}

static CoreSteps::Sticks sticksOf(CoreSteps &steps, const TileVal &tile) {
  auto [it, isNew] = steps.knownSticks->try_emplace(tile.shapeKey());
  if (isNew) {
    Sticks data, indices, indicesInLX;
    tile.appendSticks(data);
    for (auto [view, first, last] : tile.indexRanges())
      (tile.indexViews[view]->isLX ? indicesInLX : indices)
          .push_back({first / kStickBytes, last / kStickBytes});
    it->second.data = mergeSticks(data);
    it->second.indices = mergeSticks(indices);
    it->second.indicesInLX = mergeSticks(indicesInLX);
    it->second.dataRuns = data.size();
    if (!data.empty())
      it->second.firstRun = data.front().second - data.front().first + 1;
    it->second.indexRuns = indices.size();
  }
  return it->second;
}

/// The next step needs what wrote the indices of a tile; returns the last such
/// step in LX, or -1.
static int needIndices(CoreSteps &steps, const TileVal &tile) {
  int found = -1;
  const std::vector<TileVal::IndexBytes> ranges = tile.indexRanges();
  for (size_t v = 0; v < tile.indexViews.size(); ++v) {
    int64_t low = std::numeric_limits<int64_t>::max(), high = -1;
    for (auto [view, first, last] : ranges)
      if (static_cast<size_t>(view) == v) {
        low = std::min(low, first);
        high = std::max(high, last);
      }
    if (high < low)
      continue;
    bool isLX = tile.indexViews[v]->isLX;
    int writer = steps.needWrites(isLX, low, high + 1);
    if (isLX)
      found = std::max(found, writer);
  }
  return found;
}

/// Says of a step which of its bytes are indices, and where those lie.
static void noteIndices(const CoreSteps &steps, Step &step, const TileVal &tile,
                        uint64_t bytes) {
  step.indexBytes = bytes;
  for (auto [view, first, last] : tile.indexRanges())
    if (!tile.indexViews[view]->isLX) {
      step.indexArgument = argumentOf(steps, first);
      return;
    }
}

/// A transfer is set up once for all tiles that an instruction moves.
static double transferSetup(CoreSteps &steps, const Instr *instr) {
  if (!steps.isFirst(instr))
    return 0;
  ++steps.totals.numStreams;
  return steps.spec->transferSetupSeconds;
}

/// The step that reads a tile of plain (not distributed) memory into LX, or
/// the one that left it there; -1: it lies there since before the kernel.
static int readTile(Core &core, const Instr *instr, const TileVal &t) {
  CoreSteps &steps = *core.steps;
  WorkTotals &totals = steps.totals;
  if (t.numElements == 0)
    return -1;
  CoreSteps::Sticks sticks = sticksOf(steps, t);
  uint64_t bytes = sticks.data * steps.spec->stickBytes;
  uint64_t indexBytes = sticks.indices * steps.spec->stickBytes;
  totals.lxBytesRead += sticks.indicesInLX * steps.spec->stickBytes;
  int indexWriter = needIndices(steps, t);
  auto [low, high] = t.byteRange();
  uint64_t tileBytes = uint64_t(t.numElements) * deviceSize(t.view.elem);
  if (t.view.isLX) {
    totals.lxBytesRead += bytes;
    int owner = t.view.lxCore;
    if (owner >= 0 && owner != core.coreId) {
      totals.ringBytes += bytes;
      int step = steps.add(instr, Unit::Ring, "read LX of another core");
      steps.list[step].bytes = bytes;
      steps.list[step].peer = owner;
      steps.list[step].tileBytes = tileBytes;
      return step;
    }
    // Passes read buffers where they are.
    int writer = std::max(indexWriter, steps.needWrites(true, low, high));
    if (indexBytes == 0)
      return writer < 0 ? -1 : steps.add(instr, Unit::None, "in LX");
  } else {
    steps.needWrites(false, low, high);
    totals.deviceBytesRead += bytes;
  }
  totals.deviceBytesRead += indexBytes;
  double setup = transferSetup(steps, instr);
  int step = steps.add(instr, Unit::Load, "load");
  Step &s = steps.list[step];
  s.seconds = setup;
  s.bytes = (t.view.isLX ? 0 : bytes) + indexBytes;
  s.numRuns =
      (t.view.isLX
           ? 0
           : steps.countRuns(instr, low / steps.spec->stickBytes, sticks)) +
      sticks.indexRuns;
  if (!t.view.isLX)
    s.exposedShare =
        steps.getExposedShare(instr, low / steps.spec->stickBytes, sticks);
  s.key = t.identityKey();
  s.argument = argumentOf(steps, t.view.isLX ? 0 : low);
  noteIndices(steps, s, t, indexBytes);
  s.tileBytes = t.view.isLX ? 0 : tileBytes;
  return step;
}

/// The step that writes the tile made by `source`.
static void writeTile(Core &core, const Instr *instr, const TileVal &t,
                      const TensorVal &value) {
  CoreSteps &steps = *core.steps;
  WorkTotals &totals = steps.totals;
  if (t.numElements == 0)
    return;
  CoreSteps::Sticks sticks = sticksOf(steps, t);
  uint64_t bytes = sticks.data * steps.spec->stickBytes;
  uint64_t indexBytes = sticks.indices * steps.spec->stickBytes;
  totals.lxBytesRead += sticks.indicesInLX * steps.spec->stickBytes;
  totals.deviceBytesRead += indexBytes;
  needIndices(steps, t);
  auto [low, high] = t.byteRange();
  if (t.view.isLX) {
    totals.lxBytesWritten += bytes;
    int owner = t.view.lxCore;
    if (owner >= 0 && owner != core.coreId) {
      totals.ringBytes += bytes;
      int step = steps.add(instr, Unit::Ring, "write LX of another core",
                           {value.step});
      steps.list[step].bytes = bytes;
      steps.list[step].peer = owner;
      return;
    }
    // The pass that makes a tile writes it where it belongs; a buffer or a
    // splat has no such pass.
    int writer = value.step;
    if (value.isBuffer || value.isUniform || writer < 0) {
      double tileBytes =
          double(t.numElements) * double(deviceSize(t.view.elem));
      writer = steps.add(instr, Unit::SFU, "copy in LX", {value.step});
      steps.list[writer].seconds = lxSeconds(tileBytes, *steps.spec);
      steps.list[writer].isLXBound = true;
      totals.lxTileBytes += uint64_t(tileBytes);
    }
    steps.noteWrite(true, low, high, writer);
    return;
  }
  totals.deviceBytesWritten += bytes;
  double setup = transferSetup(steps, instr);
  int step = steps.add(instr, Unit::Store, "store", {value.step});
  Step &s = steps.list[step];
  s.seconds = setup;
  s.bytes = bytes + indexBytes;
  s.numRuns = steps.countRuns(instr, low / steps.spec->stickBytes, sticks) +
              sticks.indexRuns;
  s.argument = argumentOf(steps, low);
  noteIndices(steps, s, t, indexBytes);
  if (steps.isAccumulated(value.step))
    steps.lastDrain = step;
  steps.noteWrite(false, low, high, step);
}

/// In which order a core moves the parts of a tile that lie in the LX of others
/// (the core each time). The program names no order: a load asks for all parts
/// at once. If every core began with the same one, all would wait for its links
/// in turn. So each begins with its neighbour's and goes on around the ring,
/// and every other core the other way, because links carry both directions at
/// once.
static int turnsUntil(int owner, const Core &core, const DeviceSpec &spec) {
  int ringSize = getRingSize(core.function.numCores(), spec);
  int self = static_cast<int>(core.coreId);
  int turns = self % 2 == 0 ? owner - self : self - owner;
  return (turns % ringSize + ringSize) % ringSize;
}

/// A tile of a distributed view: one transfer per partition that it meets.
static int moveParts(Core &core, const Instr *instr, TileVal &t, int source,
                     bool isStore) {
  CoreSteps &steps = *core.steps;
  std::vector<const ViewVal *> partitions;
  for (int slot : t.plan->partitionSlots)
    partitions.push_back(&core.views[slot]);
  std::vector<std::pair<int, int64_t>> counts = t.countDistributed(partitions);
  auto rankOf = [&](const std::pair<int, int64_t> &part) {
    const ViewVal &view = *partitions[part.first];
    bool hasOwner = view.isLX && view.lxCore >= 0;
    return std::make_pair(
        hasOwner ? turnsUntil(view.lxCore, core, *steps.spec) : 0, part.first);
  };
  std::sort(counts.begin(), counts.end(), [&](const auto &a, const auto &b) {
    return rankOf(a) < rankOf(b);
  });
  std::vector<int> parts;
  for (auto [partition, count] : counts) {
    const ViewVal &view = *partitions[partition];
    int64_t stick = steps.spec->stickBytes;
    uint64_t bytes =
        uint64_t((count * deviceSize(view.elem) + stick - 1) / stick * stick);
    WorkTotals &totals = steps.totals;
    bool isRemote = view.isLX && view.lxCore >= 0 && view.lxCore != core.coreId;
    if (view.isLX)
      (isStore ? totals.lxBytesWritten : totals.lxBytesRead) += bytes;
    else
      (isStore ? totals.deviceBytesWritten : totals.deviceBytesRead) += bytes;
    if (view.isLX && !isRemote) {
      if (isStore)
        steps.noteWrite(true, 0, core.memory->lxSizeInBytes(), source);
      else
        parts.push_back(
            steps.needWrites(true, 0, core.memory->lxSizeInBytes()));
      continue;
    }
    double setup = isRemote ? 0 : transferSetup(steps, instr);
    int step = steps.add(instr,
                         isRemote  ? Unit::Ring
                         : isStore ? Unit::Store
                                   : Unit::Load,
                         isRemote  ? "LX of another core"
                         : isStore ? "store"
                                   : "load",
                         {isStore ? source : -1});
    Step &s = steps.list[step];
    s.bytes = bytes;
    s.numRuns = 1;
    if (isRemote) {
      s.peer = view.lxCore;
      totals.ringBytes += bytes;
    } else {
      s.seconds = setup;
      s.argument = argumentOf(steps, view.byteAddress);
    }
    s.tileBytes = isStore ? 0 : bytes;
    parts.push_back(step);
  }
  if (isStore || parts.empty())
    return -1;
  for (int part : parts)
    steps.addNeed(part);
  return steps.add(instr, Unit::None, "distributed tile");
}

void LoadInstr::walk(Core &core) const {
  TileVal &t = core.tiles[tile];
  TensorVal &result = core.tensors[dst];
  beginTensor(core, dst, -1);
  result.rank = t.plan->rank;
  std::copy(t.sizes, t.sizes + result.rank, result.sizes);
  result.numElements = t.numElements;
  t.hasData = false;
  if (!t.plan->partitionSlots.empty()) {
    result.step = moveParts(core, this, t, -1, false);
    return;
  }
  std::string error = t.prepare(core.zeroOutside);
  if (!error.empty())
    core.fail(location, error);
  result.step = readTile(core, this, t);
  result.isBuffer = t.view.isLX && t.view.lxCore < 0;
}

void StoreInstr::walk(Core &core) const {
  TileVal &t = core.tiles[tile];
  const TensorVal &value = core.tensors[data.slot];
  checkSizes(core);
  t.hasData = false;
  if (!t.plan->partitionSlots.empty()) {
    moveParts(core, this, t, value.step, true);
    return;
  }
  std::string error = t.prepare(core.zeroOutside);
  if (!error.empty())
    core.fail(location, error);
  writeTile(core, this, t, value);
}
