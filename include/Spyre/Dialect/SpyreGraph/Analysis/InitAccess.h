// SPDX-License-Identifier: Apache-2.0
//===- InitAccess.h - What operations leave of their init -------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Whether an operation on tensors writes every element of its init, so that
/// the old contents do not matter. False if that is not known.
bool overwritesInit(SpyreOpInterface op);

/// Whether an operation on tensors, outside of loops, changes what another
/// device operation has made for it alone, as the second and later pieces of a
/// concatenation do. It can write there in place: nothing else reads the old
/// contents.
bool canAlwaysUpdateInit(SpyreOpInterface op);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_INITACCESS_H
