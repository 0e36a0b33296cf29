// SPDX-License-Identifier: Apache-2.0
//===- LoopCodes.cpp - Loops that move codes from tile to tile ------------===//

#include "CodeTable.h"
#include "StructuredLoop.h"

using namespace spyre::runtime;

/// The strides along the dimensions of a tile that is the loop's only input,
/// in what has strides `to` along the dimensions of the result. Returns false
/// if a dimension of one tile is none of the other's, of the same size.
bool StructuredLoop::followStrides(const TileVal &source, const TileVal &tile,
                                   const int64_t *to, int64_t *strides) const {
  if (inputs[0].map.size() != outputs[0].map.size())
    return false;
  for (size_t d = 0; d < outputs[0].map.size(); ++d) {
    int dim = dimOf(inputs[0], outputs[0].map[d].terms[0].first);
    if (dim < 0 || source.sizes[dim] != tile.sizes[d])
      return false;
    strides[dim] = to[d];
  }
  return true;
}

/// Moves codes from device memory to it, if that is all that the loop does, or
/// what it makes of each, which the table says.
bool StructuredLoop::moveCodes(Core &core, const TileVal &tile,
                               CodeTable *table) const {
  const LoopOperand &in = inputs[0];
  const TensorVal &t = core.tensors[in.use.slot];
  if (inputs.size() != 1 || in.elem != Elem::F16 || t.deferredTile < 0)
    return false;
  const uint16_t *results =
      table ? table->find(core, *this, tile.numElements) : nullptr;
  if (!results && !body.yieldsInput())
    return false;
  const TileVal &source = core.tiles[t.deferredTile];
  if (!results && copyDirectly(source, tile))
    return true;
  int64_t strides[kMaxRank];
  if (!followStrides(source, tile, tile.hostStrides(), strides))
    return false;
  auto numCodes = static_cast<size_t>(tile.numElements);
  Buffer *codes = core.pool->get(numCodes * sizeof(uint16_t));
  bool isRead = source.loadCodes(codes->data(), strides);
  if (isRead && results)
    kernels().lookUp(results, codes->data(), codes->data(), numCodes);
  bool isDone = isRead && tile.storeCodes(codes->data());
  core.pool->release(codes);
  return isDone;
}

/// Copies one tile to the other without a buffer, if they lie apart and places
/// in the other are at constant distances.
bool StructuredLoop::copyDirectly(const TileVal &source,
                                  const TileVal &tile) const {
  auto [first, end] = source.hostBytes();
  auto [firstStored, endStored] = tile.hostBytes();
  if (first < endStored && firstStored < end)
    return false;
  int64_t strides[kMaxRank];
  if (std::optional<TileVal::StridedPart> to = tile.onlyPart();
      to && tile.isApart(*to) &&
      (copyRows(source, tile, *to) ||
       (followStrides(source, tile, to->strides, strides) &&
        source.loadCodes(const_cast<uint8_t *>(to->first), strides))))
    return true;
  return tile.isDense() &&
         followStrides(source, tile, tile.hostStrides(), strides) &&
         source.loadCodes(tile.firstByte(), strides);
}

/// Copies one tile to the other, if rows of the one are rows of the other.
bool StructuredLoop::copyRows(const TileVal &source, const TileVal &tile,
                              const TileVal::StridedPart &to) const {
  std::optional<TileVal::StridedPart> from = source.onlyPart();
  if (!from)
    return false;
  size_t shape[kMaxRank];
  ptrdiff_t toStrides[kMaxRank], fromStrides[kMaxRank];
  bool hasRows = false;
  auto rank = static_cast<unsigned>(outputs[0].map.size());
  for (unsigned d = 0; d < rank; ++d) {
    int dim = dimOf(inputs[0], outputs[0].map[d].terms[0].first);
    if (dim < -1 || (dim >= 0 && source.sizes[dim] != tile.sizes[d]))
      return false;
    shape[d] = size_t(tile.sizes[d]);
    toStrides[d] = to.strides[d];
    fromStrides[d] = dim < 0 ? 0 : from->strides[dim];
    hasRows |= shape[d] > 1 && toStrides[d] == 1 && fromStrides[d] == 1;
  }
  if (!hasRows)
    return false;
  kernels().copyInt16(
      reinterpret_cast<int16_t *>(const_cast<uint8_t *>(to.first)), toStrides,
      reinterpret_cast<const int16_t *>(from->first), fromStrides, shape, rank);
  return true;
}
