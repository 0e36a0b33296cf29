//===- LXCopies.cpp - Copies of buffers in LX -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LXCopies.h"
#include "../Division/Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <cmath>

using namespace mlir;
using namespace mlir::spyre_graph;

Eligibility spyre_graph::getSlicingOfUse(OpOperand &use, const Target &target) {
  auto type = cast<MemRefType>(use.get().getType());
  // With a layout relative to the shape, a slice has the layout of the whole.
  auto layout = dyn_cast_or_null<LayoutAttr>(type.getMemorySpace());
  if (!layout)
    return {std::nullopt, "its layout is not relative to its shape"};
  auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
  if (!op)
    return {std::nullopt, "it is used in tiles"};
  if (!op.getWorkDivision())
    return {std::nullopt, "it is used by an operation without a division"};
  unsigned number = use.getOperandNumber();
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  if (indirect && indirect->operand == number)
    return {std::nullopt, "it is accessed through indices"};
  if (op.getInitOffset() && op.isDpsInit(&use))
    return {std::nullopt, "it is joined from parts that begin at sizes"};
  if (!target.allowsIndicesInLX() && indirect && indirect->index == number)
    return {std::nullopt, ("it holds indices, which " + target.getTitle() +
                           " keeps in device memory")
                              .str()};
  AffineMap map = op.getIndexingMaps()[number];
  std::optional<Slicing> slicing = getSlicing(op, number);
  if (!slicing)
    return {std::nullopt, "the part that a core accesses is not a box"};
  Eligibility result;
  result.slicing = slicing->getHeld(type.getShape());
  if (!result.slicing)
    return {std::nullopt, "a user accesses a part of a divided dimension"};
  if (hasSizeSymbols(op))
    for (auto [dim, size] :
         llvm::zip_equal(result.slicing->dims, getSizes(use.get())))
      if (size != (dim.extentAt
                       ? dim.extentAt
                       : getAffineConstantExpr(dim.extent, op->getContext())))
        return {std::nullopt, "a user accesses a part of a dimension that "
                              "varies"};
  for (auto [dim, extent] : llvm::zip_equal(slicing->dims, type.getShape()))
    if (extent > 0)
      result.share *= static_cast<double>(dim.extent) / extent;
  result.isPlain = isInLoopDims(map) && slicing->covers(type.getShape());
  if (!target.allowsPartsInLX() && !result.isPlain)
    return {std::nullopt, isInLoopDims(map)
                              ? "a user accesses a part of it"
                              : "a map is not made of loop dimensions"};
  // A slice must be whole sticks: otherwise elements would have another lane in
  // LX than in the whole.
  for (auto [number, dim] : llvm::enumerate(result.slicing->dims)) {
    if (dim.split == 1)
      continue;
    int64_t steps = getStepsPerStick(layout, type.getShape(), number);
    if (dim.chunk % steps != 0)
      return {std::nullopt, "its slices cut sticks"};
    if (dim.extentAt && !dim.chunkAt.isMultipleOf(steps))
      return {std::nullopt, "its slices cut sticks at some sizes"};
  }
  return result;
}

Eligibility spyre_graph::getCommonSlicing(ArrayRef<OpOperand *> uses,
                                          const Target &target) {
  Eligibility common;
  // Readers need not run on all cores that hold copies, but each core that
  // reads must have been written to.
  int64_t fewestWriters = std::numeric_limits<int64_t>::max();
  for (OpOperand *use : uses) {
    Eligibility own = getSlicingOfUse(*use, target);
    if (!own.slicing)
      return own;
    auto user = cast<SpyreOpInterface>(use->getOwner());
    if (user.isDpsInit(use))
      fewestWriters = std::min(fewestWriters, own.slicing->numCores);
    if (common.slicing) {
      own.isPlain &= own.slicing->numCores == common.slicing->numCores;
      if (own.slicing->dims != common.slicing->dims ||
          (!target.allowsPartsInLX() && !own.isPlain))
        return {std::nullopt, "users access it in different slices"};
      own.slicing->numCores =
          std::max(own.slicing->numCores, common.slicing->numCores);
    }
    own.share = std::min(own.share, common.share);
    own.isPlain &= common.isPlain;
    common = std::move(own);
  }
  if (common.slicing && common.slicing->numCores > fewestWriters)
    return {std::nullopt, "not all cores that read it write it"};
  return common;
}

