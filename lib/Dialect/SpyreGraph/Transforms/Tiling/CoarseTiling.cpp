//===- CoarseTiling.cpp - Which operations run tile by tile -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "../Division/DivisionSearch.h"
#include "DivisionHints.h"
#include "SpanParts.h"
#include "SpanScans.h"
#include "SpanTables.h"
#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "TileHints.h"
#include "TileLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRECOARSETILING
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// The most operations in a group: the search is quadratic in their number.
constexpr unsigned kMaxGroupOps = 48;

remark::RemarkOpts named(StringRef name, Operation *op) {
  return remark::RemarkOpts::name(name)
      .category("spyre-coarse-tiling")
      .function(op->getParentOfType<func::FuncOp>().getName());
}

/// Finds groups in one block and tiles them.
class TilingPlanner {
public:
  TilingPlanner(Block &block, int64_t cores, double lxBytes, bool force,
                const Target &target, const ::spyre::DeviceSpec &spec)
      : block(block), costs(cores, lxBytes, spec), cores(cores), force(force),
        target(target), spec(spec), divisionHints(target) {}

  /// Tiles what hints ask for.
  LogicalResult obeyHints() {
    FailureOr<HintedTilings> hinted = obeyTileHints(
        block, target, [](const OpGroup &group, const Tiling &tiling) {
          explain(group, tiling, "as hinted");
          build(group, tiling.levels);
        });
    if (failed(hinted))
      return failure();
    tilings = std::move(hinted->tilings);
    whole = std::move(hinted->whole);
    nextScope = hinted->nextScope;
    return success();
  }

  /// Tiles groups for which this saves time, and operations that access more
  /// memory than a core can address.
  void run() {
    costs.findCrowdedOut(block);
    SmallVector<SpyreOpInterface> large;
    for (Operation &op : block) {
      auto spyreOp = dyn_cast<SpyreOpInterface>(op);
      if (spyreOp && isWorthTiling(spyreOp))
        large.push_back(spyreOp);
    }
    size_t numHinted = tilings.size();
    // Each group starts at one large intermediate, and takes in further ones as
    // long as that saves more.
    llvm::SmallPtrSet<Operation *, 16> grouped;
    for (unsigned first = 0; first < large.size();) {
      OpGroup group;
      std::optional<Tiling> tiling;
      unsigned last = first;
      for (; last < large.size(); ++last) {
        OpGroup larger = grow(group, large[last]);
        if (larger.size() > kMaxGroupOps ||
            llvm::any_of(larger,
                         [&](Operation *op) { return grouped.contains(op); }))
          break;
        std::string reason;
        std::optional<Tiling> next = findTiling(larger, reason);
        if (!next && !tiling)
          remark::missed(large[first]->getLoc(), named("whole", large[first]))
              << (large[first]->getName().stripDialect() +
                  " is not tiled although its result of " +
                  Twine(static_cast<int64_t>(
                      getWholeBytes(large[first].getSpyreInit()))) +
                  " bytes has no room in the LX of all cores: " + reason)
                     .str();
        if (!next || (tiling && next->savedSeconds <= tiling->savedSeconds))
          break;
        group = std::move(larger);
        tiling = std::move(next);
      }
      first = std::max(last, first + 1);
      if (!tiling)
        continue;
      absorbNeighbours(group, *tiling);
      // Another group may have absorbed the same operation.
      if (llvm::any_of(group,
                       [&](Operation *op) { return grouped.contains(op); }))
        continue;
      if (wouldInterlock(group, ArrayRef(tilings).drop_front(numHinted))) {
        remark::missed(group.front()->getLoc(), named("whole", group.front()))
            << (group.front()->getName().stripDialect() +
                " is not tiled: its loop and another one would need each "
                "other's results")
                   .str();
        continue;
      }
      grouped.insert(group.begin(), group.end());
      tilings.push_back({std::move(group), std::move(*tiling)});
    }
    size_t numSaving = tilings.size();
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto spyreOp = dyn_cast<SpyreOpInterface>(op);
          spyreOp && !grouped.contains(&op) && !whole.contains(&op) &&
          !spyreOp.getLoopExtentMap() &&
          !splitTableForSpans(spyreOp, cores, target, spec) &&
          !splitScanForSpans(spyreOp, cores, target, spec))
        splitForSpans(spyreOp, cores, target, spec);
    for (Operation &op : block)
      if (auto spyreOp = dyn_cast<SpyreOpInterface>(op);
          spyreOp && !grouped.contains(&op) && !whole.contains(&op) &&
          !spyreOp.getLoopExtentMap())
        if (std::optional<Tiling> tiling =
                cutForSpans(spyreOp, cores, target, spec)) {
          OpGroup group;
          group.insert(&op);
          tilings.push_back({std::move(group), std::move(*tiling)});
        }
    for (size_t number = numHinted; number < tilings.size(); ++number) {
      auto &[group, tiling] = tilings[number];
      explain(
          group, tiling,
          number < numSaving
              ? llvm::formatv("saves {0} bytes of traffic, {1:e2} s",
                              static_cast<int64_t>(tiling.savedBytes),
                              tiling.savedSeconds)
                    .str()
              : llvm::formatv("a core addresses up to {0} bytes of a tensor",
                              spec.maxSpanBytes)
                    .str());
      for (TileLevel &level : tiling.levels)
        level.scope = nextScope++;
      build(group, tiling.levels);
    }
  }

  std::vector<std::pair<OpGroup, Tiling>> tilings;

