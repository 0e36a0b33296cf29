// SPDX-License-Identifier: Apache-2.0
//===- Card.h - The simulated cards behind device="spyre" -------*- C++ -*-===//
//
// One Card per device index: its memory model and the range of host addresses
// that its tensors' data_ptr() lie in. That range is never accessible, so a
// stray access by host code faults instead of reading wrong data.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_CARD_H
#define SPYRE_LIB_TORCH_CARD_H

#include "Spyre/Runtime/DeviceMemory.h"

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace spyre::device {

inline constexpr c10::DeviceType kSpyre = c10::DeviceType::PrivateUse1;

class Card {
public:
  explicit Card(c10::DeviceIndex index);

  runtime::DeviceMemory memory;
  /// Held while a program runs on the card.
  std::mutex executionMutex;

  c10::DeviceIndex index() const { return cardIndex; }
  /// What data_ptr() shows for a device byte address.
  void *pointerOf(uint64_t address) const { return reserved + address; }
  bool ownsPointer(const void *pointer) const;

private:
  c10::DeviceIndex cardIndex;
  uint8_t *reserved;
};

/// Number of cards: AIU_WORLD_SIZE, by default 1. Throws spyre::Error if the
/// variable is not a number from 1 to 64.
c10::DeviceIndex deviceCount();
/// The same; 0 where deviceCount() throws.
c10::DeviceIndex deviceCountOrZero() noexcept;

/// Index of the calling thread's current card.
c10::DeviceIndex currentDevice() noexcept;
void setCurrentDevice(c10::DeviceIndex index);
void setCurrentDeviceUnchecked(c10::DeviceIndex index) noexcept;

/// The index that `device` means for the calling thread: its own, or the
/// current one. Throws for an index that no card has.
c10::DeviceIndex resolveIndex(c10::Device device);

/// The card of an index; made on first use. Throws for an invalid index.
Card &card(c10::DeviceIndex index);

/// One block of device memory, the context of a spyre c10::DataPtr.
struct Allocation {
  Card *card;
  uint64_t address;
  uint64_t sizeInBytes;
};

/// A block of at least `sizeInBytes`; 0 bytes give a null pointer that still
/// names the device. Throws c10::OutOfMemoryError.
c10::DataPtr allocate(c10::DeviceIndex index, uint64_t sizeInBytes);

/// The allocation behind a data pointer, or null.
const Allocation *allocationOf(const c10::DataPtr &pointer);

/// The allocator registered with PyTorch.
c10::Allocator *allocator();

} // namespace spyre::device

#endif // SPYRE_LIB_TORCH_CARD_H
