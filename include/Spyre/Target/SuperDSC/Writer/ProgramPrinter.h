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

/// Writes them below a folder. Throws Error.
void writeProgram(const BundleProgram &program, const std::string &folder);

/// All of them.
std::vector<std::pair<std::string, std::string>>
printProgram(const BundleProgram &program);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_PROGRAMPRINTER_H
