// SPDX-License-Identifier: Apache-2.0
#include "Generator.h"
#include "Card.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>

#include <cstring>

namespace spyre::pytorch {

namespace {

/// Finaliser of splitmix64: near seeds and offsets give unrelated streams.
uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

} // namespace

SpyreGeneratorImpl::SpyreGeneratorImpl(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kSpyre, index),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void SpyreGeneratorImpl::set_current_seed(uint64_t newSeed) {
  *numbers = {newSeed, 0};
}

uint64_t SpyreGeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return numbers->seed;
}

c10::DeviceType SpyreGeneratorImpl::device_type() { return kSpyre; }

void SpyreGeneratorImpl::set_state(const c10::TensorImpl &state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(state.numel() == 16,
              "the random state of a spyre device has 16 bytes (seed, offset), "
              "found ",
              state.numel());
  const auto *bytes = static_cast<const uint8_t *>(state.data());
  std::memcpy(&numbers->seed, bytes, 8);
  std::memcpy(&numbers->offset, bytes + 8, 8);
}

c10::intrusive_ptr<c10::TensorImpl> SpyreGeneratorImpl::get_state() const {
  at::Tensor state = at::detail::empty_cpu(
      {16}, c10::kByte, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  auto *bytes = state.mutable_data_ptr<uint8_t>();
  std::memcpy(bytes, &numbers->seed, 8);
  std::memcpy(bytes + 8, &numbers->offset, 8);
  return state.getIntrusivePtr();
}

SpyreGeneratorImpl *SpyreGeneratorImpl::clone_impl() const {
  auto *result = new SpyreGeneratorImpl(device().index());
  *result->numbers = *numbers;
  return result;
}

c10::intrusive_ptr<c10::GeneratorImpl>
SpyreGeneratorImpl::graphsafe_get_state() const {
  auto result = c10::make_intrusive<SpyreGeneratorImpl>(device().index());
  result->numbers = numbers;
  return result;
}

void SpyreGeneratorImpl::graphsafe_set_state(
    const c10::intrusive_ptr<c10::GeneratorImpl> &other) {
  auto *generator = dynamic_cast<SpyreGeneratorImpl *>(other.get());
  TORCH_CHECK(generator,
              "expected a generator of a spyre device, found one of ",
              other ? other->device().str() : "no device");
  numbers = generator->numbers;
}

at::Generator SpyreGeneratorImpl::nextCPUGenerator() {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t derived = mix(mix(numbers->seed) ^ numbers->offset);
  numbers->offset += 4;
  return at::detail::createCPUGenerator(derived);
}

const at::Generator &defaultGenerator(c10::DeviceIndex index) {
  c10::DeviceIndex resolved = resolveIndex(
      index < 0 ? c10::Device(kSpyre) : c10::Device(kSpyre, index));
  static auto *generators = [] {
    auto *result = new std::vector<at::Generator>;
    for (c10::DeviceIndex i = 0; i < deviceCount(); ++i)
      result->push_back(at::make_generator<SpyreGeneratorImpl>(i));
    return result;
  }();
  return (*generators)[resolved];
}

} // namespace spyre::pytorch
