//===- SpanTables.cpp - Gathers from tables in parts ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "SpanTables.h"
#include "../Layout/LayoutChoices.h"
#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Rows `first` to `first + count - 1` of the table.
static Value createRows(OpBuilder &b, SpyreOpInterface gather, int64_t first,
                        int64_t count) {
  IndirectAccess access = *gather.getIndirectAccess();
  Value table = gather->getOperand(access.operand);
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  shape[access.dim] = count;
  offsets[access.dim] = b.getIndexAttr(first);
  return tensor::ExtractSliceOp::create(
      b, gather->getLoc(),
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
      table, offsets, getAsIndexOpFoldResult(b.getContext(), shape), strides);
}

namespace {

/// More parts than this are no plan: each is asked for every index.
constexpr int64_t kMaxParts = 64;

/// Replaces a gather by gathers from parts of the table.
class TableSplitter {
public:
  TableSplitter(SpyreOpInterface gather, int64_t rowsPerPart)
      : gather(gather), access(*gather.getIndirectAccess()), b(gather),
        loc(gather->getLoc()), rowsPerPart(rowsPerPart) {}

  void run() {
    Value indices = gather->getOperand(access.index);
    auto table = cast<ShapedType>(gather->getOperand(access.operand).getType());
    int64_t rows = table.getDimSize(access.dim);
    // A mask that every lane of a row reads: an index per stick.
    auto type = cast<RankedTensorType>(indices.getType());
    auto sparse =
        getStickLayout(type.getElementType(), type.getRank(), /*stickDim=*/-1);
    Value spread = createCopy(b, RestickifyOp::getOperationName(), loc, indices,
                              b.getMultiDimIdentityMap(type.getRank()),
                              type.getShape(), sparse);
    Value result;
    for (int64_t first = 0; first < rows; first += rowsPerPart) {
      int64_t count = std::min(rowsPerPart, rows - first);
      Value part =
          createGather(first, count, createLocal(indices, first, count, rows));
      result = first == 0 ? part : createChoice(spread, first, part, result);
    }
    gather->getResult(0).replaceAllUsesWith(result);
    Operation *init = gather.getSpyreInit().getDefiningOp();
    gather->erase();
    if (init->use_empty())
      init->erase();
  }

private:
  Value createEmpty(Type type) {
    return tensor::EmptyOp::create(b, loc, cast<RankedTensorType>(type),
                                   ValueRange());
  }
  Value create(StringRef name, ValueRange ins, Type type,
               ArrayRef<int64_t> numbers) {
    SmallVector<Attribute> immediates(ins.size(), b.getUnitAttr());
    for (int64_t number : numbers)
      immediates.push_back(b.getI64IntegerAttr(number));
    return createElementwise(b, loc, name, ins, createEmpty(type), immediates);
  }

  /// Indices into a part. Those of other parts give any row of this one, but
  /// those outside of the table stay outside: the program reports them.
  Value createLocal(Value indices, int64_t first, int64_t count, int64_t rows) {
    Type type = indices.getType();
    if (first > 0)
      indices = create(SubOp::getOperationName(), indices, type, {first});
    if (first == 0)
      return create(MinimumOp::getOperationName(), indices, type, {count - 1});
    if (first + count == rows)
      return create(MaximumOp::getOperationName(), indices, type, {0});
    return create(ClampOp::getOperationName(), indices, type, {0, count - 1});
  }

  Value createGather(int64_t first, int64_t count, Value indices) {
    Value part = createRows(b, gather, first, count);
    Value init = createEmpty(gather->getResult(0).getType());
    Operation *own = b.clone(*gather);
    own->setOperand(access.operand, part);
    own->setOperand(access.index, indices);
    own->setOperand(own->getNumOperands() - 1, init);
    return own->getResult(0);
  }

  /// `part` where the index is `first` or above, `others` elsewhere.
  Value createChoice(Value spread, int64_t first, Value part, Value others) {
    auto type = cast<RankedTensorType>(spread.getType());
    Type element = b.getI1Type();
    auto maskType = RankedTensorType::get(
        type.getShape(), element,
        getStickLayout(element, type.getRank(), /*stickDim=*/-1));
    Value mask = create(GeOp::getOperationName(), spread, maskType, {first});
    SmallVector<AffineMap> maps(4, gather.getIndexingMaps().back());
    maps[0] = gather.getIndexingMaps()[access.index];
    return createElementwise(b, loc, WhereOp::getOperationName(),
                             {mask, part, others}, createEmpty(part.getType()),
                             {}, maps);
  }

  SpyreOpInterface gather;
  IndirectAccess access;
  OpBuilder b;
  Location loc;
  int64_t rowsPerPart;
};

/// Whether cores can address what a gather from so many rows needs.
bool fits(SpyreOpInterface gather, int64_t rows, int64_t cores,
          const Target &target, const ::spyre::DeviceSpec &spec) {
  OpBuilder b(gather);
  Value part = createRows(b, gather, 0, rows);
  auto trial = cast<SpyreOpInterface>(b.clone(*gather));
  trial->setOperand(gather.getIndirectAccess()->operand, part);
  bool isSmall = countTilesForSpans(trial, cores, target, spec) != 0;
  trial->erase();
  part.getDefiningOp()->erase();
  return isSmall;
}
} // namespace

bool spyre_graph::splitTableForSpans(SpyreOpInterface op, int64_t cores,
                                     const Target &target,
                                     const ::spyre::DeviceSpec &spec) {
  std::optional<IndirectAccess> access = op.getIndirectAccess();
  // The mask is of another type than what it chooses from.
  if (!access || access->operand >= op.getSpyreInputs().size() ||
      op->getNumResults() != 1 || op.getWorkDivision() ||
      !target.allowsMixedElementTypes())
    return false;
  Value table = op->getOperand(access->operand);
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
  int64_t rows = cast<ShapedType>(table.getType()).getDimSize(access->dim);
  if (fits(op, rows, cores, target, spec))
    return false;
  for (int64_t parts = 2; parts <= std::min(kMaxParts, rows); ++parts) {
    int64_t rowsPerPart = llvm::divideCeilSigned(rows, parts);
    if (!fits(op, rowsPerPart, cores, target, spec))
      continue;
    TableSplitter(op, rowsPerPart).run();
    return true;
  }
  return false;
}
