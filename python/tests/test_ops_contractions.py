# SPDX-License-Identifier: Apache-2.0
"""Matrix products in every transposition, linear layers, attention."""

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import (
    assert_contraction,
    assert_like_oracle,
    check_all,
    device_value,
    oracle,
    run_all,
)

FLOATS = [torch.float16, torch.float32]


def contraction(function, terms, *inputs):
    """A check of a sum of products against fp64."""
    wide = [device_value(i) for i in inputs]

    def check(actual, name):
        magnitude = function(*[w.abs() for w in wide])
        assert_contraction(actual, function(*wide), terms, magnitude, name)

    return function, check


SIZES = [(1, 1, 1), (7, 13, 5), (65, 63, 67), (128, 64, 192), (1, 130, 70), (33, 1, 65)]


@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_mm(m, k, n, dtype):
    """Every transposition, as views of the operands."""
    a, b = values((m, k), dtype), values((k, n), dtype, seed=1)
    at, bt = a.t().contiguous(), b.t().contiguous()
    c = values((n,), dtype, seed=2)
    full = values((m, n), dtype, seed=3)
    operands = (a, b, at, bt, c, full)
    functions = {
        "nn": lambda a, b, at, bt, c, full: a @ b,
        "tn": lambda a, b, at, bt, c, full: at.t() @ b,
        "nt": lambda a, b, at, bt, c, full: a @ bt.t(),
        "tt": lambda a, b, at, bt, c, full: at.t() @ bt.t(),
        "linear": lambda a, b, at, bt, c, full: F.linear(a, bt),
        "linear bias": lambda a, b, at, bt, c, full: F.linear(a, bt, c),
        "addmm": lambda a, b, at, bt, c, full: torch.addmm(full, a, b),
        "addmm factors": lambda a, b, at, bt, c, full: torch.addmm(
            full, a, b, beta=0.5, alpha=2
        ),
        "mv": lambda a, b, at, bt, c, full: bt.t() @ c,
    }
    checked = {
        name: contraction(f, (n if name == "mv" else k) + 2, *operands)
        for name, f in functions.items()
    }
    check_all(checked, [t.to("spyre") for t in operands])


BATCHES = [
    ((3, 7, 13), (3, 13, 5)),
    ((2, 3, 65, 70), (2, 3, 70, 33)),
    ((2, 3, 9, 70), (70, 33)),
    ((2, 3, 9, 70), (2, 1, 70, 33)),
    ((70,), (3, 70, 5)),
    ((3, 5, 70), (70,)),
    ((65,), (65,)),
    ((0, 5, 6), (0, 6, 7)),
    ((2, 5, 0), (2, 0, 7)),
    ((4, 0, 6), (4, 6, 7)),
]


@pytest.mark.parametrize("left, right", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_matmul(left, right, dtype):
    a, b = values(left, dtype), values(right, dtype, seed=1)
    operations = {"matmul": contraction(torch.matmul, left[-1], a, b)}
    if len(left) == len(right) == 3:
        operations["bmm"] = contraction(torch.bmm, left[-1], a, b)

        def transposed(a, b):
            return b.transpose(1, 2) @ a.transpose(1, 2)

        operations["transposed"] = contraction(transposed, left[-1], a, b)
    check_all(operations, [a.to("spyre"), b.to("spyre")])


def test_views_of_operands():
    """Slices, expansions and permutations as operands."""
    x = values((5, 70, 67), torch.float16)
    w = values((130, 67), torch.float16, seed=1)
    operations = {
        "sliced": lambda x, w: x[1:4, 2:66:3] @ w[3:67].t(),
        "expanded": lambda x, w: x[:1].expand(4, 70, 67) @ w.t(),
        "permuted": lambda x, w: x.permute(1, 0, 2) @ w.t(),
        "reshaped": lambda x, w: x.reshape(7, 50, 67) @ w.t(),
        "inner slice": lambda x, w: x[:, :, 1:66] @ w[:, 2:67].t(),
    }
    check_all(
        {n: contraction(f, 67, x, w) for n, f in operations.items()},
        [x.to("spyre"), w.to("spyre")],
    )


def attention_inputs(dtype, heads=4, kv_heads=4, tokens=33, keys=33, width=64):
    shapes = [(heads, tokens), (kv_heads, keys), (kv_heads, keys)]
    return [
        values((2, h, t, width), dtype, seed=i, low=-2.0, high=2.0)
        for i, (h, t) in enumerate(shapes)
    ]


ATTENTION = {
    "plain": ({}, lambda q, k, v: F.scaled_dot_product_attention(q, k, v)),
    "causal": (
        {},
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    ),
    "gqa": (
        {"kv_heads": 2},
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        ),
    ),
    "scale": (
        {"keys": 65},
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
    ),
    "one token": (
        {"tokens": 1, "keys": 70, "width": 48},
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    ),
    "transposed": (
        {"tokens": 16, "keys": 16, "heads": 4, "kv_heads": 4},
        lambda q, k, v: F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        ),
    ),
}


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_attention(name, dtype):
    shape, function = ATTENTION[name]
    inputs = attention_inputs(dtype, **shape)
    actual = run_all({name: function}, [t.to("spyre") for t in inputs])[name]
    wide = [device_value(t) for t in inputs]
    if dtype == torch.float16:
        assert_like_oracle(actual, function(*wide), oracle(function, *wide), name)
    else:
        error = (actual.double() - function(*wide)).abs().max()
        assert error < 2.0**-18


MASKS = {
    "bool": lambda: values((33, 65), torch.bool, seed=9),
    "bool per batch": lambda: values((2, 1, 33, 65), torch.bool, seed=9),
    "additive": lambda: values((2, 4, 33, 65), torch.float16, seed=9),
    "minus infinity": lambda: (
        torch.zeros(33, 65)
        .half()
        .masked_fill(values((33, 65), torch.bool, seed=9), -torch.inf)
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_attention_mask(name):
    mask = MASKS[name]()
    inputs = [*attention_inputs(torch.float16, keys=65), mask]

    def function(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    actual = run_all({name: function}, [t.to("spyre") for t in inputs])[name]
    wide = [device_value(t) for t in inputs]
    assert_like_oracle(actual, function(*wide), oracle(function, *wide), name)
