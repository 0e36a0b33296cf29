# SPDX-License-Identifier: Apache-2.0
"""What follows from sorted elements: medians, modes, searches, long sorts.

The ATen table sorts what a core holds in its LX. Longer dimensions are sorted in
parts, four times (Leighton's columnsort). Equal elements keep their order, and NaN is
larger than all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten

#: Elements that the ATen table sorts at once.
MOST_SORTED = 1 << 14
#: Of so many largest each is found in a pass of its own over all elements, and more if
#: passes touch fewer than so many elements. Others are the first of sorted parts (by
#: predicted times, 3.6 instead of 7.0 us for 8 of 2,048, 33 instead of 630 for 50 of
#: 32,000; but 11 instead of 8.0 for 8 of each of 32 rows of 1,024).
_MOST_PASSES, _MOST_TOUCHED = 4, 1 << 14
#: Elements that such a part has at the least.
_LEAST_PART = 256
#: Fewer and longer parts than these take longer than a sort of all parts (by predicted
#: times, 191 us instead of 75 for 1,000 of 65,536 elements in parts of 8,192, but 143
#: instead of 152 for 500 of 131,072).
_LONG_PART, _MANY_PARTS = 1 << 12, 16
#: Elements of parts whose neighbours are compared: by predicted times, 16 us for
#: 131,072 elements; 22 with parts of 64, and 121 without parts.
_PART_FOR_NEIGHBOURS = 256
#: Boundaries times values up to which all are compared with all.
_MOST_COMPARED = 1 << 24


def may_be_nan(dtype: torch.dtype) -> bool:
    """Whether the device's format of a dtype has NaN: DL16 has not."""
    return dtype == torch.float32


# --- sorts of long dimensions ----------------------------------------------------


def last_number(x: Tensor, descending: bool) -> Tensor:
    """What comes after all elements, as a tensor of no dimension."""
    if x.dtype == torch.bool:
        value: Any = not descending
    elif x.dtype.is_floating_point:
        nan = math.nan if may_be_nan(x.dtype) else math.inf
        value = -math.inf if descending else nan
    else:
        limits = torch.iinfo(torch.int32 if x.dtype == torch.int64 else x.dtype)
        value = limits.min if descending else limits.max
    return torch.full((), value, dtype=x.dtype, device=x.device)


def _in_parts(x: Tensor, part: int, descending: bool) -> Tensor:
    """The last dimension in parts of so many; what fills the last one comes after all
    elements.
    """
    filling = last_number(x, descending).expand(*x.shape[:-1], -x.shape[-1] % part)
    return torch.cat([x, filling], -1).unflatten(-1, (-1, part))


def sort_pairs(
    keys: Tensor, places: Tensor, descending: bool, run: int
) -> tuple[Tensor, Tensor]:
    """The results of ``torch.ops.spyre.sort_pairs``: the last dimension in order.

    Of equal keys the one with the smaller place comes first. Every ``run`` elements are
    in this order already, which the device makes use of.
    """
    by_place = places.argsort(-1)
    values, order = torch.sort(
        keys.gather(-1, by_place), dim=-1, descending=descending, stable=True
    )
    return values, places.gather(-1, by_place.gather(-1, order))


