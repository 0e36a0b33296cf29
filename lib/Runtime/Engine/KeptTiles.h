// SPDX-License-Identifier: Apache-2.0
//===- KeptTiles.h - Host tiles that a loop reads again ---------*- C++ -*-===//
//
// A matrix product that goes over its columns tile by tile reads all tiles of
// its left factor again for each of them. Their places do not depend on that
// loop, so that its n-th read is the same in all iterations: the host tiles of
// the first iteration serve the others, unless something is stored there.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_KEPTTILES_H
#define SPYRE_LIB_RUNTIME_ENGINE_KEPTTILES_H

#include "AccessTile.h"
#include "Values.h"

#include <vector>

namespace spyre::runtime {

/// What a core keeps of one load while a loop around it runs.
class KeptTiles {
public:
  /// Between these two, each iteration begins with nextIteration().
  void enterLoop() { isActive = true; }
  void leaveLoop(BufferPool &pool);
  void nextIteration() { numReads = 0; }

  /// To be called for each read of the load, before the functions below.
  void noteRead() { ++numReads; }
  /// The host tile that this read made in an earlier iteration, or null. Adds
  /// no reference.
  Buffer *find() const;
  /// Keeps the host tile that this read has made of a prepared tile, if there
  /// is room. The buffer has `sizeInBytes`.
  void keep(const TileVal &tile, Buffer *buffer, size_t sizeInBytes,
            BufferPool &pool);
  /// The version of the codes that this read finds, for a loop that uses them
  /// where they are: if it is active, that of an earlier iteration, or else
  /// `known` or, if that is 0, a new one.
  uint64_t numberCodes(const TileVal &tile, uint64_t known);
  /// To be called before something is stored in a prepared tile.
  void noteStore(const TileVal &tile, BufferPool &pool);

private:
  struct Kept {
    Buffer *buffer = nullptr;
    uint64_t version = 0; ///< of the codes, if they have one
    const uint8_t *first = nullptr, *end = nullptr; ///< of what was read
  };
  /// 64 rows of 8192 elements. The cores of a large gang then keep 16 MiB.
  static constexpr size_t kMostBytes = 2 << 20;

  bool isActive = false;
  /// The one of this read.
  Kept &current() {
    if (kept.size() < numReads)
      kept.resize(numReads);
    return kept[numReads - 1];
  }

  size_t numReads = 0;    ///< in this iteration
  std::vector<Kept> kept; ///< per read of an iteration
  size_t bytes = 0;       ///< of all of them
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_KEPTTILES_H
