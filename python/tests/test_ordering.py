# SPDX-License-Identifier: Apache-2.0
"""Sorts, what follows from them, and scans of extrema, against the CPU."""

import math

import pytest
import torch
from aten_rows import BOOL, F16, F32, I64, aten, run
from native_calls import assert_same, check_compiled, check_exact, held, native
from sized_graphs import check_bits_of_one_size
from torch_spyre import _C
from torch_spyre.decompositions import ordering

SHAPES = [((), 0), ((1,), 0), ((0,), 0), ((7, 65), 1), ((64, 3), 0), ((3, 1, 5), -2)]
DTYPES = [F16, torch.bfloat16, F32, I64, torch.int32, torch.uint8, torch.int8, BOOL]


def draw(shape, dtype=F16):
    """Many ties, of either sign."""
    values = torch.randint(-9, 9, shape)
    if dtype == BOOL:
        return values > 0
    return values.abs().to(dtype) if dtype == torch.uint8 else values.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sort(shape, dim, dtype):
    x = draw(shape, dtype)
    for descending in (False, True):
        check_exact(torch.sort, x, dim=dim, descending=descending, stable=True)


@pytest.mark.parametrize("size", [2, 3, 31, 32, 33, 127, 1000, 4097])
def test_sort_of_sizes(size):
    x = torch.randn(2, size, dtype=F32)
    x[0, :: max(size // 7, 1)] = 0.5
    for descending in (False, True):
        check_exact(torch.sort, x, dim=1, descending=descending, stable=True)
        check_exact(torch.sort, x.t(), dim=0, descending=descending, stable=True)


def test_nan_is_the_largest_and_zeros_are_equal():
    x = torch.tensor(
        [0.0, math.nan, -0.0, math.inf, -math.inf, -math.nan, 0.0, 1e-40, -1e-40]
    )
    for descending in (False, True):
        values, places = native(torch.sort, x, descending=descending, stable=True)
        expected = torch.sort(x, descending=descending, stable=True)
        assert_same(places, expected.indices)
        assert_same(values, expected.values)
        # The signs of zeros move with them.
        assert_same(
            values.signbit() & ~values.isnan(), x[places].signbit() & ~values.isnan()
        )


def test_integers_of_32_bits():
    limits = torch.iinfo(torch.int32)
    x = torch.tensor([3, limits.max, -1, limits.min, 0, limits.max, limits.min])
    for descending in (False, True):
        check_exact(torch.sort, x, descending=descending, stable=True)
        check_exact(torch.sort, x.to(torch.int32), descending=descending, stable=True)


def test_views_are_sorted():
    x = torch.randn(40, 30, dtype=F32)
    check_exact(torch.sort, x[::2, 5:], dim=0, stable=True)
    check_exact(torch.sort, x.t()[3], stable=True)
    check_exact(torch.sort, x[:1].expand(5, 30), dim=1, stable=True)
    check_exact(torch.argsort, x, dim=0, stable=True)
    check_exact(torch.msort, x)


@pytest.mark.parametrize("dtype", [F16, F32, I64])
def test_kthvalue(dtype):
    x = torch.randperm(70).reshape(7, 10).to(dtype)
    for k, dim, keepdim in ((1, 1, False), (10, -1, True), (4, 0, False)):
        check_exact(torch.kthvalue, x, k, dim, keepdim)
    check_exact(torch.kthvalue, x[0, 0], 1)
    with pytest.raises((RuntimeError, IndexError)):
        torch.kthvalue(x.to("spyre"), 11, 1)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.int32])
@pytest.mark.parametrize(("size", "k"), [(65, 65), (300, 100), (128, 3)])
def test_topk(size, k, dtype):
    x = torch.randperm(3 * size).reshape(3, size).to(dtype)
    if dtype == F16:
        x = held(x / 8)
        x = x[:, :k] if x.unique().numel() < x.numel() else x
        k = min(k, 32)
    for largest in (True, False):
        values, places = native(torch.topk, x, k, -1, largest)
        assert_same(values, x.topk(k, -1, largest).values)
        assert_same(x.gather(-1, places), values)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.uint8])
