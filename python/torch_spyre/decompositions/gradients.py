# SPDX-License-Identifier: Apache-2.0
"""Gradients that the ATen table has no row for.

They are computed in fp32 and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _weight_norm_backward(
    gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Gradients of v and g, where the weight is g v / |v| for each index of dim.

    ``norms`` are the lengths |v|, of g's shape. The part of the gradient along v
    changes g, the rest of it v.
    """
    direction = v.float() / norms.float()
    others = [d for d in range(v.dim()) if d != dim]
    along = (gradient.float() * direction).sum(others, keepdim=True)
    across = gradient.float() - along * direction
    return (g.float() / norms.float() * across).to(v.dtype), along.to(g.dtype)


def _group_norm_backward(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    deviation: Tensor,
    weight: Tensor | None,
    count: int,
    channels: int,
    size: int,
    groups: int,
    wanted: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """PyTorch's own, which divides by the size of a group also where that is 0."""
    from torch._decomp.decompositions import native_group_norm_backward

    rest = (weight, count, channels, size, groups)
    if size * (channels // groups) != 0:
        return native_group_norm_backward(gradient, x, mean, deviation, *rest, wanted)
    _, of_weight, of_bias = native_group_norm_backward(
        gradient, x, mean, deviation, *rest, [False, *wanted[1:]]
    )
    return torch.zeros_like(x) if wanted[0] else None, of_weight, of_bias


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.native_group_norm_backward.default: _group_norm_backward,
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
}
