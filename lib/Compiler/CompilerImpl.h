// SPDX-License-Identifier: Apache-2.0
//===- CompilerImpl.h - Helpers of the façade -------------------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_COMPILERIMPL_H
#define SPYRE_LIB_COMPILER_COMPILERIMPL_H

#include "Spyre/Compiler/Compiler.h"

#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace spyre {

/// Bytes that differ between compilers that may compile differently: version
/// and the build id of the binary that holds the compiler.
std::string getCompilerIdentity();

/// Fills argumentNames, outputs and poolBytes from the program's arguments.
void describeArguments(CompiledGraph &graph, size_t numInputs);

/// Writes a module with locations to folder/name; sets `error` on failure.
void dumpModule(const std::string &folder, const std::string &name,
                mlir::Operation *module, std::string &error);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_COMPILERIMPL_H
