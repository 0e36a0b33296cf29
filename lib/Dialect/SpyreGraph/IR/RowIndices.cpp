//===- RowIndices.cpp - Indices of rows from those of blocks ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/RowIndices.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <tuple>

using namespace mlir;
using namespace mlir::spyre_graph;

bool RowIndices::operator==(const RowIndices &other) const {
  return std::tie(map, extents, strides, step, offset, numIndices) ==
         std::tie(other.map, other.extents, other.strides, other.step,
                  other.offset, other.numIndices);
}

Value RowIndices::create(OpBuilder &builder, Location loc,
                         Value indices) const {
  auto type = cast<RankedTensorType>(indices.getType());
  Attribute next = builder.getUnitAttr(); // stands for an input
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto createEmpty = [&](ArrayRef<int64_t> shape) -> Value {
    return tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  };
  AffineMap identity = builder.getMultiDimIdentityMap(extents.size());
  auto createOnLoops = [&](StringRef name, ValueRange ins,
                           ArrayRef<Attribute> immediates,
                           ArrayRef<AffineMap> inMaps) {
    SmallVector<AffineMap> maps(inMaps);
    maps.push_back(identity);
    return createElementwise(builder, loc, name, ins, createEmpty(extents),
                             immediates, maps);
  };
  // start + stride x the number of the iteration.
  auto createSteps = [&](int64_t count, int64_t start, int64_t stride) {
    auto op = IotaOp::create(builder, loc, ValueRange(), createEmpty(count),
                             builder.getMultiDimIdentityMap(1), count);
    op.setDim(0);
    op.setStartAttr(number(start));
    op.setStepAttr(number(stride));
    return op.getResult();
  };

  Value inRange = createElementwise(builder, loc, ClampOp::getOperationName(),
                                    indices, createEmpty(type.getShape()),
                                    {next, number(-1), number(numIndices)});
  Value result;
  for (auto [loop, stride] : llvm::enumerate(strides)) {
    if (stride == 0)
      continue;
    Value steps = createSteps(extents[loop], result ? 0 : offset, stride);
    AffineMap ofSteps =
        AffineMap::get(extents.size(), 0, builder.getAffineDimExpr(loop));
    result = result ? createOnLoops(AddOp::getOperationName(), {result, steps},
                                    {}, {identity, ofSteps})
                    : createOnLoops(FmaOp::getOperationName(), {inRange, steps},
                                    {next, number(step), next}, {map, ofSteps});
  }
  if (result)
    return result;
  return createOnLoops(FmaOp::getOperationName(), inRange,
                       {next, number(step), number(offset)}, map);
}
