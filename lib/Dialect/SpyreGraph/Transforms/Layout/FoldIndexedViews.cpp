//===- FoldIndexedViews.cpp - Indices into what views show ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FoldIndexedViews.h"
#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Which rows of a view's source an operation reads: at index i those at
/// step x i + offset + the sum of strides x loops.
struct SourceRows {
  int64_t dim = -1; ///< dimension of the source that counts the rows
  int64_t step = 0, offset = 0;
  SmallVector<int64_t> strides; ///< per loop
  AffineMap map;                ///< to the source, 0 in `dim`
};

} // namespace

static std::optional<SourceRows> findRows(ViewOp view, SpyreOpInterface op) {
  MLIRContext *context = op->getContext();
  IndirectAccess access = *op.getIndirectAccess();
  SmallVector<int64_t> extents = op.getLoopExtents();
  int64_t numIndices = shapeOf(view.getResult())[access.dim];
  unsigned numLoops = extents.size();
  // The index is one more loop.
  SmallVector<AffineExpr> coordinates(
      op.getIndexingMaps()[access.operand].getResults());
  coordinates[access.dim] = getAffineDimExpr(numLoops, context);
  SmallVector<int64_t> ranges(extents);
  ranges.push_back(numIndices);
  SourceRows rows;
  SmallVector<AffineExpr> results;
  for (auto [dim, expr] : llvm::enumerate(view.getMap().getResults())) {
    AffineExpr composed =
        simplifyWithRanges(expr.replaceDims(coordinates), ranges);
    results.push_back(composed);
    if (!composed.isFunctionOfDim(numLoops))
      continue;
    auto form = getLinearForm(composed, numLoops + 1);
    if (!form || rows.dim >= 0)
      return std::nullopt;
    rows.dim = dim;
    rows.offset = form->pop_back_val();
    rows.step = form->pop_back_val();
    rows.strides = *form;
    results.back() = getAffineConstantExpr(0, context);
  }
  if (rows.dim < 0)
    return std::nullopt;
  // The first index that is wrong, on either side, must stay so.
  int64_t first = rows.offset, last = rows.offset;
  for (auto [stride, extent] : llvm::zip_equal(rows.strides, extents)) {
    if (stride < 0)
      return std::nullopt;
    last += stride * (extent - 1);
  }
  int64_t numRows = shapeOf(view.getSource())[rows.dim];
  if (rows.step * numIndices + first < numRows || last - rows.step >= 0)
    return std::nullopt;
  // Indices are stored in 32 bits.
  if (rows.step * numIndices + last > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  rows.map =
      joinRemainders(AffineMap::get(numLoops, 0, results, context), extents);
  return rows;
}

/// Whether a tensor has a layout in which indices select whole rows of `dim`.
static bool selectsRows(Value source, int64_t dim) {
  LayoutAttrInterface layout = getLayout(source.getType());
  if (!layout)
    return false;
  auto dims = layout.getDeviceDims(shapeOf(source));
  return dims.back().hostDim != dim &&
         llvm::count_if(
             dims, [&](const auto &own) { return own.hostDim == dim; }) == 1;
}

LogicalResult IndexedViewFolding::fold(ViewOp view, SpyreOpInterface op) {
  IndirectAccess access = *op.getIndirectAccess();
  MLIRContext *context = op->getContext();
  SmallVector<int64_t> extents = op.getLoopExtents();
  // Which indices are wrong would depend on sizes that vary.
  if (llvm::is_contained(extents, 0) || hasSizeSymbols(op))
    return failure();
  std::optional<SourceRows> rows = findRows(view, op);
  if (!rows || !selectsRows(view.getSource(), rows->dim))
    return failure();

  SmallVector<AffineMap> maps = op.getIndexingMaps();
  auto type = cast<ShapedType>(view.getResult().getType());
  Value indices = op->getOperand(access.index);
  RowIndices form;
  form.step = rows->step;
  form.offset = rows->offset;
  form.numIndices = type.getDimSize(access.dim);
  // The loops on which the indices of rows depend.
  llvm::SmallBitVector ofIndices = getUsedDims(maps[access.index], extents);
  SmallVector<AffineExpr> own,
      renumbered(extents.size(), getAffineConstantExpr(0, context));
  int64_t numRows = 1;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (!ofIndices.test(loop) && rows->strides[loop] == 0)
      continue;
    renumbered[loop] = getAffineDimExpr(own.size(), context);
    own.push_back(getAffineDimExpr(loop, context));
    form.extents.push_back(extent);
    form.strides.push_back(rows->strides[loop]);
    numRows *= extent;
  }
  if (numRows > type.getNumElements() ||
      getElementTypeOrSelf(indices.getType()).getIntOrFloatBitWidth() < 32)
    return failure();
  form.map =
      maps[access.index].replaceDimsAndSymbols(renumbered, {}, own.size(), 0);
  const Made *known = llvm::find_if(all, [&](const Made &made) {
    Operation *maker = made.rows.getDefiningOp();
    return made.indices == indices && made.form == form &&
           maker->getBlock() == op->getBlock() && maker->isBeforeInBlock(op);
  });
  OpBuilder builder(op);
  Value ofRows = known != all.end()
                     ? known->rows
                     : form.create(builder, op.getLoc(), indices);
  if (known == all.end())
    all.push_back({indices, form, ofRows});

  op->setOperand(access.operand, view.getSource());
  op->setOperand(access.index, ofRows);
  maps[access.operand] = rows->map;
  maps[access.index] = AffineMap::get(extents.size(), 0, own, context);
  setIndirectDim(op, rows->dim);
  op.setLoopStructure(maps, extents);
  return success();
}

void IndexedViewFolding::forget(Value indices) {
  llvm::erase_if(all,
                 [&](const Made &made) { return made.indices == indices; });
}
