// SPDX-License-Identifier: Apache-2.0
//===- Loader.h - KTIR module to program ------------------------*- C++ -*-===//

#ifndef SPYRE_RUNTIME_LOADER_LOADER_H
#define SPYRE_RUNTIME_LOADER_LOADER_H

#include "Spyre/Runtime/Loader/LoadOptions.h"
#include "Spyre/Runtime/Program/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace spyre::runtime {

/// Decodes a verified module into a program. On failure emits located
/// diagnostics and returns null. The program keeps no reference to the
/// module or its context.
std::shared_ptr<Program> loadProgram(mlir::ModuleOp module,
                                     const LoadOptions &options = {});

/// Loads with this entry function instead of options.entry, unless it is empty.
std::shared_ptr<Program> loadProgram(mlir::ModuleOp module,
                                     llvm::StringRef entry,
                                     LoadOptions options = {});

/// Registers the dialects a KTIR program may use.
void registerProgramDialects(mlir::DialectRegistry &registry);

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LOADER_LOADER_H
