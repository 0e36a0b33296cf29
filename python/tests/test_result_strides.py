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

#: What PyTorch's kernels lay out by rules of their own. In graphs, fake tensors say how.
BY_OTHER_RULES = {
    "conv1d": (lambda x, w: functional.conv1d(x, w), (2, 3, 6), (4, 3, 2)),
    "conv2d": (lambda x, w: functional.conv2d(x, w), (2, 3, 5, 6), (4, 3, 2, 3)),
    "conv2d of one": (
        lambda x, w: functional.conv2d(x, w, stride=2),
        (3, 5, 6),
        (4, 3, 2, 1),
    ),
    "conv3d": (
        lambda x, w: functional.conv3d(x, w),
        (1, 3, 4, 5, 6),
        (4, 3, 2, 3, 1),
    ),
    "transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2),
        (2, 3, 5, 6),
        (3, 4, 2, 3),
    ),
    "transposed in 3": (
        lambda x, w: functional.conv_transpose3d(x, w),
        (1, 3, 2, 5, 3),
        (3, 4, 2, 3, 1),
    ),
    "average": (
        lambda x: functional.adaptive_avg_pool3d(x, (2, 5, 1)),
        (2, 3, 4, 5, 6),
    ),
    "maximum": (
        lambda x: functional.adaptive_max_pool3d(x, 2, return_indices=True),
        (2, 3, 4, 5, 6),
    ),
    "windows": (
        lambda x: functional.max_pool3d(x, 2, return_indices=True),
        (2, 3, 4, 5, 6),
    ),
    "median": (lambda x: x.median(1), (3, 2, 1, 2)),
    "put": (
        lambda x, y: x.put(torch.arange(4, device=x.device), y.flatten()[:4]),
        (5, 6),
        (2, 3),
    ),
    "pixel_shuffle": (lambda x: functional.pixel_shuffle(x, 2), (2, 8, 3, 5)),
    "pixel_shuffle by 1": (lambda x: functional.pixel_shuffle(x, 1), (1, 9, 2, 2)),
    "pixel_unshuffle": (lambda x: functional.pixel_unshuffle(x, 2), (2, 3, 4, 6)),
    "isin": (lambda x, y: torch.isin(x, y), (2, 3, 4, 6), (3, 2)),
    "replicate": (
        lambda x: functional.pad(x, (1, 2, 0, 1), mode="replicate"),
        (2, 3, 4, 6),
    ),
    "normal": (lambda x: torch.normal(x, 0 * x), (2, 3, 4)),
    "nonzero": (lambda x: torch.nonzero_static(x, size=5), (3, 4)),
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


def orders(shape):
    """Of dimensions in memory: as they are, backwards, the last two, channels last."""
    dims = list(range(len(shape)))
    yield dims
    yield dims[::-1]
    yield [*dims[:-2], dims[-1], dims[-2]]
    if len(dims) > 3:
        yield [0, *dims[2:], 1]


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
@pytest.mark.parametrize("name", BY_OTHER_RULES)
def test_results_of_graphs_have_the_strides_that_dynamo_saw(name):
    function, *shapes = BY_OTHER_RULES[name]

    def traced(*inputs):
        results = function(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        return results, [r.stride() for r in results], [r + 0 for r in results]

    torch.manual_seed(0)
    for order in orders(shapes[0]):
        inputs = [torch.rand(shape) for shape in shapes]
        places = [order.index(d) for d in range(len(order))]
        inputs[0] = inputs[0].permute(order).contiguous().permute(places)
        if len(shapes) > 1 and len(shapes[1]) == len(order):
            inputs[1] = inputs[1].permute(order).contiguous().permute(places)
        given = [on_spyre(x) for x in inputs]
        results, strides, others = compiled(traced)(*given)
        for found, other, seen, expected in zip(
            results, others, strides, traced(*inputs)[0], strict=True
        ):
            assert steps(found, found.stride()) == steps(found, seen)
            for values in (found, other):
                torch.testing.assert_close(
                    values.cpu(), expected.to(values.dtype), rtol=1e-4, atol=1e-5
                )


#: What is taken apart has the strides that PyTorch infers for operators alone, too.
ALONE = ["average", "maximum", "windows", "median", "put"]


@pytest.mark.parametrize("name", ALONE)
def test_operators_alone_have_the_strides_of_the_cpu(name):
    function, *shapes = BY_OTHER_RULES[name]
    for order in orders(shapes[0]):
        inputs = [torch.rand(shape) for shape in shapes]
        places = [order.index(d) for d in range(len(order))]
        inputs[0] = inputs[0].permute(order).contiguous().permute(places)
        for found, expected in zip(
            torch.utils._pytree.tree_leaves(function(*map(on_spyre, inputs))),
            torch.utils._pytree.tree_leaves(function(*inputs)),
            strict=True,
        ):
            assert torch.equal(found.cpu(), expected) or name == "average"
            assert steps(found, found.stride()) == steps(found, expected.stride())
