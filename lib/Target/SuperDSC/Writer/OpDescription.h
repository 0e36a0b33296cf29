// SPDX-License-Identifier: Apache-2.0
//===- OpDescription.h - One planned operation as SuperDSC ------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_WRITER_OPDESCRIPTION_H
#define SPYRE_LIB_TARGET_SUPERDSC_WRITER_OPDESCRIPTION_H

#include "../Mapping/Tiles.h"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <map>

namespace spyre::superdsc {

/// An operation without addresses.
struct OpDescription {
  Sdsc sdsc;
  /// Per tensor: the buffer, and the bytes before the first stick accessed of
  /// it in the first iterations of the loops around the operation.
  std::vector<mlir::Value> buffers;
  std::vector<int64_t> offsets;
  /// Per tensor: the loops that move it.
  std::vector<TileStart> tiles;
  /// Extents of dimensions whose size was padded.
  std::map<std::string, int64_t> extents;
};

/// Describes a planned operation. What SuperDSC cannot say is an error on it.
mlir::FailureOr<OpDescription>
describeOp(mlir::spyre_graph::SpyreOpInterface op);

/// The placement of the allocation that made a buffer, or null.
mlir::spyre_graph::PlacementAttr getPlacement(mlir::Value buffer);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_WRITER_OPDESCRIPTION_H
