//===- LXTileCopies.cpp - Copies of tiles in LX -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LXCopies.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The buffer of which a value is a tile, if it is one.
static Value getWholeBuffer(Value buffer) {
  auto tile = buffer.getDefiningOp<memref::SubViewOp>();
  return tile ? tile.getSource() : buffer;
}

/// The buffers that operations of a loop may write to, or to a part of.
static llvm::SmallPtrSet<Value, 8> getWrittenBuffers(scf::ForOp loop) {
  llvm::SmallPtrSet<Value, 8> written;
  loop.getBody()->walk([&](Operation *op) {
    if (isa<memref::SubViewOp>(op))
      return;
    auto spyreOp = dyn_cast<SpyreOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands())
      if (isa<MemRefType>(operand.get().getType()) &&
          (!spyreOp || spyreOp.isDpsInit(&operand)))
        written.insert(getWholeBuffer(operand.get()));
  });
  return written;
}

/// Nothing if the readers of equal tiles have no use for a copy.
static std::optional<LXCopy> createTileCopy(ArrayRef<memref::SubViewOp> tiles,
                                            const ProgramPoints &points,
                                            const Target &target,
                                            const ::spyre::DeviceSpec &spec,
                                            ReadPrices &reads) {
  memref::SubViewOp tile = tiles.front();
  Block &block = *tile->getBlock();
  SmallVector<OpOperand *> readers;
  for (memref::SubViewOp equal : tiles)
    llvm::append_range(readers, getOrderedUses(equal, points));
  llvm::sort(readers, [&](OpOperand *a, OpOperand *b) {
    return std::make_pair(points.lookup(a->getOwner()), a->getOperandNumber()) <
           std::make_pair(points.lookup(b->getOwner()), b->getOperandNumber());
  });
  if (readers.size() < 2 || llvm::any_of(readers, [&](OpOperand *use) {
        return use->getOwner()->getBlock() != &block;
      }))
    return std::nullopt;
  Eligibility eligibility = getCommonSlicing(readers, target);
  if (!eligibility.slicing || eligibility.share != 1)
    return std::nullopt;
  double savedSeconds = 0;
  for (OpOperand *use : readers)
    savedSeconds += reads.getSavedSeconds(*use);
  double copySeconds = getNumTransfers(*eligibility.slicing, spec) *
                           static_cast<double>(getBufferBytes(tile)) /
                           spec.effectiveMemoryBytesPerSecond +
                       2 * spec.transferSetupSeconds + spec.kernelRepeatSeconds;
  if (savedSeconds <= copySeconds)
    return std::nullopt;
  std::optional<LXCopy> copy =
      createReload(tile, readers, *eligibility.slicing, block, target);
  if (copy)
    for (memref::SubViewOp equal : tiles.drop_front())
      equal->erase();
  return copy;
}

SmallVector<LXCopy> spyre_graph::createTileCopies(
    func::FuncOp func, const ProgramPoints &points, const Target &target,
    const ::spyre::DeviceSpec &spec, ReadPrices &reads) {
  SmallVector<LXCopy> copies;
  func.walk([&](scf::ForOp loop) {
    std::map<std::vector<const void *>, size_t> known;
    std::vector<SmallVector<memref::SubViewOp, 2>> groups;
    for (auto tile : loop.getBody()->getOps<memref::SubViewOp>()) {
      std::vector<const void *> key{
          tile.getType().getAsOpaquePointer(),
          tile->getPropertiesAsAttribute().getAsOpaquePointer()};
      for (Value operand : tile->getOperands())
        key.push_back(operand.getAsOpaquePointer());
      auto [entry, isNew] = known.try_emplace(std::move(key), groups.size());
      if (isNew)
        groups.emplace_back();
      groups[entry->second].push_back(tile);
    }
    llvm::SmallPtrSet<Value, 8> written = getWrittenBuffers(loop);
    for (auto &tiles : groups)
      if (!written.contains(getWholeBuffer(tiles.front().getResult())))
        if (std::optional<LXCopy> copy =
                createTileCopy(tiles, points, target, spec, reads))
          copies.push_back(*copy);
  });
  return copies;
}
