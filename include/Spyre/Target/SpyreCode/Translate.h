// SPDX-License-Identifier: Apache-2.0
//===- Translate.h - Planned spyre_graph to SpyreCode -----------*- C++ -*-===//

#ifndef SPYRE_TARGET_SPYRECODE_TRANSLATE_H
#define SPYRE_TARGET_SPYRECODE_TRANSLATE_H

#include "Spyre/Target/SpyreCode/SpyreCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace spyre::spyrecode {

/// Along which dimensions of its arguments a planned function works tile by
/// tile: a group are the dimensions that parallel loops, and nothing else,
/// walk together from end to end.
runtime::TileGroups findTileGroups(mlir::func::FuncOp planned);

/// File names and contents for a planned module, which is lowered in place, or
/// for a KTIR module, whose dimensions are in no tile group. Failure after a
/// diagnostic.
mlir::FailureOr<std::vector<std::pair<std::string, std::string>>>
writeModule(mlir::ModuleOp module, const WriteOptions &options);

} // namespace spyre::spyrecode

#endif // SPYRE_TARGET_SPYRECODE_TRANSLATE_H
