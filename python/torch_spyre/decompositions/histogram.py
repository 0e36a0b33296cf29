# SPDX-License-Identifier: Apache-2.0
"""``torch.histc`` and ``torch.bincount``.

Each element gets the number of its bin, by PyTorch's rule in fp32. Parts of the
elements are counted at a time, so that the compiler can cut what lies between
along them: few bins by comparing every element with every bin; more by a product
of two matrices of zeros and ones, whose rows and columns stand for the upper and
the lower digit of a bin's number. Counts are exact. Ranges and sizes that depend
on the values are read by the host, as on other devices; graphs call the same
kernels for these.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_spyre import _C

aten = torch.ops.aten

#: Elements of a part; fp32 counts up to 2^24 by ones.
_PART = {False: 1 << 12, True: 1 << 14}
#: Bins from which on digits are compared.
_MANY_BINS = 129
#: Lower digits: a stick of fp32.
_DIGITS = 32
#: Elements times bins beyond which the CPU is faster, which adds at an address.
_MOST_COUNTED, _MOST_ADDED = 1 << 34, 1 << 28


def _in_parts(x: Tensor, size: int, beyond: float) -> Tensor:
    """``[N]`` as rows of ``size``, the last one filled up."""
    if x.numel() <= size:
        return x[None]
    return functional.pad(x, (0, -x.numel() % size), value=beyond).view(-1, size)


def _numbers(size: int, index: Tensor, step: int = 1) -> Tensor:
    return torch.arange(0, size * step, step, dtype=index.dtype, device=index.device)


def _count(index: Tensor, size: int) -> Tensor:
    """How often 0, 1, ... size - 1 are in ``index``, ``[N]`` of int32; int64."""
    by_digits = size >= _MANY_BINS
    parts = _in_parts(index, _PART[by_digits], -1)
    if not by_digits:
        equal = _numbers(size, index)[:, None] == parts[:, None, :]
        return equal.sum(-1, dtype=torch.float32).to(torch.int64).sum(0)
    lower = parts.bitwise_and(_DIGITS - 1)
    upper = _numbers(-(-size // _DIGITS), index, _DIGITS)[:, None]
    rows = (upper == (parts - lower)[:, None, :]).float()
    columns = (_numbers(_DIGITS, index) == lower[:, :, None]).float()
    counts = (rows @ columns).to(torch.int64).sum(0)
    return counts.reshape(-1)[:size].clone()


def _add_up(index: Tensor, size: int, weights: Tensor) -> Tensor:
    """Sums of the weights of each number, in fp32."""
    parts = _in_parts(index, _PART[False], -1)[:, None, :]
    values = _in_parts(weights.float(), _PART[False], 0.0)[:, None, :]
    # Not a product with zeros: weights may be infinite.
    own = torch.where(_numbers(size, index)[:, None] == parts, values, 0.0)
    return own.sum(-1).sum(0)


def _fp32(number: float) -> float:
    return ctypes.c_float(number).value


def histc_between(x: Tensor, bins: int, low: Any, high: Any) -> Tensor:
    """Counts of ``bins`` equal parts of [low, high], numbers or fp32 scalars.

    The last part has both its ends; NaN and what is outside are in none.
    """
    values = x.reshape(-1).float()
    if isinstance(low, Tensor):
        span = high - low
    else:
        low, high = _fp32(low), _fp32(high)
        span = _fp32(high - low)
    position = (values - low) * float(bins) / span
    inside = (values >= low) & (values <= high)
    index = position.to(torch.int32).clamp(max=bins - 1)
    return _count(torch.where(inside, index, -1), bins).to(x.dtype)


def bincount_up_to(x: Tensor, weights: Tensor | None, size: int) -> Tensor:
    """``bincount`` of values of which all are below ``size``."""
    index = x.to(torch.int32)
    return _count(index, size) if weights is None else _add_up(index, size, weights)


def _is_finite(number: float) -> bool:
    return math.isfinite(_fp32(number))


def histc_in_graph(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """``aten.histc`` without reading values; the eager kernel does the rest."""
    if _needs_host(x, bins, min, max):
        return NotImplemented
    return histc_between(x, bins, float(min), float(max))


def _needs_host(x: Tensor, bins: int, low: float, high: float) -> bool:
    """Whether a call is wrong, or its range is that of the values."""
    return not (
        x.numel() != 0
        and x.dtype != torch.bool
        and bins > 0
        and _is_finite(low)
        and _is_finite(high)
        and _fp32(low) < _fp32(high)
        and x.numel() * bins <= _MOST_COUNTED
    )


def histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """``aten.histc`` on the device, with the CPU's errors."""
    if not _needs_host(x, bins, min, max):
        return torch.ops.spyre.histc_between(x, bins, float(min), float(max))
    if x.dtype == torch.bool:
        raise NotImplementedError("\"histc\" not implemented for 'Bool'")
    if bins <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
        )
    low, high = _fp32(min), _fp32(max)
    ends = None
    if low == high and x.numel() != 0:
        ends = torch.aminmax(x.reshape(-1).float())
        low, high = ends.min.item(), ends.max.item()
    if low == high:
        low, high = _fp32(low - 1), _fp32(high + 1)
        if ends is not None:
            ends = (ends.min - 1, ends.max + 1)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if not low < high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if x.numel() == 0:
        return x.new_zeros(bins)
    if x.numel() * bins > _MOST_COUNTED:
        _C.record_fallback("aten::histc")
        counts = torch.histc(x.cpu().float(), bins, low, high)
        return counts.to(x.device, x.dtype)
    if ends is None:
        return torch.ops.spyre.histc_between(x, bins, low, high)
    # The range stays on the device: it is another one every time.
    return torch.ops.spyre.histc_between.Tensor(x, bins, *ends)


