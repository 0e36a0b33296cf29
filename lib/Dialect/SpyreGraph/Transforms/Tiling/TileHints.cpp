//===- TileHints.cpp - Tiles that users ask for -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TileHints.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SmallSet.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// One loop that an operation's hints ask for.
struct TileHint {
  int64_t scope;
  /// -1 if the operation does not have the hinted dimension.
  int64_t loopDim;
  int64_t numTiles;
  /// Tiles must be a multiple of this: the size of the components behind the
  /// hinted one in a flattened dimension.
  int64_t multiple = 1;
};

class HintReader {
public:
  HintReader(Block &block, const Target &target,
             function_ref<void(const OpGroup &, const Tiling &)> build)
      : block(block), target(target), build(build) {}

  FailureOr<HintedTilings> run() {
    // A group has the operations under the same scopes; others may stand
    // between them.
    llvm::MapVector<ArrayAttr, OpGroup> groups;
    for (Operation &op : block)
      if (auto attribute = op.getAttrOfType<ArrayAttr>(kTileHintsAttrName)) {
        FailureOr<ArrayAttr> scopes = read(&op, attribute);
        if (failed(scopes))
          return failure();
        if (!scopes->empty())
          groups[*scopes].insert(&op);
        else if (isa<SpyreOpInterface>(op))
          result.whole.insert(&op);
        else // Loops may remove it.
          op.removeAttr(kTileHintsAttrName);
      }
    // Loops remove the operations of their group, and no others with hints.
    for (auto &[scopes, members] : groups)
      if (failed(obey(scopes.size(), members)))
        return failure();
    for (Operation *op : result.whole)
      op->removeAttr(kTileHintsAttrName);
    return std::move(result);
  }

private:
  /// Reads the hints of an operation. Returns their scopes and numbers of
  /// tiles, which all operations of a group have in common.
  FailureOr<ArrayAttr> read(Operation *op, ArrayAttr attribute) {
    SmallVector<Attribute> scopes;
    SmallVector<TileHint, 2> &own = hints[op];
    auto spyreOp = dyn_cast<SpyreOpInterface>(op);
    int64_t numLoops = spyreOp ? spyreOp.getLoopExtents().size() : 0;
    Builder builder(op->getContext());
    for (Attribute hint : attribute) {
      auto numbers = dyn_cast<DenseI64ArrayAttr>(hint);
      if (!numbers || numbers.size() < 3 || numbers.size() > 4 ||
          numbers.asArrayRef().back() < 1) {
        op->emitOpError() << kTileHintsAttrName
                          << " must hold arrays [scope, loop dimension, tiles] "
                             "or [scope, loop dimension, tiles, multiple], but "
                             "found "
                          << hint;
        return failure();
      }
      // SG-TILE-HINT-C2
      if (!spyreOp || numbers[1] >= numLoops)
        return op->emitOpError() << "has no loop dimension " << numbers[1]
                                 << " to cut into " << numbers[2] << " tiles";
      own.push_back({numbers[0], numbers[1], numbers[2],
                     numbers.size() > 3 ? numbers[3] : 1});
      scopes.push_back(builder.getDenseI64ArrayAttr({numbers[0], numbers[2]}));
      result.nextScope = std::max(result.nextScope, numbers[0] + 1);
    }
    return builder.getArrayAttr(scopes);
  }

  LogicalResult obey(unsigned numLevels, OpGroup &members) {
    removeReduced(members);
    for (Operation *op : members)
      op->removeAttr(kTileHintsAttrName);
    // Nothing is cut if no operation has a hinted dimension.
    if (llvm::none_of(members, [&](Operation *op) {
          return llvm::any_of(hints.find(op)->second, [](const TileHint &hint) {
            return hint.loopDim >= 0;
          });
        }))
      return success();
    OpGroup group = closeGroup(members);
    if (failed(checkBetween(members, group)))
      return failure();
    std::vector<TileLevel> levels;
    for (unsigned depth = 0; depth < numLevels; ++depth) {
      FailureOr<std::optional<TileLevel>> level =
          getHinted(members, group, depth);
      if (failed(level))
        return failure();
      if (*level)
        levels.push_back(std::move(**level));
    }
    if (failed(checkDistinct(group, levels)))
      return failure();
    // SG-TILE-HINT-C2
    if (Operation *op = target.allowsRestickifyOfParts()
                            ? nullptr
                            : findPartialRestickify(group, levels))
      return op->emitOpError("changes the stick of a part of a tensor, which ")
             << target.getTitle() << " cannot express";
    result.tilings.push_back({group, Tiling{levels}});
    build(group, result.tilings.back().second);
    return success();
  }

