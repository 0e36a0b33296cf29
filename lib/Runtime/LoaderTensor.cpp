// SPDX-License-Identifier: Apache-2.0
//===- LoaderTensor.cpp - Decoding operations of the tensor dialect -------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace spyre::runtime;

std::vector<SizeSource> FunctionLoader::loadShape(Value shape, Operation *op) {
  std::vector<SizeSource> sizes;
  DenseIntElementsAttr constant;
  if (matchPattern(shape, m_Constant(&constant))) {
    for (const APInt &size : constant.getValues<APInt>())
      sizes.emplace_back().constant = size.getSExtValue();
    return sizes;
  }
  if (auto elements = shape.getDefiningOp<tensor::FromElementsOp>()) {
    for (Value size : elements.getElements())
      sizes.emplace_back().slot = scalarSlot(size);
    return sizes;
  }
  int64_t rank = cast<RankedTensorType>(shape.getType()).getDimSize(0);
  for (int64_t d = 0; d < rank; ++d) {
    ConstantScalar index{function.numScalars++, Elem::Index, {}};
    index.value.i = d;
    function.scalars.push_back(index);
    auto &extract = add<ExtractInstr>(op);
    extract.dst = function.numScalars++;
    extract.source = tensorSlot(shape);
    extract.elem = *elemOf(shape.getType());
    extract.indices = {index.slot};
    sizes.emplace_back().slot = extract.dst;
  }
  return sizes;
}

