# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and normalisations over dims, keepdim and odd shapes."""

from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from inputs import pair, values
from numerics import (
    assert_contraction,
    assert_exact,
    assert_rounded,
    assert_units,
    assert_within,
    check_all,
    compiled,
    device_value,
    unit,
)

FLOATS = [torch.float16, torch.float32]


def sums(x, dims, keepdim):
    """Sum and mean over dims, as contractions of their terms."""
    wide = device_value(x)
    terms = wide.sum(dims, keepdim=keepdim)
    magnitude = wide.abs().sum(dims, keepdim=keepdim)
    count = max(x.numel() // max(terms.numel(), 1), 1)

    def check_sum(actual, name):
        assert_contraction(actual, terms, count, magnitude, name)

    def check_mean(actual, name):
        mean = wide.mean(dims, keepdim=keepdim)
        assert_contraction(actual, mean, count + 1, magnitude / count, name)

    return {
        "sum": (lambda x: x.sum(dims, keepdim=keepdim), check_sum),
        "mean": (lambda x: x.mean(dims, keepdim=keepdim), check_mean),
    }


def extremes(x, dims, keepdim):
    stored = device_value(x)

    def check(function):
        expected = function(stored)
        return lambda actual, name: assert_rounded(actual, expected, name)

    def amax(x):
        return x.amax(dims, keepdim=keepdim)

    def amin(x):
        return x.amin(dims, keepdim=keepdim)

    return {"amax": (amax, check(amax)), "amin": (amin, check(amin))}


def truths(x, dims, keepdim):
    """Any and all of comparisons."""
    stored = device_value(x)

    def check(function):
        expected = function(stored)
        return lambda actual, name: assert_exact(actual, expected, name)

    def any_of(x):
        return (x > 1).any(dims, keepdim=keepdim)

    def all_of(x):
        return (x > -3.9).all(dims, keepdim=keepdim)

    return {"any": (any_of, check(any_of)), "all": (all_of, check(all_of))}


def over_dims(x):
    operations = {}
    rank = max(x.dim(), 1)
    for count in range(1, rank + 1):
        for dims in combinations(range(-rank, 0), count):
            for keepdim in (False, True):
                made = {
                    **sums(x, dims, keepdim),
                    **truths(x, dims, keepdim),
                }
                if x.numel():
                    made.update(extremes(x, dims, keepdim))
                for name, operation in made.items():
                    operations[f"{name} over {dims} keep {keepdim}"] = operation
    return operations


@pytest.mark.parametrize(
    "layout",
    ["0d", "1", "65", "3x0x5", "7x13", "2x1x67x3", "transposed", "sliced", "expanded"],
)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_over_dims(layout, dtype):
    x, device = pair(layout, dtype)
    operations = over_dims(x)
    if layout == "3x0x5":
        # The mean of nothing is NaN, which fp16 stores as the non-number.
        operations = {n: o for n, o in operations.items() if "mean" not in n}
    if layout == "2x1x67x3" and dtype == torch.float32:
        operations = {n: o for n, o in operations.items() if "True" in n}
    check_all(operations, [device])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_whole_tensor(dtype):
    x, device = pair("5x37x150", dtype)
    wide = device_value(x)
    exact = {
        "max": lambda x: x.max(),
        "min": lambda x: x.min(),
        "any": lambda x: (x > 3.99).any(),
        "all": lambda x: (x > -4.1).all(),
        "argmax": lambda x: x.argmax(),
        "argmin": lambda x: x.argmin(),
    }

    def check(function):
        expected = function(wide)
        if expected.is_floating_point():
            return lambda actual, name: assert_rounded(actual, expected, name)
        return lambda actual, name: assert_exact(actual, expected, name)

    operations = {n: (f, check(f)) for n, f in exact.items()}
    magnitude = wide.abs().sum()
    operations["sum"] = (
        lambda x: x.sum(),
        lambda actual, name: assert_contraction(
            actual, wide.sum(), x.numel(), magnitude, name
        ),
    )
    operations["mean"] = (
        lambda x: x.mean(),
        lambda actual, name: assert_contraction(
            actual, wide.mean(), x.numel(), magnitude / x.numel(), name
        ),
    )
    check_all(operations, [device])


def indexed(x, dim, keepdim):
    """max, min, argmax, argmin along a dim; the first of equal values wins."""
    stored = device_value(x)

    def first(extreme):
        best = getattr(stored, f"a{extreme}")(dim, keepdim=True)
        # The first position that holds it, found without argmax's own rule.
        size = stored.shape[dim]
        shape = [1] * stored.dim()
        shape[dim] = size
        position = torch.arange(size).view(shape).expand(stored.shape)
        index = torch.where(stored == best, position, size).amin(dim, keepdim=True)
        return (best, index) if keepdim else (best.squeeze(dim), index.squeeze(dim))

    operations = {}
    for extreme in ("max", "min"):
        best, index = first(extreme)

        def value(x, extreme=extreme):
            return getattr(x, extreme)(dim, keepdim=keepdim)[0]

        def where(x, extreme=extreme):
            return getattr(x, extreme)(dim, keepdim=keepdim)[1]

        def argument(x, extreme=extreme):
            return getattr(x, f"arg{extreme}")(dim, keepdim=keepdim)

        def check_value(actual, name, best=best):
            assert_rounded(actual, best, name)

        def check_index(actual, name, index=index):
            assert_exact(actual, index, name)

        suffix = f" over {dim} keep {keepdim}"
        operations[extreme + suffix] = (value, check_value)
        operations[extreme + " index" + suffix] = (where, check_index)
        operations["arg" + extreme + suffix] = (argument, check_index)
    return operations


@pytest.mark.parametrize("layout", ["1", "65", "7x13", "2x1x67x3", "transposed"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_indexed_extremes(layout, dtype):
    x, device = pair(layout, dtype)
    operations = {}
    for dim in range(x.dim()):
        operations.update(indexed(x, dim, keepdim=dim % 2 == 0))
    check_all(operations, [device])


def test_ties_give_the_first():
    x = torch.tensor([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2.0]], dtype=torch.float16)
    wide = torch.cat([x, x.roll(1, 1)] * 20, 1)
    check_all({**indexed(wide, 1, False), **indexed(wide, 0, True)}, [wide.to("spyre")])


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32], ids=str)
def test_topk_of_repeated_rows(dtype):
    """Which loop counts the results does not follow from what a view repeats."""
    x = torch.randperm(5 * 65, generator=torch.Generator().manual_seed(0))
    x = x.view(5, 65).to(dtype)
    functions = {
        f"{k} of {size} along {dim}": (
            lambda x, k=k, size=size, dim=dim: torch.cat(
                [r.float() for r in x.unsqueeze(1).expand(5, size, 65).topk(k, dim)]
            )
        )
        for k in (1, 2)
        for size in (1, 2, 3)
        for dim in (0, 2)
    }

    def check(function):
        return lambda actual, name: assert_exact(actual, function(x), name)

    check_all({n: (f, check(f)) for n, f in functions.items()}, [x.to("spyre")])


