//===- TileLevels.cpp - Dimensions that a tile loop cuts --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TileLevels.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExprVisitor.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

/// The factor, if `expr` is `factor` x `loopDim` plus other terms whose sum is
/// in [0, factor).
static std::optional<int64_t>
getLeadingFactor(AffineExpr expr, unsigned loopDim, ArrayRef<int64_t> extents) {
  // The usual case: the caller knows that the dimension is `loopDim`.
  if (isa<AffineDimExpr>(expr))
    return 1;
  SimpleAffineExprFlattener flattener(extents.size(), /*numSymbols=*/0);
  if (failed(flattener.walkPostOrder(expr)) || !flattener.localExprs.empty())
    return std::nullopt;
  ArrayRef<int64_t> flat = flattener.operandExprStack.back();
  int64_t factor = flat[loopDim], rest = flat.back();
  if (factor < 1 || rest < 0)
    return std::nullopt;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    if (dim == loopDim)
      continue;
    if (flat[dim] < 0)
      return std::nullopt;
    rest += flat[dim] * (extents[dim] - 1);
  }
  if (rest >= factor)
    return std::nullopt;
  return factor;
}

std::optional<TiledAccess>
spyre_graph::getTiledAccess(AffineMap map, unsigned loopDim,
                            ArrayRef<int64_t> shape,
                            ArrayRef<int64_t> extents) {
  TiledAccess access;
  int64_t extent = extents[loopDim];
  auto setDim = [&](unsigned dim, int64_t multiple) {
    bool isFirst = access.dim < 0;
    access.dim = dim;
    access.multiple = std::lcm(access.multiple, multiple);
    return isFirst;
  };
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(loopDim))
      continue;
    // The quotient of a loop index selects rows, the remainder an element in a
    // row.
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    auto divisor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                          : AffineConstantExpr();
    bool isPart =
        binary &&
        binary.getLHS() == getAffineDimExpr(loopDim, map.getContext()) &&
        divisor && divisor.getValue() > 0 && extent % divisor.getValue() == 0;
    if (isPart && binary.getKind() == AffineExprKind::Mod) {
      access.multiple = std::lcm(access.multiple, divisor.getValue());
      continue;
    }
    if (isPart && binary.getKind() == AffineExprKind::FloorDiv) {
      if (shape[dim] * divisor.getValue() != extent ||
          !setDim(dim, divisor.getValue()))
        return std::nullopt;
      continue;
    }
    std::optional<int64_t> factor = getLeadingFactor(expr, loopDim, extents);
    if (!factor || *factor * extent != shape[dim] || !setDim(dim, 1))
      return std::nullopt;
  }
  // If only the remainder occurs, each tile reads the whole dimension.
  return access;
}

//===----------------------------------------------------------------------===//
// Which loop dimensions belong together
//===----------------------------------------------------------------------===//

std::optional<AffineMap> spyre_graph::getRescaleMap(SpyreOpInterface reduction,
                                                    unsigned operand,
                                                    SpyreOpInterface shift) {
  SmallVector<AffineMap> maps = reduction.getIndexingMaps(),
                         shiftMaps = shift.getIndexingMaps();
  SmallVector<int64_t> extents = shift.getLoopExtents();
  SmallVector<AffineExpr> results;
  MLIRContext *context = reduction->getContext();
  for (AffineExpr expr : shiftMaps[1].getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || extents[loop.getPosition()] == 1) {
      if (!loop && expr != getAffineConstantExpr(0, context))
        return std::nullopt;
      results.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    // Follow each coordinate: from the loop of the shift to its result, from
    // there to the loop of the reduction, and to the reduction's result.
    ArrayRef<AffineExpr> written = shiftMaps.back().getResults();
    const auto *coordinate = llvm::find(written, expr);
    if (coordinate == written.end())
      return std::nullopt;
    AffineExpr read = maps[operand].getResult(coordinate - written.begin());
    ArrayRef<AffineExpr> kept = maps.back().getResults();
    const auto *position = llvm::find(kept, read);
    if (!isa<AffineDimExpr>(read) || position == kept.end())
      return std::nullopt;
    results.push_back(getAffineDimExpr(position - kept.begin(), context));
  }
  return AffineMap::get(maps.back().getNumResults(), 0, results, context);
}

