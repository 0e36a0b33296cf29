//===- BindSizes.cpp - A plan for one size of each symbol -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "VerifySizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::spyre_graph;

static SmallVector<int64_t> evaluateSizes(AffineMap map,
                                          ArrayRef<int64_t> sizes) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return evaluateSize(expr, sizes);
  });
}

/// Lets an operation write where its offset is at these sizes.
static void bindOffset(SpyreOpInterface op, unsigned dim,
                       ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> numbers;
  for (int64_t size : sizes)
    numbers.push_back(getAffineConstantExpr(size, op->getContext()));
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  SmallVector<AffineExpr> results(maps.back().getResults());
  results[dim] = getWrittenCoordinate(op, dim).replaceSymbols(numbers);
  maps.back() =
      AffineMap::get(maps.back().getNumDims(), 0, results, op->getContext());
  op.setLoopStructure(maps, op.getLoopExtents());
}

OwningOpRef<func::FuncOp> spyre_graph::bindSizes(func::FuncOp function,
                                                 ArrayRef<int64_t> sizes) {
  OwningOpRef<func::FuncOp> bound = function.clone();
  for (BlockArgument argument : bound->getArguments()) {
    unsigned number = argument.getArgNumber();
    AffineMapAttr map = getArgumentSizeMap(argument);
    if (!map)
      continue;
    auto type = cast<MemRefType>(argument.getType());
    argument.setType(MemRefType::get(
        evaluateSizes(map.getValue(), sizes), type.getElementType(),
        MemRefLayoutAttrInterface(), type.getMemorySpace()));
    for (StringRef name :
         {SpyreGraphDialect::getSizeMapAttrName(), kUsedMapAttrName})
      bound->removeArgAttr(number,
                           StringAttr::get(function.getContext(), name));
  }
  bound->setFunctionType(FunctionType::get(
      function.getContext(), bound->front().getArgumentTypes(), {}));
  // Before the maps go that say them.
  bound->walk([&](memref::AllocOp alloc) {
    SmallVector<AffineExpr> contents = getSizes(alloc);
    if (!llvm::all_of(contents, llvm::IsaPred<AffineConstantExpr>))
      alloc->setAttr(kBoundContentsAttrName,
                     DenseI64ArrayAttr::get(
                         function.getContext(),
                         llvm::map_to_vector(contents, [&](AffineExpr size) {
                           return evaluateSize(size, sizes);
                         })));
  });
  bound->walk([&](scf::ForOp loop) {
    std::optional<LoopBound> bound = getLoopBound(loop);
    if (!bound)
      return;
    OpBuilder builder(loop);
    loop.setUpperBound(arith::ConstantIndexOp::create(
        builder, loop.getLoc(), sizes[bound->symbol] / bound->divisor));
    loop->removeAttr(kBoundMapAttrName);
  });
  (*bound)->removeAttr(SpyreGraphDialect::getSymbolsAttrName());
  bound->walk([&](SpyreOpInterface op) {
    if (std::optional<InitOffset> offset = op.getInitOffset())
      bindOffset(op, offset->dim, sizes);
    AffineMap extents = op.getLoopExtentMap();
    if (!extents)
      return;
    op.setLoopStructure(op.getIndexingMaps(), evaluateSizes(extents, sizes));
    op.setLoopExtentMap(AffineMap());
    auto bind = [&](WorkDivisionAttr division) {
      return WorkDivisionAttr::get(op->getContext(), division.getSplits(),
                                   evaluateSizes(division.getChunkMap(), sizes),
                                   division.getOrder());
    };
    if (WorkDivisionAttr division = op.getWorkDivision();
        division && division.getChunkMap())
      op.setWorkDivision(bind(division));
    if (auto reshard = dyn_cast<ReshardOp>(op.getOperation()))
      if (reshard.getSourceDivision().getChunkMap())
        reshard.setSourceDivisionAttr(bind(reshard.getSourceDivision()));
  });
  return bound;
}
