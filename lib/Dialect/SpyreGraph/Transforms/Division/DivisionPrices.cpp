//===- DivisionPrices.cpp - What a division costs ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Prices one candidate of a DivisionSearch.
//
//===----------------------------------------------------------------------===//

#include "DivisionSearch.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Bytes that all cores together load of an operand. A stick that several
/// cores read, because slices cut through it, counts once per core.
double DivisionSearch::getLoadedBytes(unsigned operand,
                                      const DivisionCandidate &candidate) {
  if (!readsAcrossSticks[operand])
    return result.operandBytes[operand];
  auto type = cast<ShapedType>(op->getOperand(operand).getType());
  double sticks = getNumTouchedSticks(maps[operand], getLayout(type),
                                      shapes[operand], candidate.chunks);
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
    elements = static_cast<double>(ShapedType::getNumElements(shapes[operand]));
  return elements > 0 ? std::max(iterations / elements, 1.0) : 1;
}

/// Bytes of the sticks that follow each other in a core's part of an operand,
/// if they can be told. A core's slice is walked in one piece, because tiles
/// that are next to each other make one run, but for the batches of a product,
/// which are computed one by one.
std::optional<double>
DivisionSearch::getRunBytes(unsigned operand,
                            const DivisionCandidate &candidate) const {
  const std::optional<StickAccess> &access = stickAccesses[operand];
  if (!access)
    return std::nullopt;
  SmallVector<int64_t, 6> counts(extents.size(), 1);
  for (unsigned dim : operandDims[operand])
    if (!result.isBatchedProduct || !isBatch(dim))
      counts[dim] = candidate.chunks[dim];
  return static_cast<double>(access->getRunLength(counts) * spec.stickBytes);
}

/// Adds what the newest candidate at the largest sizes is at the sizes of this
/// search: slices that are empty then need no core.
void DivisionSearch::addAtSize() {
  const DivisionCandidate &largest = atLargest->result.candidates.back();
  DivisionCandidate candidate;
  AffineMap lengths = op.getLoopExtentMap();
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    int64_t chunk = largest.chunks[dim], slices = largest.splits[dim];
    if (varies(lengths, dim)) {
      int64_t granule = std::max<int64_t>(granularity[dim], 1);
      chunk = std::min(llvm::divideCeilSigned(extents[dim], granule * slices) *
                           granule,
                       extents[dim]);
      slices = llvm::divideCeilSigned(extents[dim], chunk);
    }
    candidate.splits.push_back(slices);
    candidate.chunks.push_back(chunk);
  }
  addCandidate(candidate, {});
}

/// There are as many pieces as at the largest sizes, where those have so many
/// iterations; where all loops are cut, as many as have the size that they have
/// there.
static void limitPieces(DivisionCandidate &candidate,
                        const DivisionCandidate &largest, bool isAllCut) {
  double share = 1;
  if (isAllCut && largest.largestSlice > 0)
    share = candidate.largestSlice / largest.largestSlice;
  auto limit = [&](double pieces, double most) {
    return std::min(pieces, std::max(std::ceil(most * share), 1.0));
  };
  candidate.numPieces = limit(candidate.numPieces, largest.numPieces);
  candidate.numStores = limit(candidate.numStores,
                              isAllCut ? largest.numStores : largest.numPieces);
}

/// Cores that have the same part of an operand, where loops are slices of it.
double
DivisionSearch::getSharingCores(unsigned operand,
                                const DivisionCandidate &candidate) const {
  double cores = 1;
  for (int64_t slices : candidate.splits)
    cores *= static_cast<double>(slices);
  for (unsigned dim : operandDims[operand])
    cores /= static_cast<double>(candidate.splits[dim]);
  return cores;
}

