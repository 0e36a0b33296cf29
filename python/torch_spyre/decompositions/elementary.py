# SPDX-License-Identifier: Apache-2.0
"""Elementary functions and movements that the ATen table has no row for.

Functions compute in fp32 from few table operators and round once at the end, so
that fp16 results are within a unit in the last place. Eager and compiled graphs
use the same ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import (
    compute_elementwise_output_logical_to_physical_perm,
)
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten


def in_fp32(function: Callable) -> Callable:
    """Runs on fp32 tensors; the result has the type PyTorch promotes to."""

    @functools.wraps(function)
    def call(*operands: Any) -> Tensor:
        tensors = [o for o in operands if isinstance(o, Tensor)]
        dtype = functools.reduce(
            torch.promote_types,
            [torch.result_type(tensors[0], o) for o in operands],
        )
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        wide = [o.float() if isinstance(o, Tensor) else o for o in operands]
        return function(*wide).to(dtype)

    return call


def _with_sign_of(x: Tensor, magnitude: Tensor) -> Tensor:
    """An odd function of x, from that of its magnitude, or no number where that is
    none; zeros keep their signs.
    """
    return torch.where(x > 0, magnitude, torch.where(x < 0, -magnitude, x - magnitude))


def _atan(x: Tensor) -> Tensor:
    """Reduced to |z| <= tan(pi / 8), where an odd polynomial is exact to 2^-24."""
    a = x.abs()
    big, mid = a > 2.414213562373095, a > 0.41421356237309503
    zero = torch.zeros_like(x)
    start = torch.where(big, math.pi / 2, torch.where(mid, math.pi / 4, zero))
    z = torch.where(big, -1.0 / a, torch.where(mid, (a - 1.0) / (a + 1.0), a))
    s = z * z
    p = ((0.0805374449538 * s - 0.138776856032) * s + 0.199777106478) * s
    return _with_sign_of(x, start + ((p - 0.333329491539) * s * z + z))


def _half_exp(a: Tensor) -> Tensor:
    """exp(a) / 2, which may be finite where exp(a) is not."""
    root = (0.5 * a).exp()
    return 0.5 * root * root


def _sinh(x: Tensor) -> Tensor:
    a = x.abs()
    e = a.clamp(max=40.0).expm1()
    return _with_sign_of(
        x, torch.where(a > 20.0, _half_exp(a), 0.5 * (e + e / (e + 1.0)))
    )


def _cosh(x: Tensor) -> Tensor:
    a = x.abs()
    e = a.clamp(max=40.0).exp()
    return torch.where(a > 20.0, _half_exp(a), 0.5 * e + 0.5 / e)


def _asinh(x: Tensor) -> Tensor:
    a = x.abs()
    s = a * a
    small = (a + s / (1.0 + (s + 1.0).sqrt())).log1p()
    return _with_sign_of(x, torch.where(a > 1e9, a.log() + math.log(2.0), small))


def _acosh(x: Tensor) -> Tensor:
    t = x - 1.0
    near = (t + (t * (t + 2.0)).sqrt()).log1p()
    result = torch.where(x > 1e9, x.log() + math.log(2.0), near)
    return torch.where(x < 1.0, math.nan, result)


def _atanh(x: Tensor) -> Tensor:
    a = x.abs()
    return _with_sign_of(x, 0.5 * (2.0 * a / (1.0 - a)).log1p())


_ERFC = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368),
)


def _erfc(x: Tensor) -> Tensor:
    """Chebyshev fit of the logarithm, relative error below 1.2e-7."""
    # From 10.1 on the nearest float is 0.
    a = x.abs().clamp(max=12.0)
    t = 1.0 / (1.0 + 0.5 * a)
    p = horner(t, _ERFC)
    # The square of this part is exact: that of a is rounded, and an error of the
    # exponent is a relative one of the result.
    h = (a * 128.0).round() * (1.0 / 128.0)
    rest = (h - a) * (h + a) + (p * t - 1.26551223)
    r = t * (-h * h).exp() * rest.exp()
    return torch.where(x < 0, 2.0 - r, r)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    a, b = x.abs(), y.abs()
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    ratio = small / large
    finite = large * (1.0 + ratio * ratio).sqrt()
    # As C says: with an infinity, also one beside what is no number.
    result = torch.where(large == 0, large, finite)
    return torch.where(a.isinf() | b.isinf(), torch.inf, result)


def _negative(x: Tensor) -> Tensor:
    """Whether the sign is set, also of zero."""
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0))


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    ratio = y.abs() / x.abs()
    ratio = torch.where((x == 0) & (y == 0), 0.0, ratio)
    ratio = torch.where(x.isinf() & y.isinf(), 1.0, ratio)
    angle = _atan(ratio)
    angle = torch.where(_negative(x), math.pi - angle, angle)
    return torch.where(_negative(y), -angle, angle)


def _logaddexp2(x: Tensor, y: Tensor) -> Tensor:
    large = torch.maximum(x, y)
    sum_ = large + (1.0 + torch.exp2(-(x - y).abs())).log2()
    return torch.where(large.isinf(), large, sum_)


def _angle(x: Tensor) -> Tensor:
    flat = torch.where(x < 0, math.pi, torch.zeros_like(x))
    return torch.where(x.isnan(), x, flat)


def _copysign(x: Tensor, sign: Any) -> Tensor:
    if not isinstance(sign, Tensor):
        return -x.abs() if math.copysign(1.0, sign) < 0 else x.abs()
    return torch.where(_negative(sign), -x.abs(), x.abs())


def _fmod(x: Tensor, y: Any) -> Tensor:
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        # The most negative integer has no magnitude.
        return x.to(dtype) - torch.div(x, y, rounding_mode="trunc") * y
    # 16 bits would give the NaN of an infinite x a sign before it is negated.
    x = x.float()
    divisor = y.float().abs() if isinstance(y, Tensor) else abs(y)
    return _with_sign_of(x, torch.remainder(x.abs(), divisor)).to(dtype)


def _fmax(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x.isnan(), y, torch.where(y.isnan(), x, torch.maximum(x, y)))


def _fmin(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x.isnan(), y, torch.where(y.isnan(), x, torch.minimum(x, y)))


def _flip(x: Tensor, dims: list[int]) -> Tensor:
    # The result has the order of dimensions in memory that the argument has.
    order, _ = compute_elementwise_output_logical_to_physical_perm(x)
    result = stored = x.permute(order)
    for dim in {order.index(d % x.dim()) for d in dims if x.dim()}:
        if stored.shape[dim] > 1:
            backwards = _backwards(stored.shape[dim], x.device)
            result = result.index_select(dim, backwards)
    if result is stored:
        return x.clone()
    return result.permute([order.index(dim) for dim in range(x.dim())])


def _backwards(size: int, device: torch.device) -> Tensor:
    """Numbers from size - 1 down to 0."""
    if isinstance(size, torch.SymInt):
        # A range that begins at a size is none of one program.
        return (size - 1) - torch.arange(size, device=device)
    return torch.arange(size - 1, -1, -1, device=device)


def _roll(x: Tensor, shifts: list[int], dims: list[int] | None = None) -> Tensor:
    if not dims:
        return _roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    result = x
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        distance = -shift if shift < 0 else shift
        if isinstance(size - shift, torch.SymInt) and distance < size:
            # No remainder, which is no sum of sizes.
            start = size - shift if shift > 0 else -shift
        else:
            start = (-shift) % size if size else 0
        if start:
            parts = [
                result.narrow(dim, start, size - start),
                result.narrow(dim, 0, start),
            ]
            result = torch.cat(parts, dim)
    if result is x:
        return x.clone(memory_format=torch.contiguous_format)
    return result.contiguous()


def _repeat_sized(x: Tensor, repeats: list[int]) -> Tensor:
    """``aten.repeat`` of dimensions whose sizes vary, through an index each."""
    leading = len(repeats) - x.dim()
    varying = [
        dim
        for dim, size in enumerate(x.shape, leading)
        if isinstance(size, torch.SymInt) and repeats[dim] != 1
    ]
    if not varying or not all(isinstance(n, int) and n > 0 for n in repeats):
        return NotImplemented
    once = [1 if dim in varying else n for dim, n in enumerate(repeats)]
    result = x.repeat(once) if set(once) != {1} or leading else x
    for dim in varying:
        places = torch.arange(result.shape[dim], device=x.device)
        column = torch.zeros(repeats[dim], 1, dtype=torch.int64, device=x.device)
        result = result.index_select(dim, (column + places).reshape(-1))
    return result


def _vector_norm(x: Tensor, ord: Any = 2, *arguments: Any, **options: Any) -> Tensor:
    """``aten.linalg_vector_norm``: the row is of the 2-norm."""
    from torch._refs.linalg import vector_norm

    if ord == 2:
        return NotImplemented
    return vector_norm(x, ord, *arguments, **options)


#: Giles' polynomials of erfinv, in w = -log(1 - x^2): below 5, then above.
_ERFINV_NEAR = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_ERFINV_FAR = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


def horner(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """A polynomial in ``x``, whose constant term comes last."""
    result = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def _erfinv(x: Tensor) -> Tensor:
    w = -((1.0 - x) * (1.0 + x)).log()
    near = horner(w - 2.5, _ERFINV_NEAR)
    far = horner(w.clamp(min=0.0).sqrt() - 3.0, _ERFINV_FAR)
    inside = x * torch.where(w < 5.0, near, far)
    return torch.where(x.abs() == 1.0, x * math.inf, inside)


def _round(x: Tensor, decimals: int) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    factor = 10.0 ** abs(decimals)
    wide = x.float()
    if decimals < 0:
        return ((wide / factor).round() * factor).to(x.dtype)
    return ((wide * factor).round() / factor).to(x.dtype)


def _threshold(x: Tensor, threshold: Any, value: Any) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented  # Which numbers integers have is for the CPU to say.
    return torch.where(x <= threshold, value, x)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``aten.put``: indices count all elements."""
    flat = aten.index_put.default(
        x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate
    )
    return flat.reshape(x.shape)


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``aten.index_fill``: negative indices count from the end; index_copy has none."""
    if isinstance(value, Tensor):
        is_any = x.is_floating_point() or x.dtype == torch.bool
        if not is_any and torch.promote_types(x.dtype, value.dtype) != x.dtype:
            return NotImplemented  # The CPU says which numbers fit.
        value = value.to(x.dtype)
    size = x.shape[dim] if x.dim() else 1
    index = torch.where(index < 0, index + size, index)
    return torch._refs.index_fill(x, dim, index, value)


def _shrink_backward(gradient: Tensor, x: Tensor, limit: Any) -> Tensor:
    """Of hardshrink and softshrink."""
    return torch.where((x >= -limit) & (x <= limit), 0.0, gradient)


def _addbmm(
    x: Tensor, first: Tensor, second: Tensor, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """One product: what is summed over the batch is more to sum over."""
    size = first.shape[0] * first.shape[2]
    rows = first.transpose(0, 1).reshape(first.shape[1], size)
    columns = second.reshape(size, second.shape[2])
    return torch.addmm(x, rows, columns, beta=beta, alpha=alpha)


def _logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """``aten.logspace``, in fp32, where PyTorch's own takes float64.

    Integers are cut off, and need more exact powers.
    """
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point or base <= 0:
        return NotImplemented
    exponents = torch.linspace(start, end, steps, dtype=torch.float32, device=device)
    return torch.pow(base, exponents).to(dtype)


def _linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """``aten.linspace`` as PyTorch's own, between ends that the CPU converts first."""
    dtype = dtype or torch.get_default_dtype()
    if dtype is torch.bool:
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    if not dtype.is_floating_point:
        used = steps if isinstance(steps, int) else 2
        start = _in_dtype(start, dtype) if used >= 1 else 0
        end = _in_dtype(end, dtype) if used >= 2 else start
    return torch._refs.linspace(start, end, steps, dtype=dtype, device=device)


