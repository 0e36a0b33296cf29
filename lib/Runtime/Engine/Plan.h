// SPDX-License-Identifier: Apache-2.0
//===- Plan.h - Decoded programs --------------------------------*- C++ -*-===//
//
// A loaded program: functions decoded into blocks of instructions whose
// operands are slots of the executing core. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_PLAN_H
#define SPYRE_LIB_RUNTIME_ENGINE_PLAN_H

#include "AccessTile.h"
#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Spyre/Runtime/Program/Program.h"
#include "Values.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spyre::runtime {

class Core;
class CoreTrace;
class Exchange;
class MemoryCheck;
class TimingRun;
struct Function;
struct RunState;

/// Thrown where a core ends because another one has failed.
struct CoreStopped {};

/// One decoded operation.
class Instr {
public:
  virtual ~Instr() = default;
  virtual void run(Core &core) const = 0;
  /// The same for several cores of one kernel, none of which waits for
  /// another. Instructions that can share work among them override this.
  virtual void runGang(Core *const *cores, int numCores) const;
  /// Without data, for the timing engine. The default fails.
  virtual void trace(Core &core) const;
  int location = 0;          ///< into Plan::locations
  std::vector<int> releases; ///< tensor slots whose last use this is
  /// Of those (and of loops fused into this one), the slots whose buffers are
  /// given back afterwards. fuseLoops() sets it.
  std::vector<int> frees;
  /// Tensor slots whose values it makes: data tiles that take room in LX.
  std::vector<std::pair<int, Elem>> defines;
  /// Released slots whose room in LX its results can take over.
  std::vector<int> replaces;
};

struct Block {
  std::vector<std::unique_ptr<Instr>> instrs;
  void run(Core &core) const;
  /// Instruction by instruction, each for all cores.
  void runGang(Core *const *cores, int numCores) const;
};

/// A tensor operand: its slot, and whether this is the value's last use, so
/// that its buffer may be overwritten.
struct TensorUse {
  int slot = -1;
  bool dies = false;
};

/// A constant tile; one buffer per numerics.
struct ConstantTensor {
  int slot;
  Elem elem;
  std::vector<int64_t> shape;
  std::vector<float> floats;  ///< float types, before rounding
  std::vector<int32_t> ints;  ///< up to 32 bits
  std::vector<int64_t> longs; ///< i64, index
  bool isSplat = false;       ///< one value in the vector
};

struct ConstantScalar {
  int slot;
  Elem elem;
  Scalar value; ///< floats before rounding
};

struct Function {
  std::string name;
  int location = 0;
  int64_t grid[3] = {1, 1, 1};
  bool hasGrid = false;
  int64_t numCores() const { return grid[0] * grid[1] * grid[2]; }
  int index = 0;
  int numScalars = 0, numTensors = 0, numViews = 0, numTiles = 0;
  std::vector<int> argSlots; ///< scalar slots of the arguments
  std::vector<ConstantScalar> scalars;
  std::vector<ConstantTensor> tensors;
  Block body;
  int64_t numOperations = 0; ///< those in bodies included
  bool hasCalls = false;
  bool accessesMemory = false;
  /// Holds a matrix product: neighbouring cores read the same tiles.
  bool hasContraction = false;
  /// Inter-tile produce ops; with any, the cores are resumable tasks.
  int numProduceOps = 0;
};

/// What --check=full says of a float operation that makes a NaN.
struct FloatOp {
  std::string name;           ///< "" if operations of several names lie there
  std::vector<int> producers; ///< locations of its operands
};

struct Plan {
  std::string name; ///< entry
  std::vector<std::string> locations;
  std::unordered_map<int, FloatOp> floatOps; ///< by location
  std::vector<int> argumentLocations;
  std::vector<std::unique_ptr<Function>> functions;
  Function *entry = nullptr;
  std::vector<ArgumentInfo> arguments;
};

/// Bytes [first, end) of device memory that the host has not written.
struct UndefinedRange {
  int64_t first, end;
  std::string note; ///< where they were allocated
};

/// Intervals of 128-byte sticks, inclusive.
using Sticks = std::vector<std::pair<int64_t, int64_t>>;

/// Sorts and joins; returns how many sticks there are.
uint64_t mergeSticks(Sticks &sticks);

/// Slots of one function on one worker; reused from core to core.
class Core {
public:
  Core(const Plan &plan, const Function &function, BufferPool *pool, bool ieee);
  ~Core();

  const Plan &plan;
  const Function &function;
  BufferPool *pool; ///< of the worker that runs this core now
  const bool ieee;
  RunState *run = nullptr;
  uint64_t epoch = 0; ///< of the run whose memory this core sees
  DeviceMemory *memory = nullptr;
  bool zeroOutside = false; ///< OutOfBounds::Zero
  Check check = Check::Bounds;
  MemoryCheck *shadow = nullptr; ///< Check::Full
  CoreTrace *tracer = nullptr;   ///< timing engine: no data
  TimingRun *timing = nullptr;
  int64_t coreId = 0;
  int64_t coordinate[3] = {0, 0, 0};
  Exchange *exchange = nullptr;
  std::vector<int64_t> produced; ///< runs of each produce op
  /// Timing engine: the last tile of each produce op.
  std::vector<std::vector<int64_t>> producedShapes;
  std::vector<int> producedSteps;

