// SPDX-License-Identifier: Apache-2.0
//===- Instrs.h - Instructions of decoded programs --------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_INSTRS_H
#define SPYRE_LIB_RUNTIME_INSTRS_H

#include "Body.h"

namespace spyre::runtime {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Integer and index arithmetic on scalar slots.
class ScalarInt : public Instr {
public:
  enum Op : uint8_t { Binary, Compare, Select, Cast, Copy, TileId };
  Op op = Binary;
  uint8_t code = 0;          ///< IntBinaryOp, IntPredicate, grid dimension
  bool isSigned = true;      ///< Cast
  Elem elem = Elem::Index;   ///< of the result
  Elem source = Elem::Index; ///< Compare, Cast: of the operand
  int dst = 0, a = 0, b = 0, c = 0;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

/// Anything else on scalars: a body of one point.
class ScalarBody : public Instr {
public:
  BodyProgram body;
  std::vector<int> results; ///< scalar slots
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

/// affine.apply / min / max.
struct AffineNode {
  enum Kind : uint8_t { Constant, Operand, Add, Mul, FloorDiv, CeilDiv, Mod };
  Kind kind = Constant;
  int64_t value = 0; ///< constant, or operand number
  int lhs = 0, rhs = 0;
};

class AffineInstr : public Instr {
public:
  enum Mode : uint8_t { Apply, Min, Max };
  Mode mode = Apply;
  std::vector<AffineNode> nodes;
  std::vector<int> roots;
  std::vector<int> operands; ///< scalar slots
  int dst = 0;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }

private:
  int64_t evaluate(Core &core, int node) const;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A size that is a constant or comes from a scalar slot.
struct SizeSource {
  int64_t constant = 0;
  int slot = -1;
  int64_t get(const Core &core) const {
    return slot < 0 ? constant : core.scalars[slot].i;
  }
};

class MemoryViewInstr : public Instr {
public:
  int dst = 0;
  int offsetSlot = 0;
  Elem elem = Elem::F16;
  bool isLX = false;
  int64_t lxCore = -1; ///< -1: the executing core's own
  /// Of a distributed view: the offset is that of the lowest coordinate.
  bool isPartition = false;
  std::vector<SizeSource> strides;
  /// Legal coordinates: forms over `symbols`, inclusive.
  AccessPlan bounds; ///< forms only
  std::vector<int> lowerForms, upperForms;
  std::vector<int> symbolSlots;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

class AccessTileInstr : public Instr {
public:
  int dst = 0;
  AccessPlan plan;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

class LoadInstr : public Instr {
public:
  int dst = 0, tile = 0;
  Elem elem = Elem::F16;
  /// Only check: the one structured loop that uses the tile reads it piece by
  /// piece, so that it stays in the first-level cache.
  bool isDeferred = false;
  void run(Core &core) const override;
  void trace(Core &core) const override;
  void runGang(Core *const *cores, int numCores) const override;
};

class StoreInstr : public Instr {
public:
  TensorUse data;
  int tile = 0;
  Elem elem = Elem::F16;
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Values handed from one place to another, all at once.
struct Transfer {
  std::vector<std::pair<int, int>> scalars;       ///< from, to
  std::vector<std::pair<TensorUse, int>> tensors; ///< from, to
  void run(Core &core) const;
};

class TransferInstr : public Instr {
public:
  Transfer transfer;
  void run(Core &core) const override { transfer.run(core); }
  void trace(Core &core) const override { run(core); }
};

class ForInstr : public Instr {
public:
  int lower = 0, upper = 0, step = 0, induction = 0;
  bool isUnsigned = false;
  Transfer enter; ///< inits to iteration arguments
  Transfer next;  ///< yields to iteration arguments
  Transfer leave; ///< iteration arguments to results
  Block body;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
  void runGang(Core *const *cores, int numCores) const override;

private:
  /// Trip count; fails on a step that is not positive.
  int64_t count(Core &core) const;
};

class IfInstr : public Instr {
public:
  int condition = 0;
  Block thenBlock, elseBlock;
  Transfer thenResults, elseResults;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

class WhileInstr : public Instr {
public:
  Transfer enter; ///< inits to before's arguments
  Block before;
  int condition = 0;
  Transfer forward; ///< condition's operands to after's arguments
  Transfer results; ///< condition's operands to results
  Block after;
  Transfer next; ///< after's yields to before's arguments
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

class CallInstr : public Instr {
public:
  const Function *callee = nullptr;
  std::vector<int> args; ///< scalar slots
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Fails on negative and absurd sizes.
void setTensorShape(Core &core, int location, TensorVal &t,
                    const std::vector<SizeSource> &sizes);
/// Row-major; fails on indices outside.
int64_t getElementOffset(Core &core, int location, const TensorVal &t,
                         const std::vector<int> &indices);

class EmptyInstr : public Instr {
public:
  int dst = 0;
  std::vector<SizeSource> sizes;
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

/// tensor.splat, tensor.from_elements, linalg.fill: one value, or one each.
class SplatInstr : public Instr {
public:
  int dst = 0;
  Elem elem = Elem::F32;
  std::vector<SizeSource> sizes;
  int shapeOf = -1;        ///< tensor slot instead of sizes
  std::vector<int> values; ///< scalar slots
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

/// The same elements under another shape: collapse, expand, reshape, cast,
/// extf. Unknown sizes (slot -1, constant -1) follow from the element count.
class ReshapeInstr : public Instr {
public:
  int dst = 0;
  TensorUse source;
  bool keepShape = false;
  std::vector<int64_t> staticSizes; ///< to check if the shape is kept; -1: any
  Elem elem = Elem::F32;
  std::vector<SizeSource> sizes;
  /// Result dims that share one source dim (expand) or the reverse.
  std::vector<std::vector<int>> groups;
  bool isExpand = false, isCollapse = false;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

class ExtractInstr : public Instr {
public:
  int dst = 0; ///< scalar slot
  int source = 0;
  Elem elem = Elem::F32;
  std::vector<int> indices;
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

class InsertInstr : public Instr {
public:
  int dst = 0;
  TensorUse dest;
  Elem elem = Elem::F32;
  int value = 0; ///< scalar slot
  std::vector<int> indices;
  void run(Core &core) const override;
  void trace(Core &core) const override;
};

/// tensor.extract_slice and tensor.insert_slice.
class SliceInstr : public Instr {
public:
  bool isInsert = false;
  int dst = 0;
  TensorUse source; ///< extract: the large tensor; insert: the small one
  TensorUse dest;   ///< insert: the large tensor
  Elem elem = Elem::F32;
  std::vector<SizeSource> offsets, sizes, strides;
  std::vector<bool> dropped; ///< extract: dimension absent from the result
  void run(Core &core) const override;
  void trace(Core &core) const override;

private:
  /// Fails if the slice leaves dimension `d` of `size`.
  void checkSlice(Core &core, int d, int64_t size) const;
  void checkInserted(Core &core, int64_t found, int64_t expected) const;
};

class DimInstr : public Instr {
public:
  int dst = 0, source = 0, index = 0;
  void run(Core &core) const override;
  void trace(Core &core) const override { run(core); }
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_INSTRS_H
