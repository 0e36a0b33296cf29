// SPDX-License-Identifier: Apache-2.0
//===- KernelTiles.cpp - Sub-tiles of a core's slice ------------*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;

/// LX bytes of the tiles that are live together.
int64_t KernelBuilder::getTileBytes(ArrayRef<int64_t> tiles) const {
  int64_t total = 0;
  if (isSort(combiner)) {
    // The input is gone when there are two sets of keys, and the result comes
    // when there is one again.
    total = 1;
    for (unsigned dim = 0; dim < loops.size(); ++dim)
      total *= isWhole(dim) ? spyre_graph::getSortBytes(loops[dim].extent)
                            : tiles[dim];
    return total;
  }
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
  if (cutsSticks)
    return granularity;
  SmallVector<int64_t> extents =
      llvm::map_to_vector(loops, [](const Loop &loop) { return loop.extent; });
  AffineExpr variable = getAffineDimExpr(dim, op->getContext());
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    const OperandStorage &place = storage[operand];
    for (int64_t tensorDim :
         {place.layout.getStickDim(place.shape), getPackedDim(place.layout)}) {
      if (tensorDim < 0)
        continue;
      int64_t steps = getStepsPerStick(place.layout, place.shape, tensorDim);
      AffineExpr lane = simplifyWithRanges(
          maps[operand].getResult(tensorDim) % steps, extents);
      if (lane == variable || lane == variable % steps)
        granularity = std::max(granularity, steps);
    }
  }
  return granularity;
}

/// Scans walk a loop step by step, and so do ranked results, and iterations
/// that read what earlier ones wrote.
bool KernelBuilder::isStepped(unsigned dim) const {
  if (!loops[dim].isReduction || isWhole(dim))
    return false;
  SpyreOpInterface own(op);
  return isScan(combiner) || own.readsInit() ||
         (own.getRankedResult() != RankedResult::None &&
          maps[getInit()].isFunctionOfDim(dim));
}

/// Whether the matrix unit computes it.
bool KernelBuilder::isContraction() const {
  return SpyreOpInterface(op).getUnit() == Unit::PT;
}

/// A tile holds all that is sorted together.
bool KernelBuilder::isWhole(unsigned dim) const {
  return isSort(combiner) && loops[dim].isReduction;
}