LogicalResult FunctionLoader::loadTensorOp(Operation *op) {
  auto sizesOf = [&](ShapedType type, ValueRange dynamic) {
    std::vector<SizeSource> sizes;
    auto next = dynamic.begin();
    for (int64_t size : type.getShape()) {
      SizeSource source;
      if (ShapedType::isDynamic(size))
        source.slot = scalarSlot(*next++);
      else
        source.constant = size;
      sizes.push_back(source);
    }
    return sizes;
  };
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    auto &instr = add<EmptyInstr>(op);
    instr.dst = tensorSlot(empty);
    instr.sizes = sizesOf(empty.getType(), empty.getDynamicSizes());
    return success();
  }
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    auto &instr = add<SplatInstr>(op);
    instr.dst = tensorSlot(splat);
    instr.elem = *elemOf(splat.getType());
    instr.sizes =
        sizesOf(cast<ShapedType>(splat.getType()), splat.getDynamicSizes());
    instr.values.push_back(scalarSlot(splat.getInput()));
    return success();
  }
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op)) {
    auto &instr = add<SplatInstr>(op);
    instr.dst = tensorSlot(elements);
    instr.elem = *elemOf(elements.getType());
    instr.sizes = sizesOf(cast<ShapedType>(elements.getType()), {});
    for (Value v : elements.getElements())
      instr.values.push_back(scalarSlot(v));
    return success();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    auto &instr = add<ExtractInstr>(op);
    instr.dst = scalarSlot(extract.getResult());
    instr.source = tensorSlot(extract.getTensor());
    instr.elem = *elemOf(extract.getResult().getType());
    for (Value v : extract.getIndices())
      instr.indices.push_back(scalarSlot(v));
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
    auto &instr = add<InsertInstr>(op);
    instr.dst = tensorSlot(insert.getResult());
    instr.dest = use(insert.getDest(), op);
    instr.elem = *elemOf(insert.getResult().getType());
    instr.value = scalarSlot(insert.getScalar());
    for (Value v : insert.getIndices())
      instr.indices.push_back(scalarSlot(v));
    return success();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto &instr = add<DimInstr>(op);
    instr.dst = scalarSlot(dim.getResult());
    instr.source = tensorSlot(dim.getSource());
    instr.index = scalarSlot(dim.getIndex());
    return success();
  }
  auto slice = [&](auto sliceOp, SliceInstr &instr) {
    for (OpFoldResult v : sliceOp.getMixedOffsets())
      instr.offsets.push_back(sizeOf(v));
    for (OpFoldResult v : sliceOp.getMixedSizes())
      instr.sizes.push_back(sizeOf(v));
    for (OpFoldResult v : sliceOp.getMixedStrides())
      instr.strides.push_back(sizeOf(v));
    instr.dst = tensorSlot(op->getResult(0));
    instr.elem = *elemOf(op->getResult(0).getType());
    instr.source = use(sliceOp.getSource(), op);
  };
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
    auto &instr = add<SliceInstr>(op);
    slice(extract, instr);
    llvm::SmallBitVector dropped = extract.getDroppedDims();
    for (unsigned d = 0; d < dropped.size(); ++d)
      instr.dropped.push_back(dropped.test(d));
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    auto &instr = add<SliceInstr>(op);
    slice(insert, instr);
    instr.isInsert = true;
    instr.dest = use(insert.getDest(), op);
    return success();
  }
  auto reshape = [&](Value source) -> ReshapeInstr & {
    auto &instr = add<ReshapeInstr>(op);
    instr.dst = tensorSlot(op->getResult(0));
    instr.source = use(source, op);
    instr.elem = *elemOf(op->getResult(0).getType());
    return instr;
  };
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    auto &instr = reshape(collapse.getSrc());
    instr.isCollapse = true;
    for (const ReassociationIndices &group : collapse.getReassociationIndices())
      instr.groups.emplace_back(group.begin(), group.end());
    return success();
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    auto &instr = reshape(expand.getSrc());
    for (OpFoldResult size : expand.getMixedOutputShape())
      instr.sizes.push_back(sizeOf(size));
    return success();
  }
  if (auto reshapeOp = dyn_cast<tensor::ReshapeOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(reshapeOp.getResult().getType());
    if (!type || !isa<RankedTensorType>(reshapeOp.getSource().getType()))
      return op->emitError("reshape of unranked tensors is not supported");
    if (type.hasStaticShape()) {
      reshape(reshapeOp.getSource()).sizes = sizesOf(type, {});
      return success();
    }
    std::vector<SizeSource> sizes = loadShape(reshapeOp.getShape(), op);
    ReshapeInstr &instr = reshape(reshapeOp.getSource());
    instr.sizes = std::move(sizes);
    for (int64_t size : type.getShape())
      instr.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
    return success();
  }
  if (auto generate = dyn_cast<tensor::GenerateOp>(op))
    return loadGenerate(
        op, sizesOf(generate.getType(), generate.getDynamicExtents()), -1,
        tensorSlot(generate));
  if (isa<tensor::PadOp>(op))
    return loadPad(op);
  if (auto cast_ = dyn_cast<tensor::CastOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(cast_.getType());
    if (!type || !isa<RankedTensorType>(cast_.getSource().getType()))
      return op->emitError("cast of unranked tensors is not supported");
    auto &instr = reshape(cast_.getSource());
    instr.keepShape = true;
    for (int64_t size : type.getShape())
      instr.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
    return success();
  }
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

LogicalResult FunctionLoader::loadPad(Operation *op) {
  // Fill all of the result, then put the source into its middle.
  auto pad = cast<tensor::PadOp>(op);
  int shape = function.numTensors++, filled = function.numTensors++;
  auto fill = [&](PadInstr &instr) {
    instr.elem = *elemOf(pad.getType());
    instr.source = {tensorSlot(pad.getSource()), false};
    for (OpFoldResult v : pad.getMixedLowPad())
      instr.low.push_back(sizeOf(v));
    for (OpFoldResult v : pad.getMixedHighPad())
      instr.high.push_back(sizeOf(v));
    for (int64_t size : pad.getType().getShape())
      instr.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  };
  auto &empty = add<PadInstr>(op);
  fill(empty);
  empty.dst = shape;
  if (failed(loadGenerate(op, {}, shape, filled)))
    return failure();
  auto &copy = add<PadInstr>(op);
  fill(copy);
  copy.isCopy = true;
  copy.padded = {filled, true};
  copy.dst = tensorSlot(pad.getResult());
  copy.releases = {shape, filled};
  return success();
}
