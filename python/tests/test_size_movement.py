# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes: padding, rotations, what is joined, writes to parts and
through indices, windows, and rows in order.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import assert_exact
from sized_graphs import check_bits_of_one_size
from torch_spyre.compile_backend import compiled_parts


def set_row(x):
    y = x * 2
    y[1] = x[0]
    return y


def set_columns(x):
    y = x * 2
    y[:, 3:7] = 0.25
    return y


def set_rest(x):
    y = x * 2
    y[1:] = x[:-1]
    return y


def places(x, count):
    """An index for each element, of a dimension of ``count``."""
    return (x.abs() * (count - 0.5)).long()


def scatter_mean(x):
    return x.scatter_reduce(0, places(x, 40), x, "mean")


def highest_per_place(x):
    start = torch.zeros(5, 70, dtype=x.dtype, device=x.device)
    return start.scatter_reduce(0, places(x, 5), x, "amax", include_self=False)


def convolve(x, stride=1):
    weight = torch.arange(24.0, device=x.device).view(2, 4, 3).to(x.dtype) / 8
    return F.conv1d(x[:4][None], weight, stride=stride, padding=1)


def resized(x, scale=2, **how):
    return F.interpolate(x[None, None], scale_factor=scale, **how)[0, 0]


def add_to_diagonal(x):
    y = x @ x.t()
    y.diagonal().add_(1)
    return y


def like_what_fills(x, dtype):
    """Many equal elements, among them those that come last in either order."""
    if dtype == torch.bool:
        return x > 0
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        x = (x * 4).to(dtype)
        return torch.where(x == 3, limits.max, torch.where(x == -3, limits.min, x)).to(
            dtype
        )
    x = (x * 4).round().to(dtype)
    last = math.nan if dtype == torch.float32 else math.inf
    return torch.where(x == 4, last, torch.where(x == -4, -math.inf, x))


def sort_both(x, dim, dtype):
    x = like_what_fills(x, dtype)
    return *torch.sort(x, dim), *torch.sort(x, dim, True)


