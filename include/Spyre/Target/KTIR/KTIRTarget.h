//===- KTIRTarget.h - Planning for KTIR -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_TARGET_KTIR_KTIRTARGET_H
#define SPYRE_TARGET_KTIR_KTIRTARGET_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::spyre_graph {

/// Registers `#spyre_graph.target<ktir>`, which can express every plan.
void registerKTIRTarget(DialectRegistry &registry);

} // namespace mlir::spyre_graph

#endif // SPYRE_TARGET_KTIR_KTIRTARGET_H
