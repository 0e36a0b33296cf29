//===- DivisionSearch.cpp - All divisions of an operation -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionSearch.h"
#include "OperandSpans.h"
#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace mlir::spyre_graph;

int64_t SlicingNumbers::getNumber(AffineExpr expr) {
  return expr ? expressions.try_emplace(expr, expressions.size() + 1)
                    .first->second
              : 0;
}

int SlicingNumbers::get(const Slicing &slicing) {
  std::vector<int64_t> key{slicing.numCores};
  for (const SliceDim &dim : slicing.dims)
    key.insert(key.end(),
               {dim.stride, dim.split, dim.chunk, dim.extent, dim.offset,
                getNumber(dim.chunkAt), getNumber(dim.extentAt)});
  auto [known, isNew] = numbers.try_emplace(std::move(key), numbers.size());
  if (isNew) {
    slicings.push_back(slicing);
    copies.push_back(getNumCopies(slicing));
    double share = 1;
    for (const SliceDim &dim : slicing.dims)
      if (dim.extent > 0)
        share *= static_cast<double>(std::min(dim.chunk, dim.extent)) /
                 static_cast<double>(dim.extent);
    shares.push_back(share);
  }
  return known->second;
}

double Divisions::getSeconds(unsigned number, double loadSeconds,
                             double storeSeconds) const {
  const DivisionCandidate &candidate = candidates[number];
  const double memorySeconds = loadSeconds + storeSeconds +
                               turnaround * std::min(loadSeconds, storeSeconds);
  const double setups = numOperands * setupSeconds;
  // If the slice is cut into pieces, the first store is set up while later
  // pieces are loaded. A cut costs kLeastSavingOfPieces of the time.
  double hidden = 0;
  if (storeSeconds > 0)
    hidden =
        std::min(setupSeconds, loadSeconds * (1 - 1 / candidate.numStores)) -
        ::spyre::kLeastSavingOfPieces *
            (std::max(candidate.computeSeconds, memorySeconds) + setups);
  double drainSeconds = isDrained ? memorySeconds - loadSeconds : 0;
  return ::spyre::overlapSeconds(candidate.computeSeconds,
                                 memorySeconds - drainSeconds, setups,
                                 candidate.numPieces) +
         drainSeconds + candidate.partialSumSeconds - std::max(hidden, 0.0);
}

double Divisions::getSecondsAlone(unsigned candidate) const {
  double loadSeconds = 0;
  for (unsigned operand = 0; operand + 1 < numOperands; ++operand)
    loadSeconds += get(candidate, operand).seconds;
  return getSeconds(candidate, loadSeconds,
                    get(candidate, numOperands - 1).seconds) +
         numOperands * setupSeconds;
}

double Divisions::getLeastSecondsAlone() const {
  double least = std::numeric_limits<double>::max();
  for (unsigned number = 0; number < candidates.size(); ++number)
    least = std::min(least, getSecondsAlone(number));
  return least;
}

DivisionSearch::DivisionSearch(SpyreOpInterface op, int64_t cores,
                               const Target &target,
                               const ::spyre::DeviceSpec &spec,
                               SlicingNumbers &numbers)
    : op(op), cores(cores), target(target), spec(spec), numbers(numbers),
      extents(op.getLoopExtents()), maps(op.getIndexingMaps()),
      kinds(op.getLoopKinds()), extentMap(op.getLoopExtentMap()),
      granularity(getSliceGranularity(op)), indirect(op.getIndirectAccess()) {
  for (OpOperand &operand : op->getOpOperands())
    describeOperand(operand);
  if (op.getUnit() == Unit::SFU)
    elementCost = getElementCost(op, spec);
  result.numOperands = op->getNumOperands();
  result.setupSeconds = spec.transferSetupSeconds;
  result.turnaround =
      spec.effectiveMemoryBytesPerSecond * spec.memoryTurnaroundSecondsPerByte;
  result.isDrained = op.getUnit() == Unit::PT;
  if (result.isDrained)
    for (unsigned dim : operandDims.back())
      result.isBatchedProduct |= extents[dim] > 1 && isBatch(dim);
}

bool DivisionSearch::isInLoop(Operation *op) {
  return op->getParentOfType<LoopLikeOpInterface>() != nullptr;
}

