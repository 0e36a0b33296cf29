// SPDX-License-Identifier: Apache-2.0
//===- Core.h - One core of a running program -------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_CORE_H
#define SPYRE_LIB_RUNTIME_ENGINE_CORE_H

#include "../Program/Plan.h"
#include "AccessTile.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "Spyre/Runtime/Program/Program.h"
#include "Values.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace spyre::runtime {

class CoreSteps;
class Exchange;
class MemoryCheck;
class TimingRun;
struct RunState;

/// Thrown where a core ends because another one has failed.
struct CoreStopped {};

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
  CheckLevel check = CheckLevel::Bounds;
  MemoryCheck *shadow = nullptr; ///< CheckLevel::Full
  CoreSteps *steps = nullptr;    ///< timing engine: no data
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

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_CORE_H
