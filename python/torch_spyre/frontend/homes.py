# SPDX-License-Identifier: Apache-2.0
"""How inputs of programs for many sizes lie on their storages.

The home of a storage is the tensor that it was made for. A program for many sizes has
to know how long its dimensions are at each of them, but is given views: transposed,
with more dimensions, or of some columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torch_spyre import _C
from torch_spyre.frontend.size_classes import Size


def is_part(tensor: torch.Tensor) -> bool:
    """Whether a tensor is not all of its storage, as this was made."""
    _, _, sizes, strides, _, _ = _C.tensor_info(tensor)
    return tensor.storage_offset() != 0 or (tuple(sizes), tuple(strides)) != (
        tuple(tensor.shape),
        tensor.stride(),
    )


def _contiguous_strides(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Of a contiguous tensor of sizes that are not 0."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = size * step
    return tuple(strides)


@dataclass(frozen=True)
class Straddle:
    """A dimension of a view that walks several dimensions of a home, of which one
    varies with it: that is as long as the view's divided by a number.
    """

    dim: int
    home_dim: int
    divisor: int


def straddle_of(
    tensor: torch.Tensor, before: Sequence[int] | None = None
) -> Straddle | None:
    """How a tensor walks several dimensions of its home; None if it does not.

    The one that varies is that which differs from the home of an input ``before``, or
    the first one.
    """
    _, _, sizes, strides, _, _ = _C.tensor_info(tensor)
    if 0 in sizes or tuple(strides) != _contiguous_strides(sizes):
        return None
    for dim, (size, stride) in enumerate(
        zip(tensor.shape, tensor.stride(), strict=True)
    ):
        walked = [
            home_dim
            for home_dim, (length, step) in enumerate(zip(sizes, strides, strict=True))
            if length > 1 and step * length > stride and step < stride * size
        ]
        if size == 1 or len(walked) < 2:
            continue
        found = walked[0]
        if before is not None and len(before) == len(sizes):
            found = next((d for d in walked if before[d] != sizes[d]), found)
        ends = strides[walked[0]] * sizes[walked[0]] == size * stride
        if ends and stride <= strides[found] and size % sizes[found] == 0:
            return Straddle(dim, found, size // sizes[found])
    return None


def home_as_traced(
    home_sizes: Sequence[int],
    home_strides: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    traced: Sequence[Size],
    straddle: Straddle | None = None,
) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """Sizes and strides of a home, from how an input that was ``traced`` lies on it.

    A dimension that dimensions of the input walk whole, in whatever order the input has
    them, is always as long as these, or as the ``straddle`` says. Any other one is as
    long as in the call, and so is all of a home that is not contiguous, or is empty.
    """
    if 0 in home_sizes or tuple(home_strides) != _contiguous_strides(home_sizes):
        return tuple(home_sizes), tuple(home_strides)
    home: list[Size] = []
    for length, step in zip(home_sizes, home_strides, strict=True):
        inside = sorted(
            (stride, dim)
            for dim, stride in enumerate(strides)
            if sizes[dim] != 1 and step <= stride < step * length
        )
        whole: Size = 1
        reached = step
        for stride, dim in inside:
            if stride != reached:
                break
            whole = traced[dim] * whole
            reached *= sizes[dim]
        home.append(whole if reached == step * length else length)
    if straddle is not None:
        home[straddle.home_dim] = traced[straddle.dim] // straddle.divisor
    return tuple(home), _contiguous_strides(home)


def span_of(
    tensor: torch.Tensor, traced: torch.Tensor, straddle: Straddle | None
) -> Size:
    """How many elements the storage of an input has, as that was traced."""
    _, _, sizes, strides, _, _ = _C.tensor_info(tensor)
    if 0 in sizes:
        return 0
    home = home_as_traced(
        sizes, strides, tuple(tensor.shape), tensor.stride(), traced.shape, straddle
    )
    return 1 + sum((n - 1) * t for n, t in zip(*home, strict=True))


def offset_of(tensor: torch.Tensor, traced: torch.Tensor) -> Size:
    """Where an input begins in its storage: a number is what it is in the call."""
    offset = traced.storage_offset()
    return tensor.storage_offset() if isinstance(offset, int) else offset


def moves_of(
    inputs: Sequence[torch.Tensor], owners: Sequence[int], traced: Sequence[Size]
) -> dict[int, int]:
    """By how much the inputs on each storage, of these ``owners``, lie further on than
    in a program, where all that they were ``traced`` at are numbers.

    Dynamo asks for no offset where it saw 0 or 1: inputs may lie anywhere then.
    """
    moves: dict[int, int] = {}
    vary = set()
    for owner, offset, (shift, _) in zip(
        owners, traced, _C.shift_views(inputs), strict=True
    ):
        moves[owner] = shift
        if not isinstance(offset, int):
            vary.add(owner)
    return {owner: shift for owner, shift in moves.items() if owner not in vary}
