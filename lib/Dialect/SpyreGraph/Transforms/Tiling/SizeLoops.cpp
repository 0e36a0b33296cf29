//===- SizeLoops.cpp - Loops up to sizes ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "TileLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/ScopedPrinter.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRESIZELOOPS
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Operations whose extents vary with one symbol, which one loop runs.
struct SizedGroup {
  OpGroup group;
  SmallVector<TileSeed> seeds;
};

using LoopsOfOps = llvm::MapVector<Operation *, unsigned>;

class SizeLoopBuilder {
public:
  explicit SizeLoopBuilder(func::FuncOp function)
      : function(function), symbols(getSizeSymbols(function)),
        sizedLoops(symbols.size()) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(function.front()))
      if (auto update = dyn_cast<bufferization::MaterializeInDestinationOp>(op);
          update && failed(storeInLoop(update)))
        return failure();
    for (Operation &op : function.front())
      if (failed(collect(&op)))
        return failure();
    std::vector<std::vector<SizedGroup>> groups;
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      groups.push_back(getGroups(symbol));
    // What varies inside of the loops is their number of iterations.
    for (const auto &own : sizedLoops)
      for (auto [op, loop] : own)
        cast<SpyreOpInterface>(op).setLoopExtentMap(AffineMap());
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      for (const SizedGroup &own : groups[symbol])
        if (failed(build(symbol, own)))
          return failure();
    return success();
  }

  unsigned getNumLoops() const { return numLoops; }