  std::vector<Scalar> scalars;
  std::vector<TensorVal> tensors;
  std::vector<ViewVal> views;
  std::vector<TileVal> tiles;
  /// Scratch of body programs, grown as needed.
  std::vector<Buffer *> registers;
  /// What follows the last large tile, if that followed another one.
  ReadAhead readAhead;
  void noteRead(const TileVal &tile);

  // What the core has in its LX. Device bytes of each tensor slot's data tile,
  // their sum, and the bytes that the kernel's views lie on.
  std::vector<int64_t> tileBytes;
  int64_t liveTileBytes = 0, viewBytes = 0;
  std::vector<std::pair<int64_t, int64_t>> viewRanges; ///< [first, end)
  /// After `instr`: fails if tiles and views exceeded the LX while it ran, when
  /// its results were live beside its operands. Afterwards what it releases is
  /// not.
  void countTiles(const Instr &instr);
  /// The tile in slot `to` is now the one of `use`.
  void moveTileBytes(int to, TensorUse use);
  void noteViewInLX(int64_t first, int64_t end);
  /// Device memory that the core has touched through each wide view.
  std::vector<std::pair<int64_t, int64_t>> spans;
  /// Fails if a core's accesses through one view lie too far apart.
  void noteSpan(int location, const TileVal &tile);

  /// Runs the body for one core with the given arguments.
  void execute(int64_t core, const Scalar *args);
  /// Sets coordinates and arguments without running.
  void enter(int64_t core, const Scalar *args);

  /// Throws spyre::Error "<location>: error: core N: <message>".
  [[noreturn]] void fail(int location, const std::string &message) const;
  /// The operation at `location` made a NaN of what `from` says; names the
  /// producers of its operands.
  [[noreturn]] void failWithNaN(int location, const std::string &from) const;

  void releaseTensor(int slot) {
    TensorVal &t = tensors[slot];
    if (t.buffer)
      pool->release(t.buffer);
    t.buffer = nullptr;
    t.data = nullptr;
    t.isPermuted = false;
    t.deferredTile = -1;
  }
  /// Gives `slot` a fresh buffer for `numElements` (shape set by the caller).
  void allocateTensor(int slot, Elem elem, int64_t numElements) {
    TensorVal &t = tensors[slot];
    Buffer *buffer = pool->get(size_t(numElements) * hostSize(elem));
    if (t.buffer)
      pool->release(t.buffer);
    t.buffer = buffer;
    t.data = buffer->data();
    t.isPermuted = false;
    t.deferredTile = -1;
  }
  /// Makes `to` the value of `use`: shares the buffer, or takes it over.
  void moveTensor(int to, TensorUse use) { moveTensor(to, use, *this); }
  /// From another core of the same gang (they share a pool).
  void moveTensor(int to, TensorUse use, Core &from) {
    TensorVal &target = tensors[to];
    TensorVal &source = from.tensors[use.slot];
    if (target.buffer)
      pool->release(target.buffer);
    target = source;
    if (!target.buffer)
      return;
    if (use.dies) {
      source.buffer = nullptr;
      source.data = nullptr;
    } else {
      pool->retain(target.buffer);
    }
  }
  /// Undefined tensors (tensor.empty) become zeros when their contents count,
  /// permuted ones row-major.
  void materialize(int slot, Elem elem) {
    TensorVal &t = tensors[slot];
    if (t.data && !t.isPermuted)
      return;
    if (t.data)
      return makeRowMajor(slot, elem);
    allocateTensor(slot, elem, t.numElements);
    std::memset(t.data, 0, size_t(t.numElements) * hostSize(elem));
  }
  void makeRowMajor(int slot, Elem elem);
  /// Gives all buffers back to the pool but those of constants.
  void releaseAll();
  float roundScalar(float value, Elem elem) const;

  /// [start, end) of the live device allocation around `address`; remembers
  /// the last ones. {0, 0} if there is none.
  std::pair<uint64_t, uint64_t> blockOf(uint64_t address);
  void forgetBlocks() { numBlocks = 0; }

private:
  static constexpr int kNumBlocks = 16;
  std::pair<uint64_t, uint64_t> blocks[kNumBlocks];
  int numBlocks = 0, nextBlock = 0;
  int64_t lastReadEnd = -1; ///< of the last large tile; bytes
};

/// A call of `callee` from a sequence (runs it over its grid).
void callFunction(Core &caller, const Function &callee, const Scalar *args);

struct Program::Impl {
  Plan plan;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<RunState>> idle;
  mutable bool hasReport = false;
  mutable TimingReport report;
  mutable DeviceSpec reportSpec;
  mutable std::vector<int64_t> reportKey;
  std::vector<Scalar>
  makeArguments(const std::vector<int64_t> &argValues) const;
  Impl();
  ~Impl();
  /// Throws Error if an array with a layout or a pool is not on a stick.
  void checkAlignment(const std::vector<int64_t> &argValues) const;
  /// The pools: scratch that nobody has written.
  std::vector<UndefinedRange>
  getPools(const std::vector<int64_t> &argValues) const;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_PLAN_H