namespace {
/// Finds, from one tiled loop dimension, all that are tiled with it in a group.
class LevelFinder {
public:
  LevelFinder(const OpGroup &group, std::string &reason, bool mayUpdate)
      : group(group), reason(reason), mayUpdate(mayUpdate) {}

  std::optional<TileLevel> run(ArrayRef<TileSeed> seeds) {
    TileSeed first = seeds.front();
    level.extent = level.leastExtent = first.op.getLoopExtents()[first.loopDim];
    for (TileSeed seed : seeds) {
      if (!assign(seed.op, seed.loopDim))
        return std::nullopt;
      while (!pending.empty())
        if (!follow(cast<SpyreOpInterface>(pending.pop_back_val())))
          return std::nullopt;
    }
    if (!checkReadsOfWholes() || !checkShifts() || !checkSizes())
      return std::nullopt;
    sort();
    return std::move(level);
  }

private:
  std::nullopt_t fail(Operation *op, const Twine &why) {
    reason = (op->getName().getStringRef() + " " + why).str();
    return std::nullopt;
  }

  /// Sorts by the group's order, so that the result does not depend on where
  /// the search began.
  void sort() {
    TileLevel sorted = level;
    sorted.loopDims.clear();
    sorted.reduced.clear();
    sorted.shifts.clear();
    for (Operation *op : group) {
      if (auto known = level.loopDims.find(op); known != level.loopDims.end())
        sorted.loopDims.insert(*known);
      if (level.reduced.contains(op))
        sorted.reduced.insert(op);
      if (auto known = level.shifts.find(op); known != level.shifts.end())
        sorted.shifts.insert(*known);
    }
    level = std::move(sorted);
  }

  static std::optional<TiledAccess> getAccess(OpOperand &operand,
                                              unsigned loopDim) {
    auto op = cast<SpyreOpInterface>(operand.getOwner());
    return getTiledAccess(op.getIndexingMaps()[operand.getOperandNumber()],
                          loopDim, shapeOf(operand.get()), op.getLoopExtents());
  }

  /// Records that an extent of `whole` elements is cut, into tiles that are
  /// multiples of `multiple`.
  bool addExtent(Operation *op, int64_t whole, int64_t multiple = 1) {
    int64_t least = level.leastExtent;
    if (whole % least != 0 && least % whole != 0) {
      fail(op, "has another extent");
      return false;
    }
    level.leastExtent = std::min(least, whole);
    // The smallest tile whose part of `whole` is a multiple of `multiple`.
    int64_t common = std::gcd(level.extent, whole);
    level.granularity = std::lcm(level.granularity,
                                 multiple / std::gcd(multiple, whole / common) *
                                     (level.extent / common));
    return true;
  }

  /// Checks operations that read whole tensors. One that does not depend on the
  /// loop comes before it, and one that needs a reduction over all tiles comes
  /// after it.
  bool checkReadsOfWholes() {
    llvm::SmallPtrSet<Operation *, 8> after;
    for (Operation *op : group) {
      auto known = level.loopDims.find(op);
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *producer = operand.get().getDefiningOp();
        if (!producer)
          continue;
        bool isReduced = level.reduced.contains(producer);
        if (known == level.loopDims.end()) {
          if (isReduced || after.contains(producer)) {
            after.insert(op);
          } else if (level.loopDims.contains(producer)) {
            fail(op, "reads all tiles of a tensor at once");
            return false;
          }
          continue;
        }
        if (isReduced && isShiftByMaximum(operand)) {
          level.shifts[op] = producer;
          continue;
        }
        if (isReduced || after.contains(producer)) {
          fail(op, "needs the result of a reduction over all tiles");
          return false;
        }
        if (level.loopDims.contains(producer) &&
            getAccess(operand, known->second)->dim < 0) {
          fail(op, "reads all tiles of a tensor at once");
          return false;
        }
      }
    }
    return true;
  }