/// Larger tensors are tiled: the default of --spyre-coarse-tiling's `fill`.
static constexpr double kTiledShareOfLX = 0.75;

Divisions DivisionSearch::run() {
  searchAll();
  return std::move(result);
}

void DivisionSearch::searchAll() {
  search();
  // A reduction in a loop over tiles must add in the same order as without the
  // loop, and so is split in neither. What coarse tiling takes for too large
  // for LX is not split, if the cores have enough to do without; what is split
  // here, coarse tiling leaves whole.
  if (!target.allowsSplitReductions() || isInLoop(op) ||
      !isCombinedAcrossCores(op.getCombiner()) ||
      llvm::is_contained(extents, 0))
    return;
  double largest = 0, mostCores = 0;
  for (double bytes : result.operandBytes)
    largest = std::max(largest, bytes);
  for (const DivisionCandidate &candidate : result.candidates) {
    double used = 1;
    for (int64_t split : candidate.splits)
      used *= split;
    mostCores = std::max(mostCores, used);
  }
  if (largest >
          kTiledShareOfLX * static_cast<double>(cores * spec.usableLXBytes()) &&
      2 * mostCores > cores && !OperandSpans(op, spec).isAnyLimited())
    return;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    splitReduction = dim;
    if (canSplit(dim))
      search();
  }
  // Keep one way to split the reduction, or none: others would round sums
  // differently.
  std::optional<unsigned> chosen = chooseSplitReduction();
  SmallVector<int64_t, 4> splits, chunks;
  int64_t dim = -1;
  if (chosen) {
    splits = result.candidates[*chosen].splits;
    chunks = result.candidates[*chosen].chunks;
    dim = getSplitReduction(kinds, splits);
  }
  // Candidates are compared by their splits, not by the search that added them:
  // keepSmallSpans() may have dropped those of the first search.
  keepIf([&](unsigned number) {
    const DivisionCandidate &candidate = result.candidates[number];
    if (getSplitReduction(kinds, candidate.splits) != dim)
      return false;
    return dim < 0 || (candidate.splits[dim] == splits[dim] &&
                       candidate.chunks[dim] == chunks[dim]);
  });
}

/// The cheapest candidate that splits a reduction, if that pays for one more
/// transfer, which neighbours need that do not work in such slices; and, unless
/// it is a product, even if its operands are in LX.
std::optional<unsigned> DivisionSearch::chooseSplitReduction() const {
  auto getCheapest = [&](bool isSplit, bool isInLX) {
    std::optional<unsigned> best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned number = 0; number < result.candidates.size(); ++number) {
      double seconds = isInLX ? result.getSeconds(number, 0, 0)
                              : result.getSecondsAlone(number);
      if ((getSplitReduction(kinds, result.candidates[number].splits) >= 0) ==
              isSplit &&
          seconds < least) {
        best = number;
        least = seconds;
      }
    }
    return std::make_pair(best, least);
  };
  auto [split, splitSeconds] = getCheapest(/*isSplit=*/true, /*isInLX=*/false);
  auto [whole, wholeSeconds] = getCheapest(/*isSplit=*/false, /*isInLX=*/false);
  if (!split || !whole)
    return split;
  bool pays = splitSeconds + spec.transferSetupSeconds < wholeSeconds &&
              (result.isDrained ||
               result.getSeconds(*split, 0, 0) <
                   getCheapest(/*isSplit=*/false, /*isInLX=*/true).second);
  return pays ? split : std::nullopt;
}

bool spyre_graph::splitsReduction(SpyreOpInterface op, int64_t cores,
                                  const Target &target,
                                  const ::spyre::DeviceSpec &spec) {
  if (!target.allowsSplitReductions() ||
      !isCombinedAcrossCores(op.getCombiner()))
    return false;
  SlicingNumbers numbers;
  Divisions divisions = DivisionSearch(op, cores, target, spec, numbers).run();
  return getSplitReduction(op.getLoopKinds(),
                           divisions.candidates.front().splits) >= 0;
}

