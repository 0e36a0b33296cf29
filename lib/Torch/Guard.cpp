// SPDX-License-Identifier: Apache-2.0
// Device guard, streams and events. All work is synchronous, so streams are
// identities and an event is the host time at which it was recorded.
#include "Card.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <chrono>

namespace spyre::device {

namespace {

using Clock = std::chrono::steady_clock;

thread_local std::array<c10::StreamId, 128> currentStreams{};
std::atomic<c10::StreamId> lastStream{0};

struct SpyreGuardImpl final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kSpyre; }

  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device old = getDevice();
    if (device.index() != old.index())
      setDevice(device);
    return old;
  }
  c10::Device getDevice() const override {
    return c10::Device(kSpyre, currentDevice());
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kSpyre, "expected a spyre device, found ",
                device);
    setCurrentDevice(device.has_index() ? device.index() : currentDevice());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    setCurrentDeviceUnchecked(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return deviceCountOrZero();
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto &supported = capability.capability_data.capability_bits;
    supported = (1ULL << c10::kIndex_Byte) | (1ULL << c10::kIndex_Char) |
                (1ULL << c10::kIndex_Short) | (1ULL << c10::kIndex_Int) |
                (1ULL << c10::kIndex_Long) | (1ULL << c10::kIndex_Half) |
                (1ULL << c10::kIndex_Float) | (1ULL << c10::kIndex_Bool) |
                (1ULL << c10::kIndex_BFloat16);
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    c10::DeviceIndex index = resolveIndex(device);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSpyre, index),
                       currentStreams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT,
                       c10::Device(kSpyre, resolveIndex(device)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE,
                       c10::Device(kSpyre, resolveIndex(device)), ++lastStream);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream old = getStream(stream.device());
    currentStreams[resolveIndex(stream.device())] = stream.id();
    return old;
  }
  void *getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void *>(stream.id());
  }
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    resolveIndex(c10::Device(kSpyre, index));
  }

  void record(void **event, const c10::Stream &, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (!*event)
      *event = new Clock::time_point;
    *static_cast<Clock::time_point *>(*event) = Clock::now();
  }
  void destroyEvent(void *event,
                    const c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point *>(event);
  }
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  void synchronizeEvent(void *) const override {}
  double elapsedTime(void *start, void *end,
                     const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end,
                "both events must be recorded before their distance is asked");
    return std::chrono::duration<double, std::milli>(
               *static_cast<Clock::time_point *>(end) -
               *static_cast<Clock::time_point *>(start))
        .count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, SpyreGuardImpl);

} // namespace

} // namespace spyre::device