double KernelBuilder::getNumTiles(unsigned dim, ArrayRef<int64_t> tiles) const {
  return tiles[dim] > 0 ? static_cast<double>(llvm::divideCeilSigned(
                              loops[dim].chunk, tiles[dim]))
                        : 1;
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
    double count = getNumTiles(dim, tiles);
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

/// What the transfer of an operand's sub-tiles takes over that of its bytes in
/// one piece: each run of sticks costs `memoryRunOverheadBytes` more.
double KernelBuilder::getRunFactor(unsigned operand,
                                   ArrayRef<int64_t> tiles) const {
  if (!stickAccesses[operand])
    return 1;
  int64_t sticks = stickAccesses[operand]->getRunLength(tiles);
  return 1 + spec.memoryRunOverheadBytes /
                 static_cast<double>(sticks * spec.stickBytes);
}

/// Seconds that a core needs with sub-tiles `tiles` and the loops over them in
/// this order: its share of device memory, or the passes of its unit, of which
/// few rows do not fill the matrix unit. What it loads before the first pass
/// and stores after the last one, or computes after the last load, shows.
KernelBuilder::Seconds
KernelBuilder::getSeconds(ArrayRef<int64_t> tiles,
                          ArrayRef<unsigned> order) const {
  WorkDivisionAttr division = SpyreOpInterface(op).getWorkDivision();
  auto numCores = static_cast<double>(division.getNumCores());
  double loaded = 0, stored = 0, firstLoaded = 0, lastStored = 0;
  double loadSetup = 0, storeSetup = 0, lxRead = 0, lxWritten = 0;
  for (unsigned operand = 0; operand <= getInit(); ++operand) {
    double bytes =
        ::spyre::storageBytes(storage[operand].layout.getDataFormat());
    double tileBytes = bytes, passes = 1, sharing = numCores;
    SmallVector<unsigned> dims = getTileDims(operand);
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      if (!llvm::is_contained(dims, dim)) {
        passes *= getNumTiles(dim, tiles);
        continue;
      }
      bytes *= static_cast<double>(loops[dim].chunk);
      tileBytes *= static_cast<double>(tiles[dim]);
      sharing /= static_cast<double>(division.getSplits()[dim]);
    }
    if (operand == getInit())
      lxWritten = bytes * passes;
    else
      lxRead += bytes * passes;
    if (storage[operand].isInLX)
      continue;
    // Cores that load the same do it together.
    double secondsPerByte =
        std::max(numCores / sharing * ::spyre::numSharedReads(sharing, spec) /
                     spec.effectiveMemoryBytesPerSecond,
                 1 / spec.coreMemoryBytesPerSecond);
    secondsPerByte *= getRunFactor(operand, tiles);
    if (operand == getInit()) {
      stored = bytes * secondsPerByte;
      lastStored = tileBytes * secondsPerByte;
      storeSetup = spec.transferSetupSeconds;
      continue;
    }
    loaded += bytes * getNumLoads(operand, tiles, order) * secondsPerByte;
    firstLoaded += tileBytes * secondsPerByte;
    loadSetup += spec.transferSetupSeconds;
  }
  double numPieces = 1, iterations = 1, rows = 1;
  bool isContraction = SpyreOpInterface(op).getUnit() == Unit::PT;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    numPieces *= getNumTiles(dim, tiles);
    iterations *= static_cast<double>(loops[dim].chunk);
    if (isContraction && maps[getInit()].isFunctionOfDim(dim) &&
        !maps[1].isFunctionOfDim(dim))
      rows *= static_cast<double>(tiles[dim]);
  }
  // Accumulators are read and written.
  if (combiner != Combiner::None)
    lxRead += lxWritten;
  double compute = std::max(
      ::spyre::lxSeconds(std::max(lxRead, lxWritten), spec),
      isContraction ? ::spyre::ptSeconds(iterations, rows, spec, macFormat)
                    : ::spyre::sfuSeconds(iterations * elementCost, spec));
  // Memory is busy but for the last pass, or the unit but for the first loads
  // and the last store, or stores follow each other. One store waits for all.
  double busy = std::max(loaded + stored + compute / numPieces,
                         firstLoaded + compute + lastStored);
  double stores =
      firstLoaded + compute / numPieces + storeSetup + stored +
      std::max(0.0, loaded - ::spyre::kPiecesInFlight * firstLoaded);
  bool isStoredOnce = lastStored == stored;
  return {std::max(loaded + stored, compute),
          loadSetup +
              (isStoredOnce ? busy + storeSetup : std::max(busy, stores)),
          numPieces};
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
    double seconds = getSeconds(tiles, order).inSteps;
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
  return std::tie(seconds.inSteps, numReductionCuts, bytes, tiles) <
         std::tie(other.seconds.inSteps, other.numReductionCuts, other.bytes,
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

/// Whether a product is summed in the same order if its sub-tiles are cut along
/// a dimension: one after another, they walk the iterations as one tile does,
/// if they have one iteration of each sum around.
bool KernelBuilder::keepsSumOrder(ArrayRef<int64_t> tiles, unsigned dim) const {
  if (reordersSums || !loops[dim].isReduction || !isContraction())
    return true;
  for (unsigned outer = 0; outer < dim; ++outer)
    if (loops[outer].isReduction && tiles[outer] > 1)
      return false;
  return true;
}

/// Whether sub-tiles of this size are cut so in every dimension.
bool KernelBuilder::keepsSumOrder(ArrayRef<int64_t> tiles) const {
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (tiles[dim] < loops[dim].chunk && !keepsSumOrder(tiles, dim))
      return false;
  return true;
}

/// Sub-tiles half as large along a dimension, or the same if that cannot be.
std::vector<int64_t> KernelBuilder::halve(std::vector<int64_t> tiles,
                                          unsigned dim) const {
  if (!isStepped(dim) && !isWhole(dim) && keepsSumOrder(tiles, dim))
    tiles[dim] = std::min<int64_t>(
        tiles[dim], llvm::alignTo(llvm::divideCeilSigned(tiles[dim], 2),
                                  getGranularity(dim)));
  return tiles;
}

/// Halves sub-tiles until they fit, in the way that takes least time: more cuts
/// never take less, so the cheapest that fits is the best.
LogicalResult KernelBuilder::cut(Tiling &tiling) {
  /// If more tilings than this take the same time, only the best is refined.
  constexpr unsigned kMaxExpanded = 256;
  int64_t leastBytes = tiling.bytes;
  const Tiling whole = tiling;
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
      std::vector<int64_t> tiles = halve(tiling.tiles, dim);
      if (!known.insert(tiles).second)
        continue;
      Tiling smaller = makeTiling(std::move(tiles));
      if (smaller.bytes < tiling.bytes)
        open.insert(std::move(smaller));
    }
  }
  // What is sorted together is long if it does not run along the sticks.
  if (isSort(combiner) && !cutsSticks) {
    cutsSticks = true;
    return cut(tiling);
  }
  // The sums around may run along sticks, of which there are no parts.
  if (isContraction() && !reordersSums) {
    reordersSums = true;
    tiling = whole;
    return cut(tiling);
  }
  return SpyreOpInterface(op)->emitOpError()
         << "needs " << leastBytes
         << " bytes of LX for its smallest tiles, but planning left " << lxBytes
         << "; plan with lx-planning=false, or pass lx-bytes=" << leastBytes;
}

