// SPDX-License-Identifier: Apache-2.0
//===- LoopRows.cpp - Several loops that run row by row -------------------===//
//
// A softmax or a normalisation reduces the rows of a tile, computes with the
// results, and stores. One loop after another would take all of the tile
// through the caches each time, and then wait for memory, in which the first
// reads and the last writes. Row by row, one row is in the first-level cache,
// and memory works while the next one is computed: the same operations on each
// row in the same order.
//
// As in LoopFusion.cpp, memory limits, reports and the timing engine use the
// program as it was written.
//
//===----------------------------------------------------------------------===//

#include "Instrs.h"
#include "LoopBlocks.h"

#include <algorithm>
#include <optional>

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Finding such loops
//===----------------------------------------------------------------------===//

namespace {
/// Loops of a block that can run row by row where a store is.
class RowLoops {
public:
  RowLoops(const Block &block, size_t loadAt, size_t storeAt)
      : block(block), loadAt(loadAt), storeAt(storeAt) {}
  bool find();
  void moveIntoStore();

private:
  const Instr &at(size_t i) const { return *block.instrs[i]; }
  static const StructuredLoop &effective(const StructuredLoop &loop) {
    return loop.fused ? *loop.fused : loop;
  }
  bool isRowwise(int slot) const {
    return std::find(rowwise.begin(), rowwise.end(), slot) != rowwise.end();
  }
  bool add(size_t position, const StructuredLoop &loop);
  bool isAside(const Instr &instr) const;
  bool endsHere() const;

  const Block &block;
  size_t loadAt, storeAt;
  std::vector<size_t> positions; ///< of the loops but the store's
  std::vector<RowLoop> loops;    ///< with it
  std::vector<int> rowwise;      ///< slots of tiles whose rows they share
  std::vector<int> read;         ///< slots of other tiles that they read
  std::vector<int> needed;       ///< those, and of their initial values
};
} // namespace

/// The loop over rows, dimension 0 of a tile; -1 if there is none.
static int rowLoopOf(const StructuredLoop &loop, const LoopOperand &operand) {
  if (operand.map.empty() || operand.map[0].constant != 0 ||
      operand.map[0].terms.size() != 1 || operand.map[0].terms[0].second != 1)
    return -1;
  int row = operand.map[0].terms[0].first;
  for (size_t d = 1; d < operand.map.size(); ++d)
    for (auto [l, coefficient] : operand.map[d].terms)
      if (l == row)
        return -1;
  return loop.isReduction[size_t(row)] ? -1 : row;
}

bool RowLoops::add(size_t position, const StructuredLoop &loop) {
  const StructuredLoop &l = effective(loop);
  if ((l.strategy != StructuredLoop::Parallel &&
       l.strategy != StructuredLoop::Reduction) ||
      l.hasIndex || l.body.extracts() || l.body.canFail() ||
      l.outputs.size() != 1)
    return false;
  if (l.strategy == StructuredLoop::Parallel &&
      (l.readsOutput[0] || !l.coversOutput[0]))
    return false;
  int row = rowLoopOf(l, l.outputs[0]);
  const TensorUse &init = l.outputs[0].use;
  if (row < 0 || isRowwise(init.slot))
    return false;
  for (const LoopOperand &in : l.inputs)
    if (!isRowwise(in.use.slot))
      read.push_back(in.use.slot);
    else if (rowLoopOf(l, in) != row || !in.startsAtZero())
      return false;
  // A result takes the place of an initial value before the first row.
  if (init.dies && std::find(read.begin(), read.end(), init.slot) != read.end())
    return false;
  needed.insert(needed.end(), read.begin(), read.end());
  needed.push_back(init.slot);
  rowwise.push_back(l.results[0]);
  if (position != storeAt) {
    positions.push_back(position);
    loops.push_back(
        {loop.fused ? loop.fused : std::make_shared<StructuredLoop>(loop),
         row});
  } else {
    loops.push_back({static_cast<const StoreInstr &>(at(storeAt)).maker, row});
  }
  return true;
}

