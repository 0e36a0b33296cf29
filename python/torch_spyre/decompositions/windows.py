# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling, which look at windows of their input.

A convolution is one matrix product with the windows of the padded input as
columns, so that it accumulates in fp32 and rounds once. A transposed one is the
convolution of its input with zeros in between. Eager and compiled graphs use the
same decompositions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Shape = Sequence[int]


def spread(values: Shape, count: int) -> list[int]:
    """One number per spatial dimension."""
    return list(values) * count if len(values) == 1 else list(values)


def _pad(x: Tensor, before: Shape, after: Shape, value: float = 0.0) -> Tensor:
    """Pads the last dimensions; negative numbers cut off."""
    pairs = [p for pair in zip(before, after, strict=True) for p in pair[::-1]]
    return aten.constant_pad_nd(x, pairs[::-1], value) if any(pairs) else x


def pad_for_windows(
    x: Tensor,
    kernel: Shape,
    stride: Shape,
    dilation: Shape,
    before: Shape,
    out: Shape,
    value: float = 0.0,
) -> Tensor:
    """Pads, or cuts, the last dimensions to the ``out`` windows from -before on."""
    size = x.shape[-len(kernel) :]
    after = [
        (n - 1) * s + (k - 1) * d + 1 - b - length
        for n, s, k, d, b, length in zip(
            out, stride, kernel, dilation, before, size, strict=True
        )
    ]
    return _pad(x, before, after, value)


def windows(
    x: Tensor, kernel: Shape, stride: Shape, dilation: Shape, out: Shape
) -> list[Tensor]:
    """Per element of the kernel, row-major: a view with what each window has there.

    ``x`` is ``[..., *spatial]``, padded; the views are ``[..., *out]``.
    """
    first = x.dim() - len(kernel)
    views = []
    for position in itertools.product(*(range(k) for k in kernel)):
        view = x
        for d, (p, s, step, n) in enumerate(
            zip(position, stride, dilation, out, strict=True)
        ):
            start = p * step
            view = aten.slice(view, first + d, start, start + (n - 1) * s + 1, s)
        views.append(view)
    return views


def _columns(
    x: Tensor,
    groups: int,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    out: Shape,
) -> Tensor:
    """The windows of ``[N, C, *spatial]`` as ``[groups, C / groups * K, N * P]``."""
    # [C, N, *spatial]
    x = pad_for_windows(x, kernel, stride, dilation, padding, out).transpose(0, 1)
    columns = torch.stack(windows(x, kernel, stride, dilation, out), 1)
    return columns.reshape(groups, x.shape[0] // groups * math.prod(kernel), -1)


def _rows(x: Tensor, groups: int) -> Tensor:
    """``[N, C, *spatial]`` as ``[groups, C / groups, N * P]``."""
    return x.transpose(0, 1).reshape(groups, x.shape[1] // groups, -1)


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
    out: Shape,
) -> Tensor:
    """``weight`` is ``[O, C / groups, *kernel]``; the windows start at -padding."""
    kernel = weight.shape[2:]
    columns = _columns(x, groups, kernel, stride, padding, dilation, out)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    if bias is None:
        result = torch.bmm(matrix, columns)
    else:
        shape = (groups, matrix.shape[1], columns.shape[2])
        column = bias.reshape(groups, -1, 1).expand(shape)
        result = torch.baddbmm(column, matrix, columns)
    result = result.reshape(weight.shape[0], x.shape[0], *out)
    return result.transpose(0, 1).contiguous()


def _output_size(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape
) -> list[int]:
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]


