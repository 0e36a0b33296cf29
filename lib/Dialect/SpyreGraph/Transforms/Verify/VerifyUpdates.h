//===- VerifyUpdates.h - Operations that read what they write ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYUPDATES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYUPDATES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// SG-PLAN-C14 for an operation on buffers.
LogicalResult verifyUpdate(SpyreOpInterface op);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_VERIFY_VERIFYUPDATES_H