@pytest.mark.parametrize(
    ("shape", "dim", "k"),
    [
        ((2048,), 0, 8),
        ((1500, 3), 0, 50),
        ((1, 40000), 1, 100),
        ((1030,), 0, 1030),
        ((130003,), 0, 5000),
    ],
)
def test_the_largest_of_parts(shape, dim, k, dtype):
    x = draw(shape, dtype)
    if dtype == F32:
        x.view(-1)[17], x.view(-1)[5] = math.nan, -math.inf
    for largest in (True, False):
        expected = torch.sort(x, dim=dim, descending=largest, stable=True)
        expected = tuple(result.narrow(dim, 0, k) for result in expected)
        device = x.to("spyre")
        found = native(torch.topk, device, k, dim, largest)
        assert_same(found, expected)
        assert [r.stride() for r in found] == [
            r.stride() for r in x.topk(k, dim, largest)
        ]
        torch._dynamo.reset()
        graph = torch.compile(torch.topk, backend="spyre", dynamic=False)
        results = graph(device, k, dim, largest)
        assert_same([r.cpu() for r in results], expected)


def predicted_seconds(function, *sizes):
    x = torch.zeros(sizes, device="spyre")
    with torch.spyre.profiler.profile() as trace:
        function(x)
        torch.spyre.synchronize()
    return sum(kernel.predicted_seconds for kernel in trace.kernels)


def test_many_of_a_vocabulary_take_little_more_than_few():
    """A pass over all elements for each would take 25 times as long."""
    few, many = (
        predicted_seconds(lambda x, k=k: torch.topk(x, k), 1, 32000) for k in (2, 50)
    )
    assert many < 3 * few


def test_more_than_parts_have_are_sorted():
    """A core would sort a long part for longer than all cores sort all of it."""
    many, all_ = (
        predicted_seconds(lambda x, k=k: torch.topk(x, k), 40000) for k in (5000, 40000)
    )
    assert many < 1.1 * all_


def test_rows_are_searched_by_as_many_cores():
    """Rows across sticks would be one core's, up to 64 of them."""
    for size in (8, 64):
        one, rows = (
            predicted_seconds(lambda x: torch.topk(x, 8), count, 512)
            for count in (1, size)
        )
        assert rows < 6 * one


def test_a_part_that_no_core_holds():
    """Rows decline; eager calls sort in parts."""
    count = ordering.MOST_SORTED + 1
    said = rf"sorted in parts, in aten\.sort\.default\(self=float32\[{count}\]\)"
    with pytest.raises(_C.UnsupportedOp, match=said):
        run(aten.sort.default, (torch.zeros(count),), {})
    x = draw((2, 2 * ordering.MOST_SORTED + 77), F32)
    x[0, 5] = math.nan
    for descending in (False, True):
        check_exact(torch.sort, x, dim=1, descending=descending, stable=True)
    distinct = torch.randperm(40000).float()
    check_exact(torch.sort, distinct)
    check_exact(torch.topk, distinct, 100)
    check_exact(torch.kthvalue, distinct, 777)


#: Just above what a core sorts, primes, powers of two.
LONG = [
    ((ordering.MOST_SORTED + 1,), 0),
    ((2, 32768), 1),
    ((20011, 3), 0),
    ((1 << 17,), 0),
]


@pytest.mark.parametrize(("shape", "dim"), LONG)
@pytest.mark.parametrize("dtype", [F16, I64])
def test_long_sorts(shape, dim, dtype):
    x = draw(shape, dtype)
    for descending in (False, True):
        check_exact(torch.sort, x, stable=True, dim=dim, descending=descending)


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_sorts_of_all_types(dtype):
    """The greatest and the smallest number, beside which the filling is."""
    x = draw((2, 17011), dtype)
    if dtype.is_floating_point:
        x[:, 7::5], x[:, 4::7], x[:, 2::9] = math.inf, -math.inf, -0.0
    elif dtype != BOOL:
        limits = torch.iinfo(torch.int32 if dtype == I64 else dtype)
        x[:, 7::5], x[:, 4::7] = limits.max, limits.min
    for descending in (False, True):
        check_exact(torch.sort, x, stable=True, dim=1, descending=descending)
        check_exact(torch.sort, x.t(), dim=0, descending=descending, stable=True)


