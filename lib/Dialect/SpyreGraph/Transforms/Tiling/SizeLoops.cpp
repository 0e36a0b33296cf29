//===- SizeLoops.cpp - Loops up to sizes ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

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

/// The loops of operations whose extents vary, per symbol.
struct SizedGroup {
  OpGroup group;
  SmallVector<TileSeed> seeds;
};

class SizeLoopBuilder {
public:
  explicit SizeLoopBuilder(func::FuncOp function)
      : function(function), symbols(getSizeSymbols(function)),
        groups(symbols.size()) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(function.front()))
      if (auto update = dyn_cast<bufferization::MaterializeInDestinationOp>(op);
          update && failed(storeInLoop(update)))
        return failure();
    for (Operation &op : function.front())
      if (failed(collect(&op)))
        return failure();
    // What varies inside of the loops is their number of iterations.
    for (SizedGroup &own : groups)
      for (TileSeed seed : own.seeds)
        seed.op.setLoopExtentMap(AffineMap());
    for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
      if (!groups[symbol].seeds.empty() && failed(build(symbol)))
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
    SizedGroup &own = groups[found->first];
    own.group.insert(op);
    own.seeds.push_back({spyreOp, found->second});
    return success();
  }

  LogicalResult build(unsigned symbol) {
    auto &[group, seeds] = groups[symbol];
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
    AffineMap bound = AffineMap::get(
        0, symbols.size(), getAffineSymbolExpr(symbol, function.getContext()));
    for (scf::ForOp loop : block.getOps<scf::ForOp>())
      if (!before.contains(loop)) {
        loop->setAttr(kBoundMapAttrName, AffineMapAttr::get(bound));
        ++numLoops;
      }
    return success();
  }

  func::FuncOp function;
  SmallVector<SizeSymbolAttr> symbols;
  SmallVector<SizedGroup> groups;
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
    if (failed(builder.run()))
      return signalPassFailure();
    numLoops += builder.getNumLoops();
  }
};

} // namespace
