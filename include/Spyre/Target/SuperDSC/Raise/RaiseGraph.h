// SPDX-License-Identifier: Apache-2.0
//===- RaiseGraph.h - A planned function of SuperDSC ------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_RAISE_RAISEGRAPH_H
#define SPYRE_TARGET_SUPERDSC_RAISE_RAISEGRAPH_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spyre::superdsc {

/// A planned function that does what valid bundles say: `main`, with the
/// manifest's arguments, or else one per segment. Errors are at locations that
/// name the file.
mlir::OwningOpRef<mlir::ModuleOp> raiseProgram(const BundleProgram &program,
                                               const RaiseOptions &options,
                                               mlir::MLIRContext *context);

/// Adds to `report` why a valid program cannot be raised: that its manifest
/// does not describe what the bundles access (SDSC-MANIFEST-C3).
void checkRaises(const BundleProgram &program, const RaiseOptions &options,
                 Report &report);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_RAISE_RAISEGRAPH_H