def _next_size(size: int) -> int:
    """A size near above, so that values near each other share a program."""
    return max(64, 1 << (size - 1).bit_length())


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """``aten.bincount``; sums of weights are fp32, as there is no float64."""
    if x.dtype == torch.bool or x.is_floating_point():
        name = {torch.float32: "Float", torch.float16: "Half"}.get(x.dtype, "BFloat16")
        name = "Bool" if x.dtype == torch.bool else name
        raise NotImplementedError(f"\"bincount\" not implemented for '{name}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if x.dim() == 1 and x.numel() == 0:
        return torch.zeros(minlength, dtype=torch.int64, device=x.device)
    ends = x.aminmax() if x.dim() == 1 else None
    if ends is None or ends.min.item() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    size = max(int(ends.max.item()) + 1, minlength)
    most = _MOST_COUNTED if weights is None else _MOST_ADDED
    if x.numel() * size > most:
        _C.record_fallback("aten::bincount")
        host = None if weights is None else weights.cpu().float()
        return torch.bincount(x.cpu(), host, minlength).to(x.device)
    counts = torch.ops.spyre.bincount_up_to(x, weights, _next_size(size))
    return counts[:size].clone()


_own = torch.library.Library("spyre", "FRAGMENT")
_own.define("histc_between(Tensor self, int bins, float min, float max) -> Tensor")
_own.define(
    "histc_between.Tensor(Tensor self, int bins, Tensor min, Tensor max) -> Tensor"
)
_own.define("bincount_up_to(Tensor self, Tensor? weights, int size) -> Tensor")

#: What the kernels call; each call of a kind is one program.
PROGRAMS: dict[Any, Callable] = {
    torch.ops.spyre.histc_between.default: histc_between,
    torch.ops.spyre.histc_between.Tensor: histc_between,
    torch.ops.spyre.bincount_up_to.default: bincount_up_to,
}
DECOMPOSITIONS: dict[Any, Callable] = {
    aten.histc.default: histc_in_graph,
    **PROGRAMS,
}
