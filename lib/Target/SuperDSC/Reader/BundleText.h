// SPDX-License-Identifier: Apache-2.0
//===- BundleText.h - bundle.mlir before MLIR sees it -----------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_READER_BUNDLETEXT_H
#define SPYRE_LIB_TARGET_SUPERDSC_READER_BUNDLETEXT_H

#include "Spyre/Target/SuperDSC/Model/Report.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace spyre::superdsc {

/// Whether MLIR's parser can be given the text; else there is a violation.
bool checkText(llvm::StringRef text, const std::string &file, Report &report);

/// The names of a block's arguments, without %, which MLIR forgets: it keeps
/// where in the text they stand. Empty if an argument says it is elsewhere.
llvm::SmallVector<llvm::StringRef> getArgumentNames(mlir::Block &block,
                                                    llvm::StringRef text);

/// The text without parameters, and extractions of their values, that occur a
/// second time. Blanks stand for them, so that the rest stays where it is.
std::string dropRepeatedParameters(const std::string &text);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_READER_BUNDLETEXT_H
