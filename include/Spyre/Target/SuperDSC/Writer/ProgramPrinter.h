// SPDX-License-Identifier: Apache-2.0
//===- ProgramPrinter.h - The files of a program ----------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_WRITER_PROGRAMPRINTER_H
#define SPYRE_TARGET_SUPERDSC_WRITER_PROGRAMPRINTER_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spyre::superdsc {

/// Takes the files of a program one by one: names, relative to the folder, and
/// contents. There are thousands, and no two need to be there at once.
void printProgram(const BundleProgram &program,
                  const std::function<void(const std::string &name,
                                           std::string content)> &take);

/// Writes them below a folder, in place of those of another program: removes
/// manifest.json, bundle.mlir, sdsc_*.json and what folders bundle_<k> have of
/// them, and nothing else. Throws Error, before it removes anything if the
/// folder has other files sdsc*.json, which readers would take for the
/// program's.
void writeProgram(const BundleProgram &program, const std::string &folder);

/// All of them.
std::vector<std::pair<std::string, std::string>>
printProgram(const BundleProgram &program);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_PROGRAMPRINTER_H
