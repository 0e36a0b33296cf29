// SPDX-License-Identifier: Apache-2.0
//===- Strict.h - Parts of --ktdp-strict ------------------------*- C++ -*-===//

#ifndef SPYRE_LIB_DIALECT_KTIR_TRANSFORMS_STRICT_H
#define SPYRE_LIB_DIALECT_KTIR_TRANSFORMS_STRICT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ktdp {

/// Checks the inter-tile operations of `function`, which runs on `numCores`
/// cores. Emits every violation; failure if there was one.
LogicalResult checkInterTile(func::FuncOp function, int64_t numCores);

} // namespace mlir::ktdp

#endif // SPYRE_LIB_DIALECT_KTIR_TRANSFORMS_STRICT_H
