// SPDX-License-Identifier: Apache-2.0
//===- Tiles.h - Parts of buffers that loops walk ---------------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_MAPPING_TILES_H
#define SPYRE_LIB_TARGET_SUPERDSC_MAPPING_TILES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace spyre::superdsc {

/// Where an operand starts in the buffer that it is part of.
struct TileStart {
  /// The allocation or argument.
  mlir::Value whole;
  /// Per dimension, the first coordinate in the first iterations of the loops;
  /// empty if the operand is the whole buffer.
  llvm::SmallVector<int64_t> first;
  /// Sticks of the buffer before these coordinates.
  int64_t sticks = 0;
  /// Loops that move it, and by how many sticks per iteration.
  llvm::SmallVector<std::pair<mlir::scf::ForOp, int64_t>> steps;

  /// Sticks per iteration of `loop`.
  int64_t getStep(mlir::scf::ForOp loop) const;
};

/// The start of an operand of `user`: a buffer, or a dense tile of one in
/// device memory that starts at whole sticks, at constants and induction
/// variables. Others are an error at `user`.
mlir::FailureOr<TileStart> getTileStart(mlir::Value operand,
                                        mlir::Operation *user);

/// A step of `sticks` in a buffer as a step along one of its dimensions: the
/// dimension and elements. Nothing if it is none.
struct TileStep {
  int64_t dim, elements;
};
std::optional<TileStep> getTileStep(mlir::MemRefType buffer, int64_t sticks);

/// Iterations of a loop with constant bounds.
std::optional<int64_t> getTripCount(mlir::scf::ForOp loop);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_MAPPING_TILES_H
