# SPDX-License-Identifier: Apache-2.0
"""Results with as many elements as the values say, against the CPU."""

import math

import pytest
import torch
from aten_rows import F16, F32, I64
from native_calls import assert_same, check_exact, native
from torch_spyre.decompositions import selection
from torch_spyre.errors import Unsupported

SHAPES = [(), (0,), (1,), (7,), (65,), (3, 5), (2, 0, 3), (2, 3, 4), (5000,)]


def draw(shape, dtype=F16):
    values = torch.randint(-2, 3, shape)
    return values > 0 if dtype == torch.bool else values.to(dtype)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.bool, torch.uint8])
@pytest.mark.parametrize("shape", SHAPES)
def test_nonzero(shape, dtype):
    x = draw(shape, torch.int8).abs().to(dtype)
    check_exact(torch.nonzero, x)
    check_exact(torch.argwhere, x)
    check_exact(torch.nonzero_static, x, size=4, fill_value=-7)


def test_more_elements_than_one_program_selects(monkeypatch):
    monkeypatch.setattr(selection, "_MOST", 64)
    for shape in [(65,), (128,), (7, 31), (3, 1, 67)]:
        x = torch.arange(torch.Size(shape).numel()).reshape(shape) % 3
        check_exact(torch.nonzero, x)
        check_exact(torch.masked_select, x, x > 0)
        check_exact(torch.masked_select, x[:1], x == 2)
    check_exact(torch.nonzero, torch.zeros(3, 70))


def test_nonzero_of_two_million_elements():
    """All of them at once would be more than a core addresses."""
    x = torch.zeros(2, 1 << 20, dtype=torch.bool)
    x[:, ::65537] = True
    assert torch.equal(x.to("spyre").nonzero().cpu(), x.nonzero())


@pytest.mark.parametrize("shape", [(), (5,), (5, 3), (2, 0, 3), (1, 1)])
def test_nonzero_lies_as_on_the_host(shape):
    """Column by column, as PyTorch says of it while it traces."""
    for x in (torch.ones(shape), torch.zeros(shape)):
        assert x.to("spyre").nonzero().stride() == x.nonzero().stride()


def test_nonzero_of_all_and_none():
    check_exact(torch.nonzero, torch.ones(3, 70))
    check_exact(torch.nonzero, torch.zeros(3, 70))
    check_exact(lambda x: torch.where(x), torch.eye(5))
    check_exact(torch.nonzero, torch.eye(70)[::2, 3:].t())


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.bool])
@pytest.mark.parametrize("shape", SHAPES)
def test_masked_select(shape, dtype):
    x, mask = draw(shape, dtype), draw(shape, torch.bool)
    check_exact(torch.masked_select, x, mask)
    check_exact(torch.masked_select, x, torch.zeros_like(mask))
    check_exact(torch.masked_select, x, torch.ones_like(mask))


def test_masks_broadcast():
    x = torch.arange(15.0).reshape(3, 5)
    check_exact(torch.masked_select, x, torch.tensor([True, False, True, True, False]))
    check_exact(torch.masked_select, x[:, :1], torch.ones(3, 5, dtype=torch.bool))
    check_exact(torch.combinations, torch.arange(6.0), 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_masked_scatter(shape):
    x, mask = draw(shape), draw(shape, torch.bool)
    source = torch.arange(max(x.numel(), 1)).to(F16)
    check_exact(torch.masked_scatter, x, mask, source)


def test_a_source_that_is_too_short():
    x, mask = torch.zeros(5), torch.ones(5, dtype=torch.bool)
    for source in (torch.ones(4), torch.ones(0)):
        with pytest.raises(RuntimeError, match="index"):
            native(torch.masked_scatter, x, mask, source)


def test_indexing_by_masks():
    x = torch.arange(60.0).reshape(3, 4, 5)
    rows, all_ = torch.tensor([True, False, True]), x > 30
    check_exact(lambda t, m: t[m], x, all_)
    check_exact(lambda t, m: t[m], x, rows)
    check_exact(lambda t, m: t[:, :, m], x, torch.arange(5) % 2 == 0)
    check_exact(lambda t, m, i: t[m, i], x, rows, torch.tensor([1, 3]))
    check_exact(lambda t, m: t[m], x, x[..., 0] > 20)


def test_writing_by_masks():
    def put(t, m, v):
        t = t.clone()
        t[m] = v
        return t

    x = torch.arange(60.0).reshape(3, 4, 5)
    rows, all_ = torch.tensor([True, False, True]), x > 30
    check_exact(put, x, all_, 7.0)
    check_exact(put, x, all_, torch.arange(29.0))
    check_exact(put, x, rows, 7.0)
    check_exact(put, x, rows, torch.arange(20.0).reshape(4, 5))
    check_exact(put, x, rows, torch.arange(40.0).reshape(2, 4, 5))
    check_exact(
        lambda t, m, v: t.index_put((m,), v, accumulate=True),
        x,
        all_,
        torch.arange(29.0),
    )
    for values in (torch.ones(28), torch.ones(30)):
        with pytest.raises(IndexError, match="shape mismatch"):
            native(put, x, all_, values)
    with pytest.raises(IndexError, match="mask"):
        native(lambda t, m: t[m], x, all_[:2])


def test_indices_on_the_cpu():
    """They are copied to the device, as on other accelerators."""
    x, index = torch.arange(64.0).reshape(32, 2), torch.randint(0, 32, (16,))
    values = torch.arange(16.0)
    check_exact(lambda t: t[index], x)
    check_exact(lambda t: t[index, index % 2], x)
    check_exact(lambda t, v: t.index_put((index[:1], index[:1] % 2), v[:1]), x, values)
    check_exact(
        lambda t, v: t.index_put((index, index % 2), v, accumulate=True), x, values
    )


@pytest.mark.parametrize("dtype", [I64, torch.int32])
def test_repeat_interleave(dtype):
    repeats = torch.tensor([2, 0, 3, 1], dtype=dtype)
    check_exact(torch.repeat_interleave, repeats)
    x = torch.arange(20.0).reshape(4, 5)
    check_exact(torch.repeat_interleave, x, repeats, dim=0)
    check_exact(torch.repeat_interleave, x, repeats, dim=0, output_size=6)
    check_exact(torch.repeat_interleave, x, 3, dim=1)
    check_exact(torch.repeat_interleave, repeats[:0])
    with pytest.raises(RuntimeError, match="negative"):
        native(torch.repeat_interleave, torch.tensor([1, -1]))


def test_more_numbers_than_the_device_counts():
    many = torch.tensor([2**31 - 1] * 40)
    with pytest.raises(RuntimeError, match="makes 85899345880 numbers, more than"):
        native(torch.repeat_interleave, many)
    # An operator of ours that is refused has no kernel on the CPU.
    own = torch.ops.spyre.repeat_numbers
    with pytest.raises(Unsupported, match=r"repeat_numbers \(.*: there is no program"):
        own(many.to("spyre"), 85899345880)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.bool, torch.uint8])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (65,), (5, 13), (2, 3, 4)])