  /// Whether the user of this operand is an exponential that subtracts it, and
  /// the operand is a maximum.
  static bool isShiftByMaximum(OpOperand &operand) {
    auto shift = dyn_cast<SpyreOpInterface>(operand.getOwner());
    auto maximum = operand.get().getDefiningOp<SpyreOpInterface>();
    return shift && maximum && maximum.getCombiner() == Combiner::Max &&
           PartialReduction::get(maximum) &&
           shift.getShiftInput() == operand.getOperandNumber();
  }

  /// Checks that shifted exponentials have only sums over the dimension as
  /// users, and that each sum has one such exponential: these sums can be
  /// rescaled.
  bool checkShifts() {
    llvm::SmallPtrSet<Operation *, 4> rescaled;
    for (auto [shift, maximum] : level.shifts)
      for (OpOperand &use : shift->getUses()) {
        auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
        if (!user || !level.reduced.contains(user) || !user.isRescalable() ||
            !rescaled.insert(user).second ||
            !getRescaleMap(user, use.getOperandNumber(),
                           cast<SpyreOpInterface>(shift))) {
          fail(shift, "needs the result of a reduction over all tiles");
          return false;
        }
      }
    return true;
  }

  /// Whether the extent that is cut is that of the others at all sizes: the
  /// same symbol, or a number.
  bool followsSize(SpyreOpInterface op, unsigned loopDim) {
    AffineMap sizes = op.getLoopExtentMap();
    std::optional<unsigned> own;
    if (varies(sizes, loopDim)) {
      auto symbol = dyn_cast<AffineSymbolExpr>(sizes.getResult(loopDim));
      if (!symbol) {
        fail(op, "has an extent that is computed from a size");
        return false;
      }
      own = symbol.getPosition();
    }
    if (level.loopDims.size() > 1 && own != level.symbol) {
      fail(op, "has an extent that varies otherwise");
      return false;
    }
    level.symbol = own;
    return true;
  }

  /// Where the extent varies, the last tile may start anywhere, and computes
  /// some elements once more. So tiles cannot be whole sticks, or parts of
  /// others, and nothing may be accumulated. Accumulators are not made for
  /// other extents that vary, either.
  bool checkSizes() {
    for (Operation *op : level.reduced)
      if (level.symbol || cast<SpyreOpInterface>(op).getLoopExtentMap()) {
        fail(op, "reduces the dimension where sizes vary");
        return false;
      }
    if (!level.symbol)
      return true;
    Operation *first = level.loopDims.front().first;
    const Target *target = getTarget(first);
    if (!target || !target->allowsOverlappingTiles()) {
      fail(first, "has an extent that varies, and tiles that would overlap");
      return false;
    }
    if (level.granularity != 1 || level.leastExtent != level.extent) {
      fail(first, "has tiles that would start inside of sticks at some sizes");
      return false;
    }
    for (auto [op, loopDim] : level.loopDims)
      if (!cast<SpyreOpInterface>(op)
               .getSpyreInit()
               .getDefiningOp<tensor::EmptyOp>()) {
        fail(op, "updates a tensor, but would compute some elements twice");
        return false;
      }
    level.leastSize = getSizeSymbols(first)[*level.symbol].getLeast();
    return true;
  }

  bool assign(SpyreOpInterface op, unsigned loopDim) {
    auto [known, isNew] = level.loopDims.insert({op, loopDim});
    if (!isNew) {
      if (known->second == loopDim)
        return true;
      fail(op, "would be cut along two dimensions");
      return false;
    }
    if (llvm::is_contained(op.getLoopExtents(), 0)) {
      fail(op, "has an empty result");
      return false;
    }
    if (!followsSize(op, loopDim))
      return false;
    if (op.getInitOffset() || isInsertedInto(op->getResult(0))) {
      fail(op, "writes a part of what is joined at a size that varies");
      return false;
    }
    if (!addExtent(op, op.getLoopExtents()[loopDim]))
      return false;
    if (op.getLoopKinds()[loopDim] != utils::IteratorType::parallel) {
      std::optional<PartialReduction> reduction = PartialReduction::get(op);
      if (!reduction || !isa_and_nonnull<LayoutAttr>(
                            getLayout(op.getSpyreInit().getType()))) {
        fail(op, "reduces the dimension");
        return false;
      }
      if (!reduction->canCut(loopDim)) {
        fail(op, "counts along other dimensions outside of this one");
        return false;
      }
      level.reduced.insert(op);
    }
    if (op.usesLoopIndex(loopDim)) {
      fail(op, "computes with the index of the dimension");
      return false;
    }
    pending.push_back(op);
    return true;
  }

