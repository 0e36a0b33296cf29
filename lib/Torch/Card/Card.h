// SPDX-License-Identifier: Apache-2.0
//===- Card.h - The simulated cards behind device="spyre" -------*- C++ -*-===//
//
// One Card per device index: its memory model and the range of host addresses
// that its tensors' data_ptr() lie in. That range is never accessible, so a
// stray access by host code faults instead of reading wrong data.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_CARD_CARD_H
#define SPYRE_LIB_TORCH_CARD_CARD_H

#include "Spyre/Runtime/Launch/Stream.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace spyre::pytorch {

inline constexpr c10::DeviceType kSpyre = c10::DeviceType::PrivateUse1;

class Card {
public:
  explicit Card(c10::DeviceIndex index);

  /// Stream ids: 0 is the default stream, 1 to 32 are the pool of low, 33 to
  /// 64 that of high priority.
  static constexpr c10::StreamId kPoolSize = 32;
  static constexpr c10::StreamId kNumStreams = 1 + 2 * kPoolSize;

  runtime::DeviceMemory memory;
  runtime::CardClock clock;
  /// When the link to the host, and what else copies outside of programs, is
  /// free; for profilers.
  runtime::CardClock link;
  /// Held while a program runs on the card.
  std::mutex executionMutex;

  c10::DeviceIndex index() const { return cardIndex; }
  /// The pointer that data_ptr() returns for a device byte address.
  void *pointerOf(uint64_t address) const { return reserved + address; }
  bool ownsPointer(const void *pointer) const;
  /// Pointers to shared blocks that are not pointerOf() their address.
  std::map<const void *, uint64_t> sharedPointers;
  std::mutex sharedPointersMutex;
  /// The device byte address that a pointer of the card means.
  uint64_t addressOf(const void *pointer);

  /// Throws for an id that no stream has.
  runtime::Stream &stream(c10::StreamId id);
  /// The next stream of a pool, round robin; priority 0 is low.
  c10::StreamId nextStream(int priority);
  bool isIdle();
  /// Waits for all streams, then throws the failure of one of them, if any.
  void synchronize();
  /// Waits for all streams.
  void drain();
  /// Forgets a failure that is being reported.
  void forget(const runtime::FailureRef &failure);

private:
  std::array<std::unique_ptr<runtime::Stream>, kNumStreams> streams;
  std::mutex streamsMutex;
  std::atomic<uint32_t> nextLow = 0, nextHigh = 0;
  c10::DeviceIndex cardIndex;
  uint8_t *reserved;
};

/// Number of cards: AIU_WORLD_SIZE (1 to 8, by default 1), of which
/// SPYRE_DEVICES may choose some by their numbers. FLEX_DEVICE is PF, VF or
/// MOCK. Throws spyre::Error that names a wrong variable.
c10::DeviceIndex deviceCount();
/// As deviceCount(), but 0 where that throws.
c10::DeviceIndex deviceCountOrZero() noexcept;

/// Index of the calling thread's current card.
c10::DeviceIndex currentDevice() noexcept;
void setCurrentDevice(c10::DeviceIndex index);
void setCurrentDeviceUnchecked(c10::DeviceIndex index) noexcept;

/// The index that `device` means for the calling thread: its own, or the
/// current one. Throws for an index that no card has.
c10::DeviceIndex resolveIndex(c10::Device device);

/// The card of an index; made on first use. Throws for an invalid index, and in
/// a process that was forked off one that had a card.
Card &card(c10::DeviceIndex index);
/// Whether any card has been made.
bool isInitialized() noexcept;
/// Whether this process was forked off one that had made a card: threads and
/// memory of the device model did not come along.
bool isInBadFork() noexcept;
/// Waits for all work of all cards.
void drainAll();

/// The calling thread's current stream of a card.
c10::StreamId currentStream(c10::DeviceIndex index) noexcept;
void setCurrentStream(c10::DeviceIndex index, c10::StreamId id) noexcept;

/// A block that several pointers may share. Each of those has some rows of what
/// lies in it, and a number by which its address on the host differs from the
/// others'.
struct SharedBlock {
  /// Rows from `begin` on, those from `end` on not.
  struct Rows {
    int64_t begin, end;
  };
  SharedBlock(uint64_t address, uint64_t sizeInBytes)
      : address(address), sizeInBytes(sizeInBytes) {}

  const uint64_t address, sizeInBytes;
  std::mutex mutex;
  /// Of each number; empty if nothing was ever shared.
  std::map<uint64_t, Rows> rows;
};

/// One block of device memory, or what is shared of one: the context of a spyre
/// c10::DataPtr. Nothing of it changes, as threads may grow others from one
/// tensor, and read it, at once.
struct Allocation {
  Card *card;
  uint64_t address;     ///< of the first row
  uint64_t sizeInBytes; ///< from there to the end of the block
  std::shared_ptr<SharedBlock> block;
  uint64_t number = 0;

  bool isShared() const { return block.use_count() > 1; }
};

/// A block of at least `sizeInBytes`; 0 bytes give a null pointer that still
/// names the device. Throws c10::OutOfMemoryError.
c10::DataPtr allocate(c10::DeviceIndex index, uint64_t sizeInBytes);

/// A pointer into the same block, for what has the `rows` of this one from
/// `first` on, and those behind them up to `newRows`, all counted from the
/// first row of this one. Null if another pointer has some of the new ones,
/// too. Everything in the block stays as it is while any pointer to it is left.
c10::DataPtr extend(const c10::DataPtr &pointer, int64_t rows, int64_t newRows,
                    int64_t first = 0, uint64_t bytesPerRow = 0);

/// The allocation behind a data pointer, or null.
const Allocation *allocationOf(const c10::DataPtr &pointer);

/// The allocator registered with PyTorch.
c10::Allocator *allocator();

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_CARD_CARD_H
