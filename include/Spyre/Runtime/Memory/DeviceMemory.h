// SPDX-License-Identifier: Apache-2.0
//===- DeviceMemory.h - Sparse device memory and scratchpads ----*- C++ -*-===//
//
// The memories of one simulated card: device memory, backed by the host only
// where it is touched, and one LX scratchpad per core. Sizes: DeviceSpec; the
// 128-byte unit: spec/hardware.md; first address 0x10000: spec/ktir.md, "KC
// argument ABI".
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_MEMORY_DEVICEMEMORY_H
#define SPYRE_RUNTIME_MEMORY_DEVICEMEMORY_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Support/Error.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// Thrown by DeviceMemory::allocate; the message has the requested size and
/// the largest free block, in bytes.
class OutOfMemory : public Error {
public:
  using Error::Error;
};

struct MemoryStats {
  uint64_t allocatedBytes = 0; ///< in live allocations, rounded to 128 bytes
  uint64_t peakBytes = 0;      ///< largest allocatedBytes since the last reset
  /// Up to the highest address in use since start or releaseUnused(): what the
  /// host backs, free blocks kept for reuse included.
  uint64_t reservedBytes = 0;
  uint64_t peakReservedBytes = 0; ///< likewise, since the last reset
  uint64_t numFailures = 0;       ///< allocations that threw OutOfMemory
  uint64_t numAllocations = 0;    ///< live allocations
  uint64_t totalAllocations = 0;  ///< since construction or reset
  uint64_t totalAllocatedBytes = 0;
  uint64_t totalFrees = 0;
};

struct MemoryBlock {
  uint64_t address, sizeInBytes;
  bool isLive;
};

/// Device memory plus LX of one card. allocate / free / stats may be called
/// from any thread; at() needs no lock.
class DeviceMemory {
public:
  static constexpr uint64_t kFirstAddress = 0x10000;
  static constexpr uint64_t kBlockInBytes = 128;
  static constexpr int64_t kMaxCores = 1024;

  /// With the device's deviceMemoryBytes, or less where the host limits
  /// address space: see capacityInBytes(). Throws Error below 256 MiB and for
  /// sizes that no host can map.
  explicit DeviceMemory(const DeviceSpec &spec = DeviceSpec());
  /// Allocations may use addresses below `capacityInBytes` only (tests,
  /// per-process limits); throws Error if that exceeds the device's memory.
  explicit DeviceMemory(uint64_t capacityInBytes,
                        const DeviceSpec &spec = DeviceSpec());
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Host pointer of a device byte address; unchecked.
  uint8_t *at(uint64_t address) const { return base + address; }

  /// Byte address of a new block of at least `sizeInBytes` (0 counts as 1),
  /// a multiple of 128. Best fit; contents undefined. Throws OutOfMemory.
  uint64_t allocate(uint64_t sizeInBytes);
  /// Frees a block that allocate() returned. Throws Error for others. With
  /// SPYRE_POISON_FREED=1 its bytes become 0xFF: infinity as DL16, NaN as fp32.
  void free(uint64_t address);
  /// Size in bytes (a multiple of 128) of the live block that starts at
  /// `address`, or 0.
  uint64_t sizeOf(uint64_t address) const;
  /// The live block that holds `address` as [start, end), or {0, 0}.
  std::pair<uint64_t, uint64_t> blockOf(uint64_t address) const;

  MemoryStats stats() const;
  /// Blocks up to the highest reserved address, in order.
  std::vector<MemoryBlock> blocks() const;
  void resetPeakStats();
  void resetAccumulatedStats();
  uint64_t capacityInBytes() const { return capacity; }
  /// LX bytes of one core.
  int64_t lxSizeInBytes() const { return lxSize; }
  /// Device memory that one core addresses through one view.
  int64_t spanInBytes() const { return span; }
  /// Gives host pages of free blocks back; what is reserved shrinks to the
  /// last live block.
  void releaseUnused();

  /// LX scratchpad of one core (0 <= core < kMaxCores), lxSizeInBytes() long.
  uint8_t *lx(int64_t core) const { return lxBase + core * lxSize; }

private:
  uint8_t *base = nullptr;
  uint8_t *lxBase = nullptr;
  uint64_t capacity;
  int64_t lxSize, span;
  mutable std::mutex mutex;
  std::map<uint64_t, uint64_t> freeBlocks;      // start -> size
  std::multimap<uint64_t, uint64_t> freeBySize; // size -> start
  std::map<uint64_t, uint64_t> liveBlocks;      // start -> size
  MemoryStats statistics;

  void insertFree(uint64_t start, uint64_t size);
  void eraseFree(std::map<uint64_t, uint64_t>::iterator block);
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_MEMORY_DEVICEMEMORY_H
