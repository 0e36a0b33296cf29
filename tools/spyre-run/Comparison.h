// SPDX-License-Identifier: Apache-2.0
//===- Comparison.h - Tensors of checks -------------------------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRE_RUN_COMPARISON_H
#define SPYRE_TOOLS_SPYRE_RUN_COMPARISON_H

#include "Npy.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace spyre {

/// How far apart elements may be. Neither: their bits are equal, or both NaN.
struct Tolerance {
  std::optional<int64_t> maxUlp;
  std::optional<double> atol;
};

/// An array of zeros for a tensor type.
NpyArray arrayOf(mlir::ShapedType type);
/// The elements of a constant.
NpyArray arrayOf(mlir::ElementsAttr constant);
/// The map's value at each index, as element of the type.
NpyArray arrayOf(mlir::ShapedType type, mlir::AffineMap map);

/// Describes the first element that is not as expected and counts such
/// elements. None if all are as expected.
std::optional<std::string> compare(mlir::ShapedType type,
                                   const NpyArray &actual,
                                   const NpyArray &expected,
                                   const Tolerance &tolerance);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_RUN_COMPARISON_H