def test_long_sorts_of_nan_and_zeros():
    x = torch.randn(17011)
    x[::3], x[1::4], x[2::5], x[5::7] = math.nan, 0.0, -0.0, -math.nan
    for descending in (False, True):
        values, places = native(torch.sort, x, descending=descending, stable=True)
        expected = torch.sort(x, descending=descending, stable=True)
        assert_same(places, expected.indices)
        assert_same(values, expected.values)
        numbers = ~values.isnan()
        assert_same(values.signbit() & numbers, x[places].signbit() & numbers)


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(40009),
        torch.arange(40009, dtype=torch.int32),
        torch.arange(40009, 0, -1, dtype=torch.int32),
        torch.randint(0, 2, (40009,)),
    ],
)
def test_long_sorts_of_what_is_in_order(x):
    for descending in (False, True):
        check_exact(torch.sort, x, stable=True, dim=0, descending=descending)


def test_long_sorts_of_views():
    x = torch.randn(2, 3, 40009, dtype=F32)
    check_exact(torch.sort, x[:, 1:, ::2], dim=2, stable=True)
    check_exact(torch.sort, x[:1, :1, 1:].expand(2, 2, 40008), dim=-1, stable=True)
    check_exact(torch.sort, x[:0, :, :17000], dim=-1, stable=True)
    check_exact(
        torch.sort, x.transpose(0, 2)[5:20000], dim=0, descending=True, stable=True
    )


def test_long_sorts_of_parts_that_are_long(monkeypatch):
    """As those of more than 2**20 elements are."""
    monkeypatch.setattr(ordering, "MOST_SORTED", 256)
    _C._forget_eager_programs()
    x = draw((2, 20011), F32)
    for descending in (False, True):
        check_exact(torch.sort, x, stable=True, dim=1, descending=descending)
    _C._forget_eager_programs()


@pytest.mark.parametrize("dynamic", [False, True])
def test_long_sorts_in_graphs(dynamic):
    """Of sizes that vary, each has a program of its own."""
    torch._dynamo.reset()
    graph = torch.compile(torch.sort, backend="spyre", dynamic=dynamic)
    for size in (17000, 17011):
        x = draw((2, size))
        results = graph(x.to("spyre"), stable=True)
        assert_same([r.cpu() for r in results], tuple(torch.sort(x, stable=True)))


def test_long_sorts_through_superdsc():
    """Runs that are in order, and places, are constants and inputs of bundles."""
    torch._dynamo.reset()
    options = {"through_superdsc": True}
    graph = torch.compile(torch.sort, backend="spyre", options=options)
    x = draw((2, 17011))
    results = graph(x.to("spyre"), stable=True)
    assert_same([r.cpu() for r in results], tuple(torch.sort(x, stable=True)))


