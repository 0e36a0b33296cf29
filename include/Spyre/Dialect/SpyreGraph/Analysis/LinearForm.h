// SPDX-License-Identifier: Apache-2.0
//===- LinearForm.h - Expressions that are linear ---------------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LINEARFORM_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LINEARFORM_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::spyre_graph {

/// Coefficients of an expression that is linear in its dimensions, the constant
/// last; nothing if it is not.
std::optional<SmallVector<int64_t>> getLinearForm(AffineExpr expr,
                                                  unsigned numDims);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_LINEARFORM_H
