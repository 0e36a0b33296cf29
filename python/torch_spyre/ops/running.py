# SPDX-License-Identifier: Apache-2.0
"""Batch norms that update the running statistics among their arguments.

PyTorch's functional variants have programs, and give the new statistics as results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

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
    its mean and one by its deviation.
    """
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
