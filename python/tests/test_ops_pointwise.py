# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators over dtypes, odd shapes and strides."""

import math

import pytest
import torch
import torch.nn.functional as F
from inputs import LAYOUTS, pair, values
from numerics import (
    assert_exact,
    assert_rounded,
    assert_units,
    check_all,
    device_value,
    on_host,
)

FLOATS = [torch.float16, torch.float32]
SLOW_FOR_FLOAT32 = {"63", "7x13", "5x37x150", "permuted"}


#: Layouts by dtype; a few are enough where only the element type differs.
FLOAT_CASES = [
    *[pytest.param(n, torch.float16, id=f"{n}-fp16") for n in LAYOUTS],
    *[
        pytest.param(n, torch.float32, id=f"{n}-fp32")
        for n in LAYOUTS
        if n not in SLOW_FOR_FLOAT32
    ],
    pytest.param("7x13", torch.bfloat16, id="7x13-bf16"),
]


def composite(function, *inputs, units=2, condition=None):
    """A check against fp64 within some units in the last place.

    ``condition`` gives how much the function magnifies a relative error of its
    input: it matters where the format is as fine as the fp32 inside.
    """

    def check(actual, name):
        wide = [device_value(i) for i in inputs]
        reference = function(*wide)
        allowed = units
        if actual.dtype == torch.float32:
            # exp and friends are a few units off in fp32.
            allowed = 4 * units * (1 if condition is None else 1 + condition(*wide))
        assert_units(actual, reference, allowed, name)

    return function, check


def transcendental(function, *inputs):
    return composite(function, *inputs, units=1)


def rounded(function, *inputs):
    """A check against the exact result rounded to fp32, then to the format."""

    def check(actual, name):
        # In fp64: PyTorch's own fp32 sqrt is not correctly rounded.
        exact = function(*[device_value(i) for i in inputs])
        assert_rounded(actual, exact, name)

    return function, check


@pytest.mark.parametrize("layout, dtype", FLOAT_CASES)
def test_unary(layout, dtype):
    x, device = pair(layout, dtype)

    check_all(
        {
            "neg": rounded(lambda x: -x, x),
            "abs": rounded(torch.abs, x),
            "relu": rounded(F.relu, x),
            "floor": rounded(torch.floor, x),
            "ceil": rounded(torch.ceil, x),
            "square": rounded(torch.square, x),
            "clamp": rounded(lambda x: x.clamp(-1.5, 2.0), x),
            "clamp_min": rounded(lambda x: x.clamp(min=0.5), x),
            "clamp_max": rounded(lambda x: x.clamp(max=-0.25), x),
            "add_scalar": rounded(lambda x: x + 1.5, x),
            "add_alpha": rounded(lambda x: torch.add(x, 0.75, alpha=2), x),
            "rsub": rounded(lambda x: 1 - x, x),
            "mul_scalar": rounded(lambda x: x * 3, x),
            "div_scalar": rounded(lambda x: x / 4, x),
            "exp": transcendental(torch.exp, x),
            "sin": transcendental(torch.sin, x),
            "cos": transcendental(torch.cos, x),
            "tanh": transcendental(torch.tanh, x),
            "reciprocal": transcendental(torch.reciprocal, x),
            "sigmoid": composite(torch.sigmoid, x),
            "gelu": composite(F.gelu, x, condition=torch.square),
            "gelu_tanh": composite(
                lambda x: F.gelu(x, approximate="tanh"), x, condition=torch.square
            ),
            "silu": composite(F.silu, x),
            "softplus": composite(F.softplus, x),
            "pow_2": rounded(lambda x: x**2, x),
            "pow_3": composite(lambda x: x**3, x),
        },
        [device],
    )


