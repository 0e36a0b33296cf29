# SPDX-License-Identifier: Apache-2.0
"""Compiled functions of numbers that change from call to call."""

import math

import pytest
import torch
from inputs import values
from numerics import assert_exact
from numerics import compiled as compiled_as
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("no_fallback", "no_traced_cache")

NUMBERS = [0.5, 0.25, 0.1, -2.7, 1 / 3, 1e5, 0.0, 1.0, math.inf, -math.inf]
FLOATS = [torch.float16, torch.bfloat16, torch.float32]
FUNCTIONS = {
    "multiply": lambda x, c: x * c + 1,
    "several": lambda x, c: (x + c) * (x - c) / c,
    "arithmetic": lambda x, c: x * (c * 2 + 1) - c,
    "math": lambda x, c: x * math.sqrt(abs(c)),
    "compare": lambda x, c: torch.stack([x == c, x < c, x >= c * 2]),
    "reciprocal": lambda x, c: c / x,
    "reduced": lambda x, c: x.sum() * c + x,
}


def compiled(function, **options):
    """``function`` compiled as by default: numbers that change are arguments."""
    return compiled_as(function, **{"dynamic": None, **options})


class Programs:
    """Counts the programs made since it was."""

    def __init__(self):
        self._start = len(compiled_parts())

    def count(self):
        return len(compiled_parts()) - self._start


def same_as_eager(function, *arguments):
    """Calls a compiled function, which must give the bits of eager operators."""
    results = function(*arguments)
    expected = function._torchdynamo_orig_callable(*arguments)
    if isinstance(results, torch.Tensor):
        results, expected = [results], [expected]
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.device == wanted.device
        assert_exact(actual.cpu(), wanted.cpu())


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_one_program_serves_all_values(function, dtype):
    """The first value is a constant; Dynamo makes an argument of the second."""
    for shape in [(1,), (63,), (5, 13), (0, 3), ()]:
        x = values(shape, dtype).to("spyre")
        programs, f = Programs(), compiled(function)
        same_as_eager(f, x, NUMBERS[0])
        assert programs.count() == 1
        for number in NUMBERS[1:]:
            same_as_eager(f, x, number)
        assert programs.count() == 2


def test_numbers_near_those_of_the_cpu():
    x = values((65,), torch.float32)
    f = compiled(lambda x, c: x * c + 1)
    for number in NUMBERS[:6]:
        torch.testing.assert_close(f(x.to("spyre"), number).cpu(), x * number + 1)


def test_values_that_dynamo_guards():
    """NaN, and which side of a branch is taken, are no matter of the program."""
    f = compiled(lambda x, c: x * c if c > 0.2 else x - c)
    x = values((65,), torch.float16).to("spyre")
    programs = Programs()
    for number in (0.5, 0.3, 0.1, 0.7, -2.5, math.nan, 0.9):
        same_as_eager(f, x, number)
    assert programs.count() == 4


def test_numbers_that_are_no_arguments():
    """PyTorch makes constants of numbers in such places."""

    def function(x, c):
        return torch.where(x > 0, x, c), x.clamp(max=c), c - x, torch.full_like(x, c)

    f = compiled(function)
    x = values((65,), torch.float16).to("spyre")
    for number in (0.5, 0.25, 0.1):
        same_as_eager(f, x, number)


def test_integers_and_booleans_that_change():
    f = compiled(lambda x, n, b: x * n + (1 if b else n))
    for dtype in (torch.float16, torch.int64):
        x = values((65,), dtype).to("spyre")
        for number in (2, 3, -5, 0, 1):
            same_as_eager(f, x, number, number > 2)


def test_changing_attribute_and_step_size():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 0.5

        def forward(self, x):
            return x * self.scale

    module = Scaled()
    f, programs = compiled(module), Programs()
    x = values((3, 7), torch.float16).to("spyre")
    for scale in (0.5, 0.25, 0.1):
        module.scale = scale
        assert_exact(f(x).cpu(), (x * scale).cpu())
    assert programs.count() == 2

    update, programs = compiled(lambda p, g, rate: p.add_(g * -rate)), Programs()
    parameter, other = x.clone(), x.clone()
    for rate in (0.1, 0.01, 0.003):
        update(parameter, x, rate)
        other.add_(x * -rate)
        assert_exact(parameter.cpu(), other.cpu())
    assert programs.count() == 2


