// SPDX-License-Identifier: Apache-2.0
//===- AccessTileDistributed.cpp - Access tiles of distributed views ------===//

#include "AccessTile.h"

#include <algorithm>

using namespace spyre::runtime;

template <typename Visit>
std::string TileVal::forEachPart(const std::vector<const ViewVal *> &partitions,
                                 Visit &&visit) {
  const AccessTilePlan &p = *plan;
  setRowMajor();
  int64_t memorySize = deviceSize(p.movedElem(partitions.front()->elem));
  bool isCovered = false;
  DistributedPart result;
  result.rank = p.rank;
  for (size_t i = partitions.size(); i-- > 0;) {
    const ViewVal &part = *partitions[i];
    int64_t memory = 0, low = 0, high = 0;
    bool isEmpty = false;
    result.position = 0;
    for (int t = 0; t < p.rank; ++t) {
      // Tile dimension t is one dimension of the view, with coefficient 1.
      int d = p.linearTerms[t].front().first;
      int64_t origin = formBase[p.constantForms[d]];
      int64_t first = std::max(origin + lo[t], part.lo[d]);
      int64_t last = std::min(origin + lo[t] + sizes[t] - 1, part.hi[d]);
      isEmpty |= last < first;
      result.shape[t] = isEmpty ? 0 : size_t(last - first + 1);
      result.memoryStrides[t] = part.strides[d];
      result.tileStrides[t] = tileStrides[t];
      memory += first * part.strides[d];
      result.position += (first - origin - lo[t]) * tileStrides[t];
      int64_t reach = isEmpty ? 0 : (last - first) * part.strides[d];
      low += std::min<int64_t>(reach, 0);
      high += std::max<int64_t>(reach, 0);
    }
    if (isEmpty)
      continue;
    isCovered = true;
    if (!part.checked && ((memory + low) * memorySize < part.limitLo ||
                          (memory + high + 1) * memorySize > part.limitHi))
      return "access to partition " + std::to_string(i) +
             " leaves its allocation";
    result.first = part.base + memory * memorySize;
    visit(result);
  }
  return isCovered ? "" : "no partition covers the access region";
}

std::string
TileVal::visitParts(const std::vector<const ViewVal *> &partitions,
                    const std::function<void(const DistributedPart &)> &visit) {
  return forEachPart(partitions, visit);
}

std::string
TileVal::moveDistributed(const std::vector<const ViewVal *> &partitions,
                         void *tile, bool isStore, bool ieee) {
  if (numElements == 0)
    return "";
  if (plan->isEnumerated)
    return moveEnumerated(partitions, tile, isStore, ieee);
  Elem elem = plan->movedElem(partitions.front()->elem);
  ElementFormat format = elementFormat(elem, ieee);
  int64_t size = hostSize(elem);
  if (!isStore)
    std::memset(tile, 0, size_t(numElements) * size);
  return forEachPart(partitions, [&](const DistributedPart &part) {
    uint8_t *host = static_cast<uint8_t *>(tile) + part.position * size;
    auto rank = static_cast<unsigned>(part.rank);
    if (isStore)
      storeBox(elem, format, part.first, part.memoryStrides, host,
               part.tileStrides, part.shape, rank);
    else
      loadBox(elem, format, host, part.tileStrides, part.first,
              part.memoryStrides, part.shape, rank);
  });
}
