# SPDX-License-Identifier: Apache-2.0
"""Reductions of parts of a dimension: bags of embeddings, segments.

Every element gets the number of its part, and parts are reduced by scatters, which
accumulate in fp32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.ordering import search

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2


# --- embeddings ------------------------------------------------------------------


def embedding_renorm(
    weight: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """``aten.embedding_renorm``: the rows that are looked up get shorter."""
    wide = weight.float()
    norms = torch.linalg.vector_norm(wide, norm_type, 1, keepdim=True)
    asked = torch.zeros(weight.shape[0], dtype=torch.bool, device=weight.device)
    asked = asked.index_fill(0, indices.reshape(-1), True)[:, None]
    scale = max_norm / (norms + 1e-7)
    return torch.where(asked & (norms > max_norm), wide * scale, wide).to(weight.dtype)


def part_of_each(count: int, starts: Tensor) -> Tensor:
    """The part that each of ``count`` elements is in; parts begin at ``starts``."""
    numbers = torch.arange(count, device=starts.device)
    return search(starts.to(numbers.dtype), numbers, right=True) - 1


def _checked_starts(offsets: Tensor, count: int, include_last_offset: bool) -> Tensor:
    """Where bags begin; behind all of ``count`` indices if the offsets are wrong, so
    that these are in bag -1, which is an error of what uses it.
    """
    starts = offsets[: offsets.numel() - include_last_offset]
    ends = offsets[1:]
    is_wrong = (starts[: ends.numel()] > ends).any() | (offsets > count).any()
    if include_last_offset:
        is_wrong = is_wrong | (offsets[-1] != count)
    return torch.where(is_wrong, count, starts)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``aten._embedding_bag``: the bags, and what the backward pass needs.

    That is the bag of each index, the sizes of bags, and in mode MAX the row of the
    weight that each maximum is from.
    """
    bags = offsets.numel() - include_last_offset
    count = indices.numel()
    shape = (bags, weight.shape[1])
    bag = part_of_each(count, _checked_starts(offsets, count, include_last_offset))
    wide = weight.float()
    kept = torch.ones_like(bag, dtype=torch.bool)
    if padding_idx >= 0:
        kept = indices != padding_idx
    sizes = torch.zeros(bags, dtype=torch.int64, device=weight.device)
    sizes = sizes.index_add(0, bag, kept.to(torch.int64))
    rows = wide.index_select(0, indices)
    if mode == MAX:
        rows = torch.where(kept[:, None], rows, -math.inf)
        start = wide.new_full(shape, -math.inf)
        found = start.index_reduce(0, bag, rows, "amax")
        numbers = torch.arange(count, device=weight.device)[:, None]
        is_found = (rows == found.index_select(0, bag)) & kept[:, None]
        first = torch.where(is_found, numbers, count)
        last = torch.full(shape, count, dtype=torch.int64, device=weight.device)
        at = last.index_reduce(0, bag, first, "amin")
        # Bags without elements have no row.
        sources = torch.nn.functional.pad(indices.to(torch.int64), (0, 1), value=-1)
        largest = sources.index_select(0, at.reshape(-1)).view(shape)
        result = torch.where((sizes > 0)[:, None], found, 0.0)
        return result.to(weight.dtype), bag, sizes, largest
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.float()[:, None]
    rows = torch.where(kept[:, None], rows, 0.0)
    start = wide.new_zeros(shape)
    result = start.index_add(0, bag, rows)
    if mode == MEAN:
        result = result / sizes.clamp(min=1)[:, None]
    return result.to(weight.dtype), bag, sizes, sizes.clone()


def embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    bag: Tensor,
    sizes: Tensor,
    largest: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """``aten._embedding_bag_dense_backward``."""
    width = gradient.shape[1]
    wide = gradient.float()
    if mode == MAX:
        # What belongs to no row goes to one behind all.
        target = torch.where(largest < 0, num_weights, largest)
        room = wide.new_zeros((num_weights + 1, width))
        sums = room.scatter_add(0, target, wide)[:num_weights]
        return sums.to(gradient.dtype)
    rows = wide.index_select(0, bag)
    if mode == MEAN:
        rows = rows / sizes.index_select(0, bag)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.float()[:, None]
    if padding_idx >= 0:
        rows = torch.where((indices != padding_idx)[:, None], rows, 0.0)
    sums = wide.new_zeros((num_weights, width))
    sums = sums.index_add(0, indices, rows)
    if scale_grad_by_freq:
        counts = wide.new_zeros(num_weights)
        counts = counts.index_add(0, indices, torch.ones_like(indices).float())
        sums = sums / counts.clamp(min=1.0)[:, None]
    return sums.to(gradient.dtype)