  bool follow(SpyreOpInterface op) {
    unsigned loopDim = level.loopDims.lookup(op);
    int64_t extent = op.getLoopExtents()[loopDim];
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      std::optional<TiledAccess> access = getAccess(operand, loopDim);
      if (!access) {
        fail(op, "accesses the dimension through a map that cannot be cut");
        return false;
      }
      int64_t dim = access->dim;
      if (dim >= 0)
        level.tiledDims[&operand] = dim;
      if (!addExtent(op, extent, access->multiple) ||
          (dim >= 0 && !addExtent(op, shapeOf(value)[dim])))
        return false;
      if (op.isDpsInit(&operand) && level.reduced.contains(op)) {
        if (!value.getDefiningOp<tensor::EmptyOp>()) {
          fail(op, "updates a tensor");
          return false;
        }
        continue;
      }
      if (op.isDpsInit(&operand)) {
        bool isNew = value.getDefiningOp<tensor::EmptyOp>();
        bool isUpdate = mayUpdate && value.getDefiningOp<SpyreOpInterface>();
        bool isArgument = isa<BlockArgument>(value);
        if (!(isNew || isUpdate || isArgument) || dim < 0) {
          fail(op, "updates a tensor");
          return false;
        }
        if (isArgument && !assignReaders(op, value, dim))
          return false;
        refine(op, value, dim);
        if (!assignUsers(op->getResult(0), dim))
          return false;
        continue;
      }
      auto producer = value.getDefiningOp<SpyreOpInterface>();
      bool isInGroup = producer && group.contains(producer);
      if (dim < 0)
        continue;
      if (!isa<LayoutAttr>(getLayout(value.getType()))) {
        fail(op, "reads a tensor whose layout has no tiles");
        return false;
      }
      refine(op, value, dim);
      if (isInGroup && !assignProducer(producer, dim))
        return false;
    }
    return true;
  }

  /// Makes tiles start at whole sticks of a tensor.
  void refine(Operation *op, Value value, int64_t dim) {
    auto layout = cast<LayoutAttr>(getLayout(value.getType()));
    if (int64_t steps = getStepsPerStick(layout, shapeOf(value), dim);
        steps > 1)
      addExtent(op, shapeOf(value)[dim], steps);
  }

  /// The loop dimension by which an operation accesses a dimension of an
  /// operand; -1 if there is none.
  static int64_t getLoopOf(OpOperand &operand, int64_t dim) {
    auto op = cast<SpyreOpInterface>(operand.getOwner());
    AffineExpr expr =
        op.getIndexingMaps()[operand.getOperandNumber()].getResult(dim);
    for (unsigned loop = 0; loop < op.getLoopExtents().size(); ++loop) {
      if (!expr.isFunctionOfDim(loop) || op.getLoopExtents()[loop] == 1)
        continue;
      std::optional<TiledAccess> access = getAccess(operand, loop);
      if (access && access->dim == dim)
        return loop;
    }
    // Otherwise it is a dimension of one element.
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      return loop.getPosition();
    return -1;
  }

  bool assignUsers(Value result, int64_t dim) {
    for (OpOperand &use : result.getUses()) {
      auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
      if (!user || !group.contains(user))
        continue;
      int64_t loop = user.isDpsInit(&use) ? -1 : getLoopOf(use, dim);
      if (loop < 0) {
        fail(user, "reads all tiles of a tensor at once");
        return false;
      }
      if (!assign(user, loop))
        return false;
    }
    return true;
  }

  /// Cuts what reads a tensor that `update` overwrites: each tile must be read
  /// for the last time before it is written.
  bool assignReaders(SpyreOpInterface update, Value updated, int64_t dim) {
    for (OpOperand &use : updated.getUses()) {
      auto reader = dyn_cast<SpyreOpInterface>(use.getOwner());
      if (!reader || !group.contains(reader))
        continue;
      if (reader.isDpsInit(&use)) {
        if (reader == update)
          continue;
        fail(reader, "updates a tensor that another one updates");
        return false;
      }
      int64_t loop = getLoopOf(use, dim);
      if (loop < 0 || (reader != update && !reader->isBeforeInBlock(update))) {
        fail(reader, "needs other tiles of a tensor than those that are not "
                     "overwritten yet");
        return false;
      }
      if (!assign(reader, loop))
        return false;
    }
    return true;
  }

  bool assignProducer(SpyreOpInterface producer, int64_t dim) {
    int64_t loop =
        getLoopOf(producer->getOpOperand(producer->getNumOperands() - 1), dim);
    if (loop >= 0)
      return assign(producer, loop);
    fail(producer, "writes the dimension through a map that cannot be cut");
    return false;
  }

  const OpGroup &group;
  std::string &reason;
  bool mayUpdate;
  TileLevel level;
  SmallVector<Operation *> pending;
};
} // namespace

