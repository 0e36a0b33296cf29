//===- Passes.h - Passes for SuperDSC ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_H
#define SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace spyre::superdsc {

#define GEN_PASS_DECL
#include "Spyre/Target/SuperDSC/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Spyre/Target/SuperDSC/Transforms/Passes.h.inc"

/// Registers `#spyre_graph.target<superdsc>`.
void registerSuperDSCTarget(mlir::DialectRegistry &registry);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_H
