// SPDX-License-Identifier: Apache-2.0
//===- ViewMap.h - Strided views as affine maps -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_VIEWMAP_H
#define SPYRE_LIB_COMPILER_VIEWMAP_H

#include "Spyre/Support/SizeExpr.h"

#include "mlir/IR/AffineMap.h"

namespace spyre {

/// Whether `strides` (elements) address distinct elements of a tensor of these
/// sizes without gaps, in any order of the dimensions.
bool isDense(const SizeList &sizes, const SizeList &strides,
             const std::vector<SizeRange> &ranges = {});

/// As above, but with gaps: each stride exceeds the span of the dimensions with
/// smaller strides.
bool isNested(const SizeList &sizes, const SizeList &strides,
              const std::vector<SizeRange> &ranges = {});

/// Coordinates, in a home of `homeSizes` and nested `homeStrides`, of the
/// element at offset + sum(i * strides) of its storage. The view must lie in
/// the home. Sizes may vary in `ranges`; throws UnsupportedOp if one map does
/// not say the coordinates at all of them.
mlir::AffineMap getViewMap(mlir::MLIRContext *context, const SizeList &sizes,
                           const SizeList &strides, const SizeExpr &offset,
                           const SizeList &homeSizes,
                           const SizeList &homeStrides,
                           const std::vector<SizeRange> &ranges = {});

/// A map, and home dimensions whose coordinates are further on.
struct ShiftedViewMap {
  struct Shift {
    unsigned dim;
    SizeExpr start;  ///< what varies, to be added to what the map says
    SizeExpr length; ///< of what is accessed from there
  };
  mlir::AffineMap map;
  std::vector<Shift> shifts;
};

/// As getViewMap(), for views that begin at a size that varies, too.
ShiftedViewMap getShiftedViewMap(mlir::MLIRContext *context,
                                 const SizeList &sizes, const SizeList &strides,
                                 const SizeExpr &offset,
                                 const SizeList &homeSizes,
                                 const SizeList &homeStrides,
                                 const std::vector<SizeRange> &ranges);

/// A dense home with other dimensions: two that follow each other as one, of
/// which the inner one varies, or one as two of which only the inner one does.
/// The stride between them would be a size that varies, so that no map takes
/// the coordinates of one to those of the other.
struct Regrouping {
  /// Sizes by decreasing stride, without gaps. The home's own, but for outer
  /// dimensions that are taken as one.
  SizeList before, after;
  unsigned axis; ///< of the one dimension, and of the outer one of the two
  SizeExpr outer, inner;

  bool merges() const { return after.size() < before.size(); }
};

/// The strides of a tensor of these sizes in row-major order.
SizeList getRowMajorStrides(const SizeList &sizes);

/// The regroupings of a dense home from which a map may say a view of these
/// strides.
std::vector<Regrouping> getRegroupings(const SizeList &strides,
                                       const SizeList &homeSizes,
                                       const SizeList &homeStrides,
                                       const std::vector<SizeRange> &ranges);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_VIEWMAP_H
