# SPDX-License-Identifier: Apache-2.0
"""Errors of operators that run by themselves."""

import warnings

import pytest
import torch
from numerics import compiled
from torch.nn.functional import embedding, linear

UPDATES = {
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(y),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 1),
    "clamp_": lambda x, y: x.clamp_(min=y),
}


@pytest.fixture
def refuse():
    """The CPU says what is wrong with a call."""


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 1)], ids=str)
def test_arguments_do_not_grow(name, shape):
    """What is updated in place keeps its sizes; only ``out=`` gets those of a result."""
    x, y = torch.zeros(shape, device="spyre"), torch.ones(3, 65, device="spyre")
    with pytest.raises(RuntimeError, match=r"shape|size"):
        UPDATES[name](x, y)
    assert x.shape == shape
    assert not x.cpu().any()


def test_the_operator_that_was_called_is_named():
    """Also where another one computes the same."""
    table = torch.randn(5, 7).half().to("spyre")
    index = torch.tensor([1, 9]).to("spyre")
    calls = {
        "embedding": lambda: embedding(index, table),
        "index_select": lambda: table.index_select(0, index),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=rf"<aten\.{name}\.default>"):
            call().cpu()


DIFFERENT = {
    "mm": (torch.mm, (2, 4), (4, 2)),
    "bmm": (torch.bmm, (1, 2, 4), (1, 4, 2)),
    "batch of rows": (torch.matmul, (2, 3, 4), (4, 2)),
    "mv": (torch.mv, (2, 4), (4,)),
    "rows": (torch.matmul, (4,), (4, 2)),
    "dot": (torch.dot, (4,), (4,)),
    "linear": (linear, (2, 4), (3, 4)),
    "bias": (lambda x, y: linear(x, x, y), (2, 4), (2,)),
    "addmm": (lambda x, y: torch.addmm(y, x, x), (3, 3), (3, 3)),
    "addmv": (lambda x, y: torch.addmv(y, x, x[0]), (3, 3), (3,)),
    "baddbmm": (lambda x, y: torch.baddbmm(y, x, x), (1, 3, 3), (1, 3, 3)),
    "index_add": (lambda x, y: x.index_add(0, 0 * x.long(), y), (3,), (3,)),
    "index_copy": (lambda x, y: x.index_copy(0, 0 * x.long(), y), (3,), (3,)),
    "index_put": (lambda x, y: x.index_put((0 * x.long(),), y), (3,), (3,)),
    "put": (lambda x, y: x.put(0 * x.long(), y), (3,), (3,)),
}


@pytest.mark.usefixtures("refuse")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.int32, torch.float32),
        (torch.float16, torch.float32),
        (torch.int64, torch.int32),
    ],
    ids=str,
)
def test_operands_of_different_dtypes(name, dtypes):
    """An error, as on the CPU, and not a value in which one was taken for the other."""
    function, *shapes = DIFFERENT[name]
    x, y = (
        torch.full(s, 3, dtype=t, device="spyre")
        for s, t in zip(shapes, dtypes, strict=True)
    )
    for run in (function, compiled(function)):
        with pytest.raises(RuntimeError, match=r"dtype|scalar type|same type"):
            run(x, y)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_lines_between_ends_that_integers_lack(is_compiled):
    def line(start, end, steps, dtype, device):
        return torch.linspace(start, end, steps, dtype=dtype, device=device)

    run = compiled(line) if is_compiled else line
    for start, end in ((0, 300), (300, 0), (0, float("nan")), (-1.5, 2)):
        with pytest.raises(Exception, match="uint8_t without overflow"):
            run(start, end, 5, torch.uint8, "spyre")
    with pytest.raises(Exception, match="not implemented for 'Bool'"):
        run(0, 1, 3, torch.bool, "spyre")
    calls = ((-1, 200, 5), (-2.7, 3.9, 5), (-3, 7.5, 6), (2.5, 300, 1), (300, 9, 0))
    for call in calls:
        found = run(*call, torch.int32, "spyre").cpu()
        assert torch.equal(found, line(*call, torch.int32, "cpu"))
    found = run(-3, 7, 6, torch.uint8, "spyre").cpu()
    assert torch.equal(found, line(-3, 7, 6, torch.uint8, "cpu"))


