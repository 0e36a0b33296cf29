# SPDX-License-Identifier: Apache-2.0
"""How inputs of programs for many sizes lie on their storages.

The home of a storage is the tensor that it was made for. A program for many sizes has
to know how long its dimensions are at each of them, but is given views: transposed,
with more dimensions, or of some columns only.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def home_as_traced(
    home_sizes: Sequence[int],
    home_strides: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    traced: Sequence[Size],
) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """Sizes and strides of a home, from how an input that was ``traced`` lies on it.

    A dimension that dimensions of the input walk whole, in whatever order the input has
    them, is always as long as these. Any other one is as long as in the call, and so is
    all of a home that is not contiguous, or is empty.
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
    return tuple(home), _contiguous_strides(home)


def span_of(tensor: torch.Tensor, traced: torch.Tensor) -> Size:
    """How many elements the storage of an input has, as that was traced."""
    _, _, sizes, strides, _, _ = _C.tensor_info(tensor)
    if 0 in sizes:
        return 0
    home = home_as_traced(
        sizes, strides, tuple(tensor.shape), tensor.stride(), traced.shape
    )
    return 1 + sum((n - 1) * t for n, t in zip(*home, strict=True))
