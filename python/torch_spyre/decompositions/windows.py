# SPDX-License-Identifier: Apache-2.0
"""Convolutions, and what else looks at windows of its input.

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


def stored_as(result: Tensor, x: Tensor) -> Tensor:
    """Channels come last in memory if they do in ``x``, as PyTorch's kernels do it."""
    return result.contiguous(memory_format=suggest_memory_format(x))


def pad(x: Tensor, before: Shape, after: Shape, value: float = 0.0) -> Tensor:
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
    return pad(x, before, after, value)


def windows(
    x: Tensor, kernel: Shape, stride: Shape, dilation: Shape, out: Shape
) -> Tensor:
    """The result of ``torch.ops.spyre.windows``: the first windows of the last
    dimensions, ``[..., *out, *kernel]``.
    """
    first = x.dim() - len(kernel)
    for d, (k, s, step, n) in enumerate(
        zip(kernel, stride, dilation, out, strict=True), first
    ):
        places = torch.arange(n).unsqueeze(1) * s + torch.arange(k) * step
        x = x.index_select(d, places.flatten())
        x = x.unflatten(d, (n, k)).movedim(d + 1, -1)
    return x.contiguous()


def shape_of_windows(x: Tensor, kernel: Shape, *how: Any) -> Tensor:
    """A tensor like the result of ``windows``, without its values."""
    *_, out = how
    return x.new_empty([*x.shape[: x.dim() - len(kernel)], *out, *kernel])


def grouped_windows(
    x: Tensor,
    kernel: Shape,
    stride: Shape,
    dilation: Shape,
    out: Shape,
    groups: int,
    merged: int,
) -> Tensor:
    """The result of ``torch.ops.spyre.grouped_windows``: the first windows of
    ``[N, C, *spatial]``, ``[N, groups, 1, *out, *kernel, C / groups]``.

    The last ``merged`` dimensions of the kernel are not there, but in the last one,
    after the channels.
    """
    count = len(kernel)
    found = _grouped(windows(x, kernel, stride, dilation, out), 1, groups)
    found = found.movedim(2, 2 + 2 * count - merged)
    return found.flatten(2 + 2 * count - merged).unsqueeze(2).contiguous()


def shape_of_grouped_windows(x: Tensor, kernel: Shape, *how: Any) -> Tensor:
    """A tensor like the result of ``grouped_windows``, without its values."""
    *_, out, groups, merged = how
    first = len(kernel) - merged
    last = x.shape[1] // groups * math.prod(kernel[first:])
    return x.new_empty([x.shape[0], groups, 1, *out, *kernel[:first], last])


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


def shape_of_products(x: Tensor, y: Tensor, dims: Shape, *_: Any) -> Tensor:
    """A tensor like the result of ``sum_products``, without its values. Of sizes that
    vary, PyTorch would take long to infer each operation in it.
    """

    def is_one(size: int | torch.SymInt) -> bool:
        return isinstance(size, int) and size == 1

    pairs = enumerate(zip(x.shape, y.shape, strict=True))
    dims = dims or range(x.dim())
    return x.new_empty([b if is_one(a) else a for d, (a, b) in pairs if d not in dims])


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