Divisions DivisionSearch::runExhaustively() {
  search();
  if (isCombinedAcrossCores(op.getCombiner()) &&
      target.allowsSplitReductions() && !llvm::is_contained(extents, 0))
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      splitReduction = dim;
      if (canSplit(dim))
        search();
    }
  return std::move(result);
}

Divisions DivisionSearch::price(WorkDivisionAttr division) {
  DivisionCandidate given;
  given.splits.assign(division.getSplits().begin(), division.getSplits().end());
  given.chunks.assign(division.getChunks().begin(), division.getChunks().end());
  given.order.assign(division.getOrder().begin(), division.getOrder().end());
  addCandidate(given);
  return std::move(result);
}

void DivisionSearch::describeOperand(OpOperand &operand) {
  auto type = cast<ShapedType>(operand.get().getType());
  SmallVector<unsigned, 6> dims;
  double iterations = 1;
  llvm::SmallBitVector usedDims =
      getUsedDims(maps[operand.getOperandNumber()], extents);
  for (unsigned dim : usedDims.set_bits()) {
    dims.push_back(dim);
    iterations *= extents[dim];
  }
  double elements = std::max<int64_t>(type.getNumElements(), 1);
  LayoutAttrInterface layout = getLayout(type);
  double bytes = layout ? layout.getSizeInBytes(type.getShape())
                        : elements * spec.stickBytes;
  bytes *= std::min(1.0, iterations / elements);
  unsigned number = operand.getOperandNumber();
  bool isAcrossSticks =
      layout && number + 1 < maps.size() &&
      !(indirect && indirect->operand == number) &&
      getLaneAccess(maps[number], layout, type.getShape(), extents).kind ==
          LaneAccess::Irregular;
  if (isAcrossSticks)
    bytes = spec.stickBytes *
            getNumTouchedSticks(maps[number], layout, type.getShape(), extents);
  result.operandBytes.push_back(bytes);
  readsAcrossSticks.push_back(isAcrossSticks);
  bool isIndirect = indirect && indirect->operand == number;
  stickAccesses.push_back(
      layout && !isIndirect && !isAcrossSticks
          ? getStickAccess(maps[number], layout, type.getShape(), extents)
          : std::nullopt);
  operandDims.push_back(std::move(dims));
}

/// Bytes that all cores together load of an operand. A stick that several
/// cores read, because slices cut through it, counts once per core.
double DivisionSearch::getLoadedBytes(unsigned operand,
                                      const DivisionCandidate &candidate) {
  if (!readsAcrossSticks[operand])
    return result.operandBytes[operand];
  auto type = cast<ShapedType>(op->getOperand(operand).getType());
  double sticks = getNumTouchedSticks(maps[operand], getLayout(type),
                                      type.getShape(), candidate.chunks);
  for (unsigned dim : operandDims[operand])
    sticks *= candidate.splits[dim];
  return spec.stickBytes * sticks;
}

/// How often a core loads what it has of an operand: once for each iteration
/// of the loops that the operand varies with, of which several may meet the
/// same element. Where a core's part is not known to be a slice, no cores share
/// such loads.
double DivisionSearch::getNumLoads(unsigned operand,
                                   const DivisionCandidate &candidate,
                                   int slicing) const {
  bool isSliced = slicing != SlicingNumbers::kNone;
  double iterations = 1, elements = 1;
  for (unsigned dim : operandDims[operand])
    iterations *=
        static_cast<double>(isSliced ? candidate.chunks[dim] : extents[dim]);
  if (isSliced)
    for (int64_t extent : numbers[slicing].getLocalShape())
      elements *= static_cast<double>(extent);
  else
    elements = static_cast<double>(
        cast<ShapedType>(op->getOperand(operand).getType()).getNumElements());
  return elements > 0 ? std::max(iterations / elements, 1.0) : 1;
}

/// What the transfer of a product's operand takes over that of its bytes in one
/// piece: each run of sticks that follow each other costs
/// `memoryRunOverheadBytes` more. A core's slice is walked in one piece,
/// because tiles that are next to each other make one run, but for the batches
/// of a product, which are computed one by one. What is accessed otherwise
/// counts as one run. Runs of operations that are no products are not priced.
double DivisionSearch::getRunFactor(unsigned operand,
                                    const DivisionCandidate &candidate) const {
  const std::optional<StickAccess> &access = stickAccesses[operand];
  if (!access || !result.isDrained)
    return 1;
  SmallVector<int64_t, 6> counts(extents.size(), 1);
  for (unsigned dim : operandDims[operand])
    if (!result.isBatchedProduct || !isBatch(dim))
      counts[dim] = candidate.chunks[dim];
  return 1 + spec.memoryRunOverheadBytes /
                 static_cast<double>(access->getRunLength(counts) *
                                     spec.stickBytes);
}