private:
  /// Gives what updates an argument an operation that writes into it, which can
  /// run in a loop.
  LogicalResult storeInLoop(bufferization::MaterializeInDestinationOp update) {
    Value source = update.getSource(), target = update.getDest();
    if (llvm::all_of(getSizes(target), llvm::IsaPred<AffineConstantExpr>))
      return success();
    auto writer = source.getDefiningOp<SpyreOpInterface>();
    if (writer && writer.getSpyreInit() == target)
      return success();
    OpBuilder builder(update);
    SpyreOpInterface copy =
        createCopyOp(builder, update.getLoc(), source, target);
    // Others use the value that was computed.
    update.getResult().replaceAllUsesWith(source);
    update.getSourceMutable().assign(copy->getResult(0));
    return success();
  }

  LogicalResult collect(Operation *op) {
    if (isa<tensor::EmptyOp, arith::ConstantOp, func::ReturnOp,
            bufferization::MaterializeInDestinationOp>(op))
      return success();
    auto spyreOp = dyn_cast<SpyreOpInterface>(op);
    if (!spyreOp) {
      // SG-SIZE-LOOP-C1
      for (Value result : op->getResults())
        if (isa<ShapedType>(result.getType()) &&
            !llvm::all_of(getSizes(result), llvm::IsaPred<AffineConstantExpr>))
          return op->emitOpError("has a result whose size varies, but is no "
                                 "device operation that can run in a loop up "
                                 "to a size");
      return success();
    }
    // SG-SIZE-LOOP-C1
    if (spyreOp.getInitOffset())
      return op->emitOpError("writes from an offset on that varies, which no "
                             "loop up to a size does");
    AffineMap extents = spyreOp.getLoopExtentMap();
    if (!extents)
      return success();
    std::optional<std::pair<unsigned, unsigned>> found;
    for (auto [loop, extent] : llvm::enumerate(extents.getResults())) {
      if (isa<AffineConstantExpr>(extent))
        continue;
      // SG-SIZE-LOOP-C1
      auto symbol = dyn_cast<AffineSymbolExpr>(extent);
      if (!symbol)
        return op->emitOpError()
               << "has an extent of " << llvm::to_string(extent) << " in loop "
               << loop << "; a loop up to a size is up to one symbol";
      if (found)
        return op->emitOpError()
               << "has extents that vary in the loops " << found->second
               << " and " << loop << "; a loop up to a size cuts one";
      found = {symbol.getPosition(), loop};
    }
    sizedLoops[found->first].insert({op, found->second});
    return success();
  }

  /// Whether an operand reads, in each tile of loop `loop`, what `writer`
  /// writes in the same tile of its loop `writerLoop`, as far as dimensions
  /// say.
  static bool readsSameTiles(OpOperand &operand, unsigned loop,
                             SpyreOpInterface writer, unsigned writerLoop) {
    auto reader = cast<SpyreOpInterface>(operand.getOwner());
    AffineMap read = reader.getIndexingMaps()[operand.getOperandNumber()];
    return llvm::all_of_zip(writer.getIndexingMaps().back().getResults(),
                            read.getResults(),
                            [&](AffineExpr written, AffineExpr own) {
                              return !written.isFunctionOfDim(writerLoop) ||
                                     own.isFunctionOfDim(loop);
                            });
  }

  /// The operations that vary with a symbol, in groups that a loop each runs,
  /// one after the other. What reads other tiles than its own, or needs what is
  /// computed of them outside, comes in a later loop.
  std::vector<SizedGroup> getGroups(unsigned symbol) {
    const LoopsOfOps &loops = sizedLoops[symbol];
    std::vector<SizedGroup> groups;
    // Twice the number of its loop, or one more for what comes after a loop and
    // is in none.
    DenseMap<Operation *, unsigned> numbers;
    for (Operation &op : function.front()) {
      const auto *own = loops.find(&op);
      bool isInLoop = own != loops.end();
      std::optional<unsigned> number;
      if (isInLoop)
        number = 0;
      auto comeAfter = [&](Operation *other, function_ref<bool()> isSameTile) {
        auto known = numbers.find(other);
        if (known == numbers.end())
          return;
        bool wasInLoop = known->second % 2 == 0;
        unsigned least = known->second;
        if (wasInLoop != isInLoop)
          least += 1;
        else if (isInLoop && !isSameTile())
          least += 2;
        number = std::max(number.value_or(0), least);
      };
      for (OpOperand &operand : op.getOpOperands())
        if (Operation *producer = operand.get().getDefiningOp())
          comeAfter(producer, [&] {
            return readsSameTiles(operand, own->second,
                                  cast<SpyreOpInterface>(producer),
                                  loops.lookup(producer));
          });
      // What an argument was is read before it is updated.
      auto update = dyn_cast<SpyreOpInterface>(op);
      if (isInLoop && isa<BlockArgument>(update.getSpyreInit()))
        for (OpOperand &use : update.getSpyreInit().getUses())
          if (Operation *reader = use.getOwner();
              reader != &op && reader->isBeforeInBlock(&op))
            comeAfter(reader, [&] {
              return readsSameTiles(use, loops.lookup(reader), update,
                                    own->second);
            });
      if (!number)
        continue;
      numbers[&op] = *number;
      if (!isInLoop)
        continue;
      groups.resize(std::max<size_t>(groups.size(), *number / 2 + 1));
      groups[*number / 2].group.insert(&op);
      groups[*number / 2].seeds.push_back({update, own->second});
    }
    return groups;
  }

  LogicalResult build(unsigned symbol, const SizedGroup &own) {
    const auto &[group, seeds] = own;
    SizeSymbolAttr size = symbols[symbol];
    Operation *first = group.front();
    auto refuse = [&](Operation *op, const Twine &why) {
      return op->emitOpError() << "cannot run in a loop up to "
                               << describe(size) << ": " << why.str();
    };
    // SG-SIZE-LOOP-C2
    if (size.getLeast() != size.getStep())
      return refuse(first, "sizes must be the multiples of a step");
    // SG-SIZE-LOOP-C1
    for (TileSeed seed : seeds)
      if (seed.op.getLoopKinds()[seed.loopDim] != utils::IteratorType::parallel)
        return refuse(seed.op, "it reduces the dimension");
    std::string reason;
    std::optional<TileLevel> level = getTileLevel(group, seeds, reason);
    if (!level)
      return refuse(first, reason);
    if (!level->reduced.empty())
      return refuse(level->reduced.front(), "it reduces the dimension");
    if (level->extent != size.getMost() || level->leastExtent != level->extent)
      return refuse(first, "a dimension of it is a part of the size");
    if (size.getStep() % level->granularity != 0)
      return refuse(first, "tiles of " + Twine(size.getStep()) +
                               " do not begin at whole sticks, which have " +
                               Twine(level->granularity) + " elements");
    level->tile = size.getStep();
    llvm::SmallPtrSet<Operation *, 4> before;
    Block &block = function.front();
    for (scf::ForOp loop : block.getOps<scf::ForOp>())
      before.insert(loop);
    buildTileLoops(group, {*level});
    for (scf::ForOp loop : block.getOps<scf::ForOp>())
      if (!before.contains(loop)) {
        setLoopBound(loop, symbol);
        ++numLoops;
      }
    return success();
  }

  func::FuncOp function;
  SmallVector<SizeSymbolAttr> symbols;
  /// Per symbol, the operations that vary with it, and the loop that does.
  SmallVector<LoopsOfOps> sizedLoops;
  unsigned numLoops = 0;
};

class SizeLoopsPass
    : public spyre_graph::impl::SpyreSizeLoopsBase<SizeLoopsPass> {
public:
  using SpyreSizeLoopsBase::SpyreSizeLoopsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || !hasSizeSymbols(function))
      return;
    SizeLoopBuilder builder(function);
    // SG-SIZE-LOOP-C3
    if (failed(checkOnTensors(function, getArgument())) ||
        failed(checkLayouts(function)) || failed(builder.run()))
      return signalPassFailure();
    numLoops += builder.getNumLoops();
  }
};

} // namespace
