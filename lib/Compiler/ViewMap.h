// SPDX-License-Identifier: Apache-2.0
//===- ViewMap.h - Strided views as affine maps -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_VIEWMAP_H
#define SPYRE_LIB_COMPILER_VIEWMAP_H

#include "mlir/IR/AffineMap.h"

namespace spyre {

/// Whether `strides` (elements) address distinct elements of a tensor of these
/// sizes without gaps, in any order of the dimensions.
bool isDense(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);

/// As above, but with gaps: each stride exceeds the span of the dimensions with
/// smaller strides.
bool isNested(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);

/// Coordinates, in a home of `homeSizes` and nested `homeStrides`, of the
/// element at offset + sum(i * strides) of its storage. The view must lie in
/// the home.
mlir::AffineMap getViewMap(mlir::MLIRContext *context,
                           llvm::ArrayRef<int64_t> sizes,
                           llvm::ArrayRef<int64_t> strides, int64_t offset,
                           llvm::ArrayRef<int64_t> homeSizes,
                           llvm::ArrayRef<int64_t> homeStrides);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_VIEWMAP_H
