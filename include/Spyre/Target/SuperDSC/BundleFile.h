// SPDX-License-Identifier: Apache-2.0
//===- BundleFile.h - bundle.mlir and the model -----------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_BUNDLEFILE_H
#define SPYRE_TARGET_SUPERDSC_BUNDLEFILE_H

#include "Spyre/Target/SuperDSC/Model.h"
#include "Spyre/Target/SuperDSC/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

inline constexpr const char *kBundleFile = "bundle.mlir";
/// Attribute of its function that holds Bundle::segments.
inline constexpr const char *kSegmentsAttribute = "sdscbundle.segments";

/// The text of bundle.mlir as the reference prints it.
std::string printBundle(const Bundle &bundle);

/// Parses and checks a bundle.mlir (rule SDSC-BUNDLE-C1). `lenient` drops a
/// parameter that is declared twice, as the reference's loop bundles have it.
/// Nothing after a violation.
std::optional<Bundle> parseBundle(const std::string &text,
                                  const std::string &file, Report &report,
                                  bool lenient = false);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_BUNDLEFILE_H
