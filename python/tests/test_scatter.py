# SPDX-License-Identifier: Apache-2.0
"""Writing through indices, with every way to combine, against the CPU."""

import math

import pytest
import torch
from aten_rows import F16, F32, I64
from native_calls import assert_same, check_compiled, check_exact, native
from numerics import device_value

REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]
#: The CPU takes means of int64 (test_integer_range.py).
KINDS = [
    (reduction, dtype)
    for reduction in REDUCTIONS
    for dtype in (F16, torch.bfloat16, F32, I64, torch.int32)
    if (reduction, dtype) != ("mean", I64)
]


def ints(*shape, low=-4, high=5, dtype=F16):
    return torch.randint(low, high, shape).to(dtype)


def small(*shape, dtype=F16):
    """Products and sums of these are exact."""
    return torch.tensor([-2.0, -1.0, 0.5, 1.0, 2.0])[torch.randint(5, shape)].to(dtype)


@pytest.mark.parametrize("includes_self", [True, False])
@pytest.mark.parametrize(("reduction", "dtype"), KINDS)
def test_scatter_reduce(reduction, includes_self, dtype):
    draw = small if dtype.is_floating_point else ints
    for shape, dim, size in (((5, 9), 1, 7), ((65, 3), 0, 12), ((2, 3, 4), -1, 5)):
        index_shape = list(shape)
        index_shape[dim] = size
        index = torch.randint(shape[dim], index_shape)
        x, source = draw(*shape, dtype=dtype), draw(*index_shape, dtype=dtype)
        expected = x.scatter_reduce(
            dim, index, source, reduction, include_self=includes_self
        )
        actual = native(
            torch.scatter_reduce,
            x,
            dim,
            index,
            source,
            reduction,
            include_self=includes_self,
        )
        if reduction == "mean" and dtype.is_floating_point:
            exact = (
                device_value(x)
                .scatter_reduce(
                    dim, index, device_value(source), "mean", include_self=includes_self
                )
                .to(dtype)
            )
            assert torch.allclose(actual.float(), exact.float(), rtol=2**-8, atol=0)
        else:
            assert_same(actual, expected)


def test_sums_round_once():
    """2048 times 1 in fp16, which stops at 2048 if each sum is rounded."""
    ones = torch.ones(4096, dtype=F16)
    index = torch.zeros(4096, dtype=I64)
    start = torch.zeros(3, dtype=F16)
    total = native(torch.scatter_add, start, 0, index, ones)
    assert total.tolist() == [4096.0, 0.0, 0.0]


def test_the_last_of_several_stays():
    x, index = torch.zeros(3, 70, dtype=F16), torch.tensor([1, 0, 1, 1])
    source = ints(4, 70)
    check_exact(torch.index_copy, x, 0, index, source)
    check_exact(torch.scatter, x, 0, index[:, None].expand(4, 70), source)
    check_exact(lambda t, i, v: t.index_put((i,), v), x, index, source)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.bool, torch.uint8, torch.int8])
def test_scatter(dtype):
    x, source = ints(5, 70, low=0, dtype=dtype), ints(3, 70, low=0, dtype=dtype)
    index = torch.stack([torch.randperm(5)[:3] for _ in range(70)], 1)
    check_exact(torch.scatter, x, 0, index, source)
    check_exact(torch.scatter, x, 0, index, 1)
    check_exact(torch.scatter, x, 1, index[:, :5] * 13, source[:, :5])
    # A smaller index writes a part.
    check_exact(torch.scatter, x, 0, index[:2, :33], source)
    check_exact(torch.scatter, x, 0, index[:0], source)
    if dtype != torch.bool:
        check_exact(lambda a, i, s: a.scatter(0, i, s, reduce="add"), x, index, source)
        check_exact(
            lambda a, i, s: a.scatter(0, i, s, reduce="multiply"), x, index, source
        )
        check_exact(lambda a, i: a.scatter(0, i, 2, reduce="multiply"), x, index)


