// SPDX-License-Identifier: Apache-2.0
//===- BundleProgram.h - Everything in a folder of bundles ------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_BUNDLEPROGRAM_H
#define SPYRE_TARGET_SUPERDSC_MODEL_BUNDLEPROGRAM_H

#include "Spyre/Target/SuperDSC/Model/Manifest.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spyre::superdsc {

inline constexpr const char *kBundleFile = "bundle.mlir";
/// Attribute of its function that holds Bundle::segments.
inline constexpr const char *kSegmentsAttribute = "sdscbundle.segments";

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

/// The prefix that reports and programs put before names of a bundle's files.
inline std::string getPrefix(const std::string &folder) {
  return folder == "." ? "" : folder + "/";
}

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_BUNDLEPROGRAM_H
