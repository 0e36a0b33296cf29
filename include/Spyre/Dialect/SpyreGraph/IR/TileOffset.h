//===- TileOffset.h - Where a tile starts -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_TILEOFFSET_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_TILEOFFSET_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::spyre_graph {

/// The coordinate, in elements, at which a tile starts along one dimension: a
/// number, or `factor` times `index`, which is the induction variable of `loop`
/// or, where the last tile `endsWithLoop`, a `spyre_graph.tile_start` of it.
struct TileOffset {
  int64_t number = 0;
  scf::ForOp loop;
  int64_t factor = 1;
  Value index;
  bool endsWithLoop = false;

  struct Range {
    int64_t first, last, step;
  };
  /// Its values over all iterations at the largest sizes, `last` included;
  /// `last` is before `first` if there are none. `step` is 0 for a number, and
  /// may be more than what is between the last two values. Nothing if the loop
  /// has no constant bounds, or values leave 64 bits.
  std::optional<Range> getRange() const;

  /// Whether it is a multiple of a positive number in every iteration, at all
  /// sizes.
  bool isMultipleOf(int64_t divisor) const;
};

/// Nothing for other offsets than these.
std::optional<TileOffset> getTileOffset(OpFoldResult offset);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_TILEOFFSET_H
