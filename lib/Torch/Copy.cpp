// SPDX-License-Identifier: Apache-2.0
// Operators that move values: copies, fills and reading a scalar.
#include "Transfer.h"

#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <torch/library.h>

namespace spyre::device {

namespace {

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &destination,
                    bool nonBlocking) {
  copyTensor(self, destination, nonBlocking);
  return destination;
}

at::Tensor copyFromAndResize(const at::Tensor &self,
                             const at::Tensor &destination) {
  if (destination.sizes() != self.sizes())
    destination.resize_(self.sizes());
  copyTensor(self, destination);
  return destination;
}

c10::Scalar localScalarDense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() == 1, "a tensor with ", self.numel(),
              " elements cannot be converted to a scalar");
  return toHost(self).item();
}

at::Tensor &fillScalar(at::Tensor &self, const c10::Scalar &value) {
  fillTensor(self, value);
  return self;
}

at::Tensor &fillFromTensor(at::Tensor &self, const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0,
              "fill_ only supports a 0-dimensional value "
              "tensor, found one with ",
              value.dim(), " dimensions");
  fillTensor(self, value.item());
  return self;
}

at::Tensor &zero(at::Tensor &self) {
  fillTensor(self, 0);
  return self;
}

// one_hot asserts in compiled graphs that its indices are in range.
void assertAsync(const at::Tensor &self) {
  TORCH_CHECK(at::is_nonzero(self),
              "Expected Tensor with single nonzero value, but got zero");
}

void assertAsyncWithMessage(const at::Tensor &self, c10::string_view message) {
  TORCH_CHECK(at::is_nonzero(self),
              message.empty() ? "Assertion is failed" : message);
}

bool equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.device() == other.device(),
              "Expected all tensors to be on the same device, found ",
              self.device(), " and ", other.device());
  TORCH_CHECK(self.scalar_type() == other.scalar_type(),
              "Expected tensors of one dtype, found ", self.scalar_type(),
              " and ", other.scalar_type());
  return self.sizes() == other.sizes() &&
         (self.numel() == 0 || at::eq(self, other).all().item<bool>());
}

/// A new tensor that keeps the dimension order of `self`'s device layout, so
/// that copied and converted weights stay as module.to() stored them; nothing
/// where `self` is a view or has another format.
std::optional<at::Tensor> emptyInLayoutOf(const at::Tensor &self,
                                          c10::ScalarType dtype,
                                          c10::Device device) {
  // _to_copy also comes here for CPU tensors that go to a spyre device.
  if (self.device().type() != kSpyre || !isNative(self) || !isWholeHome(self) ||
      !isSupportedDtype(dtype))
    return std::nullopt;
  std::optional<TensorLayout> layout =
      layoutFor(*storageOf(self).format, hostDtype(dtype));
  if (!layout)
    return std::nullopt;
  return makeTensor(self.sizes(), self.strides(), dtype, device, &*layout);
}

bool preserves(std::optional<c10::MemoryFormat> format) {
  return format.value_or(c10::MemoryFormat::Preserve) ==
         c10::MemoryFormat::Preserve;
}

at::Tensor clone(const at::Tensor &self,
                 std::optional<c10::MemoryFormat> memoryFormat) {
  std::optional<at::Tensor> result;
  if (preserves(memoryFormat))
    result = emptyInLayoutOf(self, self.scalar_type(), self.device());
  if (!result)
    return at::native::clone(self, memoryFormat);
  copyTensor(self, *result);
  return *result;
}

at::Tensor toCopy(const at::Tensor &self, std::optional<c10::ScalarType> dtype,
                  std::optional<c10::Layout> layout,
                  std::optional<c10::Device> device,
                  std::optional<bool> pinMemory, bool nonBlocking,
                  std::optional<c10::MemoryFormat> memoryFormat) {
  c10::Device target = device.value_or(self.device());
  std::optional<at::Tensor> result;
  if (target.type() == kSpyre && preserves(memoryFormat) &&
      c10::layout_or_default(layout) == c10::kStrided &&
      !c10::pinned_memory_or_default(pinMemory))
    result = emptyInLayoutOf(self, dtype.value_or(self.scalar_type()), target);
  if (!result)
    return at::native::_to_copy(self, dtype, layout, device, pinMemory,
                                nonBlocking, memoryFormat);
  copyTensor(self, *result, nonBlocking);
  return *result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copyFrom);
  m.impl("_copy_from_and_resize", copyFromAndResize);
  m.impl("_local_scalar_dense", localScalarDense);
  m.impl("_assert_async", assertAsync);
  m.impl("_assert_async.msg", assertAsyncWithMessage);
  m.impl("fill_.Scalar", fillScalar);
  m.impl("fill_.Tensor", fillFromTensor);
  m.impl("zero_", zero);
  m.impl("clone", clone);
  m.impl("_to_copy", toCopy);
  m.impl("equal", equal);
}

} // namespace

} // namespace spyre::device
