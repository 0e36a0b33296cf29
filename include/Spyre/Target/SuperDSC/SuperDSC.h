// SPDX-License-Identifier: Apache-2.0
//===- SuperDSC.h - Folders of bundles --------------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_SUPERDSC_H
#define SPYRE_TARGET_SUPERDSC_SUPERDSC_H

#include "Spyre/Target/SuperDSC/Manifest.h"
#include "Spyre/Target/SuperDSC/Model.h"
#include "Spyre/Target/SuperDSC/Report.h"

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

/// File names, relative to the folder, and contents of a program.
std::vector<std::pair<std::string, std::string>>
printProgram(const BundleProgram &program);

/// A JSON schema (draft 2020-12) of sdsc_<i>.json in both flavours.
Json makeSchema();

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_SUPERDSC_H