def test_scalars():
    x, zero = torch.tensor(3.0), torch.tensor(0)
    for index in (zero, zero.reshape(1)):
        source = torch.full(index.shape, 2.0)
        check_exact(torch.scatter_add, x, 0, index, source)
        check_exact(torch.gather, x, 0, index)
    check_exact(torch.index_add, x, 0, zero, x)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.int32])
@pytest.mark.parametrize(
    ("shape", "dim"), [((5, 70), 0), ((70, 5), 1), ((2, 6, 3), -2)]
)
def test_index_add(shape, dim, dtype):
    rows = list(shape)
    rows[dim] = 9
    x, source = ints(*shape, dtype=dtype), ints(*rows, dtype=dtype)
    index = torch.randint(shape[dim], (9,))
    check_exact(torch.index_add, x, dim, index, source)
    check_exact(torch.index_add, x, dim, index.to(torch.int32), source, alpha=3)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.bool])
def test_an_index_without_elements_has_any_rank(dtype):
    x, nowhere = ints(5, dtype=dtype), torch.zeros(2, 0, dtype=I64)
    source = torch.zeros(2, 0, dtype=dtype)
    check_exact(torch.scatter, x, 0, nowhere, source)
    check_exact(torch.scatter, x, 0, nowhere, 1)
    check_exact(torch.scatter_add, x, 0, nowhere, source)
    if dtype != torch.bool:
        check_exact(torch.scatter_reduce, x, 0, nowhere, source, "amax")
    if dtype not in (torch.bool, I64):
        check_exact(torch.scatter_reduce, x, 0, nowhere, source, "mean")
    check_exact(torch.scatter_add, x[0], 0, nowhere, source)


def test_infinities_stay_in_their_rows():
    x, source = torch.zeros(3, 5, dtype=F16), torch.ones(2, 5, dtype=F16)
    source[0, 1] = math.inf
    check_exact(torch.index_add, x, 0, torch.tensor([2, 0]), source)


@pytest.mark.parametrize("includes_self", [True, False])
@pytest.mark.parametrize("reduction", ["prod", "amax", "amin"])
def test_index_reduce(reduction, includes_self):
    x, source, index = small(5, 70), small(9, 70), torch.randint(4, (9,))
    check_exact(
        torch.index_reduce, x, 0, index, source, reduction, include_self=includes_self
    )


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    def put(x, *rest):
        return x.index_put(tuple(rest[:-1]), rest[-1], accumulate)

    x, i = ints(4, 5, 70), torch.randperm(4)[:3]
    j = torch.tensor([-1, 0, 3])
    check_exact(put, x, i, ints(3, 5, 70))
    check_exact(put, x, i, ints(70))
    check_exact(put, x, i, ints(1))
    check_exact(put, x, i, j, ints(3, 70))
    check_exact(put, x, i, j, j + 40, ints(3))
    check_exact(put, x, i[:, None], j, ints(3, 3, 70))
    if accumulate:
        check_exact(put, x, i * 0, ints(3, 5, 70))

    def apart(x, a, b, v):
        x = x.clone()
        x[a, :, b] = v
        return x

    check_exact(apart, x, i, j, ints(3, 5))

    def read(x, a, b):
        return x[a, :, b], x[:, a, b], x[a, b], x[..., b]

    check_exact(read, x, i, j)


@pytest.mark.parametrize("accumulate", [False, True])
def test_put(accumulate):
    x = ints(5, 13)
    index = torch.tensor([[0, -1], [64, 3]])
    check_exact(torch.Tensor.put, x, index, ints(2, 2), accumulate)