  /// An operation between the members of a group whose own hints say otherwise
  /// than theirs, or null.
  static Operation *findForeign(const OpGroup &members, const OpGroup &group) {
    const auto *foreign = llvm::find_if(group, [&](Operation *op) {
      return !members.contains(op) && op->hasAttr(kTileHintsAttrName);
    });
    return foreign == group.end() ? nullptr : *foreign;
  }

  /// SG-TILE-HINT-C4
  LogicalResult checkBetween(const OpGroup &members,
                             const OpGroup &group) const {
    Operation *foreign = findForeign(members, group);
    if (!foreign)
      return success();
    InFlightDiagnostic diagnostic =
        foreign->emitOpError()
        << (result.whole.contains(foreign) ? "must stay out of all tile loops"
                                           : "is under other tile hints")
        << ", but lies between operations that a hint runs in one loop, so it "
           "would be part of that loop; give all of them the same hints, or "
           "those before and after it different ones";
    diagnostic.attachNote(members.front()->getLoc())
        << "the loop begins with this operation";
    return diagnostic;
  }

  /// SG-TILE-HINT-C2: no loop is cut twice.
  static LogicalResult checkDistinct(const OpGroup &group,
                                     ArrayRef<TileLevel> levels) {
    for (Operation *op : group) {
      llvm::SmallSet<unsigned, 4> dims;
      for (const TileLevel &level : levels)
        if (auto known = level.loopDims.find(op);
            known != level.loopDims.end() && !dims.insert(known->second).second)
          return op->emitOpError()
                 << "loop dimension " << known->second
                 << " is cut by two hints; give one hint with the product of "
                    "their numbers of tiles";
    }
    return success();
  }

  /// A hinted dimension, and its depth, that an operation reduces.
  struct ReducedHint {
    int64_t loopDim;
    unsigned depth;
  };

  std::optional<ReducedHint> getReducedHint(SpyreOpInterface op) {
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    for (auto [depth, hint] : llvm::enumerate(hints.find(op)->second))
      if (hint.loopDim >= 0 &&
          kinds[hint.loopDim] != utils::IteratorType::parallel)
        return ReducedHint{hint.loopDim, static_cast<unsigned>(depth)};
    return std::nullopt;
  }

  /// Removes operations that reduce a hinted dimension, if the loop cannot
  /// accumulate them, or if other tiled operations need their result. They run
  /// outside of the loop, on whole tensors.
  void removeReduced(OpGroup &members) {
    SmallVector<std::pair<Operation *, ReducedHint>> reducing;
    for (Operation *op : members)
      if (auto hint = getReducedHint(cast<SpyreOpInterface>(op)))
        reducing.push_back({op, *hint});
    if (reducing.empty())
      return;
    OpGroup group = closeGroup(members);
    std::string reason;
    if (!target.allowsCarriedValues())
      reason = (target.getTitle() + " has no loops that accumulate").str();
    else if (findForeign(members, group))
      reason = "operations under other hints lie between those under it";
    else
      reason = findObstacle(group);
    bool accumulates = reason.empty();
    for (auto [op, hint] : reducing)
      if (accumulates && hint.depth + 1 != hints.find(op)->second.size()) {
        reason = "only the innermost loop accumulates";
        accumulates = false;
      }
    if (accumulates &&
        getTileLevel(group,
                     getSeeds(members, group, reducing.front().second.depth),
                     reason))
      return;
    llvm::SmallPtrSet<Operation *, 4> outside;
    for (auto [op, hint] : reducing) {
      sayOutside(op, hint.loopDim, "reduces", reason);
      op->removeAttr(kTileHintsAttrName);
      outside.insert(op);
    }
    members.remove_if([&](Operation *op) { return outside.contains(op); });
  }

  /// The loop dimensions that the hints at one depth ask to cut.
  SmallVector<TileSeed> getSeeds(const OpGroup &members, const OpGroup &group,
                                 unsigned depth) {
    SmallVector<TileSeed> seeds;
    for (Operation *op : group) {
      if (!members.contains(op))
        continue;
      if (int64_t loopDim = hints.find(op)->second[depth].loopDim; loopDim >= 0)
        seeds.push_back(
            {cast<SpyreOpInterface>(op), static_cast<unsigned>(loopDim)});
    }
    return seeds;
  }

  /// Why one loop cannot run all that is between the operations of a group;
  /// empty if it can.
  static std::string findObstacle(const OpGroup &group) {
    const auto *obstacle = llvm::find_if_not(
        group, [](Operation *op) { return isa<SpyreOpInterface>(op); });
    if (obstacle == group.end())
      return "";
    return isa<scf::ForOp>(*obstacle)
               ? "the loop of another hint needs some of the operations and "
                 "computes what others need"
               : "something between the operations is not a device operation";
  }

