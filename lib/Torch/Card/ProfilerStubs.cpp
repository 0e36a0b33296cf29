// SPDX-License-Identifier: Apache-2.0
// Events of the current stream, in the device's clock, with which
// torch.autograd.profiler.profile(use_device="spyre") measures operators.
#include "../Python/Interpreter.h"
#include "Card.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace spyre::pytorch {

namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

class Stubs final : public torch::profiler::impl::ProfilerStubs {
public:
  void record(c10::DeviceIndex *device, ProfilerVoidEventStub *event,
              int64_t *hostNanoseconds) const override {
    c10::DeviceIndex index = currentDevice();
    if (device)
      *device = index;
    auto recorded = std::make_shared<runtime::Event>();
    recorded->record(card(index).stream(currentStream(index)));
    *event = std::move(recorded);
    if (hostNanoseconds)
      *hostNanoseconds = c10::getTime();
  }

  /// Microseconds.
  float elapsed(const ProfilerVoidEventStub *start,
                const ProfilerVoidEventStub *end) const override {
    auto time = [](const ProfilerVoidEventStub &stub) {
      auto *event = static_cast<runtime::Event *>(stub.get());
      withoutGIL([&] { event->synchronize(); });
      return event->deviceTime();
    };
    return static_cast<float>(1e6 * (time(*end) - time(*start)));
  }

  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> function) const override {
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i)
      function(i);
  }
  void synchronize() const override { withoutGIL(&drainAll); }
};

[[maybe_unused]] const bool registered = [] {
  static Stubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  return true;
}();

} // namespace

} // namespace spyre::pytorch
