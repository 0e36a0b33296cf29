# SPDX-License-Identifier: Apache-2.0
"""Rows of the ATen table for attention, norms, embeddings and copies, against fp64."""

import pytest
import torch
from aten_rows import F16, F32, aten, check, ints, randn, run, wide
from numerics import assert_like_oracle, compiled, oracle


def attention(query, key, value, mask=None, causal=False, scale=None):
    return torch.nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        mask,
        0.0,
        causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


ATTENTION = aten._scaled_dot_product_fused_attention_overrideable.default


def run_attention(query, key, value, mask=None, causal=False, scale=None):
    """The fused operator has no CPU kernel: describe its results by hand."""
    b, h, rows, _ = query.shape

    class Operator:
        def __call__(self, *args, **kwargs):
            out = torch.empty(b, h, rows, value.shape[-1], dtype=query.dtype)
            return out, torch.empty(b, h, rows)

        def __str__(self):
            return str(ATTENTION)

    found = run(Operator(), (query, key, value, mask, 0.0, causal), {"scale": scale})
    return found[0], found[1]


def check_attention(*args, **kwargs):
    actual, logsumexp = run_attention(*args, **kwargs)
    exact = attention(*wide(args), **wide(kwargs))
    steps = oracle(lambda: attention(*wide(args), **wide(kwargs)))
    assert_like_oracle(actual, exact, steps, "attention")
    assert logsumexp.isfinite().all()


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype, causal):
    q, k, v = (randn(2, 4, n, 64, dtype=dtype) for n in (33, 70, 70))
    check_attention(q, k, v, causal=causal)
    # One row against a long cache, grouped queries, a wide value.
    check_attention(
        randn(1, 8, 1, 64, dtype=dtype), *[randn(1, 2, 100, 64, dtype=dtype)] * 2
    )
    check_attention(
        randn(1, 6, 9, 16, dtype=dtype),
        randn(1, 3, 9, 16, dtype=dtype),
        randn(1, 3, 9, 70, dtype=dtype),
        causal=causal,
        scale=0.5,
    )


def test_attention_masks():
    q, k, v = (randn(2, 4, n, 64) for n in (33, 70, 70))
    keep = randn(2, 1, 33, 70) > -0.5
    check_attention(q, k, v, keep)
    check_attention(q, k, v, randn(33, 70))
    # A row that sees nothing gives zeros, as PyTorch's fused attention does.
    keep[:, :, 5] = False
    check_attention(q, k, v, keep)
    actual, _ = run_attention(q, k, v, keep)
    assert (actual[:, :, 5] == 0).all()
    hidden = torch.zeros(33, 70, dtype=F16).masked_fill(~keep[0, 0], -float("inf"))
    actual, _ = run_attention(q, k, v, hidden)
    assert (actual[:, :, 5] == 0).all()


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_backward(heads, causal):
    q = randn(2, 4, 33, 32, dtype=F32)
    k, v = (randn(2, heads, 40, 32, dtype=F32) for _ in range(2))
    v = v + 1
    gradient = randn(2, 4, 33, 32, dtype=F32)
    out, logsumexp = run_attention(q, k, v, causal=causal)
    leaves = [t.double().requires_grad_() for t in (q, k, v)]
    attention(*leaves, causal=causal).backward(gradient.double())

    class Operator:
        def __call__(self, *args, **kwargs):
            return q, k, v, None

        def __str__(self):
            return (
                "aten._scaled_dot_product_fused_attention_overrideable_backward.default"
            )

    none = torch.zeros(0)
    found = run(
        Operator(),
        (
            gradient,
            q,
            k,
            v,
            None,
            [True] * 3 + [False],
            out,
            logsumexp,
            none,
            none,
            33,
            40,
            0.0,
            causal,
            none,
            none,
        ),
        {},
    )
    for i, leaf in enumerate(leaves):
        torch.testing.assert_close(found[i].double(), leaf.grad, rtol=1e-4, atol=1e-4)


