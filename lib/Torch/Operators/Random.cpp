// SPDX-License-Identifier: Apache-2.0
// Random operators: Philox4x32-10 of the device's generator. Element i in
// logical order is a function of seed, offset and i alone, so layouts, strides
// and cores do not matter, and compiled graphs, which call these operators, see
// the same numbers.
#include "../Card/Generator.h"
#include "../Transfer/Copy.h"
#include "../Transfer/Transfer.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Support/Philox.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace spyre::pytorch {

namespace {

using OptionalGenerator = std::optional<at::Generator>;

/// The numbers of one draw.
class Draw {
public:
  /// Takes ceil(count / 4) counters from a generator, by default the one of the
  /// device.
  Draw(const OptionalGenerator &generator, c10::DeviceIndex index,
       int64_t count) {
    at::Generator source = generator && generator->defined()
                               ? *generator
                               : defaultGenerator(index);
    TORCH_CHECK(source.device() == c10::Device(kSpyre, index),
                "expected a generator of spyre:", static_cast<int>(index),
                ", found one of ", source.device());
    auto *state = source.get<SpyreGeneratorImpl>();
    std::lock_guard<std::mutex> lock(state->mutex_);
    seed = state->current_seed();
    offset = state->get_offset();
    state->set_offset(offset + (count + 3) / 4);
  }

  /// Calls function(i, lanes, i mod 4) for the elements from `first` on.
  template <typename Function>
  void forEach(int64_t first, int64_t count, Function function) const {
    for (int64_t i = first; i < first + count;) {
      PhiloxBlock lanes = philox4x32(offset + i / 4, seed);
      for (int64_t lane = i % 4; lane < 4 && i < first + count; ++lane, ++i)
        function(i, lanes, lane);
    }
  }

private:
  uint64_t seed, offset;
};

/// In [0, 1), 24 bits.
double toUniform(uint32_t number) { return (number >> 8) * 0x1p-24; }
/// In (0, 1], 24 bits.
double toPositive(uint32_t number) { return ((number >> 8) + 1) * 0x1p-24; }

/// Box and Muller's transform of lanes 0 and 1, or 2 and 3.
double toNormal(const PhiloxBlock &lanes, int64_t lane) {
  int64_t pair = lane & ~int64_t(1);
  double radius = std::sqrt(-2.0 * std::log(toPositive(lanes[pair])));
  double angle = 2.0 * std::numbers::pi * toUniform(lanes[pair + 1]);
  return radius * (lane == pair ? std::cos(angle) : std::sin(angle));
}

/// Stores function(lanes, lane) in every element of `self`.
template <typename Function>
at::Tensor &generate(at::Tensor &self, const OptionalGenerator &generator,
                     Function function) {
  hostDtype(self.scalar_type());
  Draw draw(generator, self.device().index(), self.numel());
  bool isFloating = c10::isFloatingType(self.scalar_type());
  storeMade(self, [&](c10::IntArrayRef sizes, int64_t first) {
    at::Tensor values = at::empty(sizes, at::kDouble);
    double *next = values.mutable_data_ptr<double>();
    draw.forEach(first, values.numel(),
                 [&](int64_t, const PhiloxBlock &lanes, int64_t lane) {
                   *next++ = function(lanes, lane);
                 });
    return isFloating ? values.to(at::kFloat) : values;
  });
  return self;
}

void checkFloating(const at::Tensor &self, const char *name) {
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()), name,
              " expects a floating-point tensor, found ", self.scalar_type());
}

/// A tensor for which the CPU draws nothing: it only checks that the type has
/// the bounds.
at::Tensor emptyOnCPU(const at::Tensor &self) {
  return at::empty({0}, at::TensorOptions().dtype(self.dtype()));
}

