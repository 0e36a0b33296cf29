// SPDX-License-Identifier: Apache-2.0
//===- Core.h - One core of a running program -------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_CORE_H
#define SPYRE_LIB_RUNTIME_ENGINE_CORE_H

#include "../Program/Plan.h"
#include "AccessTile.h"
#include "KeptTiles.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "Spyre/Runtime/Program/Program.h"
#include "Values.h"

#include <algorithm>
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

/// Thrown to end a core because another one has failed.
struct CoreStopped {};

/// One core that runs a function: the values of the function's slots. A worker
/// uses the same object for one core after the other.
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
  HostWork work;      ///< of this object in that run
  DeviceMemory *memory = nullptr;
  bool zeroOutside = false; ///< OutOfBounds::Zero
  CheckLevel check = CheckLevel::Bounds;
  MemoryCheck *shadow = nullptr; ///< CheckLevel::Full
  CoreSteps *steps = nullptr;    ///< timing engine, which has no data
  TimingRun *timing = nullptr;
  int64_t coreId = 0;
  int64_t coordinate[3] = {0, 0, 0};
  Exchange *exchange = nullptr;
  std::vector<int64_t> produced; ///< how often each produce op has run
  /// Timing engine: shape and step of the last tile of each produce op.
  std::vector<std::vector<int64_t>> producedShapes;
  std::vector<int> producedSteps;

  /// How many iterations run as one (Stacks.h): as many tiles of its shape lie
  /// one behind another in each tensor's buffer, unless it is a constant.
  int64_t numStacked = 1;
  /// Whether what runs are the steps of stacks (KernelStacks), stores apart
  /// from the loops before them.
  bool isStacked = false;

  std::vector<Scalar> scalars;
  std::vector<TensorVal> tensors;
  std::vector<ViewVal> views;
  /// What the view in a slot was made from, if it is known.
  struct ViewKey {
    const Instr *instr = nullptr;
    uint64_t epoch = 0;
    int64_t offset = 0;
    bool operator==(const ViewKey &other) const {
      return instr == other.instr && epoch == other.epoch &&
             offset == other.offset;
    }
  };
  std::vector<ViewKey> viewKeys;
  /// Whether the views in these slots are known to be those of another core.
  bool hasSameViews(const std::vector<int> &slots, const Core &other) const {
    return std::all_of(slots.begin(), slots.end(), [&](int slot) {
      return viewKeys[slot].instr && viewKeys[slot] == other.viewKeys[slot];
    });
  }
  std::vector<TileVal> tiles;
  std::vector<KeptTiles> keptTiles;
  /// Sets `slot` to the host tile of a prepared tile.
  void loadTile(int slot, Elem elem, const TileVal &tile);
  /// To be called for each load of a tile, whether or not loadTile() follows.
  void noteLoad(const TileVal &tile) {
    if (tile.plan->keptTiles >= 0)
      keptTiles[tile.plan->keptTiles].noteRead();
  }
  /// The version of codes that the product reads where they are: the one that
  /// this read had before, if a loop reads the tile again, or else `known`.
  uint64_t versionOfCodes(const TileVal &tile, uint64_t known) {
    int kept = tile.plan->keptTiles;
    return kept >= 0 ? keptTiles[kept].numberCodes(tile, known) : known;
  }
  void forgetKeptTiles() {
    for (KeptTiles &kept : keptTiles)
      kept.leaveLoop(*pool);
  }
  /// To be called before a store to a prepared tile.
  void noteStore(const TileVal &tile) {
    for (KeptTiles &kept : keptTiles)
      kept.noteStore(tile, *pool);
  }
  /// Scratch of body programs, grown as needed.
  std::vector<Buffer *> registers;
  /// The memory behind the last large tile that was read, if that tile itself
  /// followed the one before it: it is probably read next.
  ReadAhead readAhead;
  void noteRead(const TileVal &tile);

  // Contents of the core's LX, in bytes in device formats: the data tile of
  // each tensor slot, the sum of these tiles, and the memory under the kernel's
  // views.
  std::vector<int64_t> tileBytes;
  int64_t liveTileBytes = 0, viewBytes = 0;
  std::vector<std::pair<int64_t, int64_t>> viewRanges; ///< [first, end)
  /// Called after `instr` has run. Fails if tiles and views did not fit in LX
  /// while the results and operands of `instr` were live together. Then stops
  /// counting the tiles that it releases.
  void countTiles(const Instr &instr);
  /// Counts the tile of `use` as the tile in slot `to`.
  void moveTileBytes(int to, TensorUse use);
  /// Counts bytes [first, end) of the LX as used by a view.
  void noteViewInLX(int64_t first, int64_t end);
  /// Per view slot: bytes [first, end) of device memory that the core has
  /// accessed through it, if the view is wide.
  std::vector<std::pair<int64_t, int64_t>> spans;
  /// Fails if a core's accesses through one view lie too far apart.
  void noteSpan(int location, const TileVal &tile);

  /// Runs the body for one core with the given arguments.
  void execute(int64_t core, const Scalar *args);
  /// Sets coordinates and arguments without running.
  void enter(int64_t core, const Scalar *args);

  /// Throws spyre::Error "<location>: error: core N: <message>".
  [[noreturn]] void fail(int location, const std::string &message) const;
  /// Fails because the operation `name` at `location` computed a NaN from
  /// operands that `from` describes. Notes say where these are computed.
  [[noreturn]] void failWithNaN(int location, const std::string &name,
                                const std::string &from) const;

  void releaseTensor(int slot) {
    TensorVal &t = tensors[slot];
    if (t.buffer)
      pool->release(t.buffer);
    t.buffer = nullptr;
    t.data = nullptr;
    t.isPermuted = false;
    t.deferredTile = -1;
    t.halves.reset();
  }
  /// Bytes of a host buffer for tiles of `numElements`.
  size_t bufferBytes(Elem elem, int64_t numElements) const {
    return size_t(numElements * numStacked) * hostSize(elem);
  }
  /// Gives `slot` a new buffer for tiles of `numElements`; the caller sets the
  /// shape.
  void allocateTensor(int slot, Elem elem, int64_t numElements) {
    TensorVal &t = tensors[slot];
    Buffer *buffer = pool->get(bufferBytes(elem, numElements));
    if (t.buffer)
      pool->release(t.buffer);
    t.buffer = buffer;
    t.data = buffer->data();
    t.isPermuted = false;
    t.deferredTile = -1;
  }
  /// Sets slot `to` to the value of `use`. Shares the buffer, or takes it over
  /// if this is the last use.
  void moveTensor(int to, TensorUse use) { moveTensor(to, use, *this); }
  /// The same from another core of the same gang (they share a pool).
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
  /// Prepares a tensor whose elements are about to be read: fills an undefined
  /// one (tensor.empty) with zeros, and makes a permuted one row-major.
  void materialize(int slot, Elem elem) {
    TensorVal &t = tensors[slot];
    if (t.data && !t.isPermuted)
      return;
    if (t.data)
      return makeRowMajor(slot, elem);
    allocateTensor(slot, elem, t.numElements);
    std::memset(t.data, 0, bufferBytes(elem, t.numElements));
  }
  void makeRowMajor(int slot, Elem elem);
  /// Gives all buffers except those of constants back to the pool.
  void releaseAll();
  float roundScalar(float value, Elem elem) const;

  /// The bytes [start, end) of the live device allocation that contains
  /// `address`, or {0, 0} if there is none. Caches the last results.
  std::pair<uint64_t, uint64_t> blockOf(uint64_t address);
  void forgetBlocks() { numBlocks = 0; }

private:
  static constexpr int kNumBlocks = 16;
  std::pair<uint64_t, uint64_t> blocks[kNumBlocks];
  int numBlocks = 0, nextBlock = 0;
  int64_t lastReadEnd = -1; ///< byte address behind the last large tile
};

/// A call of `callee` from a sequence (runs it over its grid).
void callFunction(Core &caller, const Function &callee, const Scalar *args);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_CORE_H
