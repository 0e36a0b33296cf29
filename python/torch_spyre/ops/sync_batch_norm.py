# SPDX-License-Identifier: Apache-2.0
"""The operators of ``nn.SyncBatchNorm``, which PyTorch has for CUDA alone.

The layer gathers and sums between them what the ranks know. Inputs are ``[N, C, ...]``;
statistics, ``[C]``, or ``[ranks, C]`` before they are one, are fp32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_spyre.ops.running import blend, dims_besides_channels


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(1, -1, *[1] * (x.dim() - 2))


def _scale(invstd: Tensor, weight: Tensor | None) -> Tensor:
    return invstd if weight is None else invstd * weight.to(invstd.dtype)


def stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """``aten.batch_norm_stats``: the mean, and one by the deviation, of a rank."""
    variance, mean = torch.var_mean(x.float(), dims_besides_channels(x), correction=0)
    return mean, (variance + eps).rsqrt()


def gather_stats_with_counts(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """``aten.batch_norm_gather_stats_with_counts``: the same of all ranks together, of
    which each has ``counts`` (``[ranks]``) elements per channel. Updates the
    running statistics.
    """
    count = counts.float().sum()
    shares = (counts.float() / count).unsqueeze(1)
    all_mean = (shares * mean).sum(0)
    variances = invstd.pow(-2) - eps + (mean - all_mean).square()
    variance = (shares * variances).sum(0)
    correction = count / (count - 1)
    blend(running_mean, running_var, all_mean, variance, correction, momentum)
    return all_mean, (variance + eps).rsqrt()


def gather_stats(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """``aten.batch_norm_gather_stats``: where all ranks have as many elements."""
    counts = mean.new_full((mean.shape[0],), count)
    return gather_stats_with_counts(
        x, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


def normalize(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    eps: float,
) -> Tensor:
    """``aten.batch_norm_elemt``, in the input's type."""
    scale = _scale(invstd, weight)
    result = (x.float() - _per_channel(mean, x)) * _per_channel(scale, x)
    if bias is not None:
        result = result + _per_channel(bias.float(), x)
    return result.to(x.dtype)


def backward_reduce(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    wants_input: bool,
    wants_weight: bool,
    wants_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """``aten.batch_norm_backward_reduce``: a rank's sums, per channel, of the gradient,
    and of it times the distance from the mean; the gradients of weight and bias.
    """
    gradient, dims = grad.float(), dims_besides_channels(x)
    total = gradient.sum(dims)
    products = (gradient * (x.float() - _per_channel(mean, x))).sum(dims)
    if weight is None:
        return total, products, None, None
    of_weight = (products * invstd).to(weight.dtype) if wants_weight else None
    return total, products, of_weight, total.to(weight.dtype) if wants_bias else None


def backward_input(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    total: Tensor,
    products: Tensor,
    counts: Tensor,
) -> Tensor:
    """``aten.batch_norm_backward_elemt``: the gradient of the input, from the sums of
    ``backward_reduce()`` over all ranks and their ``counts``.
    """
    count = counts.float().sum()
    slope = invstd.square() * products / count
    distances = (x.float() - _per_channel(mean, x)) * _per_channel(slope, x)
    centred = grad.float() - _per_channel(total / count, x) - distances
    return (centred * _per_channel(_scale(invstd, weight), x)).to(x.dtype)