#: Functions of a matrix, and the dimensions whose sizes vary.
FUNCTIONS = {
    "padded": (lambda x: F.pad(x, (0, 0, 1, 2)), (0,)),
    "padded along sticks": (lambda x: F.pad(x, (3, 1), value=0.5), (1,)),
    "padded at both": (lambda x: F.pad(x, (0, 2, 1, 0), value=-1.0), (0, 1)),
    "cropped and padded": (lambda x: F.pad(x, (2, -1)), (1,)),
    "backwards": (lambda x: x.flip(0), (0,)),
    "columns backwards": (lambda x: x.flip(1), (1,)),
    "the second row set": (set_row, (0,)),
    "some columns set": (set_columns, (0,)),
    "repeated": (lambda x: x.repeat(3, 1), (1,)),
    "rows repeated": (lambda x: x.repeat(3, 1), (0,)),
    "repeated along both": (lambda x: (x > 0).repeat(2, 3), (0, 1)),
    "repeated in front": (lambda x: x.repeat(2, 2, 1), (0,)),
    "padded to 200 rows": (lambda x: F.pad(x, (0, 0, 0, 200 - x.shape[0])), (0,)),
    "padded before": (lambda x: F.pad(x, (1, 0, 200 - x.shape[0], 2)), (0,)),
    "padded before along sticks": (
        lambda x: F.pad(x, (200 - x.shape[1], 0, 3, 0), value=0.5),
        (1,),
    ),
    "heads joined": (
        lambda x: torch.cat([x.view(-1, 7, 10).transpose(0, 1)] * 2, 1) * 2,
        (0,),
    ),
    "joined to 200 rows": (
        lambda x: torch.cat((x, x.new_zeros(200 - x.shape[0], 70))) - 1,
        (0,),
    ),
    "joined to 200 columns": (
        lambda x: torch.cat((x.new_ones(40, 200 - x.shape[1]), x), 1) * 2,
        (1,),
    ),
    "upper triangle": (lambda x: x.triu(x.shape[0] - 5), (0,)),
    "lower triangle": (lambda x: x.tril(x.shape[1] - 50), (1,)),
    "scattered sums": (
        lambda x: torch.zeros_like(x[:5]).scatter_add(0, places(x, 5), x),
        (1,),
    ),
    "sums of rows per place": (
        lambda x: (x[:5] * 0).index_add(0, places(x[:, 0], 5), x),
        (1,),
    ),
    "scattered number": (lambda x: x.scatter(1, places(x, 70), 0.5), (0,)),
    "scattered along sticks": (lambda x: x.scatter(0, places(x, 40), x + 1), (1,)),
    "means per place": (scatter_mean, (1,)),
    "highest per place": (highest_per_place, (0,)),
    "convolution": (convolve, (1,)),
    "nearest": (resized, (0, 1)),
    "bilinear": (lambda x: resized(x, mode="bilinear"), (0, 1)),
    "bilinear between corners": (
        lambda x: resized(x, mode="bilinear", align_corners=True),
        (0,),
    ),
    "bicubic": (lambda x: resized(x, mode="bicubic"), (1,)),
    "nearest, as large as": (
        lambda x: F.interpolate(x[None, None, :2, :3], size=x.shape)[0, 0],
        (0, 1),
    ),
    "bilinear, as large as": (
        lambda x: F.interpolate(x[None, None, :2, :3], x.shape, mode="bilinear")[0, 0],
        (0, 1),
    ),
    "bilinear, to one size": (
        lambda x: F.interpolate(x[None, None], (9, 70), mode="bilinear"),
        (0,),
    ),
    "diagonal": (lambda x: (x @ x.t()).diagonal() * 2, (0,)),
    "diagonals of a batch": (
        lambda x: (x @ x.t()).expand(3, -1, -1).diagonal(dim1=1, dim2=2) + 1,
        (0,),
    ),
    "sums beside a diagonal": (
        lambda x: torch.diagonal_scatter(x @ x.t(), x[:, 0] * 2),
        (0,),
    ),
    "added to a diagonal": (add_to_diagonal, (0,)),
    "identity": (
        lambda x: x @ x.t() + torch.eye(len(x), device=x.device, dtype=x.dtype),
        (0,),
    ),
    "filled with a size": (
        lambda x: (
            torch.full((5,), len(x), device=x.device),
            torch.full((2, 70), 2 * len(x) + 1, dtype=x.dtype, device=x.device),
        ),
        (0,),
    ),
    "ranges from a size": (
        lambda x: (
            torch.arange(len(x), 2 * len(x), device=x.device),
            torch.arange(len(x) - 1, -1, -1, device=x.device),
        ),
        (0,),
    ),
    "crossings apart": (
        lambda x: x[
            torch.arange(2, device=x.device).view(2, 1, 1) - 1,
            torch.arange(x.shape[1] - 1, -1, -1, device=x.device),
        ],
        (0, 1),
    ),
    "of each row as of a mask": (
        lambda x: (x > 0)[
            torch.arange(len(x), device=x.device)[:, None, None, None],
            torch.arange(x.shape[1], device=x.device),
        ],
        (0, 1),
    ),
    "crossings": (
        lambda x: x[
            torch.tensor([1, -2], device=x.device)[:, None],
            torch.tensor([-1, 0, -3], device=x.device),
        ],
        (0, 1),
    ),
    "highest so far": (lambda x: torch.cummax(x, 0), (0,)),
    "lowest so far": (lambda x: torch.cummin(x, 1), (1,)),
    "sorted rows": (lambda x: torch.sort(x, 1, descending=True), (0,)),
    "columns in order": (lambda x: sort_both(x, 0, torch.float16), (0,)),
    "in order along sticks": (lambda x: sort_both(x, 1, torch.float32), (1,)),
    "integers in order": (lambda x: sort_both(x, 1, torch.int32), (0, 1)),
    "bytes in order": (lambda x: sort_both(x, 0, torch.uint8), (0,)),
    "flags in order": (lambda x: sort_both(x, 1, torch.bool), (1,)),
    "number in order": (lambda x: torch.sort(x[:, 3]), (0,)),
    "second along it": (lambda x: torch.kthvalue(x, 2, 0), (0,)),
    "smallest along it": (lambda x: x.float().topk(2, 1, largest=False), (1,)),
    "third of each column": (lambda x: torch.kthvalue(x, 3, 0), (1,)),
    "lower triangle of flags": (lambda x: (x > 0).tril(1 - x.shape[0]), (0, 1)),
}
#: Of sizes from 3 on: for Dynamo, a size of 1 somewhere inside is another graph.
FROM_THREE = {
    "cropped": (lambda x: F.pad(x, (0, 0, -1, 0)) * 2, (0,)),
    "rolled": (lambda x: torch.roll(x, 1, 0), (0,)),
    "rolled back": (lambda x: torch.roll(x, -1, 1), (1,)),
    "rolled by all but one": (lambda x: torch.roll(x, x.shape[0] - 1, 0), (0,)),
    "rolled along both": (lambda x: torch.roll(x, (1, 3), (0, 1)), (0,)),
    "all rows but the first set": (set_rest, (0,)),
    "below a diagonal": (lambda x: (x @ x.t()).diagonal(-1) + 1, (0,)),
    "above a diagonal": (lambda x: (x @ x.t()).diagonal(1) + 1, (0,)),
}
SIZED = {
    **{name: (*own, 2) for name, own in FUNCTIONS.items()},
    **{name: (*own, 3) for name, own in FROM_THREE.items()},
}


#: Those of which no plan serves all sizes.
IN_TWO_PROGRAMS = {"third of each column"}


