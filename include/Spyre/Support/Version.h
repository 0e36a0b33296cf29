// SPDX-License-Identifier: Apache-2.0
//===- Version.h - What --version of the tools prints -----------*- C++ -*-===//

#ifndef SPYRE_SUPPORT_VERSION_H
#define SPYRE_SUPPORT_VERSION_H

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace spyre {

/// The version of this project, as of pyproject.toml.
const char *version();

/// Lets --version print the version of this project, too. To be called before
/// the options are parsed.
inline void setVersionPrinter() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "torch-spyre " << version() << "\n  with LLVM and MLIR "
       << LLVM_VERSION_STRING << "\n";
  });
}

} // namespace spyre

#endif // SPYRE_SUPPORT_VERSION_H
