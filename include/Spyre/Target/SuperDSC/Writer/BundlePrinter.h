// SPDX-License-Identifier: Apache-2.0
//===- BundlePrinter.h - Writing bundle.mlir --------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_WRITER_BUNDLEPRINTER_H
#define SPYRE_TARGET_SUPERDSC_WRITER_BUNDLEPRINTER_H

#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <string>

namespace spyre::superdsc {

/// The text of bundle.mlir as the reference prints it.
std::string printBundle(const Bundle &bundle);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_BUNDLEPRINTER_H
