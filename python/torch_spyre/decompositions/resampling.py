# SPDX-License-Identifier: Apache-2.0
"""Samples between the elements of an input, and their gradients.

A grid sampler gathers the elements around each point, and its backward pass scatters
to them. The backward pass of an upsampling, or of a replicating padding, is a product
with a matrix per dimension, which holds how much of each input is in each output.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


# --- grids -----------------------------------------------------------------------


def _unnormalize(x: Tensor, size: int, align_corners: bool) -> tuple[Tensor, float]:
    """Coordinates in [-1, 1] as those of elements; by how much they grow."""
    slope = (size - 1) / 2 if align_corners else size / 2
    shift = (size - 1) / 2
    return x * slope + shift, slope


def _reflect(x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Mirrors coordinates at both ends until they are within; the sign of the slope."""
    if low == high:
        return torch.zeros_like(x), torch.zeros_like(x)
    span = high - low
    away = (x - low).abs()
    flips = (away / span).floor()
    rest = away - flips * span
    is_odd = (flips * 0.5).floor() * 2.0 != flips
    inside = torch.where(is_odd, high - rest, rest + low)
    sign = torch.where((x < low) != is_odd, -1.0, torch.ones_like(x))
    return inside, sign


def _clip(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """To the elements there are; 1 where it was strictly inside, else 0."""
    return x.clamp(0.0, float(size - 1)), ((x > 0) & (x < size - 1)).float()


def _bounded(
    at: Tensor, size: int, padding: int, align_corners: bool
) -> tuple[Tensor, Tensor]:
    """Where a coordinate along one dimension is with padding, and its slope there."""
    slope = torch.ones_like(at)
    if padding == REFLECTION:
        ends = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        at, sign = _reflect(at, *ends)
        slope = slope * sign
    if padding in (BORDER, REFLECTION):
        # What is no number is the first element, as on the CPU.
        at, inside = _clip(torch.where(at.isnan(), 0.0, at), size)
        slope = slope * inside
    return at, slope


class _Grid:
    """Where the points of a grid lie in an input ``[N, C, *size]``.

    Coordinates and slopes are ``[N, P]``, one of each per spatial dimension; those of
    a grid come last dimension first. Padding bounds the points, but in mode bicubic
    each of the elements around them.
    """

    def __init__(
        self, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
    ) -> None:
        self.mode, self.padding, self.align_corners = mode, padding, align_corners
        self.size = x.shape[2:]
        self.batch, self.channels = x.shape[:2]
        self.out = grid.shape[1:-1]
        points = grid.float().reshape(self.batch, -1, len(self.size))
        self.at, self.slope = [], []
        for dim, size in enumerate(self.size):
            own = points[:, :, len(self.size) - 1 - dim]
            at, factor = _unnormalize(own, size, align_corners)
            slope = torch.full_like(at, factor)
            if mode != BICUBIC:
                at, bounded = _bounded(at, size, padding, align_corners)
                slope = slope * bounded
            self.at.append(at)
            self.slope.append(slope)

    def spread(self, values: Tensor) -> Tensor:
        """``[N, T, P]`` for all channels, one after the other."""
        flat = values.reshape(self.batch, 1, -1)
        return flat.expand(self.batch, self.channels, flat.shape[2])


#: Of the cubic polynomials that weigh elements.
_CUBIC = -0.75


def _cubic(t: Tensor) -> list[Tensor]:
    """The weights of the four elements around a point ``t`` behind the second."""
    a = _CUBIC

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


def _cubic_slopes(t: Tensor) -> list[Tensor]:
    """By how much these weights grow with ``t``."""
    a = _CUBIC

    def near(d: Tensor) -> Tensor:
        return (3 * (a + 2) * d - 2 * (a + 3)) * d

    def far(d: Tensor) -> Tensor:
        return (3 * a * d - 10 * a) * d + 8 * a

    return [far(t + 1.0), near(t), -near(1.0 - t), -far(2.0 - t)]


class _Taps:
    """The elements that each point of a grid is made of, T of them.

    ``index`` ``[N, T, P]`` is the row-major number of the element, and ``inside``
    whether there is one. ``weights`` and their ``slopes`` are one tensor per dimension,
    ``[N, T1, ..., P]`` with T1 = 1 but along the own dimension. All elements are
    together in a few operations: a graph of some for each would be large.
    """

    def __init__(self, grid: _Grid) -> None:
        self.grid = grid
        self.weights, self.slopes = [], []
        index: Any = 0
        inside: Any = None
        for dim, size in enumerate(grid.size):
            taps, weights, slopes = (
                self._along(torch.stack(found, 1), dim)
                for found in zip(*_taps_along(grid, dim), strict=True)
            )
            own = (taps >= 0) & (taps <= size - 1)
            inside = own if inside is None else inside & own
            # NaN has no integer; it is outside.
            whole = torch.where(own, taps, 0.0).to(torch.int64)
            index = index * size + whole
            self.weights.append(weights)
            self.slopes.append(slopes)
        self.index, self.inside = self._joined(index), self._joined(inside)

    def _along(self, values: Tensor, dim: int) -> Tensor:
        """``[N, T, P]`` of one dimension, to be broadcast with those of others."""
        shape = [1] * len(self.grid.size)
        shape[dim] = values.shape[1]
        return values.reshape(values.shape[0], *shape, values.shape[2])

    def _joined(self, values: Tensor) -> Tensor:
        return values.reshape(values.shape[0], -1, values.shape[-1])

    def weight(self) -> Tensor:
        """``[N, T, P]``, also of elements that are not there."""
        return self._joined(functools.reduce(torch.mul, self.weights))

    def weight_inside(self) -> Tensor:
        """``[N, T, P]``, zero where there is no element."""
        return torch.where(self.inside, self.weight(), 0.0)

    def slope(self, dim: int) -> Tensor:
        """How fast the weight grows along a dimension."""
        others = [*self.weights[:dim], *self.weights[dim + 1 :]]
        return self._joined(functools.reduce(torch.mul, others, self.slopes[dim]))

    def values(self, x: Tensor) -> Tensor:
        """``[N, C, T, P]`` of the input, zero where there is no element."""
        grid = self.grid
        flat = x.float().reshape(grid.batch, grid.channels, -1)
        values = flat.gather(2, grid.spread(self.index))
        values = torch.where(grid.spread(self.inside), values, 0.0)
        return values.reshape(grid.batch, grid.channels, *self.index.shape[1:])


def _taps_along(grid: _Grid, dim: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Coordinates, weights and their slopes of the elements around each point."""
    at = grid.at[dim]
    one = torch.ones_like(at)
    if grid.mode == NEAREST:
        return [(at.round(), one, torch.zeros_like(at))]
    low = at.floor()
    if grid.mode == BILINEAR:
        return [(low, low + 1.0 - at, -one), (low + 1.0, at - low, one)]
    found = []
    weights = zip(_cubic(at - low), _cubic_slopes(at - low), strict=True)
    for side, (weight, slope) in enumerate(weights):
        tap, _ = _bounded(
            low + (side - 1.0), grid.size[dim], grid.padding, grid.align_corners
        )
        found.append((tap, weight, slope))
    return found


def grid_sampler(
    x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tensor:
    """``aten.grid_sampler_2d`` and ``aten.grid_sampler_3d``."""
    if x.numel() == 0 or grid.numel() == 0:
        return NotImplemented
    points = _Grid(x, grid, mode, padding, align_corners)
    taps = _Taps(points)
    # The CPU has no result where a point of a plane is nowhere, but zero in a volume.
    weight = taps.weight() if x.dim() == 4 else taps.weight_inside()
    total = (taps.values(x) * weight[:, None]).sum(2)
    return total.to(x.dtype).reshape(*x.shape[:2], *points.out)


def grid_sampler_backward(
    gradient: Tensor,
    x: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor]:
    """``aten.grid_sampler_2d_backward`` and ``aten.grid_sampler_3d_backward``."""
    if x.numel() == 0 or grid.numel() == 0:
        return NotImplemented
    points = _Grid(x, grid, mode, padding, align_corners)
    taps = _Taps(points)
    own = gradient.float().reshape(*x.shape[:2], 1, -1)
    of_input = None
    if wanted[0]:
        parts = (own * taps.weight_inside()[:, None]).reshape(*x.shape[:2], -1)
        zeros = torch.zeros_like(x, dtype=torch.float32).reshape(*x.shape[:2], -1)
        sums = zeros.scatter_add(2, points.spread(taps.index), parts)
        of_input = sums.reshape(x.shape).to(x.dtype)
    if mode == NEAREST:
        return of_input, torch.zeros_like(grid)
    products = (taps.values(x) * own).sum(1)
    of_grid = [
        (products * taps.slope(dim)).sum(1) * slope
        for dim, slope in enumerate(points.slope)
    ]
    stacked = torch.stack(of_grid[::-1], -1).reshape(grid.shape).to(grid.dtype)
    return of_input, stacked


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """``aten.affine_grid_generator``. PyTorch's has a constant in a graph where a size
    is 1, with which AOTAutograd compiles none.
    """
    spatial = size[2:]
    count = len(spatial)

    def column(number: int) -> Tensor:
        return theta[:, :, number].float().reshape(-1, *[1] * count, count)

    terms = []
    for dim, steps in enumerate(spatial):
        end = 1.0 if align_corners else (steps - 1) / max(steps, 1)
        start = 0.0 if steps == 1 else -end
        places = torch.linspace(
            start, end, steps, dtype=torch.float32, device=theta.device
        )
        shape = [steps if d == dim else 1 for d in range(-1, count + 1)]
        terms.append(places.reshape(shape) * column(count - 1 - dim))
    total = functools.reduce(torch.add, [*terms[::-1], column(count)])
    return total.to(theta.dtype)


# --- upsampling, and gradients of resampling -------------------------------------


def used_scales(
    out: Sequence[int], size: Sequence[int], scales: Sequence[float | None]
) -> list[float | None]:
    """The factors that linear samples are taken by, one per spatial dimension.

    Where a factor leaves the size as it is, as 1.1 does for 8, elements stay as they
    are, as on the CPU.
    """

    def keeps(n: int, m: int, scale: float | None) -> bool:
        if scale is None or not 1 < scale < 2:
            return False
        # Sizes that vary are compared with each other only if that can be so.
        return m < math.ceil(1 / (scale - 1)) and n == m

    return [
        None if keeps(n, m, scale) else scale
        for n, m, scale in zip(out, size, scales, strict=True)
    ]


#: Of the outputs along a dimension: elements of the input and their weights.
Parts = list[tuple[Tensor, Any]]


def _positions(
    out: int, size: int, align_corners: bool, scale: float | None, like: Tensor
) -> Tensor:
    """Where outputs lie among the elements of an input, in fp32."""
    numbers = torch.arange(out, dtype=torch.float32, device=like.device)
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
        return numbers * step
    step = 1.0 / scale if scale else size / out
    return (numbers + 0.5) * step - 0.5


def _linear_parts(
    out: int, size: int, align_corners: bool, scale: float | None, like: Tensor
) -> Parts:
    (scale,) = used_scales([out], [size], [scale])
    at = _positions(out, size, align_corners, scale, like).clamp(min=0.0)
    low = at.floor().clamp(max=float(size - 1))
    part = at - low
    return [(low, 1.0 - part), ((low + 1.0).clamp(max=float(size - 1)), part)]


def upsample_linear(
    x: Tensor,
    out: Sequence[int],
    align_corners: bool,
    scales: Sequence[float | None],
) -> Tensor:
    """``aten.upsample_linear1d`` and those of more dimensions.

    Two products are added, as on the CPU: what is between an infinity and a number is
    infinite. Where the second weight is zero, its element does not count: elements
    stay as they are where as many are asked for as there are.
    """
    places: list[tuple[Tensor, Tensor]] = []
    weights: list[Tensor] = []
    scales = used_scales(out, x.shape[2:], scales)
    for dim, (n, scale) in enumerate(zip(out, scales, strict=True), 2):
        size = x.shape[dim]
        at = _positions(n, size, align_corners, scale, x).clamp(min=0.0)
        at = at.reshape(-1, *[1] * (x.dim() - 1 - dim))
        low = at.to(torch.int64)
        places.append((low, (low + 1).clamp(max=size - 1)))
        weights.append((at - low).clamp(0.0, 1.0))
    wide = x.float()
    values = [
        aten._unsafe_index(wide, [None, None, *corner])
        for corner in itertools.product(*places)
    ]
    for weight in reversed(weights):
        values = [
            low * (1.0 - weight) + torch.where(weight > 0, high, 0.0) * weight
            for low, high in zip(values[::2], values[1::2], strict=True)
        ]
    (result,) = values
    if not x.is_floating_point():
        result = result.round()
    return result.to(x.dtype).contiguous(memory_format=suggest_memory_format(x))


def _cubic_parts(
    out: int, size: int, align_corners: bool, scale: float | None, like: Tensor
) -> Parts:
    at = _positions(out, size, align_corners, scale, like)
    low = at.floor()
    return [
        ((low + (side - 1.0)).clamp(0.0, float(size - 1)), weight)
        for side, weight in enumerate(_cubic(at - low))
    ]


def _nearest_parts(exact: bool) -> Callable:
    def parts(
        out: int, size: int, align_corners: bool, scale: float | None, like: Tensor
    ) -> Parts:
        numbers = torch.arange(out, dtype=torch.float32, device=like.device)
        step = 1.0 / scale if scale else size / out
        at = (numbers + (0.5 if exact else 0.0)) * step
        return [(at.floor().clamp(max=float(size - 1)), 1.0)]

    return parts


def _collect(gradient: Tensor, dim: int, size: int, parts: Parts) -> Tensor:
    """Sums up along ``dim`` what each of ``size`` inputs gets of the outputs."""
    numbers = torch.arange(size, dtype=torch.float32, device=gradient.device)[:, None]
    matrix: Any = None
    for at, weight in parts:
        own = torch.where(numbers == at, weight, 0.0)
        matrix = own if matrix is None else matrix + own
    moved = gradient.movedim(dim, -1)
    return (moved @ matrix.transpose(0, 1)).movedim(-1, dim)


def _upsample_backward(count: int, make_parts: Callable, has_corners: bool) -> Callable:
    def backward(
        gradient: Tensor, out: Sequence[int], size: Sequence[int], *rest: Any
    ) -> Tensor:
        align_corners = bool(rest[0]) if has_corners else False
        scales = [*rest[has_corners:], *[None] * count][:count]
        result = gradient.float()
        for dim in range(count):
            parts = make_parts(
                out[dim], size[2 + dim], align_corners, scales[dim], gradient
            )
            result = _collect(result, 2 + dim, size[2 + dim], parts)
        return result.to(gradient.dtype).contiguous()

    return backward


def _replicate_backward(gradient: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """The gradient of padding by the outermost elements; negative numbers cut off."""
    result = gradient.float()
    for pair in range(len(padding) // 2):
        dim = x.dim() - 1 - pair
        before, size = padding[2 * pair], x.shape[dim]
        at = torch.arange(
            gradient.shape[dim], dtype=torch.float32, device=gradient.device
        )
        at = (at - before).clamp(0.0, float(size - 1))
        result = _collect(result, dim, size, [(at, 1.0)])
    return result.to(gradient.dtype).contiguous()


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.affine_grid_generator.default: affine_grid,
    aten.grid_sampler_2d.default: grid_sampler,
    aten.grid_sampler_2d_backward.default: grid_sampler_backward,
    aten.grid_sampler_3d.default: grid_sampler,
    aten.grid_sampler_3d_backward.default: grid_sampler_backward,
    aten.upsample_bicubic2d_backward.default: _upsample_backward(2, _cubic_parts, True),
    **{
        getattr(aten, f"replication_pad{n}d_backward").default: _replicate_backward
        for n in (1, 2, 3)
    },
    **{
        getattr(aten, f"upsample_{name}_backward").default: _upsample_backward(
            count, _linear_parts, True
        )
        for name, count in (("linear1d", 1), ("bilinear2d", 2), ("trilinear3d", 3))
    },
    **{
        getattr(aten, f"{name}{n}d_backward").default: _upsample_backward(
            n, _nearest_parts(exact), False
        )
        for name, exact in (
            ("upsample_nearest", False),
            ("_upsample_nearest_exact", True),
        )
        for n in (1, 2, 3)
    },
}
