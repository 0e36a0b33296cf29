// SPDX-License-Identifier: Apache-2.0
#include "Card.h"

#include <c10/util/Exception.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>

namespace spyre::device {

namespace {

constexpr c10::DeviceIndex kMaxCards = 64;

thread_local c10::DeviceIndex currentIndex = 0;

c10::DeviceIndex readDeviceCount() {
  const char *text = std::getenv("AIU_WORLD_SIZE");
  if (!text || !*text)
    return 1;
  char *end = nullptr;
  errno = 0;
  long value = std::strtol(text, &end, 10);
  if (*end != '\0' || errno != 0 || value < 1 || value > kMaxCards)
    throw Error("environment variable AIU_WORLD_SIZE: expected a number of "
                "cards from 1 to " +
                std::to_string(kMaxCards) + ", found '" + text + "'");
  return static_cast<c10::DeviceIndex>(value);
}

} // namespace

Card::Card(c10::DeviceIndex index) : cardIndex(index) {
  void *range =
      ::mmap(nullptr, runtime::DeviceMemory::kCapacityInBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw Error(std::string("cannot reserve addresses for a spyre device: ") +
                std::strerror(errno));
  reserved = static_cast<uint8_t *>(range);
}

bool Card::ownsPointer(const void *pointer) const {
  auto *byte = static_cast<const uint8_t *>(pointer);
  return byte >= reserved &&
         byte < reserved + runtime::DeviceMemory::kCapacityInBytes;
}

c10::DeviceIndex deviceCount() {
  static const c10::DeviceIndex count = readDeviceCount();
  return count;
}

c10::DeviceIndex deviceCountOrZero() noexcept {
  try {
    return deviceCount();
  } catch (...) {
    return 0;
  }
}

c10::DeviceIndex currentDevice() noexcept { return currentIndex; }

static void checkIndex(c10::DeviceIndex index) {
  TORCH_CHECK_INDEX(index >= 0 && index < deviceCount(), "spyre device index ",
                    static_cast<int>(index), " is out of range: there ",
                    deviceCount() == 1 ? "is " : "are ",
                    static_cast<int>(deviceCount()),
                    deviceCount() == 1 ? " device" : " devices");
}

void setCurrentDevice(c10::DeviceIndex index) {
  checkIndex(index);
  currentIndex = index;
}

void setCurrentDeviceUnchecked(c10::DeviceIndex index) noexcept {
  if (index >= 0)
    currentIndex = index;
}

c10::DeviceIndex resolveIndex(c10::Device device) {
  c10::DeviceIndex index = device.has_index() ? device.index() : currentIndex;
  checkIndex(index);
  return index;
}

Card &card(c10::DeviceIndex index) {
  checkIndex(index);
  // Never destroyed: tensors may outlive static destruction.
  static auto *cards = new std::array<std::unique_ptr<Card>, kMaxCards>;
  static auto *flags = new std::array<std::once_flag, kMaxCards>;
  std::call_once((*flags)[index],
                 [&] { (*cards)[index] = std::make_unique<Card>(index); });
  return *(*cards)[index];
}

} // namespace spyre::device
