// SPDX-License-Identifier: Apache-2.0
//===- Bundle.h - SuperDSC bundles as programs ------------------*- C++ -*-===//
//
// No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_COMPILER_BUNDLE_H
#define SPYRE_COMPILER_BUNDLE_H

#include <string>
#include <utility>
#include <vector>

namespace spyre {

struct BundleOptions {
  /// Repair parameters that bundle.mlir declares twice.
  bool lenient = false;
  /// Segment 0 is a pool, where no manifest says so.
  bool hasPool = false;
};

/// Validates the SuperDSC bundles in a folder, raises them to planned
/// spyre_graph and lowers that to KTIR. Returns the module as bytecode, which
/// runtime::loadProgramBytes takes. Throws Error; its text holds every broken
/// rule or located diagnostic.
std::string lowerBundles(const std::string &folder,
                         const BundleOptions &options = {});

/// Names and contents of the files that the bundles in a folder become when
/// they are raised to planned spyre_graph and written again, as built and with
/// addresses of arguments baked in. Throws Error as lowerBundles does.
std::vector<std::pair<std::string, std::string>>
rewriteBundles(const std::string &folder);

} // namespace spyre

#endif // SPYRE_COMPILER_BUNDLE_H
