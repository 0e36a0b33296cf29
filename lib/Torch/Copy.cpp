// SPDX-License-Identifier: Apache-2.0
// Operators that move values: copies, fills and reading a scalar.
#include "Transfer.h"

#include <torch/library.h>

namespace spyre::device {

namespace {

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &destination,
                    bool) {
  copyTensor(self, destination);
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copyFrom);
  m.impl("_copy_from_and_resize", copyFromAndResize);
  m.impl("_local_scalar_dense", localScalarDense);
  m.impl("fill_.Scalar", fillScalar);
  m.impl("fill_.Tensor", fillFromTensor);
  m.impl("zero_", zero);
}

} // namespace

} // namespace spyre::device
