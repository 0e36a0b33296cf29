//===- TileLoops.h - Groups of operations under tile loops ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELOOPS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELOOPS_H

#include "TileLevels.h"

namespace mlir::spyre_graph {

/// Runs the group, whose operations are in program order in one block, once per
/// tile, the first level outermost. Only the last may reduce its dimension. A
/// last tile that is smaller than the others is computed after the loop over
/// them. Operations between them that do not belong to the group are moved
/// before or after the loops.
void buildTileLoops(const OpGroup &group, ArrayRef<TileLevel> levels);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_TILELOOPS_H