def test_unique(shape, dtype):
    x = draw(shape, torch.int8).abs().to(dtype)
    flags = {"return_inverse": True, "return_counts": True}
    check_exact(torch.unique, x)
    check_exact(torch.unique, x, **flags)
    check_exact(torch.unique_consecutive, x, **flags)
    for dim in range(x.dim() if x.numel() else 0):
        check_exact(torch.unique, x, dim=dim, **flags)
        check_exact(torch.unique_consecutive, x, dim=dim, **flags)


@pytest.mark.parametrize("count", [16385, 40000])
def test_unique_of_more_than_are_sorted_at_once(count):
    x = torch.randint(-500, 500, (count,))
    flags = {"return_inverse": True, "return_counts": True}
    check_exact(torch.unique, x.float(), **flags)
    check_exact(torch.unique, x[:, None].repeat(1, 2), dim=0, **flags)
    check_exact(torch.unique_consecutive, x.sort().values, **flags)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.int32, torch.uint8, torch.bool])
def test_unique_of_many(dtype):
    """Also of the greatest number, and of NaN, which come last.

    Which NaN is which, is left to the sort inside.
    """
    x = torch.randint(-500, 500, (17011,)).abs().to(dtype)
    if dtype.is_floating_point:
        x[::7] = math.inf
    elif dtype != torch.bool:
        limits = torch.iinfo(torch.int32 if dtype == I64 else dtype)
        x[::7], x[1::9] = limits.max, limits.min
    check_exact(torch.unique, x, return_inverse=True, return_counts=True)
    if dtype == F32:
        x[::91] = math.nan
        check_exact(torch.unique, x, return_counts=True)
        found, inverse = native(torch.unique, x, return_inverse=True)
        assert_same(found[inverse], x)
        assert inverse[x.isnan()].unique().numel() == x.isnan().sum()


def test_unique_of_many_takes_little_longer_than_their_sort():
    """With scatters of all elements, 20 times as long."""

    def predicted_seconds(function):
        with torch.spyre.profiler.profile() as trace:
            function(x)
            torch.spyre.synchronize()
        return sum(kernel.predicted_seconds for kernel in trace.kernels)

    x = torch.zeros(1 << 17, device="spyre")
    assert predicted_seconds(torch.unique) < 4 * predicted_seconds(torch.sort)


def test_every_nan_is_unique():
    x = torch.tensor([1.0, math.nan, 1.0, math.nan])
    check_exact(torch.unique, x, return_counts=True)


def test_programs_do_not_depend_on_counts():
    """Of two calls with other counts, the second compiles a copy at most."""
    from torch_spyre import _C

    x = torch.arange(300) % 7
    native(torch.nonzero, (x < 3).float())
    before = dict(_C.native_report())
    native(torch.nonzero, (x < 4).float())
    after = _C.native_report()
    counted = "spyre::nonzero_padded"
    assert after[counted][0] == before[counted][0] + 1


def test_gradients():
    start, mask = torch.randn(4, 5), torch.rand(4, 5) > 0.5

    def differentiate(x, m):
        x = x.detach().requires_grad_()
        y = x * 2
        selected = (y.masked_select(m).sum() + y[m].square().sum()) * 2
        scattered = y.masked_scatter(m, x.reshape(-1)).sum()
        (selected + scattered + y.masked_fill(m, 0.0).sum()).backward()
        return x.grad

    actual, expected = native(differentiate, start, mask), differentiate(start, mask)
    assert torch.allclose(actual, expected, rtol=2**-20, atol=0)


def test_one_hot_and_counts():
    x = torch.randint(0, 9, (40,))
    check_exact(torch.bincount, x, minlength=12)
    check_exact(torch.nn.functional.one_hot, x, 9)
    assert_same(native(torch.bincount, x[:0]), torch.bincount(x[:0]))


def test_unique_rows_of_nothing():
    for shape, dim in (((0, 5), 0), ((5, 0), 1)):
        check_exact(torch.unique, torch.zeros(shape), dim=dim, return_inverse=True)
