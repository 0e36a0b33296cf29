// SPDX-License-Identifier: Apache-2.0
//===- InstrsMemory.cpp - Views, access tiles, loads and stores -----------===//

#include "Instrs.h"
#include "MemoryCheck.h"
#include "StructuredLoop.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

/// Remembers whether any result did not fit.
struct MemoryViewInstr::CheckedArithmetic {
  bool overflow = false;
  int64_t multiply(int64_t a, int64_t b) {
    int64_t r;
    overflow |= __builtin_mul_overflow(a, b, &r);
    return r;
  }
  int64_t add(int64_t a, int64_t b) {
    int64_t r;
    overflow |= __builtin_add_overflow(a, b, &r);
    return r;
  }
};

/// Byte addresses of a view's elements.
struct MemoryViewInstr::ByteRange {
  int64_t first, end;
  int64_t origin; ///< of the lowest coordinates; lies in the allocation
  bool isEmpty = false;
};

void MemoryViewInstr::setCoordinates(Core &core, ViewVal &v,
                                     CheckedArithmetic &checked) const {
  std::vector<int64_t> symbols;
  symbols.reserve(symbolSlots.size());
  for (int slot : symbolSlots)
    symbols.push_back(core.scalars[slot].i);
  auto evaluate = [&](int form) {
    const LinearForm &f = bounds.forms[form];
    int64_t value = f.constant;
    for (auto [symbol, coefficient] : f.captured)
      value =
          checked.add(value, checked.multiply(coefficient, symbols[symbol]));
    return value;
  };
  for (int d = 0; d < v.rank; ++d) {
    v.strides[d] = strides[d].get(core);
    v.lo[d] = evaluate(lowerForms[d]);
    v.hi[d] = evaluate(upperForms[d]);
  }
  v.set = set.get();
  if (set)
    narrowToSet(core, v, symbols);
}

void MemoryViewInstr::narrowToSet(Core &core, ViewVal &v,
                                  const std::vector<int64_t> &symbols) const {
  // Compute the box around the set; a partition's offset is that of the lowest
  // corner.
  int64_t operands[2 * kMaxRank];
  std::copy_n(symbols.begin(), set->numSymbols, v.symbols);
  std::copy_n(symbols.begin(), set->numSymbols, operands + v.rank);
  if (isPartition)
    for (int d = 0; d < v.rank; ++d) {
      v.lo[d] = -PointSet::kUnbounded;
      v.hi[d] = PointSet::kUnbounded;
    }
  if (!set->narrow(operands, v.lo, v.hi))
    for (int d = 0; d < v.rank; ++d)
      v.lo[d] = 0, v.hi[d] = -1;
  for (int d = 0; d < v.rank; ++d)
    if (v.lo[d] <= -PointSet::kUnbounded || v.hi[d] >= PointSet::kUnbounded)
      core.fail(location, "dimension " + std::to_string(d) +
                              " of the partition's coordinate_set has no "
                              "bound that can be derived");
}

MemoryViewInstr::ByteRange
MemoryViewInstr::setAddress(Core &core, ViewVal &v,
                            CheckedArithmetic &checked) const {
  int64_t elemSize = deviceSize(elem);
  ByteRange bytes;
  int64_t low = 0, high = 0, origin = 0;
  for (int d = 0; d < v.rank; ++d) {
    if (v.hi[d] < v.lo[d]) {
      bytes.isEmpty = true;
      continue;
    }
    int64_t first = checked.multiply(v.lo[d], v.strides[d]);
    int64_t last = checked.multiply(v.hi[d], v.strides[d]);
    origin = checked.add(origin, first);
    low = checked.add(low, std::min(first, last));
    high = checked.add(high, std::max(first, last));
  }
  v.byteAddress = checked.multiply(core.scalars[offsetSlot].i, elemSize);
  bytes.first = checked.add(v.byteAddress, checked.multiply(low, elemSize));
  bytes.end = checked.add(v.byteAddress,
                          checked.multiply(checked.add(high, 1), elemSize));
  bytes.origin = checked.add(v.byteAddress, checked.multiply(origin, elemSize));
  if (isPartition) {
    int64_t shift = checked.multiply(origin, elemSize);
    bytes.origin = v.byteAddress;
    v.byteAddress -= shift;
    bytes.first -= shift;
    bytes.end -= shift;
  }
  return bytes;
}

