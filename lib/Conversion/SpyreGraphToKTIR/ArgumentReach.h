// SPDX-License-Identifier: Apache-2.0
//===- ArgumentReach.h - How far a plan reaches into its arguments --------===//
#ifndef SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H
#define SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::spyre_graph {

/// Per dimension of an argument of a planned function, a bound below which all
/// coordinates lie that its operations read or write.
SmallVector<int64_t> getReach(BlockArgument argument);

} // namespace mlir::spyre_graph

#endif // SPYRE_CONVERSION_SPYREGRAPHTOKTIR_ARGUMENTREACH_H
