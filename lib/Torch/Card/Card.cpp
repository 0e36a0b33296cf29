// SPDX-License-Identifier: Apache-2.0
#include "Card.h"
#include "../Python/RuntimeLog.h"

#include "Spyre/Support/Environment.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <set>
#include <string>
#include <sys/mman.h>

namespace spyre::pytorch {

namespace {

constexpr c10::DeviceIndex kMaxCards = 8;

/// Negative until the thread sets one.
thread_local c10::DeviceIndex currentIndex = -1;
thread_local std::array<c10::StreamId, kMaxCards> currentStreams{};
std::atomic<bool> anyCard = false, hasForked = false;

c10::DeviceIndex readDeviceCount() {
  // Both kinds are the device model; an unknown kind is an error.
  environment::flexDevice();
  environment::localRank();
  environment::inductorSubprocess();
  std::optional<int64_t> size = environment::worldSize();
  // A launcher of several processes means a card for each.
  if (std::optional<int64_t> processes = environment::localWorldSize();
      processes && !size)
    size = std::min<int64_t>(*processes, kMaxCards);
  std::vector<int64_t> chosen = environment::devices();
  if (chosen.empty())
    return static_cast<c10::DeviceIndex>(size.value_or(1));
  std::set<int64_t> devices(chosen.begin(), chosen.end());
  return static_cast<c10::DeviceIndex>(std::min<int64_t>(
      size.value_or(kMaxCards), static_cast<int64_t>(devices.size())));
}

/// What readDeviceCount() refuses counts as not set.
bool isInductorSubprocess() noexcept {
  static const bool isSet = [] {
    try {
      return environment::inductorSubprocess();
    } catch (const Error &) {
      return false;
    }
  }();
  return isSet;
}

} // namespace

Card::Card(c10::DeviceIndex index) : cardIndex(index) {
  void *range = ::mmap(nullptr, memory.capacityInBytes(), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw Error(std::string("cannot reserve addresses for a spyre device: ") +
                std::strerror(errno));
  reserved = static_cast<uint8_t *>(range);
}

uint64_t Card::addressOf(const void *pointer) {
  std::lock_guard<std::mutex> lock(sharedPointersMutex);
  auto shared = sharedPointers.find(pointer);
  return shared != sharedPointers.end()
             ? shared->second
             : static_cast<const uint8_t *>(pointer) - reserved;
}

runtime::Stream &Card::stream(c10::StreamId id) {
  TORCH_CHECK(id >= 0 && id < kNumStreams,
              "spyre:", static_cast<int>(cardIndex), " has no stream ", id);
  std::lock_guard<std::mutex> lock(streamsMutex);
  if (!streams[id])
    streams[id] = std::make_unique<runtime::Stream>(clock);
  return *streams[id];
}

c10::StreamId Card::nextStream(int priority) {
  if (priority == 0)
    return 1 + nextLow++ % kPoolSize;
  return 1 + kPoolSize + nextHigh++ % kPoolSize;
}

static std::vector<runtime::Stream *>
collect(std::array<std::unique_ptr<runtime::Stream>, Card::kNumStreams> &all,
        std::mutex &mutex) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<runtime::Stream *> result;
  for (std::unique_ptr<runtime::Stream> &stream : all)
    if (stream)
      result.push_back(stream.get());
  return result;
}

bool Card::isIdle() {
  for (runtime::Stream *stream : collect(streams, streamsMutex))
    if (!stream->isIdle())
      return false;
  return true;
}

void Card::drain() {
  for (runtime::Stream *stream : collect(streams, streamsMutex))
    stream->drain();
}

void Card::forget(const runtime::FailureRef &failure) {
  for (runtime::Stream *stream : collect(streams, streamsMutex))
    stream->forget(failure);
}

void Card::synchronize() {
  std::vector<runtime::Stream *> all = collect(streams, streamsMutex);
  for (runtime::Stream *stream : all)
    stream->drain();
  for (runtime::Stream *stream : all)
    stream->synchronize();
}

bool Card::ownsPointer(const void *pointer) const {
  auto *byte = static_cast<const uint8_t *>(pointer);
  return byte >= reserved && byte < reserved + memory.capacityInBytes();
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

/// The card of the process's rank, if there are so many.
static c10::DeviceIndex readDefaultDevice() noexcept {
  try {
    int64_t rank = environment::localRank().value_or(0);
    return rank < deviceCount() ? static_cast<c10::DeviceIndex>(rank) : 0;
  } catch (...) {
    // deviceCount() says so to who uses a device.
    return 0;
  }
}

c10::DeviceIndex currentDevice() noexcept {
  static const c10::DeviceIndex byDefault = readDefaultDevice();
  return currentIndex < 0 ? byDefault : currentIndex;
}

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
  c10::DeviceIndex index =
      device.has_index() ? device.index() : currentDevice();
  checkIndex(index);
  return index;
}

Card &card(c10::DeviceIndex index) {
  checkIndex(index);
  TORCH_CHECK(!hasForked,
              "cannot use a spyre device in a forked process when its parent "
              "has used one; start processes with multiprocessing's method "
              "'spawn'");
  TORCH_CHECK(!isInductorSubprocess(),
              "cannot use a spyre device where IS_INDUCTOR_SPAWNED_SUBPROCESS "
              "is set: the process that compiles uses none");
  // Never destroyed: tensors may outlive static destruction.
  static auto *cards = new std::array<std::unique_ptr<Card>, kMaxCards>;
  static auto *flags = new std::array<std::once_flag, kMaxCards>;
  bool isNew = false;
  std::call_once((*flags)[index], [&] {
    isNew = true;
    (*cards)[index] = std::make_unique<Card>(index);
    if (!anyCard.exchange(true))
      ::pthread_atfork(nullptr, nullptr, [] { hasForked = true; });
  });
  if (isNew && isRuntimeLogged())
    logRuntime("spyre:" + std::to_string(index) + " is put to use, " +
               std::to_string((*cards)[index]->memory.capacityInBytes() >> 30) +
               " GiB of device memory");
  return *(*cards)[index];
}

bool isInitialized() noexcept { return anyCard && !hasForked; }
bool isInBadFork() noexcept { return hasForked || isInductorSubprocess(); }

void drainAll() {
  if (!isInitialized())
    return;
  for (c10::DeviceIndex i = 0; i < deviceCount(); ++i)
    card(i).drain();
}

c10::StreamId currentStream(c10::DeviceIndex index) noexcept {
  return currentStreams[index];
}
void setCurrentStream(c10::DeviceIndex index, c10::StreamId id) noexcept {
  currentStreams[index] = id;
}

} // namespace spyre::pytorch
