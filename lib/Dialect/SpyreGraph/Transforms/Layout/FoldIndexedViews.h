//===- FoldIndexedViews.h - Indices into what views show --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDINDEXEDVIEWS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDINDEXEDVIEWS_H

#include "Spyre/Dialect/SpyreGraph/IR/RowIndices.h"

namespace mlir::spyre_graph {

/// Lets operations that read a view through indices read the view's source:
/// where the view has block i at the rows from i x step on, the index i becomes
/// the indices of these rows.
class IndexedViewFolding {
public:
  /// Needs a source whose layout selects rows, and a view that ends where the
  /// source does, so that wrong indices stay wrong. Otherwise changes nothing
  /// and fails; it also does where there would be more indices than the view
  /// has elements.
  LogicalResult fold(ViewOp view, SpyreOpInterface op);

  /// To be called before the operation that makes `indices` is erased.
  void forget(Value indices);

private:
  /// Indices of rows that an operation has, for others.
  struct Made {
    Value indices;
    RowIndices form;
    Value rows;
  };

  SmallVector<Made> all;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_FOLDINDEXEDVIEWS_H
