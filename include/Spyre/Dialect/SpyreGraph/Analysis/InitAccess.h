// SPDX-License-Identifier: Apache-2.0
//===- InitAccess.h - What operations leave of their init -------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Whether an operation on tensors writes every element of its init, so that
/// the old contents do not matter. False if that is not known.
bool overwritesInit(SpyreOpInterface op);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H