std::pair<int64_t, int64_t> MemoryViewInstr::enterMemory(Core &core, ViewVal &v,
                                                         const ByteRange &bytes,
                                                         bool isTrusted) const {
  if (isLX) {
    int64_t owner = lxCore < 0 ? core.coreId : lxCore;
    v.base = core.memory->lx(owner);
    if (!bytes.isEmpty && isNoted(core))
      core.noteViewInLX(bytes.first, bytes.end);
    return {0, core.memory->lxSizeInBytes()};
  }
  v.base = core.memory->at(0);
  if (isTrusted)
    return {0, static_cast<int64_t>(core.memory->capacityInBytes())};
  auto block = bytes.origin < 0 ? std::pair<uint64_t, uint64_t>{0, 0}
                                : core.blockOf(bytes.origin);
  if (block.second == 0 && !bytes.isEmpty)
    core.fail(location, "memory view at byte address " +
                            std::to_string(bytes.origin) +
                            " is not in allocated device memory");
  return {static_cast<int64_t>(block.first),
          static_cast<int64_t>(block.second)};
}

bool MemoryViewInstr::dependsOnOffsetOnly() const {
  return (!isLX || lxCore >= 0) && symbolSlots.empty() &&
         std::all_of(strides.begin(), strides.end(),
                     [](const SizeSource &stride) { return stride.slot < 0; });
}

bool MemoryViewInstr::isNoted(const Core &core) const {
  return isLX && (lxCore < 0 || lxCore == core.coreId) &&
         core.check != CheckLevel::None;
}

void MemoryViewInstr::runGang(Core *const *cores, int numCores) const {
  const Core &first = *cores[0];
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    const Core::ViewKey &key = first.viewKeys[dst];
    bool isKnown = i > 0 && key.instr == this &&
                   key.offset == core.scalars[offsetSlot].i && !isNoted(core);
    if (!isKnown) {
      run(core);
    } else if (!(core.viewKeys[dst] == key)) {
      core.views[dst] = first.views[dst];
      core.viewKeys[dst] = key;
    }
  }
}

void MemoryViewInstr::run(Core &core) const {
  ViewVal &v = core.views[dst];
  Core::ViewKey key{this, core.epoch, core.scalars[offsetSlot].i};
  if (core.viewKeys[dst] == key && !isNoted(core))
    return;
  v.elem = elem;
  v.location = location;
  v.isLX = isLX;
  v.lxCore = static_cast<int>(lxCore);
  v.rank = static_cast<int>(strides.size());
  CheckedArithmetic checked;
  setCoordinates(core, v, checked);
  ByteRange bytes = setAddress(core, v, checked);
  if (checked.overflow)
    core.fail(location, "memory view at element " +
                            std::to_string(core.scalars[offsetSlot].i) +
                            " overflows 63-bit addresses");
  bool isTrusted = core.check == CheckLevel::None && !core.zeroOutside;
  auto [blockStart, blockEnd] = enterMemory(core, v, bytes, isTrusted);
  v.isWide = !isLX && !isTrusted &&
             bytes.end - bytes.first > core.memory->spanInBytes();
  v.checked = isTrusted || bytes.isEmpty ||
              (bytes.first >= blockStart && bytes.end <= blockEnd);
  v.limitLo = blockStart - v.byteAddress;
  v.limitHi = blockEnd - v.byteAddress;
  // Out-of-block bases are legal while accesses stay inside: no pointer
  // outside the mapping is ever dereferenced.
  v.base = reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(v.base) +
                                       static_cast<uintptr_t>(v.byteAddress));
  // Without checks the legal coordinates are not needed, except for partitions.
  if (isTrusted && !isPartition) {
    constexpr int64_t unlimited = int64_t(1) << 61;
    std::fill_n(v.lo, v.rank, -unlimited);
    std::fill_n(v.hi, v.rank, unlimited);
    v.set = nullptr;
  }
  core.viewKeys[dst] = dependsOnOffsetOnly() ? key : Core::ViewKey();
}

