// SPDX-License-Identifier: Apache-2.0
//===- SuperDSC.h - Folders of bundles --------------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_SUPERDSC_H
#define SPYRE_TARGET_SUPERDSC_SUPERDSC_H

#include "Spyre/Target/SuperDSC/Manifest.h"
#include "Spyre/Target/SuperDSC/Model.h"
#include "Spyre/Target/SuperDSC/Report.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spyre::superdsc {

/// One folder's bundle.mlir with the files that it executes.
struct LoadedBundle {
  /// Relative to the program's folder; "." for itself.
  std::string folder;
  Bundle bundle;
  std::map<std::string, Sdsc> files;
};

/// Everything in a folder: one bundle, or several in bundle_<k>.
struct BundleProgram {
  std::vector<LoadedBundle> bundles;
  std::optional<Manifest> manifest;
};

struct LoadOptions {
  /// Repair a parameter that bundle.mlir declares twice.
  bool lenient = false;
};

/// Reads and validates a folder, by every rule. Nothing if it cannot be read
/// at all; otherwise the program is right exactly if `report` is empty.
std::optional<BundleProgram> loadProgram(const std::string &path,
                                         Report &report,
                                         const LoadOptions &options = {});

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

/// A JSON schema (draft 2020-12) of sdsc_<i>.json in both flavours.
Json makeSchema();

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_SUPERDSC_H
