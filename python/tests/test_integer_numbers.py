# SPDX-License-Identifier: Apache-2.0
"""Numbers that the integers which they meet do not have, as on the CPU.

Operands of an operator (``x + 300``) wrap to the type in which it computes. Those that
become elements or parameters (``fill_``, ``clamp``) must be numbers of the type, but for
negative ones of uint8, which wrap.
"""

import pytest
import torch
from numerics import assert_exact, check_all, compiled


@pytest.fixture
def refuse():
    """What the compiler refuses runs by itself, and raises there."""


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32]
pad = torch.nn.functional.pad

#: Number -> operators that take it.
OPERANDS = {
    "add": lambda x, n: x + n,
    "reversed sub": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "alpha": lambda x, n: torch.add(x, n, alpha=3),
    "div": lambda x, n: x / n,
    "eq": lambda x, n: x == n,
    "gt": lambda x, n: x > n,
    "le": lambda x, n: x <= n,
    "and": lambda x, n: x & n,
    "xor": lambda x, n: x ^ n,
    "left shift": lambda x, n: x << n,
    "right shift": lambda x, n: x >> n,
    "shifted number": lambda x, n: n << (x & 3),
    "power of a number": lambda x, n: n ** (x & 3),
    "quotient of a number": lambda x, n: n // (x | 1),
    "updated": lambda x, n: x.clone().mul_(n).sub_(n),
    "compared in place": lambda x, n: x.clone().ge_(n),
}
DIVISIONS = {
    "remainder": lambda x, n: x % n,
    "fmod": lambda x, n: torch.fmod(x, n),
    "floor divide": lambda x, n: x // n,
    "truncating divide": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
}
ELEMENTS = {
    "fill": lambda x, n: x.clone().fill_(n),
    "full_like": lambda x, n: torch.full_like(x, n),
    "new_full": lambda x, n: x.new_full((3,), n),
    "where": lambda x, n: torch.where(x > 2, x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 2, n),
    "mask": lambda x, n: x.clone().masked_fill_(x > 2, n),
    "clamp min": lambda x, n: x.clamp(min=n),
    "clamp max": lambda x, n: x.clamp(max=n),
    "scatter": lambda x, n: x.scatter(0, (x[:1] & 0).long(), n),
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
}


def numbers_of(dtype):
    """Python's numbers around the ends of the type, and others."""
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return [-1, -3, high, high + 1, high + 46, low, low - 1, low - 300, 2**40 + 5]


def integers(dtype):
    high = torch.iinfo(dtype).max
    return torch.tensor(
        [0, 1, 2, 3, 7, 44, 100, high - 1, high] * 7 + [5, 6], dtype=dtype
    )


def cases(functions, numbers):
    return {f"{name} {n}": (f, n) for name, f in functions.items() for n in numbers}


def check(functions, x):
    """Eager and compiled, with values and dtypes of the CPU; name -> function, number."""
    device, operations = x.to("spyre"), {}
    for name, (function, n) in functions.items():
        expected = function(x, n)
        assert_exact(function(device, n).cpu(), expected, f"eager: {name}")
        operations[name] = (
            lambda x, f=function, n=n: f(x, n),
            lambda actual, name, e=expected: assert_exact(actual, e, name),
        )
    check_all(operations, [device])


def is_accepted(function, x, n):
    try:
        function(x, n)
    except RuntimeError:
        return False
    return True


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_operands_wrap(dtype):
    x = integers(dtype)
    functions = cases(OPERANDS, numbers_of(dtype))
    # A divisor that wraps to zero is an error.
    divisors = [n for n in numbers_of(dtype) if torch.tensor(n).to(dtype) != 0]
    # A tensor of the CPU has 32 bits in compiled graphs.
    tensors = {"0-d tensor": lambda x, n: torch.maximum(x, torch.tensor(n))}
    stored = [n for n in numbers_of(dtype) if -(2**31) <= n < 2**31]
    check(
        {**functions, **cases(DIVISIONS, divisors), **cases(tensors, stored)},
        x,
    )
    assert len(divisors) < len(numbers_of(dtype)) or dtype != torch.uint8


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_elements_are_numbers_of_the_type(dtype):
    x = integers(dtype)
    numbers = [*numbers_of(dtype), 2.75, -0.5]
    every = cases(ELEMENTS, numbers)
    accepted = {k: v for k, v in every.items() if is_accepted(v[0], x, v[1])}
    check(accepted, x)
    device = x.to("spyre")
    refused = {k: v for k, v in every.items() if k not in accepted}
    assert len(refused) > len(ELEMENTS)
    for function, n in refused.values():
        with pytest.raises(RuntimeError, match=r"value cannot be converted|alpha"):
            function(device, n)


@pytest.mark.usefixtures("refuse")
@pytest.mark.parametrize(("name", "number"), [("where", 300), ("masked_fill", -0.5)])
def test_refused_elements_in_compiled_graphs(name, number):
    x = integers(torch.uint8).to("spyre")
    function = compiled(lambda x: ELEMENTS[name](x + 1, number) + 1)
    with pytest.raises(RuntimeError, match="value cannot be converted"):
        function(x).cpu()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8], ids=str)
