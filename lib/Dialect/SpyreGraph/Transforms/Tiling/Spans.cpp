//===- Spans.cpp - Tiles that a core can address ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spans.h"
#include "DivisionHints.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool spyre_graph::keepsSpansSmall(const OpGroup &group,
                                  ArrayRef<TileLevel> levels, int64_t cores,
                                  const Target &target,
                                  const ::spyre::DeviceSpec &spec) {
  return llvm::all_of(group, [&](Operation *operation) {
    auto op = cast<SpyreOpInterface>(operation);
    OperandSpans spans(op, spec);
    // What the loops hand on is in buffers of one tile.
    spans.keepOnly([&](OpOperand &use) {
      if (op.isDpsInit(&use))
        return llvm::none_of(op->getUsers(), [&](Operation *user) {
          return group.contains(user);
        });
      Operation *producer = use.get().getDefiningOp();
      return !producer || !group.contains(producer);
    });
    return spans.canFit(getTileExtents(op, levels),
                        {cores, target, isTiled(op, levels)});
  });
}

namespace {
/// Looks for the fewest tiles of one operation.
class SpanCutter {
public:
  SpanCutter(SpyreOpInterface op, int64_t cores, const Target &target,
             const ::spyre::DeviceSpec &spec)
      : op(op), spec(spec), cores({cores, target, /*isInLoop=*/true}),
        spans(op, spec), hints(target) {
    group.insert(op);
  }

  /// Whether no division of the whole operation is enough.
  bool needsTiles() {
    return !spans.canFit(op.getLoopExtents(),
                         {cores.number, cores.target, /*isInLoop=*/false});
  }

  std::optional<Tiling> run() {
    if (std::optional<Tiling> tiling = findFewest())
      return tiling;
    if (!DivisionHints::areGiven(group))
      return std::nullopt;
    slices = DivisionHints::Slices::Allowed;
    return findFewest();
  }

private:
  std::optional<Tiling> findFewest() {
    std::vector<std::vector<TileLevel>> nests = getNests();
    for (int64_t numTiles = 2; numTiles <= kMaxTiles; numTiles *= 2)
      for (std::vector<TileLevel> &nest : nests) {
        if (nest.size() == 1) {
          if (setTiles(nest, {numTiles}) && fits(nest))
            return Tiling{nest};
          continue;
        }
        for (int64_t outer = 2; outer < numTiles; outer *= 2)
          if (setTiles(nest, {outer, numTiles / outer}) && fits(nest))
            return Tiling{nest};
      }
    return std::nullopt;
  }

  /// Single loops, then pairs, that could be enough.
  std::vector<std::vector<TileLevel>> getNests() {
    std::vector<TileLevel> levels, reducing;
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      std::string reason;
      if (extents[dim] <= 1)
        continue;
      std::optional<TileLevel> level =
          getTileLevel(group, TileSeed{op, dim}, reason, /*mayUpdate=*/true);
      if (level)
        (level->reduced.empty() ? levels : reducing)
            .push_back(std::move(*level));
    }
    // Sums keep their order where they can.
    if (cores.target.allowsCarriedValues())
      llvm::append_range(levels, reducing);
    std::vector<std::vector<TileLevel>> nests;
    auto add = [&](std::vector<TileLevel> nest) {
      SmallVector<int64_t> most = llvm::map_to_vector(
          nest, [](const TileLevel &level) { return getMostTiles(level); });
      if (setTiles(nest, most) && canAddress(nest))
        nests.push_back(std::move(nest));
    };
    for (const TileLevel &level : levels)
      add({level});
    for (const TileLevel &outer : levels)
      for (const TileLevel &inner : levels)
        // Only the innermost level accumulates.
        if (outer.reduced.empty() &&
            outer.loopDims.lookup(op) != inner.loopDims.lookup(op))
          add({outer, inner});
    return nests;
  }

  static int64_t getMostTiles(const TileLevel &level) {
    return std::min(llvm::divideCeilSigned(level.extent, level.granularity),
                    kMaxTiles);
  }

  /// Whether all levels can be cut into about so many tiles.
  static bool setTiles(std::vector<TileLevel> &nest, ArrayRef<int64_t> counts) {
    for (auto [level, count] : llvm::zip_equal(nest, counts)) {
      int64_t units = llvm::divideCeilSigned(level.extent, level.granularity);
      if (count < 2 || count > units)
        return false;
      level.tile = llvm::divideCeilSigned(units, count) * level.granularity;
    }
    return true;
  }

  /// Whether cores can divide the tiles so. The last ones of a loop are
  /// smaller: where all slices are equal, they have other divisions.
  bool canFitTiles(ArrayRef<TileLevel> nest) const {
    for (unsigned lastOf = 0; lastOf < 1u << nest.size(); ++lastOf) {
      SmallVector<int64_t> tiles = llvm::map_to_vector(
          nest, [](const TileLevel &level) { return level.tile; });
      for (unsigned number = 0; number < nest.size(); ++number)
        if (lastOf >> number & 1)
          if (int64_t rest = nest[number].extent % tiles[number])
            tiles[number] = rest;
      if (!spans.canFit(getTileExtents(op, nest, tiles), cores))
        return false;
      if (cores.target.allowsUnequalSlices())
        break;
    }
    return true;
  }

  bool fits(ArrayRef<TileLevel> nest) const {
    return canAddress(nest) && hints.fit(group, nest, slices);
  }

  bool canAddress(ArrayRef<TileLevel> nest) const {
    SmallVector<int64_t> extents = getTileExtents(op, nest);
    if ((!cores.target.allowsRestickifyOfParts() &&
         findPartialRestickify(group, nest)) ||
        !canFitTiles(nest))
      return false;
    // Parts of a reduction are written to accumulators of one tile, in fp32.
    if (!isReduced(op, nest))
      return true;
    OpOperand &init = op->getOpOperand(op->getNumOperands() - 1);
    RankedTensorType tile =
        RankedTensorType::Builder(cast<RankedTensorType>(init.get().getType()))
            .setShape(getTileShape(init, nest));
    return llvm::all_of(
        PartialReduction::get(op)->getAccumulatorTypes(tile),
        [&](RankedTensorType type) {
          return OperandSpans(op, spec, type).canFit(extents, cores);
        });
  }

  SpyreOpInterface op;
  const ::spyre::DeviceSpec &spec;
  OpGroup group;
  OperandSpans::Cores cores;
  OperandSpans spans;
  DivisionHints hints;
  DivisionHints::Slices slices = DivisionHints::Slices::AsEqual;
};
} // namespace

std::optional<Tiling>
spyre_graph::cutForSpans(SpyreOpInterface op, int64_t cores,
                         const Target &target,
                         const ::spyre::DeviceSpec &spec) {
  SpanCutter cutter(op, cores, target, spec);
  return cutter.needsTiles() ? cutter.run() : std::nullopt;
}

int64_t spyre_graph::countTilesForSpans(SpyreOpInterface op, int64_t cores,
                                        const Target &target,
                                        const ::spyre::DeviceSpec &spec) {
  SpanCutter cutter(op, cores, target, spec);
  if (!cutter.needsTiles())
    return 1;
  std::optional<Tiling> tiling = cutter.run();
  if (!tiling)
    return 0;
  int64_t count = 1;
  for (const TileLevel &level : tiling->levels)
    count *= level.getNumTiles();
  return count;
}
