# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling, which look at windows of their input.

Windows are a view: the element at k of window o is at o x stride + k x dilation. A
convolution is one sum of products of that view and the weight, which accumulates in
fp32 and rounds once. A transposed one is a convolution with the phases of its stride
as channels. Eager and compiled graphs use the same decompositions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

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


def window_view(
    x: Tensor, kernel: Shape, stride: Shape, dilation: Shape, out: Shape, first: int = 0
) -> Tensor:
    """The windows of padded dimensions, as a view ``[..., *out, ..., *kernel]``.

    They are those from ``first`` on, or the last ones.
    """
    first = first or x.dim() - len(kernel)
    for d, (k, s, step, n) in enumerate(
        zip(kernel, stride, dilation, out, strict=False), first
    ):
        reach = (k - 1) * step + 1
        x = aten.slice(x, d, 0, (n - 1) * s + reach).unfold(d, reach, s)
        x = aten.slice(x, x.dim() - 1, 0, reach, step)
    return x


def sum_products(
    x: Tensor,
    y: Tensor,
    dims: Shape,
    bias: Tensor | None = None,
    elementwise: bool = False,
) -> Tensor:
    """The result of ``torch.ops.spyre.sum_products``, which rounds it once.

    ``x`` and ``y`` are broadcast to each other; ``bias`` has the rank of the result.
    The matrix unit computes it where there are rows (dimensions of ``x`` alone) and
    columns (of ``y`` alone), unless it is to be ``elementwise``.
    """
    wide = torch.float32 if x.dtype.is_floating_point else torch.int64
    result = (x.to(wide) * y.to(wide)).sum(list(dims))
    return (result if bias is None else result + bias).to(x.dtype)


def merge_last(x: Tensor, count: int) -> Tensor:
    """The result of ``torch.ops.spyre.merge_last``: a copy in one operation."""
    return x.flatten(-count).clone(memory_format=torch.contiguous_format)


