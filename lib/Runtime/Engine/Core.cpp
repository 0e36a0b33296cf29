// SPDX-License-Identifier: Apache-2.0
//===- Core.cpp - One core of a running program ---------------------------===//

#include "Core.h"

#include <algorithm>
#include <limits>

using namespace spyre;
using namespace spyre::runtime;

Core::Core(const Plan &plan, const Function &function, BufferPool *pool,
           bool ieee)
    : plan(plan), function(function), pool(pool), ieee(ieee) {
  scalars.resize(function.numScalars);
  tensors.resize(function.numTensors);
  views.resize(function.numViews);
  viewKeys.resize(function.numViews);
  tiles.resize(function.numTiles);
  keptTiles.resize(function.numKeptTiles);
  tileBytes.resize(function.numTensors);
  spans.resize(function.numViews);
  for (const ConstantScalar &c : function.scalars) {
    scalars[c.slot] = c.value;
    if (isFloat(c.elem)) {
      scalars[c.slot].i = 0;
      scalars[c.slot].f = roundScalar(c.value.f, c.elem);
    }
  }
  const KernelTable &k = kernels();
  for (const ConstantTensor &c : function.tensors) {
    TensorVal &t = tensors[c.slot];
    t.rank = static_cast<int>(c.shape.size());
    t.numElements = 1;
    for (int d = 0; d < t.rank; ++d) {
      t.sizes[d] = c.shape[d];
      t.numElements *= c.shape[d];
    }
    allocateTensor(c.slot, c.elem, t.numElements);
    auto fill = [&](auto *to, const auto &from) {
      if (c.isSplat)
        std::fill(to, to + t.numElements, from.front());
      else
        std::copy(from.begin(), from.end(), to);
    };
    if (t.numElements == 0)
      continue;
    if (isFloat(c.elem)) {
      fill(t.f(), c.floats);
      if (Rounding r = roundingOf(c.elem, ieee); r != Rounding::None)
        k.round(t.f(), t.f(), t.numElements, r);
    } else if (isWide(c.elem)) {
      fill(t.i64(), c.longs);
    } else {
      fill(t.i32(), c.ints);
    }
  }
}

Core::~Core() {
  releaseAll();
  for (const ConstantTensor &c : function.tensors)
    releaseTensor(c.slot);
}

void Core::loadTile(int slot, Elem elem, const TileVal &tile) {
  TensorVal &t = tensors[slot];
  // Tiles of a stack lie behind each other, those of a loop do not.
  KeptTiles *kept = tile.plan->keptTiles >= 0 && numStacked == 1
                        ? &keptTiles[tile.plan->keptTiles]
                        : nullptr;
  if (Buffer *buffer = kept ? kept->find() : nullptr) {
    ++work.keptTiles;
    releaseTensor(slot);
    pool->retain(buffer);
    t.buffer = buffer;
    t.data = buffer->data();
  } else {
    allocateTensor(slot, elem, tile.numElements);
    tile.load(t.data, ieee);
    if (kept)
      kept->keep(tile, t.buffer, bufferBytes(elem, tile.numElements), *pool);
  }
  if (tile.plan->denseInnermost && tile.numElements > 0) {
    t.isPermuted = true;
    std::copy(tile.hostStrides(), tile.hostStrides() + t.rank, t.strides);
  }
}

void Core::releaseAll() {
  forgetKeptTiles();
  // Few tensors are left at the end of a run.
  for (int slot = 0; slot < static_cast<int>(tensors.size()); ++slot) {
    const TensorVal &tensor = tensors[slot];
    if ((tensor.buffer || tensor.deferredTile >= 0) &&
        !function.isConstant(slot))
      releaseTensor(slot);
  }
  for (Buffer *buffer : registers)
    pool->release(buffer);
  registers.clear();
}

void Core::makeRowMajor(int slot, Elem elem) {
  TensorVal old = tensors[slot];
  tensors[slot].buffer = nullptr;
  allocateTensor(slot, elem, old.numElements);
  size_t shape[kMaxRank + 1];
  ptrdiff_t to[kMaxRank + 1], from[kMaxRank + 1];
  int64_t step = 1;
  for (int d = old.rank - 1; d >= 0; --d) {
    shape[d] = old.sizes[d];
    to[d] = step;
    from[d] = old.strides[d];
    step *= old.sizes[d];
  }
  unsigned rank = static_cast<unsigned>(old.rank);
  shape[rank] = numStacked;
  to[rank] = from[rank] = old.numElements;
  ++rank;
  if (old.numElements > 0)
    copyBox(elem, tensors[slot].data, to, old.data, from, shape, rank);
  pool->release(old.buffer);
}

float Core::roundScalar(float value, Elem elem) const {
  Rounding rounding = roundingOf(elem, ieee);
  if (rounding != Rounding::None)
    kernels().round(&value, &value, 1, rounding);
  return value;
}

void Core::fail(int location, const std::string &message) const {
  std::string text = plan.locations[location] + ": error: ";
  if (function.hasGrid)
    text += "core " + std::to_string(coreId) + ": ";
  throw Error(text + message);
}

void Core::failWithNaN(int location, const std::string &name,
                       const std::string &from) const {
  std::string text = name + " computes NaN from " + from;
  if (auto it = plan.producers.find(location); it != plan.producers.end())
    for (int producer : it->second)
      text += "\n" + plan.locations[producer] +
              ": note: an operand is computed here";
  fail(location, text);
}

