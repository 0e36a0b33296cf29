# SPDX-License-Identifier: Apache-2.0
"""Slices of the dimension along the sticks, read in place or through one copy.

What follows a slice gives what it gives on a tensor of the slice alone: the other
elements of the sticks are never seen, and neither is padding.
"""

import pytest
import torch
import torch.nn.functional as F
from numerics import assert_exact, check_all, poison, run_all, unit

pytestmark = pytest.mark.usefixtures("no_fallback")

#: Slices of [.., 320]: whole sticks, a part of one, across sticks, inside one, steps.
SLICES = {
    "sticks": lambda t: t[..., 64:192],
    "part of a stick": lambda t: t[..., 64:100],
    "rest of a stick": lambda t: t[..., 100:128],
    "across sticks": lambda t: t[..., 3:70],
    "inside a stick": lambda t: t[..., 70:75],
    "steps": lambda t: t[..., 1:130:2],
    "last": lambda t: t[..., 319:],
    "slice of a slice": lambda t: t[..., 1:][..., 64:130],
}

#: Those that small whole numbers make exact, whatever the order of summation.
EXACT = {
    "pointwise": lambda x: x * 2 - 1,
    "sum": lambda x: x.sum(-1),
    "sum of rows": lambda x: x.sum(0),
    "max": lambda x: x.amax(-1),
    "min": lambda x: x.amin(-1),
    "prod": lambda x: x[..., :5].sign().prod(-1),
    "any": lambda x: (x > 5).any(-1),
    "all": lambda x: (x < 5).all(-1),
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "topk": lambda x: x.topk(2 if x.shape[-1] > 1 else 1, -1)[0],
    "gram": lambda x: x @ x.mT,
    "turned gram": lambda x: x.mT @ x,
    "turned": lambda x: x.mT + 1,
    "twice": lambda x: torch.cat((x, -x), -1),
    "beside itself": lambda x: torch.cat((x + 1, x.flip(0)[:1]), 0),
    "updated": lambda x: torch.zeros_like(x).slice_scatter(x[..., :1], -1, 0, 1),
}

#: Those whose sums are rounded.
ROUNDED = {
    "mean": lambda x: x.mean(-1),
    "variance": lambda x: x.var(-1, correction=0),
    "norm": lambda x: x.norm(dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
}


def whole(shape, dtype, seed=0):
    """Numbers from -3 to 3."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).to(dtype)


@pytest.mark.parametrize("part", SLICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_what_follows_a_slice(part, dtype):
    cut = SLICES[part]
    inside = whole((6, 320), dtype)
    # What is not in the slice would win every maximum and spoil every sum.
    x = torch.full_like(inside, 9)
    x[:, ::2] = -9
    cut(x).copy_(cut(inside))
    alone = cut(inside).contiguous()

    def exact(function):
        expected = function(alone.double())
        if expected.is_floating_point():
            expected = expected.to(dtype)
        return lambda actual, name: assert_exact(actual, expected, name)

    device = x.to("spyre")
    poison()
    check_all(
        {n: (lambda x, f=f: f(cut(x)), exact(f)) for n, f in EXACT.items()}, [device]
    )
    poison()
    expected = run_all(ROUNDED, [alone.to("spyre")])
    poison()
    actual = run_all(
        {n: lambda x, f=f: f(cut(x)) for n, f in ROUNDED.items()}, [device]
    )
    for name, wanted in expected.items():
        # A copy may have its sticks along the rows: another order of summation.
        error = (actual[name].double() - wanted.double()).abs()
        size = wanted.double().abs().clamp(min=1)
        if name == "log_softmax":
            # It takes the difference of terms that are as large as the largest.
            size = size.amax().expand_as(size)
        limit = 4 * unit(size, dtype)
        assert (error <= limit).all(), f"{name}: off by {error.max()}"
