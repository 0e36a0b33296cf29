// SPDX-License-Identifier: Apache-2.0
//===- TraceMemory.cpp - Loads and stores without data --------------------===//

#include "../Engine/Instrs.h"
#include "Tracer.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

static int argumentOf(const CoreTrace &trace, int64_t address) {
  int result = -1;
  for (auto [first, argument] : *trace.arguments) {
    if (first > address)
      break;
    result = argument;
  }
  return result;
}

static CoreTrace::Sticks sticksOf(CoreTrace &trace, const TileVal &tile) {
  auto [it, isNew] = trace.knownSticks->try_emplace(tile.shapeKey());
  if (isNew) {
    Sticks data, indices;
    tile.appendSticks(data, indices);
    it->second = {mergeSticks(data), mergeSticks(indices)};
  }
  return it->second;
}

/// A transfer is set up once for all tiles that an instruction moves.
static double transferSetup(CoreTrace &trace, const Instr *instr) {
  if (!trace.isFirst(instr))
    return 0;
  ++trace.totals.numStreams;
  return trace.spec->transferSetupSeconds;
}

/// The step that reads a tile of plain (not distributed) memory into LX, or
/// the one that left it there; -1: it lies there since before the kernel.
static int readTile(Core &core, const Instr *instr, const TileVal &t) {
  CoreTrace &trace = *core.tracer;
  WorkTotals &totals = trace.totals;
  if (t.numElements == 0)
    return -1;
  CoreTrace::Sticks sticks = sticksOf(trace, t);
  uint64_t bytes = sticks.data * trace.spec->stickBytes;
  uint64_t indexBytes = sticks.indices * trace.spec->stickBytes;
  bool indexInLX = !t.indexViews.empty() && t.indexViews.front()->isLX;
  if (indexInLX)
    totals.lxBytesRead += indexBytes;
  auto [low, high] = t.byteRange();
  uint64_t tileBytes = uint64_t(t.numElements) * deviceSize(t.view.elem);
  if (t.view.isLX) {
    totals.lxBytesRead += bytes;
    int owner = t.view.lxCore;
    if (owner >= 0 && owner != core.coreId) {
      totals.ringBytes += bytes;
      int step = trace.add(instr, Unit::Ring, "read LX of another core");
      trace.steps[step].bytes = bytes;
      trace.steps[step].peer = owner;
      trace.steps[step].tileBytes = tileBytes;
      return step;
    }
    // Passes read buffers where they are.
    int writer = trace.needWrites(true, low, high);
    if (indexBytes == 0 || indexInLX)
      return writer < 0 ? -1 : trace.add(instr, Unit::None, "in LX");
  } else {
    trace.needWrites(false, low, high);
    totals.deviceBytesRead += bytes;
  }
  if (!indexInLX)
    totals.deviceBytesRead += indexBytes;
  double setup = transferSetup(trace, instr);
  int step = trace.add(instr, Unit::Load, "load");
  Step &s = trace.steps[step];
  s.seconds = setup;
  s.bytes = (t.view.isLX ? 0 : bytes) + (indexInLX ? 0 : indexBytes);
  s.key = t.identityKey();
  s.argument = argumentOf(trace, t.view.isLX ? 0 : low);
  s.tileBytes = t.view.isLX ? 0 : tileBytes;
  return step;
}

