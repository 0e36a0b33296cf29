//===- Spans.cpp - How much of a tensor one core addresses ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <functional>

using namespace mlir;
using namespace mlir::spyre_graph;

ShapedType spyre_graph::getWholeType(Value value) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (slice.getSourceType().getRank() != slice.getType().getRank())
      break;
    value = slice.getSource();
  }
  return cast<ShapedType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

OperandSpans::OperandSpans(SpyreOpInterface op, const ::spyre::DeviceSpec &spec,
                           ShapedType accumulator)
    : maxSpanBytes(spec.maxSpanBytes) {
  for (OpOperand &use : op->getOpOperands()) {
    ShapedType type = accumulator && op.isDpsInit(&use)
                          ? accumulator
                          : getWholeType(use.get());
    LayoutAttrInterface layout = getLayout(type);
    if (layout && layout.getSizeInBytes(type.getShape()) > maxSpanBytes)
      addOperand(op, use, type, layout);
  }
  // Most operations have none, and nothing else to ask for.
  if (operands.empty())
    return;
  kinds = op.getLoopKinds();
  granularity = getSliceGranularity(op);
  isCombined = isCombinedAcrossCores(op.getCombiner());
  AffineMap written = op.getIndexingMaps().back();
  for (unsigned dim = 0; dim < kinds.size(); ++dim)
    isWritten.push_back(written.isFunctionOfDim(dim));
}

void OperandSpans::addOperand(SpyreOpInterface op, OpOperand &use,
                              ShapedType type, LayoutAttrInterface layout) {
  MLIRContext *context = op->getContext();
  AffineMap map = op.getIndexingMaps()[use.getOperandNumber()];
  SmallVector<int64_t> ranges = op.getLoopExtents();
  // One more loop, over the dimension that indices choose from.
  AffineExpr chosen = getAffineDimExpr(ranges.size(), context);
  SmallVector<AffineExpr> results(map.getResults());
  ranges.push_back(1);
  if (std::optional<IndirectAccess> indirect = op.getIndirectAccess();
      indirect && indirect->operand == use.getOperandNumber()) {
    results[indirect->dim] = chosen;
    ranges.back() =
        cast<ShapedType>(use.get().getType()).getDimSize(indirect->dim);
  }
  map = AffineMap::get(ranges.size(), 0, results, context);
  ArrayRef<int64_t> shape = type.getShape();
  AffineMap device = simplifyWithRanges(
      layout.getDeviceMap(shape, context).compose(map), ranges);
  SmallVector<int64_t> sizes = layout.getDeviceSize(shape);
  operands.push_back({&use,
                      SmallVector<AffineExpr>(device.getResults().drop_back()),
                      SmallVector<int64_t>(ArrayRef(sizes).drop_back()),
                      layout.getSizeInBytes(shape), ranges});
}

void OperandSpans::keepOnly(function_ref<bool(OpOperand &)> counts) {
  llvm::erase_if(operands,
                 [&](Operand &operand) { return !counts(*operand.use); });
}

/// The number of values from the least to the greatest that `expr` takes in one
/// slice of `chunks` iterations, at most, of those at multiples of the chunks.
static int64_t getReach(AffineExpr expr, ArrayRef<int64_t> extents,
                        ArrayRef<int64_t> chunks) {
  auto [low, high] = getRange(expr, chunks);
  int64_t reach = high - low + 1;
  SmallVector<AffineExpr> shifted;
  SmallVector<unsigned> cut;
  llvm::SmallBitVector used = getUsedDims(expr, extents);
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    shifted.push_back(getAffineDimExpr(dim, expr.getContext()));
    if (used.test(dim) && chunks[dim] < extents[dim])
      cut.push_back(dim);
  }
  // Where it is linear, or a part of what is linear that slices do not share,
  // every slice reaches as far as the first one.
  int64_t period = 1;
  AffineExpr whole = expr;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
      binary && binary.getKind() != AffineExprKind::Add &&
      binary.getKind() != AffineExprKind::Mul) {
    period = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    whole = binary.getLHS();
  }
  std::optional<SmallVector<int64_t>> form =
      getLinearForm(whole, extents.size());
  if (form && llvm::all_of(cut, [&](unsigned dim) {
        return (*form)[dim] * chunks[dim] % period == 0;
      }))
    return reach;
  // All cores' slices, as far as there are any.
  std::function<void(unsigned, int64_t)> visit = [&](unsigned number,
                                                     int64_t coresLeft) {
    if (number == cut.size()) {
      auto [low, high] = getRange(expr.replaceDims(shifted), chunks);
      reach = std::max(reach, high - low + 1);
      return;
    }
    unsigned dim = cut[number];
    int64_t slices =
        std::min(coresLeft, llvm::divideCeilSigned(extents[dim], chunks[dim]));
    for (int64_t slice = 0; slice < slices; ++slice) {
      shifted[dim] =
          getAffineDimExpr(dim, expr.getContext()) + slice * chunks[dim];
      visit(number + 1, coresLeft / slices);
    }
  };
  visit(0, ::spyre::DeviceSpec::kMaxCores);
  return reach;
}

