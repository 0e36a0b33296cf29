# SPDX-License-Identifier: Apache-2.0
"""Batch norms that update the running statistics among their arguments.

PyTorch's functional variants have programs, and give the new statistics as results.
``aten.native_batch_norm``, of which ``nn.BatchNorm`` is made, and
``aten.batch_norm_update_stats`` write the statistics although their schemas do not say
so: a program or a run on the CPU would leave the statistics as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._decomp.decompositions import native_batch_norm_decomposition

aten = torch.ops.aten


def _store(results: tuple[Tensor, ...], mean: Tensor, var: Tensor) -> Any:
    """Takes the last two results into the statistics; the others are results."""
    *others, new_mean, new_var = results
    mean.copy_(new_mean)
    var.copy_(new_var)
    return tuple(others)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten._native_batch_norm_legit``: the norm of ``[N, C, ...]``, and per channel
    its mean and one by its deviation, while training.
    """
    if not training:
        return aten._native_batch_norm_legit_no_training.default(
            x, weight, bias, running_mean, running_var, momentum, eps
        )
    results = aten._native_batch_norm_legit_functional.default(
        x, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return _store(results, running_mean, running_var)


def batch_norm_with_update(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``aten._batch_norm_with_update``: while training, and an empty reserve, too."""
    results = aten._batch_norm_with_update_functional.default(
        x, weight, bias, running_mean, running_var, momentum, eps
    )
    return _store(results, running_mean, running_var)


def native_batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten.native_batch_norm``: the norm of ``[N, C, ...]``, and, while training, per
    channel its mean and one by its deviation.
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError(
            "running_mean and running_var must either both be None or neither be None"
        )
    return native_batch_norm_decomposition(
        x, weight, bias, running_mean, running_var, training, momentum, eps
    )


def dims_besides_channels(x: Tensor) -> list[int]:
    """All dimensions of ``[N, C, ...]`` but that of the channels."""
    return [d for d in range(x.dim()) if d != 1]


def blend(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    var: Tensor,
    correction: float | Tensor,
    momentum: float,
) -> None:
    """Moves the running statistics to others by the momentum. ``correction`` times the
    biased variance is the unbiased one.
    """
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((var * correction).to(running_var.dtype), momentum)


def update_stats(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
) -> tuple[Tensor, Tensor]:
    """``aten.batch_norm_update_stats``: mean and biased variance per channel."""
    var, mean = torch.var_mean(x, dims_besides_channels(x), correction=0)
    count = x.numel() // max(x.shape[1], 1)
    correction = count / (count - 1) if count > 1 else float("nan")
    blend(running_mean, running_var, mean, var, correction, momentum)
    if running_mean is not None:
        return mean.to(running_mean.dtype), var.to(running_mean.dtype)
    return mean, var
