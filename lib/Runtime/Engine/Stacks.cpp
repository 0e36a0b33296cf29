// SPDX-License-Identifier: Apache-2.0
//===- Stacks.cpp - Iterations of small kernels that run as one -----------===//

#include "Stacks.h"
#include "DenseRun.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <tuple>

using namespace spyre;
using namespace spyre::runtime;

// The most elements of the tiles of one slot in a stack: those of a load, a
// loop and a store fit in the second-level cache, and most of them in the
// first.
static constexpr int64_t kStackElements = 8192;

// The most elements of a dense stack: these pass through the first-level cache
// block by block. Several stacks are work for several threads.
static constexpr int64_t kDenseElements = 65536;

// The most stacks of a kernel. If there are more, the iterations are large or
// differ much, and it is not worth keeping what is known of them.
static constexpr size_t kMaxStacks = 256;

//===----------------------------------------------------------------------===//
// Finding stacks
//===----------------------------------------------------------------------===//

/// Goes through the iterations of all cores, without data, and stacks those
/// that it can. May throw Error.
class KernelStacks::Finder {
public:
  Finder(KernelStacks &result, Core &core, const Scalar *args);

  /// False if the kernel is to run core by core.
  bool find();

private:
  bool visit(const Block &block);
  bool addIteration();
  bool isDense() const;
  bool extendStack(Stack &stack);
  void addStack();
  /// False if a tile is in the LX of another core.
  bool noteExtents();
  /// Whether no two iterations of the core at hand store in one place.
  bool storesApart();

  KernelStacks &result;
  Core &core;
  const Scalar *args;
  std::vector<TileVal *> now; ///< the tiles of this iteration, per access
  int64_t largest = 0;        ///< elements of one of them
  struct Stored {
    size_t access;
    uint8_t *first, *end;
    bool operator<(const Stored &other) const {
      return std::tie(access, first) < std::tie(other.access, other.first);
    }
  };
  std::vector<Stored> stored; ///< by the core at hand
};

KernelStacks::Finder::Finder(KernelStacks &result, Core &core,
                             const Scalar *args)
    : result(result), core(core), args(args) {
  result.stacks.clear();
  result.extents.clear();
  for (const TileBlock::Step &step : result.tiles.steps) {
    if (!step.accessesMemory())
      continue;
    now.push_back(&core.tiles[step.tileSlot()]);
    result.extents.push_back({step.store != nullptr, step.argument});
  }
  result.isAlike.assign(now.size() * now.size(), true);
}

bool KernelStacks::Finder::find() {
  for (int64_t index = 0; index < core.function.numCores(); ++index) {
    core.enter(index, args);
    stored.clear();
    if (!visit(core.function.body) || !storesApart())
      return false;
  }
  for (Stack &stack : result.stacks)
    for (Access &access : stack.accesses)
      access.tile.stack(stack.count, access.distance);
  return true;
}

bool KernelStacks::Finder::visit(const Block &block) {
  for (const std::unique_ptr<Instr> &instr : block.instrs) {
    if (auto *loop = dynamic_cast<const ForInstr *>(instr.get())) {
      int64_t trips = loop->count(core);
      int64_t low = core.scalars[loop->lower].i;
      int64_t by = core.scalars[loop->step].i;
      for (int64_t i = 0; i < trips; ++i) {
        core.scalars[loop->induction].i = low + i * by;
        if (!visit(loop->body))
          return false;
      }
    } else if (auto *condition = dynamic_cast<const IfInstr *>(instr.get())) {
      if (!visit(core.scalars[condition->condition].i ? condition->thenBlock
                                                      : condition->elseBlock))
        return false;
    } else if (!result.tiles.isStep(*instr)) {
      instr->run(core);
    }
  }
  return &block != result.tiles.block || addIteration();
}

bool KernelStacks::Finder::addIteration() {
  largest = 0;
  bool isEmpty = false;
  for (TileVal *tile : now) {
    largest = std::max(largest, tile->numElements);
    isEmpty |= tile->numElements == 0;
    if (!tile->prepare().empty() || tile->view.isWide)
      return false;
  }
  if (isEmpty)
    return largest == 0;
  if (largest > (isDense() ? kDenseElements : kStackElements))
    return false;
  if (!noteExtents())
    return false;
  if (result.stacks.empty() || !extendStack(result.stacks.back()))
    addStack();
  return result.stacks.size() <= kMaxStacks;
}

/// Whether TileBlock::loop can run on the tiles of this iteration as they lie
/// in memory: one element behind the other, in the order of the loop or, in all
/// of them alike, in another one.
bool KernelStacks::Finder::isDense() const {
  const TileBlock &tiles = result.tiles;
  if (!tiles.loop)
    return false;
  bool areInOrder = true, areAlike = true;
  const TileVal *first = nullptr;
  for (size_t k = 0; k < tiles.operands.size(); ++k) {
    const TileVal &tile = *now[tiles.operands[k]];
    if (tile.numElements != (tiles.isOne[k] ? 1 : largest))
      return false;
    areInOrder = areInOrder && tile.isDense();
    if (tiles.isOne[k])
      continue;
    if (!first)
      first = &tile;
    areAlike = areAlike && first->bytesTo(tile);
  }
  return areInOrder || (first && areAlike && first->isGapless());
}

