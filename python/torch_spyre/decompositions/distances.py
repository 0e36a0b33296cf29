# SPDX-License-Identifier: Apache-2.0
"""Distances of all pairs of rows, by a norm of their differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: Differences beyond which the CPU, which keeps none of them, computes: 1 GiB in fp32.
_MOST_DIFFERENCES = 2**28


def _differences(x: Tensor, y: Tensor) -> Tensor | None:
    """[..., P, R, M] of [..., P, M] and [..., R, M]; None if they are too many."""
    if x.numel() * y.shape[-2] > _MOST_DIFFERENCES:
        return None
    return x.unsqueeze(-2) - y.unsqueeze(-3)


def _norm(differences: Tensor, p: float) -> Tensor:
    """Of the last dimension, which may be empty."""
    size = differences.abs()
    if p == 0:
        return (size != 0).to(differences.dtype).sum(-1)
    if p == 1 or size.shape[-1] == 0:
        return size.sum(-1)
    if p == 2:
        return (differences * differences).sum(-1).sqrt()
    if math.isinf(p):
        return size.amax(-1)
    return size.pow(p).sum(-1).pow(1 / p)


def _slope(differences: Tensor, p: float, distance: Tensor) -> Tensor:
    """Of the norm in each difference; 0 where it has none."""
    if p == 0:
        return torch.zeros_like(differences)
    if p == 1:
        return differences.sign()
    if math.isinf(p):
        is_largest = differences.abs() == distance
        return torch.where(is_largest, differences.sign(), 0.0)
    if p == 2:
        slope = differences / distance
    else:
        size = differences.abs()
        slope = differences.sign() * (size / distance).pow(p - 1)
    # Below p = 1 it is infinite where the difference is 0, and 0 for PyTorch.
    has_none = (differences == 0) if p < 1 else (distance == 0)
    return torch.where(has_none, 0.0, slope)


def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norms, which ``torch.cdist`` does not take from a product."""
    differences = _differences(x1, x2)
    return NotImplemented if differences is None else _norm(differences, p)


def cdist_backward(
    grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor
) -> Tensor:
    """The gradient of the first rows; of the second ones by exchanging the two."""
    differences = _differences(x1, x2)
    if differences is None:
        return NotImplemented
    slope = _slope(differences, p, cdist.unsqueeze(-1))
    return (grad.unsqueeze(-1) * slope).sum(-2)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._cdist_forward.default: cdist_forward,
    aten._cdist_backward.default: cdist_backward,
}
