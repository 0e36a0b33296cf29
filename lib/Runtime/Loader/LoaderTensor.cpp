// SPDX-License-Identifier: Apache-2.0
//===- LoaderTensor.cpp - Decoding operations of the tensor dialect -------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

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

static std::vector<int64_t> staticSizesOf(RankedTensorType type) {
  std::vector<int64_t> sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  return sizes;
}

/// Decodes one operation of the tensor dialect, by its kind.
class FunctionLoader::TensorOpLoader {
public:
  TensorOpLoader(FunctionLoader &loader, Operation *op)
      : loader(loader), op(op) {}

  LogicalResult load(tensor::EmptyOp empty) {
    auto &instr = loader.add<EmptyInstr>(op);
    instr.dst = loader.tensorSlot(empty);
    instr.sizes = sizesOf(empty.getType(), empty.getDynamicSizes());
    return success();
  }

  LogicalResult load(tensor::SplatOp splat) {
    auto &instr = loader.add<SplatInstr>(op);
    instr.dst = loader.tensorSlot(splat);
    instr.elem = *elemOf(splat.getType());
    instr.sizes =
        sizesOf(cast<ShapedType>(splat.getType()), splat.getDynamicSizes());
    instr.values.push_back(loader.scalarSlot(splat.getInput()));
    return success();
  }

  LogicalResult load(tensor::FromElementsOp elements) {
    auto &instr = loader.add<SplatInstr>(op);
    instr.dst = loader.tensorSlot(elements);
    instr.elem = *elemOf(elements.getType());
    instr.sizes = sizesOf(cast<ShapedType>(elements.getType()), {});
    for (Value v : elements.getElements())
      instr.values.push_back(loader.scalarSlot(v));
    return success();
  }

  LogicalResult load(tensor::ExtractOp extract) {
    auto &instr = loader.add<ExtractInstr>(op);
    instr.dst = loader.scalarSlot(extract.getResult());
    instr.source = loader.tensorSlot(extract.getTensor());
    instr.elem = *elemOf(extract.getResult().getType());
    for (Value v : extract.getIndices())
      instr.indices.push_back(loader.scalarSlot(v));
    return success();
  }

  LogicalResult load(tensor::InsertOp insert) {
    auto &instr = loader.add<InsertInstr>(op);
    instr.dst = loader.tensorSlot(insert.getResult());
    instr.dest = loader.use(insert.getDest(), op);
    instr.elem = *elemOf(insert.getResult().getType());
    instr.value = loader.scalarSlot(insert.getScalar());
    for (Value v : insert.getIndices())
      instr.indices.push_back(loader.scalarSlot(v));
    return success();
  }

  LogicalResult load(tensor::DimOp dim) {
    auto &instr = loader.add<DimInstr>(op);
    instr.dst = loader.scalarSlot(dim.getResult());
    instr.source = loader.tensorSlot(dim.getSource());
    instr.index = loader.scalarSlot(dim.getIndex());
    return success();
  }

  LogicalResult load(tensor::ExtractSliceOp extract) {
    SliceInstr &instr = addSlice(extract);
    llvm::SmallBitVector dropped = extract.getDroppedDims();
    for (unsigned d = 0; d < dropped.size(); ++d)
      instr.dropped.push_back(dropped.test(d));
    return success();
  }

  LogicalResult load(tensor::InsertSliceOp insert) {
    SliceInstr &instr = addSlice(insert);
    instr.isInsert = true;
    instr.dest = loader.use(insert.getDest(), op);
    return success();
  }

  LogicalResult load(tensor::CollapseShapeOp collapse) {
    ReshapeInstr &instr = addReshape(collapse.getSrc());
    instr.isCollapse = true;
    for (const ReassociationIndices &group : collapse.getReassociationIndices())
      instr.groups.emplace_back(group.begin(), group.end());
    return success();
  }

