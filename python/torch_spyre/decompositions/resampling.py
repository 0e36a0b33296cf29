# SPDX-License-Identifier: Apache-2.0
"""Samples between the elements of an input, and their gradients.

A grid sampler gathers the corners around each point, and its backward pass scatters
to them. The backward pass of an upsampling, or of a replicating padding, is a product
with a matrix per dimension, which holds how much of each input is in each output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: The other mode, bicubic, is left to PyTorch.
BILINEAR, NEAREST = 0, 1
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
    sign = torch.where((x < low) != is_odd, -1.0, 1.0)
    return inside, sign


def _clip(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """To the elements there are; 1 where it was strictly inside, else 0."""
    return x.clamp(0.0, float(size - 1)), ((x > 0) & (x < size - 1)).float()


def _source_coordinate(
    x: Tensor, size: int, padding: int, align_corners: bool
) -> tuple[Tensor, Tensor]:
    """The coordinate of a point of a grid along one dimension, and its slope."""
    at, factor = _unnormalize(x, size, align_corners)
    slope = torch.full_like(at, factor)
    if padding == REFLECTION:
        ends = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        at, sign = _reflect(at, *ends)
        slope = slope * sign
    if padding in (BORDER, REFLECTION):
        at, inside = _clip(at, size)
        slope = slope * inside
    return at, slope


class _Grid:
    """Where the points of a grid lie in an input ``[N, C, *size]``.

    Coordinates and slopes are ``[N, P]``, one of each per spatial dimension; those of
    a grid come last dimension first.
    """

    def __init__(
        self, x: Tensor, grid: Tensor, padding: int, align_corners: bool
    ) -> None:
        self.size = x.shape[2:]
        self.batch, self.channels = x.shape[:2]
        self.out = grid.shape[1:-1]
        points = grid.float().reshape(self.batch, -1, len(self.size))
        self.at, self.slope = [], []
        for dim, size in enumerate(self.size):
            own = points[:, :, len(self.size) - 1 - dim]
            at, slope = _source_coordinate(own, size, padding, align_corners)
            self.at.append(at)
            self.slope.append(slope)

    def place(self, corner: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The row-major number of the element at whole coordinates ``[N, P]``, and
        whether there is one.
        """
        index: Any = 0
        inside: Any = None
        for at, size in zip(corner, self.size, strict=True):
            own = (at >= 0) & (at <= size - 1)
            inside = own if inside is None else inside & own
            # NaN has no integer; it is outside.
            whole = torch.where(own, at, 0.0).to(torch.int64)
            index = index * size + whole
        return index, inside

    def spread(self, values: Tensor) -> Tensor:
        """``[N, P]`` for all channels."""
        shape = (self.batch, self.channels, values.shape[1])
        return values[:, None, :].expand(shape)

    def corners(self) -> list[tuple[tuple[int, ...], list[Tensor], list[Tensor]]]:
        """Per corner around the points: its sides, coordinates and weights."""
        low = [at.floor() for at in self.at]
        found = []
        for sides in itertools.product((0, 1), repeat=len(self.size)):
            corner = [start + side for start, side in zip(low, sides, strict=True)]
            weights = [
                (at - start) if side else (start + 1.0 - at)
                for at, start, side in zip(self.at, low, sides, strict=True)
            ]
            found.append((sides, corner, weights))
        return found


def _product(factors: Sequence[Tensor]) -> Tensor:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


def _cubic(t: Tensor) -> list[Tensor]:
    """The weights of the four elements around a point ``t`` behind the second."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


#: A tap of a point: coordinates, weights and their slopes per dimension.
Tap = tuple[list[Tensor], list[Tensor], "list[Tensor] | None"]


def _taps(grid: _Grid, mode: int) -> list[Tap]:
    """The elements that each point is made of."""
    if mode == NEAREST:
        nearest = [at.round() for at in grid.at]
        return [(nearest, [torch.ones_like(at) for at in nearest], None)]
    one = torch.ones_like(grid.at[0])
    return [
        (corner, weights, [one if side else -one for side in sides])
        for sides, corner, weights in grid.corners()
    ]


def _gather(grid: _Grid, flat: Tensor, corner: Sequence[Tensor]) -> Tensor:
    index, inside = grid.place(corner)
    values = flat.gather(2, grid.spread(index))
    return torch.where(grid.spread(inside), values, 0.0)


def grid_sampler(
    x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tensor:
    """``aten.grid_sampler_2d`` and ``aten.grid_sampler_3d``."""
    if mode not in (BILINEAR, NEAREST) or x.numel() == 0 or grid.numel() == 0:
        return NotImplemented
    points = _Grid(x, grid, padding, align_corners)
    flat = x.float().reshape(*x.shape[:2], -1)
    total: Any = None
    for corner, weights, _ in _taps(points, mode):
        part = _gather(points, flat, corner) * points.spread(_product(weights))
        total = part if total is None else total + part
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
    if mode not in (BILINEAR, NEAREST) or x.numel() == 0 or grid.numel() == 0:
        return NotImplemented
    points = _Grid(x, grid, padding, align_corners)
    flat = x.float().reshape(*x.shape[:2], -1)
    own = gradient.float().reshape(*x.shape[:2], -1)
    of_input = torch.zeros_like(flat)
    of_grid: list[Any] = [torch.zeros_like(at) for at in points.at]
    for corner, weights, slopes in _taps(points, mode):
        index, inside = points.place(corner)
        if wanted[0]:
            part = own * points.spread(torch.where(inside, _product(weights), 0.0))
            of_input = of_input.scatter_add(2, points.spread(index), part)
        if slopes is None:
            continue
        values = (_gather(points, flat, corner) * own).sum(1)
        for dim, slope in enumerate(slopes):
            others = [slope, *weights[:dim], *weights[dim + 1 :]]
            of_grid[dim] = of_grid[dim] + values * _product(others)
    for dim, slope in enumerate(points.slope):
        of_grid[dim] = of_grid[dim] * slope
    stacked = torch.stack(of_grid[::-1], -1).reshape(grid.shape).to(grid.dtype)
    return of_input.reshape(x.shape).to(x.dtype) if wanted[0] else None, stacked


# --- gradients of resampling -----------------------------------------------------

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
    at = _positions(out, size, align_corners, scale, like).clamp(min=0.0)
    low = at.floor().clamp(max=float(size - 1))
    part = at - low
    return [(low, 1.0 - part), ((low + 1.0).clamp(max=float(size - 1)), part)]


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