/// Whether an instruction between the loops may run before all of them.
bool RowLoops::isAside(const Instr &instr) const {
  auto isNeeded = [&](int slot) {
    return std::find(needed.begin(), needed.end(), slot) != needed.end();
  };
  if (std::any_of(instr.frees.begin(), instr.frees.end(), isNeeded))
    return false;
  if (auto *loop = dynamic_cast<const StructuredLoop *>(&instr)) {
    if (loop->isFusedAway)
      return true;
    const StructuredLoop &l = effective(*loop);
    for (const auto *operands : {&l.inputs, &l.outputs})
      for (const LoopOperand &operand : *operands)
        if (isRowwise(operand.use.slot) ||
            (operand.use.dies && isNeeded(operand.use.slot)))
          return false;
    return !l.body.extracts();
  }
  if (auto *program = dynamic_cast<const ScalarProgramInstr *>(&instr))
    return !program->body.extracts();
  return dynamic_cast<const EmptyInstr *>(&instr) ||
         dynamic_cast<const SplatInstr *>(&instr) ||
         dynamic_cast<const ScalarInt *>(&instr) ||
         dynamic_cast<const AffineInstr *>(&instr) ||
         dynamic_cast<const MemoryViewInstr *>(&instr) ||
         dynamic_cast<const AccessTileInstr *>(&instr) ||
         dynamic_cast<const LoadInstr *>(&instr);
}

/// Whether nothing uses the tiles of rows after the store.
bool RowLoops::endsHere() const {
  std::vector<int> freed = at(storeAt).frees;
  for (size_t position : positions)
    freed.insert(freed.end(), at(position).frees.begin(),
                 at(position).frees.end());
  return std::all_of(rowwise.begin(), rowwise.end(), [&](int slot) {
    return std::find(freed.begin(), freed.end(), slot) != freed.end();
  });
}

bool RowLoops::find() {
  auto &load = static_cast<const LoadInstr &>(at(loadAt));
  rowwise.push_back(load.dst);
  bool hasReduction = false;
  for (size_t i = loadAt + 1; i < storeAt; ++i) {
    auto *loop = dynamic_cast<const StructuredLoop *>(&at(i));
    bool isMember =
        loop && !loop->isFusedAway &&
        std::any_of(
            effective(*loop).inputs.begin(), effective(*loop).inputs.end(),
            [&](const LoopOperand &in) { return isRowwise(in.use.slot); });
    if (isMember ? !add(i, *loop) : !isAside(at(i)))
      return false;
    hasReduction |= isMember && loop->strategy == StructuredLoop::Reduction;
  }
  auto &store = static_cast<const StoreInstr &>(at(storeAt));
  bool readsRows = std::any_of(
      store.maker->inputs.begin(), store.maker->inputs.end(),
      [&](const LoopOperand &in) { return isRowwise(in.use.slot); });
  return hasReduction && readsRows && loops.size() < kMaxRowLoops &&
         add(storeAt, *store.maker) && endsHere();
}

void RowLoops::moveIntoStore() {
  auto &store = static_cast<StoreInstr &>(*block.instrs[storeAt]);
  for (size_t position : positions) {
    auto &loop = static_cast<StructuredLoop &>(*block.instrs[position]);
    loop.isFusedAway = true;
    loop.fused.reset();
    store.frees.insert(store.frees.end(), loop.frees.begin(), loop.frees.end());
    loop.frees.clear();
  }
  store.rowLoops = std::move(loops);
  static_cast<LoadInstr &>(*block.instrs[loadAt]).isDeferred = true;
}

