// SPDX-License-Identifier: Apache-2.0
//===- Bundle.h - SuperDSC bundles as programs ------------------*- C++ -*-===//
//
// No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_COMPILER_BUNDLE_H
#define SPYRE_COMPILER_BUNDLE_H

#include <string>

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

} // namespace spyre

#endif // SPYRE_COMPILER_BUNDLE_H
