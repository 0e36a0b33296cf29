//===- TileLoops.cpp - Groups of operations under tile loops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TileLoops.h"
#include "Access.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

std::optional<int64_t> spyre_graph::getTiledDim(AffineMap map, unsigned loopDim,
                                                ArrayRef<int64_t> shape,
                                                int64_t extent) {
  int64_t found = -1;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(loopDim))
      continue;
    if (found >= 0 || !isa<AffineDimExpr>(expr) || shape[dim] != extent)
      return std::nullopt;
    found = dim;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Which loop dimensions belong together
//===----------------------------------------------------------------------===//

namespace {
/// Follows one tiled dimension through a group.
class LevelFinder {
public:
  LevelFinder(const OpGroup &group, std::string &reason)
      : group(group), reason(reason) {}

  std::optional<TileLevel> run(SpyreOpInterface seed, unsigned loopDim) {
    level.extent = seed.getLoopExtents()[loopDim];
    if (!assign(seed, loopDim))
      return std::nullopt;
    while (!pending.empty())
      if (!follow(cast<SpyreOpInterface>(pending.pop_back_val())))
        return std::nullopt;
    // What does not depend on the loop is computed before it.
    for (Operation *op : group) {
      if (level.loopDims.contains(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (level.loopDims.contains(producer))
            return fail(op, "reads all tiles of a tensor at once");
    }
    return std::move(level);
  }

private:
  std::nullopt_t fail(Operation *op, const Twine &why) {
    reason = (op->getName().getStringRef() + " " + why).str();
    return std::nullopt;
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
      fail(op, "has nothing to do");
      return false;
    }
    if (op.getLoopExtents()[loopDim] != level.extent) {
      fail(op, "has another extent");
      return false;
    }
    if (op.getLoopKinds()[loopDim] != utils::IteratorType::parallel) {
      fail(op, "reduces the dimension");
      return false;
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
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      std::optional<int64_t> dim =
          getTiledDim(maps[operand.getOperandNumber()], loopDim, shapeOf(value),
                      level.extent);
      if (!dim) {
        fail(op, "accesses the dimension through a map that cannot be cut");
        return false;
      }
      if (op.isDpsInit(&operand)) {
        if (!value.getDefiningOp<tensor::EmptyOp>() || *dim < 0) {
          fail(op, "updates a tensor");
          return false;
        }
        refine(value, *dim);
        if (!assignUsers(op->getResult(0), *dim))
          return false;
        continue;
      }
      auto producer = value.getDefiningOp<SpyreOpInterface>();
      bool isInGroup = producer && group.contains(producer);
      if (*dim < 0) {
        if (isInGroup && level.loopDims.contains(producer)) {
          fail(op, "reads all tiles of a tensor at once");
          return false;
        }
        continue;
      }
      if (!isa<LayoutAttr>(getLayout(value.getType()))) {
        fail(op, "reads a tensor whose layout has no tiles");
        return false;
      }
      refine(value, *dim);
      if (isInGroup && !assignProducer(producer, *dim))
        return false;
    }
    return true;
  }

  /// Tiles of a tensor start at whole sticks.
  void refine(Value value, int64_t dim) {
    auto layout = cast<LayoutAttr>(getLayout(value.getType()));
    if (layout.getStickDim(shapeOf(value)) == dim)
      level.granularity = std::lcm(level.granularity, getStickElements(layout));
  }

  bool assignUsers(Value result, int64_t dim) {
    for (OpOperand &use : result.getUses()) {
      auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
      if (!user || !group.contains(user))
        continue;
      AffineExpr expr =
          user.getIndexingMaps()[use.getOperandNumber()].getResult(dim);
      auto loopDim = dyn_cast<AffineDimExpr>(expr);
      if (!loopDim || user.isDpsInit(&use)) {
        fail(user, "reads all tiles of a tensor at once");
        return false;
      }
      if (!assign(user, loopDim.getPosition()))
        return false;
    }
    return true;
  }

  bool assignProducer(SpyreOpInterface producer, int64_t dim) {
    auto loopDim = dyn_cast<AffineDimExpr>(
        producer.getIndexingMaps().back().getResult(dim));
    if (loopDim)
      return assign(producer, loopDim.getPosition());
    fail(producer, "writes the dimension through a map that cannot be cut");
    return false;
  }

  const OpGroup &group;
  std::string &reason;
  TileLevel level;
  SmallVector<Operation *> pending;
};
} // namespace

std::optional<TileLevel> spyre_graph::getTileLevel(const OpGroup &group,
                                                   SpyreOpInterface seed,
                                                   unsigned loopDim,
                                                   std::string &reason) {
  return LevelFinder(group, reason).run(seed, loopDim);
}

/// The tensor dimension that each level cuts of an operand, or -1.
static SmallVector<int64_t> getTiledDims(OpOperand &operand,
                                         ArrayRef<TileLevel> levels) {
  auto op = cast<SpyreOpInterface>(operand.getOwner());
  AffineMap map = op.getIndexingMaps()[operand.getOperandNumber()];
  SmallVector<int64_t> dims;
  for (const TileLevel &level : levels) {
    auto known = level.loopDims.find(op);
    dims.push_back(known == level.loopDims.end()
                       ? -1
                       : *getTiledDim(map, known->second,
                                      shapeOf(operand.get()), level.extent));
  }
  return dims;
}

SmallVector<int64_t> spyre_graph::getTileShape(OpOperand &operand,
                                               ArrayRef<TileLevel> levels) {
  SmallVector<int64_t> shape(shapeOf(operand.get()));
  for (auto [level, dim] :
       llvm::zip_equal(levels, getTiledDims(operand, levels)))
    if (dim >= 0)
      shape[dim] = level.tile;
  return shape;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
class LoopBuilder {
public:
  LoopBuilder(const OpGroup &group, ArrayRef<TileLevel> levels)
      : group(group), levels(levels), b(group.front()->getContext()),
        loc(group.front()->getLoc()) {}

  void run() {
    separate();
    enterLoops();
    for (Operation *op : tiled)
      buildTile(cast<SpyreOpInterface>(op));
    leaveLoops();
  }

private:
  bool isTiled(Operation *op) const {
    return llvm::any_of(levels, [&](const TileLevel &level) {
      return level.loopDims.contains(op);
    });
  }

  /// Puts the tiled operations next to each other: what they do not depend on,
  /// directly or not, goes after them only if it depends on them.
  void separate() {
    for (Operation *op : group)
      if (isTiled(op))
        tiled.insert(op);
    llvm::SmallPtrSet<Operation *, 16> dependent(tiled.begin(), tiled.end());
    Operation *first = tiled.front(), *last = tiled.back();
    SmallVector<Operation *> before, after;
    for (Operation *op = first; op != last; op = op->getNextNode()) {
      if (tiled.contains(op))
        continue;
      bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return producer && dependent.contains(producer);
      });
      (depends ? after : before).push_back(op);
      if (depends)
        dependent.insert(op);
    }
    for (Operation *op : before)
      op->moveBefore(first);
    Operation *end = last;
    for (Operation *op : after) {
      op->moveAfter(end);
      end = op;
    }
    b.setInsertionPointAfter(last);
  }

