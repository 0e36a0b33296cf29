// SPDX-License-Identifier: Apache-2.0
//===- BufferTypes.h - Types and maps of SuperDSC's tensors -----*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_RAISE_BUFFERTYPES_H
#define SPYRE_LIB_TARGET_SUPERDSC_RAISE_BUFFERTYPES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"
#include "Spyre/Target/SuperDSC/Model/Manifest.h"

#include <map>
#include <string>

namespace spyre::superdsc {

/// What a dimension is that is of many sizes: one of them divided by a number.
struct DimSize {
  std::string name;
  int64_t divisor = 1;
};

/// A tensor as a buffer of its own, where no manifest says what it is part of:
/// row-major over the dimensions along which it varies.
struct BufferShape {
  DataFormat format = DataFormat::SEN169_FP16;
  std::vector<int64_t> shape;
  /// What dimensions are that are of many sizes.
  std::map<unsigned, DimSize> sizes;
  /// Positions in `shape` from inner to outer device dimension.
  std::vector<unsigned> order;
  /// Position of the stick dimension, or -1 for one element per stick.
  int stick = -1;
  /// Steps of the innermost dimension that share a stick.
  int64_t packed = 1;
};
/// The shape has the iteration space's order of dimensions, or, if `isDefault`,
/// that of a tensor of default layout in the same memory, if there is one.
mlir::FailureOr<BufferShape> getBufferShape(const Sdsc &sdsc, unsigned number,
                                            mlir::ArrayRef<int64_t> extents,
                                            mlir::Location loc,
                                            bool isDefault = false);

/// Gives a tensor that a loop moves by `sticks` per `tile` elements of a size
/// room for all of them: in the dimension that they are of, or, if the tiles
/// follow each other in memory, in an outermost dimension that counts them.
/// Leaves a tensor as it is that has no such dimension.
void addRoom(BufferShape &shape, const SizeParameter &size, int64_t tile,
             int64_t sticks);

/// Describes the same memory by dimensions that a generic-stick layout allows.
BufferShape makeGeneric(const BufferShape &shape);

mlir::FailureOr<mlir::MemRefType> getBufferType(const BufferShape &shape,
                                                mlir::MLIRContext *context,
                                                mlir::Location loc);
mlir::FailureOr<mlir::MemRefType> getBufferType(const ManifestTensor &tensor,
                                                mlir::Location loc);

/// The part of a buffer of `type` in LX that one core holds.
mlir::FailureOr<mlir::SmallVector<int64_t>>
getLocalShape(const Sdsc &sdsc, unsigned number,
              mlir::ArrayRef<int64_t> extents, mlir::MemRefType type,
              mlir::Location loc);

/// The coordinates that an operation's loops, one per dimension, access in a
/// buffer. `offset`: bytes from the buffer's start to the tensor's.
struct AccessMap {
  mlir::AffineMap map;
  /// Dimension of the buffer along which indices select.
  std::optional<int64_t> axis;
};
mlir::FailureOr<AccessMap> getAccessMap(const Sdsc &sdsc, unsigned number,
                                        int64_t offset, mlir::Value buffer,
                                        mlir::ArrayRef<int64_t> extents,
                                        mlir::Location loc);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_RAISE_BUFFERTYPES_H
