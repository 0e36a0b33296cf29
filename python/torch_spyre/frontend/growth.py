# SPDX-License-Identifier: Apache-2.0
"""Caches that grow in place.

``torch.cat((cache, new), dim)`` copies the cache. Where a result of a program holds an
input and more rows, its storage is marked as one that grows (``_C.room_of()``), unless
its sticks run along ``dim``. A program for many sizes whose input is so marked takes
the result for an argument: memory with room, whose first rows are those of the input,
in which it stores the new ones. ``lib/Torch/Launch/Growth.h`` says how the input stays
what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import make_contiguous_strides_for
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.frontend.importer import InputKind
from torch_spyre.frontend.symbols import Binding, at

aten = torch.ops.aten

#: Up to so many rows, there is room for all that the sizes of a program allow; beyond,
#: for a power of two.
_FEW_ROWS = 1024


@dataclass(frozen=True)
class Growth:
    """A concatenation of a part whose result holds an input, and is returned."""

    node: Node
    dim: int
    #: What comes behind the input.
    parts: tuple[Node, ...]


def find(
    nodes: Sequence[Node],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    metas: Mapping[Node, Any],
) -> list[Growth]:
    """The concatenations whose results a next call may grow."""
    found = []
    for node in nodes:
        if node.target is not aten.cat.default or node not in outputs:
            continue
        result = metas[node]
        first, *parts = node.args[0]
        if first not in inputs or not parts or not result.is_contiguous():
            continue
        if any(
            metas[part].dtype != result.dtype or metas[part].dim() != result.dim()
            for part in (first, *parts)
        ):
            continue
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        found.append(Growth(node, dim % result.dim(), tuple(parts)))
    return found


def storage_of(
    growth: Growth,
    nodes: Set[Node],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    kind: InputKind,
) -> int | None:
    """The number of the storage that the input of a concatenation is all of, if
    nothing else in the part uses it.
    """
    first = growth.node.args[0][0]
    if first in outputs or first in growth.parts:
        return None
    if any(user in nodes for user in first.users if user is not growth.node):
        return None
    number = inputs.index(first)
    storage = kind.owner[number]
    spec, home = kind.specs[number], kind.storages[storage]
    if kind.owner.count(storage) != 1 or spec.offset != 0:
        return None
    dense = make_contiguous_strides_for(home.home_sizes)
    if (spec.sizes, spec.strides) != (home.home_sizes, dense):
        return None
    # Where one row says nothing of the layout, it does not say how it grows.
    if home.home_strides != dense or home.home_sizes[growth.dim] < 2:
        return None
    return storage


def varies_along(dim: int, tensor: torch.Tensor, binding: Binding) -> bool:
    """Whether this is the only size of a fake tensor that a program leaves open."""
    return all(
        isinstance(binding.size(size), int) != (number == dim)
        for number, size in enumerate(tensor.shape)
    )


@dataclass(frozen=True)
class Room:
    """How a storage lies in memory with room for more rows."""

    dim: int
    #: How many rows a program uses: a size of its own symbols.
    rows: Any
    #: The layout without room.
    layout: _C.SpyreTensorLayout


def rooms_of(
    inputs: Sequence[torch.Tensor],
    kind: InputKind,
    traced: Sequence[torch.Tensor],
    growing: Mapping[int, Growth],
    metas: Mapping[Node, Any],
    binding: Binding,
) -> dict[int, Room]:
    """By their numbers, the storages that have room, or get it.

    Narrows the sizes of the program to those for which there is, or will be, room.
    """
    rooms: dict[int, tuple[Room, int]] = {}
    for number, first in enumerate(kind.first):
        found = _C.room_of(inputs[first])
        if found is None:
            continue
        dim, most, tight = found
        tensor = metas[growing[number].node] if number in growing else traced[first]
        if dim >= tensor.dim() or not varies_along(dim, tensor, binding):
            continue
        rows = tensor.shape[dim]
        if number in growing:
            if binding.most(rows) > _FEW_ROWS:
                most = _FEW_ROWS
                while most < at(binding.size(rows), binding.hints):
                    most *= 2
                binding.require(most - rows)
        elif tight == kind.storages[number].layout:
            continue
        else:
            binding.require(most - rows)
            binding.widen(rows, most)
        rooms[number] = Room(dim, binding.size(rows), tight), most
    return {
        number: room
        for number, (room, most) in rooms.items()
        if number in growing or binding.most(room.rows) == most
    }


def is_grown(tensor: torch.Tensor, dim: int) -> bool:
    """Whether a storage has grown along a dimension of its home."""
    room = _C.room_of(tensor)
    return room is not None and room[0] == dim
