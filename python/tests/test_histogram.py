# SPDX-License-Identifier: Apache-2.0
"""``torch.histc`` and ``torch.bincount``, eager and compiled, against the CPU."""

import math

import pytest
import torch
import torch_spyre
from numerics import assert_exact, assert_within, compiled, device_value

pytestmark = pytest.mark.usefixtures("no_fallback")

INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
FLOATS = [torch.float16, torch.bfloat16, torch.float32]
SHAPES = [(), (1,), (63,), (65,), (7, 13), (4099,)]


def numbers(shape, low, high, dtype=torch.int64):
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    if not dtype.is_floating_point:
        return torch.randint(low, high, shape, generator=generator).to(dtype)
    values = torch.rand(shape, generator=generator) * (high - low) + low
    return device_value(values.to(dtype)).to(dtype)


def check(x, bins, low=0, high=0, in_graph=True):
    """Eager and compiled results are those of the CPU's fp32 kernel."""
    expected = torch.histc(x.float(), bins, low, high).to(x.dtype)
    device = x.to("spyre")
    what = f"{x.dtype} {tuple(x.shape)} {bins} bins of {low}, {high}"
    assert_exact(torch.histc(device, bins, low, high).cpu(), expected, what)
    if in_graph:
        graph = compiled(lambda x: torch.histc(x, bins, low, high))
        assert_exact(graph(device).cpu(), expected, f"compiled: {what}")


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_histc(shape, dtype):
    low = 0 if dtype == torch.uint8 else -3
    check(numbers(shape, low, 12, dtype), 8, 0, 7, shape == (65,))
    check(numbers(shape, low, 12, dtype), 5, -1.5, 9.25, shape == (7, 13))


@pytest.mark.parametrize("bins", [1, 2, 64, 65, 128, 129, 1000])
def test_numbers_of_bins(bins):
    """Few bins and many are counted differently."""
    check(numbers((4099,), -5, bins + 5, torch.int32), bins, 0, bins - 1 or 1, False)
    check(numbers((65,), -5, bins + 5, torch.float32), bins, 0, bins)


@pytest.mark.parametrize("experts", [1, 2, 8, 60, 127, 256])
def test_routing_of_experts(experts):
    """As transformers counts the tokens of each expert: one bin per number."""
    ids = numbers((97,), 0, experts + 1, torch.int32)
    expected = torch.bincount(ids, minlength=experts)[:experts].int()
    if experts > 1:
        counts = torch.histc(ids.to("spyre"), experts, 0, experts - 1)
        assert_exact(counts.cpu(), expected)
    check(ids, experts, 0, experts - 1)
    check(ids, experts, 0, experts, False)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
def test_range_of_the_values(dtype):
    """Equal ends mean those of the values; where these are equal, one more."""
    low = 0 if dtype == torch.uint8 else -30
    for shape in [(1,), (63,), (7, 13)]:
        check(numbers(shape, low, 90, dtype), 7, in_graph=shape == (63,))
    check(numbers((63,), low, 90, dtype), 7, 2, 2, False)
    check(torch.full((5,), 3, dtype=dtype), 4, 0, 0, False)
    check(torch.full((5,), 3, dtype=dtype), 4, 1, 1, False)
    check(torch.tensor(3, dtype=dtype), 4, 0, 0, False)


def test_edges_of_bins():
    """The last bin has both its ends; NaN and infinities are in none."""
    edges = torch.linspace(-1, 2, 8)
    values = torch.cat(
        [
            edges,
            torch.nextafter(edges, torch.tensor(-math.inf)),
            torch.nextafter(edges, torch.tensor(math.inf)),
            torch.tensor([math.nan, math.inf, -math.inf, 3e38, -3e38]),
        ]
    )
    check(values, 7, -1, 2)
    check(values, 3, 0.1, 0.7)
    check(values, 200, -1e-3, 1e-3)


def test_counts_are_exact():
    """Rounded once, to the type of the values: more than it can count by ones."""
    counts = torch.tensor([5003.0, 70001, 3])
    x = torch.arange(3.0).repeat_interleave(counts.long())
    for dtype in FLOATS:
        got = torch.histc(x.to(dtype).to("spyre"), 3, 0, 2)
        assert got.dtype == dtype
        assert_exact(got.cpu(), counts.to("spyre").to(dtype).cpu())


def test_no_elements():
    for dtype in [torch.int64, torch.float32]:
        empty = torch.empty(0, 3, dtype=dtype)
        for arguments in [(5,), (5, 1, 3)]:
            got = torch.histc(empty.to("spyre"), *arguments)
            assert_exact(got.cpu(), torch.zeros(5, dtype=dtype))


def test_views_and_out():
    x = numbers((9, 70), -2, 9, torch.int32)
    expected = torch.histc(x.t()[5:, ::2].float(), 7, 0, 6).int()
    view = x.to("spyre").t()[5:, ::2]
    assert_exact(torch.histc(view, 7, 0, 6).cpu(), expected)
    out = torch.empty(7, dtype=torch.int32, device="spyre")
    assert torch.histc(view, 7, 0, 6, out=out) is out
    assert_exact(out.cpu(), expected)
    out = torch.empty(0, dtype=torch.int64, device="spyre")
    torch.ops.aten.bincount.out(view.reshape(-1).clamp(min=0), out=out)
    assert_exact(out.cpu(), torch.bincount(x.t()[5:, ::2].reshape(-1).clamp(min=0)))


