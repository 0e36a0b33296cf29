# SPDX-License-Identifier: Apache-2.0
"""Numbers that integers on the device do not hold: int64 has 32 bits there.

Conversions take the nearest that fits, arithmetic wraps, numbers that are
stored, selected or compared with are the nearest that fit.
"""

import math

import pytest
import torch
import torch_spyre
from inputs import values
from interpreters import run_python
from numerics import assert_exact, check_all, compiled, device_value
from torch.nn import functional

LOW, HIGH = -(2**31), 2**31 - 1
INT64 = torch.iinfo(torch.int64)
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]

#: Around the ends of 32 bits and of smaller types, in fp32.
EDGES = [
    *(2.0**31 - 128, 2.0**31, 2.0**31 + 256, -(2.0**31), -(2.0**31) - 256),
    *(math.nan, math.inf, -math.inf, 1e20, -1e20, 3e9, -3e9, 4294967296.0),
    *(0.0, -0.0, 0.5, -0.5, 0.99, -1.5, 127.5, 128.0, -129.0, 255.9, 256.0),
    *(-1.0, 300.0, 32767.5, 32768.0, -32769.0, 65535.0, 65536.0),
]


def cycled(numbers, shape, dtype):
    count = math.prod(shape)
    return (
        torch.tensor([numbers[i % len(numbers)] for i in range(count)])
        .reshape(shape)
        .to(dtype)
    )


def wrapped(x, dtype=torch.int64):
    """The low bits that the device keeps of exact integers."""
    narrow = torch.int32 if dtype == torch.int64 else dtype
    return x.to(narrow).to(dtype)


def converted(x, dtype):
    """What a conversion on the device gives for a host tensor of floats."""
    stored = device_value(x).double().reshape(x.shape)
    if dtype == torch.bool:
        return stored != 0
    whole = torch.where(stored.isnan(), 0.0, stored.trunc()).clamp(LOW, HIGH)
    return wrapped(whole.to(torch.int64), dtype)


def check_eager_and_compiled(operations, inputs):
    """Name -> (function, expected); inputs are on the host."""

    def check(expected):
        return lambda actual, name: assert_exact(actual, expected, name)

    device = [x.to("spyre") for x in inputs]
    for name, (function, expected) in operations.items():
        assert_exact(function(*device).cpu(), expected, f"eager: {name}")
    check_all({n: (f, check(e)) for n, (f, e) in operations.items()}, device)


@pytest.mark.parametrize("shape", [(), (1,), (63,), (65,), (7, 13), (0,)], ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str
)
@pytest.mark.filterwarnings("ignore:.*finite bfloat16 values:UserWarning")
def test_floats_to_integers(shape, dtype):
    x = cycled(EDGES, shape, dtype)
    check_eager_and_compiled(
        {
            str(target): (lambda x, d=target: x.to(d), converted(x, target))
            for target in [*INTEGERS, torch.bool]
        },
        [x],
    )


def test_floats_that_a_program_computes():
    x = cycled(EDGES, (129,), torch.float32)
    check_eager_and_compiled(
        {
            "twice": (lambda x: (x * 2).long(), converted(x * 2, torch.int64)),
            "one of them": (
                lambda x: torch.where(x < 0, x.long(), 7),
                torch.where(x < 0, converted(x, torch.int64), 7),
            ),
            "plus one": (
                lambda x: x.long() + 1,
                wrapped(converted(x, torch.int64) + 1),
            ),
        },
        [x],
    )


@pytest.mark.parametrize("shape", [(), (1,), (63,), (65,), (5, 37)], ids=str)
def test_relative_position_buckets(shape):
    """T5 and MPNet take the logarithm of zero, and do not use it."""
    i = torch.arange(math.prod(shape)).reshape(shape)

    def bucket(i):
        large = 8 + torch.log(i.float() / 8).to(torch.long)
        large = torch.minimum(large, torch.full_like(large, 15))
        return torch.where(i < 8, i, large)

    check_eager_and_compiled({"bucket": (bucket, bucket(i))}, [i])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_sums_with_products_are_exact(dtype):
    """Also where fp32 numbers are further apart than 1."""
    matrix = torch.tensor([[2**24 + 1, 3], [1, 2], [-(2**25), 5]], dtype=dtype)
    vector, bias = torch.tensor([1, 2], dtype=dtype), torch.tensor(7, dtype=dtype)

    def with_factors(bias, matrix, vector):
        return torch.addmv(bias, matrix, vector, beta=3, alpha=-2)

    inputs = [bias.expand(3).contiguous(), matrix, vector]
    operations = {
        "addmv": (torch.addmv, torch.addmv(*inputs)),
        "addmv factors": (with_factors, with_factors(*inputs)),
    }
    check_eager_and_compiled(operations, inputs)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (63,), (65,), (7, 13)], ids=str)