bool KernelStacks::Finder::noteExtents() {
  const DeviceMemory &memory = *core.memory;
  for (size_t k = 0; k < now.size(); ++k) {
    Extent &extent = result.extents[k];
    const TileVal &tile = *now[k];
    auto [first, end] = tile.hostBytes();
    if (tile.view.isLX) {
      // Each core has its own: what they access is compared as if it were that
      // of the first.
      ptrdiff_t toFirst = memory.lx(0) - memory.lx(core.coreId);
      first += toFirst;
      end += toFirst;
      if (first < memory.lx(0) || end > memory.lx(0) + memory.lxSizeInBytes())
        return false;
    }
    if (!extent.first) {
      extent.first = first;
      extent.end = end;
      extent.size = deviceSize(tile.view.elem);
      extent.isChecked = !tile.view.isLX && core.check != CheckLevel::None;
      extent.origin = tile.view.base;
      for (int d = 0; extent.isChecked && d < tile.view.rank; ++d)
        extent.origin += tile.view.lo[d] * tile.view.strides[d] * extent.size;
      if (extent.argument >= 0)
        extent.anchor = core.memory->at(uint64_t(args[extent.argument].i) *
                                        uint64_t(extent.size));
    }
    extent.first = std::min(extent.first, first);
    extent.end = std::max(extent.end, end);
    if (extent.isStore)
      stored.push_back({k, first, end});
  }
  for (size_t s = 0; s < now.size(); ++s)
    for (size_t k = 0; k < now.size(); ++k) {
      const Extent &store = result.extents[s], &other = result.extents[k];
      if (!store.isStore || s == k)
        continue;
      std::optional<int64_t> bytes = now[s]->bytesTo(*now[k]);
      if (!bytes || *bytes != other.anchor - store.anchor)
        result.isAlike[s * now.size() + k] = false;
    }
  return true;
}

bool KernelStacks::Finder::storesApart() {
  std::sort(stored.begin(), stored.end());
  for (size_t i = 1; i < stored.size(); ++i)
    if (stored[i].access == stored[i - 1].access &&
        stored[i].first < stored[i - 1].end)
      return false;
  return true;
}

void KernelStacks::Finder::addStack() {
  Stack &stack = result.stacks.emplace_back();
  stack.count = 1;
  stack.isDense = isDense();
  for (const TileVal *tile : now)
    stack.accesses.push_back({*tile, 0});
  for (int slot : result.tiles.scalars)
    stack.scalars.push_back(core.scalars[slot]);
}

bool KernelStacks::Finder::extendStack(Stack &stack) {
  for (size_t i = 0; i < stack.scalars.size(); ++i)
    if (stack.scalars[i].i != core.scalars[result.tiles.scalars[i]].i)
      return false;
  std::vector<int64_t> distances;
  for (size_t k = 0; k < now.size(); ++k) {
    const Access &access = stack.accesses[k];
    std::optional<int64_t> bytes = access.tile.bytesTo(*now[k]);
    int64_t step = result.extents[k].size;
    if (!bytes || *bytes % (step * stack.count) != 0)
      return false;
    distances.push_back(*bytes / (step * stack.count));
    if (stack.count > 1 && distances.back() != access.distance)
      return false;
  }
  bool staysDense = stack.isDense;
  for (size_t o = 0; staysDense && o < result.tiles.operands.size(); ++o)
    staysDense = distances[result.tiles.operands[o]] ==
                 (result.tiles.isOne[o] ? 0 : largest);
  if ((stack.count + 1) * largest >
      (staysDense ? kDenseElements : kStackElements))
    return false;
  stack.isDense = staysDense;
  for (size_t k = 0; k < now.size(); ++k)
    stack.accesses[k].distance = distances[k];
  ++stack.count;
  return true;
}

//===----------------------------------------------------------------------===//
// Running stacks
//===----------------------------------------------------------------------===//

bool KernelStacks::isOrdered() const {
  // An iteration may access what it has stored, as all do in one place, but
  // nothing that another one stores.
  for (size_t s = 0; s < extents.size(); ++s)
    for (size_t k = 0; k < extents.size(); ++k) {
      const Extent &store = extents[s], &other = extents[k];
      if (!store.isStore || s == k || store.end <= other.first ||
          other.end <= store.first)
        continue;
      if (store.anchor != other.anchor || !isAlike[s * extents.size() + k])
        return false;
    }
  return true;
}

