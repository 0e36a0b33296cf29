# SPDX-License-Identifier: Apache-2.0
"""Resampling whose filters grow with the step between outputs, and its gradients.

Along each dimension it is a product with a matrix of weights, in fp32. Filters are 0
beyond their radius, so that a row of the matrix needs no other bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten

Filter = Callable[[Tensor], Tensor]


def _triangle(x: Tensor) -> Tensor:
    return (1.0 - x.abs()).clamp(min=0.0)


def _cubic(x: Tensor) -> Tensor:
    """Of radius 2, with the coefficient that filters with antialiasing have."""
    a = -0.5
    d = x.abs()
    near = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    far = (((d - 5.0) * d + 8.0) * d - 4.0) * a
    return torch.where(d < 1.0, near, torch.where(d < 2.0, far, 0.0))


def _weights(
    out: int,
    size: int,
    align_corners: bool,
    scale: float | None,
    weigh: Filter,
    device: torch.device,
) -> Tensor:
    """How much of each of ``size`` inputs is in each output, [out, size]."""
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = 1.0 / scale if scale else size / out
    centers, places = (
        torch.arange(n, dtype=torch.float32, device=device) + 0.5 for n in (out, size)
    )
    distances = places - (centers * step)[:, None]
    weights = weigh(distances * (1.0 / max(step, 1.0)))
    return weights / weights.sum(1, keepdim=True)


def _forward(weigh: Filter) -> Callable:
    def upsample(
        x: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        if not x.is_floating_point():
            return NotImplemented  # The CPU rounds bytes between the dimensions.
        result = x.float()
        for dim, scale in ((3, scales_w), (2, scales_h)):
            out, size = output_size[dim - 2], x.shape[dim]
            weights = _weights(out, size, align_corners, scale, weigh, x.device)
            moved = result.movedim(dim, -1) @ weights.transpose(0, 1)
            result = moved.movedim(-1, dim)
        order = suggest_memory_format(x)
        return result.to(x.dtype).contiguous(memory_format=order)

    return upsample


def _backward(weigh: Filter) -> Callable:
    def upsample_backward(
        gradient: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        result = gradient.float()
        for dim, scale in ((2, scales_h), (3, scales_w)):
            out, size = output_size[dim - 2], input_size[dim]
            weights = _weights(out, size, align_corners, scale, weigh, gradient.device)
            result = (result.movedim(dim, -1) @ weights).movedim(-1, dim)
        order = suggest_memory_format(gradient)
        return result.to(gradient.dtype).contiguous(memory_format=order)

    return upsample_backward


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._upsample_bicubic2d_aa.default: _forward(_cubic),
    aten._upsample_bicubic2d_aa_backward.default: _backward(_cubic),
    aten._upsample_bilinear2d_aa.default: _forward(_triangle),
    aten._upsample_bilinear2d_aa_backward.default: _backward(_triangle),
}
