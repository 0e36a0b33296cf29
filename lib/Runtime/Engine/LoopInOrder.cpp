// SPDX-License-Identifier: Apache-2.0
//===- LoopInOrder.cpp - Loops in the order of device memory --------------===//
//
// A tile of three or more dimensions often fills a range of device memory, but
// few rows of a stick lie behind each other there: in the layout
// [512, 12, 4, 64] of a tensor of 4 x 512 x 768, four. A chain of DL16 goes
// over the range as it is. Operands that are smaller than the tile, as the row
// in `x + row`, are spread in the same order before, as far as they do not
// repeat.
//
//===----------------------------------------------------------------------===//

#include "DenseRun.h"
#include "LoopNest.h"

#include <algorithm>
#include <vector>

using namespace spyre::runtime;

bool StructuredLoop::isChainOfHalves() const {
  auto isHalf = [](const LoopOperand &operand) {
    return operand.elem == Elem::F16;
  };
  return body.isChain() && body.ops[0].elem == Elem::F16 &&
         outputs.size() == 1 &&
         std::all_of(inputs.begin(), inputs.end(), isHalf) &&
         isHalf(outputs[0]);
}

namespace {
/// A loop over a tile that fills a range of memory.
struct MemoryLoop {
  int64_t distance; ///< from one element to the next, in memory
  size_t extent;
  int loop;     ///< of the nest
  int64_t step; ///< of that loop's index
};
using MemoryLoops = std::vector<MemoryLoop>;
} // namespace

// The fewest codes that are spread, so that a call of the kernel is worth it.
static constexpr size_t kMinPeriod = 512;

/// The loops of such a tile in the order of memory, the outermost first.
static MemoryLoops memoryLoopsOf(const std::vector<MapResult> &map,
                                 const TileVal &tile,
                                 const TileVal::EvenParts &parts) {
  MemoryLoops loops;
  const TileVal::StridedPart &first = parts.first;
  for (size_t d = 0; d < map.size(); ++d) {
    const int loop = map[d].terms[0].first;
    const bool isSplit = parts.distance != 0 && int(d) == first.dim;
    const int64_t extent = isSplit ? first.length : tile.sizes[d];
    if (extent > 1)
      loops.push_back({first.strides[d], size_t(extent), loop, 1});
    if (isSplit)
      loops.push_back(
          {parts.distance, size_t(tile.sizes[d] / extent), loop, extent});
  }
  std::sort(loops.begin(), loops.end(),
            [](const MemoryLoop &a, const MemoryLoop &b) {
              return a.distance > b.distance;
            });
  return loops;
}

/// Codes of an operand in the order of the loops, as far as they do not repeat.
/// Its values are rounded, so that each is exactly that of a code.
static Buffer *spread(Core &core, const TensorVal &t, const MemoryLoops &loops,
                      const std::vector<int64_t> &strides, ChainInput &input) {
  size_t first = loops.size(), period = 1;
  while (first > 0 &&
         (period < kMinPeriod || std::any_of(
                                     strides.begin(), strides.begin() + first,
                                     [](int64_t s) { return s != 0; })))
    period *= loops[--first].extent;
  const auto numCodes = size_t(t.numElements);
  Buffer *buffer = core.pool->get((period + numCodes) * sizeof(uint16_t));
  auto *result = reinterpret_cast<int16_t *>(buffer->data());
  int16_t *codes = result + period;
  kernels().storeFloatRun(ElementFormat::DL16, t.f(), codes, numCodes);
  size_t shape[kMaxRank + 1];
  ptrdiff_t to[kMaxRank + 1], from[kMaxRank + 1];
  unsigned rank = 0;
  ptrdiff_t rest = ptrdiff_t(period);
  for (size_t l = first; l < loops.size(); ++l, ++rank) {
    rest /= ptrdiff_t(loops[l].extent);
    shape[rank] = loops[l].extent;
    to[rank] = rest;
    from[rank] = strides[l];
  }
  kernels().copyInt16(result, to, codes, from, shape, rank);
  input.codes = buffer->data();
  input.period = int64_t(period);
  return buffer;
}

bool StructuredLoop::runInOrder(Core &core, const TileVal &tile) const {
  std::optional<TileVal::EvenParts> parts = tile.evenParts();
  if (!isChainOfHalves() || readsOutput[0] || !parts || !tile.isGapless())
    return false;
  const auto [firstByte, endByte] = tile.hostBytes();
  std::vector<ChainInput> chain(inputs.size());
  bool hasWhole = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const LoopOperand &in = inputs[k];
    const TensorVal &t = core.tensors[in.use.slot];
    if (!in.startsAtZero())
      return false;
    if (2 * t.numElements <= tile.numElements)
      continue;
    if (t.deferredTile < 0 || !(in.map == outputs[0].map))
      return false;
    const TileVal &source = core.tiles[t.deferredTile];
    const auto [first, end] = source.hostBytes();
    if (!tile.bytesTo(source) ||
        (first != firstByte && first < endByte && firstByte < end))
      return false;
    chain[k].codes = source.firstByte();
    hasWhole = true;
  }
  if (!hasWhole)
    return false;
  // Before anything is written: what is read may lie there.
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (chain[k].codes)
      continue;
    loadDeferred(core, inputs[k]);
    if (!core.tensors[inputs[k].use.slot].data)
      return false;
  }
  // Fails if an operand is smaller than the loops.
  Nest nest;
  makeNest(core, nest);
  const MemoryLoops loops = memoryLoopsOf(outputs[0].map, tile, *parts);
  std::vector<Buffer *> buffers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorVal &t = core.tensors[inputs[k].use.slot];
    if (chain[k].codes)
      continue;
    if (t.numElements == 1) {
      chain[k].value = t.f()[0];
      continue;
    }
    std::vector<int64_t> strides;
    for (const MemoryLoop &loop : loops)
      strides.push_back(nest.loops[loop.loop].stride[k] * loop.step);
    buffers.push_back(spread(core, t, loops, strides, chain[k]));
  }
  runChain(core, *this, chain, tile.firstByte(), tile.numElements);
  for (Buffer *buffer : buffers)
    core.pool->release(buffer);
  return true;
}
