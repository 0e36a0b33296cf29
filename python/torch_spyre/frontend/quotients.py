# SPDX-License-Identifier: Apache-2.0
"""Quotients and remainders of sizes, as sums of symbols that are free of each other.

If s is divided by d, it is d x quotient + remainder - shift, where the quotient is
(s + shift) // d and the remainder (s + shift) % d. Both may be any numbers of their
ranges, so that the ranges alone say, for example, that d x quotient <= s + shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Mod,
    PythonMod,
    ToFloat,
    TruncToInt,
)

_OF_FLOATS = (CeilToInt, FloorToInt, TruncToInt)
QUOTIENTS = (FloorDiv, Mod, PythonMod)
#: What a binding may have to cut symbols for.
DIVIDING = (*QUOTIENTS, *_OF_FLOATS)

#: Fractions of no larger numbers have products with sizes that are exact doubles.
_LARGEST_IN_FRACTION = 1 << 20

#: The least and the largest value of a symbol, which are at least 1.
Range = Callable[[sympy.Symbol], tuple[int, int]]


@dataclass(frozen=True)
class Cut:
    """Where a symbol is divided: ``divisor`` x quotient + remainder - ``shift``."""

    symbol: sympy.Symbol
    divisor: int
    #: From 0 to the divisor - 1.
    shift: int


@dataclass(frozen=True)
class OwnCut:
    """How a symbol of a program was cut."""

    number: int
    cut: Cut
    #: The symbols that the quotient and the remainder + 1 are; None for a number.
    quotient: int | None
    remainder: int | None
    #: What both are in the call that the program was made for.
    in_call: tuple[int, int]

    def apply(self, own: dict[int, int]) -> bool:
        """Puts what they are in place of what was cut; False if a number differs."""
        whole, rest = divmod(own[self.number] + self.cut.shift, self.cut.divisor)
        for place, value, expected in zip(
            (self.quotient, self.remainder),
            (whole, rest + 1),
            self.in_call,
            strict=True,
        ):
            if place is not None:
                own[place] = value
            elif value != expected:
                return False
        return True


class CutNeeded(Exception):
    """An expression has no quotients once a symbol is cut; ``cut`` is None if none is
    known that helps.
    """

    def __init__(self, cut: Cut | None = None) -> None:
        super().__init__()
        self.cut = cut


def in_integers(expr: Any, is_reached: Callable[[Any], bool]) -> Any:
    """The expression with quotients in place of floats made whole, where these are
    known to be the same. ``is_reached`` says whether an expression is at least 0.
    """
    if not expr.has(*_OF_FLOATS):
        return expr

    def convert(whole: Any) -> Any:
        ratio = ratio_of(whole.args[0])
        if ratio is None:
            return whole
        dividend, divisor = ratio
        if isinstance(whole, CeilToInt):
            return -FloorDiv(-dividend, divisor)
        if isinstance(whole, TruncToInt) and not is_reached(dividend):
            return whole
        return FloorDiv(dividend, divisor)

    return expr.replace(lambda part: isinstance(part, _OF_FLOATS), convert)


def ratio_of(number: Any) -> tuple[Any, Any] | None:
    """Dividend and divisor, in integers, of a float that is rounded once at most: it
    lies between the same whole numbers as their quotient. None for others.
    """
    if isinstance(number, IntTrueDiv):
        return number.args
    if isinstance(number, FloatTrueDiv):
        parts = [_fraction_of(part) for part in number.args]
        if None in parts:
            return None
        (a, b), (c, d) = parts  # type: ignore[misc]
        ratio = a * d, b * c
    else:
        found = _fraction_of(number)
        if found is None:
            return None
        ratio = found
    quotient = sympy.together(sympy.cancel(ratio[0] / ratio[1]))
    dividend, divisor = sympy.fraction(quotient)
    return dividend, divisor


def _fraction_of(number: Any) -> tuple[Any, int] | None:
    """Dividend and divisor, in integers, of a sum of floats that is exact."""
    terms = []
    for term in sympy.Add.make_args(number):
        factor, rest = term.as_coeff_Mul()
        if not (rest == 1 or isinstance(rest, ToFloat)) or not factor.is_finite:
            return None
        ratio = Fraction(float(factor))
        if max(abs(ratio.numerator), ratio.denominator) > _LARGEST_IN_FRACTION:
            return None
        terms.append((ratio, rest if rest == 1 else rest.args[0]))
    divisor = math.lcm(*(ratio.denominator for ratio, _ in terms))
    dividend = sympy.Add(*(int(ratio * divisor) * size for ratio, size in terms))
    return dividend, divisor


def without_quotients(expr: Any, range_of: Range) -> Any:
    """An equal expression without quotients and remainders. Raises CutNeeded."""
    if not expr.has(*QUOTIENTS):
        return expr
    if isinstance(expr, QUOTIENTS):
        dividend, divisor = expr.args
        divisor = without_quotients(divisor, range_of)
        if not divisor.is_Integer:
            return _exact(expr, without_quotients(dividend, range_of), divisor)
        if divisor <= 0:
            raise CutNeeded
        if not isinstance(expr, FloorDiv):
            dividend = _congruent(dividend, int(divisor))
        dividend = without_quotients(dividend, range_of)
        quotient = _floor(dividend, int(divisor), range_of)
        if isinstance(expr, FloorDiv):
            return quotient
        return sympy.expand(dividend - divisor * quotient)
    return expr.func(*(without_quotients(arg, range_of) for arg in expr.args))


def _exact(expr: Any, dividend: Any, divisor: Any) -> Any:
    """A quotient of sums of products of symbols that has no remainder."""
    try:
        quotient, remainder = sympy.div(dividend, divisor, *divisor.free_symbols)
    except sympy.PolynomialError:  # Powers of two around a size, for instance.
        raise CutNeeded from None
    is_whole = all(n.is_Integer for n in quotient.as_coefficients_dict().values())
    if not isinstance(expr, FloorDiv) or remainder != 0 or not is_whole:
        raise CutNeeded
    return quotient


def _congruent(expr: Any, divisor: int) -> Any:
    """An expression with the same remainder, whose terms are no remainders of multiples
    of the divisor.
    """
    terms = sympy.expand(expr).as_coefficients_dict()
    return sympy.Add(
        *(
            factor * (_congruent(term.args[0], divisor) if is_plain else term)
            for term, factor in terms.items()
            for is_plain in [
                isinstance(term, (Mod, PythonMod)) and term.args[1] % divisor == 0
            ]
        )
    )


def _bounds(terms: dict[Any, int], range_of: Range) -> tuple[int, int]:
    """The least and the largest value of a sum of products of symbols."""
    least = most = 0
    for term, factor in terms.items():
        ends = [
            int(term.subs({s: range_of(s)[end] for s in term.free_symbols}))
            for end in (0, 1)
        ]
        low, high = sorted(factor * end for end in ends)
        least, most = least + low, most + high
    return least, most


def _floor(dividend: Any, divisor: int, range_of: Range) -> Any:
    """The quotient of a sum of products of symbols. Raises CutNeeded."""
    whole: Any = sympy.Integer(0)
    rest: dict[Any, int] = {}
    for term, number in sympy.expand(dividend).as_coefficients_dict().items():
        if not number.is_Integer or not term.is_polynomial(*term.free_symbols):
            raise CutNeeded
        factor = int(number)
        if term == 1:
            whole += factor // divisor
            factor %= divisor
        elif factor % divisor == 0:
            whole += factor // divisor * term
            factor = 0
        if factor:
            rest[term] = factor
    least, most = _bounds(rest, range_of)
    if least // divisor == most // divisor:
        return whole + least // divisor
    one = sympy.Integer(1)
    constant = rest.pop(one, 0)
    # The others are multiples of a factor of the divisor; that many times it is what
    # is not counts, whatever it is.
    common = math.gcd(divisor, max(map(abs, rest.values())))
    if common > 1:
        small = {t: f for t, f in rest.items() if f % common}
        low, high = _bounds({**small, one: constant}, range_of)
        if low // common == high // common:
            large = sympy.Add(
                low // common,
                *(f // common * t for t, f in rest.items() if t not in small),
            )
            return whole + _floor(large, divisor // common, range_of)
    if len(rest) == 1:
        ((term, factor),) = rest.items()
        if term.is_Symbol and abs(factor) == 1:
            shift = constant if factor == 1 else divisor - 1 - constant
            raise CutNeeded(Cut(term, divisor, shift))
    raise CutNeeded
