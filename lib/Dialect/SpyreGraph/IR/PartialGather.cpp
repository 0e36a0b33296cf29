//===- PartialGather.cpp - Gathers from parts of a table --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/PartialGather.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::spyre_graph;

int64_t PartialGather::getNumRows() {
  return cast<ShapedType>(gather->getOperand(access.operand).getType())
      .getDimSize(access.dim);
}

Value PartialGather::createRows(int64_t first, int64_t count) {
  Value table = gather->getOperand(access.operand);
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  shape[access.dim] = count;
  offsets[access.dim] = b.getIndexAttr(first);
  return tensor::ExtractSliceOp::create(
      b, gather.getLoc(),
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
      table, offsets, getAsIndexOpFoldResult(b.getContext(), shape), strides);
}

Value PartialGather::createEmpty(Type type) {
  return tensor::EmptyOp::create(b, gather.getLoc(),
                                 cast<RankedTensorType>(type), ValueRange());
}

Value PartialGather::createOnIndices(StringRef name, Value indices, Type type,
                                     ArrayRef<int64_t> numbers) {
  SmallVector<Attribute> immediates(1, b.getUnitAttr());
  for (int64_t number : numbers)
    immediates.push_back(b.getI64IntegerAttr(number));
  return createElementwise(b, gather.getLoc(), name, indices, createEmpty(type),
                           immediates);
}

Value PartialGather::createLocalIndices(int64_t first, int64_t count) {
  Value indices = gather->getOperand(access.index);
  Type type = indices.getType();
  if (first > 0)
    indices =
        createOnIndices(SubOp::getOperationName(), indices, type, {first});
  if (first == 0)
    return createOnIndices(MinimumOp::getOperationName(), indices, type,
                           {count - 1});
  if (first + count == getNumRows())
    return createOnIndices(MaximumOp::getOperationName(), indices, type, {0});
  return createOnIndices(ClampOp::getOperationName(), indices, type,
                         {0, count - 1});
}

Value PartialGather::createPart(int64_t first, int64_t count) {
  Value indices = createLocalIndices(first, count);
  Value rows = createRows(first, count);
  Value init = createEmpty(gather->getResult(0).getType());
  Operation *part = b.clone(*gather);
  part->setOperand(access.operand, rows);
  part->setOperand(access.index, indices);
  part->setOperand(part->getNumOperands() - 1, init);
  return part->getResult(0);
}

Value PartialGather::createSpreadIndices() {
  Value indices = gather->getOperand(access.index);
  auto type = cast<RankedTensorType>(indices.getType());
  auto sparse =
      getStickLayout(type.getElementType(), type.getRank(), /*stickDim=*/-1);
  Value init = createEmpty(
      RankedTensorType::get(type.getShape(), type.getElementType(), sparse));
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  return createCopyOp(b, gather.getLoc(), RestickifyOp::getOperationName(),
                      indices, init, map, map, type.getShape())
      ->getResult(0);
}

Value PartialGather::createChoice(Value spread, int64_t first, Value part,
                                  Value others) {
  auto type = cast<RankedTensorType>(spread.getType());
  Type element = b.getI1Type();
  auto maskType = RankedTensorType::get(
      type.getShape(), element,
      getStickLayout(element, type.getRank(), /*stickDim=*/-1));
  Value mask =
      createOnIndices(GeOp::getOperationName(), spread, maskType, {first});
  SmallVector<AffineMap> maps(4, gather.getIndexingMaps().back());
  maps[0] = gather.getIndexingMaps()[access.index];
  return createElementwise(b, gather.getLoc(), WhereOp::getOperationName(),
                           {mask, part, others}, createEmpty(part.getType()),
                           {}, maps);
}