@pytest.mark.parametrize(
    "x, arguments, error",
    [
        ([1.0, 2], (0,), "bins must be > 0, but got 0"),
        ([1.0, 2], (-3,), "bins must be > 0, but got -3"),
        ([1.0, 2], (5, 4, 0), "max must be larger than min"),
        ([1.0, 2], (5, math.nan, 1), r"range of \[nan, 1\] is not finite"),
        ([1.0, 2], (5, 0, math.inf), r"range of \[0, inf\] is not finite"),
        ([1.0, math.inf], (5,), r"range of \[1, inf\] is not finite"),
        ([1.0, math.nan], (5,), "is not finite"),
        ([], (5, 3, 1), "max must be larger than min"),
    ],
)
def test_errors_of_histc(x, arguments, error):
    x = torch.tensor(x)
    with pytest.raises(RuntimeError, match=error):
        torch.histc(x, *arguments)
    with pytest.raises(RuntimeError, match=error):
        torch.histc(x.to("spyre"), *arguments)
    # PyTorch's meta function has words of its own.
    with pytest.raises(Exception, match=r"bins must be > 0|larger than min|finite"):
        compiled(lambda x: torch.histc(x, *arguments))(x.to("spyre"))


def test_booleans_are_not_counted():
    x = torch.ones(3, dtype=torch.bool, device="spyre")
    with pytest.raises(NotImplementedError, match="Bool"):
        torch.histc(x)
    with pytest.raises(NotImplementedError, match="Bool"):
        torch.bincount(x)


@pytest.mark.parametrize("bins", [64, 1000])
def test_many_elements(bins):
    """Elements are counted part by part: not all of them for every bin at a time."""
    x = numbers((2**20,), -2, bins + 2, torch.int32)
    device = x.to("spyre")
    torch.spyre.reset_peak_memory_stats()
    before = torch.spyre.memory_allocated()
    got = torch.histc(device, bins, 0, bins - 1).cpu()
    assert torch.spyre.max_memory_allocated() - before < 64 * 2**20
    assert_exact(got, torch.histc(x.float(), bins, 0, bins - 1).int())


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("shape", [(1,), (63,), (65,), (4099,)], ids=str)
def test_bincount(shape, dtype):
    x = numbers(shape, 0, 100, dtype)
    device = x.to("spyre")
    assert_exact(torch.bincount(device).cpu(), torch.bincount(x))
    for length in [0, 3, 200]:
        expected = torch.bincount(x, minlength=length)
        assert_exact(torch.bincount(device, minlength=length).cpu(), expected)
    if shape == (65,):
        graph = compiled(lambda x: torch.bincount(x) + 1)
        assert_exact(graph(device).cpu(), torch.bincount(x) + 1)


def test_bincount_of_nothing():
    x = torch.empty(0, dtype=torch.int64)
    for weights in [None, torch.empty(0)]:
        for length in [0, 3]:
            expected = torch.bincount(x, weights, length)
            own = None if weights is None else weights.to("spyre")
            got = torch.bincount(x.to("spyre"), own, length)
            assert_exact(got.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(1,), (63,), (4099,)], ids=str)
def test_bincount_of_weights(shape, dtype):
    x, weights = numbers(shape, 0, 17), numbers(shape, -4, 5, dtype)
    got = torch.bincount(x.to("spyre"), weights.to("spyre"), 20).cpu()
    assert got.dtype == torch.float32
    reference = torch.bincount(x, weights.double(), 20)
    sizes = torch.bincount(x, weights.double().abs(), 20)
    assert_within(got, reference, shape[0] * 2.0**-24 * sizes)


def test_weights_that_are_not_finite():
    x = torch.tensor([0, 1, 1, 2, 2, 3, 4])
    weights = torch.tensor([1, math.inf, 1, math.inf, -math.inf, math.nan, 2])
    got = torch.bincount(x.to("spyre"), weights.to("spyre")).cpu()
    expected = torch.bincount(x, weights)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "x, weights, length, error",
    [
        ([1, -1], None, 0, "1-d non-negative integral inputs"),
        ([[1, 2]], None, 0, "1-d non-negative integral inputs"),
        (1, None, 0, "1-d non-negative integral inputs"),
        ([1, 2], None, -1, "minlength should be >= 0"),
        ([1, 2], [1.0], 0, "weights should be 1-d and have the same length"),
    ],
)
def test_errors_of_bincount(x, weights, length, error):
    x = torch.tensor(x)
    weights = None if weights is None else torch.tensor(weights)
    with pytest.raises(RuntimeError, match=error):
        torch.bincount(x, weights, length)
    own = None if weights is None else weights.to("spyre")
    with pytest.raises(RuntimeError, match=error):
        torch.bincount(x.to("spyre"), own, length)


def test_bincount_of_other_types():
    with pytest.raises(NotImplementedError, match="Float"):
        torch.bincount(torch.ones(3, device="spyre"))


def test_sizes_near_each_other_share_a_program():
    for largest in [40, 50, 63]:
        x = torch.arange(65) % (largest + 1)
        assert_exact(torch.bincount(x.to("spyre")).cpu(), torch.bincount(x))
    runs = torch_spyre._C.native_report()
    assert any("bincount_up_to" in name for name in runs), runs
