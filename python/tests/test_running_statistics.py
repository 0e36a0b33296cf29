# SPDX-License-Identifier: Apache-2.0
"""Batch norms that update the running statistics among their arguments."""

import copy

import pytest
import torch
from aten_rows import F16, F32
from native_calls import held, native
from numerics import assert_within, unit

aten = torch.ops.aten

CASES = {
    "training": (aten._native_batch_norm_legit.default, (True, 0.1, 1e-5)),
    "inference": (aten._native_batch_norm_legit.default, (False, 0.1, 1e-5)),
    "update": (aten._batch_norm_with_update.default, (0.1, 1e-5)),
    # Schemas that do not name the statistics among what is written.
    "native": (aten.native_batch_norm.default, (True, 0.1, 1e-5)),
    "native inference": (aten.native_batch_norm.default, (False, 0.1, 1e-5)),
}


def draw(dtype):
    x = torch.randn(5, 3, 70)
    parts = [x, *torch.rand(2, 3), torch.randn(3), torch.rand(3) + 0.5]
    return held([p.to(dtype) for p in parts])


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("name", CASES)
def test_statistics_are_updated(name, dtype):
    op, options = CASES[name]
    x, weight, bias, mean, var = draw(dtype)

    def run(x, weight, bias, mean, var):
        mean, var = mean.clone(), var.clone()
        results = op(x, weight, bias, mean, var, *options)
        return results[0], mean, var

    exact = run(*(t.double() for t in (x, weight, bias, mean, var)))
    actual = native(run, x, weight, bias, mean, var)
    for a, e in zip(actual, exact, strict=True):
        assert a.dtype == dtype
        # The norm has terms of the size of its largest values.
        bound = 2 * unit(e, dtype) + 2.0**-20
        assert_within(a, e, bound, name)


@pytest.mark.parametrize("given", ["both", "none"])
def test_statistics_of_a_batch_are_taken_in(given):
    x, _, _, mean, var = draw(F32)
    if given == "none":
        mean = var = None

    def run(x, mean, var):
        mean, var = (None if t is None else t.clone() for t in (mean, var))
        results = aten.batch_norm_update_stats(x, mean, var, 0.3)
        norm, *_ = aten.native_batch_norm(x, None, None, mean, var, True, 0.3, 1e-5)
        return [t for t in (*results, norm, mean, var) if t is not None]

    exact = run(*(None if t is None else t.double() for t in (x, mean, var)))
    actual = native(run, x, mean, var)
    for a, e in zip(actual, exact, strict=True):
        assert_within(a, e, 2 * unit(e, F32) + 2.0**-20, given)


def test_modules_keep_statistics_while_they_train():
    module = torch.nn.BatchNorm2d(3)
    # A sum of squares of the norm has nearly no gradient; a third power has.
    x = torch.randn(4, 3, 5, 6, generator=torch.Generator().manual_seed(1))

    def train(module, x):
        for _ in range(2):
            module(x).pow(3).sum().backward()
        norm = module.eval()(x).detach()
        state = [t for n, t in module.state_dict().items() if "tracked" not in n]
        return [norm, *state, *(p.grad for p in module.parameters())]

    exact = train(copy.deepcopy(module).double(), x.double())
    actual = train(module.to("spyre"), x.to("spyre"))
    for a, e in zip(actual, exact, strict=True):
        assert_within(a.cpu(), e, 2.0**-18 * e.abs().max(), "statistics")


def test_one_statistic_without_the_other_is_refused():
    x, _, _, mean, _ = (t.to("spyre") for t in draw(F32))
    with pytest.raises(ValueError, match="either both be None"):
        torch.native_batch_norm(x, None, None, mean, None, True, 0.1, 1e-5)
