# SPDX-License-Identifier: Apache-2.0
"""Layer norm in three steps: ``spyre::exx2``, ``layernormscale``, ``layernormnorm``.

Each statistic is one element to PyTorch and several on the card, as the device's
``exx2`` leaves two values in a stick (docs/spec/ops.md, "Device ops whose meaning the
public record leaves open"). Here the tensor of statistics is the first lane of a
storage with more lanes, which the next step reads. They hold the variance about the
mean, and what the mean loses when it is rounded, so that rows of nearly one value
come out as ``native_layer_norm`` gives them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_spyre.errors import Unsupported

#: Mean of squares, mean, what rounding took from the mean, variance.
_STATISTICS = 4
#: 1 / standard deviation, and what rounding took from it.
_SCALES = 2


def _check_floating(x: Tensor, step: str) -> None:
    if not x.is_floating_point():
        raise Unsupported(f"{step} of {x.dtype}: it takes floating numbers")


def _split(value: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """An fp32 value as one of ``dtype`` and what is left, of ``dtype`` too."""
    rounded = value.to(dtype)
    return rounded, (value - rounded.float()).to(dtype)


def _stored_bytes(x: Tensor) -> int:
    """Of the storage of a tensor, also where functionalization has wrapped it."""
    from torch._subclasses.functional_tensor import FunctionalTensor

    if isinstance(x, FunctionalTensor):
        x = torch._from_functional_tensor(x.elem)
    return x.untyped_storage().nbytes()


def _lanes_of(x: Tensor, count: int, step: str, maker: str) -> Tensor:
    """All lanes, ``[..., count]``, of a tensor that is the first one."""
    distances = [t for t, n in zip(x.stride(), x.shape, strict=True) if n != 1]
    end = (x.storage_offset() + x.numel() * count) * x.element_size()
    if (
        any(t % count for t in distances)
        or x.storage_offset() % count
        or _stored_bytes(x) < end
    ):
        raise Unsupported(
            f"{step} of a tensor that is no result of {maker}: copies of one have lost "
            "the second lane of its elements"
        )
    return x.as_strided((*x.shape, count), (*x.stride(), 1), x.storage_offset())


def exx2(x: Tensor, exx2Scale: float, useZeroMean: bool) -> Tensor:
    """``[..., n]`` -> ``[...]``: the scaled sum of squares, and hidden lanes.

    ``exx2Scale`` is 1 / n in a layer norm. With ``useZeroMean`` the mean counts as 0.
    """
    _check_floating(x, "exx2")
    if x.dim() == 0:
        raise Unsupported("exx2 of a tensor without dimensions")
    wide = x.float()
    squares = wide.square().sum(-1) * exx2Scale
    if useZeroMean:
        mean, variance = torch.zeros_like(squares), squares
    else:
        mean = wide.sum(-1) * exx2Scale
        variance = (wide - mean.unsqueeze(-1)).square().sum(-1) * exx2Scale
        # Not a mean: the sum of squares is about another number.
        excess = 1.0 - exx2Scale * x.shape[-1]
        if abs(excess) > 1e-12:
            variance = variance + mean.square() * excess
    rounded, rest = _split(mean, x.dtype)
    lanes = [squares.to(x.dtype), rounded, rest, variance.to(x.dtype)]
    return torch.stack(lanes, -1).select(-1, 0)


def layernormscale(x: Tensor, eps: float) -> Tensor:
    """1 / sqrt(variance + eps) of statistics that ``exx2`` gave; their shape."""
    _check_floating(x, "layernormscale")
    variance = _lanes_of(x, _STATISTICS, "layernormscale", "exx2").select(-1, 3)
    scale = (variance.float().clamp(min=0.0) + eps).rsqrt()
    return torch.stack(_split(scale, x.dtype), -1).select(-1, 0)


def layernormnorm(
    x: Tensor,
    mean: Tensor,
    norm_mean: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """``(x - mean) * scale * weight + bias``, rounded once; the shape of ``x``.

    ``mean`` is what ``exx2`` gave for ``x``, ``norm_mean`` what ``layernormscale`` made
    of that, both ``x.shape[:-1]``; ``weight`` and ``bias`` are ``[n]``.
    """
    _check_floating(x, "layernormnorm")
    for name, value in (("mean", mean), ("norm_mean", norm_mean)):
        if value.shape != x.shape[:-1]:
            raise Unsupported(
                f"layernormnorm with {name} of shape {list(value.shape)}: expected "
                f"{list(x.shape[:-1])}"
            )
    statistics = _lanes_of(mean, _STATISTICS, "layernormnorm", "exx2").float()
    scales = _lanes_of(norm_mean, _SCALES, "layernormnorm", "layernormscale").float()
    center = statistics.select(-1, 1) + statistics.select(-1, 2)
    scale = scales.select(-1, 0) + scales.select(-1, 1)
    result = (x.float() - center.unsqueeze(-1)) * scale.unsqueeze(-1)
    if weight is not None:
        result = result * weight.float()
    if bias is not None:
        result = result + bias.float()
    return result.to(x.dtype)


#: By the operator's name: eager kernels, those of fake tensors, and compiled graphs.
STEPS: dict[str, Callable[..., Tensor]] = {
    "exx2": exx2,
    "layernormscale": layernormscale,
    "layernormnorm": layernormnorm,
}
