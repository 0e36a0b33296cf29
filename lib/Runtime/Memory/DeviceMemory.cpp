// SPDX-License-Identifier: Apache-2.0
//===- DeviceMemory.cpp - Sparse device memory and scratchpads ------------===//

#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "Spyre/Support/Environment.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <sys/mman.h>

using namespace spyre;
using namespace spyre::runtime;

static uint8_t *tryReserve(uint64_t sizeInBytes) {
  void *p = mmap(nullptr, sizeInBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return nullptr;
  // Tiles touch many pages a little each. A wish only: ignore refusals.
  (void)madvise(p, sizeInBytes, MADV_HUGEPAGE);
  return static_cast<uint8_t *>(p);
}

static Error cannotReserve(uint64_t sizeInBytes, const char *what) {
  return Error("cannot reserve " + std::to_string(sizeInBytes) +
               " bytes of host address space for " + what);
}

static bool poisonsFreed() {
  static const bool isSet = environment::poisonFreed();
  return isSet;
}

DeviceMemory::DeviceMemory(const DeviceSpec &spec)
    : DeviceMemory(uint64_t(spec.deviceMemoryBytes), spec) {}

DeviceMemory::DeviceMemory(uint64_t capacityInBytes, const DeviceSpec &spec)
    : capacity(capacityInBytes), lxSize(spec.lxBytesPerCore),
      span(spec.maxSpanBytes) {
  // What frees memory cannot throw: a value that means nothing throws here.
  poisonsFreed();
  // Sizes around which sums of addresses stay far from overflow.
  constexpr uint64_t mostMemory = uint64_t(1) << 46;
  constexpr int64_t mostLX = int64_t(1) << 32;
  uint64_t most = std::min(mostMemory, uint64_t(spec.deviceMemoryBytes));
  if (capacity > most || capacity < kFirstAddress)
    throw Error("device memory capacity of " + std::to_string(capacity) +
                " bytes is outside " + std::to_string(kFirstAddress) + " to " +
                std::to_string(most));
  if (lxSize > mostLX)
    throw Error("LX of " + std::to_string(lxSize) + " bytes is more than the " +
                std::to_string(mostLX) + " that the device model can hold");
  uint64_t lxBytes = uint64_t(kMaxCores) * uint64_t(lxSize) + kFirstAddress;
  // The pages behind the end: kernels that read a whole vector past the last
  // element stay inside the mapping. A host that limits address space gets as
  // large a card as fits.
  constexpr uint64_t smallest = uint64_t(1) << 28;
  while (!(base = tryReserve(capacity + kFirstAddress))) {
    if (capacity / 2 < smallest)
      throw cannotReserve(capacity, "device memory");
    capacity /= 2;
  }
  lxBase = tryReserve(lxBytes);
  if (!lxBase) {
    munmap(base, capacity + kFirstAddress);
    throw cannotReserve(lxBytes, "LX");
  }
  insertFree(kFirstAddress,
             (capacity - kFirstAddress) / kBlockInBytes * kBlockInBytes);
}

DeviceMemory::~DeviceMemory() {
  munmap(base, capacity + kFirstAddress);
  munmap(lxBase, uint64_t(kMaxCores) * uint64_t(lxSize) + kFirstAddress);
}

void DeviceMemory::eraseFree(std::map<uint64_t, uint64_t>::iterator block) {
  auto range = freeBySize.equal_range(block->second);
  for (auto it = range.first; it != range.second; ++it)
    if (it->second == block->first) {
      freeBySize.erase(it);
      break;
    }
  freeBlocks.erase(block);
}

void DeviceMemory::insertFree(uint64_t start, uint64_t size) {
  if (size == 0)
    return;
  auto next = freeBlocks.lower_bound(start);
  if (next != freeBlocks.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      size += previous->second;
      eraseFree(previous);
    }
  }
  if (next != freeBlocks.end() && start + size == next->first) {
    size += next->second;
    eraseFree(next);
  }
  freeBlocks[start] = size;
  freeBySize.emplace(size, start);
}

