// SPDX-License-Identifier: Apache-2.0
//===- LoopNest.cpp - Structured loops over tiles -------------------------===//

#include "LoopNest.h"
#include "MemoryCheck.h"
#include "NaNCheck.h"

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

void StructuredLoop::makeNest(Core &core, Nest &nest) const {
  nest.numInputs = static_cast<int>(inputs.size());
  nest.numOperands = nest.numInputs + static_cast<int>(outputs.size());
  nest.numLoops = numLoops;
  nest.points = 1;
  for (int l = 0; l < numLoops; ++l) {
    auto [k, dim] = extentSource[l];
    Loop &loop = nest.loops[l];
    loop.extent = core.tensors[operandOf(k).use.slot].sizes[dim];
    loop.original = l;
    loop.isReduction = isReduction[l];
    std::fill(loop.stride, loop.stride + nest.numOperands, 0);
    nest.points *= loop.extent;
  }
  for (int k = 0; k < nest.numOperands; ++k) {
    const LoopOperand &o = operandOf(k);
    const TensorVal &t = core.tensors[o.use.slot];
    nest.elem[k] = o.elem;
    // Outputs become row-major.
    const int64_t *strides = nullptr;
    if (k < nest.numInputs && t.deferredTile >= 0)
      strides = core.tiles[t.deferredTile].hostStrides();
    else if (k < nest.numInputs && t.isPermuted)
      strides = t.strides;
    int64_t rowMajor = 1;
    for (int d = static_cast<int>(o.map.size()) - 1; d >= 0; --d) {
      const MapResult &result = o.map[d];
      int64_t step = strides ? strides[d] : rowMajor;
      int64_t low = result.constant, high = result.constant;
      for (auto [l, coefficient] : result.terms) {
        Loop &loop = nest.loops[l];
        loop.stride[k] += coefficient * step;
        int64_t last = coefficient * (loop.extent - 1);
        low += std::min<int64_t>(last, 0);
        high += std::max<int64_t>(last, 0);
      }
      bool isLoop = result.terms.size() == 1 && result.constant == 0 &&
                    result.terms[0].second == 1;
      if (isLoop && nest.loops[result.terms[0].first].extent != t.sizes[d])
        core.fail(location,
                  name + ": dimension " + std::to_string(d) + " of operand " +
                      std::to_string(k) + " has size " +
                      std::to_string(t.sizes[d]) + ", but its loop goes over " +
                      std::to_string(nest.loops[result.terms[0].first].extent));
      if (nest.points > 0 && (low < 0 || high >= t.sizes[d]))
        core.fail(location,
                  name + ": the loops reach index " +
                      std::to_string(low < 0 ? low : high) + " of dimension " +
                      std::to_string(d) + " of operand " + std::to_string(k) +
                      ", whose size is " + std::to_string(t.sizes[d]));
      rowMajor *= t.sizes[d];
    }
  }
  if (core.numStacked > 1)
    addStackLoop(core, nest);
}

/// Puts a loop over the tiles of a stack around the nest.
void StructuredLoop::addStackLoop(Core &core, Nest &nest) const {
  std::copy_backward(nest.loops, nest.loops + nest.numLoops,
                     nest.loops + nest.numLoops + 1);
  ++nest.numLoops;
  Loop &loop = nest.loops[0];
  loop.extent = core.numStacked;
  loop.original = -1;
  loop.isReduction = false;
  for (int k = 0; k < nest.numOperands; ++k)
    loop.stride[k] = core.tensors[operandOf(k).use.slot].numElements;
  nest.points *= core.numStacked;
}