def _count_merged(x: Tensor, groups: int, kernel: Shape, out: Shape) -> int:
    """How many of the last dimensions of windows are merged with the channels.

    ``x`` is ``[N, C, *spatial]``. A stick holds channels, and has room for others where
    they are few: their windows take no more memory then than the channels alone. One
    channel per group leaves the sticks to the groups.
    """
    channels = x.shape[1] // groups
    if groups > 1 and channels == 1:
        return 0
    merged, size = 0, channels
    while merged < len(kernel):
        size *= kernel[-1 - merged]
        last = len(kernel) - merged
        loops = [x.shape[0], groups, channels, *out, *kernel[:last]]
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
    """The windows of ``[N, C, *spatial]``, which begin at -padding, and how many of the
    last dimensions of the kernel are merged with the channels: ``grouped_windows``.
    """
    x = pad_for_windows(x, kernel, stride, dilation, padding, out)
    merged = _count_merged(x, groups, kernel, out)
    how = kernel, stride, dilation, out, groups, merged
    return torch.ops.spyre.grouped_windows(x, *how), merged


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
    ones = [1] * count
    weight = _grouped(weight, 0, groups).movedim(2, -1 - merged)
    sizes = 1, groups, weight.shape[1], *ones, *x.shape[3 + count :]
    weight = weight.reshape(sizes)
    if bias is not None:
        bias = bias.reshape(1, groups, -1, *ones)
    dims = list(range(3 + count, x.dim()))
    result = torch.ops.spyre.sum_products(x, weight, dims, bias, elementwise)
    # Sizes that vary take long to multiply.
    return result.squeeze(1) if groups == 1 else result.flatten(1, 2)


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
    dims = [
        _PhasedDim.of(*numbers)
        for numbers in zip(
            weight.shape[2:], stride, padding, dilation, out, strict=True
        )
    ]
    x = space_out(x, [d.spaced for d in dims], 2)
    batch, channels, count = x.shape[0], groups * weight.shape[1], len(dims)
    phases = [d.phases for d in dims]
    weight = _phase_weight(weight, dims, groups)
    if bias is not None:
        bias = _grouped(bias, 0, groups).repeat(1, math.prod(phases)).flatten()
    result = _convolve(
        x,
        weight,
        bias,
        [1] * count,
        [d.before for d in dims],
        [d.dilation for d in dims],
        groups,
        [d.steps + (d.late > 0) for d in dims],
    )
    if math.prod(phases) == 1:
        return result
    # [N, groups, *phases, O / groups, *steps] -> [N, O, *(steps x phases)]
    result = result.unflatten(1, (groups, *phases, -1))
    places = range(2, 2 + count)
    for dim, place in zip(dims, places, strict=True):
        result = _skip_first(result, place, place + count + 1, dim)
    pairs = [d for r in places for d in (r + count + 1, r)]
    result = result.permute(0, 1, 2 + count, *pairs)
    return result.reshape(batch, channels, *out)


