//===- RowIndices.h - Indices of rows from those of blocks ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// An index of a block of rows is the indices of its rows: a multiple, and the
// number of the row in the block. This is how passes compute them without
// knowing an operation.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_ROWINDICES_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_ROWINDICES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// At a point of loops, step x the index that `map` gives there + offset + the
/// sum of strides x loops.
struct RowIndices {
  AffineMap map;                         ///< loops to the tensor of indices
  SmallVector<int64_t> extents, strides; ///< per loop
  int64_t step = 1, offset = 0;
  /// Indices are from 0 on, and fewer than this.
  int64_t numIndices = 0;

  bool operator==(const RowIndices &other) const;

  /// The tensor of the loops' extents. Indices that are out of range count as
  /// the nearest one that is: no product of theirs is in range by overflow.
  Value create(OpBuilder &builder, Location loc, Value indices) const;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_ROWINDICES_H
