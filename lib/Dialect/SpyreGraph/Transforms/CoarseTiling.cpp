//===- CoarseTiling.cpp - Which operations run tile by tile -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
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

/// Largest group that is considered: the search is quadratic in it.
constexpr unsigned kMaxGroupOps = 48;

/// Numbers of tiles with more loop iterations than this are not considered.
constexpr int64_t kMaxTiles = 1024;

remark::RemarkOpts named(StringRef name, Operation *op) {
  return remark::RemarkOpts::name(name)
      .category("spyre-coarse-tiling")
      .function(op->getParentOfType<func::FuncOp>().getName());
}

ShapedType typeOf(Value value) { return cast<ShapedType>(value.getType()); }

double bytesOf(ShapedType type, ArrayRef<int64_t> shape) {
  return getLayout(type).getSizeInBytes(shape);
}

/// A way to tile a group, and what it gains.
struct Tiling {
  std::vector<TileLevel> levels;
  double savedSeconds = 0, savedBytes = 0;
};

/// Finds groups in one block and tiles them.
class TilingPlanner {
public:
  TilingPlanner(Block &block, int64_t cores, double lxBytes, bool force,
                bool superdscCompatible)
      : block(block), cores(cores), lxBytes(lxBytes), force(force),
        superdscCompatible(superdscCompatible) {}

  /// Tiles what hints ask for.
  LogicalResult obeyHints() {
    numberOps();
    // Operations under the same scopes, whatever lies between them.
    llvm::MapVector<ArrayAttr, OpGroup> groups;
    for (Operation &op : block)
      if (auto hints = op.getAttrOfType<ArrayAttr>(kTileHintsAttrName)) {
        SmallVector<Attribute> scopes;
        for (Attribute hint : hints) {
          auto numbers = dyn_cast<DenseI64ArrayAttr>(hint);
          if (!numbers || numbers.size() != 3)
            return op.emitOpError() << kTileHintsAttrName
                                    << " must hold arrays [scope, loop "
                                       "dimension, tiles], but found "
                                    << hint;
          scopes.push_back(Builder(op.getContext())
                               .getDenseI64ArrayAttr({numbers[0], numbers[2]}));
          nextScope = std::max(nextScope, numbers[0] + 1);
        }
        if (hints.empty()) {
          op.removeAttr(kTileHintsAttrName);
          whole.insert(&op);
          continue;
        }
        groups[ArrayAttr::get(op.getContext(), scopes)].insert(&op);
      }
    for (auto &[scopes, members] : groups) {
      removeReduced(members);
      if (members.empty())
        continue;
      OpGroup group = close(members);
      std::vector<TileLevel> levels;
      for (unsigned depth = 0; depth < scopes.size(); ++depth) {
        FailureOr<std::optional<TileLevel>> level = getHinted(group, depth);
        if (failed(level))
          return failure();
        if (*level)
          levels.push_back(std::move(**level));
      }
      for (Operation *op : group)
        op->removeAttr(kTileHintsAttrName);
      if (levels.empty())
        continue;
      // SG-TILE-HINT-C2
      if (Operation *op = findPartialRestickify(group, levels))
        return op->emitOpError("changes the stick of a part of a tensor, which "
                               "SuperDSC cannot say");
      tilings.push_back({group, Tiling{levels}});
      explain(group, tilings.back().second, "as hinted");
      build(group, levels);
    }
    return success();
  }

  void run() {
    numberOps();
    SmallVector<SpyreOpInterface> large;
    for (Operation &op : block) {
      auto spyreOp = dyn_cast<SpyreOpInterface>(op);
      if (spyreOp && isWorthTiling(spyreOp))
        large.push_back(spyreOp);
    }
    size_t numHinted = tilings.size();
    // Each group grows by one large intermediate after the other while that
    // gains more.
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
                  " runs on the whole although its result of " +
                  Twine(static_cast<int64_t>(
                      wholeBytes(large[first].getSpyreInit()))) +
                  " bytes is larger than the LX of all cores: " + reason)
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
      grouped.insert(group.begin(), group.end());
      tilings.push_back({std::move(group), std::move(*tiling)});
    }
    for (size_t number = numHinted; number < tilings.size(); ++number) {
      auto &[group, tiling] = tilings[number];
      explain(group, tiling,
              llvm::formatv("saves {0} bytes of traffic, {1:e2} s",
                            static_cast<int64_t>(tiling.savedBytes),
                            tiling.savedSeconds)
                  .str());
      for (TileLevel &level : tiling.levels)
        level.scope = nextScope++;
      build(group, tiling.levels);
    }
  }

  std::vector<std::pair<OpGroup, Tiling>> tilings;