  LogicalResult load(tensor::ExpandShapeOp expand) {
    ReshapeInstr &instr = addReshape(expand.getSrc());
    for (OpFoldResult size : expand.getMixedOutputShape())
      instr.sizes.push_back(loader.sizeOf(size));
    return success();
  }

  LogicalResult load(tensor::ReshapeOp reshape) {
    auto type = dyn_cast<RankedTensorType>(reshape.getResult().getType());
    if (!type || !isa<RankedTensorType>(reshape.getSource().getType()))
      return op->emitError("reshape of unranked tensors is not supported");
    if (type.hasStaticShape()) {
      addReshape(reshape.getSource()).sizes = sizesOf(type, {});
      return success();
    }
    std::vector<SizeSource> sizes = loader.loadShape(reshape.getShape(), op);
    ReshapeInstr &instr = addReshape(reshape.getSource());
    instr.sizes = std::move(sizes);
    instr.staticSizes = staticSizesOf(type);
    return success();
  }

  LogicalResult load(tensor::CastOp castOp) {
    auto type = dyn_cast<RankedTensorType>(castOp.getType());
    if (!type || !isa<RankedTensorType>(castOp.getSource().getType()))
      return op->emitError("cast of unranked tensors is not supported");
    ReshapeInstr &instr = addReshape(castOp.getSource());
    instr.keepShape = true;
    instr.staticSizes = staticSizesOf(type);
    return success();
  }

  LogicalResult load(tensor::GenerateOp generate) {
    return loader.loadGenerate(
        op, sizesOf(generate.getType(), generate.getDynamicExtents()), -1,
        loader.tensorSlot(generate));
  }

  LogicalResult load(tensor::PadOp) { return loader.loadPad(op); }

private:
  std::vector<SizeSource> sizesOf(ShapedType type, ValueRange dynamic) {
    std::vector<SizeSource> sizes;
    auto next = dynamic.begin();
    for (int64_t size : type.getShape()) {
      SizeSource source;
      if (ShapedType::isDynamic(size))
        source.slot = loader.scalarSlot(*next++);
      else
        source.constant = size;
      sizes.push_back(source);
    }
    return sizes;
  }

  template <typename SliceOp>
  SliceInstr &addSlice(SliceOp slice) {
    auto &instr = loader.add<SliceInstr>(op);
    for (OpFoldResult v : slice.getMixedOffsets())
      instr.offsets.push_back(loader.sizeOf(v));
    for (OpFoldResult v : slice.getMixedSizes())
      instr.sizes.push_back(loader.sizeOf(v));
    for (OpFoldResult v : slice.getMixedStrides())
      instr.strides.push_back(loader.sizeOf(v));
    instr.dst = loader.tensorSlot(op->getResult(0));
    instr.elem = *elemOf(op->getResult(0).getType());
    instr.source = loader.use(slice.getSource(), op);
    return instr;
  }

  ReshapeInstr &addReshape(Value source) {
    auto &instr = loader.add<ReshapeInstr>(op);
    instr.dst = loader.tensorSlot(op->getResult(0));
    instr.source = loader.use(source, op);
    instr.elem = *elemOf(op->getResult(0).getType());
    return instr;
  }

  FunctionLoader &loader;
  Operation *op;
};

LogicalResult FunctionLoader::loadTensorOp(Operation *op) {
  TensorOpLoader opLoader(*this, op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tensor::EmptyOp, tensor::SplatOp, tensor::FromElementsOp,
            tensor::ExtractOp, tensor::InsertOp, tensor::DimOp,
            tensor::ExtractSliceOp, tensor::InsertSliceOp,
            tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ReshapeOp,
            tensor::CastOp, tensor::GenerateOp, tensor::PadOp>(
          [&](auto known) { return opLoader.load(known); })
      .Default([](Operation *unknown) {
        return unknown->emitError("operation '")
               << unknown->getName() << "' is not supported by the runtime";
      });
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
    instr.staticSizes = staticSizesOf(pad.getType());
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
