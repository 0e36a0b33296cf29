# SPDX-License-Identifier: Apache-2.0
"""Graphs whose intermediates exceed LX run tile by tile."""

import plan_bits  # noqa: F401  (sums do not depend on the plan)
import pytest
import torch
import torch.nn.functional as F
from numerics import assert_exact, compiled
from torch import nn
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("no_fallback")


def half(*shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(shape, generator=generator)).half()


def run(function, *inputs, tiled=True, **options):
    """The result on the host and the kernels of the one compiled part."""
    device = [i.to("spyre") for i in inputs]
    result = compiled(function, options=options)(*device)
    part = compiled_parts()[-1]
    assert (
        "scf.for %" in part.graph.print_ktir().split("func.func private")[0]
    ) == tiled
    return result.cpu(), part.report()


def check(function, *inputs):
    """Tiled and untiled, which other tests compare with fp64, give the same bits."""
    actual, kernels = run(function, *inputs)
    untiled, _ = run(function, *inputs, tiled=False, lx_planning=False)
    assert_exact(actual, untiled)
    return kernels


@pytest.mark.parametrize("causal", [False, True])
def test_attention_never_writes_its_scores(causal):
    q, k, v = (half(1, 8, 2048, 64, seed=s) for s in range(3))
    kernels = check(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        q,
        k,
        v,
    )
    scores = 2 * 8 * 2048 * 2048
    assert sum(kernel["device_bytes_written"] for kernel in kernels) < scores


def test_grouped_heads():
    q, k, v = half(1, 6, 2048, 64), half(1, 3, 2048, 64), half(1, 3, 2048, 64, seed=1)
    check(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        q,
        k,
        v,
    )


def test_an_intermediate_that_is_also_a_result():
    x, up = half(4099 * 2, 64, scale=0.1), half(64, 4096, scale=0.1, seed=1)
    down = half(4096, 65, scale=0.1, seed=2)

    def function(x, up, down):
        hidden = F.silu(x @ up)
        return torch.cat([(hidden @ down).flatten(), hidden.flatten()[:5]])

    check(function, x, up, down)


def test_rows_that_are_no_multiple_of_anything():
    """8191 rows are prime: tiles of rows are not all equal."""
    x = half(8191, 4096)
    check(lambda x: torch.exp(x).sin() * 2, x)


def test_a_training_step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 8192), nn.GELU(), nn.Linear(8192, 64)).half()
    x = half(2624, 64)

    def gradients(**options):
        torch.manual_seed(0)
        device = nn.Sequential(nn.Linear(64, 8192), nn.GELU(), nn.Linear(8192, 64))
        device = device.half().to("spyre")
        device.load_state_dict(model.state_dict())
        loss = compiled(lambda x: device(x).square().mean(), options=options)(
            x.to("spyre")
        )
        loss.backward()
        return [p.grad.cpu() for p in device.parameters()]

    tiled, untiled = gradients(), gradients(lx_planning=False)
    for a, b in zip(tiled, untiled, strict=True):
        assert_exact(a, b)
