//===- TileHints.h - Tiles that users ask for -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H

#include "Spyre/Target/Interface/Target.h"
#include "TilingCosts.h"

namespace mlir::spyre_graph {

/// What hints made of one block.
struct HintedTilings {
  std::vector<std::pair<OpGroup, Tiling>> tilings;
  /// Operations that stay out of all loops.
  llvm::SmallPtrSet<Operation *, 16> whole;
  /// Larger than the scopes of all hints.
  int64_t nextScope = 0;
};

/// Takes the hints from the operations of a block and builds the loops that
/// they ask for with `build`, one after the other. An error, at the operation,
/// for those that cannot be obeyed, saying what would fit.
FailureOr<HintedTilings>
obeyTileHints(Block &block, const Target &target,
              function_ref<void(const OpGroup &, const Tiling &)> build);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H
