# SPDX-License-Identifier: Apache-2.0
"""Attention of nested tensors of layout ``torch.jagged``.

PyTorch's own for devices without kernels of CUDA goes through nested tensors of layout
``torch.strided``, which spyre lacks. Here all parts are padded to the longest one, and
no row attends to padding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nested._internal.nested_tensor import nested_from_padded
from torch.nested._internal.sdpa import _autocast, _validate_sdpa_input


# Of other nested tensors than [B, ragged, heads, width] PyTorch's gradient of padding
# is wrong: it takes the first of the values' sizes for how many rows there are.
def _pad(x: Any) -> Tensor:
    """[B, heads, ragged, width] as [B, heads, length of the longest part, width]."""
    size = (x.size(0), x._get_max_seqlen(), x.size(1), x.size(3))
    padded = x.transpose(1, 2).to_padded_tensor(0.0, output_size=size)
    return padded.transpose(1, 2)


def _visible(query: Any, key: Any, rows: int, columns: int, is_causal: bool) -> Tensor:
    """Which keys rows attend to, [B, 1, 1 or rows, columns]."""
    places = torch.arange(columns, device=key.device)
    visible = (places < key.offsets().diff()[:, None])[:, None, None]
    if not is_causal:
        return visible
    if query.offsets() is not key.offsets():
        raise RuntimeError(
            "causal attention of a query and a key that do not share their offsets: "
            "which rows are beside each other is not known"
        )
    return visible & (places <= torch.arange(rows, device=key.device)[:, None])


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``scaled_dot_product_attention`` of [B, heads, ragged, width]."""
    query, key, value, attn_mask = _autocast(query, key, value, attn_mask)
    _validate_sdpa_input(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if any(x._ragged_idx != 2 or x.dim() != 4 for x in (query, key, value)):
        raise RuntimeError(
            "attention of nested tensors on spyre: expected [B, heads, ragged, width], "
            f"found {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        )
    if any(x.lengths() is not None for x in (query, key, value)):
        raise RuntimeError(
            "attention of nested tensors with holes between their parts is not "
            "supported on spyre: call contiguous() first"
        )
    q, k, v = (_pad(x) for x in (query, key, value))
    mask = _visible(query, key, q.shape[2], k.shape[2], is_causal)
    rows = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, dropout_p, scale=scale, enable_gqa=enable_gqa
    )
    return nested_from_padded(
        rows.transpose(1, 2),
        query.offsets(),
        ragged_idx=1,
        min_seqlen=query._maybe_min_seqlen,
        max_seqlen=query._maybe_max_seqlen,
        sum_S=query.values().shape[1],
    ).transpose(1, 2)
