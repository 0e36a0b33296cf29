# SPDX-License-Identifier: Apache-2.0
"""Attention in the forms that its rows of the ATen table do not take.

Gradients are computed in fp32 and rounded once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
_ATTENTION = aten._scaled_dot_product_fused_attention_overrideable.default
_ATTENTION_BACKWARD = (
    aten._scaled_dot_product_fused_attention_overrideable_backward.default
)
#: Where ``is_causal`` is among the arguments of the latter after ``logsumexp``.
_CAUSAL = 5


def _attention(
    query: Tensor, key: Tensor, value: Tensor, *rest: Any, scale: float | None = None
) -> Any:
    """Tensors without a batch get one of size 1; the row has no others.

    query [heads, rows, width], key and value [groups, columns, width].
    """
    if query.dim() != 3:
        return NotImplemented
    batched = [x.unsqueeze(0) for x in (query, key, value)]
    out, *others = _ATTENTION(*batched, *rest, scale=scale)
    return out.squeeze(0), *others


def _attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    wanted: Sequence[bool],
    out: Tensor,
    logsumexp: Tensor,
    *rest: Any,
    scale: float | None = None,
) -> Any:
    """What the row lacks: the gradient of the bias, and tensors without a batch.

    query [batch, heads, rows, width], key and value [batch, groups, columns, width],
    logsumexp [batch, heads, rows]; the bias broadcasts to the scores.
    """
    if query.dim() == 3:
        batched = [x.unsqueeze(0) for x in (gradient, query, key, value)]
        out = out.unsqueeze(0)
        found = _ATTENTION_BACKWARD(
            *batched, bias, wanted, out, logsumexp, *rest, scale=scale
        )
        return *(g if g is None else g.squeeze(0) for g in found[:3]), found[3]
    if bias is None or not wanted[3]:
        return NotImplemented
    others = _ATTENTION_BACKWARD(
        *(gradient, query, key, value, bias, [*wanted[:3], False], out, logsumexp),
        *rest,
        scale=scale,
    )
    is_causal = rest[_CAUSAL]
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    # The row does not keep the scores in memory. This does.
    group = query.shape[-3] // key.shape[-3]
    k, v = (x.float().repeat_interleave(group, -3) for x in (key, value))
    scores = query.float() @ k.mT * scale + bias.float()
    if is_causal:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~visible.tril(), -math.inf)
    sums = logsumexp.unsqueeze(-1)
    # A row that sees nothing has weights of zero.
    weights = (scores - sums).exp().masked_fill(sums == -math.inf, 0.0)
    of_weights = gradient.float() @ v.mT
    total = (gradient.float() * out.float()).sum(-1, keepdim=True)
    of_scores = weights * (of_weights - total)
    return *others[:3], of_scores.sum_to_size(bias.shape).to(bias.dtype)


#: Of operators with a row: NotImplemented for calls that the row takes.
BESIDE_ROWS: dict[Any, Callable] = {
    _ATTENTION: _attention,
    _ATTENTION_BACKWARD: _attention_backward,
}