uint64_t DeviceMemory::allocate(uint64_t sizeInBytes) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t wanted = std::max<uint64_t>(sizeInBytes, 1);
  uint64_t largest = freeBySize.empty() ? 0 : freeBySize.rbegin()->first;
  if (wanted > largest) {
    ++statistics.numFailures;
    // " out of memory." is how libraries that then try less (accelerate) know
    // this error, which they share with other devices.
    throw OutOfMemory("device out of memory. " + std::to_string(sizeInBytes) +
                      " bytes requested, largest free block has " +
                      std::to_string(largest) + " of " +
                      std::to_string(capacity) + " bytes");
  }
  wanted = (wanted + kBlockInBytes - 1) / kBlockInBytes * kBlockInBytes;
  auto found = freeBySize.lower_bound(wanted);
  uint64_t start = found->second, size = found->first;
  // Equal sizes: lowest address, so that runs are reproducible.
  for (auto it = found; it != freeBySize.end() && it->first == size; ++it)
    start = std::min(start, it->second);
  eraseFree(freeBlocks.find(start));
  insertFree(start + wanted, size - wanted);
  liveBlocks[start] = wanted;
  statistics.reservedBytes =
      std::max(statistics.reservedBytes, start + wanted - kFirstAddress);
  statistics.peakReservedBytes =
      std::max(statistics.peakReservedBytes, statistics.reservedBytes);
  statistics.allocatedBytes += wanted;
  statistics.peakBytes =
      std::max(statistics.peakBytes, statistics.allocatedBytes);
  ++statistics.numAllocations;
  ++statistics.totalAllocations;
  statistics.totalAllocatedBytes += wanted;
  return start;
}

void DeviceMemory::free(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = liveBlocks.find(address);
  if (it == liveBlocks.end())
    throw Error("free of device address " + std::to_string(address) +
                ", which starts no live block");
  statistics.allocatedBytes -= it->second;
  --statistics.numAllocations;
  ++statistics.totalFrees;
  uint64_t size = it->second;
  if (poisonsFreed())
    std::memset(at(address), 0xFF, size);
  liveBlocks.erase(it);
  insertFree(address, size);
}

uint64_t DeviceMemory::sizeOf(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = liveBlocks.find(address);
  return it == liveBlocks.end() ? 0 : it->second;
}

std::pair<uint64_t, uint64_t> DeviceMemory::blockOf(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = liveBlocks.upper_bound(address);
  if (it == liveBlocks.begin())
    return {0, 0};
  --it;
  if (address >= it->first + it->second)
    return {0, 0};
  return {it->first, it->first + it->second};
}

MemoryStats DeviceMemory::stats() const {
  std::lock_guard<std::mutex> lock(mutex);
  return statistics;
}

std::vector<MemoryBlock> DeviceMemory::blocks() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<MemoryBlock> result;
  uint64_t end = kFirstAddress + statistics.reservedBytes;
  auto live = liveBlocks.begin();
  for (uint64_t address = kFirstAddress; address < end;) {
    if (live != liveBlocks.end() && live->first == address) {
      result.push_back({address, live->second, true});
      ++live;
    } else {
      uint64_t next = live == liveBlocks.end() ? end : live->first;
      result.push_back({address, next - address, false});
    }
    address += result.back().sizeInBytes;
  }
  return result;
}

void DeviceMemory::resetPeakStats() {
  std::lock_guard<std::mutex> lock(mutex);
  statistics.peakBytes = statistics.allocatedBytes;
  statistics.peakReservedBytes = statistics.reservedBytes;
}

void DeviceMemory::resetAccumulatedStats() {
  std::lock_guard<std::mutex> lock(mutex);
  statistics.totalAllocations = 0;
  statistics.totalAllocatedBytes = 0;
  statistics.totalFrees = 0;
  statistics.numFailures = 0;
}

void DeviceMemory::releaseUnused() {
  std::lock_guard<std::mutex> lock(mutex);
  constexpr uint64_t page = 4096;
  for (auto [start, size] : freeBlocks) {
    uint64_t first = (start + page - 1) / page * page;
    uint64_t last = (start + size) / page * page;
    if (last > first)
      madvise(base + first, last - first, MADV_DONTNEED);
  }
  uint64_t end = kFirstAddress;
  if (!liveBlocks.empty())
    end = liveBlocks.rbegin()->first + liveBlocks.rbegin()->second;
  statistics.reservedBytes = end - kFirstAddress;
}
