// SPDX-License-Identifier: Apache-2.0
//===- KeptTiles.cpp - Host tiles that a loop reads again -----------------===//

#include "KeptTiles.h"

using namespace spyre::runtime;

Buffer *KeptTiles::find() const {
  if (!isActive || numReads > kept.size() || !kept[numReads - 1].buffer)
    return nullptr;
  return kept[numReads - 1].buffer;
}

void KeptTiles::leaveLoop(BufferPool &pool) {
  for (const Kept &tile : kept)
    if (tile.buffer)
      pool.release(tile.buffer);
  kept.clear();
  bytes = 0;
  isActive = false;
}

void KeptTiles::keep(const TileVal &tile, Buffer *buffer, size_t sizeInBytes,
                     BufferPool &pool) {
  if (!isActive || bytes + sizeInBytes > kMostBytes)
    return;
  auto [first, end] = tile.hostBytes();
  current() = {buffer, 0, first, end};
  numberValues(*buffer);
  pool.retain(buffer);
  bytes += sizeInBytes;
}

uint64_t KeptTiles::numberCodes(const TileVal &tile, uint64_t known) {
  if (!isActive)
    return known;
  Kept &codes = current();
  if (codes.version == 0) {
    auto [first, end] = tile.hostBytes();
    codes = {codes.buffer, known ? known : makeVersion(), first, end};
  }
  return codes.version;
}

void KeptTiles::noteStore(const TileVal &tile, BufferPool &pool) {
  if (kept.empty())
    return;
  auto [first, end] = tile.hostBytes();
  for (const Kept &read : kept)
    if (first < read.end && read.first < end)
      return leaveLoop(pool);
}
