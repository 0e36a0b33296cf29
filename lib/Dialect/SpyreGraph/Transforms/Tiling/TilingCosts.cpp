//===- TilingCosts.cpp - What a tiling gains --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "TilingCosts.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;

static ShapedType typeOf(Value value) {
  return cast<ShapedType>(value.getType());
}

static double bytesOf(ShapedType type, ArrayRef<int64_t> shape) {
  return getLayout(type).getSizeInBytes(shape);
}

double spyre_graph::getWholeBytes(Value value) {
  return bytesOf(typeOf(value), typeOf(value).getShape());
}

/// Whether an operation, or one of a loop inside of it, reads a result of one
/// of `others`.
static bool readsAnyOf(Operation *op,
                       const llvm::SmallPtrSetImpl<Operation *> &others) {
  auto reads = [&](Operation *user) {
    return llvm::any_of(user->getOperands(), [&](Value operand) {
      return others.contains(operand.getDefiningOp());
    });
  };
  if (op->getNumRegions() == 0)
    return reads(op);
  return op
      ->walk([&](Operation *inner) {
        return reads(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

OpGroup spyre_graph::closeGroup(const OpGroup &larger) {
  auto inOrder = [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  };
  auto [first, last] =
      std::minmax_element(larger.begin(), larger.end(), inOrder);
  llvm::SmallPtrSet<Operation *, 16> after, before;
  for (Operation *op = *first;; op = op->getNextNode()) {
    if (larger.contains(op) || readsAnyOf(op, after))
      after.insert(op);
    if (op == *last)
      break;
  }
  SmallVector<Operation *> members;
  Block &block = *(*first)->getBlock();
  for (Operation *op = *last;; op = op->getPrevNode()) {
    bool isMember = larger.contains(op);
    if (isMember || llvm::any_of(op->getUsers(), [&](Operation *user) {
          return before.contains(block.findAncestorOpInBlock(*user));
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

bool spyre_graph::wouldInterlock(const OpGroup &group,
                                 ArrayRef<std::pair<OpGroup, Tiling>> others) {
  // Loops of groups that follow each other do not.
  if (llvm::none_of(others, [&](const auto &other) {
        return group.front()->isBeforeInBlock(other.first.back()) &&
               other.first.front()->isBeforeInBlock(group.back());
      }))
    return false;
  DenseMap<Operation *, unsigned> groupOf;
  for (auto [number, other] : llvm::enumerate(others))
    for (Operation *op : other.first)
      groupOf[op] = number;
  // What needs results of the group, all operations of another one if one does.
  llvm::SmallPtrSet<Operation *, 32> after;
  llvm::SmallPtrSet<Operation *, 32> known(group.begin(), group.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &op : *group.front()->getBlock()) {
      if (known.contains(&op) || !readsAnyOf(&op, known))
        continue;
      Operation *single = &op;
      auto other = groupOf.find(single);
      ArrayRef<Operation *> needing =
          other == groupOf.end() ? ArrayRef(single)
                                 : others[other->second].first.getArrayRef();
      known.insert(needing.begin(), needing.end());
      after.insert(needing.begin(), needing.end());
      // Those before it are visited once more.
      changed |= needing.size() > 1;
    }
  }
  return llvm::any_of(group,
                      [&](Operation *op) { return readsAnyOf(op, after); });
}

std::optional<int64_t> spyre_graph::getTileExtent(const TileLevel &level,
                                                  int64_t count) {
  int64_t units = llvm::divideCeilSigned(level.extent, level.granularity);
  if (count < 1 || count > units)
    return std::nullopt;
  if (count == 1)
    return level.extent;
  int64_t unitsPerTile = llvm::divideCeilSigned(units, count);
  if (llvm::divideCeilSigned(units, unitsPerTile) != count)
    return std::nullopt;
  return unitsPerTile * level.granularity;
}

SmallVector<int64_t> spyre_graph::getEqualTileExtents(const TileLevel &level) {
  SmallVector<int64_t> extents;
  if (level.symbol) {
    // The last tile overlaps another one by less than a tile.
    int64_t most = level.leastSize / kLeastTilesOfSize;
    for (int64_t extent = most > 0 ? llvm::bit_floor<uint64_t>(most) : 0;
         extent > 0 && extent * kMaxTiles >= level.extent; extent /= 2)
      extents.push_back(
          *getTileExtent(level, llvm::divideCeilSigned(level.extent, extent)));
    return extents;
  }
  for (int64_t count = 2; count <= std::min(level.extent, kMaxTiles); ++count)
    if (level.extent % count == 0 &&
        (level.extent / count) % level.granularity == 0)
      extents.push_back(level.extent / count);
  return extents;
}

//===----------------------------------------------------------------------===//
// Changes of sticks
//===----------------------------------------------------------------------===//

static bool changesStick(SpyreOpInterface copy) {
  SmallVector<int64_t> extents = copy.getLoopExtents();
  SmallVector<AffineMap> maps = copy.getIndexingMaps();
  auto laneOf = [&](unsigned operand) {
    Type type = copy->getOperand(operand).getType();
    LaneAccess lane = getLaneAccess(maps[operand], getLayout(type),
                                    cast<ShapedType>(type).getShape(), extents);
    return lane.kind == LaneAccess::Variable ? lane.dim : -1;
  };
  return laneOf(0) != laneOf(1);
}

Operation *spyre_graph::findPartialRestickify(const OpGroup &group,
                                              ArrayRef<TileLevel> levels) {
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

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

bool TilingCosts::isTooLarge(SpyreOpInterface op) const {
  return crowdedOut.contains(op) ||
         getWholeBytes(op.getSpyreInit()) > lxBytes * cores;
}

/// Whether the result can take over the memory of an operand, as far as maps
/// say.
static bool mayReplace(SpyreOpInterface op, OpOperand &operand) {
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  return op.getCombiner() == Combiner::None &&
         operand.get().getType() == op.getSpyreInit().getType() &&
         maps[operand.getOperandNumber()] == maps.back();
}

void TilingCosts::findCrowdedOut(Block &block) {
  // In program order. While more is live than LX holds, the value goes that
  // saves least of the traffic per byte and per operation that it is live for.
  DenseMap<Operation *, int64_t> position;
  for (Operation &op : block)
    position[&op] = static_cast<int64_t>(position.size());
  struct LiveValue {
    double bytes, worth;
    int64_t first;
    SpyreOpInterface op;
  };
  auto isWorthLess = [](const LiveValue &a, const LiveValue &b) {
    return std::make_pair(a.worth, a.first) < std::make_pair(b.worth, b.first);
  };
  std::set<LiveValue, decltype(isWorthLess)> inLX(isWorthLess);
  std::map<int64_t, SmallVector<LiveValue, 2>> ending;
  double live = 0, capacity = lxBytes * static_cast<double>(cores);
  auto end = [&](int64_t time) {
    auto found = ending.find(time);
    if (found == ending.end())
      return;
    for (const LiveValue &value : found->second)
      if (inLX.erase(value))
        live -= value.bytes;
    ending.erase(found);
  };
  for (Operation &op : block) {
    auto spyreOp = dyn_cast<SpyreOpInterface>(op);
    int64_t now = position[&op];
    // What ends here makes room for the result only if that can replace it.
    bool replaces =
        spyreOp &&
        llvm::any_of(op.getOpOperands().drop_back(), [&](OpOperand &operand) {
          return mayReplace(spyreOp, operand);
        });
    if (replaces)
      end(now);
    if (spyreOp && op.getNumResults() == 1 && !op.use_empty() &&
        isa_and_nonnull<LayoutAttr>(
            getLayout(spyreOp.getSpyreInit().getType())) &&
        !isInDeviceMemory(spyreOp)) {
      int64_t last = now, reads = 0;
      for (Operation *user : op.getUsers()) {
        last = std::max(last, position[block.findAncestorOpInBlock(*user)]);
        ++reads;
      }
      LiveValue value{getWholeBytes(spyreOp.getSpyreInit()),
                      static_cast<double>(1 + reads) /
                          static_cast<double>(last - now),
                      now, spyreOp};
      inLX.insert(value);
      ending[last].push_back(value);
      live += value.bytes;
    }
    for (; live > capacity && !inLX.empty(); inLX.erase(inLX.begin())) {
      live -= inLX.begin()->bytes;
      crowdedOut.insert(inLX.begin()->op);
    }
    end(now);
  }
}

/// Whether users read the result from device memory if nothing is tiled:
/// because it is too large, or because it leaves the function.
bool TilingCosts::isInDeviceMemory(SpyreOpInterface op) const {
  return isTooLarge(op) ||
         !llvm::all_of(op->getUsers(), llvm::IsaPred<SpyreOpInterface>);
}

/// Bytes of all accumulators of a reduction.
static double getAccumulatorBytes(SpyreOpInterface op,
                                  ArrayRef<TileLevel> levels) {
  OpOperand &init = op->getOpOperand(op->getNumOperands() - 1);
  SmallVector<int64_t> shape = getTileShape(init, levels);
  double bytes = 0;
  for (RankedTensorType type : PartialReduction::get(op)->getAccumulatorTypes(
           cast<RankedTensorType>(init.get().getType())))
    bytes += bytesOf(type, shape);
  // A maximum that exponentials subtract has a second, finite accumulator.
  bool isShift = llvm::any_of(levels.back().shifts, [&](const auto &entry) {
    return entry.second == op.getOperation();
  });
  return isShift ? 2 * bytes : bytes;
}

/// The most slices of an operation that different cores can compute.
int64_t TilingCosts::getParallelism(SpyreOpInterface op,
                                    ArrayRef<int64_t> extents) const {
  SmallVector<int64_t> &known = granularities[op];
  if (known.empty())
    known = getSliceGranularity(op);
  int64_t units = 1;
  for (auto [extent, granularity, kind] :
       llvm::zip_equal(extents, known, op.getLoopKinds()))
    if (kind == utils::IteratorType::parallel)
      units *= llvm::divideCeilSigned(extent, granularity);
  return units;
}

bool TilingCosts::keepsCoresBusy(const OpGroup &group,
                                 ArrayRef<TileLevel> levels) const {
  return llvm::all_of(group, [&](Operation *op) {
    auto spyreOp = cast<SpyreOpInterface>(op);
    return !isTiled(op, levels) ||
           getParallelism(spyreOp, getTileExtents(spyreOp, levels)) >=
               std::min(cores,
                        getParallelism(spyreOp, spyreOp.getLoopExtents()));
  });
}

bool TilingCosts::fits(const OpGroup &group, ArrayRef<TileLevel> levels) const {
  return getLiveBytesPerCore(group, levels) <= lxBytes;
}

/// The most bytes of tiles that are live at one time, per core.
double TilingCosts::getLiveBytesPerCore(const OpGroup &group,
                                        ArrayRef<TileLevel> levels) const {
  DenseMap<Operation *, int64_t> position;
  int64_t next = 0;
  for (Operation *op : group)
    position[op] = next++;
  std::vector<double> change(next + 1, 0.0);
  double accumulators = 0;
  for (Operation *op : group) {
    // The accumulator, and the part that the current tile adds to it.
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

/// Time in which the vector units compute all of an operation.
double TilingCosts::getSfuSeconds(SpyreOpInterface op) const {
  auto [known, isNew] = sfuSeconds.try_emplace(op, 0);
  if (isNew && op.getUnit() == Unit::SFU) {
    double iterations = 1;
    for (int64_t extent : op.getLoopExtents())
      iterations *= static_cast<double>(extent);
    known->second = ::spyre::sfuSeconds(iterations * getElementCost(op, spec) /
                                            static_cast<double>(cores),
                                        spec);
  }
  return known->second;
}

/// Share of that time in which no core loads more of an operand in device
/// memory, if the loops have these extents and the cores divide its runs.
double TilingCosts::getExposedShare(OpOperand &operand,
                                    ArrayRef<int64_t> extents) const {
  auto op = cast<SpyreOpInterface>(operand.getOwner());
  ShapedType type = typeOf(operand.get());
  LayoutAttrInterface layout = getLayout(type);
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  if (!layout || (indirect && indirect->operand == operand.getOperandNumber()))
    return 0;
  std::optional<StickAccess> access =
      getStickAccess(op.getIndexingMaps()[operand.getOperandNumber()], layout,
                     type.getShape(), op.getLoopExtents());
  if (!access)
    return 0;
  return ::spyre::getExposedShare(
      static_cast<double>(access->getRunLength(extents) * spec.stickBytes) /
          static_cast<double>(cores),
      spec);
}

/// Bytes of the box that an operation with loops of these extents reads of an
/// operand: less than all of it where others read other parts, as of queries,
/// keys and values that one product has computed.
static double getReadBytes(OpOperand &operand, ArrayRef<int64_t> extents) {
  auto op = cast<SpyreOpInterface>(operand.getOwner());
  unsigned number = operand.getOperandNumber();
  SmallVector<int64_t> shape(typeOf(operand.get()).getShape());
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  for (auto [dim, expr] :
       llvm::enumerate(op.getIndexingMaps()[number].getResults())) {
    if (indirect && indirect->operand == number &&
        indirect->dim == static_cast<int64_t>(dim))
      continue;
    auto [first, last] = getRange(expr, extents);
    shape[dim] = std::min(shape[dim], last - first + 1);
  }
  return bytesOf(typeOf(operand.get()), shape);
}

void TilingCosts::evaluate(const OpGroup &group, Tiling &tiling) const {
  ArrayRef<TileLevel> levels = tiling.levels;
  double numTiles = 1;
  for (const TileLevel &level : levels)
    numTiles *= level.getNumTiles();
  double saved = 0, waits = 0, overlapped = 0;
  llvm::SmallPtrSet<Operation *, 8> written;
  for (Operation *op : group) {
    if (!isTiled(op, levels))
      continue;
    auto spyreOp = cast<SpyreOpInterface>(op);
    double whole = getWholeBytes(spyreOp.getSpyreInit());
    bool readsTwice = false;
    // Accumulators are read and written once per tile, as if they were in
    // device memory: what rescales them is often divided otherwise. The index
    // of an extremum needs the extremum as well, computed from the same
    // elements.
    if (isReduced(op, levels)) {
      saved -= 3 * numTiles * getAccumulatorBytes(spyreOp, levels);
      readsTwice = PartialReduction::get(spyreOp)->isIndex();
    }
    int64_t reads = 0, readsOutside = 0;
    bool isUsedOutside = false;
    for (Operation *user : op->getUsers()) {
      bool isInside = group.contains(user) && isTiled(user, levels);
      isUsedOutside |= !isInside;
      reads += isa<SpyreOpInterface>(user);
      readsOutside += isa<SpyreOpInterface>(user) && !isInside;
    }
    if (isInDeviceMemory(spyreOp))
      saved += whole * (1 + reads);
    else if (isReduced(op, levels))
      isUsedOutside = false;
    if (isUsedOutside)
      saved -= whole * (1 + readsOutside);
    const double vectorSeconds = getSfuSeconds(spyreOp);
    SmallVector<int64_t> extents = spyreOp.getLoopExtents();
    SmallVector<int64_t> tileExtents = getTileExtents(spyreOp, levels);
    double exposed = 0, exposedInTiles = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      if (spyreOp.isDpsInit(&operand))
        continue;
      auto producer = operand.get().getDefiningOp<SpyreOpInterface>();
      bool wasInLX = producer && !isInDeviceMemory(producer);
      if (vectorSeconds > 0 && !wasInLX)
        exposed = std::max(exposed, getExposedShare(operand, extents));
      if (producer && group.contains(producer) && isTiled(producer, levels))
        continue;
      if (vectorSeconds > 0)
        exposedInTiles =
            std::max(exposedInTiles, getExposedShare(operand, tileExtents));
      double bytes = getReadBytes(operand, extents);
      if (!wasInLX)
        saved += bytes;
      else if (written.insert(producer).second)
        saved -= bytes;
      saved -= (readsTwice ? 2 : 1) *
               std::max(bytes, numTiles * getReadBytes(operand, tileExtents));
      waits += numTiles - 1;
    }
    overlapped += (exposed - exposedInTiles) * vectorSeconds -
                  (numTiles - 1) * spec.kernelRepeatSeconds;
  }
  tiling.savedBytes = saved;
  tiling.savedSeconds = saved / spec.effectiveMemoryBytesPerSecond -
                        waits * spec.transferSetupSeconds + overlapped;
}
