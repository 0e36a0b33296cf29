# SPDX-License-Identifier: Apache-2.0
"""Maxima of windows, also where their places depend on the output, or are random.

A maximum comes with its number among the elements of the input's last dimensions, in
row-major order, of equal ones the first, of those that are no number the last. Its
gradient goes there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.ordering import may_be_nan
from torch_spyre.decompositions.windows import (
    adaptive_windows,
    pad_for_windows,
    pooled_size,
    put_back,
    spread,
    stored_as,
)

aten = torch.ops.aten

#: Windows of different sizes are searched one by one.
_MOST_WINDOWS = 64


def _lowest(dtype: torch.dtype) -> float:
    """What no element is below, of the device's elements."""
    if dtype.is_floating_point:
        return -math.inf
    return torch.iinfo(torch.int32 if dtype == torch.int64 else dtype).min


def _places_of_nan(x: Tensor, dim: int) -> Tensor:
    """Places along a dimension as fp32 numbers; zero where there is a number."""
    numbers = torch.arange(x.shape[dim], dtype=torch.float32, device=x.device)
    numbers = numbers.reshape(-1, *[1] * (x.dim() - 1 - dim))
    return torch.where(x.isnan(), numbers, 0.0)


def _pool(count: int, finds_places: bool = True) -> Callable:
    def pool(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """``aten.max_pool2d_with_indices``: a maximum reads its windows in place.

        For their numbers, windows lie one after the other. Graphs that need none drop
        that, and ``aten.max_pool2d`` does without.
        """
        kernel, padding, dilation = (
            spread(v, count) for v in (kernel, padding, dilation)
        )
        stride = spread(stride or kernel, count)
        size = x.shape[-count:]
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        out = pooled_size(size, reach, stride, padding, ceil_mode)
        if 0 in x.shape[:-count]:
            found = _maxima_of_none(x, (*x.shape[:-count], *out))
            return found if finds_places else found[0]
        how = kernel, stride, dilation
        if ceil_mode or any(padding):
            padded = pad_for_windows(x, *how, padding, out, _lowest(x.dtype))
        else:
            padded = x  # Windows end in it.
        view = torch.ops.spyre.windows(padded, *how, out)
        values = view.amax(list(range(x.dim(), view.dim())))
        has_format = count == 2 and x.dim() == 4
        if has_format:
            values = stored_as(values, x)
        if not finds_places:
            return values
        # The place in the window, as coordinates and as the number of the element.
        merged = torch.ops.spyre.merge_last(view, count)
        rest = merged.argmax(-1)
        if may_be_nan(x.dtype):
            last = _places_of_nan(merged, merged.dim() - 1).amax(-1)
            rest = torch.where(values.isnan(), last.to(torch.int64), rest)
        index: Any = 0
        for d in range(count):
            inside = (rest // math.prod(kernel[d + 1 :])) % kernel[d]
            first = torch.arange(out[d], device=x.device) * stride[d] - padding[d]
            first = first.reshape(-1, *[1] * (count - 1 - d))
            place = first + inside * dilation[d]
            if padding[d]:
                # Nothing in the window is larger than what pads it: the first element.
                place = torch.where(place < 0, place % dilation[d], place)
            index = index * size[d] + place
        return values, stored_as(index, x) if has_format else index

    return pool


def _pool_backward(count: int) -> Callable:
    def backward(
        gradient: Tensor,
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: Tensor,
    ) -> Tensor:
        """Each window's gradient goes where ``indices``, of ``x``'s last dimensions
        in row-major order, says that its maximum lies.
        """
        kernel, padding = spread(kernel, count), spread(padding, count)
        stride, dilation = spread(stride or kernel, count), spread(dilation, count)
        first, size = x.dim() - count, x.shape[-count:]
        gradient = gradient.float()
        total = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        for position in itertools.product(*(range(k) for k in kernel)):
            starts = [
                p * step - b
                for p, step, b in zip(position, dilation, padding, strict=True)
            ]
            index = 0
            for d, (start, s) in enumerate(zip(starts, stride, strict=True)):
                n = gradient.shape[first + d]
                own = torch.arange(n, device=x.device) * s + start
                own = own.reshape(n, *[1] * (count - 1 - d))
                index = index * size[d] + own
            part = torch.where(indices == index, gradient, 0.0)
            total = total + put_back(part, stride, starts, size)
        return total.to(x.dtype)

    return backward


def _maxima_of_none(x: Tensor, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Values and numbers of maxima, of a shape without elements."""
    return x.new_zeros(shape), x.new_zeros(shape, dtype=torch.int64)


def _adaptive(count: int) -> Callable:
    def pool(x: Tensor, out: Sequence[int]) -> tuple[Tensor, Tensor]:
        """``aten.adaptive_max_pool2d``, from the last dimension on: of equal maxima
        in other rows, the first row counts, or the last one that has NaN.
        """
        size = x.shape[-count:]
        if 0 in x.shape[:-count] or 0 in out:
            return _maxima_of_none(x, (*x.shape[:-count], *out))
        if max(out) > _MOST_WINDOWS or x.numel() == 0:
            return NotImplemented
        number = (
            torch.arange(math.prod(size), device=x.device).view(size).expand(x.shape)
        )
        values = x
        for dim in reversed(range(x.dim() - count, x.dim())):
            found = []
            for start, length in adaptive_windows(x.shape[dim], out[dim - x.dim()]):
                part = values.narrow(dim, start, length)
                own, place = part.max(dim, keepdim=True)
                if may_be_nan(x.dtype):
                    last = _places_of_nan(part, dim).amax(dim, keepdim=True)
                    place = torch.where(own.isnan(), last.to(torch.int64), place)
                numbers = number.narrow(dim, start, length).gather(dim, place)
                found.append((own, numbers))
            values = torch.cat([v for v, _ in found], dim)
            number = torch.cat([n for _, n in found], dim)
        return stored_as(values, x), stored_as(number, x)

    return pool


def _starts(samples: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """``[..., out]``: the first element of each window along a dimension."""
    numbers = torch.arange(out, device=samples.device).float()
    step = (size - kernel) / (out - 1) if out > 1 else 0.0
    begin = samples.float().unsqueeze(-1)
    starts = ((numbers + begin) * step).trunc() - (begin * step).trunc()
    return torch.where(numbers == out - 1, size - kernel, starts).to(torch.int64)


def _fractional(count: int) -> Callable:
    def pool(
        x: Tensor, kernel: Sequence[int], out: Sequence[int], samples: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``aten.fractional_max_pool2d``: random samples say where windows begin."""
        kernel, out, size = spread(kernel, count), spread(out, count), x.shape[-count:]
        lead = x.shape[:-count]
        if 0 in lead:
            return _maxima_of_none(x, (*lead, *out))
        flat = x.reshape(*lead, -1)
        samples = samples.reshape(*lead, count)
        starts = []
        for d in range(count):
            # Samples come last dimension first in two dimensions, not in three.
            own = samples[..., count - 1 - d if count == 2 else d]
            start = _starts(own, size[d], out[d], kernel[d])
            shape = [*lead, *[1] * d, out[d], *[1] * (count - 1 - d)]
            starts.append(start.reshape(shape))
        value: Any = None
        number: Any = None
        for place in itertools.product(*(range(k) for k in kernel)):
            index: Any = 0
            for start, step, length in zip(starts, place, size, strict=True):
                index = index * length + (start + step)
            index = index.expand(*lead, *out)
            own = flat.gather(-1, index.reshape(*lead, -1)).reshape(index.shape)
            if value is None:
                value, number = own, index
                continue
            larger = (own > value) | (own != own)
            value = torch.where(larger, own, value)
            number = torch.where(larger, index, number)
        return value, number.clone()

    return pool


def _to_maxima(count: int) -> Callable:
    def backward(gradient: Tensor, x: Tensor, *rest: Any) -> Tensor:
        """The gradient of what comes with the numbers of its maxima last."""
        numbers = rest[-1]
        if x.numel() == 0:
            return torch.zeros_like(x)
        lead = x.shape[:-count]
        numbers = numbers.reshape(*lead, -1)
        wide = gradient.reshape(*lead, -1).float()
        room = wide.new_zeros((*lead, math.prod(x.shape[-count:])))
        return room.scatter_add(-1, numbers, wide).reshape(x.shape).to(x.dtype)

    return backward


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.adaptive_max_pool2d.default: _adaptive(2),
    aten.adaptive_max_pool2d_backward.default: _to_maxima(2),
    aten.adaptive_max_pool3d.default: _adaptive(3),
    aten.adaptive_max_pool3d_backward.default: _to_maxima(3),
    aten.fractional_max_pool2d.default: _fractional(2),
    aten.fractional_max_pool2d_backward.default: _to_maxima(2),
    aten.fractional_max_pool3d.default: _fractional(3),
    aten.fractional_max_pool3d_backward.default: _to_maxima(3),
    aten.max_pool2d.default: _pool(2, finds_places=False),
    aten.max_pool2d_with_indices.default: _pool(2),
    aten.max_pool2d_with_indices_backward.default: _pool_backward(2),
    aten.max_pool3d.default: _pool(3, finds_places=False),
    aten.max_pool3d_with_indices.default: _pool(3),
    aten.max_pool3d_with_indices_backward.default: _pool_backward(3),
}