@pytest.mark.parametrize("name", SIZED)
def test_bits_of_a_program_of_one_size(name):
    function, dims, least = SIZED[name]
    check_bits_of_one_size(
        function,
        dims,
        (7, least, 63, 64, 65, 130, 3),
        programs_each=2 if name in IN_TWO_PROGRAMS else 1,
    )


def test_channels_last():
    """Where PyTorch infers strides from sizes that vary, with torch.empty."""

    def function(x):
        return x.contiguous(memory_format=torch.channels_last) * 2

    f = torch.compile(function, backend="spyre", dynamic=True)
    for rows in (7, 64, 3):
        x = values((2, 3, rows, 5), torch.float16, rows).round()
        actual = f(x.to("spyre"))
        assert actual.is_contiguous(memory_format=torch.channels_last)
        assert_exact(actual.cpu(), function(x), f"{rows} rows")


def read_rows(x, table):
    return x * 2 + table[: x.shape[0]]


def write_rows(x, table):
    table[: x.shape[0]] = x + 1
    return table * 2


@pytest.mark.parametrize("function", [read_rows, write_rows])
def test_up_to_all_of_a_table(function):
    """A size may be as large as what it is a part of, and no larger."""
    f = torch.compile(function, backend="spyre", dynamic=True)
    before = len(compiled_parts())
    for rows in (7, 130, 64, 2, 129):
        x = values((rows, 70), torch.float16, rows).round()
        table = values((130, 70), torch.float16, 1).round()
        device = table.to("spyre")
        torch._dynamo.mark_static(device)
        actual = f(x.to("spyre"), device)
        assert_exact(actual.cpu(), function(x, table), f"{rows} rows")
        assert_exact(device.cpu(), table, f"{rows} rows")
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [1]


def test_joined_to_what_is_left_of_a_table():
    """The longest parts are not those of one size."""

    def function(x, table):
        return torch.cat((x, x, table[x.shape[0] :]))

    f = torch.compile(function, backend="spyre", dynamic=True)
    before = len(compiled_parts())
    table = values((140, 70), torch.float16, 1).round()
    device = table.to("spyre")
    torch._dynamo.mark_static(device)
    for rows in (7, 130, 64, 2, 129):
        x = values((rows, 70), torch.float16, rows).round()
        assert_exact(f(x.to("spyre"), device).cpu(), function(x, table), f"{rows} rows")
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [1]


def test_parts_of_a_table_joined():
    """No core divides what is computed in LX and read from a place in it on."""

    def function(x):
        rows = x.shape[1]
        table = torch.arange(127, device=x.device)[None, :, None] * torch.arange(
            254, device=x.device
        )
        parts = [table[:, :rows, start : start + rows] for start in (0, 128)]
        return torch.cat(parts, 2).repeat(x.shape[0], 1, 1).transpose(1, 2).contiguous()

    f = torch.compile(function, backend="spyre", dynamic=True)
    before = len(compiled_parts())
    for batch, rows in ((2, 9), (3, 60), (4, 17), (2, 5)):
        x = values((batch, rows, 64), torch.float16, rows)
        assert torch.equal(f(x.to("spyre")).cpu(), function(x)), rows
    assert len(compiled_parts()) == before + 1


def test_windows_put_back():
    """Windows of an image are normalised in its order, in LX."""

    def function(x, weight, scale, bias):
        y = F.linear(x.view(-1, 32), weight)
        y = y.view(-1, 2, 2, 4, 4, 32).permute(0, 1, 3, 2, 4, 5)
        y = y.contiguous().view(x.shape[0], 64, 32)
        return F.layer_norm(y, (32,), scale, bias) + x

    f = torch.compile(function, backend="spyre", dynamic=True)
    before = len(compiled_parts())
    weights = [values(n, torch.float16, i) for i, n in enumerate(((32, 32), 32, 32))]
    device = [w.to("spyre") for w in weights]
    for weight in device:
        torch._dynamo.mark_static(weight)
    for images in (2, 3, 64, 33):
        x = values((images, 64, 32), torch.float16, images)
        expected = function(*(t.float() for t in (x, *weights)))
        error = (f(x.to("spyre"), *device).cpu() - expected).abs().max()
        assert error <= 0.02 * expected.abs().max(), images
    assert len(compiled_parts()) == before + 1


def test_parts_changed_after_they_are_joined():
    """Who reads them before that sees what was there, and the plan is right."""

    def function(x):
        y = torch.roll(x * 2, -2, 1)
        total = y.sum(0)
        y[:, 0] = 0.5
        return total, y * 2

    f = torch.compile(function, backend="spyre", dynamic=True)
    before = len(compiled_parts())
    for batch, rows in ((2, 9), (3, 130), (4, 64), (2, 33)):
        x = values((batch, rows, 24), torch.float32, rows)
        for found, wanted in zip(f(x.to("spyre")), function(x), strict=True):
            assert_exact(found.cpu(), wanted, str(rows))
    assert len(compiled_parts()) == before + 1