def _grouped(x: Tensor, dim: int, groups: int) -> Tensor:
    """A dimension as groups and what each has."""
    return x.unflatten(dim, (groups, x.shape[dim] // groups))


#: Bytes of a stick of device memory.
_STICK_BYTES = 128
#: Loops over an operand of a product that SuperDSC has room for.
_MOST_LOOPS = 7


def _count_merged(x: Tensor, kernel: Shape, out: Shape) -> int:
    """How many of the last dimensions of windows are merged with the channels.

    ``x`` is ``[N, groups, C / groups, *spatial]``. A stick holds channels, and has room
    for others where they are few: their windows take no more memory then than the
    channels alone. One channel per group leaves the sticks to the groups.
    """
    groups, channels = x.shape[1:3]
    if groups > 1 and channels == 1:
        return 0
    merged, size = 0, channels
    while merged < len(kernel):
        size *= kernel[-1 - merged]
        loops = [*x.shape[:3], *out, *kernel[: len(kernel) - merged]]
        fits = sum(n != 1 for n in loops) <= _MOST_LOOPS
        if fits and size > _STICK_BYTES // x.element_size():
            break
        merged += 1
    return merged


def _grouped_windows(
    x: Tensor,
    kernel: Shape,
    stride: Shape,
    dilation: Shape,
    padding: Shape,
    out: Shape,
    groups: int,
) -> tuple[Tensor, int]:
    """``[N, groups, *out, *kernel, C / groups]``, windows of ``[N, C, *spatial]``.

    And how many of the last dimensions of the kernel are not there, but in the last
    one, after the channels.
    """
    x = pad_for_windows(x, kernel, stride, dilation, padding, out)
    x = _grouped(x, 1, groups)
    merged = _count_merged(x, kernel, out)
    first = len(kernel) - merged
    if merged:
        how = [v[first:] for v in (kernel, stride, dilation, out)]
        view = window_view(x, *how).movedim(2, -1 - merged)
        x = torch.ops.spyre.merge_last(view, 1 + merged).movedim(-1, 2)
    x = window_view(x, kernel[:first], stride, dilation, out, first=3)
    return x.movedim(2, -1), merged


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
    kernel, count = weight.shape[2:], len(out)
    x, merged = _grouped_windows(x, kernel, stride, dilation, padding, out, groups)
    # A matrix of one channel would have nothing along its sticks.
    elementwise = groups > 1 and x.shape[-1] == 1
    # [N, groups, 1, *out, *kernel, C / groups] x [1, groups, O / groups, *1, ...]
    x = x.unsqueeze(2)
    weight = _grouped(weight, 0, groups).movedim(2, -1 - merged)
    weight = weight.flatten(-1 - merged).unsqueeze(0)
    for _ in range(count):
        weight = weight.unsqueeze(3)
    if bias is not None:
        bias = bias.reshape(1, groups, -1, *[1] * count)
    dims = list(range(3 + count, x.dim()))
    result = torch.ops.spyre.sum_products(x, weight, dims, bias, elementwise)
    return result.flatten(1, 2)


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
    # An output at o, o + padding = t x stride + r, sums x[t - m] w[m x stride + r] if
    # elements are not dilated. So the r are channels of one convolution over t.
    # SuperDSC can put the phases side by side only where they have as many outputs.
    phases = [
        s if d == 1 and n % s == 0 else 1
        for s, d, n in zip(stride, dilation, out, strict=True)
    ]
    spaced = [s // r for s, r in zip(stride, phases, strict=True)]
    x = _spaced(x, spaced, 2)
    # Zeros before the filter let the first output be the first of its phases.
    zeros = [-p % r for p, r in zip(padding, phases, strict=True)]
    first = [-(-p // r) for p, r in zip(padding, phases, strict=True)]
    steps = [n // r for n, r in zip(out, phases, strict=True)]
    weight = _pad(weight, zeros, [0] * len(zeros))
    channels = groups * weight.shape[1]
    weight = _phase_weight(weight, phases, groups)
    if bias is not None:
        bias = _grouped(bias, 0, groups).repeat(1, math.prod(phases)).flatten()
    kernel = weight.shape[2:]
    before = [d * (k - 1) - t for d, k, t in zip(dilation, kernel, first, strict=True)]
    ones = [1] * len(kernel)
    result = _convolve(x, weight, bias, ones, before, dilation, groups, steps)
    if phases == ones:
        return result
    # [N, groups, *phases, O / groups, *steps] -> [N, O, *(steps x phases)]
    result = result.unflatten(1, (groups, *phases, -1))
    places = range(2, 2 + len(ones))
    pairs = [d for r in places for d in (r + len(ones) + 1, r)]
    result = result.permute(0, 1, 2 + len(ones), *pairs)
    return result.reshape(x.shape[0], channels, *out)


def _phase_weight(weight: Tensor, phases: Shape, groups: int) -> Tensor:
    """``[groups x *phases x O / groups, C / groups, *kernel]``.

    Elements of each phase of ``[C, O / groups, *kernel]``, last ones first.
    """
    count = len(phases)
    over = [-k % r for k, r in zip(weight.shape[2:], phases, strict=True)]
    weight = _pad(weight, [0] * count, over)
    for d, r in enumerate(phases, 2):
        # In one step: SuperDSC has no gather from a dimension that is in parts.
        if weight.shape[d] > r:
            number = torch.arange(weight.shape[d], device=weight.device)
            last = weight.shape[d] - r - number // r * r
            weight = weight.index_select(d, last + number % r)
    weight = _grouped(weight, 0, groups)
    for d, r in enumerate(phases):
        weight = weight.unflatten(3 + 2 * d, (-1, r))
    # [groups, C / groups, O / groups, *(kernel, phase)]
    kernel = [3 + 2 * d for d in range(count)]
    weight = weight.permute(0, *(d + 1 for d in kernel), 2, 1, *kernel)
    return weight.flatten(0, 1 + count)


def _format_of_result(x: Tensor, weight: Tensor) -> torch.memory_format:
    """Channels last where PyTorch has it: in two dimensions, if either operand is."""
    is_last = x.dim() == 4 and torch.channels_last in (
        suggest_memory_format(x),
        suggest_memory_format(weight),
    )
    return torch.channels_last if is_last else torch.contiguous_format


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
        convolve = _convolve
    else:
        extra = spread(output_padding, count)
        out = [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(
                x.shape[2:], stride, padding, dilation, kernel, extra, strict=True
            )
        ]
        convolve = _convolve_transposed
    result = convolve(x, weight, bias, stride, padding, dilation, groups, out)
    return result.contiguous(memory_format=_format_of_result(x, weight))


def _gradient_of_weight(
    small: Tensor,
    large: Tensor,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Tensor:
    """``[O, C / groups, *kernel]`` from ``[N, O, *out]`` and ``[N, C, *spatial]``."""
    out, channels = small.shape[2:], large.shape[1] // groups
    large, merged = _grouped_windows(
        large, kernel, stride, dilation, padding, out, groups
    )
    elementwise = groups > 1 and large.shape[-1] == 1
    # [N, groups, O / groups, *out, *1] x [N, groups, 1, *out, *kernel, C / groups]
    large, small = large.unsqueeze(2), _grouped(small, 1, groups)
    while small.dim() < large.dim():
        small = small.unsqueeze(-1)
    dims = [0, *range(3, 3 + len(out))]
    product = torch.ops.spyre.sum_products(small, large, dims, None, elementwise)
    merged_sizes = kernel[len(kernel) - merged :]
    product = product.unflatten(-1, (channels, *merged_sizes))
    return product.movedim(-1 - merged, 2).flatten(0, 1)


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
        of_weight = _gradient_of_weight(
            small, large, kernel, stride, padding, dilation, groups
        )
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
    view = window_view(x, kernel, stride, ones, out)
    return view.sum(list(range(x.dim(), view.dim())), dtype=torch.float32)


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


def put_back(part: Tensor, stride: Shape, starts: Shape, size: Shape) -> Tensor:
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
        part = put_back(columns.select(-3, number), stride, starts, size)
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
    aten.convolution.default: convolution,
    aten.convolution_overrideable.default: convolution,
    aten.convolution_backward.default: _backward_with_sizes,
    aten.convolution_backward_overrideable.default: convolution_backward,
}
