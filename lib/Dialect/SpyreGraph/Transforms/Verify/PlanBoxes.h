//===- PlanBoxes.h - What each core touches of a buffer ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Part of --spyre-verify-plan; uses nothing of the planners on purpose.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANBOXES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANBOXES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include <map>

namespace mlir::spyre_graph {

/// Half-open intervals, one per dimension.
struct Box {
  SmallVector<std::pair<int64_t, int64_t>, 4> dims;

  bool isEmpty() const {
    return llvm::any_of(dims, [](auto dim) { return dim.first >= dim.second; });
  }
  bool operator==(const Box &other) const {
    return dims == other.dims || (isEmpty() && other.isEmpty());
  }
};

/// Adds to `rest` the parts of `box` that `hole` does not cover.
void subtract(Box box, const Box &hole, SmallVectorImpl<Box> &rest);

/// Whether all cores that access something access the same of a dimension.
/// `boxes` has one entry per core.
bool isSameOnAllCores(ArrayRef<Box> boxes, unsigned dim);

/// Whether what a core accesses is the slice that it accessed before. Of a
/// dimension that is the same for all cores, all have all, and may access
/// another part.
bool isHeld(ArrayRef<Box> held, ArrayRef<Box> boxes, int64_t core);

/// The boxes of a buffer that cores access, found point by point where a map is
/// not made of loop dimensions.
class PlanBoxes {
public:
  /// The slice of core `core`, or false if it is no box.
  bool getBox(AffineMap map, ArrayRef<int64_t> extents,
              WorkDivisionAttr division, int64_t core, Box &box);

private:
  using Range = std::pair<int64_t, int64_t>;

  /// The values of expressions over the loops that they use, point by point:
  /// their ranges, if they take every combination of values in these.
  std::optional<SmallVector<Range>> getImage(ArrayRef<AffineExpr> exprs,
                                             ArrayRef<Range> loops);

  /// Results of getImage(), by expressions and ranges of loops.
  std::map<std::pair<std::vector<const void *>, std::vector<int64_t>>,
           std::optional<SmallVector<Range>>>
      images;
};

/// The parts of rows of a buffer that operations have written. Rows follow each
/// other along one dimension: a row covers first + row x period + [0, width).
class RowParts {
public:
  /// Takes in what one operation writes within `accessed`. Returns the box that
  /// is written now, if it is one.
  std::optional<Box> add(AffineMap map, ArrayRef<int64_t> extents,
                         const Box &accessed, bool mayBePart);

private:
  /// The box of the rows, the dimension, and their period -> what of a row is
  /// still missing.
  std::map<std::vector<int64_t>, SmallVector<Box>> missing;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_PLANBOXES_H