def test_arithmetic_wraps(shape, dtype):
    edges = [LOW, HIGH, LOW + 1, HIGH - 1, -1, 0, 1, 2, 46341, 2**30, -(2**30), 12345]
    x = cycled(edges, shape, torch.int64)
    y = cycled(edges[::-1] + [3], shape, torch.int64)
    divisor = torch.where(y == 0, -1, y)

    def exact(function, *arguments):
        return function, wrapped(function(*arguments).to(torch.int64), dtype)

    operations = {
        "add": exact(lambda x, y, d: x + y, x, y, divisor),
        "add alpha": exact(lambda x, y, d: torch.add(x, y, alpha=3), x, y, divisor),
        "sub": exact(lambda x, y, d: x - y, x, y, divisor),
        "mul": exact(lambda x, y, d: x * y, x, y, divisor),
        "neg": exact(lambda x, y, d: -x, x, y, divisor),
        "abs": exact(lambda x, y, d: x.abs(), x, y, divisor),
        "square": exact(lambda x, y, d: x * x, x, y, divisor),
        "number": exact(lambda x, y, d: x + 2**30 + 2**30, x, y, divisor),
        "floor_divide": exact(lambda x, y, d: x // d, x, y, divisor),
        "divide by -1": exact(
            lambda x, y, d: torch.div(x, -1, rounding_mode="trunc"), x, y, divisor
        ),
        "remainder": exact(lambda x, y, d: x % d, x, y, divisor),
        "remainder of -1": exact(lambda x, y, d: x % -1, x, y, divisor),
    }
    inputs = [t.to(dtype) for t in (x, y, divisor)]
    check_eager_and_compiled(operations, inputs)


@pytest.mark.parametrize("shape", [(1,), (63,), (5, 70), (2, 1031)], ids=str)
def test_reductions_wrap(shape):
    x = cycled([2**30, HIGH, -7, LOW, 3, 5, 2**29 + 1], shape, torch.int64)

    def exact(function, wide):
        return function, wrapped(function(wide))

    check_eager_and_compiled(
        {
            "sum": exact(lambda x: x.sum(), x),
            "sum of rows": exact(lambda x: x.sum(-1), x),
            "sum of columns": exact(lambda x: x.sum(0), x),
            "prod": exact(lambda x: x.prod(), x),
            "cumsum": exact(lambda x: x.cumsum(-1), x),
            "cumprod": exact(lambda x: x.cumprod(-1), x),
            "cumprod of columns": exact(lambda x: x.cumprod(0), x),
            "max": exact(lambda x: x.amax(), x),
            "min": exact(lambda x: x.amin(), x),
        },
        [x],
    )


@pytest.mark.parametrize("includes_self", [True, False])
@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_means_of_numbers_whose_sum_is_beyond_32_bits(includes_self):
    """Nor does fp32 hold the sums: the CPU adds."""
    x = cycled([HIGH, HIGH - 1, 2**30 + 1, LOW, LOW + 3, 7], (2, 9, 10), torch.int64)
    index = torch.arange(10) % 3

    def scattered(x, index):
        index = index.expand(x[0].shape)
        start = x[1, :, :4]
        return start.scatter_reduce(1, index, x[0], "mean", include_self=includes_self)

    def rows(x, index):
        start = x[1, :4]
        return start.index_reduce(
            0, index[:9], x[0], "mean", include_self=includes_self
        )

    def windows(x, index):
        edge = {"padding": 1, "count_include_pad": includes_self}
        return functional.avg_pool2d(x, 3, 2, **edge)

    def lines(x, index):
        return functional.avg_pool1d(x, 3)

    device = x.to("spyre"), index.to("spyre")
    for function in (scattered, rows, windows, lines):
        expected, name = function(x, index), function.__name__
        assert_exact(function(*device).cpu(), expected, name)
        assert_exact(compiled(function)(*device).cpu(), expected, name)


def test_numbers_beyond_32_bits_in_arithmetic():
    x = cycled([LOW, HIGH, -1, 0, 1, 12345], (65,), torch.int64)

    def exact(function):
        return function, wrapped(function(x))

    check_eager_and_compiled(
        {
            "add": exact(lambda x: x + 2**40),
            "mul": exact(lambda x: x * 2654435761),
            "and": exact(lambda x: x & 0xFFFFFFFF),
            "floor_divide": exact(lambda x: x // 2**40),
            "remainder": exact(lambda x: torch.where(x < 0, 0, x % 2**40)),
        },
        [x],
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("shape", [(65,), (7, 63), (1,), (0, 3), ()])
def test_shifts(dtype, shape):
    """By counts that the type has not, and negative ones, as on the CPU."""
    counts = [0, 1, 6, 7, 8, 14, 15, 16, 30, 31, 32, 33, 63, 64, 65, 127]
    if dtype.is_signed:
        counts += [-1, -2, -100]
    x = cycled([1, -1, 5, -7, 100, 127, 3, -128, LOW, HIGH, 0], shape, dtype)
    by = cycled(counts, shape, dtype)
    functions = {
        "left": lambda x, y: x << y,
        "right": lambda x, y: x >> y,
        "left of a number": lambda x, y: torch.bitwise_left_shift(5, y),
        "right of a number": lambda x, y: torch.bitwise_right_shift(-5, y),
    }
    if not dtype.is_signed:
        functions.pop("right of a number")
    for count in counts:
        functions[f"left by {count}"] = lambda x, y, c=count: x << c
        functions[f"right by {count}"] = lambda x, y, c=count: x >> c
    torch_spyre.reset_fallback_report()
    check_eager_and_compiled(
        {name: (f, wrapped(f(x, by), dtype)) for name, f in functions.items()}, [x, by]
    )
    assert not torch_spyre.fallback_report()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8], ids=str)
@pytest.mark.parametrize("count", [1, -10, 257, 255, 2**20])
def test_shifts_by_one_count_of_another_type(dtype, count):
    """A tensor without dimensions is converted to the type of the other one."""
    x, by = cycled([1, -1, 5, 100, 127], (65,), dtype), torch.tensor(count)
    functions = {
        "left": lambda x, y: x << y,
        "right": lambda x, y: x >> y,
        "number left": lambda x, y: x << count,
        "number right": lambda x, y: x >> count,
    }
    check_eager_and_compiled({n: (f, f(x, by)) for n, f in functions.items()}, [x, by])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_zero_to_negative_powers(dtype):
    x = cycled([0, 0, 1, -1, 2, 0, -3], (65,), dtype)
    by = cycled([-1, -2, -3, 0, 3], (65,), dtype)
    check_eager_and_compiled(
        {
            "pow": (torch.pow, torch.pow(x, by)),
            "of zero": (lambda x, y: torch.pow(0, y), torch.pow(0, by)),
        },
        [x, by],
    )


@pytest.mark.parametrize("number", [INT64.min, INT64.max, 2**40, -(2**31) - 1])
def test_numbers_of_masks_saturate(number):
    """And are found again."""
    nearest = min(max(number, LOW), HIGH)
    x = values((7, 65), torch.int64)
    x[0, 0], x[0, 1] = LOW + 1, HIGH - 1
    kept = torch.where(x > 0, nearest, x)

    def masked(x):
        return x.masked_fill(x > 0, number)

    check_eager_and_compiled(
        {
            "masked_fill": (masked, kept),
            "where": (lambda x: torch.where(x > 0, number, x), kept),
            "full": (lambda x: torch.full_like(x, number), torch.full_like(x, nearest)),
            "pad": (
                lambda x: torch.nn.functional.pad(x, (1, 2), value=number),
                torch.nn.functional.pad(x, (1, 2), value=nearest),
            ),
            "clamp": (lambda x: x.clamp(max=number), x.clamp(max=nearest)),
            "clamp_min": (lambda x: x.clamp(min=number), x.clamp(min=nearest)),
            "found": (lambda x: masked(x) == number, x > 0),
            "others": (lambda x: masked(x) != number, x <= 0),
            "greater": (lambda x: masked(x) > number, kept > nearest),
            "least": (lambda x: masked(x) >= number, kept >= nearest),
            "extreme": (
                lambda x: masked(x).amax(-1) + masked(x).amin(-1),
                wrapped(kept.amax(-1) + kept.amin(-1)),
            ),
        },
        [x],
    )


def test_indices_are_still_checked():
    table = torch.arange(10.0).to("spyre")
    for index in [1e20, -1e20, math.inf, 11.0]:
        bad = torch.tensor([0.0, index]).to("spyre")
        for gather in [
            lambda t, i: t[i.long()],
            lambda t, i: t.index_select(0, i.long()),
        ]:
            with pytest.raises(Exception, match=r"outside|out of|index"):
                compiled(gather)(table, bad).cpu()
                torch.accelerator.synchronize()


def test_division_by_zero_is_an_error():
    x = torch.tensor([LOW, 1, 0]).to("spyre")
    with pytest.raises(Exception, match="division by zero"):
        compiled(lambda x: x // (x * 0))(x).cpu()
        torch.accelerator.synchronize()


def run(code, **variables):
    """A process of its own: the variables are read once."""
    result = run_python(code, ends_at_once=True, **variables)
    assert result.returncode == 0, result.stderr


WARNINGS = """
import torch, warnings
def warnings_of(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in caught if "does not support int64" in str(w.message)]
big = torch.tensor([[1, 2, 3], [4, -2**31 - 1, 2**40]])
"""


def test_a_loss_warns_once():
    run(
        WARNINGS
        + """
found = warnings_of(lambda: big.to("spyre"))
assert len(found) == 1 and "value -2147483649 at index [1, 1]" in found[0], found
assert "2 values of this transfer" in found[0], found
assert warnings_of(lambda: (big.to("spyre"), torch.arange(3).to("spyre"))) == []
assert big.to("spyre").cpu().tolist() == [[1, 2, 3], [4, -2**31, 2**31 - 1]]
"""
    )


def test_the_first_transfer_warns_and_so_does_the_first_loss():
    run(
        WARNINGS
        + """
assert len(warnings_of(lambda: torch.arange(3).to("spyre"))) == 1
assert warnings_of(lambda: torch.arange(3).to("spyre")) == []
found = warnings_of(lambda: big.pin_memory().to("spyre", non_blocking=True))
assert len(found) == 1 and "-2147483649" in found[0], found
x = torch.zeros(2, 3, dtype=torch.int64, device="spyre")
assert warnings_of(lambda: x.fill_(2**40)) == []
assert x.unique().tolist() == [2**31 - 1]
x[0].copy_(big[1])
assert x[0].tolist() == [4, -2**31, 2**31 - 1]
"""
    )


def test_warnings_are_silenced():
    run(
        WARNINGS
        + """
assert warnings_of(lambda: (torch.arange(3).to("spyre"), big.to("spyre"))) == []
""",
        TORCH_SPYRE_DOWNCAST_WARN="0",
    )


def test_losses_as_errors():
    run(
        WARNINGS
        + """
def fails(function, text):
    try:
        function()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
fails(lambda: big.to("spyre"), "int64 value -2147483649 at index [1, 1] does not fit")
x = torch.zeros(2, 3, dtype=torch.int64, device="spyre")
fails(lambda: x[1].copy_(big[1]), "-2147483649")
fails(lambda: x.fill_(2**32), "4294967296")
assert not x.cpu().any()
# A copy that does not wait fails its stream.
copy = torch.tensor([1, 2**40]).pin_memory().to("spyre", non_blocking=True)
fails(torch.spyre.synchronize, "1099511627776")
torch.spyre.synchronize()
fails(copy.cpu, "1099511627776")
copy.copy_(torch.tensor([1, 2]).pin_memory(), non_blocking=True)
assert copy.cpu().tolist() == [1, 2]
# What is computed wraps all the same.
y = torch.full((3,), 2**30).to("spyre") * 4
assert y.tolist() == [0, 0, 0]
""",
        TORCH_SPYRE_DOWNCAST_ERROR="1",
    )


def test_a_wrong_value_of_the_variable():
    run(
        WARNINGS
        + """
try:
    big.to("spyre")
except RuntimeError as error:
    assert "TORCH_SPYRE_DOWNCAST_ERROR" in str(error) and "'maybe'" in str(error)
else:
    raise AssertionError("no error")
assert torch.ones(2).to("spyre").tolist() == [1, 1]
""",
        TORCH_SPYRE_DOWNCAST_ERROR="maybe",
    )