at::Tensor &uniform(at::Tensor &self, double from, double to,
                    OptionalGenerator generator) {
  checkFloating(self, "uniform_");
  TORCH_CHECK(from <= to, "uniform_ expects from <= to, found from = ", from,
              " > to = ", to);
  emptyOnCPU(self).uniform_(from, to);
  c10::ScalarType dtype = self.scalar_type();
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    // Ten bits are what a DL16 number below 1 holds exactly.
    double u = dtype == at::kFloat ? toUniform(lanes[lane])
                                   : (lanes[lane] >> 22) * 0x1p-10;
    auto value = static_cast<float>(from + u * (to - from));
    // Rounding must not reach `to`, on the device nor on the host.
    float stored = dtype == at::kFloat ? value
                   : dtype == at::kHalf
                       ? roundDL16(value)
                       : float(c10::BFloat16(roundDL16(value)));
    return stored >= to ? from : value;
  });
}

at::Tensor &normal(at::Tensor &self, double mean, double std,
                   OptionalGenerator generator) {
  checkFloating(self, "normal_");
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    return mean + std * toNormal(lanes, lane);
  });
}

at::Tensor &logNormal(at::Tensor &self, double mean, double std,
                      OptionalGenerator generator) {
  checkFloating(self, "log_normal_");
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    return std::exp(mean + std * toNormal(lanes, lane));
  });
}

at::Tensor &exponential(at::Tensor &self, double lambda,
                        OptionalGenerator generator) {
  checkFloating(self, "exponential_");
  TORCH_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found ",
              "lambda=", lambda);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    // Never 0, by which samplers divide: of 1, as of the number below it.
    return std::max(-std::log(toPositive(lanes[lane])), 0x1p-24) / lambda;
  });
}

at::Tensor &cauchy(at::Tensor &self, double median, double sigma,
                   OptionalGenerator generator) {
  checkFloating(self, "cauchy_");
  TORCH_CHECK(sigma > 0.0,
              "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    double u = toUniform(lanes[lane]) + 0x1p-25;
    return median + sigma * std::tan(std::numbers::pi * (u - 0.5));
  });
}

at::Tensor &geometric(at::Tensor &self, double p, OptionalGenerator generator) {
  TORCH_CHECK(0 < p && p < 1,
              "geometric_ expects p to be in (0, 1), but got p=", p);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    double tries =
        std::ceil(std::log(toPositive(lanes[lane])) / std::log1p(-p));
    return std::max(tries, 1.0);
  });
}

at::Tensor &bernoulli(at::Tensor &self, double p, OptionalGenerator generator) {
  TORCH_CHECK(0 <= p && p <= 1,
              "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    return lanes[lane] * 0x1p-32 < p ? 1.0 : 0.0;
  });
}

at::Tensor &bernoulliTensor(at::Tensor &self, const at::Tensor &p,
                            OptionalGenerator generator) {
  at::assert_no_partial_overlap(self, p);
  at::Tensor host = p.device().type() == kSpyre ? toHost(p) : p;
  at::Tensor each = host.expand(self.sizes()).to(at::kDouble).contiguous();
  TORCH_CHECK(!each.numel() ||
                  (each.ge(0).logical_and(each.le(1))).all().item<bool>(),
              "bernoulli_ expects p to be in [0, 1]");
  const double *next = each.const_data_ptr<double>();
  return generate(self, generator, [&](const PhiloxBlock &lanes, int64_t lane) {
    return lanes[lane] * 0x1p-32 < *next++ ? 1.0 : 0.0;
  });
}

at::Tensor &bernoulliOut(const at::Tensor &self, OptionalGenerator generator,
                         at::Tensor &out) {
  TORCH_CHECK(out.device() == self.device(),
              "expected all tensors to be on the same device, found ",
              self.device(), " and ", out.device(), " (argument 'out')");
  at::native::resize_output(out, self.sizes());
  return bernoulliTensor(out, self, std::move(generator));
}

