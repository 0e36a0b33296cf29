//===- LXCopies.h - Copies of buffers in LX ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// What lives in device memory, or in LX in other slices, may have a copy in LX
// for some of its users. Copies are made before buffers are placed and taken
// back if they find no place.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LXCOPIES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LXCOPIES_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <map>

namespace mlir::spyre_graph {

/// The slices that cores must hold of a buffer, or why it cannot live in LX.
struct Eligibility {
  std::optional<Slicing> slicing;
  std::string obstacle;
  /// Of the buffer, what is accessed.
  double share = 1;
  /// Whether all of it is accessed, in loop dimensions and on the same cores:
  /// some targets have no other accesses to LX, and the reference knows no
  /// other slices.
  bool isPlain = true;
};

/// Of one use.
Eligibility getSlicingOfUse(OpOperand &use, const Target &target);
/// Of several, which must agree, but for readers on fewer cores than hold it;
/// the share is that of the smallest.
Eligibility getCommonSlicing(ArrayRef<OpOperand *> uses, const Target &target);

/// The operations of a function in program order.
using ProgramPoints = DenseMap<Operation *, int64_t>;

/// The uses of a buffer in program order.
SmallVector<OpOperand *> getOrderedUses(Value buffer,
                                        const ProgramPoints &points);

/// How often a use runs: the trip counts of the loops between it and `block`.
int64_t getNumRuns(Operation *user, Block &block);

/// Device bytes of a whole buffer.
int64_t getBufferBytes(Value buffer);

/// A copy in LX of a buffer in device memory.
struct LXCopy {
  Value memory;
  SpyreOpInterface copy;
  memref::AllocOp alloc;
};

/// Lets `readers` read a copy made before the first of them.
std::optional<LXCopy> createReload(Value memory, ArrayRef<OpOperand *> readers,
                                   const Slicing &slicing, Block &block,
                                   const Target &target);
/// Lets `writer` write into LX and `readers` read there; a copy after the
/// writer brings it to memory, on one of the cores that hold a slice. Nothing
/// if that cannot be said.
std::optional<LXCopy> createSpill(Value memory, OpOperand &writer,
                                  ArrayRef<OpOperand *> readers,
                                  const Slicing &slicing);
void undo(LXCopy &copy);

/// Copies of one buffer in LX in other slices.
struct Resharded {
  memref::AllocOp source;
  /// The operations that move it, and what they write.
  SmallVector<std::pair<SpyreOpInterface, memref::AllocOp>, 2> copies;
};

/// Moves buffers whose users disagree into the slices of those that read
/// others than the writer's, where that is cheaper than device memory.
class Resharder {
public:
  Resharder(const ProgramPoints &points, const Target &target,
            const ::spyre::DeviceSpec &spec)
      : points(points), target(target), spec(spec) {}

  std::optional<Resharded> run(memref::AllocOp alloc);

private:
  double getSeconds(const Slicing &from, const Slicing &to,
                    double elementBytes);

  const ProgramPoints &points;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  /// Moves that are alike take equally long.
  std::map<std::vector<int64_t>, double> known;
};
void undo(Resharded &entry);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LXCOPIES_H
