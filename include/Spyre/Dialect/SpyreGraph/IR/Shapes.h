//===- Shapes.h - Shapes of tensors and buffers -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SHAPES_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_SHAPES_H

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "mlir/IR/Value.h"

namespace mlir::spyre_graph {

/// The type of a tensor or buffer.
inline ShapedType shapedType(Value value) {
  return cast<ShapedType>(value.getType());
}
/// Its shape.
inline ArrayRef<int64_t> shapeOf(Value value) {
  return shapedType(value).getShape();
}

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SHAPES_H