/// Integers from `from` up to `to`, exclusive.
at::Tensor &integers(at::Tensor &self, int64_t from, int64_t to,
                     const OptionalGenerator &generator) {
  TORCH_CHECK(from < to,
              "random_ expects 'from' to be less than 'to', but got ",
              "from=", from, " >= to=", to);
  uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  TORCH_CHECK(range <= uint64_t(1) << 32,
              "random_: the device has 32 random "
              "bits per element, not a range of ",
              range);
  return generate(self, generator, [=](const PhiloxBlock &lanes, int64_t lane) {
    return static_cast<double>(from) + static_cast<double>(lanes[lane] % range);
  });
}

/// One more than the largest number that random_() gives.
int64_t randomEnd(c10::ScalarType dtype) {
  switch (dtype) {
  case c10::kHalf:
    return (1 << 11) + 1;
  case c10::kBFloat16:
    return (1 << 8) + 1;
  case c10::kFloat:
    return (1 << 24) + 1;
  case c10::kBool:
    return 2;
  case c10::kByte:
    return 256;
  case c10::kChar:
    return 128;
  case c10::kShort:
    return 32768;
  default: // int64 has 32 bits on the device
    return int64_t(1) << 31;
  }
}

at::Tensor &randomFrom(at::Tensor &self, int64_t from,
                       std::optional<int64_t> to, OptionalGenerator generator) {
  if (to)
    emptyOnCPU(self).random_(from, *to);
  return integers(self, from, to.value_or(randomEnd(self.scalar_type())),
                  generator);
}

at::Tensor &randomTo(at::Tensor &self, int64_t to,
                     OptionalGenerator generator) {
  emptyOnCPU(self).random_(to);
  return integers(self, 0, to, generator);
}

at::Tensor &random(at::Tensor &self, OptionalGenerator generator) {
  return integers(self, 0, randomEnd(self.scalar_type()), generator);
}

/// Sorts the numbers 0 to n - 1 by their random number.
at::Tensor &randpermOut(int64_t n, OptionalGenerator generator,
                        at::Tensor &out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  if (out.dim() != 1 || out.size(0) != n)
    out.resize_({n});
  Draw draw(generator, out.device().index(), n);
  std::vector<uint32_t> numbers(n);
  draw.forEach(0, n, [&](int64_t i, const PhiloxBlock &lanes, int64_t lane) {
    numbers[i] = lanes[lane];
  });
  at::Tensor order = at::empty({n}, at::kLong);
  int64_t *begin = order.mutable_data_ptr<int64_t>();
  std::iota(begin, begin + n, 0);
  std::stable_sort(begin, begin + n, [&](int64_t a, int64_t b) {
    return numbers[a] < numbers[b];
  });
  copyTensor(order, out);
  return out;
}

/// Does for eager calls what torch_spyre.decompositions.fused does for compiled
/// graphs.
std::tuple<at::Tensor, at::Tensor>
nativeDropout(const at::Tensor &input, double p, std::optional<bool> train) {
  if (!train.value_or(true) || p == 0.0)
    return {input.clone(), at::ones_like(input, at::kBool)};
  if (p == 1.0)
    return {at::zeros_like(input), at::zeros_like(input, at::kBool)};
  at::Tensor mask = at::rand_like(input, at::kFloat).gt(p);
  return {mask.mul(input).mul(1.0 / (1.0 - p)), mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", uniform);
  m.impl("normal_", normal);
  m.impl("log_normal_", logNormal);
  m.impl("exponential_", exponential);
  m.impl("cauchy_", cauchy);
  m.impl("geometric_", geometric);
  m.impl("bernoulli_.float", bernoulli);
  m.impl("bernoulli_.Tensor", bernoulliTensor);
  m.impl("bernoulli.out", bernoulliOut);
  m.impl("random_.from", randomFrom);
  m.impl("random_.to", randomTo);
  m.impl("random_", random);
  m.impl("randperm.generator_out", randpermOut);
  m.impl("native_dropout", nativeDropout);
}

} // namespace

} // namespace spyre::pytorch
