//===- DivisionSearch.cpp - All divisions of an operation -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionSearch.h"
#include "OperandSpans.h"
#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Planning/SizePrices.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace mlir::spyre_graph;
using ::spyre::planning::getSizeWeight;

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
    std::vector<int64_t> cut;
    for (const SliceDim &dim : slicing.dims)
      cut.insert(cut.end(), {dim.split, dim.chunk, dim.extent, dim.offset,
                             getNumber(dim.chunkAt), getNumber(dim.extentAt)});
    cuts.push_back(
        knownCuts.try_emplace(std::move(cut), knownCuts.size()).first->second);
  }
  return known->second;
}

double Divisions::getSeconds(unsigned number, double loadSeconds,
                             double storeSeconds) const {
  const DivisionCandidate &candidate = candidates[number];
  const double memorySeconds =
      loadSeconds + storeSeconds +
      turnaround *
          std::min(loadSeconds, storeSeconds * candidate.transfersPerRead);
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
  const double exposedSeconds =
      loadSeconds > 0 ? candidate.exposedShare * candidate.computeSeconds : 0;
  return ::spyre::overlapSeconds(candidate.computeSeconds - exposedSeconds,
                                 memorySeconds - drainSeconds, setups,
                                 candidate.numPieces) +
         exposedSeconds + drainSeconds + candidate.partialSumSeconds -
         std::max(hidden, 0.0);
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

SmallVector<SmallVector<int64_t>> spyre_graph::getSmallerSizes(Operation *op) {
  // Few, because each costs as much as the largest, and not halves of each
  // other: what is cut into equal slices at one is not at the next.
  return getSmallerSizes(op, {0.4, 0.16, 0.064});
}

DivisionSearch::DivisionSearch(SpyreOpInterface op, int64_t cores,
                               const Target &target,
                               const ::spyre::DeviceSpec &spec,
                               SlicingNumbers &numbers)
    : op(op), cores(cores), target(target), spec(spec), numbers(numbers),
      extents(op.getLoopExtents()), maps(op.getIndexingMaps()),
      kinds(op.getLoopKinds()), extentMap(op.getLoopExtentMap()),
      granularity(getSliceGranularity(op)), indirect(op.getIndirectAccess()) {
  for (Value operand : op->getOperands())
    shapes.emplace_back(cast<ShapedType>(operand.getType()).getShape());
  describe();
}

DivisionSearch::DivisionSearch(const DivisionSearch &atLargest,
                               ArrayRef<int64_t> sizes)
    : op(atLargest.op), cores(atLargest.cores), target(atLargest.target),
      spec(atLargest.spec), numbers(atLargest.numbers), maps(atLargest.maps),
      kinds(atLargest.kinds), granularity(atLargest.granularity),
      indirect(atLargest.indirect), atLargest(&atLargest) {
  auto evaluateAll = [&](ArrayRef<AffineExpr> exprs, auto &numbers) {
    for (AffineExpr expr : exprs)
      numbers.push_back(std::max<int64_t>(evaluateSize(expr, sizes), 1));
  };
  evaluateAll(op.getLoopExtentMap().getResults(), extents);
  for (OpOperand &operand : op->getOpOperands())
    evaluateAll(getSizes(op.isDpsInit(&operand) && op->getNumResults() == 1
                             ? op->getResult(0)
                             : operand.get()),
                shapes.emplace_back());
  describe();
}

void DivisionSearch::describe() {
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

/// A value with more than this share of the usable LX of all cores has no room
/// there in two kinds of slices, beside a fifth for other values: it cannot
/// move over the ring to an op that works in other slices than its producer.
static constexpr double kMovedShareOfLX = 0.4;

/// If an op other than a product reads such a value, a split of what it reduces
/// must save this fraction among neighbours: those that cannot work in its
/// slices, as products, send the value through device memory.
static constexpr double kLeastSavingOfSplit = 0.2;

Divisions DivisionSearch::run() {
  searchAll();
  for (std::unique_ptr<DivisionSearch> &search : atSmallerSizes)
    result.atSmallerSizes.push_back(std::move(search->result));
  return std::move(result);
}

/// A time of all sizes together: what it is of the least time at each size, or
/// the time itself where the op has one size.
double DivisionSearch::sumOverSizes(
    function_ref<double(const DivisionSearch &)> getSeconds) const {
  if (atSmallerSizes.empty())
    return getSeconds(*this);
  double sum = getSeconds(*this) * getSizeWeight(leastSeconds);
  for (const std::unique_ptr<DivisionSearch> &search : atSmallerSizes)
    sum += getSeconds(*search) * getSizeWeight(search->leastSeconds);
  return sum;
}

void DivisionSearch::searchAll() {
  if (extentMap && !llvm::is_contained(extents, 0))
    for (ArrayRef<int64_t> sizes : getSmallerSizes(op))
      atSmallerSizes.emplace_back(new DivisionSearch(*this, sizes));
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
  searchReductions();
  leastSeconds = result.getLeastSecondsAlone();
  for (std::unique_ptr<DivisionSearch> &search : atSmallerSizes)
    search->leastSeconds = search->result.getLeastSecondsAlone();
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

/// Prices of a product that differ by less than this fraction are equal: it is
/// about the median error of the timing engine for matmuls.
static constexpr double kEqualPrices = 0.05;

/// Whether the second factor of a product is computed like the first one, not a
/// weight or a cache: keys and values of a prompt are as many as its queries,
/// those of a cache are more.
bool DivisionSearch::isSecondFactorComputed() const {
  if (!result.isBatchedProduct)
    return false;
  auto countElements = [&](unsigned operand) {
    double elements = 1;
    for (unsigned dim : operandDims[operand])
      elements *= static_cast<double>(extents[dim]);
    return elements;
  };
  return countElements(1) <= countElements(0);
}

/// Whether an operand is too large to move from the slices in which a neighbour
/// leaves it in LX to others.
bool DivisionSearch::isTooLargeToMove() const {
  double mostBytes =
      kMovedShareOfLX * static_cast<double>(cores * spec.usableLXBytes());
  return llvm::any_of(
      ArrayRef(result.operandBytes).take_front(result.numOperands - 1),
      [&](double bytes) { return bytes > mostBytes; });
}

/// Time of a candidate among neighbours that leave in LX what they compute: all
/// operands; of a product the first one and the result, since the second one is
/// mostly a weight, or of a batched product a cache. Where several cores read a
/// part of what lies in LX, it moves over the ring.
double DivisionSearch::getSecondsAmongNeighbours(unsigned number) const {
  if (!result.isDrained)
    return result.getSeconds(number, 0, 0);
  double loadSeconds = 0, moveSeconds = 0;
  for (unsigned operand = 0; operand + 1 < result.numOperands; ++operand) {
    const OperandCost &cost = result.get(number, operand);
    bool isComputed =
        operand == 0 || (operand == 1 && isSecondFactorComputed());
    if (!isComputed || cost.slicing == SlicingNumbers::kNone)
      loadSeconds += cost.seconds;
    else if (int64_t copies = numbers.getCopies(cost.slicing); copies > 1)
      moveSeconds += ::spyre::ringShuffleSeconds(
          result.operandBytes[operand] * static_cast<double>(copies), cores,
          spec);
  }
  return result.getSeconds(number, loadSeconds, 0) + moveSeconds;
}

double DivisionSearch::getPriceAlone(unsigned number) const {
  return sumOverSizes([&](const DivisionSearch &search) {
    return search.result.getSecondsAlone(number);
  });
}

double DivisionSearch::getPriceAmongNeighbours(unsigned number) const {
  // What follows a batched product divides it otherwise. Where sizes vary, a
  // split must pay although that counts as a way through device memory, which
  // is more than a move from the first partners takes.
  bool isReadBack = !atSmallerSizes.empty() && result.isBatchedProduct &&
                    getReductionSlices(number).first >= 0;
  return sumOverSizes([&](const DivisionSearch &search) {
    const OperandCost &written =
        search.result.get(number, result.numOperands - 1);
    return search.getSecondsAmongNeighbours(number) +
           (isReadBack ? 2 * written.seconds : 0);
  });
}

/// The dimension of the split reduction, or -1, and the number of its slices.
std::pair<int64_t, int64_t>
DivisionSearch::getReductionSlices(unsigned number) const {
  ArrayRef<int64_t> splits = result.candidates[number].splits;
  int64_t dim = getSplitReduction(kinds, splits);
  return {dim, dim < 0 ? 1 : splits[dim]};
}

/// The cheapest candidate among neighbours of those that split the reduction in
/// a way that costs about as much as `alone`, or less, with all operands in
/// device memory. A product may wait for device memory however it is divided,
/// and what neighbours leave in LX then decides.
unsigned DivisionSearch::chooseAmongEqualSplits(unsigned alone) const {
  double mostPrice = getPriceAlone(alone);
  if (result.isDrained)
    mostPrice *= 1 + kEqualPrices;
  SmallVector<std::pair<int64_t, int64_t>> equal{getReductionSlices(alone)};
  for (unsigned number = 0; number < result.candidates.size(); ++number) {
    auto slices = getReductionSlices(number);
    if (slices.first >= 0 && getPriceAlone(number) <= mostPrice &&
        !llvm::is_contained(equal, slices))
      equal.push_back(slices);
  }
  unsigned best = alone;
  for (unsigned number = 0; number < result.candidates.size(); ++number)
    if (llvm::is_contained(equal, getReductionSlices(number)) &&
        getPriceAmongNeighbours(number) < getPriceAmongNeighbours(best))
      best = number;
  return best;
}

/// A candidate that splits a reduction, if that pays for one more transfer,
/// which neighbours need that do not work in such slices; and if it pays among
/// neighbours, too: what they leave in LX takes no time that would hide a split
/// which is slower to compute.
std::optional<unsigned> DivisionSearch::chooseSplitReduction() const {
  auto getCheapest = [&](bool isSplit,
                         llvm::function_ref<double(unsigned)> getPrice) {
    std::optional<unsigned> best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned number = 0; number < result.candidates.size(); ++number) {
      double price = getPrice(number);
      if ((getReductionSlices(number).first >= 0) == isSplit && price < least) {
        best = number;
        least = price;
      }
    }
    return std::make_pair(best, least);
  };
  auto getAlone = [&](unsigned number) { return getPriceAlone(number); };
  auto getAmongNeighbours = [&](unsigned number) {
    return getPriceAmongNeighbours(number);
  };
  auto [split, splitPrice] = getCheapest(/*isSplit=*/true, getAlone);
  auto [whole, wholePrice] = getCheapest(/*isSplit=*/false, getAlone);
  if (!split || !whole)
    return split;
  double setupPrice = sumOverSizes(
      [&](const DivisionSearch &) { return spec.transferSetupSeconds; });
  if (splitPrice + setupPrice >= wholePrice)
    return std::nullopt;
  unsigned best = chooseAmongEqualSplits(*split);
  auto pays = [&](llvm::function_ref<double(unsigned)> getPrice) {
    double mostPrice = getCheapest(/*isSplit=*/false, getPrice).second;
    if (result.isDrained)
      mostPrice *= 1 + kEqualPrices;
    else if (isTooLargeToMove())
      mostPrice *= 1 - kLeastSavingOfSplit;
    return getPrice(best) < mostPrice;
  };
  // Of few rows along sticks, whole sums use few cores. What a split saves
  // there is little of what it may cost at the largest size.
  return pays(getAmongNeighbours) &&
                 (atSmallerSizes.empty() || pays([&](unsigned number) {
                    return getSecondsAmongNeighbours(number);
                  }))
             ? std::optional(best)
             : std::nullopt;
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
    searchReductions();
  return std::move(result);
}

/// Adds the divisions that split a reduction dimension.
void DivisionSearch::searchReductions() {
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (kinds[dim] == utils::IteratorType::parallel)
      continue;
    splitReduction = dim;
    if (canSplit(dim))
      search();
  }
}

Divisions DivisionSearch::price(WorkDivisionAttr division) {
  DivisionCandidate given;
  given.splits.assign(division.getSplits().begin(), division.getSplits().end());
  given.chunks.assign(division.getChunks().begin(), division.getChunks().end());
  addCandidate(given, division.getCoreStrides());
  return std::move(result);
}

void DivisionSearch::describeOperand(OpOperand &operand) {
  auto type = cast<ShapedType>(operand.get().getType());
  ArrayRef<int64_t> shape = shapes[operand.getOperandNumber()];
  SmallVector<unsigned, 6> dims;
  double iterations = 1;
  llvm::SmallBitVector usedDims =
      getUsedDims(maps[operand.getOperandNumber()], extents);
  for (unsigned dim : usedDims.set_bits()) {
    dims.push_back(dim);
    iterations *= extents[dim];
  }
  double elements = std::max<int64_t>(ShapedType::getNumElements(shape), 1);
  LayoutAttrInterface layout = getLayout(type);
  double bytes =
      layout ? layout.getSizeInBytes(shape) : elements * spec.stickBytes;
  bytes *= std::min(1.0, iterations / elements);
  unsigned number = operand.getOperandNumber();
  bool isAcrossSticks =
      layout && number + 1 < maps.size() &&
      !(indirect && indirect->operand == number) &&
      getLaneAccess(maps[number], layout, shape, extents).kind ==
          LaneAccess::Irregular;
  if (isAcrossSticks)
    bytes = spec.stickBytes *
            getNumTouchedSticks(maps[number], layout, shape, extents);
  result.operandBytes.push_back(bytes);
  readsAcrossSticks.push_back(isAcrossSticks);
  bool isIndirect = indirect && indirect->operand == number;
  stickAccesses.push_back(
      layout && !isIndirect && !isAcrossSticks
          ? getStickAccess(maps[number], layout, shape, extents)
          : std::nullopt);
  operandDims.push_back(std::move(dims));
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
    addCandidate(whole, whole.splits);
  else
    enumerate(0, 1, whole);
  keepSmallSpans();
}

void DivisionSearch::keepIf(function_ref<bool(unsigned)> isKept) {
  // `isKept` may look at the candidates that go.
  for (std::unique_ptr<DivisionSearch> &search : atSmallerSizes)
    search->keepIf(isKept);
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
  return splitReduction == static_cast<int64_t>(dim);
}

/// Whether slices have one size at every size of a loop dimension, where the
/// target needs that. (At the largest one they have.)
bool DivisionSearch::canBeEqual(unsigned dim, int64_t numSlices) const {
  if (target.allowsUnequalSlices() || !varies(extentMap, dim))
    return true;
  SmallVector<AffineExpr> steps;
  for (auto [number, symbol] : llvm::enumerate(getSizeSymbols(op)))
    steps.push_back(getAffineSymbolExpr(number, op->getContext()) *
                    symbol.getStep());
  int64_t step =
      extentMap.getResult(dim).replaceSymbols(steps).getLargestKnownDivisor();
  return step % (numSlices * granularity[dim]) == 0;
}

/// Tries every useful number of slices of loop dimension `dim` and of the
/// dimensions after it.
void DivisionSearch::enumerate(unsigned dim, int64_t coresUsed,
                               DivisionCandidate &candidate) {
  if (dim == extents.size()) {
    // The same order as in WorkDivisionAttr::getCoreStrides(): the split
    // reduction first.
    int64_t stride = splitReduction < 0 ? 1 : candidate.splits[splitReduction];
    SmallVector<int64_t, 6> strides;
    for (unsigned other = 0; other < extents.size(); ++other) {
      bool isFirst = splitReduction == static_cast<int64_t>(other);
      strides.push_back(isFirst ? 1 : stride);
      stride *= isFirst ? 1 : candidate.splits[other];
    }
    return addCandidate(candidate, strides);
  }
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
    if (!canBeEqual(dim, numSlices))
      continue;
    candidate.splits[dim] = numSlices;
    candidate.chunks[dim] = chunk;
    enumerate(dim + 1, coresUsed * numSlices, candidate);
  }
  candidate.splits[dim] = 1;
  candidate.chunks[dim] = extents[dim];
}

int DivisionSearch::getSlicingNumber(unsigned operand,
                                     const DivisionCandidate &candidate,
                                     ArrayRef<int64_t> coreStrides) {
  bool isInit = operand + 1 == maps.size();
  if ((indirect && indirect->operand == operand) ||
      (isInit && op.getInitOffset()))
    return SlicingNumbers::kNone;
  std::optional<Slicing> slicing = getSlicing(
      maps[operand], extents, candidate.splits, candidate.chunks, coreStrides,
      extentMap, getChunkMap(op, candidate.splits, candidate.chunks));
  ArrayRef<int64_t> shape = shapes[operand];
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
