// SPDX-License-Identifier: Apache-2.0
//===- TileGroups.cpp - Where a plan works tile by tile -------------------===//

#include "Spyre/Target/SpyreCode/Translate.h"

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {
/// Joins dimensions of buffers that one loop walks. A dimension that anything
/// else walks spoils its group.
class Grouping {
public:
  void add(Value buffer) {
    auto [entry, isNew] = first.try_emplace(buffer, numDims);
    if (isNew)
      for (int64_t i = 0; i < getRank(buffer); ++i)
        groups.insert(numDims++);
  }

  unsigned dimOf(Value buffer, unsigned dim) {
    add(buffer);
    return first.lookup(buffer) + dim;
  }

  void spoil(Value buffer, unsigned dim) {
    spoiled.push_back(dimOf(buffer, dim));
  }
  void spoilAll(Value buffer) {
    for (int64_t dim = 0; dim < getRank(buffer); ++dim)
      spoil(buffer, dim);
  }

  void addOp(SpyreOpInterface op) {
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    auto indirect = op.getIndirectAccess();
    // One entry per loop; the first dimension that it walks.
    SmallVector<std::optional<unsigned>> walked(extents.size());
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      if (number >= maps.size())
        break;
      (number + 1 == maps.size() ? written : read).insert(operand);
      auto type = cast<MemRefType>(operand.getType());
      for (unsigned dim = 0; dim < type.getRank(); ++dim) {
        unsigned own = dimOf(operand, dim);
        auto loop = dyn_cast<AffineDimExpr>(maps[number].getResult(dim));
        bool isIndirect = indirect && indirect->operand == number &&
                          indirect->dim == static_cast<int64_t>(dim);
        if (!loop || isIndirect ||
            extents[loop.getPosition()] != type.getDimSize(dim) ||
            varies(op.getLoopExtentMap(), loop.getPosition()) ||
            kinds[loop.getPosition()] != utils::IteratorType::parallel ||
            op.usesLoopIndex(loop.getPosition())) {
          spoiled.push_back(own);
          // Loops of a compound subscript walk this dimension in part only.
          for (unsigned l = 0; l < extents.size(); ++l)
            if (maps[number].getResult(dim).isFunctionOfDim(l))
              partial.emplace_back(op, l);
        }
        if (!loop)
          continue;
        std::optional<unsigned> &known = walked[loop.getPosition()];
        if (known)
          groups.unionSets(*known, own);
        else
          known = own;
      }
    }
    for (auto [other, loop] : partial)
      if (walked[loop])
        spoiled.push_back(*walked[loop]);
    partial.clear();
  }

  ::spyre::runtime::TileGroups get(ArrayRef<BlockArgument> arguments) {
    DenseSet<unsigned> bad;
    for (unsigned dim : spoiled)
      bad.insert(groups.getLeaderValue(dim));
    // A tensor that a group walks twice (a diagonal) is no row of tiles.
    for (auto [buffer, start] : first) {
      DenseSet<unsigned> own;
      for (int64_t dim = 0; dim < getRank(buffer); ++dim)
        if (unsigned leader = groups.getLeaderValue(start + dim);
            !own.insert(leader).second)
          bad.insert(leader);
    }
    // A tile that has no part of its own would update an argument that is both
    // read and written once more.
    for (BlockArgument argument : arguments) {
      if (!read.contains(argument) || !written.contains(argument))
        continue;
      DenseSet<unsigned> own;
      for (int64_t dim = 0; dim < getRank(argument); ++dim)
        own.insert(groups.getLeaderValue(dimOf(argument, dim)));
      for (unsigned dim = 0; dim < numDims; ++dim)
        if (unsigned leader = groups.getLeaderValue(dim); !own.contains(leader))
          bad.insert(leader);
    }
    ::spyre::runtime::TileGroups result;
    DenseMap<unsigned, int32_t> numbers;
    for (BlockArgument argument : arguments) {
      std::vector<int32_t> &own = result.emplace_back();
      for (int64_t dim = 0; dim < getRank(argument); ++dim) {
        unsigned leader = groups.getLeaderValue(dimOf(argument, dim));
        if (bad.contains(leader)) {
          own.push_back(-1);
          continue;
        }
        auto next = static_cast<int32_t>(numbers.size());
        own.push_back(numbers.try_emplace(leader, next).first->second);
      }
    }
    return result;
  }

private:
  static int64_t getRank(Value buffer) {
    return cast<MemRefType>(buffer.getType()).getRank();
  }

  unsigned numDims = 0;
  DenseMap<Value, unsigned> first;
  DenseSet<Value> read, written;
  llvm::EquivalenceClasses<unsigned> groups;
  SmallVector<unsigned> spoiled;
  SmallVector<std::pair<SpyreOpInterface, unsigned>> partial;
};
} // namespace

::spyre::runtime::TileGroups
spyre::spyrecode::findTileGroups(func::FuncOp planned) {
  Grouping grouping;
  for (BlockArgument argument : planned.getArguments()) {
    grouping.add(argument);
    // Nothing tells whether an unused argument depends on its size.
    if (argument.use_empty())
      grouping.spoilAll(argument);
  }
  planned.walk([&](Operation *op) {
    if (auto device = dyn_cast<SpyreOpInterface>(op)) {
      grouping.addOp(device);
      return;
    }
    // Tiles of the plan itself, and whatever else touches buffers.
    if (isa<memref::AllocOp>(op))
      return;
    for (Value value :
         llvm::concat<Value>(llvm::to_vector_of<Value>(op->getOperands()),
                             llvm::to_vector_of<Value>(op->getResults())))
      if (isa<MemRefType>(value.getType()))
        grouping.spoilAll(value);
  });
  return grouping.get(llvm::to_vector(planned.getArguments()));
}