def _convolve_transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
    out: Shape,
) -> Tensor:
    """``weight`` is ``[C, O / groups, *kernel]``; the gradient of a convolution."""
    kernel = weight.shape[2:]
    x = _spaced(x, stride, 2)
    spatial = list(range(2, weight.dim()))
    flipped = weight.flip(spatial)
    flipped = flipped.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    flipped = flipped.transpose(1, 2).reshape(-1, weight.shape[0] // groups, *kernel)
    start = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    ones = [1] * len(kernel)
    return _convolve(x, flipped, bias, ones, start, dilation, groups, out)


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> Tensor:
    """``aten.convolution``."""
    count = x.dim() - 2
    kernel = weight.shape[2:]
    stride, padding = spread(stride, count), spread(padding, count)
    dilation = spread(dilation, count)
    if not transposed:
        out = _output_size(x.shape[2:], kernel, stride, padding, dilation)
        return _convolve(x, weight, bias, stride, padding, dilation, groups, out)
    extra = spread(output_padding, count)
    out = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(
            x.shape[2:], stride, padding, dilation, kernel, extra, strict=True
        )
    ]
    return _convolve_transposed(x, weight, bias, stride, padding, dilation, groups, out)


def convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """``aten.convolution_backward_overrideable``."""
    count = x.dim() - 2
    kernel, size = weight.shape[2:], x.shape[2:]
    stride, padding = spread(stride, count), spread(padding, count)
    dilation = spread(dilation, count)
    of_input = of_weight = of_bias = None
    if wanted[0]:
        other = _convolve if transposed else _convolve_transposed
        of_input = other(
            gradient, weight, None, stride, padding, dilation, groups, size
        )
    if wanted[1]:
        small, large = (x, gradient) if transposed else (gradient, x)
        columns = _columns(
            large, groups, kernel, stride, padding, dilation, small.shape[2:]
        )
        product = torch.bmm(_rows(small, groups), columns.transpose(1, 2))
        of_weight = product.reshape(weight.shape)
    if wanted[2]:
        of_bias = gradient.sum([0, *range(2, gradient.dim())])
    return of_input, of_weight, of_bias


