//===- SpanParts.h - Operations in parts that cores can address -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Where neither a division nor a loop over tiles (Spans.h) brings what a core
// needs of a tensor within its reach, an operation becomes several: parts of
// its iterations that need not be boxes of tensors, or copies through which
// data take another order.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANPARTS_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANPARTS_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Target/Interface/Target.h"

namespace mlir::spyre_graph {

/// Replaces `op` by operations that can be divided, or cut by cutForSpans(), so
/// that each core addresses what it needs. False, and nothing is changed, if it
/// can itself or if no way is known.
bool splitForSpans(SpyreOpInterface op, int64_t cores, const Target &target,
                   const ::spyre::DeviceSpec &spec);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANPARTS_H
