# SPDX-License-Identifier: Apache-2.0
"""Gradients of activations that PyTorch takes apart where a device has none."""

import pytest
import torch
from numerics import assert_exact, assert_within, device_value, unit
from torch.nn import functional as F

DTYPES = [torch.float16, torch.bfloat16, torch.float32]


def gradient(function, x, g):
    leaf = x.detach().clone().requires_grad_()
    function(leaf).backward(g)
    return leaf.grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [F.silu, F.mish])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (63,), (13, 65), (4, 257)])
def test_gradients_are_rounded_once(function, shape, dtype):
    """One minus a rounded sigmoid would have lost its last bits times x."""
    x = device_value((torch.randn(shape) * 6).to(dtype)).to(dtype)
    g = device_value(torch.randn(shape).to(dtype)).to(dtype)
    reference = gradient(function, x.double(), g.double())
    eager = gradient(function, x.to("spyre"), g.to("spyre")).cpu()
    # In fp32 the sum inside cancels where the slope is near 0.
    bound = unit(reference, dtype) + 2.0**-20 * g.double().abs()
    assert_within(eager, reference, bound, "eager")
    compiled = torch.compile(function, backend="spyre")
    assert_exact(gradient(compiled, x.to("spyre"), g.to("spyre")).cpu(), eager)


@pytest.mark.parametrize("function", [F.silu, F.mish])
def test_gradients_have_gradients(function):
    x = torch.linspace(-3, 3, 65)
    wanted, got = (
        torch.autograd.functional.hvp(
            lambda t: function(t).sum(), t, torch.ones_like(t)
        )
        for t in (x.double(), x.to("spyre"))
    )
    torch.testing.assert_close(got[1].cpu().double(), wanted[1], atol=1e-5, rtol=1e-5)
