# SPDX-License-Identifier: Apache-2.0
"""Sums, products and extrema of all elements up to each one along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.ordering import may_be_nan

aten = torch.ops.aten

#: The rows of ``cumsum``, ``cummax`` and ``cummin`` go step by step. A dimension longer
#: than this is cut into parts, whose results lie side by side.
_LONGEST = 1024
_PART = 256
#: More sums than this lie side by side as they are: by predicted times, parts of 4,096
#: elements take 0.7 of the time of 32 whole sums, and 1.2 of that of 64.
_FEW = 32


def _is_cut(x: Tensor, dim: int) -> bool:
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    size = x.shape[dim] if x.dim() else 1
    return guard_or_false(size > _LONGEST) and guard_or_false(x.numel() <= size * _FEW)


def _in_parts(x: Tensor, dim: int) -> Tensor:
    """A dimension in parts ``[-1, _PART]``, the last one filled with zeros."""
    behind = x.dim() - 1 - dim
    filling = (0, 0) * behind + (0, -x.shape[dim] % _PART)
    return torch.nn.functional.pad(x, filling).unflatten(dim, (-1, _PART))


def _cumsum(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    if not _is_cut(x, dim):
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
    inside = _in_parts(x, dim).cumsum(dim + 1)
    totals = inside.select(dim + 1, -1).cumsum(dim)
    before = torch.nn.functional.pad(
        totals.narrow(dim, 0, totals.shape[dim] - 1), (0, 0) * behind + (1, 0)
    )
    sums = inside + before.unsqueeze(dim + 1)
    return sums.flatten(dim, dim + 1).narrow(dim, 0, size)


def _cumulative_extrema(
    scan: Callable[..., Any], reaches: Callable[[Tensor, Tensor], Tensor]
) -> Callable:
    """``aten.cummax`` or ``cummin``: within parts, then those of the parts' results.

    Of two elements, the later one counts if it ``reaches`` the other, or is NaN.
    """

    def extrema(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if not _is_cut(x, dim):
            return NotImplemented
        dim = dim % x.dim()
        size = x.shape[dim]
        if not isinstance(size, int):
            return NotImplemented  # A row takes all sizes in one program.
        values, places = scan(_in_parts(x, dim), dim + 1)
        count = values.shape[dim]
        starts = torch.arange(0, count * _PART, _PART, device=x.device)
        places = places + starts.view(-1, *[1] * (x.dim() - dim))
        best, part = scan(values.select(dim + 1, -1), dim)
        where = places.select(dim + 1, -1).gather(dim, part)
        # The first part has nothing before it: all of its results reach the first.
        best, where = (
            torch.cat(
                [own.select(dim + 1, 0).narrow(dim, 0, 1), t.narrow(dim, 0, count - 1)],
                dim,
            ).unsqueeze(dim + 1)
            for own, t in ((values, best), (places, where))
        )
        stays = reaches(values, best)
        if may_be_nan(x.dtype):
            stays = stays | (values != values)
        found, at = (
            torch.where(stays, own, before)
            .flatten(dim, dim + 1)
            .narrow(dim, 0, size)
            .clone(memory_format=torch.contiguous_format)
            for own, before in ((values, best), (places, where))
        )
        return found, at

    return extrema


def _step(
    x: Tensor, dim: int, distance: int, combine: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """What ``combine`` makes of each element and the one ``distance`` before it."""
    count = x.shape[dim] - distance
    kept = x.narrow(dim, 0, distance)
    moved = combine(x.narrow(dim, 0, count), x.narrow(dim, distance, count))
    return torch.cat([kept, moved], dim)


def _scan(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What ``combine`` makes of all elements up to each: the distance doubles."""
    size, distance = x.shape[dim] if x.dim() else 1, 1
    while distance < size:
        x = _step(x, dim, distance, combine)
        distance *= 2
    return x


#: Of numbers from 1/2 to 1 as many products are no less than 2^-64.
_MOST_UNSCALED = 64


def _scan_products(x: Tensor, dim: int) -> Tensor:
    """Products, in fp32, of all elements up to each.

    A scan multiplies elements that follow a zero with each other first, and these
    products may be infinite. So exponents are summed up beside the mantissas.
    """
    size, distance = x.shape[dim] if x.dim() else 1, 1
    mantissas, exponents = torch.frexp(x)
    exponents = exponents.cumsum(dim)
    carried: Tensor | None = None  # Exponents of products of mantissas.
    while distance < size:
        mantissas = _step(mantissas, dim, distance, torch.mul)
        if carried is not None:
            carried = _step(carried, dim, distance, torch.add)
        distance *= 2
        if distance % _MOST_UNSCALED == 0:
            mantissas, more = torch.frexp(mantissas)
            carried = more if carried is None else carried + more
    if carried is not None:
        exponents = exponents + carried
    # Twice half of it: neither power is infinite, by which a zero is multiplied.
    exponents = exponents.clamp(-252, 252)
    half = torch.div(exponents, 2, rounding_mode="floor")
    for part in (half, exponents - half):
        mantissas = mantissas * torch.pow(2.0, part.float())
    return mantissas


def _cumprod(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    dtype = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if dtype == torch.bool:
        return NotImplemented  # The CPU refuses it.
    if dtype.is_floating_point:
        result = _scan_products(x.float(), dim)
    else:
        # Products of integers wrap, in any order, as those of `prod` do.
        result = _scan(x.to(dtype), dim, torch.mul)
    return result.to(dtype).clone(memory_format=torch.contiguous_format)


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
BEFORE_ROWS: dict[Any, Callable] = {
    aten.cummax.default: _cumulative_extrema(torch.cummax, torch.ge),
    aten.cummin.default: _cumulative_extrema(torch.cummin, torch.le),
    aten.cumsum.default: _cumsum,
}