def _embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag: Tensor,
    sizes: Tensor,
    largest: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    if sparse:
        return NotImplemented
    return embedding_bag_backward(
        gradient,
        indices,
        bag,
        sizes,
        largest,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


def embedding_bag_weights_backward(
    gradient: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """``aten._embedding_bag_per_sample_weights_backward``."""
    rows = weight.float().index_select(0, indices)
    products = (gradient.float().index_select(0, bag) * rows).sum(1)
    if padding_idx >= 0:
        products = torch.where(indices != padding_idx, products, 0.0)
    return products.to(gradient.dtype)


# --- segments --------------------------------------------------------------------

#: PyTorch's names of reductions: as scatter_reduce calls them, and of nothing.
_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "prod": ("prod", 1.0),
}


def _normalize(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None,
    offsets: Tensor | None,
    axis: int,
) -> tuple[str, Tensor | None, int]:
    """The reduction, as ``_REDUCTIONS`` names it; lengths, if there are segments; and
    the axis, from the front.
    """
    if offsets is not None:
        lengths = offsets[..., 1:] - offsets[..., :-1]
    # amax and amin are max and min.
    return reduce.removeprefix("a"), lengths, axis % data.dim()


def _segment_of_each(lengths: Tensor, offsets: Tensor | None, size: int) -> Tensor:
    """``[..., size]``: the segment of each element, of lengths ``[..., B]``; B for what
    is behind all, or before the first of ``offsets``.
    """
    ends = lengths.to(torch.int64).cumsum(-1) if offsets is None else offsets[..., 1:]
    numbers = torch.arange(size, device=lengths.device).expand(*ends.shape[:-1], size)
    found = search(ends.contiguous(), numbers.contiguous(), right=True)
    if offsets is None:
        return found
    return torch.where(numbers < offsets[..., :1], lengths.shape[-1], found)


def _along(index: Tensor, shape: Any, axis: int) -> Tensor:
    """What there is for the dimensions up to ``axis``, for all that is behind it."""
    return index.view(*index.shape, *[1] * (len(shape) - axis - 1)).expand(shape)


def segment_reduce(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """``aten.segment_reduce``; what is before or behind all segments is in none."""
    reduce, lengths, axis = _normalize(data, reduce, lengths, offsets, axis)
    if lengths is None or indices is not None:
        return NotImplemented
    size, count = data.shape[axis], lengths.shape[-1]
    segment = _along(_segment_of_each(lengths, offsets, size), data.shape, axis)
    shape = [*data.shape[:axis], count + 1, *data.shape[axis + 1 :]]
    name, start = _REDUCTIONS[reduce]
    start = start if initial is None else float(initial)
    wide = data.float()
    room = wide.new_full(shape, start)
    result = room.scatter_reduce(axis, segment, wide, name)
    result = result.narrow(axis, 0, count)
    if reduce == "mean":
        sizes = _along(lengths, result.shape, axis)
        result = result / sizes.clamp(min=1)
        if initial is None:
            result = torch.where(sizes == 0, math.nan, result)
    return result.to(data.dtype)


def segment_reduce_backward(
    gradient: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: Any = None,
) -> Tensor:
    """``aten._segment_reduce_backward``."""
    reduce, lengths, axis = _normalize(data, reduce, lengths, offsets, axis)
    if lengths is None:
        return NotImplemented
    size = data.shape[axis]
    numbers = _segment_of_each(lengths, offsets, size)
    count = lengths.shape[-1]
    is_inside = _along(numbers < count, data.shape, axis)
    segment = _along(numbers.clamp(max=max(count - 1, 0)), data.shape, axis)
    own = gradient.float().gather(axis, segment)
    values, wide = output.float().gather(axis, segment), data.float()
    if reduce == "mean":
        own = own / _along(lengths, gradient.shape, axis).gather(axis, segment)
    elif reduce in ("max", "min"):
        # Equal extrema share the gradient.
        equal = (wide == values) | (values.isnan() & wide.isnan())
        shares = wide.new_zeros(gradient.shape)
        shares = shares.scatter_add(axis, segment, (equal & is_inside).float())
        own = torch.where(equal, own / shares.gather(axis, segment).clamp(min=1.0), 0.0)
    elif reduce == "prod":
        wide = torch.where(is_inside, wide, 1.0)
        own = own * _product_of_others(wide, segment, gradient.shape, axis, initial)
    return torch.where(is_inside, own, 0.0).to(data.dtype)


def _product_of_others(
    data: Tensor, segment: Tensor, shape: Any, axis: int, initial: Any
) -> Tensor:
    """The product of a segment, of fp32, without each element, also one that is 0."""
    is_zero = data == 0
    start = 1.0 if initial is None else float(initial)
    products = data.new_full(shape, start).scatter_reduce(
        axis, segment, torch.where(is_zero, 1.0, data), "prod"
    )
    zeros = data.new_zeros(shape)
    zeros = zeros.scatter_add(axis, segment, is_zero.float()).gather(axis, segment)
    product = products.gather(axis, segment)
    others = torch.where(is_zero, product, product / data)
    return torch.where(zeros - is_zero.float() > 0, 0.0, others)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_backward.default: _embedding_bag_backward,
    aten._embedding_bag_dense_backward.default: embedding_bag_backward,
    aten._embedding_bag_forward_only.default: embedding_bag,
    aten._embedding_bag_per_sample_weights_backward.default: (
        embedding_bag_weights_backward
    ),
    aten._segment_reduce_backward.default: segment_reduce_backward,
    aten.embedding_renorm.default: embedding_renorm,
    aten.segment_reduce.default: segment_reduce,
}
