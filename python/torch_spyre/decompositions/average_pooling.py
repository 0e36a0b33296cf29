# SPDX-License-Identifier: Apache-2.0
"""Averages of windows, and their gradients.

Sums over windows are taken in fp32, in one operation that reads them in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.windows import (
    Shape,
    adaptive_windows,
    pad,
    pad_for_windows,
    pooled_size,
    space_out,
    spread,
    stored_as,
)

aten = torch.ops.aten


def _sum_of_windows(
    x: Tensor, kernel: Shape, stride: Shape, before: Shape, out: Shape, edge: float
) -> Tensor:
    """Sums, in fp32, over the windows from -before on; outside lies ``edge``."""
    ones = [1] * len(kernel)
    x = pad_for_windows(x, kernel, stride, ones, before, out, edge)
    view = torch.ops.spyre.windows(x, kernel, stride, ones, out)
    return view.sum(list(range(x.dim(), view.dim())), dtype=torch.float32)


@dataclass(frozen=True)
class _AveragePool:
    """The arguments of an average pooling, one number per spatial dimension."""

    kernel: list[int]
    stride: list[int]
    padding: list[int]
    out: list[int]
    counts_padding: bool
    divisor: int | None

    @staticmethod
    def of(
        x: Tensor,
        count: int,
        kernel: Shape,
        stride: Shape = (),
        padding: Shape = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> _AveragePool:
        kernel, padding = spread(kernel, count), spread(padding, count)
        stride = spread(stride or kernel, count)
        out = pooled_size(x.shape[-count:], kernel, stride, padding, ceil_mode)
        return _AveragePool(
            kernel, stride, padding, out, count_include_pad, divisor_override
        )

    def counts(self, x: Tensor) -> Tensor | int:
        """By what each window's sum is divided."""
        if self.divisor is not None:
            return self.divisor
        size = x.shape[-len(self.kernel) :]
        is_inside = all(
            (n - 1) * s + k <= z + (2 * p if self.counts_padding else p)
            and (p == 0 or self.counts_padding)
            for n, s, k, p, z in zip(
                self.out, self.stride, self.kernel, self.padding, size, strict=True
            )
        )
        if is_inside:
            return math.prod(self.kernel)
        ones = torch.ones(size, dtype=torch.float32, device=x.device)
        before = self.padding
        if self.counts_padding:
            ones, before = pad(ones, before, before, 1.0), [0] * len(before)
        return _sum_of_windows(ones, self.kernel, self.stride, before, self.out, 0.0)


def _average_pool(count: int) -> Callable:
    def pool(x: Tensor, *arguments: Any) -> Tensor:
        if not x.is_floating_point():
            return NotImplemented  # fp32 does not hold their sums, the CPU does.
        how = _AveragePool.of(x, count, *arguments)
        total = _sum_of_windows(x, how.kernel, how.stride, how.padding, how.out, 0.0)
        return stored_as((total / how.counts(x)).to(x.dtype), x)

    return pool


