// SPDX-License-Identifier: Apache-2.0
// torch.nn.TransformerEncoder packs rows that a mask leaves into a nested
// tensor if the device is in PyTorch's list, where every PrivateUse1 device is.
// There are no nested tensors on this one but those of layout torch.jagged.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

/// Without it the encoder leaves the rows where they are, and masks.
bool canBeNested(const at::Tensor &, const at::Tensor &) { return false; }

at::Tensor makeNested(const at::Tensor &, const at::Tensor &, bool) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "the spyre device has no nested tensors of layout torch.strided, "
             "which TransformerEncoder makes with mask_check=False: pass "
             "enable_nested_tensor=False, or mask_check=True");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", canBeNested);
  m.impl("_nested_tensor_from_mask", makeNested);
}

} // namespace

} // namespace spyre::pytorch
