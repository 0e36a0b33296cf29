//===- TileLoops.cpp - Groups of operations under tile loops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TileLoops.h"
#include "Access.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
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

/// From coordinates of a reduction's result to those of the maximum that was
/// subtracted in its operand `operand`, the result of `shift`; nothing if one
/// does not follow from the other.
static std::optional<AffineMap> getRescaleMap(SpyreOpInterface reduction,
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
    // Loop of the shift, its result's coordinate, loop of the reduction, its
    // result's coordinate.
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
    if (!checkReadsOfWholes() || !checkShifts())
      return std::nullopt;
    return std::move(level);
  }

private:
  std::nullopt_t fail(Operation *op, const Twine &why) {
    reason = (op->getName().getStringRef() + " " + why).str();
    return std::nullopt;
  }

  /// What does not depend on the loop is computed before it, and what needs a
  /// reduction over all tiles after it.
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
        if (isReduced && isa<ExpSubOp>(op) && isa<MaxOp>(producer) &&
            operand.getOperandNumber() == 1 && !op->hasAttr("immediates")) {
          level.shifts[op] = producer;
          continue;
        }
        if (isReduced || after.contains(producer)) {
          fail(op, "needs the result of a reduction over all tiles");
          return false;
        }
        if (level.loopDims.contains(producer) &&
            *getTiledDim(cast<SpyreOpInterface>(op)
                             .getIndexingMaps()[operand.getOperandNumber()],
                         known->second, shapeOf(operand.get()),
                         level.extent) < 0) {
          fail(op, "reads all tiles of a tensor at once");
          return false;
        }
      }
    }
    return true;
  }

  /// A shifted exponential has only sums over the dimension as users, one
  /// exponential each: they can be rescaled.
  bool checkShifts() {
    llvm::SmallPtrSet<Operation *, 4> rescaled;
    for (auto [shift, maximum] : level.shifts)
      for (OpOperand &use : shift->getUses()) {
        auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
        if (!user || !level.reduced.contains(user) ||
            !isa<SumOp, MatmulOp, SumProductsOp>(use.getOwner()) ||
            !rescaled.insert(user).second ||
            !getRescaleMap(user, use.getOperandNumber(),
                           cast<SpyreOpInterface>(shift))) {
          fail(shift, "needs the result of a reduction over all tiles");
          return false;
        }
      }
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
      fail(op, "has nothing to do");
      return false;
    }
    if (op.getLoopExtents()[loopDim] != level.extent) {
      fail(op, "has another extent");
      return false;
    }
    if (op.getLoopKinds()[loopDim] != utils::IteratorType::parallel) {
      if (!PartialReduction::get(op) || !isa_and_nonnull<LayoutAttr>(getLayout(
                                            op.getSpyreInit().getType()))) {
        fail(op, "reduces the dimension");
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
      if (op.isDpsInit(&operand) && level.reduced.contains(op)) {
        if (!value.getDefiningOp<tensor::EmptyOp>()) {
          fail(op, "updates a tensor");
          return false;
        }
        continue;
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
      if (*dim < 0)
        continue;
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
    OpGroup before, inside, after;
    classify(before, inside, after);
    enterLoops();
    for (Operation *op : before)
      buildTile(cast<SpyreOpInterface>(op));
    enterReduction();
    for (Operation *op : inside)
      buildTile(cast<SpyreOpInterface>(op));
    leaveReduction();
    for (Operation *op : after)
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

  /// The level that reduces its dimension, if there is one.
  const TileLevel *getReduction() const {
    return levels.back().reduced.empty() ? nullptr : &levels.back();
  }
  bool isReduced(Operation *op) const {
    return getReduction() && getReduction()->reduced.contains(op);
  }
  bool hasOuterLoops() const { return levels.size() > 1 || !getReduction(); }

  /// Under the outer loops, what the loop over parts of a reduction needs comes
  /// before it, and what needs its result after it.
  void classify(OpGroup &before, OpGroup &inside, OpGroup &after) {
    for (Operation *op : tiled) {
      if (!getReduction() || getReduction()->loopDims.contains(op)) {
        inside.insert(op);
        continue;
      }
      bool isAfter = llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return producer && (isReduced(producer) || after.contains(producer));
      });
      (isAfter ? after : before).insert(op);
    }
  }

  void enterLoops() {
    for (Operation *op : tiled) {
      // The result of a reduction is one value if nothing is around its loop.
      if (isReduced(op) && !hasOuterLoops())
        continue;
      bool escapes = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return !tiled.contains(user);
      });
      if (escapes)
        escaping[op] = escaping.size();
    }
    for (auto [op, number] : escaping)
      results.push_back(cast<SpyreOpInterface>(op).getSpyreInit());
    zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (const TileLevel &level : levels)
      bounds.push_back({arith::ConstantIndexOp::create(b, loc, level.extent),
                        arith::ConstantIndexOp::create(b, loc, level.tile)});
    unsigned numOuter = levels.size() - (getReduction() ? 1 : 0);
    for (unsigned depth = 0; depth < numOuter; ++depth)
      enterLoop(depth, results);
  }

  /// Enters the loop of a level; `carried` become the values inside.
  void enterLoop(unsigned depth, SmallVectorImpl<Value> &carried) {
    auto [end, step] = bounds[depth];
    auto loop = scf::ForOp::create(b, loc, zero, end, step, carried);
    loops.push_back(loop);
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    b.setInsertionPointToStart(loop.getBody());
  }

  /// Leaves the innermost loop; `carried` become its results.
  void leaveLoop(SmallVectorImpl<Value> &carried) {
    scf::ForOp loop = loops.pop_back_val();
    if (!carried.empty())
      scf::YieldOp::create(b, loc, carried);
    carried.assign(loop.getResults().begin(), loop.getResults().end());
    b.setInsertionPointAfter(loop);
  }

  /// Enters the loop over parts with an accumulator per reduction.
  void enterReduction() {
    if (!getReduction())
      return;
    SmallVector<Value> carried(results);
    for (Operation *op : getReduction()->reduced) {
      PartialReduction reduction =
          *PartialReduction::get(cast<SpyreOpInterface>(op));
      bool isShift = llvm::any_of(getReduction()->shifts, [&](auto &entry) {
        return entry.second == op;
      });
      carried.push_back(reduction.createIdentity(
          b, reduction.getAccumulatorType(getTileType(getInit(op))), isShift));
    }
    enterLoop(levels.size() - 1, carried);
    setCarried(carried);
  }

  /// Takes apart what the loop over parts carries.
  void setCarried(ArrayRef<Value> carried) {
    results.assign(carried.begin(), carried.begin() + escaping.size());
    for (auto [op, value] : llvm::zip_equal(
             getReduction()->reduced, carried.drop_front(escaping.size())))
      accumulators[op] = value;
  }

  void leaveReduction() {
    if (!getReduction())
      return;
    SmallVector<Value> carried(results);
    for (Operation *op : getReduction()->reduced)
      carried.push_back(accumulators[op]);
    leaveLoop(carried);
    setCarried(carried);
    for (Operation *op : getReduction()->reduced)
      buildResult(cast<SpyreOpInterface>(op));
  }

  /// What an accumulator has become.
  void buildResult(SpyreOpInterface op) {
    PartialReduction reduction = *PartialReduction::get(op);
    Value accumulator = accumulators[op];
    OpOperand &init = getInit(op);
    RankedTensorType type = getTileType(init);
    auto known = escaping.find(op);
    bool escapes = known != escaping.end();
    Value result = accumulator;
    if (!reduction.isResult(type)) {
      SmallVector<Value> ins;
      for (OpOperand &operand : op->getOpOperands().drop_back())
        ins.push_back(operand.getOperandNumber() + op.getNumEpilogueInputs() <
                              getInit(op).getOperandNumber()
                          ? Value()
                          : getTile(operand));
      Value target =
          escapes && !isUsedByTiles(op)
              ? slice(init, results[known->second])
              : tensor::EmptyOp::create(b, op.getLoc(), type, ValueRange());
      result = reduction.createResult(b, accumulator, ins, target);
    }
    tiles[op->getResult(0)] = result;
    if (escapes)
      insert(op, result);
    else if (!hasOuterLoops())
      op->getResult(0).replaceUsesWithIf(result, [&](OpOperand &use) {
        return !tiled.contains(use.getOwner());
      });
  }

  /// Adds a part to an accumulator.
  void buildPart(SpyreOpInterface op) {
    PartialReduction reduction = *PartialReduction::get(op);
    SmallVector<Value> ins;
    for (OpOperand &operand : op->getOpOperands().drop_back())
      ins.push_back(getTile(operand));
    Value &accumulator = accumulators[op];
    auto type = cast<RankedTensorType>(accumulator.getType());
    Location loc = op.getLoc();
    Value part = reduction.createPart(b, ins, type, getTileExtents(op));
    bool isShift = llvm::any_of(getReduction()->shifts, [&](auto &entry) {
      return entry.second == op;
    });
    if (isShift) {
      // The maximum so far, and the factor for what was summed with the former.
      auto empty = [&](RankedTensorType of) {
        return tensor::EmptyOp::create(b, loc, of, ValueRange()).getResult();
      };
      Value next = createElementwise(b, loc, MaximumOp::getOperationName(),
                                     {accumulator, part}, empty(type));
      auto layout = cast<LayoutAttr>(type.getEncoding());
      Type f32 = b.getF32Type();
      factors[op] = createElementwise(
          b, loc, ExpSubOp::getOperationName(), {accumulator, next},
          empty(RankedTensorType::get(type.getShape(), f32,
                                      LayoutAttr::get(b.getContext(),
                                                      layout.getOrder(), f32,
                                                      layout.getSparse()))));
      accumulator = createElementwise(b, loc, IdentityOp::getOperationName(),
                                      next, accumulator);
      tiles[op->getResult(0)] = next;
      return;
    }
    for (OpOperand &operand : op->getOpOperands().drop_back()) {
      auto shift = getReduction()->shifts.find(operand.get().getDefiningOp());
      if (!operand.get().getDefiningOp() ||
          shift == getReduction()->shifts.end())
        continue;
      AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
      AffineMap map = *getRescaleMap(op, operand.getOperandNumber(),
                                     cast<SpyreOpInterface>(shift->first));
      accumulator =
          createElementwise(b, loc, MulOp::getOperationName(),
                            {accumulator, factors.lookup(shift->second)},
                            accumulator, {}, {identity, map, identity});
    }
    accumulator = reduction.createCombine(b, accumulator, part);
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
    for (auto [depth, dim] : llvm::enumerate(getTiledDims(operand, levels))) {
      if (dim < 0)
        continue;
      offsets[dim] = loops[depth].getInductionVar();
      isCut = true;
    }
    return isCut;
  }

  RankedTensorType getTileType(OpOperand &operand) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    return RankedTensorType::get(getTileShape(operand, levels),
                                 type.getElementType(), type.getEncoding());
  }

  static OpOperand &getInit(Operation *op) {
    return op->getOpOperand(op->getNumOperands() - 1);
  }

  bool isUsedByTiles(Operation *op) const {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return tiled.contains(user); });
  }

  /// What the operation reads in the current tile.
  Value getTile(OpOperand &operand) {
    Value tile = tiles.lookup(operand.get());
    return tile ? tile : slice(operand, operand.get());
  }

  SmallVector<int64_t> getTileExtents(SpyreOpInterface op) const {
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (const TileLevel &level : levels)
      if (auto known = level.loopDims.find(op); known != level.loopDims.end())
        extents[known->second] = level.tile;
    return extents;
  }

  void buildTile(SpyreOpInterface op) {
    if (isReduced(op))
      return buildPart(op);
    auto known = escaping.find(op);
    bool escapes = known != escaping.end();
    bool isUsedInside = isUsedByTiles(op);
    OpOperand &init = getInit(op);
    // A value used inside the loops gets a buffer of one tile, from which what
    // is used outside too is copied.
    IRMapping mapping;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value;
      if (&operand == &init)
        value = escapes && !isUsedInside
                    ? slice(init, results[known->second])
                    : tensor::EmptyOp::create(b, op.getLoc(), getTileType(init),
                                              ValueRange());
      else
        value = getTile(operand);
      mapping.map(operand.get(), value);
    }
    Value tile = createLike(op, mapping, init);
    tiles[op->getResult(0)] = tile;
    if (!escapes)
      return;
    if (isUsedInside)
      tile = createCopy(op, tile, slice(init, results[known->second]));
    insert(op, tile);
  }

  /// Puts the tile of an escaping value where it belongs.
  void insert(SpyreOpInterface op, Value tile) {
    unsigned number = escaping.lookup(op);
    SmallVector<OpFoldResult> offsets, sizes, strides;
    getSlice(getInit(op), offsets, sizes, strides);
    results[number] = tensor::InsertSliceOp::create(
        b, op.getLoc(), tile, results[number], offsets, sizes, strides);
  }

  /// The operation on one tile: the same maps on shorter loops.
  Value createLike(SpyreOpInterface op, IRMapping &mapping, OpOperand &init) {
    OperationState state(op.getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.addOperands(mapping.lookup(operand));
    state.addTypes(mapping.lookup(init.get()).getType());
    state.addAttributes(op->getAttrs());
    auto tile = cast<SpyreOpInterface>(b.create(state));
    tile.setLoopStructure(op.getIndexingMaps(), getTileExtents(op));
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
    while (!loops.empty())
      leaveLoop(results);
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
  Value zero;
  /// End and step of each level.
  SmallVector<std::pair<Value, Value>> bounds;
  SmallVector<scf::ForOp> loops;
  SmallVector<Value> results;
  DenseMap<Value, Value> tiles;
  /// Of the reductions; of those subtracted in exponentials, what rescales.
  DenseMap<Operation *, Value> accumulators, factors;
};
} // namespace

void spyre_graph::buildTileLoops(const OpGroup &group,
                                 ArrayRef<TileLevel> levels) {
  LoopBuilder(group, levels).run();
}