bool DivisionSearch::isBatch(unsigned dim) const {
  return llvm::is_contained(operandDims.back(), dim) &&
         llvm::is_contained(operandDims[0], dim) &&
         llvm::is_contained(operandDims[1], dim);
}

/// Adds the divisions that split the reduction dimension `splitReduction`, or
/// no reduction dimension if it is -1.
void DivisionSearch::search() {
  DivisionCandidate whole;
  whole.splits.assign(extents.size(), 1);
  whole.chunks.assign(extents.begin(), extents.end());
  if (llvm::is_contained(extents, 0))
    addCandidate(whole);
  else
    enumerate(0, 1, whole);
  keepSmallSpans();
}

void DivisionSearch::keepIf(function_ref<bool(unsigned)> isKept) {
  std::vector<DivisionCandidate> kept;
  std::vector<OperandCost> keptCosts;
  for (unsigned number = 0; number < result.candidates.size(); ++number) {
    if (!isKept(number))
      continue;
    kept.push_back(std::move(result.candidates[number]));
    for (unsigned operand = 0; operand < result.numOperands; ++operand)
      keptCosts.push_back(result.get(number, operand));
  }
  result.candidates = std::move(kept);
  result.operandCosts = std::move(keptCosts);
}

/// Drops candidates in which a core's accesses to an operand in device memory
/// span more than it can address, unless all candidates do.
void DivisionSearch::keepSmallSpans() {
  OperandSpans spans(op, spec);
  if (!spans.isAnyLimited())
    return;
  llvm::SmallBitVector fits(result.candidates.size());
  for (unsigned number = 0; number < result.candidates.size(); ++number)
    fits[number] = spans.fit(result.candidates[number].chunks);
  if (fits.any())
    keepIf([&](unsigned number) { return fits.test(number); });
}

bool DivisionSearch::canSplit(unsigned dim) const {
  if (kinds[dim] == utils::IteratorType::parallel)
    return maps.back().isFunctionOfDim(dim);
  // A sum of varying length stays on one core: small ones leave others empty.
  return splitReduction == static_cast<int64_t>(dim) && !varies(extentMap, dim);
}

/// Tries every useful number of slices of loop dimension `dim` and of the
/// dimensions after it.
void DivisionSearch::enumerate(unsigned dim, int64_t coresUsed,
                               DivisionCandidate &candidate) {
  if (dim == extents.size())
    return addCandidate(candidate);
  if (splitReduction != static_cast<int64_t>(dim))
    enumerate(dim + 1, coresUsed, candidate);
  if (!canSplit(dim))
    return;
  bool dividesPadding = extents[dim] % granularity[dim] != 0;
  if (dividesPadding && !target.allowsDividedPadding() &&
      isa<IdentityOp, RestickifyOp>(*op))
    return;
  for (auto [numSlices, chunk] : getDivisions(extents[dim], granularity[dim],
                                              cores / coresUsed, target)) {
    candidate.splits[dim] = numSlices;
    candidate.chunks[dim] = chunk;
    enumerate(dim + 1, coresUsed * numSlices, candidate);
  }
  candidate.splits[dim] = 1;
  candidate.chunks[dim] = extents[dim];
}

SmallVector<int64_t, 6>
DivisionSearch::getCoreStrides(const DivisionCandidate &candidate) const {
  SmallVector<int64_t, 6> strides(extents.size(), 1);
  int64_t stride = 1;
  auto place = [&](unsigned dim) {
    strides[dim] = stride;
    stride *= candidate.splits[dim];
  };
  if (!candidate.order.empty()) {
    for (int64_t dim : candidate.order)
      place(dim);
    return strides;
  }
  int64_t first = getSplitReduction(kinds, candidate.splits);
  if (first >= 0)
    place(first);
  for (unsigned dim = 0; dim < extents.size(); ++dim)
    if (static_cast<int64_t>(dim) != first)
      place(dim);
  return strides;
}