def _part_for_sort(size: int) -> int:
    """The smallest part, a power of two, so that there are sqrt(part / 2) or fewer."""
    part = size
    while 2 * (2 * size // part) ** 2 <= part // 2:
        part //= 2
    return part


def _sort_long(
    pair: tuple[Tensor, Tensor], descending: bool, run: int
) -> tuple[Tensor, Tensor]:
    """``sort_pairs`` of ``[rows, size]``, where the size is a power of two.

    Longer rows are sorted by Leighton's columnsort ("Tight bounds on the complexity of
    parallel sorting", 1985): parts, which are its columns, are sorted four times. Each
    of p parts has to have 2 * p**2 elements or more.
    """
    rows, size = pair[0].shape
    if run >= size:
        return pair
    if size <= MOST_SORTED:
        return torch.ops.spyre.sort_pairs(*pair, descending, run)
    part = _part_for_sort(size)
    count = size // part
    share, half = part // count, part // 2

    def sorted_parts(
        arrange: Callable[[Tensor], Tensor], run: int
    ) -> tuple[Tensor, Tensor]:
        keys, places = (arrange(t).reshape(-1, part) for t in pair)
        return _sort_long((keys, places), descending, run)

    pair = sorted_parts(lambda t: t, run)
    # Each part deals its elements to all parts: so these differ by few elements only.
    pair = sorted_parts(
        lambda t: t.view(rows, count, share, count).permute(0, 3, 1, 2), share
    )
    # The first ones of all parts become the first part, and so on.
    pair = sorted_parts(
        lambda t: t.view(rows, count, count, share).transpose(1, 2), share
    )
    # What is not in its place is within half a part of it.
    inner = sorted_parts(lambda t: t.view(rows, size)[:, half:-half], half)
    keys, places = (
        torch.cat([old[:, :half], new.view(rows, -1), old[:, -half:]], 1)
        for old, new in zip((t.view(rows, size) for t in pair), inner, strict=True)
    )
    return keys, places


def _sort_pairs(
    keys: Tensor, places: Tensor, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """``sort_pairs`` of ``[rows, size]`` of any size."""
    size = int(keys.shape[1])
    full = 1 << (size - 1).bit_length()
    if size <= MOST_SORTED or size == full:
        return _sort_long((keys, places), descending, 1)
    keys = _in_parts(keys, full, descending).squeeze(1)
    # Behind all elements that are equal to the filling.
    behind = torch.arange(2**31 - full + size, 2**31, device=keys.device)
    places = torch.cat([places, behind.expand(places.shape[0], -1)], 1)
    keys, places = _sort_long((keys, places), descending, 1)
    return keys[:, :size], places[:, :size]


def pairs_in_order(keys: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """``sort_pairs`` of ``[size]`` of any size, for other decompositions."""
    keys, places = _sort_pairs(keys[None], places[None])
    return keys[0], places[0]


def sort(
    x: Tensor, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """``aten.sort.stable`` of a dimension that no core holds."""
    if x.dim() == 0 or x.shape[dim] <= MOST_SORTED:
        return NotImplemented
    if x.numel() == 0:
        return _compact(x), torch.zeros(x.shape, dtype=torch.int64, device=x.device)
    moved = x.movedim(dim, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    places = torch.arange(rows.shape[1], device=x.device).expand(rows.shape)
    return tuple(
        _compact(result.reshape(moved.shape).movedim(-1, dim))
        for result in _sort_pairs(rows, places, descending)
    )


def _compact(x: Tensor) -> Tensor:
    # Also where a dimension of one element leaves gaps that contiguous() would keep.
    return x.clone(memory_format=torch.contiguous_format)


def in_order(
    x: Tensor, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """``torch.sort`` of any length, for other decompositions: nobody takes operators
    inside of an eager program apart.
    """
    if x.dim() == 0 or x.shape[dim] <= MOST_SORTED:
        return torch.sort(x, dim=dim, descending=descending, stable=True)
    return sort(x, True, dim, descending)


def sort_any(
    x: Tensor, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """``aten.sort``, which is stable here."""
    return sort(x, True, dim, descending)


def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """``aten.topk`` of many elements of a long dimension: the first of a sort, or of
    sorts of parts.
    """
    if x.dim() == 0:
        return NotImplemented
    size = x.shape[dim]
    if isinstance(size, int) and isinstance(k, int) and k > _MOST_PASSES:
        part = _part_for(size, k)
        if size * k >= _MOST_TOUCHED and _is_cut(size, part):
            found = _first_of_parts(x.movedim(dim, -1), k, part, largest)
            return tuple(_compact(result.movedim(-1, dim)) for result in found)
    if size <= MOST_SORTED:
        return NotImplemented
    values, places = sort(x, True, dim, largest)
    return tuple(_compact(r.narrow(dim, 0, k)) for r in (values, places))


def _part_for(size: int, k: int) -> int:
    """So many elements that parts, and the first k of all parts, are about as many."""
    return max(_LEAST_PART, 1 << (math.isqrt(size * k - 1)).bit_length())


def _is_cut(size: int, part: int) -> bool:
    """Whether sorts of parts take less than one of all."""
    is_long = size > MOST_SORTED and part > _LONG_PART
    return (_MANY_PARTS if is_long else 2) * part <= size


def _first_of_parts(
    x: Tensor, k: int, part: int, descending: bool
) -> tuple[Tensor, Tensor]:
    """The first k of the last dimension in order, from the first k of its parts."""
    parts = _in_parts(x, part, descending)
    count = parts.shape[-2]
    values, places = _first_sorted(parts, k, descending)
    starts = torch.arange(0, count * part, part, device=x.device)
    values, places = values.flatten(-2), (places + starts[:, None]).flatten(-2)
    if 2 * (next_part := _part_for(count * k, k)) <= count * k:
        values, order = _first_of_parts(values, k, next_part, descending)
    else:
        values, order = _first_sorted(values, k, descending)
    return values, places.gather(-1, order)


def _first_sorted(x: Tensor, k: int, descending: bool) -> tuple[Tensor, Tensor]:
    values, places = in_order(x, -1, descending)
    return values[..., :k], places[..., :k]


def kthvalue(
    x: Tensor, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """``aten.kthvalue`` of a long dimension."""
    if x.dim() == 0 or x.shape[dim] <= MOST_SORTED:
        return NotImplemented
    return _take(*sort(x, True, dim), k - 1, dim, keepdim)


def _take(
    values: Tensor, places: Tensor, at: int, dim: int, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """What two tensors have at one place of a dimension."""
    taken = [t.narrow(dim, at, 1) for t in (values, places)]
    first, second = (t.clone() if keepdim else t.squeeze(dim).clone() for t in taken)
    return first, second


# --- medians and modes -----------------------------------------------------------


def _is_nan(x: Tensor) -> Tensor:
    """Or infinity, which DL16 has in place of NaN."""
    return x != x if may_be_nan(x.dtype) else x == math.inf


def _median_along(
    x: Tensor, dim: int, keepdim: bool, ignores_nan: bool
) -> tuple[Tensor, Tensor]:
    """The lower median along a dimension, and where it is.

    A NaN is the median where there is one, unless NaN are left out. It is infinity in
    DL16.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    size = x.shape[dim]
    if isinstance(size, int) and size == 0:
        return NotImplemented  # The CPU refuses it.
    values, places = in_order(x, dim)
    leaves_out = ignores_nan and x.is_floating_point()
    if not leaves_out and not may_be_nan(x.dtype):
        return _take(values, places, (size - 1) // 2, dim, keepdim)
    count = _is_nan(x).sum(dim, keepdim=True)
    # NaN come last.
    if ignores_nan:
        at = ((size - count - 1) // 2).clamp(min=0)
    else:
        at = torch.where(count > 0, size - count, (size - 1) // 2)
    taken = [t.gather(dim, at) for t in (values, places)]
    first, second = (t if keepdim else t.squeeze(dim).clone() for t in taken)
    return first, second


def _median_of_all(ignores_nan: bool) -> Callable:
    def median(x: Tensor) -> Tensor:
        if x.numel() == 0:
            with _disable_current_modes():
                value = torch.tensor(math.nan, device="cpu").to(x.dtype).item()
            return torch.full((), value, dtype=x.dtype, device=x.device)
        return _median_along(x.reshape(-1), 0, False, ignores_nan)[0]

    return median


def _median(ignores_nan: bool) -> Callable:
    def median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return _median_along(x, dim, keepdim, ignores_nan)

    return median


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element, the smallest of several, and where it is last.

    So does the CPU, of up to 16 elements. Of more, its sort inside does not keep the
    order of equal ones.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, places = in_order(x, dim)
    size = x.shape[dim]
    steps = torch.arange(size, device=x.device)
    steps = steps.view(-1, *[1] * (x.dim() - 1 - dim % x.dim()))
    starts = torch.where(starts_run(values, dim), steps, 0)
    lengths = steps - starts.cummax(dim).values
    at = lengths.argmax(dim, keepdim=True)
    taken = [t.gather(dim, at) for t in (values, places)]
    first, second = (t if keepdim else t.squeeze(dim).clone() for t in taken)
    return first, second


def starts_run(values: Tensor, dim: int) -> Tensor:
    """Where an element differs from the one before it; the first one does."""
    size = values.shape[dim]
    first = torch.ones_like(values.narrow(dim, 0, min(size, 1)), dtype=torch.bool)
    if size <= 1:
        return first
    if values.dim() == 1 and size > MOST_SORTED:
        # Neighbours lie in other lanes, but with parts side by side in other sticks.
        parts = _in_parts(values, _PART_FOR_NEIGHBOURS, False)
        between = torch.cat([first[:, None], parts[1:, :1] != parts[:-1, -1:]])
        inside = parts[:, 1:] != parts[:, :-1]
        return torch.cat([between, inside], 1).flatten()[:size]
    differs = values.narrow(dim, 1, size - 1) != values.narrow(dim, 0, size - 1)
    return torch.cat([first, differs], dim)


# --- searches --------------------------------------------------------------------


def _comes_before(bounds: Tensor, values: Tensor, right: bool) -> Tensor:
    """Whether a value is inserted after a boundary; NaN after all of them."""
    before = bounds <= values if right else bounds < values
    return before | _is_nan(values) if may_be_nan(values.dtype) else before


def _bisect(bounds: Tensor, values: Tensor, right: bool) -> Tensor:
    """Boundaries ``[..., m]`` before each of ``[..., n]``, found by halving."""
    size = bounds.shape[-1]
    found = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    step = 1 << (size.bit_length() - 1)
    while step:
        probe = found + step
        at = probe.clamp(max=size) - 1
        if bounds.dim() == 1:
            seen = bounds.index_select(0, at.reshape(-1)).reshape(at.shape)
        else:
            seen = bounds.gather(-1, at)
        passes = _comes_before(seen, values, right) & (probe <= size)
        found = torch.where(passes, probe, found)
        step //= 2
    return found


def search(bounds: Tensor, values: Tensor, right: bool) -> Tensor:
    """How many of the sorted ``bounds`` come before each value; int64.

    ``bounds`` is ``[m]``, or ``[..., m]`` for values ``[..., n]``.
    """
    size = bounds.shape[-1]
    if size == 0 or values.numel() == 0:
        return torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    if values.numel() * size > _MOST_COMPARED:
        return _bisect(bounds, values, right)
    if bounds.dim() > 1:
        bounds = bounds.unsqueeze(-2)
    return _comes_before(bounds, values.unsqueeze(-1), right).sum(-1)


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    dtype = like.dtype
    if isinstance(value, float) and not dtype.is_floating_point:
        dtype = torch.float32
    elif dtype == torch.bool:
        dtype = torch.int64
    elif not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        value = (value - limits.min) % 2**limits.bits + limits.min
    return torch.full((), value, dtype=dtype, device=like.device)


def searchsorted(
    bounds: Tensor,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """``aten.searchsorted``."""
    if side is not None:
        right = side == "right"
    if sorter is not None:
        bounds = bounds.gather(-1, sorter)
    found = search(bounds, _as_tensor(values, bounds), right)
    return found.to(torch.int32) if out_int32 else found


def bucketize(
    values: Any, bounds: Tensor, out_int32: bool = False, right: bool = False
) -> Tensor:
    """``aten.bucketize``: its ``right`` is searchsorted's."""
    if bounds.dim() != 1:
        return NotImplemented  # The CPU says what is wrong.
    return searchsorted(bounds, values, out_int32, right)


def isin(
    elements: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """``aten.isin``: compared with all, or with where they would be in order."""
    like = elements if isinstance(elements, Tensor) else test_elements
    elements, tested = (_as_tensor(v, like) for v in (elements, test_elements))
    dtype = torch.promote_types(elements.dtype, tested.dtype)
    elements, tested = elements.to(dtype), tested.to(dtype).reshape(-1)
    if tested.numel() * elements.numel() <= _MOST_COMPARED:
        found = (elements.unsqueeze(-1) == tested).any(-1)
    else:
        bounds = in_order(tested)[0]
        at = search(bounds, elements, False).clamp(max=tested.numel() - 1)
        found = bounds.index_select(0, at.reshape(-1)).reshape(at.shape) == elements
    return ~found if invert else found


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.bucketize.Scalar: bucketize,
    aten.bucketize.Tensor: bucketize,
    aten.isin.Scalar_Tensor: isin,
    aten.isin.Tensor_Scalar: isin,
    aten.isin.Tensor_Tensor: isin,
    aten.kthvalue.default: kthvalue,
    aten.median.default: _median_of_all(False),
    aten.median.dim: _median(False),
    aten.mode.default: mode,
    aten.nanmedian.default: _median_of_all(True),
    aten.nanmedian.dim: _median(True),
    aten.searchsorted.Scalar: searchsorted,
    aten.searchsorted.Tensor: searchsorted,
    aten.sort.default: sort_any,
    aten.sort.stable: sort,
}
#: Of operators with a row: NotImplemented for calls that the row is for.
BEFORE_ROWS: dict[Any, Callable] = {aten.topk.default: topk}