@pytest.mark.parametrize("shape", [(5, 70), (3,), ()], ids=str)
def test_index_fill_counts_from_the_end(shape):
    x = ints(*shape)
    last = torch.tensor([-1, 0])
    for value in (3.0, torch.tensor(3.0, dtype=F16)):
        check_exact(torch.index_fill, x, -1, last, value)
        check_exact(lambda x, i, v: x.clone().index_fill_(0, i, v), x, last, value)
    check_compiled(lambda x, i: (x * 2).index_fill(0, i, 7.0), x, last)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (torch.index_fill, (0, torch.tensor([-3]), 1.0)),
        (torch.gather, (1, torch.tensor([[0, 9], [1, 1]]))),
        (torch.gather, (1, torch.tensor([[0, -1], [1, 1]]))),
        (torch.index_select, (0, torch.tensor([2]))),
        (torch.scatter, (1, torch.tensor([[5, 0]]), torch.ones(1, 2, dtype=F16))),
        (torch.index_add, (0, torch.tensor([-1]), torch.ones(1, 5, dtype=F16))),
        (lambda x, i: x[i, i], (torch.tensor([4]),)),
        (lambda x, i: x[i, i], (torch.tensor([-3]),)),
    ],
)
def test_indices_outside_are_errors(function, arguments):
    """Also one that another dimension would have room for."""
    x = torch.zeros(2, 5, dtype=F16)
    with pytest.raises((RuntimeError, IndexError), match=r"index|outside"):
        native(function, x, *arguments)


@pytest.mark.parametrize("shape", [(2, 1), (1, 5)], ids=str)
def test_rows_are_not_broadcast(shape):
    """``index_put`` broadcasts what it writes; these take rows as they are."""
    x, index = torch.zeros(4, 5, device="spyre"), torch.tensor([0, 2], device="spyre")
    source = torch.ones(shape, device="spyre")
    with pytest.raises(RuntimeError, match=r"shape|source"):
        x.index_add(0, index, source)
    with pytest.raises(RuntimeError, match=r"shape|source"):
        x.index_reduce(0, index, source, "amax")


def test_compiled_graphs_give_the_same():
    x, source, index = ints(5, 70), ints(9, 70), torch.randint(4, (9,))
    check_compiled(lambda a, i, s: (a * 2).index_add(0, i, s) + 1, x, index, source)
    check_compiled(
        lambda a, i, s: a.scatter_reduce(0, i[:, None].expand(9, 70), s, "amax"),
        x,
        index,
        source,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_scatter_reduce(reduction):
    start, source = torch.randn(5, 9), torch.randn(5, 7)
    index = torch.randint(9, (5, 7))

    def differentiate(x, s, i):
        x, s = x.detach().requires_grad_(), s.detach().requires_grad_()
        x.scatter_reduce(1, i, s, reduction).square().sum().backward()
        return x.grad, s.grad

    for a, e in zip(
        native(differentiate, start, source, index),
        differentiate(start, source, index),
        strict=True,
    ):
        assert torch.allclose(a, e, rtol=2**-18, atol=2**-18)


def test_gradients_of_gathers():
    start, index = torch.randn(6, 10), torch.tensor([[1, 1, 3], [0, 9, 0]])

    def differentiate(x, i):
        x = x.detach().requires_grad_()
        rows = torch.nn.functional.embedding(i % 6, x)
        (
            x.gather(1, i).sum() + x[i[0], i[1]].sum() + x.take(i).sum() + rows.sum()
        ).backward()
        return x.grad

    assert_same(native(differentiate, start, index), differentiate(start, index))


def test_index_fill_with_another_dtype():
    index = torch.tensor([0, -1])
    for dtype in (F16, F32, I64, torch.uint8, torch.bool):
        x = small(3, 5).to(dtype)
        for value in (torch.tensor(True), torch.tensor(3, dtype=torch.uint8)):
            check_exact(torch.index_fill, x, 1, index, value)
            check_compiled(torch.index_fill, x, 1, index, value)
    # The CPU says whether a number fits.
    x, value = torch.arange(3).to("spyre"), torch.tensor(2.5).to("spyre")
    filled = torch.compile(torch.index_fill, backend="spyre")
    assert filled(x, 0, index.to("spyre"), value).tolist() == [2, 1, 2]
