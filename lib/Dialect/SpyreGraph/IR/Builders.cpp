//===- Builders.cpp - Operations that several passes make -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::spyre_graph;

Operation *spyre_graph::createDeviceOp(OpBuilder &builder, Location loc,
                                       StringRef name, ValueRange inputs,
                                       Value init,
                                       ArrayRef<NamedAttribute> attributes) {
  SmallVector<Value> operands = llvm::to_vector(inputs);
  operands.push_back(init);
  SmallVector<Type> types;
  if (isa<TensorType>(init.getType()))
    types.push_back(init.getType());
  return builder.create(loc, builder.getStringAttr(name), operands, types,
                        attributes);
}

SpyreOpInterface spyre_graph::createCopyOp(OpBuilder &builder, Location loc,
                                           StringRef name, Value from, Value to,
                                           AffineMap fromMap, AffineMap toMap,
                                           ArrayRef<int64_t> extents,
                                           AffineMap extentMap) {
  auto op =
      cast<SpyreOpInterface>(createDeviceOp(builder, loc, name, from, to));
  op.setLoopStructure({fromMap, toMap}, extents);
  op.setLoopExtentMap(extentMap);
  return op;
}

SpyreOpInterface spyre_graph::createCopyOp(OpBuilder &builder, Location loc,
                                           Value from, Value to) {
  ArrayRef<int64_t> shape = cast<ShapedType>(to.getType()).getShape();
  AffineMap map = builder.getMultiDimIdentityMap(shape.size());
  unsigned numSymbols =
      getSizeSymbols(builder.getInsertionBlock()->getParentOp()).size();
  return createCopyOp(
      builder, loc, IdentityOp::getOperationName(), from, to, map, map, shape,
      makeSizeMap(getSizes(from), numSymbols, builder.getContext()));
}

LayoutAttr spyre_graph::getStickLayout(Type elementType, int64_t rank,
                                       int64_t stickDim) {
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != stickDim)
      order.push_back(dim);
  if (stickDim >= 0)
    order.push_back(stickDim);
  return LayoutAttr::get(elementType.getContext(), order, elementType,
                         /*sparse=*/stickDim < 0);
}

void spyre_graph::setIndirectDim(SpyreOpInterface op, int64_t dim) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<GatherOp, ScatterOp>([&](auto own) { own.setAxis(dim); })
      .Default([](Operation *) {
        llvm_unreachable("an operation without indirect access");
      });
}
