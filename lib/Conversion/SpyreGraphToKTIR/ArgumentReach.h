// SPDX-License-Identifier: Apache-2.0
//===- ArgumentReach.h - How far a plan reaches into its arguments --------===//
#ifndef SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H
#define SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::spyre_graph {

/// For each dimension of an argument of a planned function, an exclusive upper
/// bound of the coordinates that operations read or write.
SmallVector<int64_t> getReach(BlockArgument argument);

} // namespace mlir::spyre_graph

#endif // SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H
