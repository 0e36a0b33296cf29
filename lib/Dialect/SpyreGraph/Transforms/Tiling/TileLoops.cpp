//===- TileLoops.cpp - Groups of operations under tile loops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TileLoops.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/InitAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::spyre_graph;

static OpOperand &getInit(Operation *op) {
  return op->getOpOperand(op->getNumOperands() - 1);
}

namespace {
class LoopBuilder {
public:
  LoopBuilder(const OpGroup &group, ArrayRef<TileLevel> levels)
      : group(group), levels(levels), b(group.front()->getContext()),
        loc(group.front()->getLoc()) {}

  void run() {
    separate();
    classify();
    collectEscaping();
    zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (const TileLevel &level : levels) {
      int64_t step = level.getPart(level.leastExtent, level.tile);
      int64_t end =
          level.symbol ? level.extent : level.extent / level.tile * step;
      bounds.push_back({arith::ConstantIndexOp::create(b, loc, end),
                        arith::ConstantIndexOp::create(b, loc, step)});
      current.push_back({level.tile, 0, Value(), {}});
    }
    buildLevel(0);
    replace();
  }

private:
  /// The tile of the level that is being built: its extent and first element,
  /// in units of the smallest extent.
  struct Tile {
    int64_t extent, first;
    Value induction;
    /// Multiples of `induction`, each made once.
    llvm::SmallMapVector<int64_t, Value, 2> multiples;
  };

  /// Moves operations between the tiled ones that depend on them, directly or
  /// not, behind them. All loops come after the last tiled one, so that others
  /// stay where they are: each move makes MLIR number all operations anew.
  void separate() {
    for (Operation *op : group)
      if (isTiled(op, levels))
        tiled.insert(op);
    // Loops that were built earlier may have moved them.
    SmallVector<Operation *> inOrder = tiled.takeVector();
    llvm::sort(inOrder, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    tiled.insert(inOrder.begin(), inOrder.end());
    llvm::SmallPtrSet<Operation *, 16> dependent(tiled.begin(), tiled.end());
    Operation *last = tiled.back();
    SmallVector<Operation *> after;
    for (Operation *op = tiled.front(); op != last; op = op->getNextNode()) {
      if (tiled.contains(op))
        continue;
      // Other loops use values inside of them.
      bool depends = op->walk([&](Operation *user) {
                         return llvm::any_of(user->getOperands(),
                                             [&](Value operand) {
                                               return dependent.contains(
                                                   operand.getDefiningOp());
                                             })
                                    ? WalkResult::interrupt()
                                    : WalkResult::advance();
                       }).wasInterrupted();
      if (!depends)
        continue;
      after.push_back(op);
      dependent.insert(op);
    }
    Operation *end = last;
    for (Operation *op : after) {
      op->moveAfter(end);
      end = op;
    }
    b.setInsertionPointAfter(last);
  }

  /// The level whose dimension is reduced, or null.
  const TileLevel *getReduction() const {
    return levels.back().reduced.empty() ? nullptr : &levels.back();
  }
  bool isReducedHere(Operation *op) const {
    return getReduction() && getReduction()->reduced.contains(op);
  }
  unsigned getNumOuter() const {
    return levels.size() - (getReduction() ? 1 : 0);
  }

  /// Sorts the operations inside the outer loops into those before, in and
  /// after the loop that accumulates a reduction.
  void classify() {
    for (Operation *op : tiled) {
      if (!getReduction() || getReduction()->loopDims.contains(op)) {
        inside.insert(op);
        continue;
      }
      bool isAfter = llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return producer &&
               (isReducedHere(producer) || after.contains(producer));
      });
      (isAfter ? after : before).insert(op);
    }
  }

