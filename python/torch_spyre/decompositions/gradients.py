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


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
}
