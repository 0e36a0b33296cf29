// SPDX-License-Identifier: Apache-2.0
//===- CheckManifest.h - Whether a manifest fits its bundles ----*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_READER_CHECKMANIFEST_H
#define SPYRE_LIB_TARGET_SUPERDSC_READER_CHECKMANIFEST_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

namespace spyre::superdsc {

/// Whether the program's manifest describes the bundles that are there
/// (SDSC-MANIFEST-C2, SDSC-BUNDLE-C6). A file that breaks other rules may have
/// tensors whose places nothing says: they are left out.
void checkManifest(const BundleProgram &program, Report &report);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_READER_CHECKMANIFEST_H
