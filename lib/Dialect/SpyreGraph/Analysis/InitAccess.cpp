// SPDX-License-Identifier: Apache-2.0
//===- InitAccess.cpp - What operations leave of their init ---------------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/InitAccess.h"

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool spyre_graph::overwritesInit(SpyreOpInterface op) {
  if (op.getIndirectAccess())
    return false;
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<int64_t> ones(extents.size(), 1);
  std::optional<Slicing> whole =
      getSlicing(op.getIndexingMaps().back(), extents, ones, extents, ones,
                 op.getLoopExtentMap());
  Value init = op.getSpyreInit();
  if (!whole || !whole->covers(cast<ShapedType>(init.getType()).getShape()))
    return false;
  // What covers the largest size may be a part of a tensor that does not vary.
  return !whole->varies() || init.getDefiningOp<tensor::EmptyOp>() ||
         llvm::all_of_zip(whole->dims, getSizes(init),
                          [](const SliceDim &dim, AffineExpr size) {
                            return !dim.extentAt || dim.extentAt == size;
                          });
}

bool spyre_graph::canAlwaysUpdateInit(SpyreOpInterface op) {
  Value init = op.getSpyreInit();
  return isa<func::FuncOp>(op->getParentOp()) &&
         init.getDefiningOp<SpyreOpInterface>() && init.hasOneUse();
}
