// SPDX-License-Identifier: Apache-2.0
//===- BundleParser.h - Parsing bundle.mlir ---------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_READER_BUNDLEPARSER_H
#define SPYRE_TARGET_SUPERDSC_READER_BUNDLEPARSER_H

#include "Spyre/Target/SuperDSC/Model/Model.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

/// Parses and checks a bundle.mlir (rule SDSC-BUNDLE-C1). `lenient` drops a
/// parameter that is declared twice, as the reference's loop bundles have it.
/// Nothing after a violation.
std::optional<Bundle> parseBundle(const std::string &text,
                                  const std::string &file, Report &report,
                                  bool lenient = false);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_READER_BUNDLEPARSER_H
