//===- TilingCosts.h - What a tiling gains ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H

#include "Spyre/Device/CostModel.h"
#include "TileLevels.h"

namespace mlir::spyre_graph {

/// A way to tile a group, and what it saves.
struct Tiling {
  std::vector<TileLevel> levels;
  double savedSeconds = 0, savedBytes = 0;
};

/// A group, together with all operations on paths between its operations. They
/// are in one block, in program order.
OpGroup closeGroup(const OpGroup &group);

/// Whether the loops of a group and of some of `others` would need each other's
/// results, where the groups have no operation in common. All groups are closed
/// and in one block.
bool wouldInterlock(const OpGroup &group,
                    ArrayRef<std::pair<OpGroup, Tiling>> others);

/// The extent of each of `count` tiles of a level, a multiple of its
/// granularity; the last tile may be smaller. Nothing if some tile would be
/// empty.
std::optional<int64_t> getTileExtent(const TileLevel &level, int64_t count);

/// Extents with which all tiles are equal, the largest first. At most kMaxTiles
/// tiles. Where the extent varies: powers of two of which the least size has at
/// least kLeastTilesOfSize, or less where these are no parts of the largest.
SmallVector<int64_t> getEqualTileExtents(const TileLevel &level);

/// The most tiles of a level that are considered.
constexpr int64_t kMaxTiles = 1024;

/// How many tiles the least size of a symbol has at least: what the last two
/// have in common is computed twice.
constexpr int64_t kLeastTilesOfSize = 4;

/// An operation in the group that changes the stick of a tile of a tensor in
/// device memory, which SuperDSC's gaps cannot express; or null.
Operation *findPartialRestickify(const OpGroup &group,
                                 ArrayRef<TileLevel> levels);

/// Bytes of a tensor in device memory.
double getWholeBytes(Value value);

/// Prices of tilings, with the device's cost model.
class TilingCosts {
public:
  /// At most `lxBytes` bytes per core may be live at one time.
  TilingCosts(int64_t cores, double lxBytes, const ::spyre::DeviceSpec &spec)
      : cores(cores), lxBytes(lxBytes), spec(spec) {}

  /// Estimates which results of a block LX has no room for beside what else is
  /// live.
  void findCrowdedOut(Block &block);
  /// Whether LX cannot keep the result as a whole: no placement can, or other
  /// values need the room more.
  bool isTooLarge(SpyreOpInterface op) const;
  /// Whether the live tiles fit in LX.
  bool fits(const OpGroup &group, ArrayRef<TileLevel> levels) const;
  /// Whether as many cores have work on a tile as on the whole.
  bool keepsCoresBusy(const OpGroup &group, ArrayRef<TileLevel> levels) const;
  /// Sets what a tiling saves. The model without tiling: values in device
  /// memory are written once and read by each user, and all others stay in LX.
  /// With tiling: values between operations of the group stay in LX, all others
  /// move, operands that are not cut are read once per tile, and each tile
  /// waits for the setup of its transfers and of its kernels. Tiles have
  /// shorter runs of contiguous sticks, with which the vector unit works while
  /// the next one is loaded.
  void evaluate(const OpGroup &group, Tiling &tiling) const;

private:
  bool isInDeviceMemory(SpyreOpInterface op) const;
  double getLiveBytesPerCore(const OpGroup &group,
                             ArrayRef<TileLevel> levels) const;
  int64_t getParallelism(SpyreOpInterface op, ArrayRef<int64_t> extents) const;
  double getSfuSeconds(SpyreOpInterface op) const;
  double getExposedShare(OpOperand &operand, ArrayRef<int64_t> extents) const;

  int64_t cores;
  double lxBytes;
  /// What findCrowdedOut() has found.
  llvm::SmallPtrSet<Operation *, 16> crowdedOut;
  /// Granularity of slices per loop, cached because an operation is in many of
  /// the groups that are tried.
  mutable DenseMap<Operation *, SmallVector<int64_t>> granularities;
  /// What getSfuSeconds() has found.
  mutable DenseMap<Operation *, double> sfuSeconds;
  const ::spyre::DeviceSpec &spec;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILINGCOSTS_H
