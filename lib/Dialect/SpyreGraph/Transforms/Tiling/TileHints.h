//===- TileHints.h - Tiles that users ask for -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H

#include "Spyre/Target/Interface/Target.h"
#include "TilingCosts.h"

namespace mlir::spyre_graph {

/// The tilings that the hints of one block ask for.
struct HintedTilings {
  std::vector<std::pair<OpGroup, Tiling>> tilings;
  /// Operations that hints keep outside of all loops.
  llvm::SmallPtrSet<Operation *, 16> whole;
  /// A scope number that is larger than those of all hints.
  int64_t nextScope = 0;
};

/// Takes the hints from the operations of a block and builds the loops that
/// they ask for with `build`, one after the other. A hint that cannot be obeyed
/// is an error at the operation, which says what would be possible.
FailureOr<HintedTilings>
obeyTileHints(Block &block, const Target &target,
              function_ref<void(const OpGroup &, const Tiling &)> build);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILEHINTS_H