void SubViewInstr::run(Core &core) const {
  const ViewVal from = core.views[source];
  ViewVal v = from;
  v.rank = 0;
  int64_t offset = 0;
  for (int d = 0; d < from.rank; ++d) {
    int64_t first = offsets[d].get(core), count = sizes[d].get(core);
    int64_t step = strides[d].get(core), last;
    if (__builtin_mul_overflow(count - 1, step, &last) ||
        __builtin_add_overflow(last, first, &last))
      core.fail(location, "subview overflows 63-bit coordinates");
    if (count < 0 || (count > 0 && (std::min(first, last) < from.lo[d] ||
                                    std::max(first, last) > from.hi[d])))
      core.fail(location,
                "dimension " + std::to_string(d) + " at offset " +
                    std::to_string(first) + " with " + std::to_string(count) +
                    " elements and stride " + std::to_string(step) +
                    " leaves the source's range " + std::to_string(from.lo[d]) +
                    " to " + std::to_string(from.hi[d]));
    if (count > 0)
      offset += first * from.strides[d];
    if (dropped[d])
      continue;
    v.lo[v.rank] = core.check == CheckLevel::None ? from.lo[d] : 0;
    v.hi[v.rank] = core.check == CheckLevel::None ? from.hi[d] : count - 1;
    v.strides[v.rank++] = step * from.strides[d];
  }
  int64_t bytes = offset * deviceSize(v.elem);
  v.byteAddress += bytes;
  v.base = reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(v.base) +
                                       static_cast<uintptr_t>(bytes));
  v.limitLo -= bytes;
  v.limitHi -= bytes;
  core.views[dst] = v;
}

void AccessTileInstr::run(Core &core) const {
  TileVal &tile = core.tiles[dst];
  tile.plan = &plan;
  if (plan.partitionSlots.empty()) {
    tile.view = core.views[plan.viewSlot];
    tile.view.elem = plan.movedElem(tile.view.elem);
  }
  tile.indexViews.clear();
  for (int slot : plan.indexViewSlots)
    tile.indexViews.push_back(&core.views[slot]);
  tile.captured.clear();
  for (int slot : plan.capturedSlots)
    tile.captured.push_back(core.scalars[slot].i);
  std::string error = tile.setExtents();
  if (!error.empty())
    core.fail(location, error);
}

// The fewest elements of a tile that is read piece by piece: smaller ones fit
// in the first-level cache as a whole.
static constexpr int64_t kDeferredElements = 8192;

/// Loads or stores a tile of a distributed view.
static void moveDistributed(Core &core, int location, TileVal &tile, void *data,
                            bool isStore) {
  std::vector<const ViewVal *> partitions;
  for (int slot : tile.plan->partitionSlots)
    partitions.push_back(&core.views[slot]);
  if (core.shadow)
    core.shadow->access(core, location, tile, partitions, isStore);
  std::string error =
      tile.moveDistributed(partitions, data, isStore, core.ieee);
  if (!error.empty())
    core.fail(location, error);
}

/// Gets a tile of a view in one memory ready to be loaded or stored.
static void prepare(Core &core, int location, TileVal &tile, bool isStore) {
  std::string error = tile.prepare(core.zeroOutside);
  if (!error.empty())
    core.fail(location, error);
  if (tile.view.isWide)
    core.noteSpan(location, tile);
  if (core.shadow)
    core.shadow->access(core, location, tile, isStore);
}

static void setShape(TensorVal &tensor, const TileVal &tile) {
  tensor.rank = tile.plan->rank;
  std::copy(tile.sizes, tile.sizes + tensor.rank, tensor.sizes);
  tensor.numElements = tile.numElements;
}

void LoadInstr::run(Core &core) const { run(core, isDeferred, 0); }