private:
  /// Creates the loops. The tiles get attributes with the hints that would
  /// create the same loops.
  static void build(const OpGroup &group, ArrayRef<TileLevel> levels) {
    Builder builder(group.front()->getContext());
    for (Operation *op : group) {
      if (!isTiled(op, levels))
        continue;
      SmallVector<Attribute> hints;
      for (const TileLevel &level : levels) {
        auto known = level.loopDims.find(op);
        int64_t dim = known == level.loopDims.end()
                          ? -1
                          : static_cast<int64_t>(known->second);
        SmallVector<int64_t> numbers{level.scope, dim, level.getNumTiles()};
        if (level.multiple > 1)
          numbers.push_back(level.multiple);
        hints.push_back(builder.getDenseI64ArrayAttr(numbers));
      }
      op->setAttr(kTilingAttrName, builder.getArrayAttr(hints));
    }
    buildTileLoops(group, levels);
  }

  /// Adds a remark that says which operations run tile by tile, and why.
  static void explain(const OpGroup &group, const Tiling &tiling,
                      const std::string &why) {
    std::string text;
    llvm::raw_string_ostream os(text);
    size_t numTiled = llvm::count_if(
        group, [&](Operation *op) { return isTiled(op, tiling.levels); });
    os << numTiled << (numTiled == 1 ? " operation" : " operations") << " from "
       << group.front()->getName().stripDialect() << " to "
       << group.back()->getName().stripDialect() << " in ";
    llvm::interleave(
        tiling.levels, os,
        [&](const TileLevel &level) {
          os << level.getNumTiles() << " tiles of " << level.tile;
        },
        " times ");
    os << ": " << why;
    remark::passed(group.front()->getLoc(), named("tiled", group.front()))
        << text;
  }

  /// Whether tiling could avoid reading the result from device memory.
  bool isWorthTiling(SpyreOpInterface op) const {
    Value init = op.getSpyreInit();
    return op->getNumResults() == 1 &&
           isa_and_nonnull<LayoutAttr>(getLayout(init.getType())) &&
           init.getDefiningOp<tensor::EmptyOp>() && costs.isTooLarge(op) &&
           llvm::any_of(op->getUsers(), llvm::IsaPred<SpyreOpInterface>);
  }

  /// `group` together with `producer`, another large intermediate, and its
  /// users.
  OpGroup grow(const OpGroup &group, SpyreOpInterface producer) const {
    OpGroup larger(group.begin(), group.end());
    larger.insert(producer);
    for (Operation *user : producer->getUsers())
      if (isa<SpyreOpInterface>(user) && user->getBlock() == &block)
        larger.insert(user);
    return closeGroup(larger);
  }

  /// The best tiling of a group. If there is none, `reason` says why.
  std::optional<Tiling> findTiling(const OpGroup &group,
                                   std::string &reason) const {
    if (!llvm::all_of(group, llvm::IsaPred<SpyreOpInterface>)) {
      reason = "something between it and its users is not a device operation";
      return std::nullopt;
    }
    if (llvm::any_of(group,
                     [&](Operation *op) { return whole.contains(op); })) {
      reason = "a hint keeps it or a user of it whole";
      return std::nullopt;
    }
    // Each level starts from the operation with the most parallel dimensions.
    std::vector<TileLevel> levels;
    SpyreOpInterface seed;
    unsigned mostDims = 0;
    for (Operation *op : group) {
      auto spyreOp = cast<SpyreOpInterface>(op);
      unsigned numDims = spyreOp.getIndexingMaps().back().getNumResults();
      if (!seed || numDims > mostDims) {
        seed = spyreOp;
        mostDims = numDims;
      }
    }
    SmallVector<int64_t> extents = seed.getLoopExtents();
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (extents[dim] > 1)
        if (std::optional<TileLevel> level =
                getTileLevel(group, TileSeed{seed, dim}, reason);
            level && isAllowed(group, *level, reason))
          levels.push_back(std::move(*level));
    if (!levels.empty())
      reason = DivisionHints::areGiven(group)
                   ? "no tiles of whole sticks fit in LX, keep all cores busy "
                     "and have as many slices as hints ask for"
                   : "no tiles of whole sticks fit in LX and keep all cores "
                     "busy";
    std::optional<Tiling> best;
    auto consider = [&](Tiling tiling) {
      reason = "no tiles save time";
      if (!target.allowsRestickifyOfParts() &&
          findPartialRestickify(group, tiling.levels))
        return;
      if (!keepsSpansSmall(group, tiling.levels, cores, target, spec)) {
        reason = "cores cannot address what they need of its tensors";
        return;
      }
      costs.evaluate(group, tiling);
      if ((force || tiling.savedSeconds > 0) &&
          (!best || tiling.savedSeconds > best->savedSeconds))
        best = std::move(tiling);
    };
    for (TileLevel &level : levels)
      if (std::optional<Tiling> tiling = fit(group, {level})) {
        consider(*tiling);
        // Smaller tiles than LX asks for, as long as they save more.
        while (best && best->levels.back().tile == tiling->levels.back().tile &&
               (tiling = halve(group, std::move(*tiling))))
          consider(*tiling);
      }
    // If one level is not enough, two: the outer dimension is cut as far as
    // possible.
    for (TileLevel &outer : levels) {
      if (best)
        break;
      SmallVector<int64_t> tiles = getEqualTiles(group, {outer});
      // Only the innermost level may cut a dimension that is reduced.
      if (tiles.empty() || !outer.reduced.empty())
        continue;
      TileLevel whole = outer;
      whole.tile = tiles.back();
      for (TileLevel &inner : levels)
        if (&inner != &outer)
          if (std::optional<Tiling> tiling = fit(group, {whole, inner}))
            consider(std::move(*tiling));
    }
    return best;
  }

  /// Whether work division would split the sum of an operation that is whole.
  bool isSplit(Operation *op) const {
    auto [known, isNew] = splitSums.try_emplace(op, false);
    if (isNew)
      known->second =
          splitsReduction(cast<SpyreOpInterface>(op), cores, target, spec);
    return known->second;
  }

  /// Whether a level may be chosen without a hint. Not all targets have loops
  /// that accumulate. An operation must round its sums in the same way in every
  /// graph, so tiles must not change the order of additions, and those of a sum
  /// that cores share would. The exception is
  /// the sums that a softmax rescales: they belong to attention, which is one
  /// operation.
  bool isAllowed(const OpGroup &group, const TileLevel &level,
                 std::string &reason) const {
    for (Operation *op : group)
      if (level.loopDims.contains(op) &&
          !llvm::is_contained(level.reduced, op) && isSplit(op)) {
        reason = (op->getName().getStringRef() +
                  " is reduced by several cores together")
                     .str();
        return false;
      }
    bool accumulates = target.allowsCarriedValues();
    if (level.reduced.empty() || (force && accumulates))
      return true;
    auto isFree = [&](Operation *op) {
      Combiner combiner = cast<SpyreOpInterface>(op).getCombiner();
      return (combiner != Combiner::Add && combiner != Combiner::Mul) ||
             llvm::any_of(op->getOperands(), [&](Value operand) {
               return level.shifts.contains(operand.getDefiningOp());
             });
    };
    if (accumulates && llvm::all_of(level.reduced, isFree))
      return true;
    reason = (level.reduced.front()->getName().getStringRef() +
              " reduces the dimension")
                 .str();
    return false;
  }

  /// Chooses the largest tile of the last level with which the live tiles fit
  /// in LX and all cores have work. Unequal tiles need a second program for the
  /// last one: they are chosen only if there are at most half as many.
  std::optional<Tiling> fit(const OpGroup &group,
                            ArrayRef<TileLevel> levels) const {
    std::optional<Tiling> equal = fitEqual(group, levels);
    auto countOf = [](const Tiling &tiling) {
      return tiling.levels.back().getNumTiles();
    };
    if (levels.back().symbol || (equal && countOf(*equal) < 4))
      return equal;
    std::optional<Tiling> unequal = fitUnequal(group, levels);
    if (!equal || (unequal && 2 * countOf(*unequal) <= countOf(*equal)))
      return unequal;
    return equal;
  }

  /// The same level in at least twice as many equal tiles, if they keep all
  /// cores busy. Sums that go on from tile to tile stay as they are.
  std::optional<Tiling> halve(const OpGroup &group, Tiling tiling) const {
    TileLevel &level = tiling.levels.back();
    if (!level.reduced.empty())
      return std::nullopt;
    for (int64_t extent : getEqualTiles(group, tiling.levels))
      if (2 * extent <= level.tile) {
        level.tile = extent;
        if (!costs.keepsCoresBusy(group, tiling.levels))
          return std::nullopt;
        return tiling;
      }
    return std::nullopt;
  }

  /// Extents of equal tiles of the last level, the largest first, that can be
  /// divided over the cores as hints ask.
  SmallVector<int64_t> getEqualTiles(const OpGroup &group,
                                     ArrayRef<TileLevel> levels) const {
    SmallVector<int64_t> extents = getEqualTileExtents(levels.back());
    if (!DivisionHints::areGiven(group))
      return extents;
    SmallVector<TileLevel> tiled(levels);
    llvm::erase_if(extents, [&](int64_t extent) {
      tiled.back().tile = extent;
      return !divisionHints.fit(group, tiled);
    });
    return extents;
  }

  std::optional<Tiling> fitEqual(const OpGroup &group,
                                 ArrayRef<TileLevel> levels) const {
    Tiling tiling{levels.vec()};
    // More tiles need less memory at a time, so a binary search finds the
    // limit.
    SmallVector<int64_t> extents = getEqualTiles(group, levels);
    const auto *largest = llvm::partition_point(extents, [&](int64_t extent) {
      tiling.levels.back().tile = extent;
      return !costs.fits(group, tiling.levels);
    });
    if (largest == extents.end())
      return std::nullopt;
    tiling.levels.back().tile = *largest;
    if (!costs.keepsCoresBusy(group, tiling.levels))
      return std::nullopt;
    return tiling;
  }

  std::optional<Tiling> fitUnequal(const OpGroup &group,
                                   ArrayRef<TileLevel> levels) const {
    Tiling tiling{levels.vec()};
    const TileLevel &level = levels.back();
    int64_t units = llvm::divideCeilSigned(level.extent, level.granularity);
    auto fits = [&](int64_t unitsPerTile) {
      tiling.levels.back().tile = unitsPerTile * level.granularity;
      return costs.fits(group, tiling.levels);
    };
    int64_t least = llvm::divideCeilSigned(units, kMaxTiles);
    if (units < 3 || !fits(least))
      return std::nullopt;
    // Tiles of `least` units fit, tiles of `most` units do not.
    int64_t most = llvm::divideCeilSigned(units, 2) + 1;
    while (most - least > 1) {
      int64_t middle = (least + most) / 2;
      (fits(middle) ? least : most) = middle;
    }
    // Make the tiles as even as possible for their number.
    int64_t count = llvm::divideCeilSigned(units, least);
    tiling.levels.back().tile =
        llvm::divideCeilSigned(units, count) * level.granularity;
    if (!costs.keepsCoresBusy(group, tiling.levels) ||
        !divisionHints.fit(group, tiling.levels))
      return std::nullopt;
    return tiling;
  }

  /// Adds neighbours of the group, users first, while that saves more.
  void absorbNeighbours(OpGroup &group, Tiling &tiling) const {
    llvm::SmallPtrSet<Operation *, 16> tried;
    for (bool changed = true; changed;) {
      changed = false;
      SmallVector<SpyreOpInterface> neighbours;
      auto add = [&](Operation *op) {
        auto spyreOp = dyn_cast_or_null<SpyreOpInterface>(op);
        if (spyreOp && op->getBlock() == &block && !group.contains(op) &&
            tried.insert(op).second)
          neighbours.push_back(spyreOp);
      };
      for (Operation *op : group)
        for (Operation *user : op->getUsers())
          add(user);
      for (Operation *op : group)
        for (Value operand : op->getOperands())
          add(operand.getDefiningOp());
      for (SpyreOpInterface neighbour : neighbours) {
        OpGroup larger(group.begin(), group.end());
        larger.insert(neighbour);
        larger = closeGroup(larger);
        if (larger.size() > kMaxGroupOps)
          continue;
        std::string reason;
        std::optional<Tiling> next = findTiling(larger, reason);
        if (!next || next->savedSeconds <= tiling.savedSeconds)
          continue;
        group = std::move(larger);
        tiling = std::move(*next);
        changed = true;
      }
    }
  }

  Block &block;
  TilingCosts costs;
  int64_t cores;
  bool force;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  DivisionHints divisionHints;
  /// Operations that hints keep outside of all loops.
  llvm::SmallPtrSet<Operation *, 16> whole;
  /// What isSplit() has found.
  mutable DenseMap<Operation *, bool> splitSums;
  /// A scope number that is larger than those of all hints.
  int64_t nextScope = 0;
};

