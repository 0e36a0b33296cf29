//===- DivisionHints.h - Tiles that divide as hints ask ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A hint about slices is for the loops of the whole operation. Tiles that no
// hint asks for must have as many slices of each loop.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_DIVISIONHINTS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_DIVISIONHINTS_H

#include "Spyre/Target/Interface/Target.h"
#include "TileLevels.h"

namespace mlir::spyre_graph {

class DivisionHints {
public:
  explicit DivisionHints(const Target &target) : target(target) {}

  static bool areGiven(const OpGroup &group);

  /// Slices of a tile.
  enum class Slices {
    /// Of the same size, where those of the whole operation are.
    AsEqual,
    /// As the target allows them.
    Allowed,
  };
  /// Whether every tile of these levels can be cut into as many slices as hints
  /// ask for of its operation. Hints that the whole operation cannot follow are
  /// an error of --spyre-work-division, whose tiles do not matter.
  bool fit(const OpGroup &group, ArrayRef<TileLevel> levels,
           Slices slices = Slices::AsEqual) const;

private:
  bool fit(SpyreOpInterface op, ArrayRef<int64_t> extents, Slices slices) const;

  const Target &target;
  /// Granularity of slices per loop, of operations with hints.
  mutable DenseMap<Operation *, SmallVector<int64_t>> granularities;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_TILING_DIVISIONHINTS_H
