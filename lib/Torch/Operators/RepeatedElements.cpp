// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch lets write tensors whose elements repeat, as those of
// expand() do, some of them with a warning: they store one value in some
// places, or add values there. A place of memory gets what is stored or added
// anywhere where it repeats.
#include "../Storage/Storage.h"
#include "../Transfer/Copy.h"
#include "Fallback.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

/// The position of the argument that is stored or added.
std::optional<size_t> positionOfValue(const c10::FunctionSchema &schema) {
  for (size_t i = 1; i < schema.arguments().size(); ++i)
    if (const std::string &name = schema.arguments()[i].name();
        name == "value" || name == "values")
      return i;
  return std::nullopt;
}

/// Whether values are added.
bool accumulates(const c10::FunctionSchema &schema,
                 c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i)
    if (schema.arguments()[i].name() == "accumulate")
      return arguments[i].toBool();
  return false;
}

/// Whether a value is one; the result of storing several depends on the order
/// in which places are written.
bool isOne(const c10::IValue &value) {
  return !value.isTensor() ||
         (value.toTensor().defined() && value.toTensor().numel() == 1);
}

bool isRepeated(const at::Tensor &self) {
  return self.device().type() == kSpyre &&
         at::has_internal_overlap(self) == at::MemOverlap::Yes;
}

/// The dimensions along which elements repeat.
std::vector<int64_t> repeatedDims(const at::Tensor &self) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0 && self.size(d) > 1)
      dims.push_back(d);
  return dims;
}

/// Stores one value: marks for it on a tensor of marks say where each place of
/// memory is chosen.
void storeOne(const c10::OperatorHandle &op, torch::jit::Stack arguments,
              size_t position) {
  at::Tensor self = arguments[0].toTensor();
  at::Tensor chosen = at::zeros(self.sizes(), self.options().dtype(at::kBool));
  c10::IValue value = arguments[position];
  arguments[0] = chosen;
  arguments[position] =
      value.isTensor() ? c10::IValue(at::ones_like(value.toTensor(), at::kBool))
                       : c10::IValue(true);
  op.callBoxed(arguments);
  for (int64_t d : repeatedDims(self))
    chosen = chosen.any(d, /*keepdim=*/true);
  at::Tensor places = withoutRepeats(self);
  if (value.isTensor())
    places.masked_fill_(chosen, value.toTensor().reshape({}));
  else
    places.masked_fill_(chosen, value.toScalar());
}

/// Adds values to zeros, and to each place of memory the sum of what it gets,
/// which is rounded once.
void addAll(const c10::OperatorHandle &op, torch::jit::Stack arguments,
            size_t position) {
  at::Tensor self = arguments[0].toTensor();
  c10::ScalarType dtype = self.scalar_type();
  if (c10::isReducedFloatingType(dtype))
    dtype = at::kFloat;
  else if (dtype == at::kBool)
    dtype = at::kInt;
  at::Tensor values = arguments[position].toTensor();
  TORCH_CHECK_INDEX(values.scalar_type() == self.scalar_type(),
                    "Index put requires the source and destination dtypes "
                    "match, got ",
                    self.scalar_type(), " for the destination and ",
                    values.scalar_type(), " for the source.");
  at::Tensor added = at::zeros(self.sizes(), self.options().dtype(dtype));
  arguments[0] = added;
  arguments[position] = values.to(dtype);
  op.callBoxed(arguments);
  if (std::vector<int64_t> dims = repeatedDims(self); !dims.empty())
    added = added.sum(dims, /*keepdim=*/true, dtype);
  at::Tensor places = withoutRepeats(self);
  places.copy_(places + added);
}

/// The argument that an operator writes, one of them.
size_t positionOfWritten(const c10::FunctionSchema &schema) {
  size_t i = 0;
  while (!schema.arguments()[i].alias_info())
    ++i;
  return i;
}

/// Runs an operator on a tensor whose elements repeat, as the CPU does. False,
/// and does nothing, if the CPU refuses such a call.
using OnRepeated = bool (*)(const c10::OperatorHandle &op,
                            torch::jit::Stack arguments);

/// An operator that writes and returns one argument.
template <OnRepeated run>
void runOnRepeated(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  size_t count = op.schema().arguments().size();
  c10::ArrayRef<c10::IValue> arguments = torch::jit::last(*stack, count);
  at::Tensor written = arguments[positionOfWritten(op.schema())].toTensor();
  if (!isRepeated(written) ||
      !run(op, torch::jit::Stack(arguments.begin(), arguments.end())))
    return runBoxed(op, stack);
  torch::jit::drop(*stack, count);
  stack->push_back(written);
}

