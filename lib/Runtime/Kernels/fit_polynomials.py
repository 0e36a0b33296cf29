# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomial coefficients in VectorMath.h.

Prints, for every function, near-minimax coefficients (lowest power first) and
the largest weighted error of the exact polynomial. Needs mpmath.
"""

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 70
Function = Callable[[mp.mpf], mp.mpf]


def fit(
    f: Function, weight: Function, lo: float, hi: float, degree: int
) -> tuple[list[mp.mpf], mp.mpf]:
    """Remez exchange for weight * (f - polynomial) on [lo, hi].

    Returns the degree + 1 coefficients and the largest weighted error.
    """
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    count = degree + 2
    points = [
        (lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (count - 1))
        for i in range(count)
    ]
    grid = [lo + (hi - lo) * i / 1200 for i in range(1201)]
    values = [(x, f(x), weight(x)) for x in grid]
    for _ in range(8):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, x in enumerate(points):
            for power in range(degree + 1):
                system[row, power] = x**power
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = f(x)
        solution = mp.lu_solve(system, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        errors = [w * (y - mp.polyval(coefficients[::-1], x)) for x, y, w in values]
        # One extremum per sign change; keep the alternating run of largest errors.
        extrema: list[int] = []
        for i, error in enumerate(errors):
            if extrema and mp.sign(errors[extrema[-1]]) == mp.sign(error):
                if abs(error) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > count:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < count:
            break
        points = [grid[i] for i in extrema]
    return coefficients, max(abs(e) for e in errors)


def show(name: str, result: tuple[list[mp.mpf], mp.mpf]) -> None:
    coefficients, error = result
    print(f"{name}: error {mp.nstr(error, 3)}")
    print("   ", ", ".join(mp.nstr(c, 17) for c in coefficients))


TINY = mp.mpf("1e-12")


def nonzero(x: mp.mpf) -> mp.mpf:
    return x if abs(x) > TINY else TINY


HALF_LN2 = mp.log(2) / 2
SQRT2 = mp.sqrt(2)
show(
    "exp(x) = 1 + x + x^2 P(x)",
    fit(
        lambda x: (mp.expm1(nonzero(x)) - nonzero(x)) / nonzero(x) ** 2,
        lambda x: nonzero(x) ** 2,
        -HALF_LN2,
        HALF_LN2,
        4,
    ),
)
show(
    "2^x = 1 + x P(x)",
    fit(
        lambda x: mp.expm1(nonzero(x) * mp.log(2)) / nonzero(x),
        lambda x: abs(nonzero(x)),
        -0.5,
        0.5,
        5,
    ),
)
show(
    "log(1 + f) = f - f^2/2 + f^3 P(f)",
    fit(
        lambda x: (
            (mp.log1p(nonzero(x)) - nonzero(x) + nonzero(x) ** 2 / 2) / nonzero(x) ** 3
        ),
        lambda x: abs(nonzero(x) ** 3 / mp.log1p(nonzero(x))),
        1 / SQRT2 - 1,
        SQRT2 - 1,
        10,
    ),
)
show(
    "tanh(x) = x + x^3 P(x^2)",
    fit(
        lambda s: (mp.tanh(mp.sqrt(nonzero(s))) / mp.sqrt(nonzero(s)) - 1) / nonzero(s),
        lambda s: nonzero(s) ** mp.mpf(1.5) / mp.tanh(mp.sqrt(nonzero(s))),
        0,
        0.625**2,
        4,
    ),
)
show(
    "erf(x) = x + x P(x^2)",
    fit(
        lambda s: mp.erf(mp.sqrt(nonzero(s))) / mp.sqrt(nonzero(s)) - 1,
        lambda s: mp.sqrt(nonzero(s)) / mp.erf(mp.sqrt(nonzero(s))),
        0,
        0.9375**2,
        6,
    ),
)
show(
    "-log(erfc(x)) = P(x)",
    fit(lambda x: -mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), 0.9375, 4, 8),
)
show(
    "log(erfc(x)) = log(u) + P(u) - x^2, u = 2 / (2 + x)",
    fit(
        lambda u: (2 / u - 2) ** 2 + mp.log(mp.erfc(2 / u - 2) / u),
        lambda u: mp.mpf(1),
        2 / (2 + mp.mpf("10.1")),
        1,
        12,
    ),
)
show(
    "atan(x) = x + x^3 P(x^2)",
    fit(
        lambda s: (mp.atan(mp.sqrt(nonzero(s))) / mp.sqrt(nonzero(s)) - 1) / nonzero(s),
        lambda s: nonzero(s),
        0,
        (SQRT2 - 1) ** 2,
        6,
    ),
)