def test_tensors_without_dimensions_on_the_device(dtype):
    """They wrap, too, if the other operand has dimensions."""
    x = integers(dtype)
    functions = {
        "remainder": lambda x, y: x % y,
        "floor divide": lambda x, y: y // (x | 1),
        "lt": lambda x, y: x < y,
        "maximum": torch.maximum,
        "where": lambda x, y: torch.where(x > 2, x, y),
        "fill": lambda x, y: x.clone().fill_(y),
    }
    for number in (300, -3, -130):
        y = torch.tensor(number)
        device = [x.to("spyre"), y.to("spyre")]
        operations = {}
        for name, function in functions.items():
            expected = function(x, y)
            assert_exact(function(*device).cpu(), expected, f"eager: {name}")
            operations[name] = (
                function,
                lambda actual, name, e=expected: assert_exact(actual, e, name),
            )
        check_all(operations, device)


def test_two_tensors_without_dimensions():
    """They decide together, wherever they are; a Python number has no say."""
    x, y = torch.tensor(5, dtype=torch.uint8), torch.tensor(300)
    device = x.to("spyre")
    for other in (y, y.to("spyre")):
        assert_exact((device < other).cpu(), x < y)
        assert_exact((device % other).cpu(), x % y)
        assert_exact(torch.sub(device, other, alpha=5).cpu(), torch.sub(x, y, alpha=5))
    assert_exact((device < 300).cpu(), x < 300)
    assert_exact((device + 300).cpu(), x + 300)


@pytest.mark.usefixtures("no_fallback")
def test_results_have_their_type_before_that_of_out():
    x = integers(torch.int8)
    for dtype in (torch.int16, torch.int64, torch.uint8, torch.float32):
        expected = torch.mul(x, x, out=torch.empty(0, dtype=dtype))
        out = torch.empty(0, dtype=dtype, device="spyre")
        assert_exact(torch.mul(x.to("spyre"), x.to("spyre"), out=out).cpu(), expected)
    bytes_, large = integers(torch.uint8), integers(torch.int32)[:65]
    expected = bytes_.clone().add_(large)
    assert_exact(bytes_.to("spyre").add_(large.to("spyre")).cpu(), expected)
    assert_exact(
        (bytes_.to("spyre").add_(large.to("spyre")) > 255).cpu(), expected > 255
    )


def test_booleans():
    x = torch.tensor([True, False] * 33)
    functions = {
        "add": lambda x, n: x + n,
        "and": lambda x, n: x & n,
        "lt": lambda x, n: x < n,
        "where": lambda x, n: torch.where(x, n, x),
        "searched": lambda x, n: torch.searchsorted(x[:2].flip(0), n),
    }
    check(cases(functions, [300, -3, 2**20]), x)
    elements = {
        "masked_fill": lambda x, n: x.masked_fill(~x, n),
        "pad": lambda x, n: pad(x, (1, 1), value=n),
        "full_like": lambda x, n: torch.full_like(x, n),
    }
    check(cases(elements, [300, 0.5, -0.5, 0, float("nan")]), x)


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_powers_of_booleans():
    x = torch.tensor([True, False] * 33)
    for n in (True, False, 2, 2.5):
        assert_exact((x.to("spyre") ** n).cpu(), x**n, str(n))
    for power in (lambda x: x**x, lambda x: True**x):
        for device in ("cpu", "spyre"):
            with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
                power(x.to(device))


def test_what_the_cpu_refuses():
    x, b = integers(torch.int8), torch.tensor([True, False])
    functions = {
        "negative integer powers": lambda x, b: x.to(torch.uint8) ** -2,
        "ubtraction": lambda x, b: x[:2] - b,
        "ubtraction,": lambda x, b: b - 1,
        "argument alpha": lambda x, b: torch.add(x, x, alpha=1.5),
        "Boolean alpha": lambda x, b: torch.add(x, x, alpha=True),
        "ddcdiv": lambda x, b: torch.addcdiv(x, x, x),
    }
    device = x.to("spyre"), b.to("spyre")
    for message, function in functions.items():
        for arguments in ((x, b), device):
            with pytest.raises(RuntimeError, match=message):
                function(*arguments)


@pytest.mark.usefixtures("no_fallback")
def test_matrices_and_sums_of_rows():
    x = integers(torch.int16)[:12].reshape(4, 3)
    functions = {
        "addmm": lambda x, n: torch.addmm(x[:3], x[:3], x[:3], alpha=n, beta=n),
        "index_add": lambda x, n: x.index_add(
            0, torch.tensor([2, 0], device=x.device), x[:2], alpha=n
        ),
    }
    check(cases(functions, [-3, 300, 32767]), x)
    for function in functions.values():
        with pytest.raises(RuntimeError, match="value cannot be converted"):
            function(x.to("spyre"), 40000)


@pytest.mark.usefixtures("no_fallback")
def test_the_most_negative_integer_has_a_remainder():
    for dtype in (torch.int8, torch.int16, torch.int32):
        low = torch.iinfo(dtype).min
        x = torch.tensor([low, low + 1, -7, 7, low] * 13, dtype=dtype)
        y = torch.tensor([3, -1, 2, -2, low] * 13, dtype=dtype)
        check(
            {
                "number": (torch.fmod, 3),
                "tensor": (lambda x, _, y=y: torch.fmod(x, y.to(x.device)), 0),
            },
            x,
        )