private:
  void numberOps() {
    order.clear();
    int64_t next = 0;
    for (Operation &op : block)
      order[&op] = next++;
  }

  /// Makes the loops; the tiles remember which hints would make them.
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
        hints.push_back(builder.getDenseI64ArrayAttr(
            {level.scope, dim, level.getNumTiles()}));
      }
      op->setAttr(kTilingAttrName, builder.getArrayAttr(hints));
    }
    buildTileLoops(group, levels);
  }

  /// Says which operations run tile by tile, and why.
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

  /// A hinted dimension, and its depth, that an operation reduces.
  struct ReducedHint {
    int64_t loopDim;
    unsigned depth;
  };

  static std::optional<ReducedHint> getReducedHint(SpyreOpInterface op) {
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    auto hints = op->getAttrOfType<ArrayAttr>(kTileHintsAttrName);
    for (auto [depth, hint] : llvm::enumerate(hints)) {
      auto numbers = cast<DenseI64ArrayAttr>(hint);
      if (numbers[1] >= 0 && numbers[1] < static_cast<int64_t>(kinds.size()) &&
          kinds[numbers[1]] != utils::IteratorType::parallel)
        return ReducedHint{numbers[1], static_cast<unsigned>(depth)};
    }
    return std::nullopt;
  }

  /// Takes out the operations that reduce a dimension which the hints cut, if
  /// they cannot accumulate in the loop. They then run on the whole, outside
  /// of it, as does an operation that other tiled ones need a result of.
  void removeReduced(OpGroup &members) {
    SmallVector<std::pair<Operation *, ReducedHint>> reducing;
    for (Operation *op : members)
      if (auto hint = getReducedHint(cast<SpyreOpInterface>(op)))
        reducing.push_back({op, *hint});
    if (reducing.empty())
      return;
    OpGroup group = close(members);
    std::string reason = "SuperDSC has no loops that accumulate";
    bool accumulates = !superdscCompatible && llvm::all_of(group, isDeviceOp);
    for (auto [op, hint] : reducing) {
      auto spyreOp = cast<SpyreOpInterface>(op);
      auto hints = op->getAttrOfType<ArrayAttr>(kTileHintsAttrName);
      if (accumulates && hint.depth + 1 != hints.size()) {
        reason = "only the innermost loop accumulates";
        accumulates = false;
      }
      accumulates =
          accumulates && getTileLevel(group, spyreOp, hint.loopDim, reason);
    }
    if (accumulates)
      return;
    for (auto [op, hint] : reducing) {
      remark::missed(op->getLoc(), named("outside-hint", op))
          << (op->getName().stripDialect() +
              " runs on the whole, outside the hinted loop, because it "
              "reduces loop dimension " +
              Twine(hint.loopDim) +
              ", which the hint cuts into tiles: " + reason)
                 .str();
      op->removeAttr(kTileHintsAttrName);
      members.remove(op);
    }
  }

  /// The level that the hints at one depth ask for; none if no operation has
  /// the dimension.
  static FailureOr<std::optional<TileLevel>> getHinted(const OpGroup &group,
                                                       unsigned depth) {
    for (Operation *op : group) {
      auto hints = op->getAttrOfType<ArrayAttr>(kTileHintsAttrName);
      if (!hints)
        continue;
      auto numbers = cast<DenseI64ArrayAttr>(hints[depth]);
      int64_t loopDim = numbers[1], numTiles = numbers[2];
      auto seed = cast<SpyreOpInterface>(op);
      if (loopDim < 0)
        continue;
      // SG-TILE-HINT-C2
      if (loopDim >= static_cast<int64_t>(seed.getLoopExtents().size()))
        return op->emitOpError() << "has no loop dimension " << loopDim
                                 << " to cut into " << numTiles << " tiles";
      std::string reason;
      std::optional<TileLevel> level =
          llvm::all_of(group, isDeviceOp)
              ? getTileLevel(group, seed, loopDim, reason)
              : std::nullopt;
      if (!level)
        return op->emitOpError()
               << "loop dimension " << loopDim << " cannot be cut into "
               << numTiles << " tiles: "
               << (reason.empty() ? "something between the operations is no "
                                    "device operation"
                                  : reason);
      // SG-TILE-HINT-C1
      if (numTiles < 1 || level->extent % numTiles != 0 ||
          level->extent / numTiles % level->granularity != 0) {
        SmallVector<int64_t> fitting{1};
        for (int64_t extent : getTileExtents(*level))
          fitting.push_back(level->extent / extent);
        return op->emitOpError()
               << "loop dimension " << loopDim << " of extent " << level->extent
               << " cannot be cut into " << numTiles
               << " equal tiles of whole sticks; what fits is " << fitting;
      }
      // SG-TILE-HINT-C3
      if (!level->reduced.empty() && depth + 1 != hints.size())
        return op->emitOpError()
               << "loop dimension " << loopDim << " is reduced by "
               << level->reduced.front()->getName()
               << ", so its loop must be the innermost";
      level->tile = level->extent / numTiles;
      level->scope = numbers[0];
      return level;
    }
    return std::optional<TileLevel>();
  }

  /// Whether no placement can keep the result in LX as a whole.
  bool isTooLarge(SpyreOpInterface op) const {
    return wholeBytes(op.getSpyreInit()) > lxBytes * cores;
  }

  /// Whether the result is in device memory without tiling, where its users
  /// read it: because it is too large or because it leaves the function.
  bool isInDeviceMemory(SpyreOpInterface op) const {
    return isTooLarge(op) || !llvm::all_of(op->getUsers(), isDeviceOp);
  }

  static bool isDeviceOp(Operation *op) { return isa<SpyreOpInterface>(op); }

  /// Whether tiles could keep the result from being read from device memory.
  bool isWorthTiling(SpyreOpInterface op) const {
    Value init = op.getSpyreInit();
    return op->getNumResults() == 1 &&
           isa_and_nonnull<LayoutAttr>(getLayout(init.getType())) &&
           init.getDefiningOp<tensor::EmptyOp>() && isTooLarge(op) &&
           llvm::any_of(op->getUsers(), isDeviceOp);
  }

  /// `group` with the producer and the users of another large intermediate.
  OpGroup grow(const OpGroup &group, SpyreOpInterface producer) const {
    OpGroup larger(group.begin(), group.end());
    larger.insert(producer);
    for (Operation *user : producer->getUsers())
      if (isDeviceOp(user) && user->getBlock() == &block)
        larger.insert(user);
    return close(larger);
  }

  /// A group with what lies on paths between its operations, in program order.
  OpGroup close(const OpGroup &larger) const {
    auto inOrder = [&](Operation *a, Operation *b) {
      return order.lookup(a) < order.lookup(b);
    };
    auto [first, last] =
        std::minmax_element(larger.begin(), larger.end(), inOrder);
    llvm::SmallPtrSet<Operation *, 16> after, before;
    for (Operation *op = *first;; op = op->getNextNode()) {
      if (larger.contains(op) ||
          llvm::any_of(op->getOperands(), [&](Value operand) {
            return after.contains(operand.getDefiningOp());
          }))
        after.insert(op);
      if (op == *last)
        break;
    }
    SmallVector<Operation *> members;
    for (Operation *op = *last;; op = op->getPrevNode()) {
      bool isMember = larger.contains(op);
      if (isMember || llvm::any_of(op->getUsers(), [&](Operation *user) {
            return before.contains(user);
          })) {
        before.insert(op);
        if (isMember || after.contains(op))
          members.push_back(op);
      }
      if (op == *first)
        break;
    }
    std::reverse(members.begin(), members.end());
    return OpGroup(members.begin(), members.end());
  }

  /// The best tiling of a group, or nothing and `reason` says why.
  std::optional<Tiling> findTiling(const OpGroup &group,
                                   std::string &reason) const {
    if (!llvm::all_of(group, llvm::IsaPred<SpyreOpInterface>)) {
      reason = "something between it and its users is no device operation";
      return std::nullopt;
    }
    if (llvm::any_of(group,
                     [&](Operation *op) { return whole.contains(op); })) {
      reason = "a hint keeps it or a user of it whole";
      return std::nullopt;
    }
    // Every level cuts the operation that has most parallel dimensions.
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
                getTileLevel(group, seed, dim, reason);
            level && isAllowed(*level, reason))
          levels.push_back(std::move(*level));
    if (!levels.empty())
      reason = "no equal tiles of whole sticks fit in LX and keep all cores "
               "busy";
    std::optional<Tiling> best;
    auto consider = [&](Tiling tiling) {
      reason = "no tiles save time";
      if (findPartialRestickify(group, tiling.levels))
        return;
      evaluate(group, tiling);
      if ((force || tiling.savedSeconds > 0) &&
          (!best || tiling.savedSeconds > best->savedSeconds))
        best = std::move(tiling);
    };
    for (TileLevel &level : levels)
      if (std::optional<Tiling> tiling = fit(group, {level}))
        consider(std::move(*tiling));
    // A pair: the outer dimension is cut as far as it goes.
    for (TileLevel &outer : levels) {
      if (best)
        break;
      SmallVector<int64_t> tiles = getTileExtents(outer);
      // Only the innermost level accumulates.
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

  /// Whether a level may be chosen without a hint. SuperDSC has no loops that
  /// accumulate. Sums are rounded alike wherever an operation stands, so tiles
  /// do not change their order, but for those that a softmax rescales: they
  /// are attention's, and part of one operation.
  bool isAllowed(const TileLevel &level, std::string &reason) const {
    if (level.reduced.empty() || (force && !superdscCompatible))
      return true;
    auto isFree = [&](Operation *op) {
      Combiner combiner = cast<SpyreOpInterface>(op).getCombiner();
      return (combiner != Combiner::Add && combiner != Combiner::Mul) ||
             llvm::any_of(op->getOperands(), [&](Value operand) {
               return level.shifts.contains(operand.getDefiningOp());
             });
    };
    if (!superdscCompatible && llvm::all_of(level.reduced, isFree))
      return true;
    reason = (level.reduced.front()->getName().getStringRef() +
              " reduces the dimension")
                 .str();
    return false;
  }

  /// Extents of equal tiles of whole sticks, the largest first.
  static SmallVector<int64_t> getTileExtents(const TileLevel &level) {
    SmallVector<int64_t> extents;
    for (int64_t count = 2; count <= std::min(level.extent, kMaxTiles); ++count)
      if (level.extent % count == 0 &&
          (level.extent / count) % level.granularity == 0)
        extents.push_back(level.extent / count);
    return extents;
  }

  /// Chooses the largest tile of the last level with which the live tiles fit
  /// and all cores have work.
  std::optional<Tiling> fit(const OpGroup &group,
                            ArrayRef<TileLevel> levels) const {
    Tiling tiling{levels.vec()};
    for (int64_t extent : getTileExtents(levels.back())) {
      tiling.levels.back().tile = extent;
      if (!keepsCoresBusy(group, tiling.levels))
        return std::nullopt;
      if (getLiveBytesPerCore(group, tiling.levels) <= lxBytes)
        return tiling;
    }
    return std::nullopt;
  }

  static bool isTiled(Operation *op, ArrayRef<TileLevel> levels) {
    return llvm::any_of(levels, [&](const TileLevel &level) {
      return level.loopDims.contains(op);
    });
  }

  /// Whether the operation reduces a dimension tile by tile.
  static bool isReduced(Operation *op, ArrayRef<TileLevel> levels) {
    return llvm::any_of(levels, [&](const TileLevel &level) {
      return level.reduced.contains(op);
    });
  }

  static double getAccumulatorBytes(SpyreOpInterface op,
                                    ArrayRef<TileLevel> levels) {
    OpOperand &init = op->getOpOperand(op->getNumOperands() - 1);
    RankedTensorType type = PartialReduction::get(op)->getAccumulatorType(
        cast<RankedTensorType>(init.get().getType()));
    return bytesOf(type, getTileShape(init, levels));
  }

  /// Slices of an operation that different cores can work on.
  static int64_t getParallelism(SpyreOpInterface op,
                                ArrayRef<TileLevel> levels) {
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (const TileLevel &level : levels)
      if (auto known = level.loopDims.find(op); known != level.loopDims.end())
        extents[known->second] = level.tile;
    int64_t units = 1;
    for (auto [extent, granularity, kind] :
         llvm::zip_equal(extents, getSliceGranularity(op), op.getLoopKinds()))
      if (kind == utils::IteratorType::parallel)
        units *= llvm::divideCeilSigned(extent, granularity);
    return units;
  }

  /// An operation that would change the stick of a tile of a tensor in device
  /// memory where SuperDSC must be able to say the plan: it has no gaps for it.
  Operation *findPartialRestickify(const OpGroup &group,
                                   ArrayRef<TileLevel> levels) const {
    if (!superdscCompatible)
      return nullptr;
    auto isTiledHere = [&](Operation *op) {
      return op && group.contains(op) && isTiled(op, levels);
    };
    for (Operation *op : group) {
      if (!isa<IdentityOp, RestickifyOp>(op) || !isTiled(op, levels) ||
          !changesStick(cast<SpyreOpInterface>(op)))
        continue;
      OpOperand &in = op->getOpOperand(0);
      bool readsPart =
          ArrayRef(getTileShape(in, levels)) != typeOf(in.get()).getShape();
      if ((readsPart && !isTiledHere(in.get().getDefiningOp())) ||
          llvm::none_of(op->getUsers(), isTiledHere))
        return op;
    }
    return nullptr;
  }

  static bool changesStick(SpyreOpInterface copy) {
    SmallVector<int64_t> extents = copy.getLoopExtents();
    SmallVector<AffineMap> maps = copy.getIndexingMaps();
    auto laneOf = [&](unsigned operand) {
      Type type = copy->getOperand(operand).getType();
      LaneAccess lane =
          getLaneAccess(maps[operand], getLayout(type),
                        cast<ShapedType>(type).getShape(), extents);
      return lane.kind == LaneAccess::Variable ? lane.dim : -1;
    };
    return laneOf(0) != laneOf(1);
  }

  bool keepsCoresBusy(const OpGroup &group, ArrayRef<TileLevel> levels) const {
    return llvm::all_of(group, [&](Operation *op) {
      auto spyreOp = cast<SpyreOpInterface>(op);
      return !isTiled(op, levels) ||
             getParallelism(spyreOp, levels) >=
                 std::min(cores, getParallelism(spyreOp, {}));
    });
  }

  /// Greatest sum of the tile buffers that are live together, per core.
  double getLiveBytesPerCore(const OpGroup &group,
                             ArrayRef<TileLevel> levels) const {
    DenseMap<Operation *, int64_t> position;
    int64_t next = 0;
    for (Operation *op : group)
      position[op] = next++;
    std::vector<double> change(next + 1, 0.0);
    double accumulators = 0;
    for (Operation *op : group) {
      // The accumulator, and what the current tile adds to it.
      if (isReduced(op, levels)) {
        accumulators +=
            2 * getAccumulatorBytes(cast<SpyreOpInterface>(op), levels);
        continue;
      }
      int64_t last = -1;
      for (Operation *user : op->getUsers())
        if (auto known = position.find(user); known != position.end())
          last = std::max(last, known->second);
      if (last < 0 || !isTiled(op, levels))
        continue;
      OpOperand &init = op->getOpOperand(op->getNumOperands() - 1);
      double bytes = bytesOf(typeOf(init.get()), getTileShape(init, levels));
      change[position[op]] += bytes;
      change[last + 1] -= bytes;
    }
    double live = accumulators, greatest = accumulators;
    for (double bytes : change) {
      live += bytes;
      greatest = std::max(greatest, live);
    }
    return greatest / cores;
  }

  /// Sets what a tiling saves. Without it, values in device memory are written
  /// once and read by each user, and the others are taken to stay in LX. With
  /// it, values handed on within the group stay in LX, all others travel, and
  /// what is not cut is read once per tile. Each tile waits anew for what it
  /// reads from device memory.
  void evaluate(const OpGroup &group, Tiling &tiling) const {
    ArrayRef<TileLevel> levels = tiling.levels;
    double numTiles = 1;
    for (const TileLevel &level : levels)
      numTiles *= level.getNumTiles();
    double saved = 0, waits = 0, accumulated = 0;
    llvm::SmallPtrSet<Operation *, 8> written;
    for (Operation *op : group) {
      if (!isTiled(op, levels))
        continue;
      auto spyreOp = cast<SpyreOpInterface>(op);
      double whole = wholeBytes(spyreOp.getSpyreInit());
      // What accumulates is read and written once per tile, in LX.
      if (isReduced(op, levels))
        accumulated += 3 * numTiles * getAccumulatorBytes(spyreOp, levels);
      int64_t reads = 0, readsOutside = 0;
      bool isUsedOutside = false;
      for (Operation *user : op->getUsers()) {
        bool isInside = group.contains(user) && isTiled(user, levels);
        isUsedOutside |= !isInside;
        reads += isDeviceOp(user);
        readsOutside += isDeviceOp(user) && !isInside;
      }
      if (isInDeviceMemory(spyreOp))
        saved += whole * (1 + reads);
      else if (isReduced(op, levels))
        isUsedOutside = false;
      if (isUsedOutside)
        saved -= whole * (1 + readsOutside);
      for (OpOperand &operand : op->getOpOperands()) {
        auto producer = operand.get().getDefiningOp<SpyreOpInterface>();
        if (spyreOp.isDpsInit(&operand) ||
            (producer && group.contains(producer) && isTiled(producer, levels)))
          continue;
        double bytes = wholeBytes(operand.get());
        bool wasInLX = producer && !isInDeviceMemory(producer);
        if (!wasInLX)
          saved += bytes;
        else if (written.insert(producer).second)
          saved -= bytes;
        saved -=
            std::max(bytes, numTiles * bytesOf(typeOf(operand.get()),
                                               getTileShape(operand, levels)));
        waits += numTiles - 1;
      }
    }
    tiling.savedBytes = saved;
    tiling.savedSeconds = saved / spec.effectiveMemoryBytesPerSecond -
                          waits * spec.transferSetupSeconds -
                          ::spyre::lxSeconds(accumulated / cores, spec);
  }

  static double wholeBytes(Value value) {
    return bytesOf(typeOf(value), typeOf(value).getShape());
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
        larger = close(larger);
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
  int64_t cores;
  double lxBytes;
  bool force, superdscCompatible;
  ::spyre::DeviceSpec spec;
  DenseMap<Operation *, int64_t> order;
  /// Operations that hints keep out of all loops.
  llvm::SmallPtrSet<Operation *, 16> whole;
  /// Larger than those of all hints.
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
    if (cores < 1 || cores > 32) {
      func.emitError() << "expected 1 to 32 cores, found " << cores.getValue();
      return signalPassFailure();
    }
    if (capacity < 0 || !(lxFraction >= 0 && lxFraction <= 1) ||
        !(fill > 0 && fill <= 1)) {
      func.emitError() << "expected a capacity of at least 0 and fractions "
                          "from 0 to 1, found "
                       << capacity.getValue() << ", " << lxFraction.getValue()
                       << " and " << fill.getValue();
      return signalPassFailure();
    }
    double lxBytes = capacity * (1.0 - lxFraction) * fill;
    double savedBytes = 0; // negative where hints cost traffic
    for (Block &block : func.getBody()) {
      TilingPlanner planner(block, cores, lxBytes, force, superdscCompatible);
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
