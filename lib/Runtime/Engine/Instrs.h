// SPDX-License-Identifier: Apache-2.0
//===- Instrs.h - Instructions of decoded programs --------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_INSTRS_H
#define SPYRE_LIB_RUNTIME_ENGINE_INSTRS_H

#include "../Program/PointSet.h"
#include "StructuredLoop.h"

namespace spyre::runtime {

/// Reads an element of a data tile in host memory, as a scalar slot holds it.
inline Scalar readElement(const void *p, Elem elem) {
  Scalar s;
  s.i = 0;
  if (isFloat(elem)) {
    std::memcpy(&s.f, p, 4);
  } else if (isWide(elem)) {
    std::memcpy(&s.i, p, 8);
  } else {
    int32_t v;
    std::memcpy(&v, p, 4);
    s.i = v;
  }
  return s;
}

inline void writeElement(void *p, Scalar value, Elem elem) {
  if (isFloat(elem)) {
    std::memcpy(p, &value.f, 4);
  } else if (isWide(elem)) {
    std::memcpy(p, &value.i, 8);
  } else {
    int32_t v = static_cast<int32_t>(value.i);
    std::memcpy(p, &v, 4);
  }
}

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
  void walk(Core &core) const override { run(core); }
};

/// Reads a run-time argument, and fails if its value breaks the constraints of
/// its type.
class RuntimeArgInstr : public Instr {
public:
  int dst = 0, source = 0;
  Elem elem = Elem::Index;
  int64_t granularity = 1;
  int64_t upperbound = -1; ///< -1: none
  std::string name;        ///< for messages: "argument 2 of @main"
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

/// All other operations on scalars: a scalar program that runs for one point.
class ScalarProgramInstr : public Instr {
public:
  ScalarProgram body;
  std::vector<int> results; ///< scalar slots
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

/// affine.apply / min / max.
class AffineInstr : public Instr {
public:
  enum Mode : uint8_t { Apply, Min, Max };
  Mode mode = Apply;
  std::vector<AffineNode> nodes;
  std::vector<int> roots;
  std::vector<int> operands; ///< scalar slots
  int dst = 0;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }

private:
  /// Divisors may be run-time values: fails if one is not positive.
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
  /// Whether this is a partition of a distributed view: its offset is that of
  /// the lowest coordinate.
  bool isPartition = false;
  std::vector<SizeSource> strides;
  /// Inclusive bounds of the legal coordinates: forms over the symbols.
  AccessTilePlan bounds; ///< forms only
  std::vector<int> lowerForms, upperForms;
  /// If not null, only coordinates in this set are legal.
  std::unique_ptr<PointSet> set;
  std::vector<int> symbolSlots;
  void run(Core &core) const override;
  void runGang(Core *const *cores, int numCores) const override;
  void walk(Core &core) const override { run(core); }

private:
  struct CheckedArithmetic;
  struct ByteRange;
  /// Whether the core counts the bytes of the view as part of its LX.
  bool isNoted(const Core &core) const;
  /// Whether the view is the same in all cores and iterations of a run that
  /// give it the same offset.
  bool dependsOnOffsetOnly() const;
  /// Sets the strides and the legal coordinates.
  void setCoordinates(Core &core, ViewVal &view,
                      CheckedArithmetic &checked) const;
  /// Narrows the box of legal coordinates to that around `set`.
  void narrowToSet(Core &core, ViewVal &view,
                   const std::vector<int64_t> &symbols) const;
  /// Sets the byte address of coordinate 0. Returns the range of bytes that the
  /// view covers.
  ByteRange setAddress(Core &core, ViewVal &view,
                       CheckedArithmetic &checked) const;
  /// Sets the base to the start of the memory. Returns [first, end) bytes of
  /// the allocation that the view may access; all of the memory if trusted.
  std::pair<int64_t, int64_t> enterMemory(Core &core, ViewVal &view,
                                          const ByteRange &bytes,
                                          bool isTrusted) const;
};

/// memref.subview of a view.
class SubViewInstr : public Instr {
public:
  int dst = 0, source = 0;
  std::vector<SizeSource> offsets, sizes, strides;
  std::vector<bool> dropped; ///< dimension absent from the result
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

class AccessTileInstr : public Instr {
public:
  int dst = 0;
  AccessTilePlan plan;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

class LoadInstr : public Instr {
public:
  int dst = 0, tile = 0;
  Elem elem = Elem::F16;
  /// Whether this only checks the access. The structured loop that uses the
  /// tile, from its start, then reads it piece by piece, so that pieces stay in
  /// the first-level cache.
  bool isDeferred = false;
  /// Whether the only loop that uses the tile has several inputs and
  /// reductions, as a matrix product: a tile that cores of a gang share is then
  /// read at once.
  bool isFactor = false;
  /// The dimension that has to be dense in memory so that gemmOfHalves() takes
  /// the codes of this factor where they are; -1 if the product is none for it.
  int denseDim = -1;
  void run(Core &core) const override;
  void walk(Core &core) const override;
  void runGang(Core *const *cores, int numCores) const override;
  /// Reads a prepared tile, or a stack of them (Core::numStacked).
  void move(Core &core, const TileVal &tile) const;

private:
  /// `version` is that of the codes of a factor, if they have one.
  void run(Core &core, bool mayDefer, uint64_t version) const;
  /// The codes of the prepared tile, if the product takes them where they are.
  std::optional<HalfFactor> findHalves(const Core &core,
                                       const TileVal &tile) const;
};

class StoreInstr : public Instr {
public:
  /// The loop that makes the data and runs here (LoopFusion.cpp), or null.
  std::shared_ptr<const StructuredLoop> maker;
  /// Of that loop, if it is one for a table.
  std::shared_ptr<CodeTable> table;
  /// The loops that lead to it and run here, too, row by row, `maker` being the
  /// last (LoopRows.cpp).
  std::vector<RowLoop> rowLoops;
  TensorUse data;
  int tile = 0;
  Elem elem = Elem::F16;
  void run(Core &core) const override;
  void walk(Core &core) const override;
  /// Writes a prepared tile, or a stack of them (Core::numStacked).
  void move(Core &core, const TileVal &tile) const;

private:
  /// Fails unless the data tile has the access tile's sizes.
  void checkSizes(const Core &core) const;
};

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Moves values between slots, all at the same time.
struct Transfer {
  std::vector<std::pair<int, int>> scalars;       ///< from, to
  std::vector<std::pair<TensorUse, int>> tensors; ///< from, to
  void run(Core &core) const;
};

/// How most iterations of a loop run, if they only move on from tile to tile
/// (RepeatedBody.cpp).
class RepeatedBody {
public:
  /// Iterations that run as written before the others.
  static constexpr int64_t kFirst = 2;
  virtual ~RepeatedBody() = default;
  /// Runs iterations from number kFirst on, but for the last one, of a loop of
  /// `trips` whose variable goes from `low` on by `by`. Returns how many, maybe
  /// none.
  virtual int64_t run(Core &core, int64_t low, int64_t by,
                      int64_t trips) const = 0;
};

class ForInstr : public Instr {
public:
  int lower = 0, upper = 0, step = 0, induction = 0;
  bool isUnsigned = false;
  Transfer enter; ///< inits to iteration arguments
  Transfer next;  ///< yields to iteration arguments
  Transfer leave; ///< iteration arguments to results
  Block body;
  std::shared_ptr<const RepeatedBody> repeated; ///< null: all as written
  /// Which of Core::keptTiles hold what its body reads again.
  std::vector<int> keptTiles;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
  void runGang(Core *const *cores, int numCores) const override;
  /// Trip count; fails on a step that is not positive.
  int64_t count(Core &core) const;

private:
  void enterKeptTiles(Core &core, int64_t trips) const;
  void nextOfKeptTiles(Core &core) const;
  void leaveKeptTiles(Core &core) const;
};

/// Sets ForInstr::repeated, if that is possible. To be called when all else of
/// the loop is there.
void findRepeatedBody(ForInstr &loop);

/// scf.parallel. Its iterations run one after another, the last loop fastest.
class ParallelInstr : public Instr {
public:
  std::vector<int> lower, upper, step, induction; ///< scalar slots
  Block body;
  struct Reduction {
    Transfer enter;    ///< initial value to the result
    Transfer operands; ///< result and operand to the combiner's arguments
    Block combiner;
    Transfer leave; ///< combination to the result
  };
  std::vector<Reduction> reductions;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

/// scf.forall. Its iterations run one after another, too. The inserts at its
/// end write to the results, and the body reads shared tensors as they were
/// before the loop.
class ForallInstr : public Instr {
public:
  std::vector<SizeSource> lower, upper, step;
  std::vector<int> induction; ///< scalar slots
  Transfer enter;             ///< initial tensors to the arguments
  Transfer results;           ///< arguments to the results
  Block body;                 ///< with the inserts at its end
  std::vector<int> arguments; ///< tensor slots, released at the end
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

class IfInstr : public Instr {
public:
  int condition = 0;
  Block thenBlock, elseBlock;
  Transfer thenResults, elseResults;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
  void runGang(Core *const *cores, int numCores) const override;
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
  void walk(Core &core) const override;
};

class CallInstr : public Instr {
public:
  const Function *callee = nullptr;
  std::vector<int> args; ///< scalar slots
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Sets the shape of `t`. Fails if a size is negative or far too large.
void setTensorShape(Core &core, int location, TensorVal &t,
                    const std::vector<SizeSource> &sizes);
/// The row-major offset of an element. Fails if an index is outside the shape.
int64_t getElementOffset(Core &core, int location, const TensorVal &t,
                         const std::vector<int> &indices);

class EmptyInstr : public Instr {
public:
  int dst = 0;
  std::vector<SizeSource> sizes;
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

/// tensor.splat, tensor.from_elements, linalg.fill: one value for all elements,
/// or one for each.
class SplatInstr : public Instr {
public:
  int dst = 0;
  Elem elem = Elem::F32;
  std::vector<SizeSource> sizes;
  int shapeOf = -1;        ///< tensor slot instead of sizes
  std::vector<int> values; ///< scalar slots
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

/// Gives the same elements another shape or type: collapse, expand, reshape,
/// cast, extf. Unknown sizes (slot -1, constant -1) follow from the element
/// count.
class ReshapeInstr : public Instr {
public:
  int dst = 0;
  TensorUse source;
  bool keepShape = false;
  std::vector<int64_t> staticSizes; ///< checked if not empty; -1: any size
  Elem elem = Elem::F32;
  std::vector<SizeSource> sizes;
  /// Collapse: the source dimensions of each result dimension.
  std::vector<std::vector<int>> groups;
  bool isCollapse = false;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

class ExtractInstr : public Instr {
public:
  int dst = 0; ///< scalar slot
  int source = 0;
  Elem elem = Elem::F32;
  std::vector<int> indices;
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

class InsertInstr : public Instr {
public:
  int dst = 0;
  TensorUse dest;
  Elem elem = Elem::F32;
  int value = 0; ///< scalar slot
  std::vector<int> indices;
  void run(Core &core) const override;
  void walk(Core &core) const override;
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
  void walk(Core &core) const override;

private:
  /// Fails if the slice exceeds dimension `d`, which has size `size`.
  void checkSlice(Core &core, int d, int64_t size) const;
  void checkInserted(Core &core, int64_t found, int64_t expected) const;
};

/// One of two parts of tensor.pad: creates the result, or copies the source
/// into it.
class PadInstr : public Instr {
public:
  bool isCopy = false; ///< otherwise: create the padded tensor, undefined
  int dst = 0;
  TensorUse source;
  TensorUse padded; ///< copy: the padded tensor
  Elem elem = Elem::F32;
  std::vector<SizeSource> low, high;
  std::vector<int64_t> staticSizes; ///< of the result, -1: any
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

class DimInstr : public Instr {
public:
  int dst = 0, source = 0, index = 0;
  void run(Core &core) const override;
  void walk(Core &core) const override { run(core); }
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_INSTRS_H
