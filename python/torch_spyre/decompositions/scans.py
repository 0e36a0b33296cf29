# SPDX-License-Identifier: Apache-2.0
"""Sums, products and the like of all elements up to each one along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false

aten = torch.ops.aten

#: A row of ``cumsum`` computes a sum after the other. A dimension longer than this is
#: cut into parts, whose sums lie side by side.
_LONGEST = 1024
_PART = 256
#: More sums than this lie side by side as they are: by predicted times, parts of 4,096
#: elements take 0.7 of the time of 32 whole sums, and 1.2 of that of 64.
_FEW = 32


def _cumsum(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    size = x.shape[dim] if x.dim() else 1
    if not guard_or_false(size > _LONGEST):
        return NotImplemented
    if not guard_or_false(x.numel() <= size * _FEW):
        return NotImplemented
    dtype = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if dtype == torch.bool:
        return NotImplemented  # The CPU refuses it.
    # Sums of integers wrap, in any order.
    wide = torch.float32 if dtype.is_floating_point else dtype
    sums = _sums_of_parts(x.to(dtype).to(wide), dim % x.dim())
    return sums.to(dtype).clone(memory_format=torch.contiguous_format)


def _sums_of_parts(x: Tensor, dim: int) -> Tensor:
    """Sums within parts, then those of the parts' totals in the same way.

    What comes before a part is added to it, and not its own total subtracted: that
    would make NaN of an infinity.
    """
    size, behind = x.shape[dim], x.dim() - 1 - dim
    padded = torch.nn.functional.pad(x, (0, 0) * behind + (0, -size % _PART))
    inside = padded.unflatten(dim, (-1, _PART)).cumsum(dim + 1)
    totals = inside.select(dim + 1, -1).cumsum(dim)
    before = torch.nn.functional.pad(
        totals.narrow(dim, 0, totals.shape[dim] - 1), (0, 0) * behind + (1, 0)
    )
    sums = inside + before.unsqueeze(dim + 1)
    return sums.flatten(dim, dim + 1).narrow(dim, 0, size)


def _scan(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What ``combine`` makes of all elements up to each: the distance doubles."""
    size, distance = x.shape[dim] if x.dim() else 1, 1
    while distance < size:
        kept = x.narrow(dim, 0, distance)
        moved = combine(
            x.narrow(dim, 0, size - distance),
            x.narrow(dim, distance, size - distance),
        )
        x = torch.cat([kept, moved], dim)
        distance *= 2
    return x


def _cumprod(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    dtype = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if dtype == torch.bool:
        return NotImplemented  # The CPU refuses it.
    # Products of integers wrap, in any order, as those of `prod` do.
    wide = torch.float32 if dtype.is_floating_point else dtype
    return (
        _scan(x.to(wide), dim, torch.mul)
        .to(dtype)
        .clone(memory_format=torch.contiguous_format)
    )


def _logcumsumexp(x: Tensor, dim: int) -> Tensor:
    def combine(a: Tensor, b: Tensor) -> Tensor:
        large = torch.maximum(a, b)
        sum_ = large + (-(a - b).abs()).exp().log1p()
        return torch.where(large.isinf(), large, sum_)

    return (
        _scan(x.float(), dim, combine)
        .to(x.dtype)
        .clone(memory_format=torch.contiguous_format)
    )


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._logcumsumexp.default: _logcumsumexp,
    aten.cumprod.default: _cumprod,
}
#: Of operators with a row: NotImplemented for calls that the row is for. It would take
#: the others, too, so eager calls ask here first.
BEFORE_ROWS: dict[Any, Callable] = {aten.cumsum.default: _cumsum}
