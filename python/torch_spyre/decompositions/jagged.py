# SPDX-License-Identifier: Apache-2.0
"""Rows of parts of different lengths, one after the other, and padded to one length.

PyTorch computes with nested tensors of layout ``torch.jagged`` in the padded form where
operators need it. Part i has the rows from ``offsets[i]`` to ``offsets[i + 1]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_spyre.decompositions.segments import part_of_each

aten = torch.ops.aten


def _to_padded(
    values: Tensor,
    offsets: Sequence[Tensor],
    max_lengths: Sequence[int],
    padding_value: float = 0.0,
) -> Tensor:
    """``aten._jagged_to_padded_dense_forward``: [rows, ...] as [parts, length, ...].

    Rows of a part beyond the length are left out.
    """
    (ends,), (length,) = offsets, max_lengths
    shape = (ends.shape[0] - 1, length, *values.shape[1:])
    number: Any = padding_value
    if not values.is_floating_point():
        number = bool(number) if values.dtype == torch.bool else int(number)
    if values.shape[0] == 0:
        return values.new_full(shape, number)
    rows = ends[:-1, None] + torch.arange(length, device=values.device)
    is_row = rows < ends[1:, None]
    taken = values.index_select(0, rows.clamp(max=values.shape[0] - 1).reshape(-1))
    is_row = is_row.reshape(*shape[:2], *[1] * (values.dim() - 1))
    return torch.where(is_row, taken.reshape(shape), number)


def _to_jagged(
    dense: Tensor, offsets: Sequence[Tensor], total_L: int | None = None
) -> Tensor:
    """``aten._padded_dense_to_jagged_forward``: the other way round."""
    if total_L is None:
        return NotImplemented  # How many rows there are, only the offsets say.
    (ends,) = offsets
    length = dense.shape[1]
    part = part_of_each(total_L, ends[:-1])
    shift = part * length - ends.index_select(0, part)
    at = torch.arange(total_L, device=dense.device) + shift
    return dense.flatten(0, 1).index_select(0, at)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._jagged_to_padded_dense_forward.default: _to_padded,
    aten._padded_dense_to_jagged_forward.default: _to_jagged,
}
