//===- Targets.h - Every target of the project ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_TARGET_TARGETS_H
#define SPYRE_TARGET_TARGETS_H

#include "mlir/IR/DialectRegistry.h"

namespace spyre {

/// Registers ktir and superdsc.
void registerTargets(mlir::DialectRegistry &registry);

} // namespace spyre

#endif // SPYRE_TARGET_TARGETS_H