void DivisionSearch::addCandidate(DivisionCandidate &candidate,
                                  ArrayRef<int64_t> coreStrides) {
  const DivisionCandidate *largest =
      atLargest ? &atLargest->result.candidates.back() : nullptr;
  double coresUsed = 1;
  candidate.largestSlice = 1;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    coresUsed *= candidate.splits[dim];
    candidate.largestSlice *= candidate.chunks[dim];
  }
  countPieces(candidate);
  if (largest)
    limitPieces(candidate, *largest,
                llvm::all_of(kinds, [](utils::IteratorType kind) {
                  return kind == utils::IteratorType::parallel;
                }));
  candidate.exposedShare = 0;
  candidate.partialSumSeconds = getPartialSumSeconds(candidate);
  double transferred = 0, read = 0;
  for (unsigned operand = 0; operand < result.numOperands; ++operand) {
    int slicing = atLargest ? atLargest->getNewest(operand).slicing
                            : getSlicingNumber(operand, candidate, coreStrides);
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
        sharingCores =
            static_cast<double>(numbers.getCopies(slicing)) *
            (largest ? sharingCores / getSharingCores(operand, *largest) : 1);
      numLoads = largest ? atLargest->getNumLoads(operand, *largest, slicing)
                         : getNumLoads(operand, candidate, slicing);
    }
    // What device memory delivers in all, or what one core can take. Each run
    // of sticks costs more than its bytes.
    double bytes = getLoadedBytes(operand, candidate);
    double movedBytes =
        bytes * ::spyre::numSharedReads(sharingCores, spec) * numLoads;
    if (std::optional<double> runBytes = getRunBytes(operand, candidate)) {
      bytes *= 1 + spec.memoryRunOverheadBytes / *runBytes;
      // The vector unit works on what it reads while it is loaded. Also on what
      // several operations read, which may be copied to LX once for all of
      // them: how a sum is rounded must not depend on who else reads its
      // operand.
      if (op.getUnit() == Unit::SFU && operand + 1 < result.numOperands)
        candidate.exposedShare = std::max(
            candidate.exposedShare, ::spyre::getExposedShare(*runBytes, spec));
    }
    double seconds = std::max(
        bytes * ::spyre::numSharedReads(sharingCores, spec) /
            spec.effectiveMemoryBytesPerSecond,
        bytes * sharingCores / coresUsed / spec.coreMemoryBytesPerSecond);
    if (operand + 1 < result.numOperands) {
      transferred +=
          bytes * numLoads * ::spyre::numSharedReads(sharingCores, spec);
      read += bytes * numLoads * std::max(sharingCores, 1.0);
    }
    result.operandCosts.push_back(
        {seconds * numLoads, seconds, movedBytes, slicing});
  }
  if (read > 0)
    candidate.transfersPerRead = std::min(transferred / read, 1.0);
  if (op.getUnit() == Unit::SFU) {
    candidate.computeSeconds =
        ::spyre::sfuSeconds(candidate.largestSlice * elementCost, spec);
  } else {
    OperandCost *costs = &result.operandCosts.back() + 1 - result.numOperands;
    priceAccumulators(candidate, costs[0], costs[1]);
  }
  result.candidates.push_back(candidate);
  for (std::unique_ptr<DivisionSearch> &search : atSmallerSizes)
    search->addAtSize();
}

/// Time to combine the parts of a split reduction: the first partner takes them
/// in one after another, over the link to its neighbour, and the vector unit
/// adds them up. The matrix unit adds those of a product as they come in.
double
DivisionSearch::getPartialSumSeconds(const DivisionCandidate &candidate) const {
  constexpr double kBytesPerSum = 4;
  int64_t dim = getSplitReduction(kinds, candidate.splits);
  if (dim < 0)
    return 0;
  double sumsOfCore = 1;
  for (unsigned outputDim : operandDims.back())
    sumsOfCore *= static_cast<double>(candidate.chunks[outputDim]);
  double seconds = sumsOfCore * kBytesPerSum / spec.ringBytesPerSecond() +
                   spec.ringHopSeconds();
  if (!result.isDrained)
    seconds += ::spyre::sfuSeconds(sumsOfCore, spec);
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
  double loadsOfX = countTiles(columnDims, tile.columns);
  double loadsOfY = countTiles(rowDims, tile.rows);
  bool isYKept = (loadsOfX - 1) * x.seconds <= (loadsOfY - 1) * y.seconds;
  auto loadAgain = [](OperandCost &operand, double loads) {
    operand.seconds += (loads - 1) * operand.seconds;
    operand.bytes *= loads;
  };
  if (isStreamed || isYKept)
    loadAgain(x, loadsOfX);
  if (isStreamed || !isYKept)
    loadAgain(y, loadsOfY);
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
