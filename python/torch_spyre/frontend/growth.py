# SPDX-License-Identifier: Apache-2.0
"""Caches that grow in place.

``torch.cat((cache, new), dim)`` copies the cache. Where a result of a program holds an
input and more rows, its storage is marked as one that grows (``_C.room_of()``), unless
its sticks run along ``dim``. A program whose input is so marked takes the result for an
argument: memory with room, whose first rows are those of the input, in which it stores
the new ones. ``lib/Torch/Launch/Growth.h`` says how the input stays what it is.

A program for many lengths has the room in its layout. One for a single length, or for
the last rows of what has grown, which is how a window slides, takes what is stored row
by row: the rows that it gets may begin anywhere in a block.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import make_contiguous_strides_for
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.frontend.bindings import Binding
from torch_spyre.frontend.importer import (
    Importer,
    InputKind,
    StorageSpec,
    TensorSpec,
    location_of,
)
from torch_spyre.frontend.size_classes import at

aten = torch.ops.aten

#: Up to so many rows, there is room for all that the sizes of a program allow; beyond,
#: for a power of two.
_FEW_ROWS = 1024


@dataclass(frozen=True)
class Growth:
    """A concatenation of a part whose result holds an input, and is returned, or some
    of its rows are.
    """

    node: Node
    dim: int
    #: What comes behind the input.
    parts: tuple[Node, ...]
    #: What is returned.
    output: Node


def find(
    nodes: Sequence[Node],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    metas: Mapping[Node, Any],
) -> list[Growth]:
    """The concatenations whose results a next call may grow."""
    found = []
    for node in nodes:
        if node.target is not aten.cat.default:
            continue
        output = next((n for n in (node, *_slices_of(node)) if n in outputs), None)
        if output is None:
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
        found.append(Growth(node, dim % result.dim(), tuple(parts), output))
    return found


def _slices_of(node: Node) -> list[Node]:
    return [user for user in node.users if user.target is aten.slice.Tensor]


def uses_alone(growth: Growth, nodes: Set[Node], outputs: Sequence[Node]) -> bool:
    """Whether nothing else in a part uses the input of a concatenation."""
    first = growth.node.args[0][0]
    return (
        first not in outputs
        and first not in growth.parts
        and not any(user in nodes for user in first.users if user is not growth.node)
    )


def storage_of(growth: Growth, inputs: Sequence[Node], kind: InputKind) -> int | None:
    """The number of the storage that the input of a concatenation is all of, or has the
    last rows of, if no other input is on it.
    """
    number = inputs.index(growth.node.args[0][0])
    storage = kind.owner[number]
    spec, home = kind.specs[number], kind.storages[storage]
    if kind.owner.count(storage) != 1:
        return None
    dense = make_contiguous_strides_for(home.home_sizes)
    # Where one row says nothing of the layout, it does not say how it grows.
    if (
        len(spec.sizes) != len(home.home_sizes)
        or home.home_strides != dense
        or home.home_sizes[growth.dim] < 2
    ):
        return None
    for dim, size in enumerate(spec.sizes):
        if dim != growth.dim and size != home.home_sizes[dim]:
            return None
        if size > 1 and spec.strides[dim] != dense[dim]:
            return None
    first = home.home_sizes[growth.dim] - spec.sizes[growth.dim]
    return storage if spec.offset == first * dense[growth.dim] else None


def add_to(
    importer: Importer, growth: Growth, argument: int, metas: Mapping[Node, Any]
) -> None:
    """Imports a concatenation whose result is an argument that has the first rows
    already.
    """
    node, dim = growth.node, growth.dim
    location = location_of(node)
    spec = importer.spec_of(metas[node])
    begin = importer.spec_of(metas[node.args[0][0]]).sizes[dim]
    for part in growth.parts:
        end = begin + importer.spec_of(metas[part]).sizes[dim]
        whole = importer.builder.view(
            argument, list(spec.sizes), list(spec.strides), 0, location
        )
        (stored,) = importer.builder.op(
            "aten.slice_scatter.default",
            [
                _C.ValueId(whole),
                _C.ValueId(importer.values[part]),
                dim,
                begin,
                end,
                1,
            ],
            {},
            [(spec.dtype, list(spec.sizes), list(spec.strides))],
            location,
        )
        importer.builder.mutate(argument, stored, location)
        begin = end
    importer.values[node] = importer.add_tensor(
        argument, TensorSpec(spec.dtype, spec.sizes, spec.strides, 0), location
    )
    importer.offset_delta[node] = -spec.offset


def varies_along(dim: int, tensor: torch.Tensor, binding: Binding) -> bool:
    """Whether this is the only size of a fake tensor that a program leaves open."""
    return not isinstance(binding.size(tensor.shape[dim]), int) and may_grow_along(
        dim, tensor, binding
    )


def may_grow_along(dim: int, tensor: torch.Tensor, binding: Binding) -> bool:
    """Whether all other sizes of a fake tensor are numbers in a program."""
    return all(
        isinstance(binding.size(size), int)
        for number, size in enumerate(tensor.shape)
        if number != dim
    )


def rows_at(sizes: Sequence[int], dtype: torch.dtype, dim: int) -> StorageSpec | None:
    """A storage of these sizes row by row along a dimension; None if there is none."""
    layout = _C.rows_layout(list(sizes), dtype, dim)
    if layout is None:
        return None
    strides = make_contiguous_strides_for(tuple(sizes))
    return StorageSpec(dtype, tuple(sizes), tuple(strides), layout)


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
    row_by_row: Container[int],
    metas: Mapping[Node, Any],
    binding: Binding,
) -> dict[int, Room]:
    """By their numbers, the storages that have room in their layouts, or get it.

    Narrows the sizes of the program to those for which there is, or will be, room.
    """
    rooms: dict[int, tuple[Room, int]] = {}
    for number, first in enumerate(kind.first):
        found = _C.room_of(inputs[first])
        if found is None or number in row_by_row:
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