def _in_dtype(number: Any, dtype: torch.dtype) -> Any:
    """A number as one of an integer dtype; what that lacks is the CPU's error."""
    if not isinstance(number, (int, float)):
        return number
    with _disable_current_modes():
        return torch.full((), number, dtype=dtype, device="cpu").item()


#: Of operators that make a tensor of a dtype and device; in graphs, and for eager calls
#: that store in one.
FACTORIES: dict[Any, Callable] = {
    getattr(aten.logspace, overload): _logspace
    for overload in ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
}
FACTORIES[aten.linspace.default] = _linspace
DECOMPOSITIONS: dict[Any, Callable] = {
    aten.acos.default: in_fp32(lambda x: 2.0 * _atan(((1.0 - x) / (1.0 + x)).sqrt())),
    aten.acosh.default: in_fp32(_acosh),
    aten.addbmm.default: _addbmm,
    aten.angle.default: in_fp32(_angle),
    aten.asin.default: in_fp32(lambda x: _atan(x / ((1.0 - x) * (1.0 + x)).sqrt())),
    aten.asinh.default: in_fp32(_asinh),
    aten.atan.default: in_fp32(_atan),
    aten.atan2.default: in_fp32(_atan2),
    aten.atanh.default: in_fp32(_atanh),
    aten.copysign.Scalar: in_fp32(_copysign),
    aten.copysign.Tensor: in_fp32(_copysign),
    aten.cosh.default: in_fp32(_cosh),
    aten.erfc.default: in_fp32(_erfc),
    aten.erfinv.default: in_fp32(_erfinv),
    aten.exp2.default: in_fp32(lambda x: torch.pow(2.0, x)),
    aten.flip.default: _flip,
    aten.fmax.default: _fmax,
    aten.fmin.default: _fmin,
    aten.fmod.Scalar: _fmod,
    aten.fmod.Tensor: _fmod,
    aten.hardshrink_backward.default: _shrink_backward,
    aten.hypot.default: in_fp32(_hypot),
    aten.index_fill.int_Scalar: _index_fill,
    aten.index_fill.int_Tensor: _index_fill,
    aten.log10.default: in_fp32(lambda x: x.log2() * math.log10(2.0)),
    aten.logaddexp2.default: in_fp32(_logaddexp2),
    aten.put.default: _put,
    aten.roll.default: _roll,
    aten.round.decimals: _round,
    aten.signbit.default: _negative,
    aten.sinh.default: in_fp32(_sinh),
    aten.softshrink_backward.default: _shrink_backward,
    aten.threshold.default: _threshold,
}
#: Of operators with a row: NotImplemented for calls that the row takes.
BESIDE_ROWS: dict[Any, Callable] = {
    aten.linalg_vector_norm.default: _vector_norm,
    aten.repeat.default: _repeat_sized,
}
