// SPDX-License-Identifier: Apache-2.0
//===- Translate.h - Planned spyre_graph and SuperDSC -----------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_TRANSLATE_H
#define SPYRE_TARGET_SUPERDSC_TRANSLATE_H

#include "Spyre/Target/SuperDSC/SuperDSC.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spyre::superdsc {

struct WriteOptions {
  Flavor flavor = Flavor::AsBuilt;
  /// Addresses of arguments are symbols that the bundle binds.
  bool symbolicArguments = false;
  /// Write each iteration of a loop instead of the loop.
  bool unrollLoops = false;
};

/// The bundles of a planned function. What SuperDSC cannot say is an error at
/// the operation.
mlir::FailureOr<BundleProgram> writeGraph(mlir::ModuleOp module,
                                          const WriteOptions &options);

struct RaiseOptions {
  /// Segment 0 is a pool. Only without a manifest, which says so.
  bool hasPool = false;
};

/// A planned function that does what valid bundles say: `main`, with the
/// manifest's arguments, or else one per segment. Errors are at locations that
/// name the file.
mlir::OwningOpRef<mlir::ModuleOp> raiseProgram(const BundleProgram &program,
                                               const RaiseOptions &options,
                                               mlir::MLIRContext *context);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_TRANSLATE_H