std::pair<uint64_t, uint64_t> Core::blockOf(uint64_t address) {
  for (int i = 0; i < numBlocks; ++i)
    if (address >= blocks[i].first && address < blocks[i].second)
      return blocks[i];
  std::pair<uint64_t, uint64_t> block = memory->blockOf(address);
  if (block.second == 0)
    return block;
  if (numBlocks < kNumBlocks) {
    blocks[numBlocks++] = block;
  } else {
    blocks[nextBlock] = block;
    nextBlock = (nextBlock + 1) % kNumBlocks;
  }
  return block;
}

void Block::run(Core &core) const {
  for (const std::unique_ptr<Instr> &instr : instrs) {
    if (core.steps)
      instr->walk(core);
    else
      instr->run(core);
    for (int slot : instr->frees)
      core.releaseTensor(slot);
    core.countTiles(*instr);
  }
}

void Instr::runGang(Core *const *cores, int numCores) const {
  for (int i = 0; i < numCores; ++i)
    run(*cores[i]);
}

void Block::runGang(Core *const *cores, int numCores) const {
  if (numCores == 0) // No core takes this side of a condition.
    return;
  for (const std::unique_ptr<Instr> &instr : instrs) {
    instr->runGang(cores, numCores);
    for (int slot : instr->frees)
      for (int i = 0; i < numCores; ++i)
        cores[i]->releaseTensor(slot);
    for (int i = 0; i < numCores; ++i)
      cores[i]->countTiles(*instr);
  }
}

void Core::countTiles(const Instr &instr) {
  if (instr.defines.empty() && instr.releases.empty())
    return;
  int64_t made = 0, replaced = 0;
  for (auto [slot, elem] : instr.defines) {
    int64_t bytes = tensors[slot].numElements * deviceSize(elem);
    made += bytes - tileBytes[slot];
    tileBytes[slot] = bytes;
  }
  for (int slot : instr.replaces)
    replaced += tileBytes[slot];
  liveTileBytes += made;
  int64_t needed =
      liveTileBytes - std::max<int64_t>(0, std::min(made, replaced));
  for (int slot : instr.releases) {
    liveTileBytes -= tileBytes[slot];
    tileBytes[slot] = 0;
  }
  int64_t capacity = memory->lxSizeInBytes();
  if (needed + viewBytes > capacity && check != CheckLevel::None &&
      function.hasGrid)
    fail(instr.location, "LX scratchpad overflow: live data tiles need " +
                             std::to_string(needed) + " bytes, available " +
                             std::to_string(capacity - viewBytes) +
                             " bytes (capacity " + std::to_string(capacity) +
                             " bytes, views " + std::to_string(viewBytes) +
                             " bytes)");
}

void Core::moveTileBytes(int to, TensorUse use) {
  // Without a move both slots share one tile, which counts once.
  int64_t bytes = use.dies ? tileBytes[use.slot] : 0;
  if (use.dies)
    tileBytes[use.slot] = 0;
  liveTileBytes -= tileBytes[to];
  tileBytes[to] = bytes;
}

void Core::noteViewInLX(int64_t first, int64_t end) {
  first = std::max<int64_t>(first, 0);
  end = std::min(end, memory->lxSizeInBytes());
  if (first >= end)
    return; // its accesses will say so
  auto at = std::lower_bound(viewRanges.begin(), viewRanges.end(),
                             std::pair(first, end));
  if (at != viewRanges.begin() && std::prev(at)->second >= first)
    --at;
  while (at != viewRanges.end() && at->first <= end) {
    if (at->first <= first && end <= at->second)
      return;
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    viewBytes -= at->second - at->first;
    at = viewRanges.erase(at);
  }
  viewRanges.insert(at, {first, end});
  viewBytes += end - first;
}

void Core::noteSpan(int location, const TileVal &tile) {
  if (tile.numElements == 0)
    return;
  auto [low, high] = tile.byteRange();
  auto &[first, end] = spans[tile.plan->viewSlot];
  first = std::min(first, low);
  end = std::max(end, high);
  if (end - first > memory->spanInBytes())
    fail(location, "one core's accesses through this view span " +
                       std::to_string(end - first) +
                       " bytes of device memory, but a core addresses " +
                       std::to_string(memory->spanInBytes()));
}

void Core::noteRead(const TileVal &tile) {
  // Bytes of tiles worth prefetching: smaller ones arrive fast enough, larger
  // ones do not stay in the second-level cache.
  constexpr int64_t least = 16 << 10, most = 256 << 10;
  int64_t bytes = tile.numElements * deviceSize(tile.view.elem);
  if (bytes < least || bytes > most || tile.view.isLX)
    return;
  auto [first, end] = tile.byteRange();
  if (end - first != bytes)
    return;
  readAhead = {};
  if (first == lastReadEnd)
    readAhead = {memory->at(uint64_t(end)), memory->at(uint64_t(end)) + bytes};
  lastReadEnd = end;
}

void Core::enter(int64_t core, const Scalar *args) {
  coreId = core;
  coordinate[0] = core % function.grid[0];
  coordinate[1] = core / function.grid[0] % function.grid[1];
  coordinate[2] = core / (function.grid[0] * function.grid[1]);
  for (size_t i = 0; i < function.argSlots.size(); ++i)
    scalars[function.argSlots[i]] = args[i];
  std::fill(tileBytes.begin(), tileBytes.end(), 0);
  liveTileBytes = viewBytes = 0;
  viewRanges.clear();
  std::fill(spans.begin(), spans.end(),
            std::pair(std::numeric_limits<int64_t>::max(),
                      std::numeric_limits<int64_t>::min()));
}

void Core::execute(int64_t core, const Scalar *args) {
  enter(core, args);
  function.body.run(*this);
}
