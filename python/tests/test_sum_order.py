# SPDX-License-Identifier: Apache-2.0
"""What may differ between a compiled graph and its operators one by one.

The graph's plan lays tensors out by itself. A sum along the sticks and one across
them add in different orders, so a sum has the bits of the eager operator on a tensor
with the same layout. Nothing but sums may differ.
"""

import itertools

import pytest
import torch
import torch.nn.functional as F
from numerics import assert_exact, compiled

pytestmark = pytest.mark.usefixtures("no_fallback", "no_traced_cache")


def l2_norm(x):
    """Of queries and keys in linear attention; the sum is a result, too."""
    total = (x * x).sum(-1, keepdim=True)
    return total, x * torch.rsqrt(total + 1e-6)


def running(x):
    """Mean and deviation of series, patch by patch, as forecasters have them."""
    mean = deviation = torch.zeros_like(x[:, 0, 0])
    total = x[:, 0].sum(-1)
    for step in range(x.shape[1]):
        patch = x[:, step]
        own = patch.sum(-1) / x.shape[2]
        spread = ((patch - own[:, None]) ** 2).sum(-1) / x.shape[2]
        mean = (mean * step + own) / (step + 1)
        deviation = torch.sqrt(deviation + spread)
    return total, mean, deviation, (x - mean[:, None, None]) / deviation[:, None, None]


def channel_norm(x):
    """Of rows of channels, which the norm wants the other way round."""
    rows = x.transpose(1, 2)
    result, mean, scale = torch.native_group_norm(
        rows.contiguous(), None, None, x.shape[0], x.shape[2], x.shape[1], 1, 1e-5
    )
    return mean, scale, F.silu(result)


def snake(x):
    """As of codecs of sound; its sum is the commitment's."""
    wave = x + (x.abs() + 1.0).reciprocal() * torch.sin(x * 0.5).pow(2)
    return ((x - 0.5) ** 2).mean(-1), wave / (x + 8.0), 1.0 / (x * x + 3.0)


#: Their sums are over a power of two of values, so that means are exact, too.
FUNCTIONS = {
    "l2_norm": (l2_norm, (2, 4, 17, 16)),
    "running": (running, (2, 3, 32)),
    "channel_norm": (channel_norm, (2, 128, 64)),
    "snake": (snake, (3, 5, 64)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementwise_values_are_those_of_eager_operators(name, dtype):
    function, shape = FUNCTIONS[name]
    generator = torch.Generator().manual_seed(len(name))
    # Halves up to 2: their squares and sums are exact in fp32, in any order.
    x = torch.randint(-4, 5, shape, generator=generator).to(dtype) / 2
    if name in ("running", "channel_norm"):
        # Each mean is a whole number, so that squares of distances are exact.
        x = torch.cat([x, 2 - x], -1)
    x = x.to("spyre")
    for eager, graph in zip(function(x), compiled(function)(x), strict=True):
        assert_exact(graph.cpu(), eager.cpu())


@pytest.mark.parametrize("shape", [(4, 64, 128, 512), (3, 128, 256, 256)])
@pytest.mark.parametrize("is_turned", [False, True])
def test_products_with_several_sums(shape, is_turned):
    """Over places in a window and channels: how a core cuts its share depends on
    where the factors lie, and what it adds first does not.
    """
    places, rows, channels, columns = shape
    generator = torch.Generator().manual_seed(places)
    x = torch.randn(places, rows, channels, generator=generator).to("spyre")
    y = torch.randn(places, channels, columns, generator=generator).to("spyre")
    if is_turned:
        x = x.transpose(0, 1).contiguous()

    def product(x):
        left = (x.transpose(0, 1) if is_turned else x)[:, :, None]
        right = y.transpose(1, 2)[:, None]
        return torch.ops.spyre.sum_products(left, right, [0, 3], None, False)

    def among_others(x):
        return torch.sin(product(torch.sin(x) + x))

    for function in (product, among_others):
        assert_exact(compiled(function)(x).cpu(), function(x).cpu())


SUMS = {
    "rows": (lambda x: x.sum(-1), (2, 32)),
    "heads": (lambda x: x.sum(-1, keepdim=True), (2, 4, 17, 16)),
    "columns": (lambda x: x.sum(0), (65, 3, 7)),
    "means": (lambda x: x.mean((1, 2)), (2, 64, 63)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_have_the_bits_of_their_layout(name):
    total, shape = SUMS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(len(name)))

    def with_users(x, y):
        product = x * y
        result = total(product)
        return result, product + 1

    x = x.to("spyre")
    y = torch.full_like(x, 1.1)
    actual = compiled(with_users)(x, y)[0].cpu()
    product = (x * y).cpu()
    found = []
    for order in itertools.permutations(range(len(shape))):
        home = product.permute(order).contiguous().to("spyre")
        back = [order.index(dim) for dim in range(len(shape))]
        found.append(total(home.permute(back)).cpu())
    assert any(torch.equal(actual, expected) for expected in found)