void spyre::runtime::groupRows(Block &block) {
  constexpr size_t kMaxDistance = 64; // instructions, for the time it takes
  for (size_t storeAt = 0; storeAt < block.instrs.size(); ++storeAt) {
    auto *store = dynamic_cast<StoreInstr *>(block.instrs[storeAt].get());
    if (!store || !store->maker)
      continue;
    // Nothing moves past another store.
    size_t first = storeAt;
    while (first > 0 && storeAt - first < kMaxDistance &&
           !dynamic_cast<StoreInstr *>(block.instrs[first - 1].get()))
      --first;
    for (size_t loadAt = first; loadAt < storeAt; ++loadAt) {
      auto *load = dynamic_cast<LoadInstr *>(block.instrs[loadAt].get());
      if (!load || load->isDeferred || !isFloat(load->elem))
        continue;
      RowLoops rows(block, loadAt, storeAt);
      if (!rows.find())
        continue;
      rows.moveIntoStore();
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

/// The loops of a store, row by row.
class StructuredLoop::RowwiseRun {
public:
  RowwiseRun(Core &core, const std::vector<RowLoop> &loops, const TileVal &tile)
      : core(core), tile(tile), numLoops(static_cast<int>(loops.size())) {
    for (int i = 0; i < numLoops; ++i)
      steps[i].loop = loops[size_t(i)].loop.get(),
      steps[i].rowLoop = loops[size_t(i)].rows;
  }
  /// Changes nothing if it returns false.
  bool prepare();
  void run();

private:
  /// A tile of device memory that is read row by row.
  struct Source {
    const TileVal *tile;
    float *row;    ///< where its values go
    int reduction; ///< the step that combines them as they are read, or -1
    const uint8_t *dense; ///< the first row in memory, if rows are dense
    int64_t distance;     ///< bytes from one to the next
    int64_t columns;
  };
  struct Step {
    const StructuredLoop *loop;
    int rowLoop;
    Nest nest;
    Loop rows;
    std::optional<BlockwiseRun> parallel;
    std::optional<ReductionRun> reduction;
    Rounding rounding = Rounding::None; ///< of a reduction's results
    int64_t numResults = 1;             ///< of a reduction, per row
    bool isLast = false;
    /// Whether the step before, or the source that it reads, adds this one up.
    bool isMerged = false;
    /// The step that this one adds up, or -1, and how.
    int summed = -1;
    SumOfChain sum;
    std::optional<ChainSteps> chain;
  };

  bool prepareNest(Step &step);
  bool canReadRows(const Step &step, const LoopOperand &operand) const;
  bool isRow(int slot) const {
    return std::find(rowSlots, rowSlots + numRowSlots, slot) !=
           rowSlots + numRowSlots;
  }
  void allocate(Step &step);
  void allocateRow(int slot, Elem elem);
  void openSource(const LoopOperand &operand);
  void enter(Step &step);
  void merge();
  static void findOffsets(const Step &step, int64_t row, int64_t *offset);
  void readRow(const Source &source, int64_t row);
  void runRow(Step &step, int64_t row);
  void reduceRow(Step &step, int64_t row);
  static void roundResults(Step &step, const int64_t *offset);

  static constexpr int kMaxSlots = kMaxRowLoops * kMaxOperands;
  static constexpr int64_t kShortestRow = 1024; ///< elements
  // Bytes.
  static constexpr int64_t kLongRow = 8192, kFetchedAhead = 4096;

  Core &core;
  const TileVal &tile;
  std::optional<TileVal::StridedPart> part; ///< of the tile that is stored
  int64_t numRows = -1;
  Step steps[kMaxRowLoops];
  int numLoops;
  Source sources[kMaxSlots];
  int numSources = 0;
  /// Tensors of which there is but one row at a time.
  int rowSlots[kMaxSlots];
  int numRowSlots = 0;
};

/// Whether the tile of an operand can be read from memory row by row.
bool StructuredLoop::RowwiseRun::canReadRows(const Step &step,
                                             const LoopOperand &operand) const {
  int slot = operand.use.slot;
  const TensorVal &t = core.tensors[slot];
  if (t.deferredTile < 0 || operand.elem != Elem::F16 ||
      t.numElements / numRows < kShortestRow)
    return false;
  const TileVal &source = core.tiles[t.deferredTile];
  if (source.plan->denseInnermost || !source.isStrip(0))
    return false;
  for (const LoopOperand &in : step.loop->inputs)
    if (in.use.slot == slot && rowLoopOf(*step.loop, in) != step.rowLoop)
      return false;
  // What is stored may lie where it was read, row upon row, or elsewhere.
  auto [first, end] = source.byteRange();
  auto [firstStored, endStored] = tile.byteRange();
  if (source.view.isLX != tile.view.isLX || end <= firstStored ||
      endStored <= first)
    return true;
  std::optional<TileVal::StridedPart> from = source.onlyPart();
  return from && t.rank == tile.plan->rank && from->first == part->first &&
         std::equal(from->strides, from->strides + t.rank, part->strides);
}

/// Takes the loop over rows out of the nest. False if the loop does not run row
/// by row.
bool StructuredLoop::RowwiseRun::prepareNest(Step &step) {
  const StructuredLoop &loop = *step.loop;
  Nest &nest = step.nest;
  loop.makeNest(core, nest);
  if (nest.points == 0)
    return false;
  step.rows = nest.loops[step.rowLoop];
  if (numRows >= 0 && step.rows.extent != numRows)
    return false;
  numRows = step.rows.extent;
  nest.erase(step.rowLoop);
  if (step.isLast) {
    nest.codes = nest.numInputs;
    nest.base[nest.codes] = const_cast<uint8_t *>(part->first);
    // Of short rows each would wait until it is in memory.
    nest.pastCaches =
        exceedsCaches(tile.view) &&
        tile.numElements / numRows * int64_t(sizeof(uint16_t)) >= kLongRow;
    const std::vector<MapResult> &map = loop.outputs[0].map;
    for (size_t d = 0; d < map.size(); ++d) {
      int original = map[d].terms[0].first;
      Loop *into = &step.rows;
      for (int l = 0; l < nest.numLoops; ++l)
        if (nest.loops[l].original == original)
          into = &nest.loops[l];
      into->stride[nest.codes] = part->strides[d];
    }
  }
  simplify(nest);
  if (nest.numLoops > 1 ||
      (nest.numLoops == 1 && nest.loops[0].extent < kShortestRow))
    return false;
  // An operand has but one value per row if it does not vary along rows.
  for (int k = 0; k < nest.numInputs; ++k)
    if (step.rows.stride[k] != 0 &&
        core.tensors[loop.inputs[size_t(k)].use.slot].numElements != numRows &&
        (nest.numLoops == 0 || nest.loops[0].stride[k] == 0))
      return false;
  return true;
}

bool StructuredLoop::RowwiseRun::prepare() {
  // Short rows take longer one by one than together.
  if (core.shadow || core.ieee || core.numStacked > 1 ||
      tile.numElements < kShortestRow * tile.sizes[0])
    return false;
  Step &last = steps[numLoops - 1];
  last.isLast = true;
  part = tile.onlyPart();
  if (!part || !tile.isApart(*part) || last.loop->outputs[0].elem != Elem::F16)
    return false;
  for (int i = 0; i < numLoops; ++i)
    if (!prepareNest(steps[i]))
      return false;
  bool reads = false;
  for (int i = 0; i < numLoops; ++i)
    for (const LoopOperand &in : steps[i].loop->inputs)
      reads |= canReadRows(steps[i], in);
  if (!reads)
    return false;
  for (int i = 0; i < numLoops; ++i)
    allocate(steps[i]);
  for (int i = 0; i < numLoops; ++i)
    enter(steps[i]);
  merge();
  return true;
}

/// Gives a tensor the room of one row.
void StructuredLoop::RowwiseRun::allocateRow(int slot, Elem elem) {
  core.allocateTensor(slot, elem, core.tensors[slot].numElements / numRows);
  rowSlots[numRowSlots++] = slot;
}

void StructuredLoop::RowwiseRun::openSource(const LoopOperand &operand) {
  int slot = operand.use.slot;
  TensorVal &t = core.tensors[slot];
  Source &source = sources[numSources++];
  source.tile = &core.tiles[t.deferredTile];
  source.reduction = -1;
  source.dense = nullptr;
  source.columns = t.numElements / numRows;
  if (std::optional<TileVal::StridedPart> from = source.tile->onlyPart()) {
    bool isDense = true;
    int64_t step = 1;
    for (int d = t.rank - 1; d > 0; --d) {
      isDense &= t.sizes[d] == 1 || from->strides[d] == step;
      step *= t.sizes[d];
    }
    if (isDense)
      source.dense = from->first;
    source.distance = from->strides[0] * int64_t(sizeof(uint16_t));
  }
  allocateRow(slot, operand.elem);
  source.row = t.f();
}

/// Makes room for what the step reads and writes.
void StructuredLoop::RowwiseRun::allocate(Step &step) {
  const StructuredLoop &loop = *step.loop;
  for (const LoopOperand &in : loop.inputs) {
    if (core.tensors[in.use.slot].deferredTile < 0)
      continue;
    if (canReadRows(step, in))
      openSource(in);
    else
      loop.loadDeferred(core, in);
  }
  if (step.isLast)
    return;
  int result = loop.results[0];
  const LoopOperand &out = loop.outputs[0];
  if (loop.strategy == Reduction || step.nest.numLoops == 0)
    return loop.prepareOutputs(core, step.nest);
  // The row can take the place of one that dies.
  if (loop.isInPlaceSafe)
    for (const LoopOperand &in : loop.inputs)
      if (in.use.dies && isRow(in.use.slot) && in.map == out.map &&
          hostSize(in.elem) == hostSize(out.elem)) {
        TensorVal shape = core.tensors[result];
        core.moveTensor(result, {in.use.slot, false});
        core.tensors[result].setShape(shape);
        rowSlots[numRowSlots++] = result;
        return;
      }
  allocateRow(result, out.elem);
}

/// Binds the step's operands.
void StructuredLoop::RowwiseRun::enter(Step &step) {
  const StructuredLoop &loop = *step.loop;
  Nest &nest = step.nest;
  loop.setAddresses(core, nest);
  for (int k = 0; k < nest.numOperands; ++k)
    if (k != nest.codes &&
        isRow(k < nest.numInputs ? loop.inputs[size_t(k)].use.slot
                                 : loop.results[0]))
      step.rows.stride[k] = 0;
  if (loop.strategy == Reduction) {
    step.reduction.emplace(loop, core, nest);
    // The largest of values is one of them.
    bool isValue = loop.combiner != ReduceOp::Sum &&
                   loop.combiner != ReduceOp::Mul && loop.body.yieldsInput() &&
                   loop.inputs[0].elem == loop.outputs[0].elem;
    if (!isValue)
      step.rounding = roundingOf(loop.outputs[0].elem, core.ieee);
    step.numResults = core.tensors[loop.results[0]].numElements / numRows;
    return;
  }
  if (nest.numLoops == 0) {
    Loop &unit = nest.loops[nest.numLoops++];
    unit = {};
    unit.extent = 1;
    unit.original = -1;
  }
  nest.loops[1] = nest.loops[0];
  nest.loops[0] = step.rows;
  nest.numLoops = 2;
  step.parallel.emplace(loop, core, nest);
  step.parallel->beginRows();
}

void StructuredLoop::RowwiseRun::findOffsets(const Step &step, int64_t row,
                                             int64_t *offset) {
  for (int k = 0; k < step.nest.numOperands; ++k)
    offset[k] = row * step.rows.stride[k];
}

/// Lets rows be reduced where they are read or made.
void StructuredLoop::RowwiseRun::merge() {
  int64_t offset[kMaxOperands];
  for (int i = 0; i < numLoops; ++i) {
    Step &step = steps[i];
    if (!step.reduction)
      continue;
    findOffsets(step, 0, offset);
    for (int s = 0; s < numSources && !step.isMerged; ++s)
      if (sources[s].dense && sources[s].reduction < 0 &&
          step.reduction->resultOf(sources[s].row, offset)) {
        sources[s].reduction = i;
        step.isMerged = true;
      }
    Step *before = i > 0 ? &steps[i - 1] : nullptr;
    if (step.isMerged || !before || !before->parallel)
      continue;
    const float *row = core.tensors[before->loop->results[0]].f();
    if (!step.reduction->prepareSum(row, offset, step.chain, step.sum))
      continue;
    before->summed = i;
    before->parallel->addUp(step.sum);
    step.isMerged = true;
  }
}

void StructuredLoop::RowwiseRun::readRow(const Source &source, int64_t row) {
  if (!source.dense)
    return source.tile->load(source.row, core.ieee, 0, row, 1);
  const uint8_t *codes = source.dense + row * source.distance;
  auto count = size_t(source.columns);
  if (source.reduction < 0) {
    kernels().loadFloatRun(elementFormat(Elem::F16, core.ieee), codes,
                           source.row, count);
  } else {
    Step &step = steps[source.reduction];
    int64_t offset[kMaxOperands];
    findOffsets(step, row, offset);
    kernels().decodeAndReduce(step.reduction->combiner(), codes, source.row,
                              count,
                              step.reduction->resultOf(source.row, offset));
    roundResults(step, offset);
  }
  // Rows that are next are fetched a few lines at a time while this one is
  // computed: more at once would have to wait for each other.
  int64_t bytes = source.columns * int64_t(sizeof(uint16_t));
  const uint8_t *next =
      codes + source.distance * std::max<int64_t>(1, kFetchedAhead / bytes);
  core.readAhead = {next, next + bytes};
}

/// Results are accumulated in fp32, and rounded to the output's type once.
void StructuredLoop::RowwiseRun::roundResults(Step &step,
                                              const int64_t *offset) {
  if (step.rounding == Rounding::None)
    return;
  int out = step.nest.numInputs;
  float *results = reinterpret_cast<float *>(step.nest.at(out, offset[out]));
  kernels().round(results, results, size_t(step.numResults), step.rounding);
}

void StructuredLoop::RowwiseRun::reduceRow(Step &step, int64_t row) {
  int64_t offset[kMaxOperands];
  findOffsets(step, row, offset);
  step.reduction->runAt(offset);
  roundResults(step, offset);
}

void StructuredLoop::RowwiseRun::runRow(Step &step, int64_t row) {
  if (step.isMerged)
    return;
  if (step.reduction)
    return reduceRow(step, row);
  if (step.summed < 0)
    return step.parallel->runRow(row);
  Step &sum = steps[step.summed];
  int64_t offset[kMaxOperands];
  findOffsets(sum, row, offset);
  const float *values = core.tensors[step.loop->results[0]].f();
  sum.reduction->prepareSum(values, offset, sum.chain, sum.sum);
  step.parallel->runRow(row);
  if (!sum.sum.isDone)
    sum.reduction->runAt(offset);
  roundResults(sum, offset);
}

void StructuredLoop::RowwiseRun::run() {
  for (int64_t row = 0; row < numRows; ++row) {
    for (int s = 0; s < numSources; ++s)
      readRow(sources[s], row);
    for (int i = 0; i < numLoops; ++i)
      runRow(steps[i], row);
  }
  core.readAhead = {};
}

bool StructuredLoop::runByRows(Core &core, const std::vector<RowLoop> &loops,
                               const TileVal &tile) {
  RowwiseRun rows(core, loops, tile);
  if (!rows.prepare())
    return false;
  rows.run();
  return true;
}

void StructuredLoop::runDelayed(Core &core, const std::vector<RowLoop> &loops) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    for (const LoopOperand &in : loops[i].loop->inputs)
      if (int tile = core.tensors[in.use.slot].deferredTile; tile >= 0) {
        loops[i].loop->loadDeferred(core, in);
        core.noteRead(core.tiles[tile]);
      }
    loops[i].loop->run(core);
  }
}