  /// The level that cuts as many of the seeds together as possible. Nothing if
  /// not even the first can be cut; `reason` says why.
  static std::optional<TileLevel> getLevel(const OpGroup &group,
                                           ArrayRef<TileSeed> seeds,
                                           std::string &reason) {
    reason = findObstacle(group);
    if (!reason.empty())
      return std::nullopt;
    std::optional<TileLevel> level = getTileLevel(group, seeds, reason);
    if (level)
      return level;
    SmallVector<TileSeed> kept;
    for (TileSeed seed : seeds) {
      if (level && level->loopDims.contains(seed.op))
        continue;
      kept.push_back(seed);
      std::optional<TileLevel> next = getTileLevel(group, kept, reason);
      if (!next && !level)
        return std::nullopt;
      if (next) {
        level = std::move(next);
        continue;
      }
      kept.pop_back();
      sayOutside(seed.op, seed.loopDim, "has", reason);
    }
    return level;
  }

  static void sayOutside(Operation *op, int64_t loopDim, StringRef verb,
                         const std::string &reason) {
    remark::missed(op->getLoc(),
                   remark::RemarkOpts::name("outside-hint")
                       .category("spyre-coarse-tiling")
                       .function(op->getParentOfType<func::FuncOp>().getName()))
        << (op->getName().stripDialect() +
            " runs outside the hinted loop, on whole tensors, because it " +
            verb + " loop dimension " + Twine(loopDim) +
            ", which the hint cuts into tiles: " + reason)
               .str();
  }

  /// The level that the hints at one depth ask for; none if no operation has
  /// the dimension.
  FailureOr<std::optional<TileLevel>>
  getHinted(const OpGroup &members, const OpGroup &group, unsigned depth) {
    SmallVector<TileSeed> seeds = getSeeds(members, group, depth);
    if (seeds.empty())
      return std::optional<TileLevel>();
    Operation *op = seeds.front().op;
    const auto &own = hints.find(op)->second;
    const TileHint &hint = own[depth];
    std::string reason;
    std::optional<TileLevel> level = getLevel(group, seeds, reason);
    if (!level)
      return op->emitOpError()
             << "loop dimension " << hint.loopDim << " cannot be cut into "
             << hint.numTiles << " tiles: " << reason;
    level->granularity = std::lcm(level->granularity, hint.multiple);
    level->multiple = hint.multiple;
    level->scope = hint.scope;
    if (failed(setTile(op, hint, *level)))
      return failure();
    // SG-TILE-HINT-C3
    if (!level->reduced.empty() && depth + 1 != own.size())
      return op->emitOpError()
             << "loop dimension " << hint.loopDim << " is reduced by "
             << level->reduced.front()->getName()
             << ", so its loop must be the innermost";
    return level;
  }

  /// SG-TILE-HINT-C1
  static LogicalResult setTile(Operation *op, const TileHint &hint,
                               TileLevel &level) {
    if (std::optional<int64_t> tile = getTileExtent(level, hint.numTiles)) {
      if (level.symbol && *tile > level.leastSize)
        return op->emitOpError()
               << "loop dimension " << hint.loopDim << " of extent "
               << level.extent << " cannot be cut into " << hint.numTiles
               << " tiles: of the smallest size, " << level.leastSize
               << ", there is no whole one of " << *tile;
      level.tile = *tile;
      return success();
    }
    int64_t units = llvm::divideCeilSigned(level.extent, level.granularity);
    InFlightDiagnostic diagnostic =
        op->emitOpError() << "loop dimension " << hint.loopDim << " of extent "
                          << level.extent << " cannot be cut into "
                          << hint.numTiles << " tiles";
    if (level.granularity > 1)
      diagnostic << " of multiples of " << level.granularity;
    if (hint.numTiles < 1 || hint.numTiles > units)
      return diagnostic << "; possible are 1 to " << units;
    // Name the two nearest numbers of tiles that are possible.
    int64_t perTile = llvm::divideCeilSigned(units, hint.numTiles);
    return diagnostic << ": tiles of " << perTile * level.granularity
                      << " are only " << llvm::divideCeilSigned(units, perTile)
                      << ", smaller ones "
                      << llvm::divideCeilSigned(units, perTile - 1);
  }

  Block &block;
  const Target &target;
  function_ref<void(const OpGroup &, const Tiling &)> build;
  /// Of each operation with hints; those that loops have removed are keys
  /// still.
  DenseMap<Operation *, SmallVector<TileHint, 2>> hints;
  HintedTilings result;
};

} // namespace

FailureOr<HintedTilings> spyre_graph::obeyTileHints(
    Block &block, const Target &target,
    function_ref<void(const OpGroup &, const Tiling &)> build) {
  return HintReader(block, target, build).run();
}
