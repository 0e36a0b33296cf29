# SPDX-License-Identifier: Apache-2.0
"""Operators whose results have as many elements as the values say.

A program moves what is selected to the front of a result that has room for all, and
counts it. The host reads the count, and a copy of that size is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.ordering import (
    MOST_SORTED,
    in_order,
    last_number,
    pairs_in_order,
    search,
    starts_run,
)

aten = torch.ops.aten

#: Elements of which one program selects some: each has a stick of its own there, and a
#: core addresses 256 MiB.
_MOST = 1 << 20


def _to_front(values: Tensor, flags: Tensor) -> tuple[Tensor, Tensor]:
    """``values``, ``[N]``, where flags are set, then anything; how many there are."""
    size = values.numel()
    if size == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
    count = flags.cumsum(0)
    # What is not selected goes behind all.
    place = torch.where(flags, count - 1, size)
    room = torch.zeros(size + 1, dtype=values.dtype, device=values.device)
    return room.scatter(0, place, values)[:size].clone(), count[-1].clone()


def select_padded(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of ``masked_select`` at the front of all, and their number."""
    x, mask = torch.broadcast_tensors(x, mask)
    return _to_front(x.reshape(-1), mask.reshape(-1))


def _coordinates(places: Tensor, shape: Sequence[int]) -> Tensor:
    """Row-major numbers ``[N]`` of elements as coordinates ``[N, rank]``."""
    columns = []
    step = math.prod(shape)
    for size in shape:
        step //= max(size, 1)
        columns.append((places // max(step, 1)) % max(size, 1))
    if not columns:
        return places.new_zeros((places.numel(), 0))
    return torch.stack(columns, 1)


def nonzero_padded(x: Tensor) -> tuple[Tensor, Tensor]:
    """The coordinates of ``nonzero`` at the front of all, and their number."""
    flags = (x != 0).reshape(-1)
    numbers = torch.arange(flags.numel(), device=x.device)
    places, count = _to_front(numbers, flags)
    return _coordinates(places, x.shape), count


def nonzero_static(x: Tensor, size: int, fill_value: int = -1) -> Tensor:
    """``aten.nonzero_static``: ``size`` rows, filled up."""
    places, count = nonzero_padded(x)
    missing = size - places.shape[0]
    if missing > 0:
        places = torch.cat([places, places.new_zeros((missing, places.shape[1]))])
    rows = torch.arange(size, device=x.device)[:, None]
    return torch.where(rows < count, places[:size], fill_value)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``aten.masked_scatter``: the n-th element of the source where the mask is set
    for the n-th time. A source that is too short is an index outside of it.
    """
    x, mask = torch.broadcast_tensors(x, mask)
    if x.numel() == 0:
        return x.clone()
    flags = mask.reshape(-1)
    place = flags.cumsum(0) - 1
    if source.numel() == 0:
        # Any element that is asked for is outside of it.
        source, place = source.new_zeros(1), place + 1
    place = torch.where(flags, place, 0)
    taken = source.reshape(-1).index_select(0, place)
    return torch.where(flags, taken, x.reshape(-1)).view(x.shape)


def repeat_numbers(repeats: Tensor, size: int) -> Tensor:
    """0, 1, ... as often as ``repeats``, ``[N]``, say; ``size`` numbers in all."""
    ends = repeats.cumsum(0)
    numbers = torch.arange(size, device=repeats.device)
    return search(ends, numbers, right=True).to(repeats.dtype)


# --- unique ----------------------------------------------------------------------


def _number_runs(starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of flags that start runs: each element's run, the runs' ends, their number."""
    run = starts.cumsum(0) - 1
    size = starts.numel()
    places = torch.arange(size, device=starts.device)
    ends = torch.zeros(size, dtype=torch.int64, device=starts.device)
    # Places ascend, and the last one stays.
    ends = ends.scatter(0, run, places + 1)
    return run, ends, run[-1] + 1


def _lengths(ends: Tensor) -> Tensor:
    before = torch.nn.functional.pad(ends[:-1], (1, 0))
    return ends - before


def _sort_rows(rows: Tensor) -> Tensor:
    """Numbers of the rows of ``[N, W]`` in lexicographic order; the last key first."""
    order = torch.arange(rows.shape[0], device=rows.device)
    for column in reversed(range(rows.shape[1])):
        keys = rows[:, column].index_select(0, order)
        order = order.index_select(0, in_order(keys)[1])
    return order


def _unique_elements(x: Tensor) -> tuple[Tensor, ...]:
    """``unique_padded`` of ``[N]``, without scatters.

    By predicted times, 549 us instead of 3,409 for 131,072 elements. On the host,
    scatters of few elements are faster.
    """
    size = x.shape[0]
    values, order = in_order(x)
    starts = starts_run(values, 0)
    run = starts.cumsum(0) - 1
    places = torch.arange(size, device=x.device)
    # Those that start runs are in order already: the others go behind them.
    different, begins = pairs_in_order(
        torch.where(starts, values, last_number(values, False)),
        torch.where(starts, places, places + size),
    )
    begins = begins.clamp(max=size)
    counts = torch.nn.functional.pad(begins[1:], (0, 1), value=size) - begins
    inverse = pairs_in_order(order, run)[1]
    return different, inverse, counts, run[-1] + 1


def unique_padded(rows: Tensor, is_sorted: bool) -> tuple[Tensor, ...]:
    """The different rows of ``[N, W]``, N > 0, at the front of all.

    Also the row that each one is, how often they occur, and their number. Rows that
    follow each other are compared, after a sort unless ``is_sorted``.
    """
    size = rows.shape[0]
    if size > MOST_SORTED and rows.shape[1] == 1 and not is_sorted:
        different, *rest = _unique_elements(rows[:, 0])
        return different[:, None], *rest
    order = torch.arange(size, device=rows.device) if is_sorted else _sort_rows(rows)
    ordered = rows if is_sorted else rows.index_select(0, order)
    starts = starts_run(ordered, 0).any(1)
    run, ends, count = _number_runs(starts)
    room = torch.zeros_like(rows)
    different = room.index_copy(0, run, ordered)
    inverse = run if is_sorted else torch.zeros_like(run).scatter(0, order, run)
    return different, inverse, _lengths(ends), count


# --- kernels ---------------------------------------------------------------------

_own = torch.library.Library("spyre", "FRAGMENT")
_own.define("select_padded(Tensor self, Tensor mask) -> (Tensor, Tensor)")
_own.define("nonzero_padded(Tensor self) -> (Tensor, Tensor)")
_own.define("repeat_numbers(Tensor repeats, int size) -> Tensor")
_own.define(
    "unique_padded(Tensor rows, bool is_sorted) -> (Tensor, Tensor, Tensor, Tensor)"
)

#: What the kernels call; each call of a kind is one program.
PROGRAMS: dict[Any, Callable] = {
    torch.ops.spyre.nonzero_padded.default: nonzero_padded,
    torch.ops.spyre.repeat_numbers.default: repeat_numbers,
    torch.ops.spyre.select_padded.default: select_padded,
    torch.ops.spyre.unique_padded.default: unique_padded,
}
DECOMPOSITIONS: dict[Any, Callable] = {
    aten.masked_scatter.default: masked_scatter,
    aten.nonzero_static.default: nonzero_static,
    **PROGRAMS,
}


def _first(padded: Tensor, count: Tensor) -> Tensor:
    return padded[: int(count.item())].clone()


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """``aten.masked_select``."""
    if mask.dtype not in (torch.bool, torch.uint8):
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    mask = mask.to(torch.bool)
    size = math.prod(torch.broadcast_shapes(x.shape, mask.shape))
    if size <= _MOST:
        return _first(*torch.ops.spyre.select_padded(x, mask))
    flat = [t.reshape(-1) for t in torch.broadcast_tensors(x, mask)]
    parts = zip(*(t.split(_MOST) for t in flat), strict=True)
    return torch.cat([_first(*torch.ops.spyre.select_padded(*p)) for p in parts])


def _by_columns(rows: Tensor) -> Tensor:
    """A copy ``[N, rank]`` that lies column by column."""
    return rows.t().clone(memory_format=torch.contiguous_format).t()


def nonzero(x: Tensor) -> Tensor:
    """``aten.nonzero``, whose result lies as on other devices."""
    if x.numel() <= _MOST:
        padded, count = torch.ops.spyre.nonzero_padded(x)
        return _by_columns(padded[: int(count.item())])
    found = [
        _first(*torch.ops.spyre.nonzero_padded(part)) + number * _MOST
        for number, part in enumerate(x.reshape(-1).split(_MOST))
    ]
    return _by_columns(_coordinates(torch.cat(found)[:, 0], x.shape))


def repeat_interleave(repeats: Tensor, output_size: int | None = None) -> Tensor:
    """``aten.repeat_interleave.Tensor``: 0, 1, ... as often as ``repeats`` say."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (torch.int32, torch.int64):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.numel() == 0:
        return repeats.clone()
    if output_size is None:
        if repeats.amin().item() < 0:
            raise RuntimeError("repeats can not be negative")
        # Sums of the device have 32 bits.
        high, low = ((repeats // 2**16).sum(), (repeats % 2**16).sum())
        output_size = int(high.item()) * 2**16 + int(low.item())
    if output_size >= 2**31:
        raise RuntimeError(
            f"repeat_interleave makes {output_size} numbers, more than the spyre "
            "device counts with 32 bits"
        )
    return torch.ops.spyre.repeat_numbers(repeats, output_size)


def _unique_rows(rows: Tensor, is_sorted: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The different rows of ``[N, W]``, the one that each is, how often they occur."""
    if rows.shape[0] == 0:
        nothing = torch.zeros(0, dtype=torch.int64, device=rows.device)
        return rows.clone(), nothing, nothing.clone()
    different, inverse, counts, count = torch.ops.spyre.unique_padded(rows, is_sorted)
    size = int(count.item())
    return different[:size].clone(), inverse, counts[:size].clone()


def _unique(x: Tensor, is_sorted: bool) -> tuple[Tensor, Tensor, Tensor]:
    rows, inverse, counts = _unique_rows(x.reshape(-1, 1), is_sorted)
    return rows.view(-1), inverse.view(x.shape), counts


def _wanted(
    results: tuple[Tensor, Tensor, Tensor], inverse: bool, counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Leaves out what was not asked for, as the CPU does."""
    nothing = results[1].new_zeros(0)
    return (
        results[0],
        results[1] if inverse else nothing,
        results[2] if counts else nothing.clone(),
    )


def unique2(
    x: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten._unique2``."""
    return _wanted(_unique(x, False), return_inverse, return_counts)


def unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """``aten._unique``."""
    return unique2(x, sorted, return_inverse)[:2]


def _unique_along(
    x: Tensor, dim: int, is_sorted: bool
) -> tuple[Tensor, Tensor, Tensor]:
    moved = x.movedim(dim, 0)
    width = math.prod(moved.shape[1:])
    flat = moved.reshape(x.shape[dim], width)
    rows, inverse, counts = _unique_rows(flat, is_sorted)
    found = rows.view(rows.shape[0], *moved.shape[1:]).movedim(0, dim)
    return found.contiguous(), inverse, counts


def _check_empty(x: Tensor, dim: int) -> None:
    zeros = sum(size == 0 for size in x.shape)
    if x.shape[dim] == 0 and zeros != 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be "
            "applied"
        )
    if x.shape[dim] != 0 and zeros != 0:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot "
            "be applied"
        )


def unique_dim(
    x: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten.unique_dim``."""
    _check_empty(x, dim)
    return _wanted(_unique_along(x, dim, False), return_inverse, return_counts)


def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten.unique_consecutive``."""
    if dim is not None:
        return unique_dim_consecutive(x, dim, return_inverse, return_counts)
    return _wanted(_unique(x, True), return_inverse, return_counts)


def unique_dim_consecutive(
    x: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten.unique_dim_consecutive``."""
    _check_empty(x, dim)
    return _wanted(_unique_along(x, dim, True), return_inverse, return_counts)
