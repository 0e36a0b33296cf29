//===- SpanTables.cpp - Gathers from tables in parts ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "SpanTables.h"
#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialGather.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// More parts than this are no plan: each is asked for every index.
static constexpr int64_t kMaxTableParts = 64;

/// Replaces a gather by gathers from parts of the table.
static void splitTable(SpyreOpInterface gather, int64_t rowsPerPart) {
  PartialGather parts(gather);
  int64_t rows = parts.getNumRows();
  Value spread = parts.createSpreadIndices(), result;
  for (int64_t first = 0; first < rows; first += rowsPerPart) {
    Value part = parts.createPart(first, std::min(rowsPerPart, rows - first));
    result =
        first == 0 ? part : parts.createChoice(spread, first, part, result);
  }
  gather->getResult(0).replaceAllUsesWith(result);
  Operation *init = gather.getSpyreInit().getDefiningOp();
  gather->erase();
  if (init->use_empty())
    init->erase();
}

/// Whether cores can address what a gather from so many rows needs.
static bool fits(SpyreOpInterface gather, int64_t rows, int64_t cores,
                 const Target &target, const ::spyre::DeviceSpec &spec) {
  OpBuilder b(gather);
  Value part = PartialGather(gather).createRows(0, rows);
  auto trial = cast<SpyreOpInterface>(b.clone(*gather));
  trial->setOperand(gather.getIndirectAccess()->operand, part);
  bool isSmall = countTilesForSpans(trial, cores, target, spec) != 0;
  trial->erase();
  part.getDefiningOp()->erase();
  return isSmall;
}

bool spyre_graph::splitTableForSpans(SpyreOpInterface op, int64_t cores,
                                     const Target &target,
                                     const ::spyre::DeviceSpec &spec) {
  std::optional<IndirectAccess> access = op.getIndirectAccess();
  // The mask is of another type than what it chooses from.
  if (!access || access->operand >= op.getSpyreInputs().size() ||
      op->getNumResults() != 1 || op.getWorkDivision() ||
      !target.allowsMixedElementTypes())
    return false;
  SmallVector<int64_t> extents = op.getLoopExtents();
  auto isPlain = [](Value value) {
    return isa_and_nonnull<LayoutAttr>(getLayout(value.getType())) &&
           getWholeType(value) == value.getType();
  };
  if (!llvm::all_of(op->getOperands(), isPlain) ||
      !op.getSpyreInit().getDefiningOp<tensor::EmptyOp>() ||
      !op.getIndexingMaps().back().isIdentity() ||
      extents != cast<ShapedType>(op.getSpyreInit().getType()).getShape() ||
      llvm::is_contained(extents, 0))
    return false;
  int64_t rows = PartialGather(op).getNumRows();
  if (fits(op, rows, cores, target, spec))
    return false;
  for (int64_t parts = 2; parts <= std::min(kMaxTableParts, rows); ++parts) {
    int64_t rowsPerPart = llvm::divideCeilSigned(rows, parts);
    if (!fits(op, rowsPerPart, cores, target, spec))
      continue;
    splitTable(op, rowsPerPart);
    return true;
  }
  return false;
}
