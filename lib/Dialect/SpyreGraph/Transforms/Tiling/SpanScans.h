//===- SpanScans.h - Scans in parts that cores can address ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A core scans whole rows. Where it cannot address one, or rows lie too far
// apart, each part of a row goes on from the total of the parts before it.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANSCANS_H
#define SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANSCANS_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Target/Interface/Target.h"

namespace mlir::spyre_graph {

/// Replaces `op`, if it is a scan that neither a division nor tiles bring
/// within a core's reach, by scans of parts of its rows, with the same bits.
/// False, and nothing is changed, otherwise.
bool splitScanForSpans(SpyreOpInterface op, int64_t cores, const Target &target,
                       const ::spyre::DeviceSpec &spec);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_TRANSFORMS_SPANSCANS_H
