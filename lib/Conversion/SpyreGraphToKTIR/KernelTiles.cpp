// SPDX-License-Identifier: Apache-2.0
//===- KernelTiles.cpp - Sub-tiles of a core's slice ------------*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Device/CostModel.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;

/// LX bytes of the tiles that are live together.
int64_t KernelBuilder::getTileBytes(ArrayRef<int64_t> tiles) const {
  int64_t total = 0;
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    int64_t bytes =
        ::spyre::storageBytes(storage[operand].layout.getDataFormat());
    // The accumulator of a reduction beside its result; with partners also
    // the combination so far and the part of another.
    if (operand == getInit() && combiner != Combiner::None)
      bytes += numPartners > 1 ? 12 : 4;
    for (unsigned dim : getTileDims(operand))
      bytes *= tiles[dim];
    total += bytes;
  }
  return total;
}

/// Sub-tiles of a dimension that runs along sticks are whole sticks. Where
/// lanes follow several dimensions at once, no cut is better than another.
int64_t KernelBuilder::getGranularity(unsigned dim) const {
  int64_t granularity = 1;
  SmallVector<int64_t> extents =
      llvm::map_to_vector(loops, [](const Loop &loop) { return loop.extent; });
  AffineExpr variable = getAffineDimExpr(dim, op->getContext());
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    const OperandStorage &place = storage[operand];
    int64_t stickDim = place.layout.getStickDim(place.shape);
    if (stickDim < 0)
      continue;
    int64_t stick = ::spyre::elemsPerStick(place.layout.getDataFormat());
    AffineExpr lane =
        simplifyWithRanges(maps[operand].getResult(stickDim) % stick, extents);
    if (lane == variable || lane == variable % stick)
      granularity = std::max(granularity, stick);
  }
  return granularity;
}

/// Scans walk a loop step by step, and so does top-k over its results.
bool KernelBuilder::isStepped(unsigned dim) const {
  return loops[dim].isReduction &&
         (combiner == Combiner::ScanAdd ||
          (isa<TopKOp>(operation) && maps[getInit()].isFunctionOfDim(dim)));
}

/// How many times the tiles of an operand are loaded: it stays in LX through
/// the loops inside the innermost one that it varies with.
double KernelBuilder::getNumLoads(unsigned operand, ArrayRef<int64_t> tiles,
                                  ArrayRef<unsigned> order) const {
  SmallVector<unsigned> dims = getTileDims(operand);
  bool isEpilogue =
      operand >= getInit() - SpyreOpInterface(op).getNumEpilogueInputs();
  double loads = 1, inside = 1;
  for (unsigned dim : order) {
    double count = tiles[dim] > 0 ? static_cast<double>(llvm::divideCeilSigned(
                                        loops[dim].chunk, tiles[dim]))
                                  : 1;
    if (isEpilogue && loops[dim].isReduction)
      continue;
    if (!llvm::is_contained(dims, dim)) {
      inside *= count;
      continue;
    }
    // A dimension in one piece is no loop.
    if (count > 1) {
      loads *= inside;
      inside = 1;
    }
  }
  return isEpilogue ? loads * inside : loads;
}

/// Seconds that a core needs with sub-tiles `tiles` and the loops over them in
/// this order: its share of device memory, or the matrix unit, which few rows
/// do not fill.
double KernelBuilder::getSeconds(ArrayRef<int64_t> tiles,
                                 ArrayRef<unsigned> order) const {
  ::spyre::DeviceSpec spec;
  double seconds = 0;
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    double bytes =
        ::spyre::storageBytes(storage[operand].layout.getDataFormat());
    for (unsigned dim : getTileDims(operand))
      bytes *= static_cast<double>(loops[dim].chunk);
    if (operand != getInit())
      bytes *= getNumLoads(operand, tiles, order);
    seconds += storage[operand].isInLX
                   ? ::spyre::lxSeconds(bytes, spec)
                   : bytes * static_cast<double>(spec.numCores) /
                         spec.effectiveMemoryBytesPerSecond;
  }
  if (SpyreOpInterface(op).getUnit() != Unit::PT)
    return seconds;
  double macs = 1, rows = 1;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    macs *= static_cast<double>(loops[dim].chunk);
    if (maps[getInit()].isFunctionOfDim(dim) && !maps[1].isFunctionOfDim(dim))
      rows *= static_cast<double>(tiles[dim]);
  }
  return std::max(seconds, ::spyre::ptSeconds(macs, rows, spec));
}

