// SPDX-License-Identifier: Apache-2.0
// Answers to PyTorch's questions about the backend, and pinned host memory.
#include "../Card/Card.h"
#include "../Card/Generator.h"
#include "Storage.h"
#include "StorageFormatting.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace spyre::pytorch {

namespace {

/// Host memory for transfers. The device model copies from any host memory
/// equally well; "pinned" records who allocated it.
class PinnedAllocator final : public at::HostAllocator {
public:
  c10::DataPtr allocate(size_t sizeInBytes) override {
    void *pointer = nullptr;
    if (sizeInBytes) {
      TORCH_CHECK_WITH(
          OutOfMemoryError, ::posix_memalign(&pointer, 4096, sizeInBytes) == 0,
          "cannot allocate ", sizeInBytes, " bytes of pinned host memory");
      std::lock_guard<std::mutex> lock(mutex);
      blocks[pointer] = sizeInBytes;
      stats.allocations.increase(1);
      stats.allocated_bytes.increase(sizeInBytes);
    }
    return c10::DataPtr(pointer, pointer, &release, c10::kCPU);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *destination, const void *source,
                 std::size_t count) const override {
    default_copy_data(destination, source, count);
  }
  bool record_event(void *, void *, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(mutex);
    return stats;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(mutex);
    stats.allocations.reset_accumulated();
    stats.allocated_bytes.reset_accumulated();
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(mutex);
    stats.allocations.reset_peak();
    stats.allocated_bytes.reset_peak();
  }

  bool owns(const void *pointer) {
    std::lock_guard<std::mutex> lock(mutex);
    auto after = blocks.upper_bound(const_cast<void *>(pointer));
    if (after == blocks.begin())
      return false;
    auto &[start, size] = *std::prev(after);
    return static_cast<const char *>(pointer) <
           static_cast<const char *>(start) + size;
  }

  static PinnedAllocator &instance() {
    static auto *allocator = new PinnedAllocator;
    return *allocator;
  }

private:
  static void release(void *pointer) {
    if (!pointer)
      return;
    PinnedAllocator &self = instance();
    {
      std::lock_guard<std::mutex> lock(self.mutex);
      auto block = self.blocks.find(pointer);
      if (block != self.blocks.end()) {
        self.stats.allocations.decrease(1);
        self.stats.allocated_bytes.decrease(block->second);
        self.blocks.erase(block);
      }
    }
    std::free(pointer);
  }

  std::mutex mutex;
  std::map<void *, size_t> blocks;
  at::HostStats stats;
};

struct SpyreHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return deviceCountOrZero() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index >= 0 && index < deviceCountOrZero() && isInitialized();
  }
  void init() const override {}

  c10::DeviceIndex deviceCount() const override {
    return pytorch::deviceCount();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    pytorch::setCurrentDevice(index);
  }
  c10::DeviceIndex getCurrentDevice() const override { return currentDevice(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex old = currentDevice();
    pytorch::setCurrentDevice(index);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? currentDevice() : exchangeDevice(index);
  }

  const at::Generator &
  getDefaultGenerator(c10::DeviceIndex index) const override {
    return defaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    c10::DeviceIndex resolved = resolveIndex(
        index < 0 ? c10::Device(kSpyre) : c10::Device(kSpyre, index));
    return at::make_generator<SpyreGeneratorImpl>(resolved);
  }

  at::Device getDeviceFromPtr(void *pointer) const override {
    for (c10::DeviceIndex i = 0; i < pytorch::deviceCount(); ++i)
      if (card(i).ownsPointer(pointer))
        return at::Device(kSpyre, i);
    TORCH_CHECK(false, "address ", pointer,
                " is not in the memory of a spyre device");
  }
  bool isPinnedPtr(const void *pointer) const override {
    return PinnedAllocator::instance().owns(pointer);
  }
  at::Allocator *getPinnedMemoryAllocator() const override {
    return &PinnedAllocator::instance();
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage,
                              size_t sizeInBytes) const override {
    resizeStorage(asSpyreStorage(storage), sizeInBytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  // Leaked: PyTorch keeps the pointers for the life of the process.
  at::RegisterPrivateUse1HooksInterface(new SpyreHooks);
  at::setHostAllocator(kSpyre, &PinnedAllocator::instance());
  return true;
}();

} // namespace

} // namespace spyre::pytorch
