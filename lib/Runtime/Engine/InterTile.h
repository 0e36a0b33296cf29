// SPDX-License-Identifier: Apache-2.0
//===- InterTile.h - Communication between cores ----------------*- C++ -*-===//
//
// Producing never blocks, receiving does. The cores of a kernel that
// communicates are resumable tasks, so a core may wait anywhere, inside loops
// too. What a consumer receives depends on core numbers only, never on timing.
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
#include <tuple>
#include <vector>

namespace spyre::runtime {

/// Which cores produce and consume for each group, in ascending order.
struct InterTileGroups {
  /// Per core: its group, or -1.
  std::vector<int> groupOf;
  std::vector<std::vector<int>> cores; ///< per group
  std::vector<int64_t> ids;            ///< per group: its id
};

/// A tile on its way between cores.
struct SentTile {
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;       ///< host representation
  std::vector<uint32_t> knowledge; ///< MemoryCheck::send
  int64_t numReceivers = 0;        ///< still to come; -1: unknown
};

/// Where the cores of one kernel call meet. Each is the task of its number.
class Exchange {
public:
  Exchange(int64_t numCores, ResumableTasks &tasks)
      : numCores(numCores), tasks(tasks) {}

  /// Offers the tile of `core` for the `instance`-th run of produce op `op`.
  void send(int op, int64_t instance, int64_t core, SentTile tile);
  /// Waits for a tile. Null: it will never come, because all other cores wait
  /// or have ended, or because one has failed.
  const SentTile *receive(int op, int64_t instance, int64_t core,
                          int64_t waiting);
  /// A receiver has done with a tile; after the last one it is gone.
  void release(int op, int64_t instance, int64_t core);
  /// Who waits for whom, if that is why nobody can go on; else "".
  std::string waitText();
  /// The calling core has ended; `failed`: with an error.
  void leave(bool failed);

private:
  using Key = std::tuple<int, int64_t, int64_t>;
  const int64_t numCores;
  ResumableTasks &tasks;
  std::mutex mutex;
  std::map<Key, std::unique_ptr<SentTile>> sent;
  std::map<int64_t, Key> awaited; ///< per waiting core
  int64_t numEnded = 0;
  std::string waits; ///< of the moment when no core could go on
  bool failed = false, stuck = false;

  void checkProgress();
};

class ProduceInstr : public Instr {
public:
  int op = 0; ///< number of this op in the function
  InterTileGroups producers;
  /// Per core: how often its tile is received; not if `isKept`, when a receiver
  /// may run more than once for a tile.
  std::vector<int64_t> numReceivers;
  bool isKept = false;
  int groupSlot = 0; ///< scalar slot of the region's argument
  Block body;
  int value = 0; ///< tensor slot of what the region yields
  Elem elem = Elem::F32;
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

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
  /// Per consuming core: the producers it hears, ascending.
  std::vector<std::vector<int>> heard;
  /// Part of each tile (splitDim >= 0), or of the combination.
  int splitDim = -1;
  int concatDim = -1;               ///< Concatenate
  std::vector<int64_t> resultShape; ///< static, -1 unknown
  // Reduce.
  TensorUse identity;
  int lhs = 0, rhs = 0;
  Block combiner;
  TensorUse combined;
  /// Of the result on a core that consumes nothing.
  std::vector<int64_t> shapeWithoutValue(Core &core) const;
  void run(Core &core) const override;
  void walk(Core &core) const override;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_INTERTILE_H
