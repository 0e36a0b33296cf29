// SPDX-License-Identifier: Apache-2.0
//===- InstrSteps.cpp - Instructions without data -------------------------===//

#include "../Engine/Instrs.h"
#include "../Engine/InterTile.h"
#include "../Engine/LoopNest.h"
#include "Timing.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

void Instr::walk(Core &core) const {
  core.fail(location, "the timing engine does not know this operation");
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void WhileInstr::walk(Core &core) const {
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
  core.fail(location, "the timing engine stopped this loop after " +
                          std::to_string(kMaxTrips) +
                          " iterations: its end may depend on data");
}

void CallInstr::walk(Core &core) const {
  std::vector<Scalar> values;
  for (int slot : args)
    values.push_back(core.scalars[slot]);
  core.timing->call(*callee, values.data(), location, this);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void EmptyInstr::walk(Core &core) const {
  run(core);
  beginTensor(core, dst, -1);
  core.tensors[dst].isUniform = true;
}

void SplatInstr::walk(Core &core) const {
  beginTensor(core, dst, -1);
  TensorVal &t = core.tensors[dst];
  if (shapeOf >= 0)
    t.setShape(core.tensors[shapeOf]);
  else
    setTensorShape(core, location, t, sizes);
  t.isUniform = values.size() == 1;
}

void ExtractInstr::walk(Core &core) const {
  if (core.tensors[source].data) // a constant
    return run(core);
  getElementOffset(core, location, core.tensors[source], indices);
  core.scalars[dst].i = 0;
  core.steps->dataLocation = location;
}

void InsertInstr::walk(Core &core) const {
  TensorVal before = core.tensors[dest.slot];
  getElementOffset(core, location, before, indices);
  beginTensor(core, dst, before.step);
  core.tensors[dst].setShape(before);
  core.tensors[dst].isBuffer = before.isBuffer;
}

void PadInstr::walk(Core &core) const {
  if (!isCopy) {
    run(core); // a shape
    core.tensors[dst].step = core.tensors[source.slot].step;
    return;
  }
  TensorVal shape = core.tensors[padded.slot];
  int step = core.steps->add(this, Unit::SFU, "pad",
                             {core.tensors[source.slot].step, shape.step});
  beginTensor(core, dst, step);
  core.tensors[dst].setShape(shape);
}

void SliceInstr::walk(Core &core) const {
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
    step = core.steps->add(this, Unit::None, "insert_slice",
                           {whole.step, from.step});
  beginTensor(core, dst, step);
  core.tensors[dst].setShape(whole);
}

//===----------------------------------------------------------------------===//
// Structured loops
//===----------------------------------------------------------------------===//

static MacFormat getMacFormat(Elem left, Elem right) {
  if (left != right)
    return MacFormat::FP16;
  return left == Elem::F8E4M3FN || left == Elem::F8E5M2 ? MacFormat::FP8
         : left == Elem::I8                             ? MacFormat::Int8
                                                        : MacFormat::FP16;
}

StructuredLoop::Work StructuredLoop::measure(Core &core) const {
  Nest nest;
  makeNest(core, nest);
  Work work;
  if (strategy == Contraction) {
    work.macs = nest.points;
    work.format = getMacFormat(nest.elem[0], nest.elem[1]);
    // The matrix unit keeps the weights (the second input) and streams M.
    if (nest.points > 0) {
      MatrixLoops loops = takeMatrixLoops(nest);
      work.rows = loops.left == 0 ? loops.m.extent : loops.n.extent;
    }
    return work;
  }
  bool accumulates = strategy != Parallel;
  work.elementOps =
      nest.points * int64_t(body.opsPerPoint + uint64_t(accumulates));
  const DeviceSpec &spec = *core.steps->spec;
  work.sfuElements =
      double(nest.points) *
      (double(body.opsPerPoint - body.transcendentalsPerPoint) *
           spec.getWeight(CostClass::Simple) +
       double(accumulates) * spec.getWeight(CostClass::Accumulation) +
       double(body.transcendentalsPerPoint) *
           spec.getWeight(CostClass::Transcendental));
  return work;
}

KernelKinds StructuredLoop::getKinds(const Work &work) const {
  if (work.macs > 0)
    return toKinds(isBatched ? KernelKind::BatchedProduct
                             : KernelKind::Product);
  if (work.sfuElements == 0)
    return 0;
  return toKinds(strategy == Parallel ? KernelKind::Pointwise
                                      : KernelKind::Reduction);
}

void StructuredLoop::walk(Core &core) const {
  CoreSteps &steps = *core.steps;
  const DeviceSpec &spec = *steps.spec;
  Work work = measure(core);
  uint64_t bytesRead = 0, bytesWritten = 0;
  bool readsBuffer = false, drains = false;
  double exposedShare = 0;
  for (const LoopOperand &in : inputs) {
    const TensorVal &t = core.tensors[in.use.slot];
    steps.addNeed(t.step);
    readsBuffer |= t.isBuffer || t.isUniform;
    drains |= steps.isAccumulated(t.step);
    if (t.step >= 0)
      exposedShare = std::max(exposedShare, steps.list[t.step].exposedShare);
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
    steps.addNeed(t.step);
    if (t.step >= 0)
      bytesRead += bytes;
  }
  // A pass that computes nothing is an address for whoever reads.
  bool isFree = work.macs == 0 && work.sfuElements == 0;
  uint64_t lxBytes = std::max(bytesRead, bytesWritten);
  double lx = isFree ? 0 : lxSeconds(double(lxBytes), spec);
  double busy = work.macs > 0 ? ptSeconds(double(work.macs), double(work.rows),
                                          spec, work.format)
                              : sfuSeconds(work.sfuElements, spec);
  if (work.macs > 0 && core.function.addsPartialResults)
    busy /= spec.partialProductEfficiency;
  Unit unit = isFree ? Unit::None : work.macs > 0 ? Unit::PT : Unit::SFU;
  // The matrix unit has one set of accumulators.
  if (unit == Unit::PT)
    steps.addNeed(steps.lastDrain);
  int step = steps.add(this, unit, name.c_str());
  Step &s = steps.list[step];
  s.seconds = std::max(busy, lx);
  s.isLXBound = lx > busy;
  if (unit == Unit::SFU && drains)
    steps.lastDrain = step;
  s.tileBytes = bytesWritten;
  if (unit == Unit::SFU && exposedShare > 0)
    steps.addWait(this, exposedShare * s.seconds);
  WorkTotals &totals = steps.totals;
  totals.ptMacs += uint64_t(work.macs);
  totals.ptFP16Macs += double(work.macs) / spec.getMacRate(work.format);
  totals.sfuElementOps += uint64_t(work.elementOps);
  totals.sfuElements += work.sfuElements;
  totals.kinds |= getKinds(work);
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

void ProduceInstr::walk(Core &core) const {
  CoreSteps &steps = *core.steps;
  int64_t instance = core.produced[op]++;
  int group = producers.groupOf[core.coreId];
  if (group < 0)
    return;
  core.scalars[groupSlot].i = producers.ids[group];
  body.run(core);
  const TensorVal &t = core.tensors[value];
  core.producedShapes[op].assign(t.sizes, t.sizes + t.rank);
  int step = steps.add(this, Unit::None, "produce", {t.step});
  core.producedSteps[op] = step;
  steps.list[step].sends = core.timing->messageNumber(op, instance);
}

std::vector<int64_t> ReceiveInstr::shapeOfTiles(Core &core,
                                                int64_t numParts) const {
  if (kind == Reduce) {
    const TensorVal &t = core.tensors[identity.slot];
    return {t.sizes, t.sizes + t.rank};
  }
  if (!core.producedShapes[op].empty())
    return core.producedShapes[op];
  if (!hasStaticShape())
    core.fail(location, name + ": the timing engine needs a static shape of "
                               "tiles that the core does not produce itself");
  std::vector<int64_t> shape = resultShape;
  if (kind == Concatenate)
    shape[concatDim] /= static_cast<int64_t>(heard[core.coreId].size());
  if (splitDim >= 0)
    shape[splitDim] *= numParts;
  return shape;
}

void ReceiveInstr::walk(Core &core) const {
  CoreSteps &steps = *core.steps;
  TensorVal &result = core.tensors[dst];
  int group = consumers.groupOf[core.coreId];
  if (group < 0) {
    std::vector<int64_t> shape = shapeWithoutValue(core);
    beginTensor(core, dst, -1);
    result.setSizes(shape);
    return;
  }
  int64_t numParts = static_cast<int64_t>(consumers.cores[group].size());
  std::vector<int64_t> shape = shapeOfTiles(core, numParts);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  uint64_t bytes = uint64_t(count) * deviceSize(elem) /
                   (splitDim >= 0 ? uint64_t(numParts) : 1);
  int64_t message = core.timing->messageNumber(op, core.produced[op] - 1);

  // The matrix unit takes partial sums into its accumulators as they come.
  bool isAccumulated =
      kind == Reduce && steps.isAccumulated(core.producedSteps[op]);
  if (kind == Reduce)
    core.moveTensor(lhs, identity);
  std::vector<int> received;
  for (int producer : heard[core.coreId]) {
    bool isOwn = producer == core.coreId;
    int step = steps.add(this, Unit::Ring, name.c_str(),
                         {isOwn ? core.producedSteps[op] : -1});
    Step &s = steps.list[step];
    s.bytes = isOwn ? 0 : bytes;
    s.isPart = splitDim >= 0;
    s.peer = producer;
    s.message = static_cast<int>(message);
    s.tileBytes = bytes;
    steps.totals.ringBytes += s.bytes;
    received.push_back(step);
    if (kind != Reduce || isAccumulated)
      continue;
    beginTensor(core, rhs, step);
    core.tensors[rhs].setSizes(shape);
    combiner.run(core);
    core.moveTensor(lhs, combined);
  }
  if (kind == Reduce) {
    if (isAccumulated) {
      for (int step : received)
        steps.addNeed(step);
      int sum = steps.add(this, Unit::None, name.c_str());
      steps.list[sum].isAccumulated = true;
      beginTensor(core, dst, sum);
    } else {
      core.moveTensor(dst, {lhs, true});
    }
    if (splitDim >= 0)
      shape[splitDim] /= numParts;
    result.setSizes(hasStaticShape() ? resultShape : shape);
    return;
  }
  if (splitDim >= 0)
    shape[splitDim] /= numParts;
  if (kind == Concatenate)
    shape[concatDim] *= static_cast<int64_t>(received.size());
  for (int step : received)
    steps.addNeed(step);
  beginTensor(core, dst, steps.add(this, Unit::None, name.c_str()));
  result.setSizes(shape);
}