#: What operators write, where it shares memory with an operand ``f``, of floats, or
#: ``i``, of indices.
SHARED = {
    "addr": lambda f, i: torch.addr(f, f[0], f[1], out=f),
    "bernoulli": lambda f, i: torch.bernoulli(f[0], out=f.view(-1)[1:5]),
    "cat": lambda f, i: torch.cat([f[:2], f[:2]], out=f),
    "copy of a part": lambda f, i: f[1:].copy_(f[:3]),
    "cross": lambda f, i: torch.cross(f[:3], f[1:], 0, out=f[:3]),
    "expanded": lambda f, i: f[:1].expand(4, 4).add_(1),
    "expanded before it is resized": lambda f, i: torch.add(
        f, 1, out=f[0, :1].expand(7)
    ),
    "expanded fill": lambda f, i: f[:1].expand(4, 4).fill_(7),
    "expanded range": lambda f, i: torch.arange(4, out=f[0, :1].expand(4)),
    "gather": lambda f, i: torch.gather(f, 0, i, out=f),
    "index_add": lambda f, i: f.index_add_(0, i[0], f),
    "index_copy": lambda f, i: f.index_copy_(0, i[0], f),
    "index_fill": lambda f, i: i[0].index_fill_(0, i[0], 1),
    "index_put": lambda f, i: f.index_put_((i[0],), f),
    "index_reduce": lambda f, i: f.index_reduce_(0, i[0], f, "amax"),
    "index_select": lambda f, i: torch.index_select(f, 0, i[0], out=f),
    "kthvalue": lambda f, i: torch.kthvalue(f[:1], 1, 0, out=(f[0], i[0])),
    "lcm of a part": lambda f, i: torch.lcm(i[:2], i[2:], out=i[1:3]),
    "masked_select": lambda f, i: torch.masked_select(f, f > -1, out=f.view(-1)),
    "nonzero": lambda f, i: torch.nonzero(i[0], out=i.view(-1)[:3].view(3, 1)),
    "pow of itself": lambda f, i: torch.pow(f, f, out=f),
    "put": lambda f, i: f.put_(i, f),
    "scatter": lambda f, i: f.scatter_(0, i, f),
    "scatter into itself": lambda f, i: torch.scatter(f, 0, i, 1.5, out=f),
    "scatter_add": lambda f, i: f.scatter_add_(0, i, f),
    "softmax of itself": lambda f, i: torch.softmax(f, 0, out=f),
    "stack": lambda f, i: torch.stack([f[0]], out=f[:1]),
    "sum of a part": lambda f, i: torch.add(f[0], 1, out=f.view(-1)[1:5]),
    "take": lambda f, i: torch.take(f, i, out=f),
}
#: Results of other dtypes than those of ``out=``.
TYPES = {
    "add": lambda f, i: torch.add(f, 1, out=f.half()),
    "amax": lambda f, i: torch.amax(f, 0, out=f[0].half()),
    "argmax": lambda f, i: torch.argmax(f, 0, out=f[0].clone()),
    "bucketize": lambda f, i: torch.bucketize(i, i[0], out=i.int()),
    "masked_select": lambda f, i: torch.masked_select(f, f > 3, out=f.half()),
    "mode": lambda f, i: torch.mode(f, 0, out=(f[0].clone(), i[0].clone()))[0],
    "mm": lambda f, i: torch.mm(f, f, out=f.half()),
    "nonzero": lambda f, i: torch.nonzero(i, out=f.clone()),
    "softmax": lambda f, i: torch.softmax(f, 0, out=f.half()),
    "sum": lambda f, i: torch.sum(f, 0, out=f[0].half()),
}


