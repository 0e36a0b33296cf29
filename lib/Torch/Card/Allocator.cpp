// SPDX-License-Identifier: Apache-2.0
#include "../Python/Interpreter.h"
#include "Card.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

namespace spyre::pytorch {

namespace {

/// The pointer of an allocation: those that share a block are a unit of the
/// memory apart.
void *pointerOf(const Allocation &allocation) {
  return allocation.card->pointerOf(allocation.block->address +
                                    allocation.number *
                                        runtime::DeviceMemory::kBlockInBytes);
}

void freeAllocation(void *context) {
  auto *allocation = static_cast<Allocation *>(context);
  // A lock of the parent's may never be released in a fork.
  if (isInBadFork())
    return;
  Card &card = *allocation->card;
  std::shared_ptr<SharedBlock> block = allocation->block;
  if (std::lock_guard<std::mutex> lock(block->mutex); !block->rows.empty()) {
    block->rows.erase(allocation->number);
    {
      std::lock_guard<std::mutex> pointers(card.sharedPointersMutex);
      card.sharedPointers.erase(pointerOf(*allocation));
    }
    if (!block->rows.empty()) {
      delete allocation;
      return;
    }
  }
  uint64_t address = block->address;
  card.memory.free(address);
  auto bytes = static_cast<int64_t>(block->sizeInBytes);
  runtime::MemoryStats stats = card.memory.stats();
  c10::reportMemoryUsageToProfiler(card.pointerOf(address), -bytes,
                                   stats.allocatedBytes, stats.reservedBytes,
                                   c10::Device(kSpyre, card.index()));
  delete allocation;
}

class SpyreAllocator final : public c10::DeviceAllocator {
public:
  c10::DataPtr allocate(size_t sizeInBytes) override {
    return pytorch::allocate(currentDevice(), sizeInBytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void *destination, const void *source,
                 std::size_t count) const override {
    withoutGIL([] { drainAll(); });
    std::memcpy(translate(destination), translate(source), count);
  }

  bool initialized() override { return isInitialized(); }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i)
      card(i).memory.releaseUnused();
  }
  void recordStream(const c10::DataPtr &, c10::Stream) override {
    // Work holds its storages: a block that is freed is no longer in use.
  }

  c10::CachingDeviceAllocator::DeviceStats
  getDeviceStats(c10::DeviceIndex index) override {
    runtime::MemoryStats stats = card(index).memory.stats();
    c10::CachingDeviceAllocator::DeviceStats result;
    constexpr auto kAll =
        static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingAllocator::Stat bytes;
    bytes.current = static_cast<int64_t>(stats.allocatedBytes);
    bytes.peak = static_cast<int64_t>(stats.peakBytes);
    bytes.allocated = static_cast<int64_t>(stats.totalAllocatedBytes);
    bytes.freed = bytes.allocated - bytes.current;
    result.allocated_bytes[kAll] = bytes;
    result.active_bytes[kAll] = bytes;
    result.requested_bytes[kAll] = bytes;
    c10::CachingAllocator::Stat reserved;
    reserved.current = static_cast<int64_t>(stats.reservedBytes);
    reserved.peak = static_cast<int64_t>(stats.peakReservedBytes);
    reserved.allocated = reserved.peak;
    reserved.freed = reserved.peak - reserved.current;
    result.reserved_bytes[kAll] = reserved;
    result.num_ooms = static_cast<int64_t>(stats.numFailures);
    c10::CachingAllocator::Stat count;
    count.current = static_cast<int64_t>(stats.numAllocations);
    count.peak = count.current;
    count.allocated = static_cast<int64_t>(stats.totalAllocations);
    count.freed = static_cast<int64_t>(stats.totalFrees);
    result.allocation[kAll] = count;
    result.active[kAll] = count;
    result.num_device_alloc = count.allocated;
    result.num_device_free = count.freed;
    return result;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    card(index).memory.resetAccumulatedStats();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    card(index).memory.resetPeakStats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const runtime::DeviceMemory &memory = card(index).memory;
    size_t total = memory.capacityInBytes();
    return {total - memory.stats().allocatedBytes, total};
  }

private:
  static void *translate(const void *pointer) {
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i)
      if (card(i).ownsPointer(pointer))
        return card(i).memory.at(card(i).addressOf(pointer));
    return const_cast<void *>(pointer);
  }
};

SpyreAllocator theAllocator;

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &theAllocator)

} // namespace

c10::DataPtr allocate(c10::DeviceIndex index, uint64_t sizeInBytes) {
  c10::Device device(kSpyre, index);
  Card &owner = card(index);
  if (sizeInBytes == 0)
    return c10::DataPtr(nullptr, device);
  uint64_t address = 0;
  try {
    try {
      address = owner.memory.allocate(sizeInBytes);
    } catch (const runtime::OutOfMemory &) {
      if (owner.isIdle())
        throw;
      // Work that is queued holds memory until it has run.
      withoutGIL([&] { owner.drain(); });
      address = owner.memory.allocate(sizeInBytes);
    }
  } catch (const runtime::OutOfMemory &error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, device.str(), ": ", error.what());
  }
  auto *allocation =
      new Allocation{&owner, address, sizeInBytes,
                     std::make_shared<SharedBlock>(address, sizeInBytes)};
  c10::DataPtr pointer(owner.pointerOf(address), allocation, &freeAllocation,
                       device);
  runtime::MemoryStats stats = owner.memory.stats();
  c10::reportMemoryUsageToProfiler(
      pointer.get(), static_cast<int64_t>(sizeInBytes), stats.allocatedBytes,
      stats.reservedBytes, device);
  return pointer;
}

c10::DataPtr extend(const c10::DataPtr &pointer, int64_t rows, int64_t newRows,
                    int64_t first, uint64_t bytesPerRow) {
  const Allocation *own = allocationOf(pointer);
  if (!own)
    return {};
  SharedBlock &shared = *own->block;
  std::lock_guard<std::mutex> lock(shared.mutex);
  SharedBlock::Rows &ownRows =
      shared.rows.try_emplace(own->number, SharedBlock::Rows{0, rows})
          .first->second;
  ownRows.end = ownRows.begin + rows;
  SharedBlock::Rows added{ownRows.end, ownRows.begin + newRows};
  uint64_t number = 0;
  for (auto [user, used] : shared.rows) {
    if (used.begin < added.end && added.begin < used.end)
      return {};
    // In ascending order: the first number that is free.
    number += user == number;
  }
  if ((number + 1) * runtime::DeviceMemory::kBlockInBytes > shared.sizeInBytes)
    return {};
  auto allocation = std::make_unique<Allocation>(*own);
  uint64_t skipped = static_cast<uint64_t>(first) * bytesPerRow;
  allocation->address += skipped;
  allocation->sizeInBytes -= skipped;
  allocation->number = number;
  shared.rows[number] = {ownRows.begin + first, added.end};
  void *address = pointerOf(*allocation);
  {
    std::lock_guard<std::mutex> pointers(own->card->sharedPointersMutex);
    own->card->sharedPointers[address] = allocation->address;
  }
  return {address, allocation.release(), &freeAllocation, pointer.device()};
}

const Allocation *allocationOf(const c10::DataPtr &pointer) {
  return pointer.cast_context<Allocation>(&freeAllocation);
}

c10::Allocator *allocator() { return &theAllocator; }

} // namespace spyre::pytorch
