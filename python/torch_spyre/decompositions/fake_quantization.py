# SPDX-License-Identifier: Apache-2.0
"""Numbers rounded to those that integers with a scale can say, for training.

They are computed in fp32 and rounded once at the end. Gradients are the mask times what
comes back, which PyTorch makes of other operators.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _quantize(
    x: Tensor, scale: Any, inverse: Any, zero_point: Any, lowest: int, highest: int
) -> tuple[Tensor, Tensor]:
    """The nearest numbers that quantized ones have; where those are in range."""
    steps = (x.float() * inverse).round() + zero_point
    within = (steps >= lowest) & (steps <= highest)
    rounded = (steps.clamp(float(lowest), float(highest)) - zero_point) * scale
    return rounded.to(x.dtype), within


def _per_tensor(
    x: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """``aten.fake_quantize_per_tensor_affine_cachemask``."""
    is_right = quant_min <= zero_point <= quant_max
    if not (x.is_floating_point() and is_right and scale > 0):
        return NotImplemented  # The CPU says what is wrong.
    scale = ctypes.c_float(scale).value
    return _quantize(x, scale, 1.0 / scale, float(zero_point), quant_min, quant_max)


def _per_tensor_of_tensors(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    fake_quant_enabled: Tensor,
    quant_min: int,
    quant_max: int,
) -> tuple[Tensor, Tensor]:
    """``aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams``."""
    wide = scale.float().reshape(-1)[0]
    number = zero_point.float().reshape(-1)[0]
    rounded, within = _quantize(
        x, wide, wide.reciprocal(), number, quant_min, quant_max
    )
    is_on = fake_quant_enabled.reshape(-1)[0] != 0
    return torch.where(is_on, rounded, x), within | ~is_on


def _per_channel(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> tuple[Tensor, Tensor]:
    """``aten.fake_quantize_per_channel_affine_cachemask``, of whole zero points."""
    is_right = (
        x.is_floating_point()
        and zero_point.dtype == torch.int32
        and scale.dim() == zero_point.dim() == 1
        and 0 <= axis < x.dim()
        and scale.shape[0] == zero_point.shape[0] == x.shape[axis]
    )
    if not is_right:
        return NotImplemented
    shape = [-1 if dim == axis else 1 for dim in range(x.dim())]
    wide = scale.float().reshape(shape)
    numbers = zero_point.float().reshape(shape)
    return _quantize(x, wide, wide.reciprocal(), numbers, quant_min, quant_max)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: (
        _per_tensor_of_tensors
    ),
    aten.fake_quantize_per_channel_affine_cachemask.default: _per_channel,
    aten.fake_quantize_per_tensor_affine_cachemask.default: _per_tensor,
}