void StructuredLoop::prepareOutputs(Core &core, Nest &nest) const {
  for (size_t r = 0; r < outputs.size(); ++r) {
    const LoopOperand &out = outputs[r];
    TensorVal &init = core.tensors[out.use.slot];
    bool needsInit = readsOutput[r] || !coversOutput[r] || nest.points == 0;
    if (needsInit) {
      core.materialize(out.use.slot, out.elem);
      if (out.use.dies && mayOverwrite(*init.buffer)) {
        core.moveTensor(results[r], out.use);
        continue;
      }
      TensorVal copy = init;
      core.tensors[results[r]].setShape(copy);
      core.allocateTensor(results[r], out.elem, copy.numElements);
      std::memcpy(core.tensors[results[r]].data, copy.data,
                  core.bufferBytes(out.elem, copy.numElements));
      continue;
    }
    // The initial value is not used: if its buffer dies here, overwrite it.
    if (out.use.dies && init.buffer && mayOverwrite(*init.buffer)) {
      core.moveTensor(results[r], out.use);
      core.tensors[results[r]].isPermuted = false;
      continue;
    }
    bool reused = false;
    if (isInPlaceSafe && outputs.size() == 1 && !core.shadow)
      for (const LoopOperand &in : inputs) {
        TensorVal &t = core.tensors[in.use.slot];
        if (!in.use.dies || !t.buffer || t.isPermuted ||
            hostSize(in.elem) != hostSize(out.elem) ||
            t.numElements != init.numElements || !(in.map == out.map) ||
            !mayOverwrite(*t.buffer))
          continue;
        // The input stays readable through its own slot until it is released.
        TensorVal shape = init;
        core.moveTensor(results[r], {in.use.slot, false});
        core.tensors[results[r]].setShape(shape);
        reused = true;
        break;
      }
    if (reused)
      continue;
    TensorVal shape = init;
    core.tensors[results[r]].setShape(shape);
    core.allocateTensor(results[r], out.elem, shape.numElements);
  }
}

/// Computes the addresses of operands that are in host memory, once all buffers
/// are allocated.
void StructuredLoop::setAddresses(Core &core, Nest &nest) const {
  for (int k = 0; k < nest.numOperands; ++k) {
    bool isInput = k < nest.numInputs;
    if (k == nest.codes)
      continue;
    const LoopOperand &o = operandOf(k);
    if (isInput && core.tensors[o.use.slot].deferredTile >= 0) {
      nest.base[k] = nullptr; // each strip has its own
      continue;
    }
    if (isInput && !core.tensors[o.use.slot].isPermuted)
      core.materialize(o.use.slot, o.elem);
    const TensorVal &t =
        core.tensors[isInput ? o.use.slot : results[k - nest.numInputs]];
    nest.base[k] = static_cast<uint8_t *>(t.data);
    int64_t step = 1, offset = 0;
    for (int d = static_cast<int>(o.map.size()) - 1; d >= 0; --d) {
      offset += o.map[d].constant * (t.isPermuted ? t.strides[d] : step);
      step *= t.sizes[d];
    }
    nest.base[k] += offset * int64_t(hostSize(o.elem));
  }
}

void StructuredLoop::runNest(Core &core, Nest &nest) const {
  switch (strategy) {
  case Parallel:
    if (!runPairs(core, nest))
      runParallel(core, nest);
    return;
  case Reduction:
    return runReduction(core, nest);
  case Contraction:
    return runContraction(core, nest);
  case ArgReduction:
    return runArgReduction(core, nest);
  case General:
    return runGeneral(core, nest);
  }
}

bool spyre::runtime::exceedsCaches(const ViewVal &view) {
  constexpr int64_t least = 16 << 20;
  if (view.isLX)
    return false;
  // Without checks the extents of a view are unknown, and huge.
  constexpr int64_t most = int64_t(1) << 40;
  int64_t bytes = deviceSize(view.elem);
  for (int d = 0; d < view.rank; ++d) {
    int64_t extent = view.hi[d] - view.lo[d] + 1;
    if (extent >= most || __builtin_mul_overflow(bytes, extent, &bytes))
      return false;
  }
  return bytes >= least && bytes < most;
}

/// A nest that writes the codes of its only result to a tile, from the first
/// place of a part of it on.
void StructuredLoop::makeNestInto(Core &core, const TileVal &tile,
                                  const TileVal::StridedPart &part,
                                  Nest &nest) const {
  makeNest(core, nest);
  nest.codes = nest.numInputs;
  nest.pastCaches = exceedsCaches(tile.view);
  nest.base[nest.codes] = const_cast<uint8_t *>(part.first);
  for (size_t d = 0; d < outputs[0].map.size(); ++d)
    nest.loops[outputs[0].map[d].terms[0].first].stride[nest.codes] =
        part.strides[d];
  setAddresses(core, nest);
}