bool KernelStacks::moveTo(const DeviceMemory &memory, const Scalar *args) {
  for (size_t k = 0; k < extents.size(); ++k) {
    Extent &extent = extents[k];
    if (extent.argument >= 0) {
      int64_t address;
      if (__builtin_mul_overflow(args[extent.argument].i, extent.size,
                                 &address))
        return false;
      ptrdiff_t moved = memory.at(uint64_t(address)) - extent.anchor;
      if (moved != 0) {
        for (uint8_t **place :
             {&extent.anchor, &extent.origin, &extent.first, &extent.end})
          *place += moved;
        for (Stack &stack : stacks)
          stack.accesses[k].tile.view.base += moved;
      }
    }
    if (!extent.isChecked)
      continue;
    auto [first, end] =
        memory.blockOf(static_cast<uint64_t>(extent.origin - memory.at(0)));
    if (extent.first < memory.at(first) || extent.end > memory.at(end))
      return false;
  }
  return isOrdered();
}

bool KernelStacks::find(Core &probe, const Scalar *args) {
  return Finder(*this, probe, args).find();
}

bool KernelStacks::place(Core &probe, const Scalar *args) {
  if (!moveTo(*probe.memory, args))
    return false;
  findResults(probe);
  return true;
}

void KernelStacks::run(Core &core, int64_t number) const {
  const Stack &stack = stacks[number];
  for (size_t i = 0; i < stack.scalars.size(); ++i)
    core.scalars[tiles.scalars[i]] = stack.scalars[i];
  core.readAhead = {};
  if (stack.isDense)
    return runDense(core, stack);
  core.numStacked = stack.count;
  core.isStacked = true;
  auto access = stack.accesses.begin();
  for (const TileBlock::Step &step : tiles.steps) {
    if (step.load)
      step.load->move(core, (access++)->tile);
    else if (step.store)
      step.store->move(core, (access++)->tile);
    else
      step.instr->run(core);
    for (int slot : step.instr->frees)
      core.releaseTensor(slot);
  }
  core.numStacked = 1;
  core.isStacked = false;
}

bool KernelStacks::canRunOnCodes(const Core &core) const {
  const std::vector<bool> &isOne = tiles.isOne;
  auto numInputs = static_cast<ptrdiff_t>(tiles.loop->inputs.size());
  return tiles.isChain && !core.ieee && !core.shadow &&
         std::find(isOne.begin(), isOne.begin() + numInputs, false) !=
             isOne.begin() + numInputs;
}

/// A chain of DL16 reads codes and writes codes.
void KernelStacks::runOnCodes(Core &core, uint8_t *const *places,
                              int64_t count) const {
  std::vector<ChainInput> inputs(tiles.loop->inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    if (tiles.isOne[k])
      kernels().loadFloatRun(ElementFormat::DL16, places[k], &inputs[k].value,
                             1);
    else
      inputs[k].codes = places[k];
  runChain(core, *tiles.loop, inputs, places[inputs.size()], count);
}

int64_t KernelStacks::pointsOf(const Stack &stack) const {
  size_t output = tiles.operands[tiles.loop->inputs.size()];
  return stack.accesses[output].tile.numElements * stack.count;
}

void KernelStacks::findResults(Core &core) {
  results = nullptr;
  if (!tiles.loop || !CodeTable::isFor(*tiles.loop))
    return;
  // What is read twice is two inputs.
  for (size_t k = 0; k < tiles.loop->inputs.size(); ++k)
    if (tiles.operands[k] != tiles.operands[0] || tiles.isOne[k])
      return;
  int64_t points = 0;
  for (const Stack &stack : stacks)
    if (stack.isDense)
      points += pointsOf(stack);
  // For fewer points, the results would come from afar each time.
  if (points >= CodeTable::kCodes)
    results = table.find(core, *tiles.loop, points);
}

void KernelStacks::runDense(Core &core, const Stack &stack) const {
  int numOperands = static_cast<int>(tiles.operands.size());
  uint8_t *places[StructuredLoop::kMaxOperands];
  for (int k = 0; k < numOperands; ++k)
    places[k] = stack.accesses[tiles.operands[k]].tile.firstByte();
  int64_t count = pointsOf(stack);
  if (!results)
    return runBlocks(core, places, count);
  kernels().lookUp(results, places[0], places[numOperands - 1],
                   static_cast<size_t>(count));
}

void KernelStacks::runBlocks(Core &core, uint8_t *const *places,
                             int64_t count) const {
  const StructuredLoop &loop = *tiles.loop;
  const ScalarProgram &body = loop.body;
  int numInputs = static_cast<int>(loop.inputs.size());
  if (body.yieldsInput() && !tiles.isOne[0] && !core.ieee && !core.shadow &&
      loop.inputs[0].elem == Elem::F16 && loop.outputs.size() == 1 &&
      loop.outputs[0].elem == Elem::F16) {
    std::memmove(places[numInputs], places[0],
                 size_t(count) * sizeof(uint16_t));
    return;
  }
  if (canRunOnCodes(core))
    return runOnCodes(core, places, count);
  runOnDense(core, loop, tiles.isOne, places, count);
}