def result_of(function, device):
    floats = torch.arange(16.0).view(4, 4).to(device)
    indices = torch.tensor([[3, 1, 2, 0]] * 3 + [[0, 2, 1, 3]]).to(device)
    try:
        return function(floats, indices).cpu(), floats.cpu(), indices.cpu()
    except RuntimeError as error:
        return str(error).split(" ")[0]


@pytest.mark.parametrize("functions", [SHARED, TYPES], ids=["shared", "types"])
@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_what_operators_may_not_write(functions):
    count = 0
    for name, function in functions.items():
        expected, found = result_of(function, "cpu"), result_of(function, "spyre")
        if isinstance(expected, str):
            assert isinstance(found, str), name
            assert expected != "unsupported" or found == expected, name
            count += 1
        else:
            for one, other in zip(expected, found, strict=True):
                torch.testing.assert_close(other, one, msg=name)
    assert 0 < count < len(functions)


#: Stores of one value in a tensor ``x`` of four rows on the same memory.
REPEATED = {
    "masked_fill": lambda x, m, i: x.masked_fill_(m, 9),
    "masked_fill of a row": lambda x, m, i: x.masked_fill_(m[2], 9),
    "masked_fill of a tensor": lambda x, m, i: x.masked_fill_(m, x.new_tensor(9)),
    "nowhere": lambda x, m, i: x.masked_fill_(m[:1], 9),
    "mask": lambda x, m, i: x.__setitem__(m, 9),
    "index_fill along it": lambda x, m, i: x.index_fill_(0, i, 9),
    "index_fill": lambda x, m, i: x.index_fill_(1, i, 9),
    "index_fill of a tensor": lambda x, m, i: x.index_fill_(1, i, x.new_tensor(9)),
    "index_put": lambda x, m, i: x.index_put_((i, i), x.new_tensor([9])),
    "index": lambda x, m, i: x.__setitem__((slice(None), i), 9),
    "addition": lambda x, m, i: x.index_put_((i,), x[:2] + 1, accumulate=True),
    "addition of one": lambda x, m, i: x.index_put_(
        (i, i), x.new_tensor(7), accumulate=True
    ),
    "addition to one place": lambda x, m, i: x.index_put_(
        (i * 0, i * 0 + 1), x[0, 1:], accumulate=True
    ),
    "addition by a mask": lambda x, m, i: x.index_put_(
        (m,), x.new_tensor([3, 4, 5]), accumulate=True
    ),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_one_value_in_repeated_memory(name):
    """Is stored where any of the elements there is meant, with PyTorch's warning."""
    mask = torch.tensor([[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]).bool()
    found = []
    for device in ("cpu", "spyre"):
        x = torch.arange(3.0).to(device)
        rows = x.expand(4, 3)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            REPEATED[name](rows, mask.to(device), torch.tensor([0, 2]).to(device))
        found.append((x.tolist(), rows.tolist()))
    assert found[1] == found[0]


@pytest.mark.parametrize(
    "dtype", (torch.float16, torch.bfloat16, torch.int64, torch.bool)
)
@pytest.mark.parametrize("size", (1, 3, 65))
def test_additions_to_repeated_memory(dtype, size):
    """Along rows, columns and a dimension before both; none at all."""
    found = []
    for device in ("cpu", "spyre"):
        x = (torch.arange(size) % 3).to(dtype).to(device)
        values = torch.ones(size, dtype=dtype, device=device)
        where = torch.arange(size, device=device) // 2
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            x.expand(4, size).index_put_((where * 0, where), values, accumulate=True)
            x[:, None].expand(size, 5).index_put_((where,), values[:1], True)
            x[:, None].expand(2, size, 1).index_put_(
                (where[:1], where[:1]), values[:1], True
            )
            x.expand(4, size).index_put_((where[:0],), x[:0, None], True)
        found.append(x.tolist())
    assert found[1] == found[0]


@pytest.mark.parametrize("diagonal", (-3, -1, 0, 1, 4))
@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.bool))
def test_triangles_of_repeated_memory(diagonal, dtype):
    """A place is cleared if any of the elements there is outside the triangle."""
    found = []
    for device in ("cpu", "spyre"):
        results = []
        for write in (torch.Tensor.tril_, torch.Tensor.triu_):
            for size in (1, 3, 65):
                x = (torch.arange(size) % 5 + 1).to(dtype).to(device)
                for view in (
                    x.expand(4, size),
                    x[:, None].expand(size, 4),
                    x[None, :, None].expand(2, size, 2),
                    x.expand(0, size),
                ):
                    assert write(view, diagonal) is view
                    results.append((x.tolist(), view.tolist()))
        found.append(results)
    assert found[1] == found[0]


