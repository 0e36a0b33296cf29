// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch lets write tensors whose elements repeat, as those of
// expand() do, though with a warning: they store one value in some places. A
// place of memory gets it if it is chosen anywhere where it repeats.
#include "../Storage/Storage.h"
#include "../Transfer/Copy.h"
#include "Fallback.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

/// The argument that is stored, if it is one value; nothing for calls whose
/// result depends on the order in which places are written.
std::optional<size_t> storedValue(const c10::FunctionSchema &schema,
                                  c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string &name = schema.arguments()[i].name();
    if (name == "accumulate" && arguments[i].toBool())
      return std::nullopt;
  }
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string &name = schema.arguments()[i].name();
    if (name != "value" && name != "values")
      continue;
    bool isOne =
        !arguments[i].isTensor() || (arguments[i].toTensor().defined() &&
                                     arguments[i].toTensor().numel() == 1);
    return isOne ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

/// Runs operator(self, places..., value): with marks for the value on a tensor
/// of marks, which say where each place of memory is chosen.
void runOnRepeated(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const c10::FunctionSchema &schema = op.schema();
  size_t count = schema.arguments().size();
  c10::ArrayRef<c10::IValue> arguments = torch::jit::last(*stack, count);
  at::Tensor self = arguments[0].toTensor();
  std::optional<size_t> position;
  if (self.device().type() == kSpyre &&
      at::has_internal_overlap(self) == at::MemOverlap::Yes)
    position = storedValue(schema, arguments);
  if (!position)
    return runBoxed(op, stack);
  std::string name = schema.name().substr(schema.name().find("::") + 2);
  TORCH_WARN("Use of ", name == "_index_put_impl_" ? "index_put_" : name,
             " on expanded tensors is deprecated. Please clone() the tensor "
             "before performing this operation. This also applies to advanced "
             "indexing e.g. tensor[mask] = scalar");
  at::Tensor chosen = at::zeros(self.sizes(), self.options().dtype(at::kBool));
  c10::IValue value = arguments[*position];
  torch::jit::Stack marking(arguments.begin(), arguments.end());
  marking[0] = chosen;
  marking[*position] =
      value.isTensor() ? c10::IValue(at::ones_like(value.toTensor(), at::kBool))
                       : c10::IValue(true);
  op.callBoxed(marking);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0 && self.size(d) > 1)
      chosen = chosen.any(d, /*keepdim=*/true);
  at::Tensor places = withoutRepeats(self);
  if (value.isTensor())
    places.masked_fill_(chosen, value.toTensor().reshape({}));
  else
    places.masked_fill_(chosen, value.toScalar());
  torch::jit::drop(*stack, count);
  stack->push_back(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char *name :
       {"masked_fill_.Scalar", "masked_fill_.Tensor", "index_fill_.int_Scalar",
        "index_fill_.int_Tensor", "index_put_", "_index_put_impl_"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&runOnRepeated>());
}

} // namespace

} // namespace spyre::pytorch
