# SPDX-License-Identifier: Apache-2.0
"""Kernels as torch-spyre describes them in Python.

docs/spec/drop-in.md, "`torch_spyre._inductor`: all lack", has the names and fields,
docs/spec/passes.md, "Specs", more about them. Compiled graphs here are planned
``spyre_graph`` instead; these are for code that makes specifications by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sympy import Expr, Symbol

    from torch_spyre._C import DataFormats


@dataclass
class TensorArg:
    """A tensor that an operation reads or writes."""

    is_input: bool
    #: Which argument of the kernel; -1 for what only the kernel sees.
    arg_index: int
    device_dtype: DataFormats
    #: Elements along each device dimension, the stick last.
    device_size: list[int]
    #: The index along each device dimension, by the iteration space's symbols.
    device_coordinates: list[Expr]
    #: Memory ("hbm", "lx" or "pool") -> address in bytes.
    allocation: dict[str, int]
    #: Host elements per step along each device dimension.
    stride_map: list[int] | None = None
    per_tile_fixed: bool = False
    name: str | None = None


@dataclass
class OpSpec:
    """A device operation over an iteration space."""

    op: str
    is_reduction: bool
    #: Loop -> (extent in elements, cores it is divided between).
    iteration_space: dict[Symbol, tuple[Expr, int]]
    args: list[TensorArg]
    op_info: dict[str, Any]
    tiled_symbols: list[Symbol] = field(default_factory=list)


@dataclass
class LoopSpec:
    """Operations that run ``count`` times in turn."""

    count: Expr | int
    body: list[Any]
    tiled_symbols: list[Symbol] = field(default_factory=list)


@dataclass
class UnimplementedOp:
    """An operation that the card has no name for."""

    op: str


@dataclass
class IndirectAccess:
    """A coordinate that is read from the tensor of that name."""

    name: str


def find_unimplemented(specs: Iterable[Any]) -> UnimplementedOp | None:
    """The first operation that is not implemented, loops' bodies included, or None."""
    for spec in specs:
        if isinstance(spec, UnimplementedOp):
            return spec
        if isinstance(spec, LoopSpec):
            found = find_unimplemented(spec.body)
            if found is not None:
                return found
    return None


__all__ = [
    "IndirectAccess",
    "LoopSpec",
    "OpSpec",
    "TensorArg",
    "UnimplementedOp",
    "find_unimplemented",
]