  void enterLoops() {
    for (Operation *op : tiled) {
      bool escapes = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return !tiled.contains(user);
      });
      if (escapes)
        escaping[op] = escaping.size();
    }
    SmallVector<Value> carried;
    for (auto [op, number] : escaping)
      carried.push_back(cast<SpyreOpInterface>(op).getSpyreInit());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    SmallVector<std::pair<Value, Value>> bounds;
    for (const TileLevel &level : levels)
      bounds.push_back({arith::ConstantIndexOp::create(b, loc, level.extent),
                        arith::ConstantIndexOp::create(b, loc, level.tile)});
    for (auto [end, step] : bounds) {
      auto loop = scf::ForOp::create(b, loc, zero, end, step, carried);
      loops.push_back(loop);
      carried.assign(loop.getRegionIterArgs().begin(),
                     loop.getRegionIterArgs().end());
      b.setInsertionPointToStart(loop.getBody());
    }
    results = std::move(carried);
  }

  /// The part of `whole` that the current tile of `operand` is; `whole` itself
  /// if no level cuts it.
  Value slice(OpOperand &operand, Value whole) {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    if (!getSlice(operand, offsets, sizes, strides))
      return whole;
    return tensor::ExtractSliceOp::create(b, operand.getOwner()->getLoc(),
                                          getTileType(operand), whole, offsets,
                                          sizes, strides);
  }

  bool getSlice(OpOperand &operand, SmallVector<OpFoldResult> &offsets,
                SmallVector<OpFoldResult> &sizes,
                SmallVector<OpFoldResult> &strides) {
    ArrayRef<int64_t> shape = shapeOf(operand.get());
    offsets.assign(shape.size(), b.getIndexAttr(0));
    strides.assign(shape.size(), b.getIndexAttr(1));
    sizes =
        getAsIndexOpFoldResult(b.getContext(), getTileShape(operand, levels));
    bool isCut = false;
    for (auto [dim, loop] :
         llvm::zip_equal(getTiledDims(operand, levels), loops)) {
      if (dim < 0)
        continue;
      offsets[dim] = loop.getInductionVar();
      isCut = true;
    }
    return isCut;
  }

  RankedTensorType getTileType(OpOperand &operand) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    return RankedTensorType::get(getTileShape(operand, levels),
                                 type.getElementType(), type.getEncoding());
  }

  void buildTile(SpyreOpInterface op) {
    auto known = escaping.find(op);
    bool escapes = known != escaping.end();
    bool isUsedInside = llvm::any_of(
        op->getUsers(), [&](Operation *user) { return tiled.contains(user); });
    OpOperand &init = op->getOpOperand(op->getNumOperands() - 1);
    // A value used inside the loops gets a buffer of one tile, from which what
    // is used outside too is copied.
    IRMapping mapping;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (&operand == &init)
        value = escapes && !isUsedInside
                    ? slice(init, results[known->second])
                    : tensor::EmptyOp::create(b, op.getLoc(), getTileType(init),
                                              ValueRange());
      else if (Value tile = tiles.lookup(value))
        value = tile;
      else
        value = slice(operand, value);
      mapping.map(operand.get(), value);
    }
    Value tile = createLike(op, mapping, init);
    tiles[op->getResult(0)] = tile;
    if (!escapes)
      return;
    if (isUsedInside)
      tile = createCopy(op, tile, slice(init, results[known->second]));
    SmallVector<OpFoldResult> offsets, sizes, strides;
    getSlice(init, offsets, sizes, strides);
    results[known->second] = tensor::InsertSliceOp::create(
        b, op.getLoc(), tile, results[known->second], offsets, sizes, strides);
  }

  /// The operation on one tile: the same maps on shorter loops.
  Value createLike(SpyreOpInterface op, IRMapping &mapping, OpOperand &init) {
    OperationState state(op.getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.addOperands(mapping.lookup(operand));
    state.addTypes(mapping.lookup(init.get()).getType());
    state.addAttributes(op->getAttrs());
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (const TileLevel &level : levels)
      if (auto known = level.loopDims.find(op); known != level.loopDims.end())
        extents[known->second] = level.tile;
    auto tile = cast<SpyreOpInterface>(b.create(state));
    tile.setLoopStructure(op.getIndexingMaps(), extents);
    return tile->getResult(0);
  }

  Value createCopy(SpyreOpInterface op, Value from, Value to) {
    AffineMap map =
        AffineMap::getMultiDimIdentityMap(shapeOf(to).size(), b.getContext());
    OperationState state(op.getLoc(), IdentityOp::getOperationName());
    state.addOperands({from, to});
    state.addTypes(to.getType());
    auto copy = cast<SpyreOpInterface>(b.create(state));
    copy.setLoopStructure({map, map}, shapeOf(to));
    return copy->getResult(0);
  }

  void leaveLoops() {
    for (unsigned depth = loops.size(); depth-- > 0;) {
      if (!results.empty())
        scf::YieldOp::create(b, loc, results);
      results.assign(loops[depth].getResults().begin(),
                     loops[depth].getResults().end());
      b.setInsertionPointAfter(loops[depth]);
    }
    for (auto [op, number] : escaping) {
      Value result = results[number];
      op->getResult(0).replaceUsesWithIf(result, [&](OpOperand &use) {
        return !tiled.contains(use.getOwner());
      });
    }
    for (Operation *op : llvm::reverse(tiled.getArrayRef())) {
      Operation *init =
          cast<SpyreOpInterface>(op).getSpyreInit().getDefiningOp();
      op->erase();
      if (init->use_empty())
        init->erase();
    }
  }

  const OpGroup &group;
  ArrayRef<TileLevel> levels;
  OpBuilder b;
  Location loc;
  OpGroup tiled;
  /// Operations whose result is used after the loops -> number of the value
  /// that the loops carry for it.
  llvm::MapVector<Operation *, unsigned> escaping;
  SmallVector<scf::ForOp> loops;
  SmallVector<Value> results;
  DenseMap<Value, Value> tiles;
};
} // namespace

void spyre_graph::buildTileLoops(const OpGroup &group,
                                 ArrayRef<TileLevel> levels) {
  LoopBuilder(group, levels).run();
}
