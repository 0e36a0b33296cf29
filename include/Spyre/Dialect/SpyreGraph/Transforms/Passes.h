//===- Passes.h - Passes on the spyre_graph dialect -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_H

#include "Spyre/Device/DeviceSpec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::spyre_graph {

#define GEN_PASS_DECL
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_PASSES_H