void DivisionSearch::addCandidate(DivisionCandidate &candidate) {
  SmallVector<int64_t, 6> coreStrides = getCoreStrides(candidate);
  double coresUsed = 1;
  candidate.largestSlice = 1;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    coresUsed *= candidate.splits[dim];
    candidate.largestSlice *= candidate.chunks[dim];
  }
  countPieces(candidate);
  candidate.partialSumSeconds = getPartialSumSeconds(candidate);
  for (unsigned operand = 0; operand < result.numOperands; ++operand) {
    int slicing = getSlicingNumber(operand, candidate, coreStrides);
    // Each element of the result is written by one core, even if several
    // compute it.
    double sharingCores = operand + 1 == result.numOperands ? 1 : coresUsed;
    for (unsigned dim : operandDims[operand])
      sharingCores /= candidate.splits[dim];
    // Heads of a query that share a key load it one after another, and cores
    // that have only such heads share it.
    double numLoads = 1;
    if (operand + 1 < result.numOperands) {
      if (slicing != SlicingNumbers::kNone)
        sharingCores = static_cast<double>(numbers.getCopies(slicing));
      numLoads = getNumLoads(operand, candidate, slicing);
    }
    // What device memory delivers in all, or what one core can take.
    double bytes =
        getLoadedBytes(operand, candidate) * getRunFactor(operand, candidate);
    double seconds = std::max(
        bytes * std::max(1.0, sharingCores / spec.numBroadcastCores) /
            spec.effectiveMemoryBytesPerSecond,
        bytes * sharingCores / coresUsed / spec.coreMemoryBytesPerSecond);
    result.operandCosts.push_back({seconds * numLoads, seconds, slicing});
  }
  if (op.getUnit() == Unit::SFU) {
    candidate.computeSeconds =
        ::spyre::sfuSeconds(candidate.largestSlice * elementCost, spec);
  } else {
    OperandCost *costs = &result.operandCosts.back() + 1 - result.numOperands;
    priceAccumulators(candidate, costs[0], costs[1]);
  }
  result.candidates.push_back(candidate);
}

/// Time to combine the parts of a split reduction. Of products it is the
/// reference's price, which is above that of the ring: measured products gain
/// nothing from more parts (spec/hardware.md). Otherwise the first partner
/// takes the parts in one after another, over the link to its neighbour, and
/// adds them up.
double
DivisionSearch::getPartialSumSeconds(const DivisionCandidate &candidate) const {
  constexpr double kBytesPerSum = 4;
  int64_t dim = getSplitReduction(kinds, candidate.splits);
  if (dim < 0)
    return 0;
  double sums = 1, sumsOfCore = 1;
  for (unsigned outputDim : operandDims.back()) {
    sums *= static_cast<double>(extents[outputDim]);
    sumsOfCore *= static_cast<double>(candidate.chunks[outputDim]);
  }
  double seconds = result.isDrained
                       ? sums * spec.partialSumSecondsPerElementHop
                       : sumsOfCore * kBytesPerSum / spec.ringBytesPerSecond() +
                             spec.ringHopSeconds() +
                             ::spyre::sfuSeconds(sumsOfCore, spec);
  return static_cast<double>(candidate.splits[dim] - 1) * seconds;
}