@pytest.mark.parametrize("layout, dtype", FLOAT_CASES)
def test_unary_of_positive(layout, dtype):
    x, device = pair(layout, dtype, low=0.0625, high=9.0)
    check_all(
        {
            "sqrt": rounded(torch.sqrt, x),
            "rsqrt": transcendental(torch.rsqrt, x),
            "log": transcendental(torch.log, x),
            "pow_half": composite(lambda x: x**0.5, x),
            "pow_-1": composite(lambda x: x**-1, x),
            "pow_1.7": composite(lambda x: x**1.7, x),
            "pow_base": composite(lambda x: 2.0**x, x),
        },
        [device],
    )


@pytest.mark.parametrize("layout, dtype", FLOAT_CASES)
def test_binary_and_compare(layout, dtype):
    x, x_device = pair(layout, dtype)
    y, y_device = pair(layout, dtype, seed=1, low=0.5)
    check_all(
        {
            "add": rounded(torch.add, x, y),
            "sub": rounded(torch.sub, x, y),
            "mul": rounded(torch.mul, x, y),
            "div": rounded(torch.div, x, y),
            "add_alpha": rounded(lambda x, y: torch.add(x, y, alpha=-2), x, y),
            "maximum": rounded(torch.maximum, x, y),
            "minimum": rounded(torch.minimum, x, y),
            "pow": composite(lambda x, y: x.abs() ** y, x, y),
            "eq": rounded(lambda x, y: x.floor() == y.floor(), x, y),
            "ne": rounded(lambda x, y: x.floor() != y.floor(), x, y),
            "lt": rounded(torch.lt, x, y),
            "le": rounded(lambda x, y: x.floor() <= y.floor(), x, y),
            "gt": rounded(torch.gt, x, y),
            "ge": rounded(lambda x, y: x.floor() >= y.floor(), x, y),
            "gt_scalar": rounded(lambda x, y: x > 0.5, x, y),
            "where": rounded(lambda x, y: torch.where(x > y, x, y), x, y),
            "where_scalar": rounded(
                lambda x, y: torch.where(x > y, x, torch.full_like(y, 7.0)), x, y
            ),
            "masked_fill": rounded(lambda x, y: x.masked_fill(y > x, 2.5), x, y),
            "masked_fill_inf": rounded(
                lambda x, y: x.masked_fill(y > x, float("-inf")), x, y
            ),
            "and": rounded(lambda x, y: torch.logical_and(x > 0, y > 1), x, y),
            "or": rounded(lambda x, y: (x > 0) | (y > 1), x, y),
            "xor": rounded(lambda x, y: (x > 0) ^ (y > 1), x, y),
            "not": rounded(lambda x, y: torch.logical_not(x > y), x, y),
        },
        [x_device, y_device],
    )


BROADCASTS = [
    ((7, 65), (65,)),
    ((7, 65), (7, 1)),
    ((1, 65), (7, 1)),
    ((2, 3, 67), ()),
    ((2, 1, 3, 70), (5, 1, 70)),
    ((130,), (4, 1, 1)),
    ((0, 5), (1, 5)),
    ((64, 64), (1,)),
]


