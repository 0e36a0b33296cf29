# SPDX-License-Identifier: Apache-2.0
"""Results lie in memory as PyTorch's functions for tensors without values say.

Dynamo computes with the strides that these give: a graph whose results have others is
wrong in what looks at strides behind it.
"""

import pytest
import torch
from numerics import compiled
from torch.nn import functional

INPUTS = {
    "contiguous": lambda: torch.rand(2, 3, 4, 6),
    "permuted": lambda: torch.rand(4, 2, 6, 3).permute(1, 3, 0, 2),
    "channels last": lambda: torch.rand(2, 4, 6, 3).permute(0, 3, 1, 2),
    "one image": lambda: torch.rand(1, 4, 6, 3).permute(0, 3, 1, 2),
    "sliced": lambda: torch.rand(2, 4, 6, 9)[..., ::3].permute(0, 3, 1, 2),
    "expanded": lambda: torch.rand(2, 4, 1, 3).permute(0, 3, 1, 2).expand(2, 3, 4, 6),
    "matrix": lambda: torch.rand(65, 3).t(),
    "cut matrix": lambda: torch.rand(65, 7)[1:, 2:5].t(),
}
OPERATORS = {
    "flip": lambda x: x.flip(0),
    "flip of the last": lambda x: x.flip(-1),
    "flip of two": lambda x: x.flip(0, 1),
    "rot90": lambda x: x.rot90(),
    "roll": lambda x: x.roll(1, -1),
    "roll by nothing": lambda x: x.roll(0, 0),
    "cumprod": lambda x: x.cumprod(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
}
POOLS = {
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(x, 2),
    "max_pool2d": lambda x: functional.max_pool2d(x, 2),
    "lp_pool2d": lambda x: functional.lp_pool2d(x, 2.0, 2),
}


def steps(x, strides):
    """Strides of dimensions that have steps."""
    return [s for n, s in zip(x.shape, strides, strict=True) if n > 1]


def on_spyre(x):
    """The same view of the storage."""
    storage = x.as_strided([x.untyped_storage().nbytes() // 4], [1], 0)
    return storage.to("spyre").as_strided(x.shape, x.stride(), x.storage_offset())


@pytest.mark.parametrize("name", {**OPERATORS, **POOLS})
@pytest.mark.parametrize("like", INPUTS)
def test_strides_are_those_that_are_inferred(name, like):
    x = INPUTS[like]()
    if name in POOLS and x.dim() != 4:
        pytest.skip("no images")
    function = (OPERATORS | POOLS)[name]
    meta = function(torch.empty_strided(x.shape, x.stride(), device="meta"))

    def traced(x):
        result = function(x)
        return result, result.stride()

    given = on_spyre(x)
    result, strides = compiled(traced)(given)
    for found in (function(given), result):
        torch.testing.assert_close(found.cpu(), function(x), rtol=2e-3, atol=1e-4)
        assert steps(found, found.stride()) == steps(found, meta.stride())
    assert steps(result, strides) == steps(result, meta.stride())


@pytest.mark.parametrize("is_compiled", [False, True])
def test_what_looks_at_strides_finds_the_elements_of_the_cpu(is_compiled):
    def function(x):
        rows = x.t().flip(0)
        return rows.as_strided((65 * 3,), (1,)), rows.t().view(-1) * 2

    x = torch.rand(65, 3)
    run = compiled(function) if is_compiled else function
    for found, expected in zip(run(x.to("spyre")), function(x), strict=True):
        assert torch.equal(found.cpu(), expected)