  void collectEscaping() {
    for (Operation *op : tiled) {
      // Without outer loops, the result of a reduction needs no insertion.
      if (isReducedHere(op) && getNumOuter() == 0)
        continue;
      bool escapes = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return !tiled.contains(user);
      });
      if (escapes)
        escaping[op] = escaping.size();
    }
    for (auto [op, number] : escaping)
      results.push_back(cast<SpyreOpInterface>(op).getSpyreInit());
  }

  /// Builds the loops from `depth` inwards, and their contents.
  void buildLevel(unsigned depth) {
    if (depth < getNumOuter()) {
      forEachTile(depth, [&] { buildLevel(depth + 1); });
      return;
    }
    buildTiles(before);
    if (getReduction()) {
      createAccumulators();
      forEachTile(depth, [&] { buildTiles(inside); });
      ones.clear();
      for (Operation *op : getReduction()->reduced)
        buildResult(cast<SpyreOpInterface>(op));
    } else {
      buildTiles(inside);
    }
    buildTiles(after);
  }

  void buildTiles(const OpGroup &ops) {
    for (Operation *op : ops)
      buildTile(cast<SpyreOpInterface>(op));
  }

  /// Builds a loop over the tiles of equal size, and after it the last tile if
  /// it is smaller. Values computed inside are only visible outside through
  /// values that the loop carries.
  void forEachTile(unsigned depth, function_ref<void()> buildBody) {
    const TileLevel &level = levels[depth];
    // Up to a size, the last tile ends where the loop does.
    int64_t rest = level.symbol ? 0 : level.extent % level.tile;
    DenseMap<Value, Value> outside = tiles;
    if (level.extent >= level.tile) {
      auto [end, step] = bounds[depth];
      auto loop =
          scf::ForOp::create(b, loc, zero, end, step, getCarried(depth));
      setCarried(depth, loop.getRegionIterArgs());
      b.setInsertionPointToStart(loop.getBody());
      Value start = loop.getInductionVar();
      if (level.symbol) {
        setLoopBound(loop, *level.symbol);
        start = TileStartOp::create(b, loc, start);
      }
      current[depth] = {level.tile, 0, start, {}};
      buildBody();
      if (SmallVector<Value> carried = getCarried(depth); !carried.empty())
        scf::YieldOp::create(b, loc, carried);
      setCarried(depth, loop.getResults());
      b.setInsertionPointAfter(loop);
      tiles = outside;
    }
    if (rest == 0)
      return;
    current[depth] = {rest,
                      level.getPart(level.leastExtent, level.extent - rest),
                      Value(),
                      {}};
    buildBody();
    tiles = outside;
  }

  /// The values that the loop of a level carries: the results, and the
  /// accumulators of reductions along it.
  SmallVector<Value> getCarried(unsigned depth) const {
    SmallVector<Value> carried(results);
    if (depth == getNumOuter())
      for (Operation *op : getReduction()->reduced)
        llvm::append_range(carried, accumulators.find(op)->second);
    return carried;
  }

  void setCarried(unsigned depth, ValueRange carried) {
    results.assign(carried.begin(), carried.begin() + escaping.size());
    carried = carried.drop_front(escaping.size());
    if (depth < getNumOuter())
      return;
    for (Operation *op : getReduction()->reduced) {
      SmallVector<Value> &own = accumulators[op];
      own.assign(carried.begin(), carried.begin() + own.size());
      carried = carried.drop_front(own.size());
    }
  }

  bool isShift(Operation *op) const {
    return llvm::any_of(getReduction()->shifts,
                        [&](auto &entry) { return entry.second == op; });
  }

  void createAccumulators() {
    for (Operation *op : getReduction()->reduced) {
      PartialReduction reduction =
          *PartialReduction::get(cast<SpyreOpInterface>(op));
      RankedTensorType type = getTileType(getInit(op));
      accumulators[op] = reduction.createIdentity(b, type);
      if (isShift(op))
        accumulators[op].push_back(reduction.createLowest(b, type));
    }
  }

  /// Creates the operation `shift`, an exponential that subtracts a maximum, on
  /// x and y.
  Value createShift(Operation *shift, Location loc, Value x, Value y,
                    Type element) {
    auto type = cast<RankedTensorType>(x.getType());
    auto layout = cast<LayoutAttr>(type.getEncoding());
    Value init = tensor::EmptyOp::create(
        b, loc,
        RankedTensorType::get(type.getShape(), element,
                              LayoutAttr::get(b.getContext(), layout.getOrder(),
                                              element, layout.getSparse())),
        ValueRange());
    return createElementwise(b, loc, shift->getName().getStringRef(), {x, y},
                             init);
  }

  /// Multiplies a sum of exponentials with the factor that `get` returns for
  /// the exponential and the maximum that it subtracts.
  void rescale(SpyreOpInterface op,
               function_ref<Value(Operation *shift, Operation *maximum)> get) {
    PartialReduction reduction = *PartialReduction::get(op);
    Value &accumulator = accumulators[op].front();
    for (OpOperand &operand : op->getOpOperands().drop_back()) {
      Operation *producer = operand.get().getDefiningOp();
      auto shift = getReduction()->shifts.find(producer);
      if (!producer || shift == getReduction()->shifts.end())
        continue;
      AffineMap map = *getRescaleMap(op, operand.getOperandNumber(),
                                     cast<SpyreOpInterface>(producer));
      accumulator = reduction.createRescaled(b, accumulator,
                                             get(producer, shift->second), map);
    }
  }

  /// Accumulates a part of a maximum that exponentials subtract. They subtract
  /// the largest number so far. It is a finite number even if all elements so
  /// far are minus infinity, because another tile may have larger ones.
  void buildShift(SpyreOpInterface op, Value part) {
    Location loc = op.getLoc();
    PartialReduction reduction = *PartialReduction::get(op);
    Value &maximum = accumulators[op][0], &subtracted = accumulators[op][1];
    auto type = cast<RankedTensorType>(maximum.getType());
    maximum = reduction.createCombine(b, maximum, part, maximum);
    Value next = reduction.createCombine(
        b, subtracted, part,
        tensor::EmptyOp::create(b, loc, type, ValueRange()));
    // Sums of exponentials against the former maximum are multiplied with this.
    const auto *shift =
        llvm::find_if(getReduction()->shifts,
                      [&](const auto &entry) { return entry.second == op; });
    factors[op] =
        createShift(shift->first, loc, subtracted, next, b.getF32Type());
    subtracted = createElementwise(b, loc, IdentityOp::getOperationName(), next,
                                   subtracted);
    tiles[op->getResult(0)] = next;
  }

  /// exp(max - max): 1, but NaN in rows whose elements are all minus infinity,
  /// whose sums must be NaN too.
  Value getExpOfMaximum(Operation *shift, Operation *maximum) {
    Type element = getElementTypeOrSelf(shift->getResult(0).getType());
    Value &known = ones[{maximum, element}];
    if (!known) {
      Value value = accumulators[maximum].front();
      known = createShift(shift, shift->getLoc(), value, value, element);
    }
    return known;
  }

  /// Computes a reduction's result from its accumulator.
  void buildResult(SpyreOpInterface op) {
    PartialReduction reduction = *PartialReduction::get(op);
    rescale(op, [&](Operation *shift, Operation *maximum) {
      return getExpOfMaximum(shift, maximum);
    });
    Value accumulator = accumulators[op].front();
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
    else if (getNumOuter() == 0)
      op->getResult(0).replaceUsesWithIf(result, [&](OpOperand &use) {
        return !tiled.contains(use.getOwner());
      });
  }

  /// Combines a part with its accumulator.
  void buildPart(SpyreOpInterface op) {
    PartialReduction reduction = *PartialReduction::get(op);
    SmallVector<Value> ins;
    for (OpOperand &operand : op->getOpOperands().drop_back())
      ins.push_back(getTile(operand));
    SmallVector<Value> &accumulated = accumulators[op];
    SmallVector<int64_t> extents = getExtents(op);
    SmallVector<Value> parts =
        reduction.createPart(b, ins, accumulated, extents);
    if (isShift(op))
      return buildShift(op, parts.front());
    rescale(op, [&](Operation *, Operation *maximum) {
      return factors.lookup(maximum);
    });
    accumulated = reduction.createCombine(
        b, accumulated, parts, extents[getReduction()->loopDims.lookup(op)]);
  }

  /// The slice of `whole` that belongs to the current tile of `operand`;
  /// `whole` itself if no level cuts it.
  Value slice(OpOperand &operand, Value whole) {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    if (!getSlice(operand, offsets, sizes, strides))
      return whole;
    // If `whole` is itself a slice, and the tile cuts other dimensions, take
    // the tile from that slice's source.
    if (auto part = whole.getDefiningOp<tensor::ExtractSliceOp>();
        part && part.getSourceType().getRank() == part.getType().getRank()) {
      auto pairs = llvm::zip_equal(offsets, part.getMixedOffsets());
      if (llvm::all_of(pairs, [](auto pair) {
            auto [offset, before] = pair;
            return isConstantIntValue(offset, 0) ||
                   isConstantIntValue(before, 0);
          })) {
        for (auto [offset, before] : pairs)
          if (isConstantIntValue(offset, 0))
            offset = before;
        whole = part.getSource();
      }
    }
    return createSlice(operand, whole, offsets, sizes, strides);
  }

  Value createSlice(OpOperand &operand, Value whole,
                    ArrayRef<OpFoldResult> offsets,
                    ArrayRef<OpFoldResult> sizes,
                    ArrayRef<OpFoldResult> strides) {
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
    sizes = getAsIndexOpFoldResult(b.getContext(), getShape(operand));
    bool isCut = false;
    for (auto [depth, dim] : llvm::enumerate(getTiledDims(operand, levels))) {
      if (dim < 0)
        continue;
      offsets[dim] = getStart(depth, shape[dim]);
      isCut = true;
    }
    return isCut;
  }

  /// The first element of a level's current tile in an extent of `whole`
  /// elements.
  OpFoldResult getStart(unsigned depth, int64_t whole) {
    Tile &tile = current[depth];
    int64_t factor = whole / levels[depth].leastExtent;
    if (!tile.induction)
      return b.getIndexAttr(tile.first * factor);
    if (factor == 1)
      return tile.induction;
    Value &start = tile.multiples[factor];
    if (!start) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfterValue(tile.induction);
      start =
          arith::MulIOp::create(b, loc, tile.induction,
                                arith::ConstantIndexOp::create(b, loc, factor));
    }
    return start;
  }

  SmallVector<int64_t> getCurrentTiles() const {
    return llvm::map_to_vector(current,
                               [](const Tile &tile) { return tile.extent; });
  }
  SmallVector<int64_t> getShape(OpOperand &operand) const {
    return getTileShape(operand, levels, getCurrentTiles());
  }
  SmallVector<int64_t> getExtents(SpyreOpInterface op) const {
    return getTileExtents(op, levels, getCurrentTiles());
  }

  RankedTensorType getTileType(OpOperand &operand) const {
    auto type = cast<RankedTensorType>(operand.get().getType());
    return RankedTensorType::get(getShape(operand), type.getElementType(),
                                 type.getEncoding());
  }

  bool isUsedByTiles(Operation *op) const {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return tiled.contains(user); });
  }

  /// The tile that the operation reads.
  Value getTile(OpOperand &operand) {
    Value tile = tiles.lookup(operand.get());
    return tile ? tile : slice(operand, getCurrent(operand));
  }

  /// What holds the elements that an operand reads: if an operation under the
  /// loops updates the tensor, the value that they carry for it. Tiles that are
  /// still to be read have their old contents there.
  Value getCurrent(OpOperand &operand) const {
    if (isa<BlockArgument>(operand.get()))
      for (auto [op, number] : escaping)
        if (OpOperand &init = getInit(op);
            init.get() == operand.get() &&
            getTiledDims(init, levels) == getTiledDims(operand, levels))
          return results[number];
    return operand.get();
  }

  void buildTile(SpyreOpInterface op) {
    if (isReducedHere(op))
      return buildPart(op);
    auto known = escaping.find(op);
    bool escapes = known != escaping.end();
    bool isUsedInside = isUsedByTiles(op);
    OpOperand &init = getInit(op);
    bool keepsElements =
        !init.get().getDefiningOp<tensor::EmptyOp>() && !overwritesInit(op);
    // A value used inside the loops gets a buffer of one tile, and insert()
    // copies the tile if it is also used outside; but what leaves elements of
    // its init as they are needs these around what it writes.
    bool isInWhole = escapes && (!isUsedInside || keepsElements);
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands().drop_back()) {
      // A tile that is updated in place is one value.
      bool isInPlace = operand.get() == init.get() && isInWhole &&
                       maps[operand.getOperandNumber()] == maps.back();
      operands.push_back(isInPlace ? Value() : getTile(operand));
    }
    Value target;
    if (isInWhole)
      target = slice(init, results[known->second]);
    else if (keepsElements)
      target = getTile(init);
    else
      target = tensor::EmptyOp::create(b, op.getLoc(), getTileType(init),
                                       ValueRange());
    operands.push_back(target);
    for (Value &operand : operands)
      operand = operand ? operand : target;
    Value tile = createLike(op, operands);
    tiles[op->getResult(0)] = tile;
    if (!escapes)
      return;
    if (!isInWhole)
      tile = createCopyOp(b, op.getLoc(), tile,
                          slice(init, results[known->second]))
                 ->getResult(0);
    insert(op, tile);
    // Bufferization finds no conflict if this is read and not `tile`.
    if (isInWhole && isUsedInside)
      tiles[op->getResult(0)] = slice(init, results[known->second]);
  }

  /// Inserts the tile of a value that is used after the loops into the whole.
  void insert(SpyreOpInterface op, Value tile) {
    unsigned number = escaping.lookup(op);
    SmallVector<OpFoldResult> offsets, sizes, strides;
    getSlice(getInit(op), offsets, sizes, strides);
    results[number] = tensor::InsertSliceOp::create(
        b, op.getLoc(), tile, results[number], offsets, sizes, strides);
  }

  /// How large the loops of an operation on one tile are in a run.
  AffineMap getTileExtentMap(SpyreOpInterface op,
                             ArrayRef<int64_t> extents) const {
    AffineMap whole = op.getLoopExtentMap();
    if (!whole)
      return whole;
    SmallVector<AffineExpr> sizes =
        getSizeExprs(AffineMap(), extents, op->getContext());
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      if (varies(whole, dim) && extents[dim] == op.getLoopExtents()[dim])
        sizes[dim] = whole.getResult(dim);
    return makeSizeMap(sizes, whole.getNumSymbols(), op->getContext());
  }

  /// Creates the operation on one tile: with the same maps and shorter loops.
  Value createLike(SpyreOpInterface op, ValueRange operands) {
    SpyreOpInterface tile =
        mlir::clone(b, op, operands.back().getType(), operands);
    SmallVector<int64_t> extents = getExtents(op);
    tile.setLoopExtentMap(getTileExtentMap(op, extents));
    tile.setLoopStructure(op.getIndexingMaps(), extents);
    return tile->getResult(0);
  }

  void replace() {
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
      if (init && init->use_empty())
        init->erase();
    }
  }

  const OpGroup &group;
  ArrayRef<TileLevel> levels;
  OpBuilder b;
  Location loc;
  OpGroup tiled;
  /// The operations before, in and after the loop that accumulates reductions.
  OpGroup before, inside, after;
  /// From operations whose result is used after the loops to the number of the
  /// value that the loops carry for it.
  llvm::MapVector<Operation *, unsigned> escaping;
  Value zero;
  /// End and step of each level.
  SmallVector<std::pair<Value, Value>> bounds;
  SmallVector<Tile> current;
  SmallVector<Value> results;
  DenseMap<Value, Value> tiles;
  /// Accumulators of reductions, and for maxima that exponentials subtract, the
  /// factors that rescale sums.
  DenseMap<Operation *, SmallVector<Value>> accumulators;
  DenseMap<Operation *, Value> factors;
  DenseMap<std::pair<Operation *, Type>, Value> ones;
};
} // namespace

void spyre_graph::buildTileLoops(const OpGroup &group,
                                 ArrayRef<TileLevel> levels) {
  LoopBuilder(group, levels).run();
}