def test_parts_are_long_enough():
    """Columnsort of p parts needs 2 * p**2 elements in each."""
    for bits in range(15, 31):
        part = ordering._part_for_sort(1 << bits)
        assert part & (part - 1) == 0
        assert part >= 2 * ((1 << bits) // part) ** 2


def test_what_follows_from_long_sorts():
    x = torch.randperm(20011)
    check_exact(torch.median, x)
    check_exact(torch.median, x.view(1, -1).float(), 1)
    check_exact(torch.nanmedian, x.float())
    values, _ = native(torch.mode, x % 5000, 0)
    assert_same(values, torch.mode(x % 5000, 0).values)
    check_exact(torch.isin, x, torch.randint(0, 30000, (17000,)))


def test_a_long_sort_takes_little_longer_than_its_parts():
    """Not as many rounds as there are parts: half a part is 16 times as fast."""
    short, long = (predicted_seconds(torch.sort, size) for size in (8192, 1 << 17))
    assert long < 3 * short


def test_pairs():
    """What an operator of ours says; the CPU has it, too."""
    keys, places = draw((3, 64), F32), torch.stack([torch.randperm(64)] * 3)
    for descending in (False, True):
        check_exact(torch.ops.spyre.sort_pairs, keys, places, descending, 1)
        sorted_keys, sorted_places = torch.ops.spyre.sort_pairs(
            keys.view(12, 16), places.view(12, 16), descending, 1
        )
        runs = sorted_keys.view(3, 64), sorted_places.view(3, 64)
        check_exact(torch.ops.spyre.sort_pairs, *runs, descending, 16)
        assert_same(
            native(torch.ops.spyre.sort_pairs, *runs, descending, 16),
            torch.ops.spyre.sort_pairs(keys, places, descending, 1),
        )


@pytest.mark.parametrize("dtype", [F16, F32, I64])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_medians(shape, dim, dtype):
    x = torch.randperm(math.prod(shape)).reshape(shape).to(dtype)
    check_exact(torch.median, x) if x.numel() else None
    if 0 in shape:
        return
    for keepdim in (False, True):
        check_exact(torch.median, x, dim, keepdim)
        check_exact(torch.nanmedian, x, dim, keepdim)
    check_exact(torch.nanmedian, x)


@pytest.mark.parametrize("dtype", [F16, F32, torch.int32, torch.int16, *DTYPES[-3:]])
def test_medians_of_nothing(dtype):
    """No number, which integers do not have."""
    nothing = torch.zeros(2, 0, dtype=dtype)
    for function in (torch.median, torch.nanmedian):
        expected = function(nothing)
        for call in (function, torch.compile(function, backend="spyre")):
            actual = call(nothing.to("spyre")).cpu()
            if dtype == F16:  # Has infinity in its place.
                assert actual.isinf()
            else:
                assert_same(actual, expected)


def test_medians_of_nan():
    x = torch.randn(6, 11)
    x[2, 3], x[2, 5], x[4] = math.nan, math.nan, math.nan
    for dim in (0, 1):
        check_exact(torch.median, x, dim)
        check_exact(lambda t, d=dim: torch.nanmedian(t, d).values, x)
    check_exact(torch.median, x)
    check_exact(torch.nanmedian, x)


@pytest.mark.parametrize("dtype", [F16, torch.bfloat16])
def test_medians_without_what_is_infinity_in_place_of_nan(dtype):
    x = (torch.randperm(66).reshape(6, 11) - 30).to(dtype)
    x[2, 3], x[2, 5], x[3, 1] = math.nan, math.nan, -math.inf
    mask = torch.rand(6, 11) < 0.4
    mask[:, 0] = mask[0] = True
    assert_same(native(torch.nanmedian, x), torch.nanmedian(x))
    for dim in (0, 1):
        assert_same(native(torch.nanmedian, x, dim), torch.nanmedian(x, dim))
        expected = torch.masked.median(x, dim, mask=mask)
        assert_same(native(torch.masked.median, x, dim, mask=mask), expected)
    nothing = torch.full((3, 4), math.nan, dtype=dtype)
    values, _ = native(torch.nanmedian, nothing, 1)
    assert values.cpu().isposinf().all()


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.int32])
@pytest.mark.parametrize(("shape", "dim"), [s for s in SHAPES if 0 not in s[0]])
def test_mode(shape, dim, dtype):
    x = draw(shape, dtype)
    for keepdim in (False, True):
        values, places = native(torch.mode, x, dim, keepdim)
        assert_same(values, torch.mode(x, dim, keepdim).values)
        if x.dim():
            at = places if keepdim else places.unsqueeze(dim)
            assert_same(x.gather(dim, at).reshape(values.shape), values)


@pytest.mark.parametrize("size", [1, 2, 15, 16])
def test_mode_of_few_is_where_the_cpu_finds_it(size):
    """The CPU sorts up to 16 elements in a way that keeps their order."""
    check_exact(torch.mode, torch.randint(0, 3, (6, size)))
    check_exact(torch.mode, torch.zeros(size))


@pytest.mark.parametrize("dtype", [F16, F32, I64])
def test_searches(dtype, monkeypatch):
    bounds = draw((3, 65), dtype).sort(-1).values
    values = draw((3, 7), dtype)
    for most in (ordering._MOST_COMPARED, 0):
        monkeypatch.setattr(ordering, "_MOST_COMPARED", most)
        _C._forget_eager_programs()
        for right in (False, True):
            check_exact(torch.searchsorted, bounds, values, right=right)
            check_exact(
                torch.searchsorted, bounds[0], values, right=right, out_int32=True
            )
            check_exact(torch.bucketize, values, bounds[1], right=right)
    check_exact(torch.searchsorted, bounds[0], 2)
    check_exact(torch.searchsorted, bounds[0], values[:0])
    check_exact(torch.searchsorted, bounds[0, :0], values)
    order = bounds.argsort(-1)
    check_exact(
        lambda b, v, s: torch.searchsorted(b, v, sorter=s), bounds, values, order
    )


def test_bounds_of_buckets_have_one_dimension():
    bounds = torch.ones(3, 4, device="spyre")
    with pytest.raises(RuntimeError, match="must be 1 dimension"):
        torch.bucketize(bounds, bounds)


