//===- LXCopies.cpp - Copies of buffers in LX -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LXCopies.h"
#include "../Division/Reshard.h"
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
  for (auto [number, dim] : llvm::enumerate(result.slicing->dims))
    if (dim.split > 1 &&
        dim.chunk % getStepsPerStick(layout, type.getShape(), number) != 0)
      return {std::nullopt, "its slices cut sticks"};
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

int64_t spyre_graph::getBufferBytes(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return getLayout(type).getSizeInBytes(type.getShape());
}

//===----------------------------------------------------------------------===//
// Between LX and device memory
//===----------------------------------------------------------------------===//

/// A copy operation whose loops divide a buffer into the given slices, in the
/// order of the cores. Null if no loops give these slices, or if more than
/// `maxCopies` cores hold the same one.
static SpyreOpInterface createSlicedCopy(OpBuilder &builder, Location loc,
                                         Value from, Value to,
                                         const Slicing &slicing,
                                         int64_t maxCopies) {
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
      createCopyOp(builder, loc, IdentityOp::getOperationName(), from, to, map,
                   map, extents);
  unsigned numSymbols = getSizeSymbols(copy).size();
  copy.setLoopExtentMap(makeSizeMap(extentsAt, numSymbols, context));
  copy.setWorkDivision(
      WorkDivisionAttr::get(context, splits, chunks)
          .withChunkMap(makeSizeMap(chunksAt, numSymbols, context)));
  return copy;
}

std::optional<LXCopy> spyre_graph::createReload(Value memory,
                                                ArrayRef<OpOperand *> readers,
                                                const Slicing &slicing,
                                                Block &block,
                                                const Target &target) {
  // The copy is created before the loops around the first reader.
  Operation *first = block.findAncestorOpInBlock(*readers.front()->getOwner());
  OpBuilder builder(first);
  auto alloc = memref::AllocOp::create(builder, first->getLoc(),
                                       cast<MemRefType>(memory.getType()));
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
                                               const Slicing &slicing) {
  // Of several cores that hold the same slice, as partners of a split reduction
  // do, only one writes it: the first cores, if together they have all of it.
  Slicing written = slicing;
  written.numCores /= getNumCopies(slicing);
  Operation *producer = writer.getOwner();
  OpBuilder builder(producer);
  auto alloc = memref::AllocOp::create(builder, producer->getLoc(),
                                       cast<MemRefType>(memory.getType()));
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

double Resharder::getSeconds(const Slicing &from, const Slicing &to,
                             double elementBytes) {
  std::vector<int64_t> key{std::llround(elementBytes * 1024)};
  for (const Slicing *slicing : {&from, &to}) {
    key.push_back(slicing->numCores);
    for (const SliceDim &dim : slicing->dims)
      key.insert(key.end(), {dim.stride, dim.split, dim.chunk, dim.extent});
  }
  auto [entry, isNew] = known.try_emplace(std::move(key), 0.0);
  if (isNew)
    entry->second = getRingSeconds(from, to, elementBytes, spec);
  return entry->second;
}

std::optional<Resharded> Resharder::run(memref::AllocOp alloc) {
  Block &block = *alloc->getBlock();
  LayoutAttrInterface layout = getLayout(alloc.getType());
  SmallVector<OpOperand *> uses = getOrderedUses(alloc, points);
  // Group the uses by their slices; those with the writer's slices need no
  // copy.
  std::optional<Slicing> written;
  double share = 0;
  SmallVector<std::pair<Slicing, SmallVector<OpOperand *>>, 2> groups;
  for (OpOperand *use : uses) {
    if (use->getOwner()->getBlock() != &block)
      return std::nullopt;
    Eligibility eligibility = getSlicingOfUse(*use, target);
    if (!eligibility.slicing)
      return std::nullopt;
    // How many lanes of the last stick hold anything must be known.
    for (auto [dim, slice] : llvm::enumerate(eligibility.slicing->dims))
      if (slice.extentAt && layout &&
          getStepsPerStick(layout, alloc.getType().getShape(), dim) != 1)
        return std::nullopt;
    bool isWrite = cast<SpyreOpInterface>(use->getOwner()).isDpsInit(use);
    if (isWrite != (use == uses.front()))
      return std::nullopt;
    share += eligibility.share;
    if (isWrite) {
      if (eligibility.share != 1)
        return std::nullopt;
      written = eligibility.slicing;
      continue;
    }
    if (*eligibility.slicing == *written)
      continue;
    auto *group = llvm::find_if(groups, [&](const auto &entry) {
      return entry.first == *eligibility.slicing;
    });
    if (group == groups.end())
      group = &groups.emplace_back(*eligibility.slicing,
                                   SmallVector<OpOperand *>());
    group->second.push_back(use);
  }
  if (groups.empty() || getNumCopies(*written) != 1)
    return std::nullopt;
  // Compare the time to write the buffer to device memory and read it there
  // with the time to move it.
  double bytes = getBufferBytes(alloc);
  double elementBytes =
      bytes / std::max<double>(alloc.getType().getNumElements(), 1);
  double memorySeconds = share * bytes / spec.effectiveMemoryBytesPerSecond +
                         uses.size() * spec.transferSetupSeconds;
  double ringSeconds = 0;
  for (const auto &[slicing, readers] : groups)
    ringSeconds += getSeconds(*written, slicing, elementBytes);
  if (ringSeconds >= memorySeconds)
    return std::nullopt;
  Resharded entry{alloc, {}};
  for (auto &[slicing, readers] : groups) {
    Operation *first = readers.front()->getOwner();
    OpBuilder builder(first);
    auto target =
        memref::AllocOp::create(builder, alloc.getLoc(), alloc.getType());
    SpyreOpInterface move = createReshard(builder, first->getLoc(), alloc,
                                          *written, target, slicing);
    if (!move) {
      target->erase();
      undo(entry);
      return std::nullopt;
    }
    for (OpOperand *reader : readers)
      reader->set(target);
    entry.copies.push_back({move, target});
  }
  return entry;
}
