//===- RepeatedCopies.cpp - Copies that each core makes ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// What an operation copies from an argument, mostly a weight into other sticks,
// may be needed by several cores. Device memory delivers to several cores what
// they load together, so each of them makes what it reads for itself.
//
//===----------------------------------------------------------------------===//

#include "../Division/ReferenceDivision.h"
#include "../Division/Reshard.h"
#include "LXCopies.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Lets each core that holds a slice of what `readers` read make it for itself.
/// `writer` copies an argument, and stays.
static std::optional<LXCopy> createRepeated(SpyreOpInterface writer,
                                            ArrayRef<OpOperand *> readers,
                                            const Slicing &slicing) {
  SmallVector<AffineMap> maps = writer.getIndexingMaps();
  Value memory = writer.getSpyreInit();
  OpBuilder builder(writer);
  auto alloc = memref::AllocOp::create(builder, writer->getLoc(),
                                       cast<MemRefType>(memory.getType()));
  SpyreOpInterface copy = createSlicedCopy(
      builder, writer->getLoc(), writer->getOperand(0), alloc, slicing,
      slicing.numCores, writer->getName().getStringRef(),
      maps.front().compose(inversePermutation(maps.back())));
  if (!copy) {
    alloc->erase();
    return std::nullopt;
  }
  copy->setDiscardableAttrs(writer->getDiscardableAttrDictionary());
  for (OpOperand *reader : readers)
    reader->set(alloc);
  return LXCopy{memory, copy, alloc};
}

/// Whether each core can make what it reads for itself.
bool Resharder::canRepeat(const Uses &uses) const {
  Operation *writer = uses.writer->getOwner();
  return mayMove && !DivisionSearch::isInLoop(writer) &&
         isRepeatable(cast<SpyreOpInterface>(writer), target);
}

std::optional<Repeated> Resharder::repeat(memref::AllocOp alloc) {
  std::optional<Uses> uses = classify(alloc);
  if (!uses || !canRepeat(*uses) || !uses->others.empty() ||
      uses->groups.size() != 1 || !uses->groups.front().isMoved)
    return std::nullopt;
  const Group &group = uses->groups.front();
  auto writer = cast<SpyreOpInterface>(uses->writer->getOwner());
  double memorySeconds = static_cast<double>(getBufferBytes(alloc)) /
                             spec.effectiveMemoryBytesPerSecond +
                         spec.transferSetupSeconds + group.readSeconds;
  std::optional<LXCopy> copy =
      createRepeated(writer, group.readers, group.slicing);
  if (!copy)
    return std::nullopt;
  bool isReachable =
      getSpanInBytes(copy->copy, 0, copy->copy.getWorkDivision().getChunks()) <=
      spec.maxSpanBytes;
  if (!isReachable ||
      reads.getCopySeconds(copy->copy) - reads.getCopySeconds(writer) >=
          std::min(group.moveSeconds, memorySeconds)) {
    undo(*copy);
    return std::nullopt;
  }
  Repeated repeated{*copy, writer, writer->getOperand(0)};
  points[copy->copy] = points.lookup(writer);
  writer->remove();
  writer->getOpOperand(0).drop();
  alloc->remove();
  return repeated;
}

std::vector<Repeated> spyre_graph::repeatCopies(func::FuncOp func,
                                                ProgramPoints &points,
                                                const Target &target,
                                                const ::spyre::DeviceSpec &spec,
                                                ReadPrices &reads) {
  Resharder resharder(points, target, spec, reads, /*mayMove=*/true);
  std::vector<Repeated> repeated;
  for (memref::AllocOp alloc : llvm::to_vector(func.getOps<memref::AllocOp>()))
    if (std::optional<Repeated> entry = resharder.repeat(alloc))
      repeated.push_back(*entry);
  return repeated;
}

void spyre_graph::settle(ArrayRef<Repeated> repeated) {
  for (Repeated entry : repeated) {
    Operation *alloc = entry.copy.memory.getDefiningOp();
    if (entry.copy.alloc->hasAttr(SpyreGraphDialect::getPlacementAttrName())) {
      entry.writer->destroy();
      alloc->destroy();
      continue;
    }
    OpBuilder builder(entry.copy.copy);
    builder.insert(alloc);
    builder.insert(entry.writer);
    entry.writer->setOperand(0, entry.source);
    undo(entry.copy);
  }
}
