// SPDX-License-Identifier: Apache-2.0
// Device guard, streams and events: PyTorch's view of runtime::Stream.
#include "../Python/Interpreter.h"
#include "Card.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace spyre::pytorch {

namespace {

runtime::Stream &streamOf(const c10::Stream &stream) {
  return card(stream.device_index()).stream(stream.id());
}

runtime::Event &eventOf(void *event) {
  return *static_cast<runtime::Event *>(event);
}

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
                       currentStream(index));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT,
                       c10::Device(kSpyre, resolveIndex(device)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device,
                                      bool isHighPriority) const override {
    return getNewStream(device, isHighPriority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    c10::DeviceIndex index = resolveIndex(device);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSpyre, index),
                       card(index).nextStream(priority));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream old = getStream(stream.device());
    // Known ids only.
    if (stream.id() != old.id()) {
      streamOf(stream);
      setCurrentStream(resolveIndex(stream.device()), stream.id());
    }
    return old;
  }
  void *getStreamNativeHandle(const c10::Stream stream) const override {
    return &streamOf(stream);
  }
  bool queryStream(const c10::Stream &stream) const override {
    return streamOf(stream).isIdle();
  }
  void synchronizeStream(const c10::Stream &stream) const override {
    withoutGIL([&] { streamOf(stream).synchronize(); });
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    Card &owner = card(resolveIndex(c10::Device(kSpyre, index)));
    withoutGIL([&] { owner.synchronize(); });
  }

  void record(void **event, const c10::Stream &stream,
              const c10::DeviceIndex index,
              const c10::EventFlag) const override {
    TORCH_CHECK(index < 0 || index == stream.device_index(),
                "an event of spyre:", static_cast<int>(index),
                " cannot be recorded on a stream of spyre:",
                static_cast<int>(stream.device_index()));
    if (!*event)
      *event = new runtime::Event;
    eventOf(*event).record(streamOf(stream));
  }
  void destroyEvent(void *event,
                    const c10::DeviceIndex) const noexcept override {
    delete static_cast<runtime::Event *>(event);
  }
  void block(void *event, const c10::Stream &stream) const override {
    if (event)
      eventOf(event).block(streamOf(stream));
  }
  bool queryEvent(void *event) const override {
    return !event || eventOf(event).isReached();
  }
  void synchronizeEvent(void *event) const override {
    if (event)
      withoutGIL([&] { eventOf(event).synchronize(); });
  }
  double elapsedTime(void *start, void *end,
                     const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end,
                "record both events before you call elapsed_time()");
    TORCH_CHECK(eventOf(start).isReached() && eventOf(end).isReached(),
                "the device has not reached both events; call synchronize() on "
                "them before elapsed_time()");
    return 1e3 * (eventOf(end).deviceTime() - eventOf(start).deviceTime());
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, SpyreGuardImpl);

} // namespace

} // namespace spyre::pytorch