def test_norm_backward():
    for dtype, tolerance in ((F32, 1e-4), (F16, 3e-2)):
        x, w, b = (randn(*s, dtype=dtype) for s in ((5, 100), (100,), (100,)))
        gradient = randn(5, 100, dtype=dtype)
        leaves = [t.double().requires_grad_() for t in (x, w, b)]
        out = torch.nn.functional.layer_norm(leaves[0], [100], leaves[1], leaves[2])
        out.backward(gradient.double())
        mean = x.float().mean(-1, True)
        rstd = torch.rsqrt(x.float().var(-1, correction=0, keepdim=True) + 1e-5)
        found = run(
            aten.native_layer_norm_backward.default,
            (gradient, x, [100], mean.to(dtype), rstd.to(dtype), w, b, [True] * 3),
            {},
        )
        for i, leaf in enumerate(leaves):
            error = (found[i].double() - leaf.grad).abs().max()
            assert error < tolerance * leaf.grad.abs().max(), (dtype, i, error)


def test_embedding_backward():
    gradient, index = randn(2, 6, 70), ints(2, 6, low=0, high=9)
    check(
        aten.embedding_dense_backward.default, gradient, index, 9, -1, False, terms=99
    )
    check(aten.embedding_dense_backward.default, gradient, index, 9, 3, False, terms=99)


def test_accumulation():
    x, index = randn(9, 5, 7), torch.tensor([3, 0, 3, 8, -1])
    check(aten.index_put.default, x, [index], randn(5, 5, 7), True, terms=99)
    check(
        aten.index_add.default, x[:, 0], 0, index.abs(), randn(5, 7), alpha=2, terms=99
    )
    index = torch.tensor([3, 0, 3, 4, 1])
    check(aten.index_add.default, x, 1, index, randn(9, 5, 7), terms=99)
    check(aten.index_add.default, x, -1, index[:1], randn(9, 5, 1), terms=99)
    check(aten.index_add.default, randn(65), 0, index, randn(5), terms=99)
    check(aten.index_add.default, randn(2, 1), 1, index[1:2], randn(2, 1), terms=99)
    indices = torch.tensor([[3, -1, 3], [0, 1, 4]])
    check(
        aten.index_put.default,
        randn(2, 9, 5, 3),
        [None, None, indices],
        randn(2, 9, 2, 3, 3),
        True,
        terms=99,
    )
    # Nothing to sum.
    check(aten.index_add.default, x, 1, index[:0], randn(9, 0, 7), units=0)
    check(aten.index_add.default, x[:, :, :0], 1, index, randn(9, 5, 0), units=0)


def test_copies_with_strides():
    copy = torch.ops.prims.copy_strided.default
    check(copy, randn(5, 67), [1, 5], units=0)
    check(copy, randn(65), [1], units=0)
    check(copy, ints(3, 0, 2), [0, 2, 1], units=0)


def test_fused_encoder_layer():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 96, batch_first=True).eval()
    x = randn(2, 17, 64, dtype=F32)
    for norm_first in (False, True):
        attn = layer.self_attn
        args = [
            x,
            64,
            4,
            attn.in_proj_weight,
            attn.in_proj_bias,
            attn.out_proj.weight,
            attn.out_proj.bias,
            False,
            norm_first,
            1e-5,
            layer.norm1.weight,
            layer.norm1.bias,
            layer.norm2.weight,
            layer.norm2.bias,
            layer.linear1.weight,
            layer.linear1.bias,
            layer.linear2.weight,
            layer.linear2.bias,
        ]
        args = [a.detach() if isinstance(a, torch.Tensor) else a for a in args]
        expected = aten._transformer_encoder_layer_fwd.default(*args)
        found = run(aten._transformer_encoder_layer_fwd.default, args, {})[0]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_attention_without_weights(is_compiled):
    """None stands for them, and not a tensor of nothing."""
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval().to("spyre")
    x = randn(2, 5, 16, dtype=F32).to("spyre")
    with torch.no_grad():
        call = compiled(module) if is_compiled else module
        assert call(x, x, x, need_weights=False)[1] is None
        assert call(x, x, x)[1].shape == (2, 5, 5)
