// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention stays one operator: the choice function sends
// it to _scaled_dot_product_fused_attention_overrideable, which graphs keep.
// The kernels here are for what has no program: they compute on the CPU in fp32
// and count as fallbacks.
#include "../Storage/Storage.h"
#include "../Transfer/Copy.h"
#include "../Transfer/Transfer.h"
#include "Fallback.h"

#include <ATen/ATen.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spyre::pytorch {

namespace {

/// Whether a transform of torch.func runs for which the fused operator has no
/// rule: batches, derivatives forward, derivatives of derivatives.
bool isTransformed() {
  int64_t gradients = 0;
  for (const auto &layer : at::functorch::getDynamicLayerStack()) {
    using at::functorch::TransformType;
    if (layer.key() == TransformType::Vmap || layer.key() == TransformType::Jvp)
      return true;
    gradients += layer.key() == TransformType::Grad;
  }
  return gradients > 1;
}

/// Whether the user has left only PyTorch's composition enabled
/// (`sdpa_kernel(SDPBackend.MATH)`), or derivatives are taken forward.
bool needsMath(std::initializer_list<const at::Tensor *> tensors) {
  const at::Context &context = at::globalContext();
  if (context.userEnabledMathSDP() && !context.userEnabledOverrideableSDP() &&
      !context.userEnabledFlashSDP() && !context.userEnabledMemEfficientSDP())
    return true;
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor *t) {
    return t->_fw_grad(/*level=*/0).defined();
  });
}

/// Sees tensors of any kind (also fake ones): metadata only.
int64_t chooseAttention(const at::Tensor &query, const at::Tensor &key,
                        const at::Tensor &value,
                        const std::optional<at::Tensor> &mask, double dropout,
                        bool, std::optional<double>, bool groupedQuery) {
  constexpr auto kMath = static_cast<int64_t>(at::SDPBackend::math);
  if (isTransformed() || needsMath({&query, &key, &value}))
    return kMath;
  auto isPlain = [](const at::Tensor &tensor) {
    return !tensor.is_nested() && tensor.layout() == c10::kStrided &&
           (tensor.scalar_type() == c10::kHalf ||
            tensor.scalar_type() == c10::kBFloat16 ||
            tensor.scalar_type() == c10::kFloat);
  };
  if (dropout != 0.0 || !isPlain(query) || !isPlain(key) || !isPlain(value) ||
      query.scalar_type() != key.scalar_type() ||
      query.scalar_type() != value.scalar_type())
    return kMath;
  int64_t rank = query.dim();
  if ((rank != 3 && rank != 4) || key.dim() != rank || value.dim() != rank)
    return kMath;
  // What nothing is known about, a size that values say, is not taken for
  // equal.
  auto areEqual = [](const c10::SymInt &a, const c10::SymInt &b) {
    return TORCH_GUARD_OR_FALSE(a.sym_eq(b));
  };
  if (rank == 4 && (!areEqual(query.sym_size(0), key.sym_size(0)) ||
                    !areEqual(query.sym_size(0), value.sym_size(0))))
    return kMath;
  if (!areEqual(key.sym_size(-3), value.sym_size(-3)) ||
      !areEqual(key.sym_size(-2), value.sym_size(-2)) ||
      !areEqual(query.sym_size(-1), key.sym_size(-1)))
    return kMath;
  if (!areEqual(query.sym_size(-3), key.sym_size(-3)) &&
      (!groupedQuery || areEqual(key.sym_size(-3), 0) ||
       !areEqual(query.sym_size(-3) % key.sym_size(-3), 0)))
    return kMath;
  for (const at::Tensor *tensor : {&query, &key, &value})
    if (areEqual(tensor->sym_numel(), 0))
      return kMath;
  // The operator's meta function cannot express this one.
  if (rank == 3 && !areEqual(query.sym_size(-1), value.sym_size(-1)))
    return kMath;
  if (mask && mask->defined() && mask->dim() > rank)
    return kMath;
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

/// Key and value heads repeated to the number of query heads.
at::Tensor repeatHeads(const at::Tensor &tensor, int64_t heads) {
  int64_t own = tensor.size(-3);
  return own == heads ? tensor : tensor.repeat_interleave(heads / own, -3);
}

/// Sums the gradient of repeated heads over each group.
at::Tensor sumGroups(const at::Tensor &gradient, int64_t heads) {
  int64_t repeated = gradient.size(-3);
  if (repeated == heads)
    return gradient;
  return gradient.unflatten(-3, {heads, repeated / heads})
      .sum(gradient.dim() - 2);
}

at::Tensor scores(const at::Tensor &query, const at::Tensor &key,
                  const std::optional<at::Tensor> &bias, bool causal,
                  double factor) {
  at::Tensor result = at::matmul(query, key.transpose(-2, -1)).mul_(factor);
  if (bias && bias->defined())
    result.add_(toHost(*bias).to(c10::kFloat));
  if (causal) {
    at::Tensor visible =
        at::ones({query.size(-2), key.size(-2)}, c10::kBool).tril_();
    result.masked_fill_(visible.logical_not(),
                        -std::numeric_limits<float>::infinity());
  }
  return result;
}

/// A fully masked row attends to nothing: its probabilities are zero.
at::Tensor probabilities(const at::Tensor &scoresIn, const at::Tensor &sums) {
  return at::exp(scoresIn - sums.unsqueeze(-1))
      .masked_fill_(at::isneginf(sums).unsqueeze(-1), 0.0);
}

double factorOf(const at::Tensor &query, std::optional<double> scale) {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

/// A device tensor with the values of `host` and the strides that PyTorch's
/// meta function promises: those of empty_like(like), or `like`'s stride order
/// where the sizes differ.
at::Tensor toDeviceLike(const at::Tensor &host, const at::Tensor &like) {
  at::Tensor result;
  if (host.sizes() == like.sizes()) {
    result = at::empty_like(like);
  } else {
    std::vector<int64_t> order(host.dim()), strides(host.dim());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return like.stride(a) > like.stride(b);
    });
    int64_t step = 1;
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
      strides[*dim] = step;
      step *= host.size(*dim);
    }
    result = at::empty_strided(host.sizes(), strides, like.options());
  }
  copyTensor(host, result);
  return result;
}

