# SPDX-License-Identifier: Apache-2.0
"""Gamma and Bessel functions, and exponentials of matrices.

Computed in fp32 from few table operators and rounded once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.elementary import horner, in_fp32

aten = torch.ops.aten


def _zeta_less_one(s: int) -> float:
    """The sum of n^-s over n from 2 on: that far, and the rest by its integral."""
    many = 1000
    total = sum(n**-s for n in range(2, many))
    return total + many ** (1 - s) / (s - 1) + many**-s / 2


#: lgamma(2 + t) / t, constant term last, for |t| <= 1/2.
_LGAMMA_AT_TWO = tuple((-1) ** k * _zeta_less_one(k) / k for k in range(22, 1, -1)) + (
    1 - 0.57721566490153286,
)
#: Stirling's series in 1 / z^2, times z: to relative 2^-24 from z = 6 on.
_STIRLING = (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
#: The same of digamma, times z^2, without 1 / (2 z).
_DIGAMMA = (1 / 240, -1 / 252, 1 / 120, -1 / 12)
_SHIFT = 6
#: By which lgamma comes from around 2.
_FACTORS = 4


def _from_nearest(x: Tensor) -> Tensor:
    """How far a number is above the integer nearest to it."""
    return x - x.round()


def _is_pole(x: Tensor) -> Tensor:
    return (x <= 0) & (x == x.floor())


def _lgamma_of_positive(x: Tensor) -> Tensor:
    """From 1/2 on: a series around 2, to which factors lead, or Stirling's."""
    t, product = x, torch.ones_like(x)
    for _ in range(_FACTORS):
        above = t > 2.5
        t = torch.where(above, t - 1.0, t)
        product = torch.where(above, product * t, product)
    below = t < 1.5
    t = torch.where(below, t - 1.0, t - 2.0)
    near = t * horner(t, _LGAMMA_AT_TWO)
    near = near + torch.where(below, -t.log1p(), product.log())
    series = horner(1.0 / (x * x), _STIRLING) / x + 0.5 * math.log(2 * math.pi)
    far = (x - 0.5) * x.log() - x + series
    far = torch.where(x == math.inf, x, far)
    return torch.where(x < _FACTORS + 2.5, near, far)


def _lgamma(x: Tensor) -> Tensor:
    mirrored = x < 0.5
    value = _lgamma_of_positive(torch.where(mirrored, 1.0 - x, x))
    sine = (math.pi * _from_nearest(x)).sin().abs()
    # The reciprocal of a subnormal number would be infinite.
    value = torch.where(mirrored, -(sine * (1.0 / math.pi)).log() - value, value)
    return torch.where(_is_pole(x) | x.isinf(), math.inf, value)


def _cotangent(x: Tensor) -> Tensor:
    """``cot(pi x)``, as exact near its zeros as near its poles."""
    near = _from_nearest(x)
    to_zero = 0.5 - near.abs()
    by_zero = near.sign() * (math.pi * to_zero).tan()
    return torch.where(to_zero < 0.25, by_zero, 1.0 / (math.pi * near).tan())


def _digamma(x: Tensor) -> Tensor:
    mirrored = x < 0
    z = torch.where(mirrored, 1.0 - x, x)
    value = -1.0 / z
    for step in range(1, _SHIFT):
        value = value - 1.0 / (z + step)
    z = z + _SHIFT
    series = horner(1.0 / (z * z), _DIGAMMA) / (z * z)
    value = value + z.log() - 0.5 / z + series
    value = torch.where(z == math.inf, z, value)
    value = torch.where(mirrored, value - math.pi * _cotangent(x), value)
    value = torch.where(_is_pole(x), math.nan, value)
    return torch.where(x == 0, -1.0 / x, value)


#: Bernoulli's numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)


def _zeta(s: int, x: Tensor) -> Tensor:
    """Hurwitz' zeta function by the formula of Euler and Maclaurin, for x > 0."""
    terms = 8
    total = x.pow(-s)
    for step in range(1, terms):
        total = total + (x + step).pow(-s)
    z = x + terms
    power = z.pow(-s)
    total = total + z * power / (s - 1) + 0.5 * power
    factor, power = float(s), power / z
    for j, number in enumerate(_BERNOULLI, 1):
        total = total + power * (number * factor / math.factorial(2 * j))
        factor *= (s + 2 * j - 1) * (s + 2 * j)
        power = power / (z * z)
    return total


