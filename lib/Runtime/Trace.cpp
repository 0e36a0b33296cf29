// SPDX-License-Identifier: Apache-2.0
//===- Trace.cpp - Instructions without data ------------------------------===//

#include "GenericNest.h"
#include "Instrs.h"
#include "InterTile.h"
#include "Timing.h"
#include "Tracer.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

const char *spyre::runtime::toString(Unit unit) {
  static const char *const names[] = {"pt",    "sfu",  "load",
                                      "store", "ring", "none"};
  return names[int(unit)];
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

int CoreTrace::add(const Instr *instr, Unit unit, const char *name,
                   std::initializer_list<int> required) {
  int index = static_cast<int>(steps.size());
  Step step;
  step.unit = unit;
  step.location = instr->location;
  step.name = name;
  step.needsBegin = static_cast<int>(needs.size());
  auto need = [&](int other) {
    if (other < 0)
      return;
    needs.push_back(other);
    steps[other].lastUse = index;
  };
  for (int other : required)
    need(other);
  for (int other : pending)
    need(other);
  pending.clear();
  // Two buffers per tile: the last user of the one before the last.
  auto [it, isNew] = history.try_emplace(instr, -1, -1);
  auto &[last, beforeLast] = it->second;
  // What the step itself needs, as the parts of one tile, it does not wait for.
  if (beforeLast >= 0 && steps[beforeLast].lastUse >= 0 &&
      steps[beforeLast].lastUse != index)
    needs.push_back(steps[beforeLast].lastUse);
  beforeLast = last;
  last = index;
  std::sort(needs.begin() + step.needsBegin, needs.end());
  needs.erase(std::unique(needs.begin() + step.needsBegin, needs.end()),
              needs.end());
  step.needsEnd = static_cast<int>(needs.size());
  steps.push_back(step);
  return index;
}

void CoreTrace::noteWrite(bool isLX, int64_t low, int64_t high, int step) {
  if (step < 0)
    return;
  Writes &w = writes[isLX];
  w.low = w.list.empty() ? low : std::min(w.low, low);
  w.high = w.list.empty() ? high : std::max(w.high, high);
  w.list.push_back({low, high, step});
}

int CoreTrace::needWrites(bool isLX, int64_t low, int64_t high) {
  // Of many overlapping writes the last ones are enough: each unit works in
  // order.
  constexpr int kMaxLooks = 256;
  const Writes &w = writes[isLX];
  int found = -1;
  if (w.list.empty() || low >= w.high || high <= w.low)
    return found;
  int looks = 0;
  for (size_t i = w.list.size(); i-- > 0 && looks < kMaxLooks; ++looks)
    if (low < w.list[i].high && high > w.list[i].low) {
      addNeed(w.list[i].step);
      found = std::max(found, w.list[i].step);
      if (low >= w.list[i].low && high <= w.list[i].high)
        break;
    }
  return found;
}

void Instr::trace(Core &core) const {
  core.fail(location, "the timing engine does not know this operation");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Forgets data of a slot that takes a new value; the shape stays.
static void beginTensor(Core &core, int slot, int step) {
  core.releaseTensor(slot);
  TensorVal &t = core.tensors[slot];
  t.step = step;
  t.isUniform = t.isBuffer = false;
}

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

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void WhileInstr::trace(Core &core) const {
  constexpr int64_t kMaxTrips = 1 << 20;
  enter.run(core);
  for (int64_t trip = 0; trip < kMaxTrips; ++trip) {
    before.run(core);
    if (!core.scalars[condition].i) {
      results.run(core);
      return;
    }
    forward.run(core);
    after.run(core);
    next.run(core);
  }
  core.fail(location, "the timing engine went round this loop " +
                          std::to_string(kMaxTrips) +
                          " times: its end may depend on data");
}

void CallInstr::trace(Core &core) const {
  std::vector<Scalar> values;
  for (int slot : args)
    values.push_back(core.scalars[slot]);
  core.timing->call(*callee, values.data(), location);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void EmptyInstr::trace(Core &core) const {
  run(core);
  beginTensor(core, dst, -1);
  core.tensors[dst].isUniform = true;
}

void SplatInstr::trace(Core &core) const {
  beginTensor(core, dst, -1);
  TensorVal &t = core.tensors[dst];
  if (shapeOf >= 0)
    t.setShape(core.tensors[shapeOf]);
  else
    setTensorShape(core, location, t, sizes);
  t.isUniform = values.size() == 1;
}

void ExtractInstr::trace(Core &core) const {
  if (core.tensors[source].data) // a constant
    return run(core);
  getElementOffset(core, location, core.tensors[source], indices);
  core.scalars[dst].i = 0;
  core.tracer->dataLocation = location;
}

void InsertInstr::trace(Core &core) const {
  TensorVal before = core.tensors[dest.slot];
  getElementOffset(core, location, before, indices);
  beginTensor(core, dst, before.step);
  core.tensors[dst].setShape(before);
  core.tensors[dst].isBuffer = before.isBuffer;
}

void PadInstr::trace(Core &core) const {
  if (!isCopy) {
    run(core); // a shape
    core.tensors[dst].step = core.tensors[source.slot].step;
    return;
  }
  TensorVal shape = core.tensors[padded.slot];
  int step = core.tracer->add(this, Unit::SFU, "pad",
                              {core.tensors[source.slot].step, shape.step});
  beginTensor(core, dst, step);
  core.tensors[dst].setShape(shape);
}

void SliceInstr::trace(Core &core) const {
  // Addresses only: whoever uses the slice reads the large tensor.
  TensorVal from = core.tensors[source.slot];
  TensorVal whole = isInsert ? core.tensors[dest.slot] : from;
  TensorVal part;
  part.rank = 0;
  part.numElements = 1;
  for (int d = 0; d < whole.rank; ++d) {
    int64_t size = sizes[d].get(core);
    checkSlice(core, d, whole.sizes[d]);
    part.numElements *= size;
    if (isInsert || !dropped[d])
      part.sizes[part.rank++] = size;
  }
  if (!isInsert) {
    beginTensor(core, dst, from.step);
    core.tensors[dst].setShape(part);
    core.tensors[dst].isBuffer = from.isBuffer;
    core.tensors[dst].isUniform = from.isUniform;
    return;
  }
  checkInserted(core, from.numElements, part.numElements);
  int step = whole.step;
  if (from.step >= 0 && from.step != whole.step)
    step = core.tracer->add(this, Unit::None, "insert_slice",
                            {whole.step, from.step});
  beginTensor(core, dst, step);
  core.tensors[dst].setShape(whole);
}

//===----------------------------------------------------------------------===//
// Structured loops
//===----------------------------------------------------------------------===//

GenericInstr::Work GenericInstr::measure(Core &core) const {
  Nest nest;
  makeNest(core, nest);
  Work work;
  if (strategy == Contraction) {
    work.macs = nest.points;
    // The matrix unit keeps the weights (the second input) and streams M.
    if (nest.points > 0) {
      MatrixLoops loops = takeMatrixLoops(nest);
      work.rows = loops.left == 0 ? loops.m.extent : loops.n.extent;
    }
    return work;
  }
  uint64_t opsPerPoint = body.opsPerPoint + (strategy != Parallel);
  work.elementOps = nest.points * int64_t(opsPerPoint);
  work.sfuElements = double(nest.points) *
                     (double(opsPerPoint) +
                      double(body.transcendentalsPerPoint) *
                          (core.tracer->spec->sfuTranscendentalWeight - 1));
  return work;
}

void GenericInstr::trace(Core &core) const {
  CoreTrace &trace = *core.tracer;
  const DeviceSpec &spec = *trace.spec;
  Work work = measure(core);
  uint64_t bytesRead = 0, bytesWritten = 0;
  bool readsBuffer = false;
  for (const GenericOperand &in : inputs) {
    const TensorVal &t = core.tensors[in.use.slot];
    trace.addNeed(t.step);
    readsBuffer |= t.isBuffer || t.isUniform;
    // Constants and splats are made on the way.
    if (t.step >= 0 || !t.isUniform)
      bytesRead += uint64_t(t.numElements) * deviceSize(in.elem);
  }
  for (size_t r = 0; r < outputs.size(); ++r) {
    const TensorVal &t = core.tensors[outputs[r].use.slot];
    uint64_t bytes = uint64_t(t.numElements) * deviceSize(outputs[r].elem);
    bytesWritten += bytes;
    if (!readsOutput[r] && coversOutput[r] && strategy == Parallel)
      continue;
    trace.addNeed(t.step);
    if (t.step >= 0)
      bytesRead += bytes;
  }
  // A pass that computes nothing is an address for whoever reads.
  bool isFree = work.macs == 0 && work.sfuElements == 0;
  uint64_t lxBytes = std::max(bytesRead, bytesWritten);
  double lx = isFree ? 0 : lxSeconds(double(lxBytes), spec);
  double busy = work.macs > 0
                    ? ptSeconds(double(work.macs), double(work.rows), spec)
                    : sfuSeconds(work.sfuElements, spec);
  Unit unit = isFree ? Unit::None : work.macs > 0 ? Unit::PT : Unit::SFU;
  int step = trace.add(this, unit, name.c_str());
  Step &s = trace.steps[step];
  s.seconds = std::max(busy, lx);
  s.isLXBound = lx > busy;
  s.tileBytes = bytesWritten;
  WorkTotals &totals = trace.totals;
  totals.ptMacs += uint64_t(work.macs);
  totals.sfuElementOps += uint64_t(work.elementOps);
  totals.sfuElements += work.sfuElements;
  if (!isFree)
    totals.lxTileBytes += lxBytes;
  if (work.macs > 0 && (totals.ptRows == 0 || work.rows < totals.ptRows))
    totals.ptRows = work.rows;
  for (size_t r = 0; r < outputs.size(); ++r) {
    TensorVal shape = core.tensors[outputs[r].use.slot];
    beginTensor(core, results[r], step);
    core.tensors[results[r]].setShape(shape);
    core.tensors[results[r]].isBuffer = isFree && readsBuffer;
  }
}

//===----------------------------------------------------------------------===//
// Between cores
//===----------------------------------------------------------------------===//

void ProduceInstr::trace(Core &core) const {
  CoreTrace &trace = *core.tracer;
  int64_t instance = core.produced[op]++;
  int group = producers.groupOf[core.coreId];
  if (group < 0)
    return;
  core.scalars[groupSlot].i = producers.ids[group];
  body.run(core);
  const TensorVal &t = core.tensors[value];
  core.producedShapes[op].assign(t.sizes, t.sizes + t.rank);
  int step = trace.add(this, Unit::None, "produce", {t.step});
  core.producedSteps[op] = step;
  trace.steps[step].sends = core.timing->messageNumber(op, instance);
}

void ReceiveInstr::trace(Core &core) const {
  CoreTrace &trace = *core.tracer;
  TensorVal &result = core.tensors[dst];
  int group = consumers.groupOf[core.coreId];
  auto setShapeTo = [](TensorVal &t, const std::vector<int64_t> &shape) {
    t.rank = static_cast<int>(shape.size());
    t.numElements = 1;
    for (int d = 0; d < t.rank; ++d)
      t.numElements *= t.sizes[d] = shape[d];
  };
  bool isStatic = std::find(resultShape.begin(), resultShape.end(), -1) ==
                  resultShape.end();
  if (group < 0) {
    std::vector<int64_t> shape = shapeWithoutValue(core);
    beginTensor(core, dst, -1);
    setShapeTo(result, shape);
    return;
  }
  int64_t numParts = static_cast<int64_t>(consumers.cores[group].size());
  // Shapes of tiles: of the identity, of the own tile, or from the result.
  std::vector<int64_t> shape;
  if (kind == Reduce) {
    const TensorVal &t = core.tensors[identity.slot];
    shape.assign(t.sizes, t.sizes + t.rank);
  } else if (!core.producedShapes[op].empty()) {
    shape = core.producedShapes[op];
  } else if (isStatic) {
    shape = resultShape;
    if (kind == Concatenate)
      shape[concatDim] /= static_cast<int64_t>(heard[core.coreId].size());
    if (splitDim >= 0)
      shape[splitDim] *= numParts;
  } else {
    core.fail(location, name + ": the timing engine needs a static shape of "
                               "tiles that the core does not produce itself");
  }
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  uint64_t bytes = uint64_t(count) * deviceSize(elem) /
                   (splitDim >= 0 ? uint64_t(numParts) : 1);
  int64_t message = core.timing->messageNumber(op, core.produced[op] - 1);

  if (kind == Reduce)
    core.moveTensor(lhs, identity);
  std::vector<int> received;
  for (int producer : heard[core.coreId]) {
    bool isOwn = producer == core.coreId;
    int step = trace.add(this, Unit::Ring, name.c_str(),
                         {isOwn ? core.producedSteps[op] : -1});
    Step &s = trace.steps[step];
    s.bytes = isOwn ? 0 : bytes;
    s.isPart = splitDim >= 0;
    s.peer = producer;
    s.message = static_cast<int>(message);
    s.tileBytes = bytes;
    trace.totals.ringBytes += s.bytes;
    received.push_back(step);
    if (kind != Reduce)
      continue;
    beginTensor(core, rhs, step);
    setShapeTo(core.tensors[rhs], shape);
    combiner.run(core);
    core.moveTensor(lhs, combined);
  }
  if (kind == Reduce) {
    core.moveTensor(dst, {lhs, true});
    if (splitDim >= 0)
      shape[splitDim] /= numParts;
    setShapeTo(result, isStatic ? resultShape : shape);
    return;
  }
  if (splitDim >= 0)
    shape[splitDim] /= numParts;
  if (kind == Concatenate)
    shape[concatDim] *= static_cast<int64_t>(received.size());
  for (int step : received)
    trace.addNeed(step);
  beginTensor(core, dst, trace.add(this, Unit::None, name.c_str()));
  setShapeTo(result, shape);
}