@dataclass(frozen=True)
class _PhasedDim:
    """One dimension of a transposed convolution as one at stride 1.

    A phase is a place within the stride; its outputs are channels of their own.
    """

    phases: int
    #: Outputs of a phase.
    steps: int
    #: Of so many phases, the last ones, the first of ``steps + 1`` outputs is not one.
    late: int
    #: Places from one element of the input to the next one; zeros lie in between.
    spaced: int
    #: Places from one element of the filter to the next one.
    dilation: int
    #: Zeros before the input.
    before: int
    #: Elements of the filter of a phase, of which some may be zeros.
    size: int
    #: The same of the whole filter. A phase has those that are ``phases`` apart.
    kernel: int
    #: Zeros before the whole filter.
    zeros: int
    #: Places from one element of the whole filter to the next one.
    between: int

    @staticmethod
    def of(
        kernel: int, stride: int, padding: int, dilation: int, out: int
    ) -> _PhasedDim:
        reach = dilation * (kernel - 1) + 1
        size = -(-reach // stride)
        # SuperDSC can put the phases side by side only where they have as many
        # outputs. Dilated elements may leave a phase more zeros than the input gets.
        if stride == 1 or out % stride or size > kernel:
            before = reach - 1 - padding
            return _PhasedDim(1, out, 0, stride, dilation, before, kernel, kernel, 0, 1)
        # Zeros before the filter let the first output be the first of its phase. If
        # they make filters longer, the phases before that of the first output have
        # one output more instead.
        zeros, late = -padding % stride, 0
        if reach + zeros > size * stride:
            zeros, late = 0, padding % stride
        before = size - 1 - (padding + zeros) // stride
        return _PhasedDim(
            stride, out // stride, late, 1, 1, before, size, kernel, zeros, dilation
        )

    def place(self, number: Any) -> Any:
        """Where, in the whole filter, the elements of the phases come from.

        ``number``, an integer or a tensor, counts them phase by phase; of each phase
        the last one comes first. Before and behind the filter, and between its
        elements, lie zeros.
        """
        m = self.size - 1 - number % self.size
        return m * self.phases + number // self.size - self.zeros

    def order(self) -> list[int]:
        """Which element of the whole filter each one is, or -1: a zero."""
        places = [self.place(n) for n in range(self.phases * self.size)]
        reach = range(0, self.kernel * self.between, self.between)
        return [p // self.between if p in reach else -1 for p in places]


def _skip_first(x: Tensor, phases: int, steps: int, dim: _PhasedDim) -> Tensor:
    """The outputs of a dimension from its first one on, of two dimensions of ``x``."""
    if not dim.late:
        return x
    parts = [
        x.narrow(phases, dim.late, dim.phases - dim.late).narrow(steps, 0, dim.steps),
        x.narrow(phases, 0, dim.late).narrow(steps, 1, dim.steps),
    ]
    return torch.cat(parts, phases)


def _phase_weight(weight: Tensor, dims: Sequence[_PhasedDim], groups: int) -> Tensor:
    """``[groups x *phases x O / groups, C / groups, *kernel]``.

    From ``[C, O / groups, *kernel]``; kernels are those of the phases.
    """
    count = len(dims)
    for d, dim in enumerate(dims, 2):
        order = dim.order()
        if order == list(range(dim.kernel)):
            continue
        place = dim.place(torch.arange(len(order), device=weight.device))
        element = place // dim.between if dim.between > 1 else place
        if -1 in order:
            element = element.clamp(0, dim.kernel - 1)
        weight = weight.index_select(d, element)
        if -1 in order:
            kept = place == element * dim.between
            kept = kept.reshape(-1, *[1] * (count + 1 - d))
            weight = torch.where(kept, weight, 0.0)
    weight = _grouped(weight, 0, groups)
    for d, dim in enumerate(dims):
        weight = weight.unflatten(3 + 2 * d, (dim.phases, -1))
    # [groups, C / groups, O / groups, *(phase, kernel)]
    phases = [3 + 2 * d for d in range(count)]
    weight = weight.permute(0, *phases, 2, 1, *(d + 1 for d in phases))
    return weight.flatten(0, 1 + count)


def format_of_result(x: Tensor, weight: Tensor) -> torch.memory_format:
    """Channels last if either operand is, in two dimensions and in three."""
    for last in (torch.channels_last, torch.channels_last_3d):
        if last in (suggest_memory_format(x), suggest_memory_format(weight)):
            return last
    return torch.contiguous_format


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
    return result.contiguous(memory_format=format_of_result(x, weight))


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
    small = _grouped(small, 1, groups)
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


def space_out(x: Tensor, stride: Shape, first: int) -> Tensor:
    """``s - 1`` zeros after each element of the dimensions from ``first`` on."""
    for d, s in enumerate(stride, first):
        if s > 1:
            wide = x.unsqueeze(d + 1)
            zeros = torch.zeros_like(wide)
            zeros = zeros.expand(*wide.shape[: d + 1], s - 1, *wide.shape[d + 2 :])
            x = torch.cat([wide, zeros], d + 1).flatten(d, d + 1)
    return x


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


def adaptive_windows(size: int, count: int) -> list[tuple[int, int]]:
    """Start and length of each of ``count`` windows that cover a dimension."""
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def put_back(part: Tensor, stride: Shape, starts: Shape, size: Shape) -> Tensor:
    """An element of every window, each at its place in an input of ``size``: the
    first one at ``starts``, the next ones ``stride`` further on.
    """
    first = part.dim() - len(size)
    spaced = space_out(part, stride, first)
    after = [
        n - start - length
        for n, start, length in zip(size, starts, spaced.shape[first:], strict=True)
    ]
    return pad(spaced, starts, after)


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


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.col2im.default: _col2im,
    aten.convolution.default: convolution,
    aten.convolution_overrideable.default: convolution,
    aten.convolution_backward.default: _backward_with_sizes,
    aten.convolution_backward_overrideable.default: convolution_backward,
}