SmallVector<OpOperand *>
spyre_graph::getOrderedUses(Value buffer, const ProgramPoints &points) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : buffer.getUses())
    uses.push_back(&use);
  llvm::sort(uses, [&](OpOperand *a, OpOperand *b) {
    return std::make_pair(points.lookup(a->getOwner()), a->getOperandNumber()) <
           std::make_pair(points.lookup(b->getOwner()), b->getOperandNumber());
  });
  return uses;
}

int64_t spyre_graph::getNumRuns(Operation *user, Block &block) {
  int64_t runs = 1;
  for (Operation *op = user; op->getBlock() != &block; op = op->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp())) {
      std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound()),
                             high = getConstantIntValue(loop.getUpperBound()),
                             step = getConstantIntValue(loop.getStep());
      if (low && high && step && *step > 0)
        runs *=
            std::max<int64_t>(llvm::divideCeilSigned(*high - *low, *step), 1);
    }
  return runs;
}

bool spyre_graph::isUsedInLoop(ArrayRef<OpOperand *> uses) {
  if (uses.empty())
    return false;
  Value buffer = uses.front()->get();
  return llvm::any_of(uses, [&](OpOperand *use) {
    return use->getOwner()->getBlock() != buffer.getParentBlock();
  });
}

double spyre_graph::getNumAccesses(ArrayRef<OpOperand *> uses, Block &block,
                                   const Target &target) {
  double accesses = 0;
  Operation *last = nullptr;
  for (OpOperand *use : uses) {
    if (use->getOwner() != last)
      accesses += static_cast<double>(getNumRuns(use->getOwner(), block)) *
                  getSlicingOfUse(*use, target).share;
    last = use->getOwner();
  }
  return accesses;
}

int64_t spyre_graph::getBufferBytes(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return getLayout(type).getSizeInBytes(type.getShape());
}

double spyre_graph::getElementBytes(memref::AllocOp alloc) {
  return static_cast<double>(getBufferBytes(alloc)) /
         std::max<double>(alloc.getType().getNumElements(), 1);
}

double spyre_graph::getNumTransfers(const Slicing &slicing,
                                    const ::spyre::DeviceSpec &spec) {
  return ::spyre::numSharedReads(static_cast<double>(getNumCopies(slicing)),
                                 spec);
}

const Divisions &ReadPrices::getPrices(SpyreOpInterface op) {
  std::vector<const void *> key{
      op->getName().getAsOpaquePointer(),
      op->getPropertiesAsAttribute().getAsOpaquePointer()};
  for (Type type : op->getOperandTypes())
    key.push_back(type.getAsOpaquePointer());
  auto [entry, isNew] = known.try_emplace(std::move(key));
  if (isNew) {
    SlicingNumbers numbers;
    WorkDivisionAttr division = op.getWorkDivision();
    entry->second =
        DivisionSearch(op, division.getNumCores(), target, spec, numbers)
            .price(division);
  }
  return entry->second;
}

double ReadPrices::getSeconds(OpOperand &use) {
  return getPrices(cast<SpyreOpInterface>(use.getOwner()))
      .get(0, use.getOperandNumber())
      .seconds;
}

double ReadPrices::getCopySeconds(SpyreOpInterface op) {
  return getPrices(op).getSeconds(0, getSeconds(op->getOpOperand(0)), 0);
}

double ReadPrices::getSavedSeconds(OpOperand &use) {
  Operation *op = use.getOwner();
  const Divisions &prices = getPrices(cast<SpyreOpInterface>(op));
  double loadSeconds = 0, ownSeconds = getSeconds(use);
  for (OpOperand &operand : op->getOpOperands().drop_back())
    if (&operand != &use && !operand.get().getDefiningOp<memref::AllocOp>())
      loadSeconds += getSeconds(operand);
  return prices.getSeconds(0, loadSeconds + ownSeconds, 0) -
         prices.getSeconds(0, loadSeconds, 0);
}