/// Doubles sub-tiles that were cut where there is room for more.
void KernelBuilder::grow(Tiling &tiling, ArrayRef<int64_t> largest) const {
  while (true) {
    std::optional<Tiling> best;
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      std::vector<int64_t> tiles = tiling.tiles;
      tiles[dim] = std::min(2 * tiles[dim], largest[dim]);
      if (tiles == tiling.tiles || !keepsSumOrder(tiles))
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

/// Halves sub-tiles along the dimension where that saves most, because the
/// core's unit works while the next ones are loaded. Only products are summed
/// in the same order when they are cut.
void KernelBuilder::overlap(Tiling &tiling) const {
  std::optional<Tiling> best;
  do {
    best.reset();
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      // Accumulators are as large as they can be: they decide the traffic.
      if (loops[dim].isReduction != isContraction())
        continue;
      Tiling current = tiling;
      while (current.seconds.numPieces < ::spyre::kMaxPieces) {
        Tiling smaller = makeTiling(halve(current.tiles, dim));
        if (smaller.seconds.inAll >
            current.seconds.inAll * (1 - ::spyre::kLeastSavingOfPieces))
          break;
        current = std::move(smaller);
      }
      if (current.seconds.inAll < (best ? *best : tiling).seconds.inAll)
        best = std::move(current);
    }
    if (best)
      tiling = std::move(*best);
  } while (best);
}

/// Cuts a product to what the matrix unit sums at once. Operands are streamed:
/// a core with several such tiles loads its operands for each of them.
void KernelBuilder::limitAccumulators(std::vector<int64_t> &tiles) const {
  SmallVector<unsigned> rowDims, columnDims, sums;
  int64_t rows = 1, columns = 1;
  bool isBatched = false;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    bool isOfLeft = maps[0].isFunctionOfDim(dim);
    if (loops[dim].isReduction) {
      sums.push_back(dim);
    } else if (isOfLeft && maps[1].isFunctionOfDim(dim)) {
      // The matrix unit works on one product at a time.
      isBatched |= loops[dim].extent > 1;
      tiles[dim] = std::min<int64_t>(tiles[dim], 1);
    } else {
      (isOfLeft ? rowDims : columnDims).push_back(dim);
      (isOfLeft ? rows : columns) *= tiles[dim];
    }
  }
  ::spyre::AccumulatorTile most =
      ::spyre::getAccumulatorTile(rows, columns, isBatched, spec);
  bool isCut = false;
  auto limit = [&](ArrayRef<unsigned> dims, int64_t room) {
    for (unsigned dim : llvm::reverse(dims)) {
      int64_t tile =
          ::spyre::takeTileExtent(tiles[dim], getGranularity(dim), room);
      isCut |= tile < tiles[dim];
      tiles[dim] = tile;
    }
  };
  limit(rowDims, most.rows);
  limit(columnDims, most.columns);
  if (!isCut)
    return;
  // The first sum that can be cut.
  for (unsigned dim : sums)
    if (std::vector<int64_t> smaller = halve(tiles, dim); smaller != tiles) {
      tiles = std::move(smaller);
      return;
    }
}

/// What a core works on at once, if LX were large enough.
std::vector<int64_t> KernelBuilder::getLargestTiles() const {
  std::vector<int64_t> tiles;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    tiles.push_back(isStepped(dim) ? std::min<int64_t>(loops[dim].chunk, 1)
                                   : loops[dim].chunk);
  if (isContraction())
    limitAccumulators(tiles);
  return tiles;
}

LogicalResult KernelBuilder::chooseTiles() {
  std::vector<int64_t> largest = getLargestTiles();
  Tiling tiling = makeTiling(largest);
  if (tiling.bytes > lxBytes) {
    if (failed(cut(tiling)))
      return failure();
    grow(tiling, largest);
  }
  std::vector<int64_t> fitting = tiling.tiles;
  overlap(tiling);
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    Loop &loop = loops[dim];
    loop.tile = tiling.tiles[dim];
    if (loop.tile < fitting[dim]) {
      loop.numOverlapping = llvm::divideCeilSigned(loop.chunk, loop.tile);
      loop.granularity = getGranularity(dim);
    }
  }
  order = chooseOrder(tiling.tiles);
  return success();
}