bool StructuredLoop::runInto(Core &core, const TileVal &tile,
                             CodeTable *table) const {
  if (outputs[0].elem != Elem::F16 || core.ieee || core.shadow ||
      core.numStacked > 1)
    return false;
  if (moveCodes(core, tile, table))
    return true;
  std::optional<TileVal::StridedPart> part = tile.onlyPart();
  if (!part)
    return runInOrder(core, tile) || runIntoParts(core, tile);
  if (!tile.isApart(*part))
    return false;
  for (const LoopOperand &in : inputs)
    loadDeferred(core, in); // might lie where the first results are written
  Nest nest;
  makeNestInto(core, tile, *part, nest);
  runParallel(core, nest);
  return true;
}

/// linalg.fill and the like: one value for all elements.
bool StructuredLoop::isFill() const {
  return strategy == Parallel && inputs.empty() && outputs.size() == 1 &&
         body.ops.empty() && coversOutput[0] && !readsOutput[0];
}

void StructuredLoop::fill(Core &core) const {
  const LoopOperand &out = outputs[0];
  const TensorVal &init = core.tensors[out.use.slot];
  int result = results[0];
  if (out.use.dies && init.buffer && mayOverwrite(*init.buffer)) {
    core.moveTensor(result, out.use);
    core.tensors[result].isPermuted = false;
  } else {
    TensorVal shape = init;
    core.tensors[result].setShape(shape);
    core.allocateTensor(result, out.elem, shape.numElements);
  }
  ScalarFrame frame;
  enterProgram(core, body, frame);
  const TensorVal &t = core.tensors[result];
  const void *value = frame.ptr[body.yields[0]];
  auto fillWith = [&](auto *elements) {
    std::fill_n(elements, t.numElements * core.numStacked,
                *static_cast<decltype(elements)>(const_cast<void *>(value)));
  };
  if (isFloat(out.elem))
    fillWith(t.f());
  else if (isWide(out.elem))
    fillWith(t.i64());
  else
    fillWith(t.i32());
}

void StructuredLoop::run(Core &core) const {
  if (isFusedAway || (isDelayed && !core.isStacked)) {
    // Other instructions may still need the shape of the result.
    const TensorVal shape = core.tensors[outputs[0].use.slot];
    core.releaseTensor(results[0]);
    core.tensors[results[0]].setShape(shape);
    return;
  }
  if (fused)
    return fused->run(core);
  if (isFill())
    return fill(core);
  Nest nest;
  makeNest(core, nest);
  run(core, nest, takeHalves(core, nest));
}

void StructuredLoop::run(Core &core, Nest &nest, bool hasHalves) const {
  int strip = -1;
  std::optional<FactorOfCodes> factor;
  bool hasDeferred = false;
  for (const LoopOperand &in : inputs)
    hasDeferred |= core.tensors[in.use.slot].deferredTile >= 0;
  if (hasDeferred && !hasHalves) {
    factor = findFactorOfCodes(core, nest);
    if (factor)
      loadDeferred(core, inputs[1 - factor->operand]);
    else
      strip = chooseStrip(core);
    if (!factor && strip < 0)
      for (const LoopOperand &in : inputs)
        loadDeferred(core, in);
  }
  prepareOutputs(core, nest);
  setAddresses(core, nest);
  // If no operand has a NaN, check that the reduction does not compute one.
  bool isWatched = core.shadow && isFloat(outputs[0].elem) &&
                   (strategy == Reduction || strategy == Contraction);
  if (isWatched) {
    auto holdsNaN = [&](int slot, Elem elem) {
      const TensorVal &t = core.tensors[slot];
      return isFloat(elem) && t.data && hasNaN(t.f(), t.numElements);
    };
    for (const LoopOperand &in : inputs)
      isWatched &= !holdsNaN(in.use.slot, in.elem);
    isWatched &= !holdsNaN(results[0], outputs[0].elem);
  }
  if (nest.points == 0)
    return;
  if (factor)
    runOnCodes(core, nest, *factor);
  else if (strip < 0 || takeCodes(core, nest))
    runNest(core, nest);
  else
    runStrips(core, nest, strip);
  if (strategy != Reduction && strategy != Contraction)
    return;
  if (isWatched && hasNaN(core.tensors[results[0]].f(),
                          core.tensors[results[0]].numElements))
    core.failWithNaN(location, name, "numbers and infinities");
  roundSums(core);
}