using AttentionResult =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
               c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

AttentionResult attention(const at::Tensor &query, const at::Tensor &key,
                          const at::Tensor &value,
                          const std::optional<at::Tensor> &bias, double dropout,
                          bool causal, bool, std::optional<double> scale) {
  TORCH_CHECK(query.dim() == 3 || query.dim() == 4,
              "query must have 3 or 4 dimensions, found ", query.dim());
  TORCH_CHECK(dropout == 0.0,
              "attention with dropout is not supported as one operator");
  recordFallback("aten::_scaled_dot_product_fused_attention_overrideable");
  at::Tensor q = toHost(query).to(c10::kFloat);
  at::Tensor k = repeatHeads(toHost(key).to(c10::kFloat), q.size(-3));
  at::Tensor v = repeatHeads(toHost(value).to(c10::kFloat), q.size(-3));
  at::Tensor s = scores(q, k, bias, causal, factorOf(query, scale));
  at::Tensor sums = at::logsumexp(s, -1);
  at::Tensor out = at::matmul(probabilities(s, sums), v);
  if (query.dim() == 3)
    sums = sums.unsqueeze(0);
  at::Tensor deviceSums =
      at::empty(sums.sizes(), query.options().dtype(c10::kFloat));
  copyTensor(sums, deviceSums);
  at::Tensor seed = at::zeros({}, query.options().dtype(c10::kLong));
  at::Tensor offset = at::zeros({}, query.options().dtype(c10::kLong));
  return {toDeviceLike(out, query),
          deviceSums,
          at::Tensor(),
          at::Tensor(),
          query.size(-2),
          key.size(-2),
          seed,
          offset,
          at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attentionBackward(
    const at::Tensor &gradOut, const at::Tensor &query, const at::Tensor &key,
    const at::Tensor &value, const at::Tensor &bias, std::array<bool, 4> wanted,
    const at::Tensor &out, const at::Tensor &sums, const at::Tensor &,
    const at::Tensor &, c10::SymInt, c10::SymInt, double, bool causal,
    const at::Tensor &, const at::Tensor &, std::optional<double> scale) {
  recordFallback(
      "aten::_scaled_dot_product_fused_attention_overrideable_backward");
  double factor = factorOf(query, scale);
  at::Tensor q = toHost(query).to(c10::kFloat);
  at::Tensor k = repeatHeads(toHost(key).to(c10::kFloat), q.size(-3));
  at::Tensor v = repeatHeads(toHost(value).to(c10::kFloat), q.size(-3));
  at::Tensor gradient = toHost(gradOut).to(c10::kFloat);
  at::Tensor hostSums = toHost(sums);
  if (query.dim() == 3)
    hostSums = hostSums.squeeze(0);
  at::Tensor p = probabilities(scores(q, k, bias, causal, factor), hostSums);
  at::Tensor gradP = at::matmul(gradient, v.transpose(-2, -1));
  at::Tensor delta = (gradient * toHost(out).to(c10::kFloat)).sum(-1, true);
  at::Tensor gradS = p * (gradP - delta);

  at::Tensor gradQuery, gradKey, gradValue, gradBias;
  if (wanted[0])
    gradQuery = toDeviceLike(at::matmul(gradS, k).mul_(factor), query);
  if (wanted[1])
    gradKey = toDeviceLike(
        sumGroups(at::matmul(gradS.transpose(-2, -1), q).mul_(factor),
                  key.size(-3)),
        key);
  if (wanted[2])
    gradValue = toDeviceLike(
        sumGroups(at::matmul(p.transpose(-2, -1), gradient), value.size(-3)),
        value);
  if (wanted[3] && bias.defined())
    gradBias = toDeviceLike(gradS.sum_to_size(bias.sizes()), bias);
  return {gradQuery, gradKey, gradValue, gradBias};
}

int64_t fusedChoice(const at::Tensor &query, const at::Tensor &key,
                    const at::Tensor &value,
                    const std::optional<at::Tensor> &mask, double dropout,
                    bool causal, std::optional<double> scale,
                    bool groupedQuery) {
  return chooseAttention(query, key, value, mask, dropout, causal, scale,
                         groupedQuery);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", fusedChoice);
}

TORCH_LIBRARY_IMPL(aten, kHostKernels, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", attention);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward",
         attentionBackward);
}

} // namespace

} // namespace spyre::pytorch

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub,
                              &spyre::pytorch::chooseAttention)

} // namespace at::native