def _cotangent_derivative(n: int) -> tuple[float, ...]:
    """The n-th derivative of cot as a polynomial in cot, constant term last."""
    ascending = [0.0, 1.0]
    for _ in range(n):
        derived = [k * c for k, c in enumerate(ascending)][1:]
        squares = [0.0, 0.0, *derived]
        ascending = [
            -(a + b) for a, b in zip([*derived, 0.0, 0.0], squares, strict=True)
        ]
    return tuple(reversed(ascending))


def _polygamma_of(n: int, x: Tensor) -> Tensor:
    mirrored = x < 0.5
    z = torch.where(mirrored, 1.0 - x, x)
    sign = 1.0 if n % 2 else -1.0
    value = sign * math.factorial(n) * _zeta(n + 1, z)
    slope = math.pi ** (n + 1) * horner(_cotangent(x), _cotangent_derivative(n))
    other = value if n % 2 == 0 else -value
    value = torch.where(mirrored, other - slope, value)
    value = torch.where(x == math.inf, 0.0, value)
    return torch.where(_is_pole(x), math.inf * sign, value)


def _polygamma(n: int, x: Tensor) -> Tensor:
    if n == 0:
        return torch.digamma(x)
    return in_fp32(lambda value: _polygamma_of(n, value))(x)


# --- modified Bessel functions ---------------------------------------------------

#: Abramowitz and Stegun, 9.8.1 to 9.8.4, in (x / 3.75)^2 below 3.75, and of
#: sqrt(x) exp(-x) times the function in 3.75 / x above; errors below 2^-22.
_I0_SMALL = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
_I0_LARGE = (
    *(0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565),
    *(0.00225319, 0.01328592, 0.39894228),
)
_I1_SMALL = (
    *(0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594),
    0.5,
)
_I1_LARGE = (
    *(-0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555, 0.00163801),
    *(-0.00362018, -0.03988024, 0.39894228),
)
_BESSEL_LIMIT = 3.75


def _bessel(order: int, is_scaled: bool) -> Callable:
    small_terms = _I1_SMALL if order else _I0_SMALL
    large_terms = _I1_LARGE if order else _I0_LARGE

    def bessel(x: Tensor) -> Tensor:
        a = x.abs()
        t = (a / _BESSEL_LIMIT).square()
        small = horner(t, small_terms)
        large = horner(_BESSEL_LIMIT / a, large_terms) / a.sqrt()
        if order:
            small = a * small
        if is_scaled:
            small = small * (-a).exp()
        else:
            # Half of the exponent at a time: the product may be finite all the same.
            half = (0.5 * a).exp()
            large = large * half * half
            large = torch.where(a == math.inf, a, large)
        value = torch.where(a <= _BESSEL_LIMIT, small, large)
        return torch.where(x < 0, -value, value) if order else value

    return in_fp32(bessel)


# --- matrices --------------------------------------------------------------------

#: Terms of the series of a matrix whose norm is at most 1.
_DEGREE = 10
#: fp32 has no part of a number beyond 2^24 times 1: more squarings tell nothing.
_MOST_SQUARINGS = 24


def _matrix_exp(x: Tensor) -> Tensor:
    """exp(A) is exp(A / 2^s) squared s times, of each matrix as often as its norm says.

    Keeps exp - 1, which is small at first, so that squaring loses little.
    """
    if x.numel() == 0:
        return x.clone()
    a = x.float()
    norm = a.abs().sum(-1, keepdim=True).amax(-2, keepdim=True)
    squarings = norm.clamp(min=1.0).log2().ceil().clamp(max=float(_MOST_SQUARINGS))
    a = a * torch.exp2(-squarings)
    one = torch.eye(x.shape[-1], dtype=a.dtype, device=x.device)
    # ((A / n + 1) A / (n - 1) + 1) ... A
    series = a / _DEGREE
    for n in range(_DEGREE - 1, 0, -1):
        series = (series + one) @ a / n
    for number in range(_MOST_SQUARINGS):
        squared = 2.0 * series + series @ series
        series = torch.where(squarings > number, squared, series)
    return (series + one).to(x.dtype)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.digamma.default: in_fp32(_digamma),
    aten.i0.default: _bessel(0, False),
    aten.lgamma.default: in_fp32(_lgamma),
    aten.linalg_matrix_exp.default: _matrix_exp,
    aten.polygamma.default: _polygamma,
    aten.special_i0e.default: _bessel(0, True),
    aten.special_i1.default: _bessel(1, False),
    aten.special_i1e.default: _bessel(1, True),
}
