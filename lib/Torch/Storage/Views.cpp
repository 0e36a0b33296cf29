// SPDX-License-Identifier: Apache-2.0
// Aliasing operators. Tensors address logical host elements, so PyTorch's own
// implementations are right; an aliasing operator that is missing here would
// go to the CPU fallback, which refuses it.
#include "Storage.h"

#include <ATen/NativeFunctions.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

at::Tensor viewDtype(const at::Tensor &self, c10::ScalarType dtype) {
  hostDtype(dtype);
  return at::native::view_dtype(self, dtype);
}

at::Tensor viewAsComplex(const at::Tensor &self) {
  hostDtype(c10::toComplexType(self.scalar_type()));
  return self;
}

bool hasCompatibleShallowCopyType(const at::Tensor &self,
                                  const at::Tensor &from) {
  // module.to() asks this before it puts a parameter's data on the device.
  // Spyre tensors are plain TensorImpls, so that parameters keep their
  // identity.
  auto plain = [](const at::Tensor &tensor) {
    return tensor.layout() == c10::kStrided && !tensor.is_quantized() &&
           !tensor.is_nested() &&
           (tensor.device().type() == kSpyre || tensor.device().is_cpu());
  };
  return plain(self) && plain(from);
}

void recordStream(at::Tensor &, c10::Stream stream) {
  TORCH_CHECK(stream.device_type() == kSpyre,
              "expected a stream of a spyre device, found one of ",
              stream.device());
  // Work holds its storages: no block is freed while it is in use.
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("view.dtype", viewDtype);
  m.impl("_unsafe_view", TORCH_FN(at::native::_unsafe_view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("alias", TORCH_FN(at::native::alias));
  m.impl("view_as_complex", viewAsComplex);
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("record_stream", recordStream);
  m.impl("_has_compatible_shallow_copy_type", hasCompatibleShallowCopyType);
}

} // namespace

} // namespace spyre::pytorch