/// Results are accumulated in fp32, and rounded to the output's type once at
/// the end.
void StructuredLoop::roundSums(Core &core) const {
  Rounding rounding = roundingOf(outputs[0].elem, core.ieee);
  if (rounding != Rounding::None) {
    TensorVal &t = core.tensors[results[0]];
    kernels().round(t.f(), t.f(), t.numElements, rounding);
  }
}

//===----------------------------------------------------------------------===//
// Reading tiles piece by piece
//===----------------------------------------------------------------------===//

/// A factor whose elements take part in more products than this is read again
/// and again, so that all of it should be there.
static constexpr int64_t kFewProducts = 8;

int StructuredLoop::dimOf(const LoopOperand &operand, int loop) const {
  int found = -1;
  for (int d = 0; d < static_cast<int>(operand.map.size()); ++d)
    for (auto [l, coefficient] : operand.map[d].terms)
      if (l == loop) {
        if (found != -1 || operand.map[d].terms.size() != 1 ||
            coefficient != 1 || operand.map[d].constant != 0)
          return -2;
        found = d;
      }
  return found;
}

void StructuredLoop::loadDeferred(Core &core,
                                  const LoopOperand &operand) const {
  const TensorVal &t = core.tensors[operand.use.slot];
  if (t.deferredTile < 0)
    return;
  core.loadTile(operand.use.slot, operand.elem, core.tiles[t.deferredTile]);
}

/// A loop along which every deferred input can be read in pieces, or -1: a
/// parallel one, or the only reduction of a matrix product, which adds the
/// pieces in the same order. Deferred inputs that do not depend on the loop are
/// read now.
int StructuredLoop::chooseStrip(Core &core) const {
  if (hasIndex || (strategy != Parallel && strategy != Reduction &&
                   strategy != Contraction))
    return -1;
  if (strategy == Contraction) {
    int64_t products = 1;
    for (auto [k, dim] : extentSource)
      products *= core.tensors[operandOf(k).use.slot].sizes[dim];
    for (const LoopOperand &in : inputs)
      if (products > kFewProducts * core.tensors[in.use.slot].numElements)
        loadDeferred(core, in);
  }
  bool hasOneReduction =
      std::count(isReduction.begin(), isReduction.end(), true) == 1;
  for (int loop = 0; loop < numLoops; ++loop) {
    if (isReduction[loop] && (strategy != Contraction || !hasOneReduction))
      continue;
    bool fits = true, helps = false;
    for (const LoopOperand &in : inputs) {
      const TensorVal &t = core.tensors[in.use.slot];
      if (t.deferredTile < 0)
        continue;
      int dim = dimOf(in, loop);
      if (dim == -1)
        continue;
      const TileVal &tile = core.tiles[t.deferredTile];
      fits &= dim >= 0 && tile.isStrip(dim);
      helps = true;
    }
    if (!fits || !helps)
      continue;
    for (const LoopOperand &in : inputs)
      if (core.tensors[in.use.slot].deferredTile >= 0 && dimOf(in, loop) == -1)
        loadDeferred(core, in);
    return loop;
  }
  return -1;
}

/// The deferred factor of DL16 of a matrix product whose columns are dense in
/// device memory, so that no decoded copy of it is needed.
std::optional<StructuredLoop::FactorOfCodes>
StructuredLoop::findFactorOfCodes(const Core &core, const Nest &nest) const {
  if (strategy != Contraction || core.ieee)
    return std::nullopt;
  for (int k = 0; k < nest.numInputs; ++k) {
    int other = 1 - k, result = nest.numInputs;
    const TensorVal &tensor = core.tensors[inputs[k].use.slot];
    if (tensor.deferredTile < 0 || nest.elem[k] != Elem::F16 ||
        !isFloat(nest.elem[other]))
      continue;
    FactorOfCodes found;
    found.operand = k;
    int columns = -1;
    std::fill(found.loopOf, found.loopOf + tensor.rank, -1);
    bool hasDims = true;
    for (int l = 0; l < nest.numLoops; ++l) {
      int dim = dimOf(inputs[k], l);
      hasDims &= dim != -2;
      if (dim < 0)
        continue;
      found.loopOf[dim] = l;
      const Loop &loop = nest.loops[l];
      if (loop.extent > 1 && !loop.isReduction && loop.stride[other] == 0 &&
          loop.stride[result] == 1)
        columns = dim;
    }
    if (!hasDims || columns < 0 || isReadAgain(nest, k) ||
        std::count(found.loopOf, found.loopOf + tensor.rank, -1) > 0)
      continue;
    found.parts = core.tiles[tensor.deferredTile].stridedParts();
    auto hasColumns = [&](const TileVal::StridedPart &part) {
      return part.strides[columns] == 1 &&
             (part.dim != columns || part.length > 1);
    };
    if (!found.parts.empty() &&
        std::all_of(found.parts.begin(), found.parts.end(), hasColumns))
      return found;
  }
  return std::nullopt;
}

