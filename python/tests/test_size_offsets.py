# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes, where something begins at one of them."""

import pytest
import torch
from inputs import values
from numerics import assert_exact, compiled, poisoned
from test_sizes import num_sizes, parts_since, run
from torch_spyre.compile_backend import compiled_parts

#: Functions of a matrix, which read what begins at a size that varies.
OFFSETS = {
    "the last row": lambda x: x[-1] * 2,
    "the last row as a matrix": lambda x: x[-1:] * 2,
    "the last three rows": lambda x: x[-3:] + x[:3],
    "the last row's last columns": lambda x: x[-1, 67:] * 2,
    "the last rows' heads": lambda x: x[-3:].unflatten(1, (7, -1)).transpose(0, 1) + 1,
    "the last rows, times the first": lambda x: x[-3:] @ x[:5].t(),
    "the last of what is computed": lambda x: (x * 2)[-2:] + 1,
    "a part of the last of it": lambda x: (x * 2)[-3:][1:, 5:] + 1,
    "a view of the last": lambda x: ((x * 2)[-3:], (x * 2).sum()),
}


@pytest.mark.parametrize("most", [None, 20])
@pytest.mark.parametrize("function", OFFSETS.values(), ids=OFFSETS)
def test_slices_at_offsets_that_vary(function, most):
    """Of rows; with few sizes the plan of each is verified by itself."""
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    sizes = (7, 6, 20, 19) if most else (7, 65, 63, 64, 66, 130, 6, 511)
    for size in sizes:
        x = values((size, 70), torch.float16, size).round()
        placed = poisoned(x.to("spyre"))
        torch._dynamo.mark_dynamic(placed, 0, min=6, max=most or 512)
        actual = f(placed)
        for a, w in zip(as_tuple(actual), as_tuple(function(x)), strict=True):
            assert a.stride() == w.stride() and a.storage_offset() == w.storage_offset()
            assert_exact(a.cpu(), w, f"s = {size}")
    programs = parts_since(before)
    assert len(programs) == 1 and num_sizes(programs[0]) >= 1


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_columns_at_offsets_that_vary(dtype):
    def function(x):
        return x[:, -1:], x[:, -3:-1] == x[:, :2], x[1:, -2]

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (7, 3, 64, 65, 66, 130):
        x = values((5, size), torch.float32, size).round().to(dtype)
        wanted = function(x)
        for a, w in zip(run(f, x, dims=[(0, 1)]), wanted, strict=True):
            assert_exact(a, w, f"s = {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1]


def test_the_last_rows_if_there_are_so_many():
    """max(0, s - 9) is one or the other: a program for each range of sizes."""

    def function(x):
        return x[-9:] * 2

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (4, 20, 8, 9, 10, 3, 64, 65, 2):
        x = values((size, 70), torch.float16, size).round()
        assert_exact(run(f, x), function(x), f"s = {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1, 1]


def test_strides_that_do_not_change():
    """Parts of buffers that callers hold: strides and offsets become numbers."""

    def function(x, y):
        return x + y.sum(1, keepdim=True)

    f = compiled(function, dynamic=True)
    before = len(compiled_parts())
    for size in (5, 70, 33, 8):
        x = values((90, 48), torch.float16, size).round()
        y = values((size, 20), torch.float16, 1).round()
        placed = poisoned(x.to("spyre"))
        actual = f(placed[4 : 4 + size, 8:], y.to("spyre")).cpu()
        assert_exact(actual, function(x[4 : 4 + size, 8:], y), f"s = {size}")
    # All sizes become numbers in the first call, before it is known which vary.
    assert len(parts_since(before)) == 2
    # Beyond what such a buffer holds.
    x = values((520, 48), torch.float16).round()
    y = values((500, 20), torch.float16, 1).round()
    actual = f(x.to("spyre")[4:504, 8:], y.to("spyre")).cpu()
    assert_exact(actual, function(x[4:504, 8:], y))


def test_inputs_at_offsets_that_nothing_asks_for():
    """Dynamo saw 0, and asks for no offset later: experts of a list of weights."""

    def function(x, w):
        product = x @ w.t()
        w.mul_(2)
        return product, w[1:]

    f = compiled(function, dynamic=True)
    before = len(compiled_parts())
    made = values((6, 96, 64), torch.float16, 0, -2, 2).round()
    placed = made.to("spyre")
    for number, size in ((0, 3), (1, 70), (5, 8), (0, 64), (3, 129), (4, 2)):
        x = values((size, 64), torch.float16, size, -2, 2).round()
        product, rows = f(poisoned(x.to("spyre")), placed[number])
        wanted, part = function(x, made[number])
        assert_exact(product.cpu(), wanted, f"s = {size}")
        assert rows.storage_offset() == part.storage_offset()
        assert rows.untyped_storage()._cdata == placed.untyped_storage()._cdata
        assert_exact(placed.cpu(), made, f"number {number}")
    assert [num_sizes(p) for p in parts_since(before)] == [3]


def test_inputs_at_offsets_within_sticks():
    """Elements of other places in the stick: a program for each, for all sizes."""

    def function(x, w):
        return x * w

    f = compiled(function, dynamic=True)
    before = len(compiled_parts())
    made = values((1024,), torch.float16, 0).round()
    placed = made.to("spyre")
    for offset, size in ((0, 70), (37, 130), (101, 65), (37 + 512, 7), (37, 400)):
        x = values((size,), torch.float16, size).round()
        part = slice(offset, offset + size)
        actual = f(x.to("spyre"), placed[part]).cpu()
        assert_exact(actual, function(x, made[part]), f"s = {size}")
    programs = parts_since(before)
    assert len(programs) <= 3 and all(num_sizes(p) for p in programs)


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_numbers_that_are_no_sizes(number):
    """0 and 1 are numbers of their own, and the rows still vary."""

    def function(x, n):
        return x * n + torch.arange(x.shape[0] + n, device=x.device)[n:, None]

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for n in (30, 31):
        f(torch.zeros(5, 70).half().to("spyre"), n)
    made = len(compiled_parts())
    for size in (7, 3, 64, 65):
        x = values((size, 70), torch.float16, size).round()
        placed = poisoned(x.to("spyre"))
        torch._dynamo.mark_dynamic(placed, 0)
        assert_exact(f(placed, number).cpu(), function(x, number), f"s = {size}")
    assert made - before <= 2 and len(compiled_parts()) - made <= 2


def test_quotients():
    """Of a size that varies: symbols of their own, which follow it."""

    def function(x, step):
        count = (x.shape[0] + 63) // 64
        blocks = torch.arange(count + 2, device=x.device)
        rows = (blocks[:, None] * 64 + step).clamp(max=x.shape[0] - 1)
        return x.index_select(0, rows.reshape(-1)).view(count + 2, 64, -1).sum(1)

    step = torch.arange(64)
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (2, 63, 64, 65, 127, 128, 129, 251, 511, 512, 3):
        x = values((size, 40), torch.float16, size, -4, 4).round()
        assert_exact(run(f, x, step), function(x, step), f"s = {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [2]


def test_quotients_that_may_be_zero(capfd):
    """Only sizes at which they are not may share a program: no symbol is 0."""

    def function(x):
        third = x.shape[0] // 3
        return x.narrow(0, third, third), x.square()

    f = compiled(function, dynamic=True)
    for size in (128, 2, 64, 3, 129, 2, 5):
        x = values((size, 5), torch.float16, size, -4, 4).round()
        for actual, wanted in zip(run(f, x, dims=()), function(x), strict=True):
            assert_exact(actual, wanted, f"s = {size}")
    assert "error" not in capfd.readouterr().err


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_stored_at_offsets_that_vary(rows):
    """Of a tensor of one size: the offset is the size of another one."""

    def function(x, y, past):
        begin = past.shape[0]
        return x.slice_scatter(y, 0, begin, begin + rows)

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    x, y = (values((n, 70), torch.float16, n).round() for n in (80, rows))
    for size in (2, 7, 63, 64, 70):
        past = torch.zeros(size)
        placed = [t.to("spyre") for t in (x, y, past)]
        torch._dynamo.mark_dynamic(placed[2], 0, min=2, max=70)
        wanted = function(x, y, past)
        assert_exact(f(*placed).cpu(), wanted, f"s = {size}")
    assert len(parts_since(before)) == 1


def test_parts_of_batches_as_rows():
    """What begins at an offset that varies is copied: as many rows as there are."""

    def function(x):
        return x[2:].flatten(1, 3).count_nonzero()

    f = compiled(function, dynamic=True)
    for size in (31, 129, 127, 500, 2):
        x = values((3, 2, size, 64), torch.float16, size, -4, 4).round()
        assert_exact(run(f, x, dims=()), function(x), f"s = {size}")
