# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows with matrices of their own.

The groups of ``aten._grouped_mm`` follow each other, and offsets, which are values, say
where they end; ``moe::moe_mm`` of ibm-fms names the group of each row. Few rows are
multiplied with the matrix of each. Few groups are as many products of all rows, of
which each row keeps one. Of many groups, blocks of rows that belong to one group are
multiplied: there is room for the last block of every group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.ordering import in_order, search

aten = torch.ops.aten

#: Groups up to which all rows are multiplied with all matrices.
_FEW = 8
#: Rows of a block: the lanes of a stick.
_BLOCK = 64


def _group_of_each(offsets: Tensor, count: int) -> Tensor:
    """The group of each row; that of the last group for rows behind all."""
    rows = torch.arange(count, device=offsets.device)
    groups = search(offsets.to(torch.int64), rows, right=True)
    return groups.clamp(max=offsets.numel() - 1)


def _few_groups(x: Tensor, matrices: Tensor, groups: Tensor) -> Tensor:
    total: Any = None
    for group in range(matrices.shape[0]):
        own = (groups == group)[:, None]
        part = torch.where(own, x @ matrices[group], 0.0)
        total = part if total is None else total + part
    return total


def _by_blocks(x: Tensor, matrices: Tensor, offsets: Tensor, groups: Tensor) -> Tensor:
    """``[T, K]`` and ``[G, K, N]``; blocks are numbered group by group."""
    count, depth = x.shape
    numbers = torch.arange(
        (count + _BLOCK - 1) // _BLOCK + matrices.shape[0], device=x.device
    )
    ends = offsets.to(torch.int64)
    starts = torch.nn.functional.pad(ends[:-1], (1, 0))
    blocks = (ends - starts + (_BLOCK - 1)) // _BLOCK
    block_ends = blocks.cumsum(0)
    block_starts = block_ends - blocks
    group = search(block_ends, numbers, right=True).clamp(max=matrices.shape[0] - 1)
    first = starts[group] + (numbers - block_starts[group]) * _BLOCK
    rows = first[:, None] + torch.arange(_BLOCK, device=x.device)
    taken = x.index_select(0, rows.reshape(-1).clamp(max=count - 1))
    products = torch.bmm(taken.view(-1, _BLOCK, depth), matrices.index_select(0, group))
    # Where each row is among the blocks.
    place = torch.arange(count, device=x.device) - starts[groups]
    place = block_starts[groups] * _BLOCK + place
    place = place.clamp(max=numbers.numel() * _BLOCK - 1)
    return products.view(-1, matrices.shape[2]).index_select(0, place)


def _in_any_order(x: Tensor, matrices: Tensor, groups: Tensor) -> Tensor | None:
    """The products of few rows or few groups, whatever the order of the rows."""
    count: Any = x.shape[0]
    if isinstance(count, int) and count <= matrices.shape[0]:
        return torch.bmm(x[:, None], matrices.index_select(0, groups))[:, 0]
    if matrices.shape[0] <= _FEW:
        return _few_groups(x, matrices, groups)
    return None


def _rows_by_group(x: Tensor, matrices: Tensor, offsets: Tensor) -> Tensor:
    groups = _group_of_each(offsets, x.shape[0])
    products = _in_any_order(x, matrices, groups)
    if products is None:
        products = _by_blocks(x, matrices, offsets, groups)
    return products


def _sums_by_group(x: Tensor, y: Tensor, offsets: Tensor) -> Tensor:
    """``[M, K]`` and ``[K, N]``, of which a group has a part of K: ``[G, M, N]``."""
    inside = torch.arange(x.shape[1], device=x.device) < offsets[-1]
    groups = torch.where(inside, _group_of_each(offsets, x.shape[1]), -1)
    parts = [
        torch.where(groups == group, x, 0.0) @ y for group in range(offsets.numel())
    ]
    return torch.stack(parts)


def grouped_mm(
    x: Tensor,
    y: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """``aten._grouped_mm``; rows behind the last offset mean nothing."""
    if bias is not None or (offs is None) != (x.dim() == 3 and y.dim() == 3):
        return NotImplemented
    if 0 in x.shape or 0 in y.shape:
        return NotImplemented
    if offs is None:
        result = torch.bmm(x, y)
    elif x.dim() == 2 and y.dim() == 3:
        result = _rows_by_group(x, y, offs)
    elif x.dim() == 3:
        transposed = _rows_by_group(y.transpose(0, 1), x.transpose(1, 2), offs)
        result = transposed.transpose(0, 1)
    else:
        result = _sums_by_group(x, y, offs)
    return result.to(out_dtype or x.dtype).contiguous()


def moe_mm(
    x: Tensor,
    matrices: Tensor,
    experts: Tensor,
    padded_token_ids_per_block: Tensor,
    expert_block_mapping: Tensor,
    total_padded_tokens: Tensor,
    topk: int,
    padding_size: int,
) -> Tensor:
    """``moe::moe_mm`` of ibm-fms: ``[T, K]`` and ``[E, N, K]``, to ``[M, A, N]``.

    ``experts``, ``[M, A]``, names the matrix of each product. Each row is in ``topk``
    of them, which follow each other. The blocks that the library arranges are those of
    its kernel for GPUs.
    """
    if 0 in x.shape or 0 in matrices.shape or experts.numel() == 0:
        return NotImplemented
    count, depth = x.shape
    rows = x[:, None, :].expand(count, topk, depth).reshape(-1, depth)
    weights, groups = matrices.transpose(1, 2), experts.reshape(-1)
    products = _in_any_order(rows, weights, groups)
    if products is None:
        numbers = torch.arange(matrices.shape[0], device=x.device)
        offsets = (groups[:, None] == numbers).sum(0).cumsum(0)
        ordered, order = in_order(groups)
        by_group = _by_blocks(rows.index_select(0, order), weights, offsets, ordered)
        products = torch.zeros_like(by_group).index_copy(0, order, by_group)
    return products.view(*experts.shape, -1).to(x.dtype)


def grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """``transformers::grouped_mm_fallback``, which compiled models call for
    ``aten._grouped_mm``: rows behind the last offset are zero.
    """
    result = grouped_mm(input, weight, offs)
    if result is NotImplemented:
        return NotImplemented
    rows = torch.arange(input.shape[0], device=input.device)
    return torch.where((rows < offs[-1])[:, None], result, 0.0)


#: Operators of other libraries, which are there if the library is.
FOREIGN: dict[str, Callable] = {
    "moe::moe_mm": moe_mm,
    "transformers::grouped_mm_fallback": grouped_mm_fallback,
}
DECOMPOSITIONS: dict[Any, Callable] = {aten._grouped_mm.default: grouped_mm}
