// SPDX-License-Identifier: Apache-2.0
//===- Indices.h - Index tensors of gathers and scatters --------*- C++ -*-===//

#ifndef SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_INDICES_H
#define SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_INDICES_H

#include "ATenCall.h"

namespace mlir::spyre_graph::aten {

inline NamedAttribute axisAttr(const ATenCall &c, int64_t axis) {
  return c.attr("axis", c.immInt(axis));
}

/// Refuses an index that is no integer.
Value checkIndex(const ATenCall &c, Value index);

/// A scalar as a tensor of one element; anything else as it is.
Value asLine(const ATenCall &c, Value value);
/// The reverse, where the result has no dimension.
Value asResult(const ATenCall &c, Value value);

/// `source` with dimension `order[i]` as dimension i, as a view.
Value permute(const ATenCall &c, Value source, ArrayRef<int64_t> order);

/// What a list `indices` of tensors, as of aten.index, selects of a tensor: the
/// dimensions that it indexes, taken as one, through one index.
class IndexedDims {
public:
  /// Takes the arguments `self` and `indices`.
  explicit IndexedDims(ATenCall &c);

  /// Not negative where it counted from the end, of any rank.
  Value index;
  /// The dimension that the indices select from, of merge().
  int64_t axis = 0;

  /// `self` with one dimension in place of those that are indexed. They come
  /// first if they do not follow each other.
  Value merge(ATenCall &c) const;
  /// The reverse for a tensor of that shape.
  Value split(ATenCall &c, Value merged) const;

private:
  Value self;
  /// Dimensions of `self` in the order in which the indexed ones follow each
  /// other from `axis` on.
  SmallVector<int64_t> order;
  SmallVector<int64_t> sizes; ///< of the indexed dimensions
};

} // namespace mlir::spyre_graph::aten

#endif // SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_INDICES_H
