# SPDX-License-Identifier: Apache-2.0
"""Scalar arguments of programs: integers fit their type, floats are rounded to it."""

import numpy as np
import pytest
from commands import needs_tools
from f16_values import ROUND
from ktir_runs import fails, results
from ktir_text import function, store

pytestmark = needs_tools

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32}
DTYPES = {"i1": bool, "i8": np.int8, "i16": np.int16, "i32": np.int32}


def splat(kind: str) -> str:
    """A program whose result is three times its argument %n."""
    body = f"""%r = tensor.splat %n : tensor<3x{kind}>
    {store("z", (3,), kind, "r")}"""
    return function("z", body).replace("@f(", f"@f(%n: {kind}, ")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kind, value)
        for kind, bits in BITS.items()
        for value in sorted(
            {-(1 << bits) // 2, -1, 0, 1, 1 << bits - 1, (1 << bits) - 1}
        )
    ],
)
def test_integer_that_fits(kind, value, tmp_path):
    """Signed, or unsigned of as many bits."""
    z = np.zeros(3, DTYPES[kind])
    found = results(splat(kind), [value, z], tmp_path)["z"]
    assert np.array_equal(found, np.full(3, value).astype(DTYPES[kind]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kind, value)
        for kind, bits in BITS.items()
        for value in (-(1 << bits) // 2 - 1, 1 << bits)
    ],
)
def test_integer_that_does_not_fit(kind, value, tmp_path):
    message = f"error: argument is {value}, which does not fit {kind}"
    fails(splat(kind), [value, np.zeros(3, DTYPES[kind])], tmp_path, [message])


@pytest.mark.parametrize("numerics", ROUND)
@pytest.mark.parametrize(
    "value",
    # The first lies between two numbers of DL16 and is one of IEEE half.
    [
        pytest.param(1 + 2.0**-10, id="1+2^-10"),
        pytest.param(1 + 2.0**-12, id="1+2^-12"),
        pytest.param(-0.1, id="-0.1"),
    ],
)
def test_float_is_rounded(value, numerics, tmp_path):
    body = f"""%w = arith.extf %n : f16 to f32
    %r = tensor.splat %w : tensor<3xf32>
    {store("z", (3,), "f32", "r")}"""
    program = function("z", body).replace("@f(", "@f(%n: f16, ")
    z = np.zeros(3, np.float32)
    found = results(program, [value, z], tmp_path, "--numerics", numerics)["z"]
    assert np.array_equal(found, ROUND[numerics](np.full(3, value, np.float32)))