/// The order of the loops over sub-tiles, outermost first, that takes least
/// time. Reductions, whose results loops carry, are inside the others.
SmallVector<unsigned>
KernelBuilder::chooseOrder(ArrayRef<int64_t> tiles) const {
  SmallVector<unsigned> cut, rest;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (!loops[dim].isReduction)
      (tiles[dim] < loops[dim].chunk ? cut : rest).push_back(dim);
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (loops[dim].isReduction)
      rest.push_back(dim);
  /// More loops than this are rare: their order is that of the operation.
  constexpr unsigned kMaxPermuted = 4;
  SmallVector<unsigned> best;
  double bestSeconds = std::numeric_limits<double>::infinity();
  do {
    SmallVector<unsigned> order(cut);
    llvm::append_range(order, rest);
    double seconds = getSeconds(tiles, order);
    if (best.empty() || seconds < bestSeconds) {
      best = order;
      bestSeconds = seconds;
    }
  } while (cut.size() <= kMaxPermuted &&
           std::next_permutation(cut.begin(), cut.end()));
  return best;
}

/// The cheapest first. Of equals those that cut parallel dimensions, whose
/// loops carry nothing, then the smallest.
bool KernelBuilder::Tiling::operator<(const Tiling &other) const {
  return std::tie(seconds, numReductionCuts, bytes, tiles) <
         std::tie(other.seconds, other.numReductionCuts, other.bytes,
                  other.tiles);
}

KernelBuilder::Tiling
KernelBuilder::makeTiling(std::vector<int64_t> tiles) const {
  Tiling tiling;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (loops[dim].isReduction && tiles[dim] > 0)
      tiling.numReductionCuts += llvm::Log2_64_Ceil(
          llvm::divideCeilSigned(loops[dim].chunk, tiles[dim]));
  tiling.seconds = getSeconds(tiles, chooseOrder(tiles));
  tiling.bytes = getTileBytes(tiles);
  tiling.tiles = std::move(tiles);
  return tiling;
}

/// Halves sub-tiles until they fit, in the way that takes least time: more cuts
/// never take less, so the cheapest that fits is the best.
LogicalResult KernelBuilder::cut(Tiling &tiling) const {
  /// Where very many take the same time, the best of these goes on alone.
  constexpr unsigned kMaxExpanded = 256;
  int64_t leastBytes = tiling.bytes;
  std::set<Tiling> open{tiling};
  std::set<std::vector<int64_t>> known;
  for (unsigned numExpanded = 0; !open.empty(); ++numExpanded) {
    tiling = *open.begin();
    open.erase(open.begin());
    if (tiling.bytes <= lxBytes)
      return success();
    leastBytes = std::min(leastBytes, tiling.bytes);
    if (numExpanded >= kMaxExpanded)
      open.clear();
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      std::vector<int64_t> tiles = tiling.tiles;
      tiles[dim] = std::min<int64_t>(
          tiles[dim], llvm::alignTo(llvm::divideCeilSigned(tiles[dim], 2),
                                    getGranularity(dim)));
      if (isStepped(dim) || !known.insert(tiles).second)
        continue;
      Tiling smaller = makeTiling(std::move(tiles));
      if (smaller.bytes < tiling.bytes)
        open.insert(std::move(smaller));
    }
  }
  return SpyreOpInterface(op)->emitOpError()
         << "needs " << leastBytes
         << " bytes of LX for its smallest tiles, but " << lxBytes
         << " are left over; it fits with lx-bytes=" << leastBytes;
}

/// Doubles sub-tiles that were cut where there is room for more.
void KernelBuilder::grow(Tiling &tiling) const {
  while (true) {
    std::optional<Tiling> best;
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      std::vector<int64_t> tiles = tiling.tiles;
      tiles[dim] = std::min(2 * tiles[dim], loops[dim].chunk);
      if (isStepped(dim) || tiles == tiling.tiles)
        continue;
      Tiling larger = makeTiling(std::move(tiles));
      if (larger.bytes <= lxBytes && (!best || larger < *best))
        best = std::move(larger);
    }
    if (!best)
      return;
    tiling = std::move(*best);
  }
}

LogicalResult KernelBuilder::chooseTiles() {
  std::vector<int64_t> tiles;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    tiles.push_back(isStepped(dim) ? std::min<int64_t>(loops[dim].chunk, 1)
                                   : loops[dim].chunk);
  Tiling tiling = makeTiling(std::move(tiles));
  if (tiling.bytes > lxBytes) {
    if (failed(cut(tiling)))
      return failure();
    grow(tiling);
  }
  for (auto [loop, tile] : llvm::zip(loops, tiling.tiles))
    loop.tile = tile;
  order = chooseOrder(tiling.tiles);
  return success();
}