class CoarseTilingPass
    : public spyre_graph::impl::SpyreCoarseTilingBase<CoarseTilingPass> {
public:
  using SpyreCoarseTilingBase::SpyreCoarseTilingBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    DeviceOptions options;
    options.cores = cores;
    options.capacity = capacity;
    options.lxFraction = lxFraction;
    options.maxSpan = maxSpan;
    FailureOr<::spyre::DeviceSpec> given = options.apply(func);
    if (failed(given))
      return signalPassFailure();
    if (!(fill > 0 && fill <= 1)) {
      func.emitError() << "expected a fill above 0 and up to 1, found "
                       << fill.getValue();
      return signalPassFailure();
    }
    const Target *target = getTarget(func);
    // SG-TILING-C1
    if (!target || failed(checkOnTensors(func, getArgument())) ||
        failed(checkLayouts(func)))
      return signalPassFailure();
    double lxBytes = static_cast<double>(given->lxBytesPerCore) *
                     (1.0 - given->lxReservedFraction) * fill;
    // Prices are those of the device.
    ::spyre::DeviceSpec spec = getDeviceSpec(func);
    spec.maxSpanBytes = given->maxSpanBytes;
    double savedBytes = 0; // negative where hints cost traffic
    for (Block &block : func.getBody()) {
      TilingPlanner planner(block, given->numCores, lxBytes, force, *target,
                            spec);
      if (failed(planner.obeyHints()))
        return signalPassFailure();
      planner.run();
      for (auto &[group, tiling] : planner.tilings) {
        ++numGroups;
        numTiled += tiling.levels.front().loopDims.size();
        numReductions += tiling.levels.back().reduced.size();
        numRescaled += tiling.levels.back().shifts.size();
        savedBytes += tiling.savedBytes;
      }
    }
    numSavedBytes += static_cast<uint64_t>(std::max(savedBytes, 0.0));
  }
};

} // namespace