def _average_pool_backward(count: int) -> Callable:
    def backward(gradient: Tensor, x: Tensor, *arguments: Any) -> Tensor:
        how = _AveragePool.of(x, count, *arguments)
        size = x.shape[-count:]
        # If the stride divides them all, what lies within one stride is in the same
        # windows, and has one gradient.
        same = [
            s if k % s == p % s == n % s == 0 else 1
            for k, s, p, n in zip(
                how.kernel, how.stride, how.padding, size, strict=True
            )
        ]
        left = [s // r for s, r in zip(how.stride, same, strict=True)]
        gradient = space_out(gradient / how.counts(x), left, x.dim() - count)
        kernel = [k // r for k, r in zip(how.kernel, same, strict=True)]
        before = [
            k - 1 - p // r for k, p, r in zip(kernel, how.padding, same, strict=True)
        ]
        steps = [n // r for n, r in zip(size, same, strict=True)]
        total = _sum_of_windows(gradient, kernel, [1] * count, before, steps, 0.0)
        return _repeated(total.to(x.dtype), same)

    return backward


def _repeated(x: Tensor, times: Shape) -> Tensor:
    """Each element of the last dimensions so many times, one after the other."""
    for d, r in enumerate(times, x.dim() - len(times)):
        if r > 1:
            wide = x.unsqueeze(d + 1)
            x = wide.expand(*x.shape[: d + 1], r, *x.shape[d + 1 :]).flatten(d, d + 1)
    return x


#: Windows of different sizes are averaged one by one.
_MAX_ADAPTIVE = 64


def _averages_of_any_size(x: Tensor, dim: int, count: int) -> Tensor:
    """Averages of ``count`` windows that cover a dimension whose size varies: where
    they begin is no sum of sizes, so that each sums what is in it of all elements.
    """
    size = x.shape[dim]
    others = [1] * (x.dim() - dim - 1)
    number = torch.arange(count, device=x.device)
    start = number * size // count
    end = (number * size + (size + count - 1)) // count
    place = torch.arange(size, device=x.device)[:, None]
    inside = (place >= start) & (place < end)
    inside = inside.reshape(size, count, *others)
    total = torch.where(inside, x.unsqueeze(dim + 1), 0.0).sum(dim)
    return total / (end - start).reshape(count, *others)


def _is_whole(count: int, size: int) -> bool:
    """Whether there are as many windows as elements, also where their number varies."""
    return isinstance(count, int) == isinstance(size, int) and count == size


def _adaptive_average_pool(count: int) -> Callable:
    def pool(x: Tensor, out: Shape) -> Tensor:
        first = x.dim() - count
        dims = [
            (d, n) for d, n in enumerate(out, first) if not _is_whole(n, x.shape[d])
        ]
        if not all(isinstance(n, int) and n <= _MAX_ADAPTIVE for _, n in dims):
            return NotImplemented
        if 0 in out:
            return x.new_empty((*x.shape[:first], *out))
        result = x.float()
        for dim, n in dims:
            if n > 1 and isinstance(x.shape[dim], torch.SymInt):
                result = _averages_of_any_size(result, dim, n)
                continue
            parts = [
                result.narrow(dim, start, length).mean(dim, keepdim=True)
                for start, length in adaptive_windows(x.shape[dim], n)
            ]
            result = torch.cat(parts, dim)
        return stored_as(result.to(x.dtype), x)

    return pool


def _adaptive_average_pool_backward(count: int) -> Callable:
    def backward(gradient: Tensor, x: Tensor) -> Tensor:
        out = gradient.shape[-count:]
        if max(out) > _MAX_ADAPTIVE:
            return NotImplemented
        result = gradient.float()
        for dim, n in enumerate(out, x.dim() - count):
            size = x.shape[dim]
            shape = [*result.shape[:dim], size, *result.shape[dim + 1 :]]
            total = torch.zeros(shape, dtype=torch.float32, device=x.device)
            for i, (start, length) in enumerate(adaptive_windows(size, n)):
                part = result.narrow(dim, i, 1) / length
                part = part.expand(*shape[:dim], length, *shape[dim + 1 :])
                rest = [0] * (len(shape) - dim - 1)
                total = total + pad(
                    part, [start, *rest], [size - start - length, *rest]
                )
            result = total
        return result.to(x.dtype)

    return backward


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._adaptive_avg_pool2d.default: _adaptive_average_pool(2),
    aten._adaptive_avg_pool2d_backward.default: _adaptive_average_pool_backward(2),
    aten._adaptive_avg_pool3d.default: _adaptive_average_pool(3),
    aten._adaptive_avg_pool3d_backward.default: _adaptive_average_pool_backward(3),
    aten.avg_pool2d.default: _average_pool(2),
    aten.avg_pool2d_backward.default: _average_pool_backward(2),
    aten.avg_pool3d.default: _average_pool(3),
    aten.avg_pool3d_backward.default: _average_pool_backward(3),
}
