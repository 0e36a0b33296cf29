//===- TilingCosts.h - What a tiling gains ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H

#include "Spyre/Device/CostModel.h"
#include "TileLevels.h"

namespace mlir::spyre_graph {

/// A way to tile a group, and what it gains.
struct Tiling {
  std::vector<TileLevel> levels;
  double savedSeconds = 0, savedBytes = 0;
};

/// A group with what lies on paths between its operations, which are in one
/// block, in program order.
OpGroup closeGroup(const OpGroup &group);

/// The extent of `count` tiles of a level, all but the last of them equal, each
/// a multiple of its granularity; nothing if so many would not be filled.
std::optional<int64_t> getTileExtent(const TileLevel &level, int64_t count);

/// Extents of equal tiles, the largest first; only of at most kMaxTiles.
SmallVector<int64_t> getEqualTileExtents(const TileLevel &level);

/// Numbers of tiles with more loop iterations than this are not considered.
constexpr int64_t kMaxTiles = 1024;

/// An operation that would change the stick of a tile of a tensor in device
/// memory, for which SuperDSC has no gaps; or null.
Operation *findPartialRestickify(const OpGroup &group,
                                 ArrayRef<TileLevel> levels);

/// Device bytes of a tensor.
double getWholeBytes(Value value);

/// Prices of tilings, with the device's cost model.
class TilingCosts {
public:
  /// `lxBytes` per core may be live together.
  TilingCosts(int64_t cores, double lxBytes) : cores(cores), lxBytes(lxBytes) {}

  /// Whether no placement can keep the result in LX as a whole.
  bool isTooLarge(SpyreOpInterface op) const;
  /// Whether the live tiles fit in LX.
  bool fits(const OpGroup &group, ArrayRef<TileLevel> levels) const;
  /// Whether tiles give no core less to do than the whole.
  bool keepsCoresBusy(const OpGroup &group, ArrayRef<TileLevel> levels) const;
  /// Sets what a tiling saves. Without it, values in device memory are written
  /// once and read by each user, and the others are taken to stay in LX. With
  /// it, values handed on within the group stay in LX, all others travel, and
  /// what is not cut is read once per tile. Each tile waits anew for what it
  /// reads from device memory.
  void evaluate(const OpGroup &group, Tiling &tiling) const;

private:
  bool isInDeviceMemory(SpyreOpInterface op) const;
  double getLiveBytesPerCore(const OpGroup &group,
                             ArrayRef<TileLevel> levels) const;
  int64_t getParallelism(SpyreOpInterface op, ArrayRef<int64_t> extents) const;

  int64_t cores;
  double lxBytes;
  /// Of slices, per loop: many groups of the same operations are tried.
  mutable DenseMap<Operation *, SmallVector<int64_t>> granularities;
  ::spyre::DeviceSpec spec;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H
