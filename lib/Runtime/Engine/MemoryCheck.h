// SPDX-License-Identifier: Apache-2.0
//===- MemoryCheck.h - What --check=full watches of memory ------*- C++ -*-===//
//
// Records for every byte that kernels access who wrote it last, and who has
// read it since. This finds reads of memory that was never written, buffers in
// LX that overlap while both are live, and accesses of two cores that are not
// ordered. Each run has its own records, and then uses one host thread.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_MEMORYCHECK_H
#define SPYRE_LIB_RUNTIME_ENGINE_MEMORYCHECK_H

#include "Core.h"

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// Bytes [first, end) of device memory that the host has not written.
struct UndefinedRange {
  int64_t first, end;
  std::string note; ///< where they were allocated
};

class MemoryCheck {
public:
  /// `undefined`: device memory that the host has not written; it has written
  /// all other device memory.
  MemoryCheck(const Plan &plan, std::vector<UndefinedRange> undefined)
      : plan(plan), undefined(std::move(undefined)) {}

  /// Called when a kernel begins. All cores of earlier kernels have ended.
  void beginKernel(int64_t numCores);
  /// Called before a prepared tile is loaded or stored. Throws Error if that is
  /// not allowed.
  void access(Core &core, int location, const TileVal &tile, bool isStore);
  /// The same for a tile of a distributed view.
  void access(Core &core, int location, const TileVal &tile,
              const std::vector<const ViewVal *> &partitions, bool isStore);

  /// Tiles that cores send to each other order their accesses. send() returns
  /// the time up to which `core` knows of each core, and receive() adds that of
  /// the sender to the knowledge of the receiver.
  std::vector<uint32_t> send(int64_t core);
  void receive(int64_t core, const std::vector<uint32_t> &knowledge);

private:
  /// One load or store of a tile.
  struct Record {
    int location;
    int64_t core;
    uint32_t kernel, time;
    int region;
    int viewLocation;
  };
  /// The last accesses of a byte, as indices into `records` (0: none).
  struct Cell {
    uint32_t writer = 0;
    uint32_t readers[2] = {0, 0}; ///< since `writer`, on two different cores
    /// In LX: the write before `writer`, if it was made through another view
    /// that partly overlaps the view of `writer`.
    uint32_t overwritten = 0;
  };
  static constexpr int64_t kPageBytes = 4096;
  struct Page {
    Cell cells[kPageBytes];
  };
  /// The memory of a view (-1: device memory, otherwise the core that owns the
  /// LX), and its bytes [first, end).
  using Region = std::tuple<int64_t, int64_t, int64_t>;

  Cell &cellOf(int64_t space, int64_t address);
  uint32_t addRecord(Core &core, int location, const ViewVal &view);
  void touch(Core &core, uint32_t record, int64_t space, int64_t address,
             int64_t sizeInBytes, bool isStore);
  /// Called for a byte that no kernel has written: fails if the host has not
  /// written it either.
  void checkDefined(Core &core, const Record &mine, int64_t space,
                    int64_t address) const;
  /// Whether access `other`, on another core, may come before or after `mine`.
  bool isUnordered(const Record &mine, uint32_t other) const;
  /// The text of a note that says where access `index` is.
  std::string note(uint32_t index, const char *what) const;

  const Plan &plan;
  const std::vector<UndefinedRange> undefined;
  std::vector<Record> records = std::vector<Record>(1);
  std::map<Region, int> regionNumbers;
  std::vector<Region> regions;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  uint64_t lastKey = ~uint64_t(0);
  Page *lastPage = nullptr;
  uint32_t kernel = 0;
  /// Per core: the time up to which it knows of each core.
  std::vector<std::vector<uint32_t>> clocks;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_MEMORYCHECK_H
