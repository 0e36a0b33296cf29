# SPDX-License-Identifier: Apache-2.0
"""Views, copies, joins, creation, indexing: bit for bit."""

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import assert_exact, check_all, compiled, device_value, on_host
from torch_spyre import fallback_report
from torch_spyre.frontend import eager

DTYPES = [torch.float16, torch.float32, torch.int64, torch.bool]


def stored(t):
    """A host tensor as it comes back from the device."""
    return on_host(device_value(t), t.dtype)


def moves(functions, *inputs):
    """Checks against the same moves of the stored values on the host."""
    expected = [stored(i) for i in inputs]

    def check(function):
        return lambda actual, name: assert_exact(actual, function(*expected), name)

    check_all(
        {name: (f, check(f)) for name, f in functions.items()},
        [i.to("spyre") for i in inputs],
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_made_real(dtype):
    """Each view is copied, so that the copy reads through it."""
    x = values((6, 10, 67), dtype)
    one = values((1, 65, 1), dtype, seed=1)
    functions = {
        "view": lambda x, o: x.view(60, 67),
        "reshape": lambda x, o: x.reshape(4, 15, 67),
        "reshape across": lambda x, o: x.reshape(67, 60),
        "permute": lambda x, o: x.permute(2, 0, 1),
        "transpose": lambda x, o: x.transpose(0, 2),
        "permute reshape": lambda x, o: x.permute(1, 0, 2).reshape(10, 402),
        "expand": lambda x, o: o.expand(3, 65, 70),
        "squeeze": lambda x, o: o.squeeze(),
        "unsqueeze": lambda x, o: x.unsqueeze(1),
        "slice": lambda x, o: x[1:5, 2:9:3, 3:66:2],
        "slice sticks": lambda x, o: x[:, :, 64:],
        "select": lambda x, o: x[3],
        "select last": lambda x, o: x[..., 65],
        "negative": lambda x, o: x[-2:, :, -5:],
        "flatten": lambda x, o: x.flatten(),
        "chunk": lambda x, o: x.chunk(3, 0)[1],
        "split": lambda x, o: x.split([30, 37], -1)[1],
        "unfold": lambda x, o: x.unfold(2, 8, 7),
        "diagonal": lambda x, o: x[0].diagonal(),
        "unflatten": lambda x, o: x.unflatten(0, (2, 3)),
        "movedim": lambda x, o: x.movedim(0, -1),
    }

    def real(view):
        return lambda *i: view(*i).clone(memory_format=torch.contiguous_format)

    moves({n: real(f) for n, f in functions.items()}, x, one)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_joins(dtype):
    x, y = values((5, 3, 67), dtype), values((5, 3, 67), dtype, seed=1)
    functions = {
        "cat 0": lambda x, y: torch.cat((x, y, x)),
        "cat 1": lambda x, y: torch.cat((x, y[:, 1:]), 1),
        "cat last": lambda x, y: torch.cat((x, y), -1),
        "cat odd": lambda x, y: torch.cat((x[..., :5], y, x[..., 60:]), -1),
        "cat empty": lambda x, y: torch.cat((x[:0], y)),
        "stack": lambda x, y: torch.stack((x, y)),
        "stack last": lambda x, y: torch.stack((x, y), -1),
        "stack middle": lambda x, y: torch.stack((x, y), 1),
        "clone": lambda x, y: x.clone(),
        "contiguous": lambda x, y: x.transpose(0, 2).contiguous(),
        "tril": lambda x, y: x.tril(),
        "triu": lambda x, y: x.triu(-1),
        "slice_scatter": lambda x, y: torch.slice_scatter(x, y[1:3], 0, 2, 4),
        "slice_scatter step": lambda x, y: torch.slice_scatter(
            x, y[..., :20], 2, 5, 65, 3
        ),
        "select_scatter": lambda x, y: torch.select_scatter(x, y[:, 1], 1, 2),
        "repeat": lambda x, y: x.repeat(2, 1, 3),
    }
    if dtype == torch.bool:
        del functions["tril"], functions["triu"]
    moves(functions, x, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
def test_padding(dtype):
    x = values((3, 5, 67), dtype)
    moves(
        {
            "last": lambda x: F.pad(x, (1, 2)),
            "all": lambda x: F.pad(x, (0, 61, 2, 0, 1, 1), value=3),
            "negative": lambda x: F.pad(x, (-3, 4)),
            "nothing": lambda x: F.pad(x, (0, 0)),
        },
        x,
    )


def test_creation():
    x = values((5, 67), torch.float16)
    functions = {
        "zeros": lambda x: torch.zeros(3, 65, dtype=x.dtype, device=x.device),
        "ones": lambda x: torch.ones(65, dtype=torch.float32, device=x.device),
        "ones int": lambda x: torch.ones(2, 65, dtype=torch.int64, device=x.device),
        "full": lambda x: torch.full((2, 3), 2.5, dtype=x.dtype, device=x.device),
        "full bool": lambda x: torch.full((7,), True, device=x.device),
        "zeros_like": lambda x: torch.zeros_like(x),
        "ones_like": lambda x: torch.ones_like(x, dtype=torch.float32),
        "full_like": lambda x: torch.full_like(x, -1.5),
        "new_zeros": lambda x: x.new_zeros(4, 70),
        "arange": lambda x: torch.arange(70, device=x.device),
        "arange step": lambda x: torch.arange(3, 200, 7, device=x.device),
        "arange half": lambda x: torch.arange(65, dtype=x.dtype, device=x.device),
        "arange float": lambda x: torch.arange(0, 8, 0.25, device=x.device),
        "zero_dim": lambda x: torch.full((), 3, device=x.device),
        "empty size": lambda x: torch.zeros(0, 5, device=x.device),
        "causal mask": lambda x: torch.ones(
            9, 70, dtype=torch.bool, device=x.device
        ).tril(),
        "used": lambda x: x + 0,
    }
    moves(functions, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_indexing(dtype):
    x = values((9, 5, 67), dtype)
    rows = torch.tensor([3, 0, 8, 3, 7])
    columns = torch.tensor([66, 0, 5, 64])
    full = torch.randint(0, 5, (9, 3, 67), generator=torch.Generator().manual_seed(3))
    functions = {
        "index_select 0": lambda x, r, c, f: x.index_select(0, r),
        "index_select 1": lambda x, r, c, f: x.index_select(1, r[1:2]),
        "index_select last": lambda x, r, c, f: x.index_select(2, c),
        "index": lambda x, r, c, f: x[r],
        "index of matrix": lambda x, r, c, f: x[r.view(5, 1).expand(5, 2)],
        "gather": lambda x, r, c, f: x.gather(1, f),
        "gather last": lambda x, r, c, f: x.gather(2, f[..., :4]),
        "gather 0": lambda x, r, c, f: x.gather(0, f[:2]),
    }
    moves(functions, x, rows, columns, full)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_embedding(dtype):
    weight = values((53, 130), dtype)
    tokens = values((2, 7), torch.uint8).long() % 53
    moves(
        {
            "embedding": lambda w, t: F.embedding(t, w),
            "embedding of one": lambda w, t: F.embedding(t[0, 0], w),
            "embedding of int32": lambda w, t: F.embedding(t.int(), w),
        },
        weight,
        tokens,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_updates_of_fresh_tensors(dtype):
    """In-place writes that functionalisation turns into scatters."""
    x, y = values((6, 5, 67), dtype), values((6, 5, 67), dtype, seed=1)
    rows = torch.tensor([4, 0])

    def copy_slice(x, y, r):
        z = x.clone()
        z[1:3].copy_(y[2:4])
        return z

    def fill_column(x, y, r):
        z = x.clone()
        z[:, :, 65] = 1
        return z

    def index_copy(x, y, r):
        return x.index_copy(0, r, y[:2])

    def index_copy_middle(x, y, r):
        return x.index_copy(1, r, y[:, 1:3])

    moves(
        {
            "copy to slice": copy_slice,
            "fill a column": fill_column,
            "index_copy": index_copy,
            "index_copy middle": index_copy_middle,
            "index_put": lambda x, y, r: x.index_put((r,), y[:2]),
        },
        x,
        y,
        rows,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 64), (2, 128), (33, 63), (3, 65), (2, 1, 64)])
def test_updates_across_sticks(dtype, shape):
    """Rows that start within a stick: each shares sticks with its neighbours."""
    size = torch.Size(shape).numel()
    flat = values((size + 128,), dtype)
    y = values(shape, dtype, seed=1)
    refusals = eager.refusals()
    for offset in (1, 63, 65):
        expected = stored(flat)
        expected[offset : offset + size] = stored(y).flatten()
        for run in (torch.Tensor.copy_, compiled(lambda x, y: x.copy_(y))):
            actual = flat.to("spyre")
            run(actual[offset : offset + size].view(shape), y.to("spyre"))
            assert_exact(actual.cpu(), expected, f"offset {offset}")
    assert eager.refusals() == refusals


@pytest.mark.parametrize("shape", [(), (5,), (2, 0), (3, 63)], ids=str)
def test_one_hot(shape):
    """In compiled graphs it asserts that its numbers are classes."""
    rows = values(shape, torch.int64).remainder(7)
    expected = F.one_hot(rows, 7)
    for run in (F.one_hot, compiled(lambda x, n: F.one_hot(x, n))):
        assert_exact(run(rows.to("spyre"), 7).cpu(), expected)
    assert fallback_report() == {}


def test_assertions():
    """They read their scalar from the device."""
    for is_true in (torch.tensor(True), torch.tensor([1]), torch.tensor([[0.5]])):
        torch._assert_async(is_true.to("spyre"))
        torch._assert_async(is_true.to("spyre"), "said")
    with pytest.raises(RuntimeError, match="nonzero value, but got zero"):
        torch._assert_async(torch.tensor([0]).to("spyre"))
    with pytest.raises(RuntimeError, match="said"):
        torch._assert_async(torch.tensor(False).to("spyre"), "said")
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(torch.zeros(2).to("spyre"))
    assert fallback_report() == {}
