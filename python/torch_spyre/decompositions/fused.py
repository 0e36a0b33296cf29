# SPDX-License-Identifier: Apache-2.0
"""Fused ATen operators of ``torch.nn``'s fast paths, in terms of others.

``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention`` in eval mode call
one fused operator each. AOTAutograd decomposes them by these functions; they
also serve as fake (meta) kernels and run what has no row of the ATen table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_spyre.aten_table import table_operators

aten = torch.ops.aten


def _additive_mask(
    mask: Tensor | None, kind: int | None, like: Tensor
) -> Tensor | None:
    """A mask as ``scaled_dot_product_attention`` adds it, ``[..., L, S]``.

    ``kind`` 0 is ``[L, S]``, 1 is key padding ``[B, S]``, 2 is ``[B, H, L, S]``;
    boolean masks are true where a key is *not* seen.
    """
    if mask is None:
        return None
    if kind == 1:
        mask = mask[:, None, None, :]
    if mask.dtype == torch.bool:
        zero = torch.zeros((), dtype=like.dtype, device=like.device)
        return zero.expand(mask.shape).masked_fill(mask, float("-inf"))
    return mask.to(like.dtype)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None, kind: int | None
) -> Tensor:
    def split(t: Tensor) -> Tensor:
        return t.reshape(t.shape[0], t.shape[1], heads, -1).transpose(1, 2)

    y = functional.scaled_dot_product_attention(
        split(q), split(k), split(v), attn_mask=_additive_mask(mask, kind, q)
    )
    return y.transpose(1, 2).reshape(q.shape)


def transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """``aten._transformer_encoder_layer_fwd`` on ``[B, L, embed_dim]``."""

    def attention(x: Tensor) -> Tensor:
        q, k, v = functional.linear(x, qkv_weight, qkv_bias).chunk(3, dim=-1)
        y = _attend(q, k, v, num_heads, mask, mask_type)
        return functional.linear(y, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        y = functional.linear(x, ffn_weight_1, ffn_bias_1)
        y = functional.gelu(y) if use_gelu else functional.relu(y)
        return functional.linear(y, ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = src + attention(norm(src, norm_weight_1, norm_bias_1))
        return x + feed_forward(norm(x, norm_weight_2, norm_bias_2))
    x = norm(src + attention(src), norm_weight_1, norm_bias_1)
    return norm(x + feed_forward(x), norm_weight_2, norm_bias_2)


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """``aten._native_multi_head_attention``; weights ``[B, (H,) L, S]`` or None."""
    parts = zip(
        (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
    )
    q, k, v = (functional.linear(x, w, b) for x, w, b in parts)
    y = _attend(q, k, v, num_head, mask, mask_type)
    result = functional.linear(y, proj_weight, proj_bias)
    if not need_weights:
        return result, None

    def split(t: Tensor) -> Tensor:
        return t.reshape(t.shape[0], t.shape[1], num_head, -1).transpose(1, 2)

    scores = split(q) @ split(k).transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    additive = _additive_mask(mask, mask_type, query)
    if additive is not None:
        scores = scores + additive
    weights = scores.softmax(-1)
    return result, weights.mean(1) if average_attn_weights else weights


def native_dropout(
    input: Tensor, p: float, train: bool | None
) -> tuple[Tensor, Tensor]:
    """``aten.native_dropout`` as the device's eager kernel computes it."""
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
    mask = torch.rand_like(input, dtype=torch.float32) > p
    return mask * input * (1.0 / (1.0 - p)), mask


def batch_norm_inference(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten._native_batch_norm_legit_no_training``: one multiply-add per element.

    What a channel is multiplied by, and what is added, are fp32, as on the CPU.
    """
    shape = (1, -1, *[1] * (x.dim() - 2))
    scale = (variance.float() + eps).rsqrt()
    if weight is not None:
        scale = scale * weight.float()
    shift: Any = 0.0 if bias is None else bias.float()
    shift = shift - mean.float() * scale
    result = torch.addcmul(shift.reshape(shape), x.float(), scale.reshape(shape))
    nothing = x.new_empty((0,))
    return result.to(x.dtype), nothing, nothing.clone()


#: Have a kernel of their own on the device.
RANDOM_DECOMPOSITIONS: dict[Any, Callable] = {
    aten.native_dropout.default: native_dropout
}

DECOMPOSITIONS: dict[Any, Callable] = {
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer_fwd,
    aten._native_multi_head_attention.default: native_multi_head_attention,
}

#: Run as programs, too.
NORMS: dict[Any, Callable] = {
    aten._native_batch_norm_legit_no_training.default: batch_norm_inference
}


def _addcmul(x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Tensor:
    if isinstance(value, Tensor):
        return x + value * (a * b)
    return aten.addcmul(x, a, b, value=value)


def _addcdiv(x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Tensor:
    if isinstance(value, Tensor):
        return x + value * (a / b)
    return aten.addcdiv(x, a, b, value=value)


def _maximum(x: Tensor, other: Any) -> Tensor:
    return (aten.maximum if isinstance(other, Tensor) else aten.clamp_min)(x, other)


def _minimum(x: Tensor, other: Any) -> Tensor:
    return (aten.minimum if isinstance(other, Tensor) else aten.clamp_max)(x, other)


#: Where the single operator does not take all that the foreach one does.
_SINGLE: dict[str, Callable] = {
    "addcdiv": _addcdiv,
    "addcmul": _addcmul,
    "maximum": _maximum,
    "minimum": _minimum,
}


def _make_foreach(single: Callable) -> Callable:
    """Decomposition of a functional ``_foreach`` operator into single calls."""
    has_values = single in (_addcdiv, _addcmul)

    def foreach(*args: Any, **kwargs: Any) -> list[Tensor]:
        count = next(len(a) for a in args if isinstance(a, (list, tuple)))
        # A tensor that has a number for each.
        if has_values and len(args) == 4 and isinstance(args[3], Tensor):
            args = (*args[:3], args[3].unbind())
        return [
            single(
                *(a[i] if isinstance(a, (list, tuple)) else a for a in args), **kwargs
            )
            for i in range(count)
        ]

    return foreach


#: Pointwise operators whose foreach forms optimizers use.
_FOREACH = (
    *("abs", "acos", "add", "addcdiv", "addcmul", "ceil", "clamp_max", "clamp_min"),
    *("cos", "cosh", "div", "erf", "exp", "expm1", "floor", "lerp", "log", "log10"),
    *("log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal"),
    *("round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "sub", "tan", "tanh"),
    "trunc",
)


def foreach_decompositions() -> dict[Any, Callable]:
    """``aten._foreach_<op>.<overload>`` in terms of ``aten.<op>``."""
    table: dict[Any, Callable] = {}
    for name in _FOREACH:
        foreach = getattr(aten, f"_foreach_{name}", None)
        if foreach is None:
            continue
        for overload in foreach.overloads():
            op = getattr(foreach, overload)
            if overload.endswith("out"):
                continue
            table[op] = _make_foreach(_SINGLE.get(name, getattr(aten, name)))
    return table


_library: torch.library.Library | None = None


def register() -> None:
    """Registers the operators' meta and spyre kernels. Idempotent."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("aten", "IMPL")
    for op, function in DECOMPOSITIONS.items():
        _library.impl(op, function, "Meta")
        if str(op) not in table_operators():
            _library.impl(op, function, "PrivateUse1")
