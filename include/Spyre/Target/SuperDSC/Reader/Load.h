// SPDX-License-Identifier: Apache-2.0
//===- Load.h - Reading and validating a folder -----------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_READER_LOAD_H
#define SPYRE_TARGET_SUPERDSC_READER_LOAD_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

struct LoadOptions {
  /// Repair a parameter that bundle.mlir declares twice.
  bool lenient = false;
};

/// Reads and validates a folder, by every rule. Nothing if it cannot be read
/// at all; otherwise the program is right exactly if `report` is empty.
std::optional<BundleProgram> loadProgram(const std::string &path,
                                         Report &report,
                                         const LoadOptions &options = {});

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_READER_LOAD_H
