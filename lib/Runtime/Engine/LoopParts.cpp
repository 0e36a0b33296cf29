// SPDX-License-Identifier: Apache-2.0
//===- LoopParts.cpp - Loops on tiles in sticks -----------------*- C++ -*-===//
//
// Tiles of device memory are in sticks: all rows of 64 columns, then all rows
// of the next ones. A loop over them computes point by point, so it can go
// stick by stick, too, through memory in its order.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"

#include <algorithm>
#include <vector>

using namespace spyre::runtime;

namespace {
/// An input of DL16 that is read part by part, into a dense buffer.
struct PartedInput {
  int operand;
  TileVal::EvenParts parts;
  unsigned rank;
  size_t sizes[kMaxRank];
  ptrdiff_t strides[kMaxRank]; ///< of the buffer
  Buffer *buffer = nullptr;

  PartedInput(int operand, const TileVal::EvenParts &parts, const TileVal &tile)
      : operand(operand), parts(parts), rank(unsigned(tile.plan->rank)) {
    ptrdiff_t stride = 1;
    for (unsigned d = rank; d-- > 0;) {
      bool isSplit = int(d) == parts.first.dim;
      sizes[d] = size_t(isSplit ? parts.first.length : tile.sizes[d]);
      strides[d] = stride;
      stride *= ptrdiff_t(sizes[d]);
    }
  }
  size_t numElements() const {
    size_t count = 1;
    for (unsigned d = 0; d < rank; ++d)
      count *= sizes[d];
    return count;
  }
  /// The first `length` positions of a part.
  void load(int64_t number, int64_t length) {
    sizes[parts.first.dim] = size_t(length);
    const uint8_t *codes =
        parts.first.first + number * parts.distance * int64_t(sizeof(uint16_t));
    ptrdiff_t from[kMaxRank];
    std::copy(parts.first.strides, parts.first.strides + rank, from);
    kernels().loadFloat(ElementFormat::DL16,
                        reinterpret_cast<float *>(buffer->data()), strides,
                        codes, from, sizes, rank);
  }
};
} // namespace

/// runInto() of a tile in parts, where inputs in parts are in such parts, too.
bool StructuredLoop::runIntoParts(Core &core, const TileVal &tile) const {
  std::optional<TileVal::EvenParts> to = tile.evenParts();
  if (strategy != Parallel || hasIndex || !to || to->distance == 0 ||
      !tile.isApart(*to))
    return false;
  int split = outputs[0].map[to->first.dim].terms[0].first;
  std::vector<PartedInput> parted;
  bool isParted[kMaxOperands] = {};
  for (size_t k = 0; k < inputs.size(); ++k) {
    const LoopOperand &in = inputs[k];
    const TensorVal &t = core.tensors[in.use.slot];
    int dim = dimOf(in, split);
    if (t.deferredTile < 0 || dim == -1)
      continue;
    const TileVal &source = core.tiles[t.deferredTile];
    std::optional<TileVal::EvenParts> parts = source.evenParts();
    // What is in one part is loaded whole.
    if (parts && parts->distance == 0)
      continue;
    if (!parts || dim != parts->first.dim || in.elem != Elem::F16 ||
        parts->first.length != to->first.length ||
        (source.hostBytes().first < tile.hostBytes().second &&
         tile.hostBytes().first < source.hostBytes().second))
      return false;
    for (int l = 0; l < numLoops; ++l)
      if (dimOf(in, l) == -2)
        return false;
    parted.emplace_back(int(k), *parts, source);
    isParted[k] = true;
  }
  if (parted.empty())
    return false;
  for (size_t k = 0; k < inputs.size(); ++k)
    if (!isParted[k])
      loadDeferred(core, inputs[k]);
  Nest whole;
  makeNestInto(core, tile, to->first, whole);
  for (PartedInput &input : parted) {
    input.buffer = core.pool->get(input.numElements() * sizeof(float));
    for (int l = 0; l < numLoops; ++l) {
      int dim = dimOf(inputs[input.operand], l);
      whole.loops[l].stride[input.operand] = dim < 0 ? 0 : input.strides[dim];
    }
  }
  int64_t extent = whole.loops[split].extent, number = 0;
  for (int64_t start = 0; start < extent; start += to->first.length, ++number) {
    Nest nest = whole;
    Loop &loop = nest.loops[split];
    loop.extent = std::min(to->first.length, extent - start);
    for (int k = 0; k < nest.numInputs; ++k)
      if (!isParted[k])
        nest.base[k] = nest.at(k, start * loop.stride[k]);
    nest.base[nest.codes] += number * to->distance * int64_t(sizeof(uint16_t));
    for (PartedInput &input : parted) {
      input.load(number, loop.extent);
      nest.base[input.operand] = input.buffer->data();
    }
    runParallel(core, nest);
  }
  for (PartedInput &input : parted)
    core.pool->release(input.buffer);
  return true;
}
