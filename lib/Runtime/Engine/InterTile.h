// SPDX-License-Identifier: Apache-2.0
//===- InterTile.h - Communication between cores ----------------*- C++ -*-===//
//
// Producing never blocks, receiving does. A core that is far ahead of those
// that receive its tiles lets them run first, so that few tiles are on their
// way. The cores of a kernel that communicates are resumable tasks, so a core
// can wait anywhere, also inside loops. The tiles that a consumer receives
// depend on core numbers only, never on timing.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_INTERTILE_H
#define SPYRE_LIB_RUNTIME_ENGINE_INTERTILE_H

#include "../Program/Plan.h"
#include "Core.h"
#include "ResumableTasks.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace spyre::runtime {

/// Which cores produce and consume for each group, in ascending order.
struct InterTileGroups {
  /// Per core: its group, or -1.
  std::vector<int> groupOf;
  std::vector<std::vector<int>> cores; ///< per group
  std::vector<int64_t> ids;            ///< per group: its id
};

/// A tile that a core has sent and that others receive.
struct SentTile {
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;       ///< host representation
  std::vector<uint32_t> knowledge; ///< MemoryCheck::send
  int64_t numReceivers = 0;        ///< that have not released it; -1: unknown
};

/// Passes tiles between the cores of one kernel call. The task of a core has
/// the number of the core.
class Exchange {
public:
  Exchange(int64_t numCores, ResumableTasks &tasks)
      : tasks(tasks), outboxes(static_cast<size_t>(numCores)) {}

  /// Offers the tile of `core` for the `instance`-th run of produce op `op`.
  /// Called by the core's task.
  void send(int op, int64_t instance, int64_t core, SentTile tile);
  /// Core `waiting` waits for a tile from `core`. Returns null if it will never
  /// come, because all other cores wait or have ended, or because one has
  /// failed.
  const SentTile *receive(int op, int64_t instance, int64_t core,
                          int64_t waiting);
  /// Called when a receiver no longer needs a tile. The last receiver deletes
  /// it.
  void release(int op, int64_t instance, int64_t core);
  /// Which core waits for which, if the cores wait for each other forever;
  /// otherwise "".
  std::string waitText();
  /// Called by a core when it ends; `failed` says whether with an error.
  void leave(bool failed);

private:
  /// A produce op and which of its runs.
  using Key = std::pair<int, int64_t>;
  /// What one core has sent. Each has its own lock: with one for all, threads
  /// wait for it more than they work.
  struct Outbox {
    std::mutex mutex;
    std::map<Key, std::unique_ptr<SentTile>> tiles;
    std::vector<int64_t> waiting; ///< cores to wake when a tile comes
    int64_t numUnreleased = 0;    ///< tiles that are still to be received
  };
  ResumableTasks &tasks;
  std::vector<Outbox> outboxes; ///< per core
  std::mutex mutex; ///< guards what follows; an outbox may be locked inside
  struct Awaited {
    int64_t core;
    Key key;
  };
  std::map<int64_t, Awaited> awaited; ///< per waiting core: the tile
  int64_t numEnded = 0;
  std::string waits; ///< waitText(), set once no core can continue
  bool failed = false, stuck = false;

  /// The tile, or null if it is not there; `waiting` is then woken later.
  const SentTile *find(int64_t core, Key key, int64_t waiting);
  bool isSent(const Awaited &tile);
  void checkProgress();
};

class ProduceInstr : public Instr {
public:
  int op = 0; ///< number of this op in the function
  InterTileGroups producers;
  /// Per core: how often its tile is received. Not used with `isKept`, where a
  /// receiver may run more than once for a tile.
  std::vector<int64_t> numReceivers;
  bool isKept = false;
  int groupSlot = 0; ///< scalar slot of the region's argument
  Block body;
  int value = 0; ///< tensor slot of what the region yields
  Elem elem = Elem::F32;
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

struct ReceivedTiles;

/// reduce, reduce_scatter, consume, gather, scatter and all_to_all.
class ReceiveInstr : public Instr {
public:
  enum Kind : uint8_t { Reduce, Concatenate, Single };
  Kind kind = Single;
  std::string name; ///< for messages
  int dst = 0;
  int op = 0; ///< the produce op
  Elem elem = Elem::F32;
  InterTileGroups producers, consumers;
  /// Per consuming core: the cores whose tiles it receives, in ascending order.
  std::vector<std::vector<int>> heard;
  /// The dimension along which a consumer takes its part of each tile or of
  /// their combination; -1: it takes all.
  int splitDim = -1;
  int concatDim = -1;               ///< Concatenate
  std::vector<int64_t> resultShape; ///< static, -1 unknown
  // Reduce.
  TensorUse identity;
  int lhs = 0, rhs = 0;
  Block combiner;
  TensorUse combined;
  void run(Core &core) const override;
  void walk(Core &core) const override;

private:
  /// One of the equal parts along splitDim that consumers take; all of a tile
  /// if there is one part.
  struct Part {
    int64_t index, count;
  };
  bool hasStaticShape() const;
  /// The shape of the result on a core that consumes nothing.
  std::vector<int64_t> shapeWithoutValue(Core &core) const;
  /// The shape of the tiles that a core receives, as the timing engine sees it.
  std::vector<int64_t> shapeOfTiles(Core &core, int64_t numParts) const;
  /// Waits for the tiles; those that came are in `received` if it throws, too.
  void receive(Core &core, ReceivedTiles &received) const;
  /// What becomes the result: the combined tiles, or the tiles side by side.
  void reduce(Core &core, const ReceivedTiles &received, Part part) const;
  void concatenate(Core &core, const ReceivedTiles &received, Part part) const;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_INTERTILE_H
