// SPDX-License-Identifier: Apache-2.0
//===- BundleLowering.h - Planned modules through SuperDSC ------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_BUNDLELOWERING_H
#define SPYRE_LIB_COMPILER_BUNDLELOWERING_H

#include "Spyre/Compiler/Bundle.h"
#include "Spyre/Target/SuperDSC/Writer/WriteGraph.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spyre {

/// The KTIR module of the bundles in a folder. Throws Error for broken rules;
/// null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> lowerBundles(const std::string &folder,
                                               const BundleOptions &options,
                                               mlir::MLIRContext *context);

/// Writes the bundles of a planned module into `folder`, or for an empty name
/// into a folder that is deleted again, and returns what reading them gives:
/// the KTIR module. Throws Error for broken rules; null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp>
lowerThroughBundles(mlir::ModuleOp planned, const std::string &folder,
                    const superdsc::WriteOptions &options);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_BUNDLELOWERING_H
