// SPDX-License-Identifier: Apache-2.0
//===- MemoryCheck.h - What --check=full watches of memory ------*- C++ -*-===//
//
// A shadow of every byte that kernels touch: who wrote it last, who has read it
// since. With it are found reads of memory that nobody wrote, buffers in LX
// that overlap while both are live, and accesses of two cores that nothing
// orders. One shadow per run, which uses one host thread.
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
  /// `undefined`: what the host has not written of device memory; the rest it
  /// has.
  MemoryCheck(const Plan &plan, std::vector<UndefinedRange> undefined)
      : plan(plan), undefined(std::move(undefined)) {}

  /// A kernel begins; all cores of the ones before have ended.
  void beginKernel(int64_t numCores);
  /// A prepared tile is about to be loaded or stored. Throws Error.
  void access(Core &core, int location, const TileVal &tile, bool isStore);
  /// The same for a tile of a distributed view.
  void access(Core &core, int location, const TileVal &tile,
              const std::vector<const ViewVal *> &partitions, bool isStore);

  /// What `core` knows when it sends a tile, and learns from one it receives.
  std::vector<uint32_t> send(int64_t core);
  void receive(int64_t core, const std::vector<uint32_t> &knowledge);

private:
  /// One access of one tile.
  struct Record {
    int location;
    int64_t core;
    uint32_t kernel, time;
    int region;
    int viewLocation;
  };
  /// Indices into `records`, 0: none.
  struct Cell {
    uint32_t writer = 0;
    uint32_t readers[2] = {0, 0}; ///< since then, of two different cores
    /// LX: the write through another view that `writer` partly overlaps.
    uint32_t overwritten = 0;
  };
  static constexpr int64_t kPageBytes = 4096;
  struct Page {
    Cell cells[kPageBytes];
  };
  /// Memory (-1: device memory, else whose LX) and the bytes of a view.
  using Region = std::tuple<int64_t, int64_t, int64_t>;

  Cell &cellOf(int64_t space, int64_t address);
  uint32_t addRecord(Core &core, int location, const ViewVal &view);
  void touch(Core &core, uint32_t record, int64_t space, int64_t address,
             int64_t sizeInBytes, bool isStore);
  /// Of a byte without a writer: fails if the host has not written it either.
  void checkDefined(Core &core, const Record &mine, int64_t space,
                    int64_t address) const;
  bool isUnordered(const Record &mine, uint32_t other) const;
  /// Text of where record `index` was made, as a note.
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