/// Whether many loops go over all of a factor, of which a product of matrices
/// is but one.
bool StructuredLoop::isReadAgain(const Nest &nest, int factor) {
  Nest fused = nest;
  simplify(fused);
  int64_t products = 1, numLoops = 0;
  for (int l = 0; l < fused.numLoops; ++l)
    if (fused.loops[l].stride[factor] == 0) {
      products *= fused.loops[l].extent;
      ++numLoops;
    }
  return numLoops > 1 && products > kFewProducts;
}

void StructuredLoop::runOnCodes(Core &core, const Nest &whole,
                                const FactorOfCodes &factor) const {
  int k = factor.operand, result = whole.numInputs;
  int rank = core.tensors[inputs[k].use.slot].rank;
  for (const TileVal::StridedPart &part : factor.parts) {
    Nest nest = whole;
    if (part.dim >= 0) {
      Loop &loop = nest.loops[factor.loopOf[part.dim]];
      loop.extent = part.length;
      for (int operand : {1 - k, result})
        nest.base[operand] =
            nest.at(operand, part.start * loop.stride[operand]);
    }
    for (int d = 0; d < rank; ++d)
      nest.loops[factor.loopOf[d]].stride[k] = part.strides[d];
    nest.base[k] = const_cast<uint8_t *>(part.first);
    nest.codes = k;
    runContraction(core, nest);
  }
}

void StructuredLoop::runStrips(Core &core, const Nest &whole, int strip) const {
  // Bytes of all pieces together: a little more than the first-level cache. A
  // factor stays in it, beside what is fetched ahead.
  const int64_t stripBytes = strategy == Contraction ? 16 << 10 : 64 << 10;
  int64_t extent = whole.loops[strip].extent;
  int64_t bytesPerStep = 0;
  struct Piece {
    int operand, dim;
    const TileVal *tile;
    Buffer *buffer;
  };
  Piece pieces[kMaxOperands];
  int numPieces = 0;
  for (int k = 0; k < whole.numInputs; ++k) {
    const TensorVal &t = core.tensors[inputs[k].use.slot];
    if (t.deferredTile < 0)
      continue;
    pieces[numPieces++] = {k, dimOf(inputs[k], strip),
                           &core.tiles[t.deferredTile], nullptr};
    bytesPerStep += t.numElements / extent * int64_t(hostSize(inputs[k].elem));
  }
  int64_t length = std::min(
      extent,
      std::max<int64_t>(stripBytes / std::max<int64_t>(bytesPerStep, 1), 1));
  for (int i = 0; i < numPieces; ++i) {
    const TensorVal &t = core.tensors[inputs[pieces[i].operand].use.slot];
    pieces[i].buffer = core.pool->get(size_t(t.numElements / extent * length) *
                                      hostSize(inputs[pieces[i].operand].elem));
  }
  for (int64_t start = 0; start < extent; start += length) {
    Nest nest = whole;
    Loop &loop = nest.loops[strip];
    loop.extent = std::min(length, extent - start);
    for (int k = 0; k < nest.numOperands; ++k)
      if (nest.base[k])
        nest.base[k] = nest.at(k, start * loop.stride[k]);
    for (int i = 0; i < numPieces; ++i) {
      pieces[i].tile->load(pieces[i].buffer->data(), core.ieee, pieces[i].dim,
                           start, loop.extent);
      nest.base[pieces[i].operand] = pieces[i].buffer->data();
    }
    runNest(core, nest);
  }
  for (int i = 0; i < numPieces; ++i)
    core.pool->release(pieces[i].buffer);
}
