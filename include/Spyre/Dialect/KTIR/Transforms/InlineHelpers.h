// SPDX-License-Identifier: Apache-2.0
//===- InlineHelpers.h - Helper functions of KTIR ---------------*- C++ -*-===//
//
// A function without a grid is a sequence of kernels, or a helper: a function
// that stands for its body. A call is one of a helper if it has results, hands
// over tiles or views, or is (perhaps indirectly) made by a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_DIALECT_KTIR_TRANSFORMS_INLINEHELPERS_H
#define SPYRE_DIALECT_KTIR_TRANSFORMS_INLINEHELPERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ktdp {

/// The functions that run when a function is called.
struct CalledFunctions {
  /// Sequences and kernels, callees before callers, the function itself last.
  SmallVector<func::FuncOp> functions;
  /// The functions that are called as helpers.
  SmallVector<func::FuncOp> helpers;
};

/// Fails with a diagnostic on recursion (KTDP-INLINE-C1) and on functions
/// without a body (KTDP-INLINE-C2).
FailureOr<CalledFunctions> collectCalledFunctions(ModuleOp module,
                                                  func::FuncOp entry);

/// Puts the bodies of helpers in place of their calls in `functions`, which
/// collectCalledFunctions() found. Fails with a diagnostic on bodies of several
/// blocks (KTDP-INLINE-C3) and if that makes too much (KTDP-INLINE-C4). The
/// context needs func::registerInlinerExtension().
LogicalResult inlineHelpers(ModuleOp module, ArrayRef<func::FuncOp> functions);

} // namespace mlir::ktdp

#endif // SPYRE_DIALECT_KTIR_TRANSFORMS_INLINEHELPERS_H