/// operator(self, places..., value).
bool storeOrAdd(const c10::OperatorHandle &op, torch::jit::Stack arguments) {
  const c10::FunctionSchema &schema = op.schema();
  std::optional<size_t> position = positionOfValue(schema);
  bool isAdded = accumulates(schema, arguments);
  if (!position || !(isAdded || isOne(arguments[*position])))
    return false;
  std::string name = schema.name().substr(schema.name().find("::") + 2);
  TORCH_WARN("Use of ", name == "_index_put_impl_" ? "index_put_" : name,
             " on expanded tensors is deprecated. Please clone() the tensor "
             "before performing this operation. This also applies to advanced "
             "indexing e.g. tensor[mask] = scalar");
  (isAdded ? addAll : storeOne)(op, std::move(arguments), *position);
  return true;
}

/// tril_ and triu_: a triangle of marks says which places they leave.
bool clear(const c10::OperatorHandle &op, torch::jit::Stack arguments) {
  at::Tensor self = arguments[0].toTensor();
  if (self.dim() < 2)
    return false;
  at::Tensor left = at::ones(self.sizes(), self.options().dtype(at::kBool));
  arguments[0] = left;
  op.callBoxed(arguments);
  for (int64_t d : repeatedDims(self))
    left = left.all(d, /*keepdim=*/true);
  withoutRepeats(self).masked_fill_(left.logical_not(), 0);
  return true;
}

/// threshold_ gives the same when it is applied again.
bool applyOnce(const c10::OperatorHandle &op, torch::jit::Stack arguments) {
  arguments[0] = withoutRepeats(arguments[0].toTensor());
  op.callBoxed(arguments);
  return true;
}

/// nan_to_num_ leaves integers as they are.
bool keepIntegers(const c10::OperatorHandle &, torch::jit::Stack arguments) {
  return c10::isIntegralType(arguments[0].toTensor().scalar_type(), true);
}

/// eye(..., out=): a place gets one if any of the elements there does.
bool writeIdentity(const c10::OperatorHandle &op, torch::jit::Stack arguments) {
  at::Tensor out = arguments.back().toTensor();
  int64_t numRows = arguments[0].toInt();
  int64_t numColumns = arguments[arguments.size() - 2].toInt();
  if (out.sizes() != c10::IntArrayRef{numRows, numColumns})
    return false;
  at::Tensor ones = at::zeros(out.sizes(), out.options().dtype(at::kBool));
  arguments.back() = ones;
  op.callBoxed(arguments);
  for (int64_t d : repeatedDims(out))
    ones = ones.any(d, /*keepdim=*/true);
  withoutRepeats(out).copy_(ones);
  return true;
}

/// The mask of x[mask] = value, with as many dimensions as x, if indices are
/// one mask beside dimensions that are taken whole.
std::optional<at::Tensor>
maskOf(const at::Tensor &x,
       const c10::List<std::optional<at::Tensor>> &indices) {
  std::optional<at::Tensor> mask;
  int64_t numBefore = 0;
  for (const std::optional<at::Tensor> &index : indices) {
    if (!index || !index->defined()) {
      numBefore += mask ? 0 : 1;
      continue;
    }
    if (mask || (index->scalar_type() != at::kBool &&
                 index->scalar_type() != at::kByte))
      return std::nullopt;
    mask = *index;
  }
  if (!mask || numBefore + mask->dim() > x.dim() ||
      x.sizes().slice(numBefore, mask->dim()) != mask->sizes())
    return std::nullopt;
  std::vector<int64_t> sizes = mask->sizes().vec();
  sizes.resize(x.dim() - numBefore, 1);
  return mask->reshape(sizes).to(x.device(), at::kBool);
}

/// index_put_ of one value by a mask is masked_fill_, as on the CPU: the mask
/// may be what is written.
void putIndexed(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  size_t count = op.schema().arguments().size();
  c10::ArrayRef<c10::IValue> arguments = torch::jit::last(*stack, count);
  at::Tensor self = arguments[0].toTensor(), value = arguments[2].toTensor();
  std::optional<at::Tensor> mask;
  if (value.numel() == 1 && !arguments[3].toBool())
    mask =
        maskOf(self, arguments[1].to<c10::List<std::optional<at::Tensor>>>());
  if (!mask)
    return runOnRepeated<storeOrAdd>(op, stack);
  self.masked_fill_(*mask, value.reshape({}));
  torch::jit::drop(*stack, count);
  stack->push_back(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char *name : {"masked_fill_.Scalar", "masked_fill_.Tensor",
                           "index_fill_.int_Scalar", "index_fill_.int_Tensor"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<
                     &runOnRepeated<storeOrAdd>>());
  for (const char *name : {"index_put_", "_index_put_impl_"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&putIndexed>());
  for (const char *name : {"eye.out", "eye.m_out"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<
                     &runOnRepeated<writeIdentity>>());
  for (const char *name : {"tril_", "triu_"})
    m.impl(name,
           torch::CppFunction::makeFromBoxedFunction<&runOnRepeated<clear>>());
  m.impl(
      "threshold_",
      torch::CppFunction::makeFromBoxedFunction<&runOnRepeated<applyOnce>>());
  m.impl("nan_to_num_", torch::CppFunction::makeFromBoxedFunction<
                            &runOnRepeated<keepIntegers>>());
}

} // namespace

} // namespace spyre::pytorch