void LoadInstr::run(Core &core, bool mayDefer, uint64_t version) const {
  TileVal &t = core.tiles[tile];
  if (!t.plan->partitionSlots.empty()) {
    TensorVal &result = core.tensors[dst];
    setShape(result, t);
    core.allocateTensor(dst, elem, t.numElements);
    moveDistributed(core, location, t, result.data, false);
    return;
  }
  prepare(core, location, t, /*isStore=*/false);
  core.noteLoad(t);
  std::optional<HalfFactor> halves = findHalves(core, t);
  if (halves ||
      (mayDefer && t.numElements >= kDeferredElements && !core.shadow)) {
    core.releaseTensor(dst);
    TensorVal &result = core.tensors[dst];
    setShape(result, t);
    result.deferredTile = tile;
    if (halves)
      halves->version = core.versionOfCodes(t, version);
    result.halves = halves;
    return;
  }
  move(core, t);
  core.noteRead(t);
  // It may be outside a loop of products.
  if (isFactor && kernels().gemmOfHalves)
    numberValues(*core.tensors[dst].buffer);
}

std::optional<HalfFactor> LoadInstr::findHalves(const Core &core,
                                                const TileVal &t) const {
  if (denseDim < 0 || core.ieee || core.shadow || !kernels().gemmOfHalves)
    return std::nullopt;
  return t.halfFactor(denseDim);
}

void LoadInstr::move(Core &core, const TileVal &t) const {
  setShape(core.tensors[dst], t);
  core.loadTile(dst, elem, t);
}

void LoadInstr::runGang(Core *const *cores, int numCores) const {
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    const TileVal &t = core.tiles[tile];
    const std::vector<int> &partitions = t.plan->partitionSlots;
    auto isSame = [&](int j) {
      const TileVal &other = cores[j]->tiles[tile];
      if (partitions.empty())
        return t.readsSame(other);
      return t.hasSameCoordinates(other) &&
             core.hasSameViews(partitions, *cores[j]);
    };
    int same = -1;
    for (int j = i - 1; j >= 0 && same < 0; --j) {
      const TensorVal &earlier = cores[j]->tensors[dst];
      if ((earlier.buffer || earlier.halves) && isSame(j))
        same = j;
    }
    if (same >= 0 && cores[same]->tensors[dst].halves) {
      uint64_t &version = cores[same]->tensors[dst].halves->version;
      if (version == 0)
        version = makeVersion();
      run(core, isDeferred, version);
      continue;
    }
    if (same < 0) {
      bool isShared = false;
      for (int j = i + 1; j < numCores && isFactor && !isShared; ++j)
        isShared = isSame(j);
      run(core, isDeferred && !isShared, 0);
      continue;
    }
    core.noteLoad(t);
    core.moveTensor(dst, {dst, false}, *cores[same]);
  }
}

void StoreInstr::checkSizes(const Core &core) const {
  const TensorVal &value = core.tensors[data.slot];
  const TileVal &t = core.tiles[tile];
  for (int d = 0; d < value.rank; ++d)
    if (value.sizes[d] != t.sizes[d])
      core.fail(location, "dimension " + std::to_string(d) +
                              " of the data tile has size " +
                              std::to_string(value.sizes[d]) +
                              ", that of the access tile " +
                              std::to_string(t.sizes[d]));
}

void StoreInstr::run(Core &core) const {
  TileVal &t = core.tiles[tile];
  const TensorVal &value = core.tensors[data.slot];
  checkSizes(core);
  bool isMade = !maker;
  if (!isMade && (core.shadow || !t.plan->partitionSlots.empty())) {
    StructuredLoop::runDelayed(core, rowLoops);
    maker->run(core);
    isMade = true;
  }
  if (!t.plan->partitionSlots.empty()) {
    core.materialize(data.slot, elem);
    core.forgetKeptTiles();
    return moveDistributed(core, location, t, value.data, true);
  }
  prepare(core, location, t, /*isStore=*/true);
  core.noteStore(t);
  if (!isMade) {
    if (!rowLoops.empty()) {
      if (StructuredLoop::runByRows(core, rowLoops, t))
        return;
      StructuredLoop::runDelayed(core, rowLoops);
    }
    if (maker->runInto(core, t, table.get()))
      return;
    maker->run(core);
  }
  core.materialize(data.slot, elem);
  t.store(value.data, core.ieee);
}

void StoreInstr::move(Core &core, const TileVal &t) const {
  core.materialize(data.slot, elem);
  t.store(core.tensors[data.slot].data, core.ieee);
}