std::optional<TileLevel> spyre_graph::getTileLevel(const OpGroup &group,
                                                   ArrayRef<TileSeed> seeds,
                                                   std::string &reason,
                                                   bool mayUpdate) {
  return LevelFinder(group, reason, mayUpdate).run(seeds);
}

SmallVector<int64_t> spyre_graph::getTiledDims(OpOperand &operand,
                                               ArrayRef<TileLevel> levels) {
  return llvm::map_to_vector(levels, [&](const TileLevel &level) -> int64_t {
    auto known = level.tiledDims.find(&operand);
    return known == level.tiledDims.end() ? -1 : known->second;
  });
}

static SmallVector<int64_t> getTiles(ArrayRef<TileLevel> levels) {
  return llvm::map_to_vector(levels,
                             [](const TileLevel &level) { return level.tile; });
}

SmallVector<int64_t> spyre_graph::getTileShape(OpOperand &operand,
                                               ArrayRef<TileLevel> levels,
                                               ArrayRef<int64_t> tiles) {
  SmallVector<int64_t> shape(shapeOf(operand.get()));
  for (auto [level, tile, dim] :
       llvm::zip_equal(levels, tiles, getTiledDims(operand, levels)))
    if (dim >= 0)
      shape[dim] = level.getPart(shape[dim], tile);
  return shape;
}

SmallVector<int64_t> spyre_graph::getTileShape(OpOperand &operand,
                                               ArrayRef<TileLevel> levels) {
  return getTileShape(operand, levels, getTiles(levels));
}

SmallVector<int64_t> spyre_graph::getTileExtents(SpyreOpInterface op,
                                                 ArrayRef<TileLevel> levels,
                                                 ArrayRef<int64_t> tiles) {
  SmallVector<int64_t> extents = op.getLoopExtents();
  for (auto [level, tile] : llvm::zip_equal(levels, tiles))
    if (auto known = level.loopDims.find(op); known != level.loopDims.end())
      extents[known->second] = level.getPart(extents[known->second], tile);
  return extents;
}

SmallVector<int64_t> spyre_graph::getTileExtents(SpyreOpInterface op,
                                                 ArrayRef<TileLevel> levels) {
  return getTileExtents(op, levels, getTiles(levels));
}

bool spyre_graph::isTiled(Operation *op, ArrayRef<TileLevel> levels) {
  return llvm::any_of(levels, [&](const TileLevel &level) {
    return level.loopDims.contains(op);
  });
}

bool spyre_graph::isReduced(Operation *op, ArrayRef<TileLevel> levels) {
  return llvm::any_of(levels, [&](const TileLevel &level) {
    return level.reduced.contains(op);
  });
}
