//===- MemorySchedule.cpp - Operations in an order that needs less -*- C++ -*-//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "MemorySchedule.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// The buffers that an operation, or one inside of it, reads and writes.
struct BufferUses {
  llvm::SmallSetVector<Value, 4> buffers;
  llvm::SmallDenseSet<Value, 4> written;
};

Value getBuffer(Value value) {
  while (auto tile = value.getDefiningOp<memref::SubViewOp>())
    value = tile.getSource();
  return value;
}

BufferUses getBufferUses(Operation *op) {
  BufferUses uses;
  op->walk([&](Operation *inner) {
    auto destination = dyn_cast<DestinationStyleOpInterface>(inner);
    for (OpOperand &operand : inner->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()) ||
          isa<memref::SubViewOp>(inner))
        continue;
      Value buffer = getBuffer(operand.get());
      uses.buffers.insert(buffer);
      // What is not known to read only may write.
      if (!destination || destination.isDpsInit(&operand))
        uses.written.insert(buffer);
    }
  });
  return uses;
}

/// What operations of a block wait for: those that make their operands, or
/// access the same buffers before.
struct Dependences {
  explicit Dependences(Block &block) {
    for (Operation &op : block.without_terminator()) {
      numberOf[&op] = ops.size();
      ops.push_back(&op);
    }
    followers.resize(ops.size());
    waiting.resize(ops.size());
    for (unsigned number = 0; number < ops.size(); ++number)
      addUsesOf(number);
  }

  SmallVector<Operation *> ops;
  std::vector<SmallVector<unsigned, 4>> followers;
  /// How many each one waits for; one that it waits for twice counts twice.
  std::vector<unsigned> waiting;
  std::vector<BufferUses> usesOf;
  /// By how many operations each buffer is used.
  DenseMap<Value, unsigned> numUses;

private:
  void depend(unsigned later, unsigned earlier) {
    if (later == earlier)
      return;
    followers[earlier].push_back(later);
    ++waiting[later];
  }

  void addUsesOf(unsigned number) {
    ops[number]->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          if (auto known = numberOf.find(definition); known != numberOf.end())
            depend(number, known->second);
    });
    BufferUses own = getBufferUses(ops[number]);
    for (Value buffer : own.buffers) {
      ++numUses[buffer];
      auto last = writer.find(buffer);
      if (last != writer.end())
        depend(number, last->second);
      if (own.written.contains(buffer)) {
        for (unsigned reader : readers[buffer])
          depend(number, reader);
        readers[buffer].clear();
        writer[buffer] = number;
      } else {
        readers[buffer].push_back(number);
      }
    }
    usesOf.push_back(std::move(own));
  }

  DenseMap<Operation *, unsigned> numberOf;
  /// The last writer of each buffer, and the readers since.
  DenseMap<Value, unsigned> writer;
  DenseMap<Value, SmallVector<unsigned, 4>> readers;
};

} // namespace

SmallVector<Operation *> spyre_graph::scheduleForMemory(
    Block &block, function_ref<int64_t(Value)> sizeOf, unsigned window) {
  Dependences dependences(block);
  std::vector<unsigned> waiting = dependences.waiting;
  DenseMap<Value, unsigned> usesLeft = dependences.numUses;
  llvm::SmallDenseSet<Value, 16> live;
  /// Bytes that an operation adds to what is live after it.
  auto getGrowth = [&](unsigned number) {
    int64_t growth = 0;
    for (Value buffer : dependences.usesOf[number].buffers) {
      bool isLive = live.contains(buffer), dies = usesLeft[buffer] == 1;
      if (isLive && dies)
        growth -= sizeOf(buffer);
      else if (!isLive && !dies)
        growth += sizeOf(buffer);
    }
    return growth;
  };
  std::set<unsigned> ready;
  for (unsigned number = 0; number < waiting.size(); ++number)
    if (waiting[number] == 0)
      ready.insert(number);
  SmallVector<Operation *> order;
  while (!ready.empty()) {
    unsigned best = *ready.begin(), compared = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (unsigned number : ready) {
      if (++compared > window)
        break;
      if (int64_t growth = getGrowth(number); growth < least) {
        least = growth;
        best = number;
      }
    }
    ready.erase(best);
    order.push_back(dependences.ops[best]);
    for (Value buffer : dependences.usesOf[best].buffers) {
      live.insert(buffer);
      if (--usesLeft[buffer] == 0)
        live.erase(buffer);
    }
    for (unsigned follower : dependences.followers[best])
      if (--waiting[follower] == 0)
        ready.insert(follower);
  }
  return order;
}

void spyre_graph::reorder(Block &block, ArrayRef<Operation *> order) {
  Operation *terminator = block.getTerminator();
  for (Operation *op : order)
    op->moveBefore(terminator);
}