@pytest.mark.parametrize("layout", ["65", "7x13", "2x1x67x3", "transposed"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_variance(layout, dtype):
    x, device = pair(layout, dtype)
    wide = device_value(x)
    operations = {}
    for dim in range(x.dim()):
        count = x.shape[dim]
        for correction in (0, 1):
            if count == correction:
                continue

            def function(x, dim=dim, correction=correction):
                return x.var(dim, correction=correction)

            def check(actual, name, function=function, count=count, dim=dim):
                reference = function(wide)
                bound = 2 * unit(reference, actual.dtype)
                bound = bound + count * 2.0**-23 * wide.square().mean(dim)
                assert_within(actual, reference, bound, name)

            operations[f"var over {dim} correction {correction}"] = (function, check)
    check_all(operations, [device])


@pytest.mark.parametrize("layout", ["0d", "1", "65", "7x13", "2x1x67x3", "transposed"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax_and_scan(layout, dtype):
    x, device = pair(layout, dtype, low=-10.0, high=10.0)
    wide = device_value(x)
    operations = {}
    for dim in range(-x.dim(), 0) if x.dim() else (-1,):
        n = x.shape[dim] if x.dim() else 1

        def softmax(x, dim=dim):
            return x.softmax(dim)

        def log_softmax(x, dim=dim):
            return x.log_softmax(dim)

        def cumsum(x, dim=dim):
            return x.cumsum(dim)

        def check_softmax(actual, name, f=softmax, n=n):
            reference = f(wide)
            slack = n * 2.0**-24 + 8 * 2.0**-23
            bound = 2 * unit(reference, actual.dtype) + slack * reference
            assert_within(actual, reference, bound, name)

        def check_log_softmax(actual, name, f=log_softmax, n=n):
            reference = f(wide)
            # x - max - log(sum) cancels: fp32 errors of its terms remain.
            bound = 2 * unit(reference, actual.dtype) + (n + 40) * 2.0**-23
            assert_within(actual, reference, bound, name)

        def check_cumsum(actual, name, f=cumsum, n=n, dim=dim):
            magnitude = wide.abs().cumsum(dim)
            assert_contraction(actual, f(wide), n, magnitude, name)

        operations[f"softmax {dim}"] = (softmax, check_softmax)
        operations[f"log_softmax {dim}"] = (log_softmax, check_log_softmax)
        operations[f"cumsum {dim}"] = (cumsum, check_cumsum)
    check_all(operations, [device])


def test_softmax_of_masked_rows():
    """Rows with -inf, and a row of nothing else, which PyTorch calls NaN."""
    x = values((4, 70), torch.float16)
    x[0, 3:] = -torch.inf
    x[1, ::2] = -torch.inf
    wide = device_value(x)

    def check(actual, name):
        assert_units(actual, wide.softmax(-1), 2, name)
        assert (actual[0, 3:] == 0).all(), name

    check_all({"softmax": (lambda x: x.softmax(-1), check)}, [x.to("spyre")])


def test_integer_and_bool_reductions():
    x = values((7, 67), torch.int64)
    b = values((7, 67), torch.bool, seed=1)
    functions = {
        "sum": lambda x, b: x.sum(1),
        "sum of bool": lambda x, b: b.sum(0),
        "sum all": lambda x, b: x.sum(),
        "amax": lambda x, b: x.amax(0),
        "amin": lambda x, b: x.amin(1, keepdim=True),
        "any": lambda x, b: b.any(1),
        "all": lambda x, b: b.all(0),
        "any of all": lambda x, b: b.any(),
        "any of int": lambda x, b: (x * 0).any(1),
        "cumsum": lambda x, b: x.cumsum(1),
        "cumsum of bool": lambda x, b: b.cumsum(0),
    }

    def check(function):
        expected = function(x, b)
        return lambda actual, name: assert_exact(actual, expected, name)

    check_all(
        {n: (f, check(f)) for n, f in functions.items()},
        [x.to("spyre"), b.to("spyre")],
    )


@pytest.mark.parametrize("shape", [(65,), (7, 13), (3, 5, 130), (2, 1, 192)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms(shape, dtype):
    x = values(shape, dtype)
    n = shape[-1]
    w = values((n,), dtype, seed=1, low=0.5, high=1.5)
    b = values((n,), dtype, seed=2)
    functions = {
        "layer_norm": lambda x, w, b: F.layer_norm(x, (n,), w, b),
        "layer_norm plain": lambda x, w, b: F.layer_norm(x, (n,)),
        "layer_norm no bias": lambda x, w, b: F.layer_norm(x, (n,), w, eps=1e-3),
        "rms_norm": lambda x, w, b: F.rms_norm(x, (n,), w, eps=1e-5),
        "rms_norm plain": lambda x, w, b: F.rms_norm(x, (n,), eps=1e-6),
    }
    if len(shape) > 1:
        functions["layer_norm of two dims"] = lambda x, w, b: F.layer_norm(
            x, shape[-2:]
        )
    wide = [device_value(t) for t in (x, w, b)]

    def check(function):
        def compare(actual, name):
            reference = function(*wide)
            # The terms of (x - mean) * rstd * w + b cancel in fp32.
            magnitude = 4 * wide[1].abs().max() + wide[2].abs().max()
            bound = 2 * unit(reference, actual.dtype)
            bound = bound + (n + 16) * 2.0**-24 * magnitude
            assert_within(actual, reference, bound, name)

        return compare

    check_all(
        {name: (f, check(f)) for name, f in functions.items()},
        [t.to("spyre") for t in (x, w, b)],
    )


@pytest.mark.parametrize(
    ("shape", "dim"), [((500, 2048), 1), ((16, 8192), 1), ((1024, 500), 0)]
)
def test_sums_do_not_depend_on_who_else_reads(shape, dim):
    """Where a sum is split over cores, it is so beside other readers of its operand."""
    x = values(shape, torch.float32).to("spyre")
    expected = x.sum(dim).cpu()
    functions = (
        lambda x: (x.sum(dim),),
        lambda x: (x.sum(dim), -x),
        lambda x: ((x + 1).sum(dim), x.sum(dim)),
    )
    for function in functions:
        found = [y.cpu() for y in compiled(function)(x)]
        assert any(torch.equal(y, expected) for y in found)