def test_changing_number_and_size():
    f = compiled(lambda x, c: (x * c).sum(-1) / x.shape[0] + c, dynamic=True)
    programs = Programs()
    sizes = (1, 3, 64, 65)
    for size in sizes:
        x = values((size, 7), torch.float16).to("spyre")
        for number in (0.5, 0.1, 0.7):
            same_as_eager(f, x, number)
    # One row has a program of its own.
    assert programs.count() == 2


@pytest.mark.parametrize("dynamic", [None, True])
def test_training(dynamic):
    def loss(x, w, c):
        return ((x @ w) * c + 1).relu().sum() * c

    def run(function, c):
        leaves = [
            values(s, torch.float16, i).to("spyre").requires_grad_()
            for i, s in enumerate([(5, 7), (7, 3)])
        ]
        result = function(*leaves, c)
        result.backward()
        return [result.detach(), *(leaf.grad for leaf in leaves)]

    f, programs = compiled(loss, dynamic=dynamic), Programs()
    for number in (0.5, 0.25, 0.1, -2.7):
        for actual, wanted in zip(run(f, number), run(loss, number), strict=True):
            assert_exact(actual.cpu(), wanted.cpu())
    # Forward and backward; twice where the first value was a constant.
    assert programs.count() == (2 if dynamic else 4)


OPERATORS = {
    "multiply": lambda x, c: x * c,
    "compare": lambda x, c: (x == c) | (x < c),
    "where": lambda x, c: torch.where(x > 0, x, c),
    "maximum": torch.maximum,
    "clamp": lambda x, c: x.clamp(min=c),
    "fill": lambda x, c: x.clone().fill_(c),
    "moved": lambda x, c: x + c.to(x.device, x.dtype),
    "arithmetic": lambda x, c: x * (c * c + c),
    "returned": lambda x, c: (x * c, c * 2),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("function", OPERATORS.values(), ids=OPERATORS)
def test_cpu_tensors_without_dimensions(function, dtype):
    """Those that a user passes are numbers of their own dtype, as in eager calls."""
    others = [torch.float64, *FLOATS, torch.int64, torch.bool]
    x = values((65,), dtype).to("spyre")
    for other in others:
        f, programs = compiled(function), Programs()
        host = [torch.tensor(v).to(other) for v in (0.1, -2.3, 7.77)]
        try:
            expected = function(x, host[0])
        except (RuntimeError, TypeError):
            # The result would be float64, which the device has not.
            assert other == torch.float64 and dtype == torch.int64
            continue
        del expected
        for number in host:
            same_as_eager(f, x, number)
        assert programs.count() == 1


def test_other_cpu_tensors_in_the_graph():
    """Dtypes and ranks that the device does not take stay on the host."""

    def function(x, v, z):
        return x * v.sum() + 1, v * 2, z * z, (x - v[0]).exp()

    v = torch.tensor([0.5, 2.25, -1], dtype=torch.float64)
    z = torch.tensor([1 + 2j, 3j])
    f, programs = compiled(function), Programs()
    same_as_eager(f, values((5, 13), torch.float16).to("spyre"), v, z)
    assert programs.count() == 1


def test_number_that_the_graph_updates():
    def function(x, c):
        before = x * c
        c.mul_(2)
        return before, x * c

    x = values((65,), torch.float16).to("spyre")
    f, programs = compiled(function), Programs()
    # PyTorch itself loses updates of float64 numbers.
    for dtype in (torch.float32, torch.float16):
        number, other = (torch.tensor(0.3, dtype=dtype) for _ in range(2))
        for _ in range(3):
            results, expected = f(x, number), function(x, other)
            for actual, wanted in zip(results, expected, strict=True):
                assert_exact(actual.cpu(), wanted.cpu())
            assert_exact(number, other)
    assert programs.count() == 2


@pytest.mark.parametrize("dim", [0, 1])
def test_topk_through_superdsc(dim):
    """As routers of experts have it: what is searched is along the sticks."""
    f = compiled(lambda x: torch.topk(x, 2, dim), options={"through_superdsc": True})
    x = torch.randperm(34 * 4).view(34, 4).half()
    for actual, wanted in zip(f(x.to("spyre")), torch.topk(x, 2, dim), strict=True):
        assert_exact(actual.cpu(), wanted)


def test_through_superdsc():
    f = compiled(lambda x, c: x * (c + 1) - c, options={"through_superdsc": True})
    x = values((5, 130), torch.float16).to("spyre")
    programs = Programs()
    for number in (0.5, 0.1, -2.7):
        same_as_eager(f, x, number)
    assert programs.count() == 2
