// SPDX-License-Identifier: Apache-2.0
//===- Passes.h - Passes on the ktdp dialect --------------------*- C++ -*-===//

#ifndef SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_H
#define SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ktdp {

#define GEN_PASS_DECL
#include "Spyre/Dialect/KTIR/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Spyre/Dialect/KTIR/Transforms/Passes.h.inc"

} // namespace mlir::ktdp

#endif // SPYRE_DIALECT_KTIR_TRANSFORMS_PASSES_H