/// Prices what a core with more rows and columns than the matrix unit sums at
/// once loads again: KernelTiles.cpp makes such tiles. The array holds the
/// second input, and rows of the first stream through it: few rows do not fill
/// it, and neither do parts of sums.
void DivisionSearch::priceAccumulators(DivisionCandidate &candidate,
                                       OperandCost &x, OperandCost &y) const {
  SmallVector<unsigned> rowDims, columnDims;
  int64_t rows = 1, columns = 1;
  for (unsigned dim : operandDims.back()) {
    bool inX = llvm::is_contained(operandDims[0], dim);
    if (inX == llvm::is_contained(operandDims[1], dim))
      continue;
    (inX ? rowDims : columnDims).push_back(dim);
    (inX ? rows : columns) *= candidate.chunks[dim];
  }
  ::spyre::AccumulatorTile tile =
      ::spyre::getAccumulatorTile(rows, columns, result.isBatchedProduct, spec);
  auto countTiles = [&](ArrayRef<unsigned> dims, int64_t room) {
    int64_t numTiles = 1;
    for (unsigned dim : llvm::reverse(dims)) {
      int64_t chunk = std::max<int64_t>(candidate.chunks[dim], 1);
      int64_t tile = ::spyre::takeTileExtent(
          chunk, std::max<int64_t>(granularity[dim], 1), room);
      numTiles *= llvm::divideCeilSigned(chunk, tile);
    }
    return static_cast<double>(numTiles);
  };
  // Operands that are cut along what is summed are streamed for every tile. Of
  // others, one stays in LX while the tiles along the other one are computed.
  bool isStreamed = false;
  for (unsigned dim = 0; dim < extents.size(); ++dim)
    isStreamed |= kinds[dim] != utils::IteratorType::parallel &&
                  candidate.chunks[dim] > granularity[dim];
  double moreOfX = (countTiles(columnDims, tile.columns) - 1) * x.seconds;
  double moreOfY = (countTiles(rowDims, tile.rows) - 1) * y.seconds;
  if (isStreamed || moreOfX <= moreOfY)
    x.seconds += moreOfX;
  if (isStreamed || moreOfX > moreOfY)
    y.seconds += moreOfY;
  candidate.computeSeconds = ::spyre::ptSeconds(
      candidate.largestSlice, static_cast<double>(std::min(rows, tile.rows)),
      spec, getMacFormat(op));
  if (getSplitReduction(kinds, candidate.splits) >= 0)
    candidate.computeSeconds /= spec.partialProductEfficiency;
}

/// Counts the pieces that KernelTiles.cpp would make: of whole sticks, and with
/// enough rows to fill the matrix unit. Of a contraction's rows, columns and
/// depth only one is cut, so that nothing is loaded twice. Other reductions are
/// not cut along what they reduce.
void DivisionSearch::countPieces(DivisionCandidate &candidate) {
  bool isContraction = op.getUnit() == Unit::PT && result.numOperands > 2;
  double batch = 1, rows = 1, columns = 1, depth = 1;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    bool inX = llvm::is_contained(operandDims[0], dim);
    bool inY = isContraction && llvm::is_contained(operandDims[1], dim);
    bool isReduced = kinds[dim] != utils::IteratorType::parallel;
    bool isRow = isContraction && inX && !inY;
    int64_t piece =
        isRow ? std::max(granularity[dim],
                         spec.numRowsPerPass * spec.numPassesForFullRate)
              : std::max<int64_t>(granularity[dim], 1);
    double &pieces = isReduced     ? depth
                     : isRow       ? rows
                     : inY && !inX ? columns
                                   : batch;
    pieces *= std::max<int64_t>(
        llvm::divideCeilSigned(candidate.chunks[dim], piece), 1);
  }
  if (isContraction)
    batch *= std::max(rows, columns);
  candidate.numStores = std::min(batch, ::spyre::kPiecesInFlight);
  candidate.numPieces = std::min(isContraction && batch == 1 ? depth : batch,
                                 ::spyre::kMaxPieces);
}

int DivisionSearch::getSlicingNumber(unsigned operand,
                                     const DivisionCandidate &candidate,
                                     ArrayRef<int64_t> coreStrides) {
  if (indirect && indirect->operand == operand)
    return SlicingNumbers::kNone;
  std::optional<Slicing> slicing = getSlicing(
      maps[operand], extents, candidate.splits, candidate.chunks, coreStrides,
      extentMap, getChunkMap(op, candidate.splits, candidate.chunks));
  ArrayRef<int64_t> shape =
      cast<ShapedType>(op->getOperand(operand).getType()).getShape();
  if (slicing && !target.allowsPartsInLX() &&
      (!isInLoopDims(maps[operand]) || !slicing->covers(shape)))
    return SlicingNumbers::kNone;
  std::optional<Slicing> held;
  if (slicing)
    held = slicing->getHeld(shape);
  if (!held)
    return SlicingNumbers::kNone;
  return numbers.get(*held);
}