double ReadPrices::getRereadBytes(ArrayRef<OpOperand *> uses, Block &block) {
  double bytes = 0;
  for (OpOperand *use : uses) {
    auto user = cast<SpyreOpInterface>(use->getOwner());
    Eligibility access = getSlicingOfUse(*use, target);
    if (user.isDpsInit(use) || isa<ReshardOp>(user) || !access.slicing)
      continue;
    const OperandCost &cost = getPrices(user).get(0, use->getOperandNumber());
    double numReads =
        cost.onceSeconds > 0 ? cost.seconds / cost.onceSeconds : 1;
    numReads *= getNumTransfers(*access.slicing, spec);
    bytes += static_cast<double>(getNumRuns(user, block)) * (numReads - 1) *
             access.share * static_cast<double>(getBufferBytes(use->get()));
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Between LX and device memory
//===----------------------------------------------------------------------===//

SpyreOpInterface spyre_graph::createSlicedCopy(OpBuilder &builder, Location loc,
                                               Value from, Value to,
                                               const Slicing &slicing,
                                               int64_t maxCopies,
                                               StringRef name,
                                               AffineMap fromMap) {
  MLIRContext *context = builder.getContext();
  std::optional<SlicedLoops> loops =
      getSlicedLoops(slicing, maxCopies, context);
  if (!loops)
    return nullptr;
  SmallVector<int64_t> extents, splits, chunks;
  SmallVector<AffineExpr> results(slicing.dims.size()), extentsAt, chunksAt;
  for (auto [position, loop] : llvm::enumerate(loops->order)) {
    extents.push_back(loops->extents[loop]);
    splits.push_back(loops->splits[loop]);
    chunks.push_back(loops->chunks[loop]);
    extentsAt.push_back(loops->extentsAt[loop]);
    chunksAt.push_back(loops->chunksAt[loop]);
    // Loops after those of the dimensions number the copies of a slice.
    if (loop < static_cast<int64_t>(results.size()))
      results[loop] = getAffineDimExpr(position, context);
  }
  AffineMap map = AffineMap::get(extents.size(), 0, results, context);
  SpyreOpInterface copy =
      createCopyOp(builder, loc, name, from, to,
                   fromMap ? fromMap.compose(map) : map, map, extents);
  unsigned numSymbols = getSizeSymbols(copy).size();
  copy.setLoopExtentMap(makeSizeMap(extentsAt, numSymbols, context));
  copy.setWorkDivision(
      WorkDivisionAttr::get(context, splits, chunks)
          .withChunkMap(makeSizeMap(chunksAt, numSymbols, context)));
  return copy;
}

/// Whether a copy of a buffer may have these slices: those of users that have
/// operands of several element types may be equal in the sticks of the others
/// only.
static bool canDivideCopy(MemRefType type, const Slicing &slicing,
                          const Target &target) {
  if (target.allowsUnequalSlices())
    return true;
  for (auto [number, dim] : llvm::enumerate(slicing.dims)) {
    int64_t steps = getStepsPerStick(getLayout(type), type.getShape(), number);
    if (dim.split > 1 && dim.split * dim.chunk !=
                             llvm::divideCeilSigned(dim.extent, steps) * steps)
      return false;
  }
  return true;
}

std::optional<LXCopy> spyre_graph::createReload(Value memory,
                                                ArrayRef<OpOperand *> readers,
                                                const Slicing &slicing,
                                                Block &block,
                                                const Target &target) {
  auto type = cast<MemRefType>(memory.getType());
  if (!canDivideCopy(type, slicing, target))
    return std::nullopt;
  // The copy is created before the loops around the first reader.
  Operation *first = block.findAncestorOpInBlock(*readers.front()->getOwner());
  OpBuilder builder(first);
  // A tile has the strides of the whole, a copy has its own.
  auto alloc = memref::AllocOp::create(
      builder, first->getLoc(),
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface{}, type.getMemorySpace()));
  SpyreOpInterface copy =
      createSlicedCopy(builder, first->getLoc(), memory, alloc, slicing,
                       target.allowsReplicatedCopies() ? slicing.numCores : 1);
  if (!copy) {
    alloc->erase();
    return std::nullopt;
  }
  for (OpOperand *reader : readers)
    reader->set(alloc);
  return LXCopy{memory, copy, alloc};
}

std::optional<LXCopy> spyre_graph::createSpill(Value memory, OpOperand &writer,
                                               ArrayRef<OpOperand *> readers,
                                               const Slicing &slicing,
                                               const Target &target) {
  auto type = cast<MemRefType>(memory.getType());
  if (!canDivideCopy(type, slicing, target))
    return std::nullopt;
  // Of several cores that hold the same slice, as partners of a split reduction
  // do, only one writes it: the first cores, if together they have all of it.
  Slicing written = slicing;
  written.numCores /= getNumCopies(slicing);
  Operation *producer = writer.getOwner();
  OpBuilder builder(producer);
  auto alloc = memref::AllocOp::create(builder, producer->getLoc(), type);
  builder.setInsertionPointAfter(producer);
  SpyreOpInterface copy = createSlicedCopy(builder, producer->getLoc(), alloc,
                                           memory, written, /*maxCopies=*/1);
  if (!copy) {
    alloc->erase();
    return std::nullopt;
  }
  writer.set(alloc);
  for (OpOperand *reader : readers)
    reader->set(alloc);
  return LXCopy{memory, copy, alloc};
}

void spyre_graph::undo(LXCopy &copy) {
  copy.copy->erase();
  copy.alloc.getResult().replaceAllUsesWith(copy.memory);
  copy.alloc->erase();
}

//===----------------------------------------------------------------------===//
// Between cores
//===----------------------------------------------------------------------===//

void spyre_graph::undo(Resharded &entry) {
  for (auto [move, target] : entry.copies) {
    move->erase();
    target.getResult().replaceAllUsesWith(entry.source.getResult());
    target->erase();
  }
  entry.copies.clear();
}

/// Whether a use of a buffer is a tile that nothing writes.
static bool isReadInTiles(OpOperand &use) {
  auto tile = dyn_cast<memref::SubViewOp>(use.getOwner());
  return tile && llvm::all_of(tile->getUses(), [](OpOperand &inner) {
           auto op = dyn_cast<SpyreOpInterface>(inner.getOwner());
           return op && !op.isDpsInit(&inner);
         });
}

/// Whether a slicing varies along a packed dimension, steps of which share a
/// stick with those of another one: parts of it cannot be moved by sticks.
static bool variesInPacks(const Slicing &slicing, memref::AllocOp alloc) {
  LayoutAttrInterface layout = getLayout(alloc.getType());
  int64_t dim = layout ? getPackedDim(layout) : -1;
  return dim >= 0 && slicing.dims[dim].extentAt;
}

std::optional<Resharder::Uses> Resharder::classify(memref::AllocOp alloc) {
  Block &block = *alloc->getBlock();
  double elementBytes = getElementBytes(alloc);
  Uses found;
  for (OpOperand *use : getOrderedUses(alloc, points)) {
    auto op = dyn_cast<SpyreOpInterface>(use->getOwner());
    if (!op && !isReadInTiles(*use))
      return std::nullopt;
    Eligibility eligibility = getSlicingOfUse(*use, target);
    if (eligibility.slicing && variesInPacks(*eligibility.slicing, alloc))
      return std::nullopt;
    bool isInBlock = use->getOwner()->getBlock() == &block;
    if (!found.writer || (op && op.isDpsInit(use))) {
      // One operation writes the buffer, whole.
      if (found.writer || !op || !op.isDpsInit(use) || !isInBlock ||
          !eligibility.slicing || eligibility.share != 1)
        return std::nullopt;
      found.writer = use;
      found.written = *eligibility.slicing;
      continue;
    }
    auto fits = [&] {
      return fitsLX(found.written, *eligibility.slicing, elementBytes, spec) ||
             (canRepeat(found) &&
              fitsLX(*eligibility.slicing, *eligibility.slicing, elementBytes,
                     spec));
    };
    if (!eligibility.slicing || !(isInBlock || target.allowsLXAcrossLoops()) ||
        !fits()) {
      found.others.push_back(use);
      continue;
    }
    Group &group = getGroup(found, *eligibility.slicing, elementBytes);
    group.readers.push_back(use);
    group.readSeconds += static_cast<double>(getNumRuns(op, block)) *
                         (reads.getSeconds(*use) + spec.transferSetupSeconds);
  }
  return found.writer ? std::optional(std::move(found)) : std::nullopt;
}

double Resharder::getRingSeconds(const Slicing &from, const Slicing &to,
                                 double elementBytes) {
  std::vector<int64_t> key{std::llround(elementBytes * 1024)};
  for (const Slicing *slicing : {&from, &to}) {
    key.push_back(slicing->numCores);
    for (const SliceDim &dim : slicing->dims)
      key.insert(key.end(), {dim.stride, dim.split, dim.chunk, dim.extent});
  }
  auto [entry, isNew] = known.try_emplace(std::move(key), 0.0);
  if (isNew)
    entry->second = spyre_graph::getRingSeconds(from, to, elementBytes, spec);
  return entry->second;
}

/// Time that one more operation beside `op` takes however little it does.
double Resharder::getCallSeconds(Operation *op) const {
  return DivisionSearch::isInLoop(op) ? spec.kernelRepeatSeconds : 0;
}

Resharder::Group &Resharder::getGroup(Uses &uses, const Slicing &slicing,
                                      double elementBytes) {
  for (Group &group : uses.groups)
    if (group.slicing == slicing)
      return group;
  Group &group = uses.groups.emplace_back();
  group.slicing = slicing;
  // Readers need not run on all cores that hold a part.
  group.isMoved = slicing.dims != uses.written.dims ||
                  slicing.numCores > uses.written.numCores;
  if (group.isMoved)
    group.moveSeconds =
        mayMove && fitsLX(uses.written, slicing, elementBytes, spec)
            ? getRingSeconds(uses.written, slicing, elementBytes) +
                  getCallSeconds(uses.writer->getOwner())
            : std::numeric_limits<double>::infinity();
  return group;
}

/// If some users can read a buffer neither where its writer leaves it nor after
/// a move, or gain nothing by that, but others do: lets these others use a
/// buffer of their own in LX, from which the buffer is written.
std::optional<LXCopy> Resharder::split(memref::AllocOp alloc,
                                       const std::optional<Uses> &uses) {
  if (!uses)
    return std::nullopt;
  SmallVector<OpOperand *> inLX;
  double saved = 0, savedIfWhole = static_cast<double>(getBufferBytes(alloc)) /
                                   spec.effectiveMemoryBytesPerSecond;
  for (const Group &group : uses->groups) {
    savedIfWhole += group.readSeconds - group.moveSeconds;
    if (group.moveSeconds >= group.readSeconds)
      continue;
    saved += group.readSeconds - group.moveSeconds;
    llvm::append_range(inLX, group.readers);
  }
  bool isWhole = uses->others.empty() && savedIfWhole >= saved;
  // The copy is set up as a load and as a store.
  if (isWhole || inLX.empty() ||
      saved <= 2 * spec.transferSetupSeconds + getCallSeconds(alloc))
    return std::nullopt;
  std::optional<LXCopy> copy =
      createSpill(alloc, *uses->writer, inLX, uses->written, target);
  if (copy)
    points[copy->copy] = points.lookup(uses->writer->getOwner()) + 1;
  return copy;
}

Served Resharder::serve(memref::AllocOp alloc) {
  Served served;
  std::optional<Uses> uses = classify(alloc);
  std::optional<LXCopy> copy = split(alloc, uses);
  served.isSplit = copy.has_value();
  // The copy has other uses than the buffer.
  served.moves = copy ? move(copy->alloc, classify(copy->alloc))
                      : move(alloc, std::move(uses));
  if (copy)
    served.copies.push_back(*copy);
  if (copy ||
      (!served.moves &&
       !getCommonSlicing(getOrderedUses(alloc, points), target).slicing))
    llvm::append_range(served.copies, reload(alloc));
  return served;
}

/// Whether a use of a buffer writes to it, or to a tile of it.
static bool isWritten(OpOperand &use) {
  if (auto op = dyn_cast<SpyreOpInterface>(use.getOwner()))
    return op.isDpsInit(&use);
  return !isReadInTiles(use);
}

/// Copies in LX of a buffer in device memory, for products that would read it
/// again for each part of their results.
SmallVector<LXCopy> Resharder::reload(memref::AllocOp alloc) {
  Block &block = *alloc->getBlock();
  double elementBytes = getElementBytes(alloc);
  auto pointOf = [&](OpOperand *use) {
    return points.lookup(block.findAncestorOpInBlock(*use->getOwner()));
  };
  int64_t lastWrite = -1;
  std::vector<Group> groups;
  for (OpOperand *use : getOrderedUses(alloc, points)) {
    if (isWritten(*use)) {
      lastWrite = std::max(lastWrite, pointOf(use));
      continue;
    }
    auto op = dyn_cast<SpyreOpInterface>(use->getOwner());
    Eligibility eligibility = getSlicingOfUse(*use, target);
    if (!op || op.getUnit() != Unit::PT || !eligibility.slicing ||
        eligibility.share != 1 ||
        !(op->getBlock() == &block || target.allowsLXAcrossLoops()) ||
        !fitsLX(*eligibility.slicing, *eligibility.slicing, elementBytes, spec))
      continue;
    auto group = llvm::find_if(groups, [&](const Group &entry) {
      return entry.slicing == *eligibility.slicing;
    });
    if (group == groups.end()) {
      groups.emplace_back();
      group = std::prev(groups.end());
      group->slicing = *eligibility.slicing;
    }
    group->readers.push_back(use);
    group->readSeconds += static_cast<double>(getNumRuns(op, block)) *
                          reads.getSavedSeconds(*use);
  }
  SmallVector<LXCopy> copies;
  for (Group &group : groups) {
    double copySeconds = getNumTransfers(group.slicing, spec) *
                             static_cast<double>(getBufferBytes(alloc)) /
                             spec.effectiveMemoryBytesPerSecond +
                         2 * spec.transferSetupSeconds + getCallSeconds(alloc);
    if (group.readSeconds > copySeconds &&
        pointOf(group.readers[0]) > lastWrite)
      if (std::optional<LXCopy> copy =
              createReload(alloc, group.readers, group.slicing, block, target))
        copies.push_back(*copy);
  }
  return copies;
}

/// Moves a buffer to where its users read it. It is left if some of them can
/// read it neither where its writer leaves it nor after a move.
std::optional<Resharded> Resharder::move(memref::AllocOp alloc,
                                         std::optional<Uses> uses) {
  Block &block = *alloc->getBlock();
  if (!mayMove || !uses || !uses->others.empty())
    return std::nullopt;
  llvm::erase_if(uses->groups,
                 [](const Group &group) { return !group.isMoved; });
  // Compare the time to write the buffer to device memory and read it there
  // with the time to move it.
  double memorySeconds = static_cast<double>(getBufferBytes(alloc)) /
                             spec.effectiveMemoryBytesPerSecond +
                         spec.transferSetupSeconds;
  double ringSeconds = 0;
  for (const Group &group : uses->groups) {
    memorySeconds += group.readSeconds;
    ringSeconds += group.moveSeconds;
  }
  if (uses->groups.empty() || ringSeconds >= memorySeconds)
    return std::nullopt;
  Resharded entry{alloc, {}};
  for (const Group &group : uses->groups) {
    // What loops read moves before them.
    Operation *first =
        block.findAncestorOpInBlock(*group.readers.front()->getOwner());
    OpBuilder builder(first);
    auto target =
        memref::AllocOp::create(builder, alloc.getLoc(), alloc.getType());
    SpyreOpInterface move = createReshard(builder, first->getLoc(), alloc,
                                          uses->written, target, group.slicing);
    if (!move) {
      target->erase();
      undo(entry);
      return std::nullopt;
    }
    for (OpOperand *reader : group.readers)
      reader->set(target);
    entry.copies.push_back({move, target});
  }
  return entry;
}