@pytest.mark.parametrize("left, right", BROADCASTS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_broadcast(left, right, dtype):
    x, y = values(left, dtype), values(right, dtype, seed=1, low=0.5)
    check_all(
        {
            "add": rounded(torch.add, x, y),
            "rsub": rounded(lambda x, y: y - x, x, y),
            "mul": rounded(torch.mul, x, y),
            "div": rounded(torch.div, x, y),
            "lt": rounded(torch.lt, x, y),
            "maximum": rounded(torch.maximum, x, y),
            "where": rounded(lambda x, y: torch.where(x > y, x, y), x, y),
        },
        [x.to("spyre"), y.to("spyre")],
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes(dtype):
    """Infinities, zeros and values at the ends of the format."""
    x = torch.tensor(
        [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), 60000, -60000, 2**-14, 88],
        dtype=dtype,
    )
    check_all(
        {
            "add": rounded(lambda x: x + 1, x),
            "mul": rounded(lambda x: x * 0.5, x),
            "double": rounded(lambda x: x + x, x),
            "relu": rounded(F.relu, x),
            "exp": transcendental(torch.exp, x),
            "sigmoid": composite(torch.sigmoid, x),
            "tanh": transcendental(torch.tanh, x),
            "gelu": composite(lambda x: F.gelu(x.clamp(-50000, 50000)), x),
            "softplus": composite(F.softplus, x),
            "is_equal": rounded(lambda x: x == x.abs(), x),
            "minimum": rounded(lambda x: torch.minimum(x, -x), x),
            "log": transcendental(lambda x: x.abs().log(), x),
        },
        [x.to("spyre")],
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_pairs_of_extremes(dtype):
    """Angles and quotients of which one operand, or both, are infinite."""
    ends = torch.tensor([0.0, -0.0, 1.5, -1.5, 7, -7, math.inf, -math.inf], dtype=dtype)
    x = ends[:, None].expand(8, 8).contiguous()
    y = ends[None].expand(8, 8).contiguous()
    check_all(
        {
            "atan2": composite(torch.atan2, x, y),
            "remainder": rounded(torch.remainder, x, y),
            "fmod": rounded(torch.fmod, x, y),
            "floor_divide": rounded(torch.floor_divide, x, y),
        },
        [x.to("spyre"), y.to("spyre")],
    )


INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def exactly(function, *inputs):
    def check(actual, name):
        assert_exact(actual, function(*inputs), name)

    return function, check


@pytest.mark.parametrize(
    "layout", ["0d", "0", "65", "2x1x67x3", "transposed", "sliced"]
)
@pytest.mark.parametrize("dtype", INTEGERS[:2], ids=str)
def test_integers(layout, dtype):
    x, x_device = pair(layout, dtype)
    y, y_device = pair(layout, dtype, seed=1)
    check_all(
        {
            "add": exactly(torch.add, x, y),
            "add_alpha": exactly(lambda x, y: torch.add(x, y, alpha=3), x, y),
            "sub": exactly(torch.sub, x, y),
            "mul": exactly(torch.mul, x, y),
            "neg": exactly(lambda x, y: -x, x, y),
            "abs": exactly(lambda x, y: x.abs(), x, y),
            "square": exactly(lambda x, y: x * x, x, y),
            "clamp": exactly(lambda x, y: x.clamp(-3, 50), x, y),
            "maximum": exactly(torch.maximum, x, y),
            "minimum": exactly(torch.minimum, x, y),
            "eq": exactly(torch.eq, x, y),
            "ne_scalar": exactly(lambda x, y: x != 4, x, y),
            "lt": exactly(torch.lt, x, y),
            "le": exactly(torch.le, x, y),
            "gt": exactly(torch.gt, x, y),
            "ge": exactly(torch.ge, x, y),
            "where": exactly(lambda x, y: torch.where(x > y, x, y), x, y),
            "masked_fill": exactly(lambda x, y: x.masked_fill(y > 0, 9), x, y),
            "logical_not": exactly(lambda x, y: torch.logical_not(x), x, y),
        },
        [x_device, y_device],
    )


@pytest.mark.parametrize("layout", ["0d", "65", "7x13", "transposed"])
def test_booleans(layout):
    x, x_device = pair(layout, torch.bool)
    y, y_device = pair(layout, torch.bool, seed=1)
    check_all(
        {
            "and": exactly(torch.logical_and, x, y),
            "or": exactly(torch.logical_or, x, y),
            "xor": exactly(torch.logical_xor, x, y),
            "not": exactly(lambda x, y: ~x, x, y),
            "bitand": exactly(lambda x, y: x & y, x, y),
            "eq": exactly(torch.eq, x, y),
            "where": exactly(lambda x, y: torch.where(x, y, ~y), x, y),
        },
        [x_device, y_device],
    )


@pytest.mark.parametrize("shape", [(65,), (7, 13), (0,), ()], ids=str)
def test_conversions(shape):
    """Every pair of dtypes, from values that all of them hold."""
    dtypes = [*FLOATS, torch.bfloat16, torch.bool, *INTEGERS]
    base = values(shape, torch.uint8)
    inputs = [base.to(d) for d in dtypes]

    def convert(i, d):
        return lambda *x: x[i].to(d)

    def check(expected):
        return lambda actual, name: assert_exact(actual, expected, name)

    operations = {}
    for i, source in enumerate(dtypes):
        for target in dtypes:
            if source != target:
                expected = inputs[i].to(target)
                operations[f"{source} to {target}"] = (
                    convert(i, target),
                    check(expected),
                )
    check_all(operations, [x.to("spyre") for x in inputs])


def test_conversions_round_once_and_truncate():
    x = values((3, 65), torch.float32, low=-900.0, high=900.0)
    stored = device_value(x).float()
    half = values((3, 65), torch.float16, low=-100.0, high=100.0)
    check_all(
        {
            "to_half": (
                lambda x, h: x.half(),
                lambda actual, name: assert_rounded(actual, stored, name),
            ),
            "to_int": (
                lambda x, h: x.long(),
                lambda actual, name: assert_exact(actual, stored.long(), name),
            ),
            "half_to_float": (
                lambda x, h: h.float(),
                lambda actual, name: assert_exact(
                    actual, device_value(half).float(), name
                ),
            ),
            "half_to_int": (
                lambda x, h: h.int(),
                lambda actual, name: assert_exact(
                    actual, device_value(half).int(), name
                ),
            ),
            "to_bool": (
                lambda x, h: h.bool(),
                lambda actual, name: assert_exact(
                    actual, device_value(half).bool(), name
                ),
            ),
        },
        [x.to("spyre"), half.to("spyre")],
    )


def test_floating_powers_of_integers():
    """Also those that are beyond integers."""
    x = torch.tensor([0, 3, -46341, 50000, -(2**30)])
    for exponent in (2.0, 3.0):
        actual = (x.to("spyre") ** exponent).cpu()
        assert_units(actual, x.double() ** exponent, 8)


def test_hyperbolic_functions_where_exp_overflows():
    """Half of it is finite up to 89.41."""
    x = torch.tensor([-89.4, -88.8, -88.7, 19.9, 20.1, 88.7, 88.8, 89.4, 89.5])
    for function in (torch.sinh, torch.cosh):
        assert_units(function(x.to("spyre")).cpu(), function(x.double()), 8)


def test_mixed_types_promote():
    h = values((7, 65), torch.float16)
    f = values((7, 65), torch.float32, seed=1)
    i = values((7, 65), torch.int64, seed=2)
    b = values((7, 65), torch.bool, seed=3)
    wide = device_value(h).float()

    def same(expected):
        return lambda actual, name: assert_exact(actual, expected, name)

    def close_to(expected):
        return lambda actual, name: assert_rounded(actual, expected, name)

    check_all(
        {
            "half_float": (lambda h, f, i, b: h + f, same(wide + f)),
            "half_int": (lambda h, f, i, b: h + i, close_to(wide + i)),
            "int_float": (lambda h, f, i, b: i * f, same(i * f)),
            "bool_half": (lambda h, f, i, b: b * h, close_to(b * wide)),
            "int_bool": (lambda h, f, i, b: i + b, same(i + b)),
            "int_div": (lambda h, f, i, b: i / 8, same(i / 8)),
            "int_scalar": (lambda h, f, i, b: i + 1.5, same(i + 1.5)),
            "half_zero_dim": (
                lambda h, f, i, b: h + f[0, 0],
                close_to(wide + on_host(f[0, 0].double(), torch.float32)),
            ),
        },
        [t.to("spyre") for t in (h, f, i, b)],
    )
