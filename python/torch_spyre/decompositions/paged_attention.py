# SPDX-License-Identifier: Apache-2.0
"""Attention over caches in pages, which ibm-fms defines as ``spyre::paged_attn_*``.

docs/spec/drop-in.md, "What the clients do, as a checklist", says what they mean. A
cache is ``[pages, page size, heads, head size]``. Lengths and page numbers are values
on the device, so that one program serves all of them: it reads every page that the
table names, and masks what a sequence does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def paged_attn_store(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
) -> tuple[Tensor, Tensor]:
    """Copies of both caches with ``[B, T, H, D]`` at the slots ``[B, T]``.

    Slot s is position ``s % page size`` of page ``s // page size``; slots below 0 count
    from the end. Of several writes to a slot the last one stays.
    """
    slots = slot_mapping.reshape(-1).to(torch.int64)
    count = key_cache.shape[0] * key_cache.shape[1]
    slots = torch.where(slots < 0, slots + count, slots)

    def store(cache: Tensor, new: Tensor) -> Tensor:
        rows = cache.reshape(-1, *cache.shape[2:])
        new = new.reshape(-1, *cache.shape[2:]).to(cache.dtype)
        return rows.index_copy(0, slots, new).reshape(cache.shape)

    return store(key_cache, key), store(value_cache, value)


class _Pages:
    """What ``T`` queries of each sequence see of the pages in its row of the table."""

    def __init__(
        self, table: Tensor, page_size: int, queries: int, ends: Tensor, starts: Tensor
    ) -> None:
        ends, starts = (t.reshape(-1, 1).to(torch.int64) for t in (ends, starts))
        device = table.device
        self.shape = (table.shape[0], table.shape[1] * page_size)
        #: [S]
        self.positions = torch.arange(self.shape[1], device=device)
        #: [B, S]: keys that there are.
        self.is_stored = (self.positions >= starts) & (self.positions < ends)
        #: [B, T]: the last key that a query sees.
        self.last = ends - queries + torch.arange(queries, device=device)
        #: [B, T]: queries before the first key are padding.
        self.is_query = self.last >= starts
        first = torch.arange(table.shape[1], device=device) * page_size
        is_read = (first < ends) & (first + page_size > starts)
        # Other entries may be anything.
        self.numbers = torch.where(is_read, table.to(torch.int64), 0).reshape(-1)

    def read(self, cache: Tensor, dtype: torch.dtype) -> Tensor:
        """``[B, H, S, D]``, zero where nothing is stored (there may be NaN)."""
        rows = cache.index_select(0, self.numbers)
        rows = rows.reshape(*self.shape, *cache.shape[2:])
        rows = torch.where(self.is_stored[:, :, None, None], rows, 0)
        return rows.to(dtype).transpose(1, 2)

    def is_seen(self, window: int = 0) -> Tensor:
        """``[B, 1, T, S]``; with a window a query sees so many keys at most."""
        last = self.last[:, :, None]
        seen = self.is_stored[:, None, :] & (self.positions <= last)
        if window > 0:
            seen = seen & (self.positions > last - window)
        return seen[:, None]

    def finish(self, attended: Tensor) -> Tensor:
        """``[B, H, T, D]`` as ``[B, T, H, D]``, zero for queries that are padding."""
        is_query = self.is_query[:, :, None, None]
        return torch.where(is_query, attended.transpose(1, 2), 0)


def paged_attn_compute(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    scale: float,
    current_tkv_mask: Tensor,
    left_padded_prompt_mask: Tensor,
    block_table: Tensor,
) -> Tensor:
    """Attention of ``[B, T, heads, D]`` over the pages of each sequence, like it.

    Sequence i has the keys from ``left_padded_prompt_mask[i]`` to
    ``current_tkv_mask[i]``, that one excluded, in the pages ``block_table[i]``. Queries
    belong to the last T keys, and see no later ones; those before the first key give 0.
    """
    size, queries = value_cache.shape[1], query.shape[1]
    pages = _Pages(
        block_table, size, queries, current_tkv_mask, left_padded_prompt_mask
    )
    attended = functional.scaled_dot_product_attention(
        query.transpose(1, 2),
        pages.read(key_cache, query.dtype),
        pages.read(value_cache, query.dtype),
        attn_mask=pages.is_seen(),
        scale=scale,
        enable_gqa=True,
    )
    return pages.finish(attended)


def paged_attn_compute_with_sinks(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    scale: float,
    current_tkv_mask: Tensor,
    left_padded_prompt_mask: Tensor,
    block_table: Tensor,
    sinks: Tensor,
    sliding_window: int,
) -> Tensor:
    """``paged_attn_compute`` times ``sigmoid(logsumexp of the scores - sinks)``.

    ``sinks`` is ``[heads]``. A ``sliding_window`` above 0 says how many keys a
    query sees.
    """
    size, queries = value_cache.shape[1], query.shape[1]
    pages = _Pages(
        block_table, size, queries, current_tkv_mask, left_padded_prompt_mask
    )
    # The same as one more key, whose score is the sink and whose value is 0.
    key, value = (
        functional.pad(pages.read(cache, query.dtype), (0, 0, 0, 1))
        for cache in (key_cache, value_cache)
    )
    seen = pages.is_seen(sliding_window)
    shape = (query.shape[0], query.shape[2], queries)
    infinity = torch.full((), float("-inf"), dtype=query.dtype, device=query.device)
    mask = torch.where(seen, torch.zeros_like(infinity), infinity)
    column = sinks.to(query.dtype).reshape(1, -1, 1, 1).expand(*shape, 1)
    mask = torch.cat([mask.expand(*shape, mask.shape[-1]), column], -1)
    attended = functional.scaled_dot_product_attention(
        query.transpose(1, 2), key, value, attn_mask=mask, scale=scale, enable_gqa=True
    )
    return pages.finish(attended)


#: By the name of the operator, once somebody has defined it.
OPERATORS: dict[str, Callable[..., Any]] = {
    "paged_attn_store": paged_attn_store,
    "paged_attn_compute": paged_attn_compute,
    "paged_attn_compute_with_sinks": paged_attn_compute_with_sinks,
}