def _backward_with_sizes(
    gradient: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, *rest: Any
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    return convolution_backward(gradient, x, weight, *rest)


def _spaced(x: Tensor, stride: Shape, first: int) -> Tensor:
    """``s - 1`` zeros after each element of the dimensions from ``first`` on."""
    for d, s in enumerate(stride, first):
        if s > 1:
            wide = x.unsqueeze(d + 1)
            zeros = torch.zeros_like(wide)
            zeros = zeros.expand(*wide.shape[: d + 1], s - 1, *wide.shape[d + 2 :])
            x = torch.cat([wide, zeros], d + 1).flatten(d, d + 1)
    return x


# --- pooling ---------------------------------------------------------------------


def _sum_of_windows(
    x: Tensor, kernel: Shape, stride: Shape, before: Shape, out: Shape, edge: float
) -> Tensor:
    """Sums, in fp32, over the windows from -before on; outside lies ``edge``."""
    ones = [1] * len(kernel)
    x = pad_for_windows(x, kernel, stride, ones, before, out, edge)
    views = windows(x, kernel, stride, ones, out)
    total = views[0].float()
    for view in views[1:]:
        total = total + view
    return total


def pooled_size(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, ceil_mode: bool
) -> list[int]:
    """How many windows a pooling has along each dimension."""
    out = []
    for n, k, s, p in zip(size, kernel, stride, padding, strict=True):
        count = (n + 2 * p - k + (s - 1 if ceil_mode else 0)) // s + 1
        # The last window begins in the input or in what pads it before.
        out.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    return out


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
            ones, before = _pad(ones, before, before, 1.0), [0] * len(before)
        return _sum_of_windows(ones, self.kernel, self.stride, before, self.out, 0.0)


def _average_pool(count: int) -> Callable:
    def pool(x: Tensor, *arguments: Any) -> Tensor:
        how = _AveragePool.of(x, count, *arguments)
        total = _sum_of_windows(x, how.kernel, how.stride, how.padding, how.out, 0.0)
        return (total / how.counts(x)).to(x.dtype)

    return pool


def _average_pool_backward(count: int) -> Callable:
    def backward(gradient: Tensor, x: Tensor, *arguments: Any) -> Tensor:
        how = _AveragePool.of(x, count, *arguments)
        spread = _spaced(gradient / how.counts(x), how.stride, x.dim() - count)
        before = [k - 1 - p for k, p in zip(how.kernel, how.padding, strict=True)]
        size = x.shape[-count:]
        total = _sum_of_windows(spread, how.kernel, [1] * count, before, size, 0.0)
        return total.to(x.dtype)

    return backward


def _put_back(part: Tensor, stride: Shape, starts: Shape, size: Shape) -> Tensor:
    """An element of every window, each at its place in an input of ``size``: the
    first one at ``starts``, the next ones ``stride`` further on.
    """
    first = part.dim() - len(size)
    spaced = _spaced(part, stride, first)
    after = [
        n - start - length
        for n, start, length in zip(size, starts, spaced.shape[first:], strict=True)
    ]
    return _pad(spaced, starts, after)


def _max_pool_backward(count: int) -> Callable:
    def backward(
        gradient: Tensor,
        x: Tensor,
        kernel: Shape,
        stride: Shape,
        padding: Shape,
        dilation: Shape,
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
            total = total + _put_back(part, stride, starts, size)
        return total.to(x.dtype)

    return backward


def _col2im(
    x: Tensor,
    size: Shape,
    kernel: Shape,
    dilation: Shape,
    padding: Shape,
    stride: Shape,
) -> Tensor:
    """``aten.col2im``: sums of the windows ``[(N,) C * K, L]`` where they overlap."""
    kernel, dilation = spread(kernel, 2), spread(dilation, 2)
    padding, stride = spread(padding, 2), spread(stride, 2)
    out = _output_size(size, kernel, stride, padding, dilation)
    count = math.prod(kernel)
    columns = x.float().reshape(*x.shape[:-2], x.shape[-2] // count, count, *out)
    total: Any = None
    for number, position in enumerate(itertools.product(*(range(k) for k in kernel))):
        starts = [
            p * d - b for p, d, b in zip(position, dilation, padding, strict=True)
        ]
        part = _put_back(columns.select(-3, number), stride, starts, size)
        total = part if total is None else total + part
    return total.to(x.dtype)


#: Windows of different sizes are averaged one by one.
_MAX_ADAPTIVE = 64


def adaptive_windows(size: int, count: int) -> list[tuple[int, int]]:
    """Start and length of each of ``count`` windows that cover a dimension."""
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _adaptive_average_pool(count: int) -> Callable:
    def pool(x: Tensor, out: Shape) -> Tensor:
        if max(out) > _MAX_ADAPTIVE:
            return NotImplemented
        result = x.float()
        for dim, n in enumerate(out, x.dim() - count):
            parts = [
                result.narrow(dim, start, length).mean(dim, keepdim=True)
                for start, length in adaptive_windows(x.shape[dim], n)
            ]
            result = torch.cat(parts, dim)
        return result.to(x.dtype)

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
                total = total + _pad(
                    part, [start, *rest], [size - start - length, *rest]
                )
            result = total
        return result.to(x.dtype)

    return backward


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.col2im.default: _col2im,
    aten._adaptive_avg_pool2d.default: _adaptive_average_pool(2),
    aten._adaptive_avg_pool2d_backward.default: _adaptive_average_pool_backward(2),
    aten._adaptive_avg_pool3d.default: _adaptive_average_pool(3),
    aten._adaptive_avg_pool3d_backward.default: _adaptive_average_pool_backward(3),
    aten.avg_pool2d.default: _average_pool(2),
    aten.avg_pool2d_backward.default: _average_pool_backward(2),
    aten.avg_pool3d.default: _average_pool(3),
    aten.avg_pool3d_backward.default: _average_pool_backward(3),
    aten.max_pool2d_with_indices_backward.default: _max_pool_backward(2),
    aten.max_pool3d_with_indices_backward.default: _max_pool_backward(3),
    aten.convolution.default: convolution,
    aten.convolution_overrideable.default: convolution,
    aten.convolution_backward.default: _backward_with_sizes,
    aten.convolution_backward_overrideable.default: convolution_backward,
}
