//===- LXCopies.h - Copies of buffers in LX ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A buffer in device memory, or in LX in other slices, can have a copy in LX
// for some of its users. Copies are created before buffers are placed, and
// removed again if there is no room for them.
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
  /// The fraction of the buffer that is accessed.
  double share = 1;
  /// Whether all of the buffer is accessed, each dimension by one loop, and by
  /// the same cores. Some targets have no other accesses to LX, and the
  /// reference tracks no other slices.
  bool isPlain = true;
};

/// The slices that one use accesses.
Eligibility getSlicingOfUse(OpOperand &use, const Target &target);
/// The slices that all of several uses access. They must agree, but readers may
/// run on fewer cores than hold the buffer. The share is the smallest one.
Eligibility getCommonSlicing(ArrayRef<OpOperand *> uses, const Target &target);

/// The operations of a function in program order.
using ProgramPoints = DenseMap<Operation *, int64_t>;

/// The uses of a buffer in program order.
SmallVector<OpOperand *> getOrderedUses(Value buffer,
                                        const ProgramPoints &points);

/// How often a user runs each time that `block` runs: the product of the trip
/// counts of the loops between them.
int64_t getNumRuns(Operation *user, Block &block);

/// Bytes of a whole buffer in device memory.
int64_t getBufferBytes(Value buffer);

/// A copy in LX of a buffer in device memory.
struct LXCopy {
  Value memory;
  SpyreOpInterface copy;
  memref::AllocOp alloc;
};

/// Creates a copy before the first of `readers`, and lets all of them read it.
std::optional<LXCopy> createReload(Value memory, ArrayRef<OpOperand *> readers,
                                   const Slicing &slicing, Block &block,
                                   const Target &target);
/// Lets `writer` write to LX and `readers` read from there. An operation after
/// the writer copies the buffer to device memory; of the cores that hold the
/// same slice only one copies it. Nothing if no operation can express that.
std::optional<LXCopy> createSpill(Value memory, OpOperand &writer,
                                  ArrayRef<OpOperand *> readers,
                                  const Slicing &slicing);
/// Removes a copy; its users access the buffer in device memory again.
void undo(LXCopy &copy);

/// A buffer in LX, and its copies in LX in other slices.
struct Resharded {
  memref::AllocOp source;
  /// The operations that move it, and the buffers that they write.
  SmallVector<std::pair<SpyreOpInterface, memref::AllocOp>, 2> copies;
};

/// If users of a buffer read other slices than its writer writes, and moving
/// the parts over the ring is cheaper than using device memory, creates these
/// moves.
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
  /// Seconds of moves that have been priced.
  std::map<std::vector<int64_t>, double> known;
};
/// Removes the copies; their users access the source again.
void undo(Resharded &entry);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LXCOPIES_H
