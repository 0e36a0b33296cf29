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
#include <ATen/ops/rms_norm_compositeimplicitautograd_dispatch.h>
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

/// Whether a norm spans dimensions of the input, with a weight for each
/// element.
bool isNormOf(const at::Tensor &input, Sizes shape,
              const std::optional<at::Tensor> &weight) {
  Sizes all = input.sizes();
  if (shape.empty() || shape.size() > all.size() ||
      all.slice(all.size() - shape.size()) != shape)
    return false;
  if (!weight || !weight->defined())
    return true;
  // What has two dtypes stays composed, and warns.
  return weight->sizes() == shape && isPlain(*weight) &&
         weight->scalar_type() == input.scalar_type();
}

/// The norm that PyTorch has for other devices. As a kernel of ours it would
/// also be in graphs, where sizes that vary would no longer.
at::Tensor rmsNorm(const at::Tensor &input, c10::SymIntArrayRef shape,
                   const std::optional<at::Tensor> &weight,
                   std::optional<double> eps) {
  std::optional<Sizes> sizes = c10::asIntArrayRefSlowOpt(shape);
  if (!sizes || !isPlain(input) || !isNormOf(input, *sizes, weight))
    return at::compositeimplicitautograd::rms_norm_symint(input, shape, weight,
                                                          eps);
  static const c10::OperatorHandle norm =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_fused_rms_norm",
                                                     "");
  at::AutoDispatchBelowADInplaceOrView below;
  torch::jit::Stack stack;
  torch::jit::push(stack, input, *sizes, weight, eps);
  runBoxed(norm, &stack);
  return stack.at(0).toTensor();
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("rms_norm", rmsNorm);
  m.impl("max_pool1d", maxPool1d);
  m.impl("max_pool2d", maxPool<at::max_pool2d, at::native::max_pool2d>);
  m.impl("max_pool3d", maxPool<at::max_pool3d, at::native::max_pool3d>);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("rms_norm", rmsNorm);
  m.impl("max_pool1d", maxPool1d);
  for (const char *name : {"max_pool2d", "max_pool3d"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
}

} // namespace

} // namespace spyre::pytorch
