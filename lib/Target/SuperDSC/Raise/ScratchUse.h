// SPDX-License-Identifier: Apache-2.0
//===- ScratchUse.h - What executions leave to each other -------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_RAISE_SCRATCHUSE_H
#define SPYRE_LIB_TARGET_SUPERDSC_RAISE_SCRATCHUSE_H

#include "Executions.h"

namespace spyre::superdsc {

/// Emits an error where an execution reads a place of LX or of the pool that
/// none before it writes, and, if `isWhole`, where one leaves something there
/// that none reads. Either is what a folder looks like that misses some of its
/// bundles, or has its executions in another order.
mlir::LogicalResult checkScratchUse(mlir::ArrayRef<ExecutionNode> nodes,
                                    bool isWhole);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_RAISE_SCRATCHUSE_H
