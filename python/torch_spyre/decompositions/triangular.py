# SPDX-License-Identifier: Apache-2.0
"""Systems of equations whose matrix is triangular."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: Rows beyond which the CPU is faster: products of whole matrices grow with the cube.
_MOST_ROWS = 256


def _inverse(a: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """Of the blocks along the diagonal, each step of twice the size.

    What lies beside the inverses P and Q of two neighbours is -P A Q or -Q A P, with
    the part of the matrix there: so it takes a step for every doubling, not for every
    row. The halves that are not read may hold anything.
    """
    rows = a.shape[-1]
    number = torch.arange(rows, dtype=torch.int32, device=a.device)
    is_diagonal = number[:, None] == number
    # A row of the diagonal, which the others' places do not take part in.
    diagonal = 1.0 if unitriangular else a.diagonal(dim1=-2, dim2=-1).reciprocal()
    if isinstance(diagonal, Tensor):
        diagonal = diagonal[..., None]
    inverse = torch.where(is_diagonal, diagonal, torch.zeros_like(a))
    size = 1
    while size < rows:
        block = number // size
        pair = number // (2 * size)
        first, second = (block[:, None], block) if upper else (block, block[:, None])
        is_beside = (second == first + 1) & (pair[:, None] == pair)
        beside = torch.where(is_beside, a, 0.0)
        inverse = inverse - inverse @ beside @ inverse
        size *= 2
    return inverse


def solve_triangular(
    a: Tensor,
    b: Tensor,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """The X of A X = B, or of X A = B, as PyTorch stores it: column by column."""
    is_empty = a.numel() == 0 or b.numel() == 0
    if is_empty or a.dtype != torch.float32 or a.shape[-1] > _MOST_ROWS:
        return NotImplemented
    inverse = _inverse(a, upper, unitriangular).mT
    return (b.mT @ inverse if left else inverse @ b.mT).mT


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.linalg_solve_triangular.default: solve_triangular,
}
