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

#include "../Division/DivisionSearch.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// Whether a use is in a loop that does not contain the buffer's allocation.
bool isUsedInLoop(ArrayRef<OpOperand *> uses);

/// The number of accesses to a buffer each time that `block` runs: each
/// operation counts as often as it runs, and one that accesses a part counts
/// for that fraction.
double getNumAccesses(ArrayRef<OpOperand *> uses, Block &block,
                      const Target &target);

/// Bytes of a whole buffer in device memory.
int64_t getBufferBytes(Value buffer);

/// Bytes of a buffer per element, its padding included.
double getElementBytes(memref::AllocOp alloc);

/// How often device memory delivers what all cores of a slicing read.
double getNumTransfers(const Slicing &slicing, const ::spyre::DeviceSpec &spec);

/// What reads from device memory take: what a product loads again for each
/// part of its result, and a read by very many cores, counts as often as it
/// happens.
class ReadPrices {
public:
  ReadPrices(const Target &target, const ::spyre::DeviceSpec &spec)
      : target(target), spec(spec) {}

  /// Seconds of device memory, each time that the reader runs.
  double getSeconds(OpOperand &use);
  /// Seconds of an operation that copies device memory into LX.
  double getCopySeconds(SpyreOpInterface op);
  /// Bytes that the readers among the uses of a buffer read again after the
  /// first time, each time that `block` runs.
  double getRereadBytes(ArrayRef<OpOperand *> uses, Block &block);
  /// Seconds that the reader saves each time that it runs, if it finds this
  /// operand in LX; buffers of the function are there otherwise.
  double getSavedSeconds(OpOperand &use);

private:
  const Divisions &getPrices(SpyreOpInterface op);

  const Target &target;
  const ::spyre::DeviceSpec &spec;
  /// By operation, division and types.
  std::map<std::vector<const void *>, Divisions> known;
};

/// A copy operation whose loops divide a buffer into the given slices, in the
/// order of the cores. Null if no loops give these slices, or if more than
/// `maxCopies` cores hold the same one. With `fromMap`, where the elements of
/// the buffer are in `from`.
SpyreOpInterface
createSlicedCopy(OpBuilder &builder, Location loc, Value from, Value to,
                 const Slicing &slicing, int64_t maxCopies,
                 StringRef name = IdentityOp::getOperationName(),
                 AffineMap fromMap = {});

/// A copy in LX of a buffer in device memory.
struct LXCopy {
  Value memory;
  SpyreOpInterface copy;
  memref::AllocOp alloc;
};

/// Creates a copy before the first of `readers`, and lets all of them read it.
/// Nothing if no operation can express that.
std::optional<LXCopy> createReload(Value memory, ArrayRef<OpOperand *> readers,
                                   const Slicing &slicing, Block &block,
                                   const Target &target);
/// Copies of tiles that the operations of a loop read several times in equal
/// slices, where that is faster: each tile is then read from device memory
/// once. Equal tiles become one.
SmallVector<LXCopy> createTileCopies(func::FuncOp func,
                                     const ProgramPoints &points,
                                     const Target &target,
                                     const ::spyre::DeviceSpec &spec,
                                     ReadPrices &reads);
/// Lets `writer` write to LX and `readers` read from there. An operation after
/// the writer copies the buffer to device memory; of the cores that hold the
/// same slice only one copies it. Nothing if no operation can express that.
std::optional<LXCopy> createSpill(Value memory, OpOperand &writer,
                                  ArrayRef<OpOperand *> readers,
                                  const Slicing &slicing, const Target &target);
/// Removes a copy; its users access the buffer in device memory again.
void undo(LXCopy &copy);

/// A copy in LX, in slices that several cores hold, in place of a buffer that
/// one operation writes. Both are out of the block, and the writer reads
/// nothing.
struct Repeated {
  LXCopy copy;
  SpyreOpInterface writer;
  Value source;
};

/// A buffer in LX, and its copies in LX in other slices.
struct Resharded {
  memref::AllocOp source;
  /// The operations that move it, and the buffers that they write.
  SmallVector<std::pair<SpyreOpInterface, memref::AllocOp>, 2> copies;
};

/// How users of a buffer get what they read.
struct Served {
  /// Copies in LX: one that is computed there, for some users, and then copied
  /// out for the others (`isSplit`); or copies of the buffer in device memory.
  SmallVector<LXCopy> copies;
  bool isSplit = false;
  /// Moves over the ring.
  std::optional<Resharded> moves;
};

/// Lets users of a buffer read it in different ways where that is cheaper than
/// reading it in device memory: in the slices in which it is written, in others
/// after a move over the ring, or in a copy in LX.
class Resharder {
public:
  /// Without `mayMove`, no users read after a move. Operations are at least two
  /// points apart: copies come between them.
  Resharder(ProgramPoints &points, const Target &target,
            const ::spyre::DeviceSpec &spec, ReadPrices &reads, bool mayMove)
      : points(points), target(target), spec(spec), reads(reads),
        mayMove(mayMove) {}

  /// Lets each core make what it reads of a copy of an argument for itself,
  /// where that is faster than to move it.
  std::optional<Repeated> repeat(memref::AllocOp alloc);
  Served serve(memref::AllocOp alloc);

private:
  /// Uses of a buffer that read it in equal slices.
  struct Group {
    Slicing slicing;
    SmallVector<OpOperand *> readers;
    /// Time to read the buffer from device memory for all of them, and to move
    /// it to their slices.
    double readSeconds = 0, moveSeconds = 0;
    bool isMoved = false;
  };
  struct Uses {
    OpOperand *writer = nullptr;
    Slicing written;
    std::vector<Group> groups;
    /// What has no place in LX.
    SmallVector<OpOperand *> others;
  };
  std::optional<LXCopy> split(memref::AllocOp alloc,
                              const std::optional<Uses> &uses);
  std::optional<Resharded> move(memref::AllocOp alloc,
                                std::optional<Uses> uses);
  SmallVector<LXCopy> reload(memref::AllocOp alloc);
  std::optional<Uses> classify(memref::AllocOp alloc);
  bool canRepeat(const Uses &uses) const;
  double getCallSeconds(Operation *op) const;
  double getRingSeconds(const Slicing &from, const Slicing &to,
                        double elementBytes);
  Group &getGroup(Uses &uses, const Slicing &slicing, double elementBytes);

  ProgramPoints &points;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  ReadPrices &reads;
  bool mayMove;
  /// Seconds of moves that have been priced.
  std::map<std::vector<int64_t>, double> known;
};
/// Removes the copies; their users access the source again.
void undo(Resharded &entry);

/// Lets each core make for itself what it reads of copies of arguments.
std::vector<Repeated> repeatCopies(func::FuncOp func, ProgramPoints &points,
                                   const Target &target,
                                   const ::spyre::DeviceSpec &spec,
                                   ReadPrices &reads);
/// Frees what copies that have a place stand for; puts the others back.
void settle(ArrayRef<Repeated> repeated);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_MEMORY_LXCOPIES_H