def test_search_of_nan():
    bounds, values = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([math.nan, 2.0])
    for right in (False, True):
        check_exact(torch.searchsorted, bounds, values, right=right)


@pytest.mark.parametrize("dtype", [F16, I64])
def test_isin(dtype):
    x, tested = draw((5, 13), dtype), draw((3,), dtype)
    for invert in (False, True):
        check_exact(torch.isin, x, tested, invert=invert)
    check_exact(torch.isin, x, 3)
    check_exact(torch.isin, 3, tested)
    check_exact(torch.isin, x, tested[:0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [s for s in SHAPES if 0 not in s[0]])
def test_running_extrema(shape, dim, dtype):
    x = draw(shape, dtype)
    check_exact(torch.cummax, x, dim)
    check_exact(torch.cummin, x, dim)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dim"), [((1025,), 0), ((3, 4099), 1), ((2500, 2), 0), ((2, 1536, 3), -2)]
)
def test_running_extrema_in_parts(shape, dim, dtype):
    x = draw(shape, dtype)
    for function in (torch.cummax, torch.cummin):
        check_exact(function, x, dim)
        check_exact(function, x.abs() if dtype == I64 else x.flip(dim), dim)


def test_running_extrema_in_parts_of_what_has_no_order():
    x = torch.randn(3, 5000)
    x[0, 700], x[0, 701], x[0, 3000], x[1, 0] = math.nan, math.inf, math.nan, math.nan
    x[2] = 0.0
    x[2, ::3] = -0.0
    infinite = torch.full((2000,), math.inf)
    for function in (torch.cummax, torch.cummin):
        check_exact(function, x, 1)
        values, _ = native(function, x[2], 0)
        assert_same(values.signbit(), function(x[2], 0).values.signbit())
        check_exact(function, infinite, 0)
        check_exact(function, -infinite, 0)
        check_compiled(lambda t, f=function: f(t + 1, 1), x)


def test_running_extrema_in_parts_of_parts():
    x = torch.randint(-(2**30), 2**30, (300_007,))
    check_exact(torch.cummax, x, 0)
    check_exact(torch.cummin, x[::2], 0)


def test_running_extrema_of_sizes_that_vary():
    """One program, whose row goes step by step, gives the bits of parts."""
    torch._dynamo.reset()
    check_bits_of_one_size(lambda x: x[:, :2].cummax(0), (0,), (2049, 3001, 4000))


def test_running_extrema_take_as_long_as_sums():
    """One after the other, 90 times as long."""
    _C._forget_eager_programs()  # Those for many sizes go step by step.
    sums = predicted_seconds(lambda x: x.cumsum(0), 1 << 17)
    assert predicted_seconds(lambda x: x.cummax(0), 1 << 17) < 8 * sums


def test_running_extrema_of_nan():
    x = torch.tensor([[1.0, -math.inf], [math.nan, 3.0], [7.0, 3.0], [math.nan, 4.0]])
    for function in (torch.cummax, torch.cummin):
        check_exact(function, x, 0)
        check_exact(function, x, 1)
        check_exact(function, torch.full((4,), -math.inf), 0)
        check_exact(function, torch.full((4,), math.inf), 0)


def test_compiled_graphs_give_the_same():
    x = torch.randn(9, 70, dtype=F16)
    check_compiled(lambda t: torch.sort(t * 2, dim=1, stable=True), x)
    check_compiled(lambda t: (t + 1).cummax(0), x)
    check_compiled(lambda t: torch.topk(t, 66).values * 2, x)
    check_compiled(lambda t: torch.median(t, 1), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sort(x, 1).values,
        lambda x: torch.kthvalue(x, 3, 0).values,
        lambda x: torch.median(x, 1).values,
        lambda x: torch.cummax(x, 1).values,
        lambda x: torch.cummin(x, 0).values,
        lambda x: torch.topk(x, 5).values,
    ],
)
def test_gradients(function):
    start = torch.randperm(60).reshape(6, 10).float()

    def differentiate(x):
        x = x.detach().requires_grad_()
        result = function(x)
        weights = torch.arange(result.numel(), device=x.device).reshape(result.shape)
        (result * weights).sum().backward()
        return x.grad

    assert_same(native(differentiate, start), differentiate(start))
