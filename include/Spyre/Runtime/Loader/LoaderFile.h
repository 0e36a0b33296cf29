// SPDX-License-Identifier: Apache-2.0
//===- LoaderFile.h - Loading KTIR programs without MLIR types --*- C++ -*-===//

#ifndef SPYRE_RUNTIME_LOADER_LOADERFILE_H
#define SPYRE_RUNTIME_LOADER_LOADERFILE_H

#include "Spyre/Runtime/Loader/LoadOptions.h"
#include "Spyre/Runtime/Program/Program.h"

#include <memory>
#include <string>

namespace spyre::runtime {

/// Loads textual or bytecode KTIR. Both throw Error; its text holds every
/// located diagnostic. Nothing runs before the whole module was understood.
std::shared_ptr<Program> loadProgramFile(const std::string &path,
                                         const LoadOptions &options = {});
std::shared_ptr<Program> loadProgramBytes(const std::string &bytes,
                                          const LoadOptions &options = {},
                                          const std::string &name = "<memory>");

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LOADER_LOADERFILE_H