/// The step that writes the tile made by `source`.
static void writeTile(Core &core, const Instr *instr, const TileVal &t,
                      const TensorVal &value) {
  CoreTrace &trace = *core.tracer;
  WorkTotals &totals = trace.totals;
  if (t.numElements == 0)
    return;
  CoreTrace::Sticks sticks = sticksOf(trace, t);
  uint64_t bytes = sticks.data * trace.spec->stickBytes;
  uint64_t indexBytes = sticks.indices * trace.spec->stickBytes;
  bool indexInLX = !t.indexViews.empty() && t.indexViews.front()->isLX;
  (indexInLX ? totals.lxBytesRead : totals.deviceBytesRead) += indexBytes;
  auto [low, high] = t.byteRange();
  if (t.view.isLX) {
    totals.lxBytesWritten += bytes;
    int owner = t.view.lxCore;
    if (owner >= 0 && owner != core.coreId) {
      totals.ringBytes += bytes;
      int step = trace.add(instr, Unit::Ring, "write LX of another core",
                           {value.step});
      trace.steps[step].bytes = bytes;
      trace.steps[step].peer = owner;
      return;
    }
    // The pass that makes a tile writes it where it belongs; a buffer or a
    // splat has no such pass.
    int writer = value.step;
    if (value.isBuffer || value.isUniform || writer < 0) {
      double tileBytes =
          double(t.numElements) * double(deviceSize(t.view.elem));
      writer = trace.add(instr, Unit::SFU, "copy in LX", {value.step});
      trace.steps[writer].seconds = lxSeconds(tileBytes, *trace.spec);
      trace.steps[writer].isLXBound = true;
      totals.lxTileBytes += uint64_t(tileBytes);
    }
    trace.noteWrite(true, low, high, writer);
    return;
  }
  totals.deviceBytesWritten += bytes;
  double setup = transferSetup(trace, instr);
  int step = trace.add(instr, Unit::Store, "store", {value.step});
  Step &s = trace.steps[step];
  s.seconds = setup;
  s.bytes = bytes + (indexInLX ? 0 : indexBytes);
  s.argument = argumentOf(trace, low);
  trace.noteWrite(false, low, high, step);
}

/// A tile of a distributed view: one transfer per partition that it meets.
static int moveParts(Core &core, const Instr *instr, TileVal &t, int source,
                     bool isStore) {
  CoreTrace &trace = *core.tracer;
  std::vector<const ViewVal *> partitions;
  for (int slot : t.plan->partitionSlots)
    partitions.push_back(&core.views[slot]);
  std::vector<int> parts;
  for (auto [partition, count] : t.countDistributed(partitions)) {
    const ViewVal &view = *partitions[partition];
    int64_t stick = trace.spec->stickBytes;
    uint64_t bytes =
        uint64_t((count * deviceSize(view.elem) + stick - 1) / stick * stick);
    WorkTotals &totals = trace.totals;
    bool isRemote = view.isLX && view.lxCore >= 0 && view.lxCore != core.coreId;
    if (view.isLX)
      (isStore ? totals.lxBytesWritten : totals.lxBytesRead) += bytes;
    else
      (isStore ? totals.deviceBytesWritten : totals.deviceBytesRead) += bytes;
    if (view.isLX && !isRemote) {
      if (isStore)
        trace.noteWrite(true, 0, core.memory->lxSizeInBytes(), source);
      else
        parts.push_back(
            trace.needWrites(true, 0, core.memory->lxSizeInBytes()));
      continue;
    }
    double setup = isRemote ? 0 : transferSetup(trace, instr);
    int step = trace.add(instr,
                         isRemote  ? Unit::Ring
                         : isStore ? Unit::Store
                                   : Unit::Load,
                         isRemote  ? "LX of another core"
                         : isStore ? "store"
                                   : "load",
                         {isStore ? source : -1});
    Step &s = trace.steps[step];
    s.bytes = bytes;
    if (isRemote) {
      s.peer = view.lxCore;
      totals.ringBytes += bytes;
    } else {
      s.seconds = setup;
      s.argument = argumentOf(trace, view.byteAddress);
    }
    s.tileBytes = isStore ? 0 : bytes;
    parts.push_back(step);
  }
  if (isStore || parts.empty())
    return -1;
  for (int part : parts)
    trace.addNeed(part);
  return trace.add(instr, Unit::None, "distributed tile");
}

void LoadInstr::trace(Core &core) const {
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

void StoreInstr::trace(Core &core) const {
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
