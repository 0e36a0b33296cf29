# SPDX-License-Identifier: Apache-2.0
"""Batch norms that update the running statistics among their arguments."""

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
