// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch composes of others, and that are one program here.
//
// What transforms and traces see stays what PyTorch composes: they have rules
// for that. So does what needs a gradient, if only the parts have a formula.
#include "Fallback.h"

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/MaxPooling.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/max_pool2d_native.h>
#include <ATen/ops/max_pool3d_native.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

using Sizes = at::IntArrayRef;
using Pool = at::Tensor(const at::Tensor &, Sizes, Sizes, Sizes, Sizes, bool);

/// Whether nobody but the device will know of a call, and of its gradient.
bool isPlain(const at::Tensor &input) {
  return !at::isTensorSubclassLike(input) &&
         !(at::GradMode::is_enabled() && input.requires_grad()) &&
         !input._fw_grad(/*level=*/0).defined();
}

/// A maximum of windows. PyTorch's also finds where they lie, as only the
/// gradient has to know, and then has several results where one is used.
template <Pool *maxima, Pool *maximaWithPlaces>
at::Tensor maxPool(const at::Tensor &input, Sizes kernel, Sizes stride,
                   Sizes padding, Sizes dilation, bool ceilMode) {
  if (!isPlain(input))
    return maximaWithPlaces(input, kernel, stride, padding, dilation, ceilMode);
  at::AutoDispatchBelowADInplaceOrView below;
  return maxima(input, kernel, stride, padding, dilation, ceilMode);
}

/// One of two dimensions, as in PyTorch's way to find where maxima lie: that
/// has a program for many sizes.
at::Tensor maxPool1d(const at::Tensor &input, Sizes kernel, Sizes stride,
                     Sizes padding, Sizes dilation, bool ceilMode) {
  if (!isPlain(input))
    return at::native::max_pool1d(input, kernel, stride, padding, dilation,
                                  ceilMode);
  at::native::check_max_pool1d(input, kernel, stride, padding, dilation,
                               ceilMode);
  Sizes step = stride.empty() ? kernel : stride;
  return at::max_pool2d(input.unsqueeze(-2), {1, kernel[0]}, {1, step[0]},
                        {0, padding[0]}, {1, dilation[0]}, ceilMode)
      .squeeze(-2);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("max_pool1d", maxPool1d);
  m.impl("max_pool2d", maxPool<at::max_pool2d, at::native::max_pool2d>);
  m.impl("max_pool3d", maxPool<at::max_pool3d, at::native::max_pool3d>);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("max_pool1d", maxPool1d);
  // The gradient of the norm is PyTorch's formula for it.
  for (const char *name : {"max_pool2d", "max_pool3d", "_fused_rms_norm"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
}

} // namespace

} // namespace spyre::pytorch
