// SPDX-License-Identifier: Apache-2.0
//===- WriteGraph.h - SuperDSC of a planned function ------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_WRITER_WRITEGRAPH_H
#define SPYRE_TARGET_SUPERDSC_WRITER_WRITEGRAPH_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"

#include "mlir/IR/BuiltinOps.h"

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

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_WRITEGRAPH_H
