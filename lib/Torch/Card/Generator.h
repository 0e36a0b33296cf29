// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_LIB_TORCH_CARD_GENERATOR_H
#define SPYRE_LIB_TORCH_CARD_GENERATOR_H

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <memory>

namespace spyre::pytorch {

/// Random state of a card: a seed and an offset that every draw advances.
/// get_state / set_state: 16 bytes, seed then offset.
class SpyreGeneratorImpl final : public c10::GeneratorImpl {
public:
  explicit SpyreGeneratorImpl(c10::DeviceIndex index);

  void set_current_seed(uint64_t newSeed) override;
  void set_offset(uint64_t newOffset) override { numbers->offset = newOffset; }
  uint64_t get_offset() const override { return numbers->offset; }
  uint64_t current_seed() const override { return numbers->seed; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl &state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  /// A generator that draws the same numbers in turns with this one: what one
  /// of them draws advances both. Compiled graphs that draw numbers again in
  /// their backward pass keep one.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
  /// Draws in turns with `other` from now on.
  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl> &other) override;

  static c10::DeviceType device_type();

  /// A CPU generator whose stream is a function of seed and offset; advances
  /// the offset, so the next call gives another stream. Takes the lock.
  at::Generator nextCPUGenerator();

private:
  SpyreGeneratorImpl *clone_impl() const override;

  struct Numbers {
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t offset = 0;
  };
  std::shared_ptr<Numbers> numbers = std::make_shared<Numbers>();
};

/// The default generator of a card.
const at::Generator &defaultGenerator(c10::DeviceIndex index);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_CARD_GENERATOR_H
