//===- Spans.h - Tiles that a core can address ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Where slices for all cores span more of a tensor in device memory than a core
// can address, an operation runs tile by tile.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_SPANS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_SPANS_H

#include "../Division/OperandSpans.h"
#include "TilingCosts.h"

namespace mlir::spyre_graph {

/// More parts of an operation than this are no plan.
constexpr int64_t kMaxSpanParts = 256;

/// Whether every operation of a group, tiled like this, can be divided so that
/// each core addresses what it needs.
bool keepsSpansSmall(const OpGroup &group, ArrayRef<TileLevel> levels,
                     int64_t cores, const Target &target,
                     const ::spyre::DeviceSpec &spec);

/// The fewest tiles of one operation with which each core can address what it
/// needs; nothing if it can without, or with no number of tiles.
std::optional<Tiling> cutForSpans(SpyreOpInterface op, int64_t cores,
                                  const Target &target,
                                  const ::spyre::DeviceSpec &spec);

/// The number of those tiles: 1 if the operation needs none, 0 if no number is
/// enough.
int64_t countTilesForSpans(SpyreOpInterface op, int64_t cores,
                           const Target &target,
                           const ::spyre::DeviceSpec &spec);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_SPANS_H