def test_thresholds_in_repeated_memory():
    x = torch.arange(3.0).to("spyre")
    rows = x.expand(4, 3)
    assert torch.nn.functional.threshold(rows, 1, -2, inplace=True) is rows
    assert x.tolist() == [-2, -2, 2] and rows.tolist() == [[-2, -2, 2]] * 4


def test_integers_without_nan_in_repeated_memory():
    x = torch.arange(3).to("spyre").expand(2, 3)
    assert x.nan_to_num_() is x and x.tolist() == [[0, 1, 2]] * 2
    with pytest.raises(RuntimeError, match="more than one element"):
        x[0].float().expand(2, 3).nan_to_num_()


@pytest.mark.parametrize("sizes", ((1, 4), (3, 4), (7, 65)))
@pytest.mark.parametrize("dtype", (torch.float16, torch.int64, torch.bool))
def test_identities_in_repeated_memory(dtype, sizes):
    found = []
    for device in ("cpu", "spyre"):
        results = []
        for dim in (0, 1):
            x = torch.full([n if d == dim else 1 for d, n in enumerate(sizes)], 2)
            x = x.to(dtype).to(device)
            results.append(torch.nn.init.eye_(x.expand(sizes)).tolist())
            results.append(x.tolist())
        square = x[:, :1].expand(4, sizes[0]).t()[:, :1].expand(sizes[0], sizes[0])
        results.append(torch.eye(sizes[0], out=square).tolist())
        found.append(results)
    assert found[1] == found[0]


#: One value where a mask ``m`` of (3, 65), part of ``x``, is set.
BY_ITSELF = {
    "a scalar": lambda x, m: x.__setitem__(m, False),
    "a tensor": lambda x, m: x.__setitem__(m, x.new_tensor(False)),
    "of another dtype": lambda x, m: x.index_put_((m,), torch.tensor([0.0])),
    "a row": lambda x, m: x[1].__setitem__(m[1], False),
    "columns": lambda x, m: x.__setitem__((slice(None), x[0].clone()), False),
    "overlapping parts": lambda x, m: x[:2].__setitem__(m[1:], False),
    "several values": lambda x, m: x.__setitem__(m, x.new_zeros(int(m.sum()))),
}


@pytest.mark.parametrize("name", BY_ITSELF)
def test_masks_that_are_written(name):
    found = []
    for device in ("cpu", "spyre"):
        x = (torch.arange(3 * 65).view(3, 65) % 7 < 3).to(device)
        try:
            with warnings.catch_warnings(action="ignore"):
                BY_ITSELF[name](x, x)
            found.append(x.tolist())
        except RuntimeError as error:
            found.append(str(error))
    assert found[1] == found[0]


def test_out_is_on_the_device():
    with pytest.raises(RuntimeError, match="same device"):
        torch.bernoulli(torch.ones(3), out=torch.ones(3, device="spyre"))


def test_out_of_another_shape_is_resized_with_a_warning():
    x = torch.tensor([1.0, 0, 3]).to("spyre")
    for function in (torch.nonzero, lambda x, out: torch.sum(x, 0, out=out)):
        out = torch.empty(7, dtype=function(x, out=None).dtype, device="spyre")
        with pytest.warns(UserWarning, match="was resized"):
            function(x, out=out)
        assert torch.equal(out.cpu(), function(x.cpu(), out=None))