bool OperandSpans::fit(ArrayRef<int64_t> chunks) const {
  SmallVector<int64_t> ranges(chunks);
  ranges.push_back(1);
  return llvm::all_of(operands, [&](const Operand &operand) {
    ranges.back() = operand.ranges.back();
    int64_t innerBytes = operand.sizeInBytes;
    for (auto [coordinate, size] :
         llvm::zip_equal(operand.coordinates, operand.sizes)) {
      innerBytes /= size;
      int64_t reach = getReach(coordinate, operand.ranges, ranges);
      if (reach > 1)
        return reach <= maxSpanBytes / innerBytes;
    }
    return true;
  });
}

bool OperandSpans::canFit(ArrayRef<int64_t> extents, Cores cores) const {
  if (!isAnyLimited() || llvm::is_contained(extents, 0))
    return true;
  SmallVector<int64_t> chunks(extents);
  bool canSplitReduction =
      cores.target.allowsSplitReductions() && !cores.isInLoop && isCombined;
  return canFitFrom(0, extents, cores, cores.number, canSplitReduction, chunks);
}

SmallVector<DimDivision> spyre_graph::getDivisions(int64_t extent,
                                                   int64_t granularity,
                                                   int64_t most,
                                                   const Target &target) {
  SmallVector<DimDivision> divisions;
  int64_t units = llvm::divideCeilSigned(extent, granularity);
  int64_t previous = 1;
  for (int64_t wanted = 2; wanted <= std::min(units, most); ++wanted) {
    int64_t unitsPerSlice = llvm::divideCeilSigned(units, wanted);
    int64_t numSlices = llvm::divideCeilSigned(units, unitsPerSlice);
    if (numSlices == previous ||
        (!target.allowsUnequalSlices() && numSlices * unitsPerSlice != units))
      continue;
    previous = numSlices;
    divisions.push_back({numSlices, unitsPerSlice * granularity});
  }
  return divisions;
}

/// Tries the numbers of slices of loop dimension `dim` and those after it, as
/// DivisionSearch::enumerate().
bool OperandSpans::canFitFrom(unsigned dim, ArrayRef<int64_t> extents,
                              Cores cores, int64_t coresLeft,
                              bool canSplitReduction,
                              SmallVectorImpl<int64_t> &chunks) const {
  if (dim == extents.size())
    return fit(chunks);
  chunks[dim] = extents[dim];
  if (canFitFrom(dim + 1, extents, cores, coresLeft, canSplitReduction, chunks))
    return true;
  bool isParallel = kinds[dim] == utils::IteratorType::parallel;
  if (isParallel ? !isWritten[dim] : !canSplitReduction)
    return false;
  for (auto [numSlices, chunk] :
       getDivisions(extents[dim], granularity[dim], coresLeft, cores.target)) {
    chunks[dim] = chunk;
    if (canFitFrom(dim + 1, extents, cores, coresLeft / numSlices,
                   canSplitReduction && isParallel, chunks))
      return true;
  }
  chunks[dim] = extents[dim];
  return false;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

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
        spans(op, spec) {
    group.insert(op);
  }

  /// Whether no division of the whole operation is enough.
  bool needsTiles() {
    return !spans.canFit(op.getLoopExtents(),
                         {cores.number, cores.target, /*isInLoop=*/false});
  }

  std::optional<Tiling> run() {
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

private:
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
      if (setTiles(nest, most) && fits(nest))
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
