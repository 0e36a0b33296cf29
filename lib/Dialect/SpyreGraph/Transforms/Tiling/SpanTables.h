//===- SpanTables.h - Gathers from tables in parts --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// An index may ask for any row of a table, so a core has to address all of
// them. Of a table that is too large for that, each part is asked for every
// index, and where it is one of another part's, that one's row is taken.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANTABLES_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANTABLES_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Target/Interface/Target.h"

namespace mlir::spyre_graph {

/// Replaces `op`, if it is a gather whose table no core can address, by gathers
/// from parts of it. False, and nothing is changed, otherwise.
bool splitTableForSpans(SpyreOpInterface op, int64_t cores,
                        const Target &target, const ::spyre::DeviceSpec &spec);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANTABLES_H
