//===- Targets.cpp - Every target of the project ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Target/Targets.h"
#include "Spyre/Target/KTIR/KTIRTarget.h"
#include "Spyre/Target/SuperDSC/Transforms/Passes.h"

void spyre::registerTargets(mlir::DialectRegistry &registry) {
  mlir::spyre_graph::registerKTIRTarget(registry);
  superdsc::registerSuperDSCTarget(registry);
}
