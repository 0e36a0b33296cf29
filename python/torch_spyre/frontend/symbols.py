# SPDX-License-Identifier: Apache-2.0
"""The symbols of a graph's sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.fx import Node

from torch_spyre.frontend.bindings import Binding
from torch_spyre.frontend.declared_sizes import declared_sizes
from torch_spyre.frontend.size_classes import (
    SYMBOLIC,
    SizeClass,
    SteppedSymbol,
    Symbol,
)


def unbacked_symbols(value: Any) -> set[sympy.Symbol]:
    """The symbols of a node's fake value that stand for numbers read from tensors."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    found: set[sympy.Symbol] = set()
    is_tensor = isinstance(value, torch.Tensor)
    for leaf in (value,) if is_tensor else torch.utils._pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            is_symbolic = leaf._has_symbolic_sizes_strides
        else:
            is_symbolic = isinstance(leaf, SYMBOLIC)
        if is_symbolic:
            found |= free_unbacked_symbols(leaf)
    return found


class Symbols:
    """The symbols of a graph's sizes, which its placeholders have.

    If they are ``is_stepped``, programs for many sizes are for what SuperDSC has: the
    multiples of a step that is declared. All other sizes are numbers.
    """

    def __init__(self, placeholders: Sequence[Node], is_stepped: bool = False) -> None:
        self.symbols: list[Symbol] = []
        self.is_stepped = is_stepped
        self._numbers: dict[sympy.Symbol, int] = {}
        self._env: Any = None
        for position, node in enumerate(placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                self._add(value, position, None)
            elif isinstance(value, torch.Tensor):
                for dim, size in enumerate(value.shape):
                    self._add(size, position, dim)

    def _add(self, size: Any, argument: int, dim: int | None) -> None:
        if not isinstance(size, torch.SymInt):
            return
        # The size of a dimension that is ragged stands for no number.
        if size.node.is_nested_int():
            return
        symbol = size.node.expr
        if not isinstance(symbol, sympy.Symbol) or symbol in self._numbers:
            return
        self._env = size.node.shape_env
        bounds = self._env.bound_sympy(symbol)
        most = int(bounds.upper) if bounds.upper.is_Integer else None
        least = int(bounds.lower) if bounds.lower.is_Integer else 0
        self._numbers[symbol] = len(self.symbols)
        if not self.is_stepped:
            self.symbols.append(Symbol(str(symbol), argument, dim, least, most))
            return
        declared = declared_sizes(self._env).get(symbol)
        self.symbols.append(
            SteppedSymbol(str(symbol), argument, dim, least, most, declared)
        )

    def guards(self) -> list[Any]:
        """The conditions on the sizes, of PyTorch's, that hold in all calls."""
        return [] if self._env is None else [g.expr for g in self._env.guards]

    def sizes_of(self, args: Sequence[Any]) -> tuple[int, ...]:
        """What the symbols are in one call."""
        return tuple(
            args[s.argument] if s.dim is None else args[s.argument].shape[s.dim]
            for s in self.symbols
        )

    def classes_of(self, sizes: Sequence[int]) -> tuple[SizeClass, ...] | None:
        """The classes of these sizes; None if a program for many is of no use."""
        classes = [s.class_of(n) for s, n in zip(self.symbols, sizes, strict=True)]
        if None in classes or all(c.least == c.most for c in classes if c):
            return None
        return tuple(classes)  # type: ignore[arg-type]

    def bind(
        self,
        sizes: Sequence[int],
        classes: Sequence[SizeClass],
        is_merged: bool = False,
        fixed: frozenset[sympy.Symbol] = frozenset(),
    ) -> Binding:
        """Programs' own symbols for a call: those that are ``fixed``, or of a class of
        one size, become numbers; if it ``is_merged``, those that are equal become one.
        """
        binding = Binding(has_quotients=not self.is_stepped)
        known: dict[Any, int] = {}
        for symbol, number in self._numbers.items():
            if symbol in fixed or classes[number].least == classes[number].most:
                binding.fix(symbol, sizes[number])
                continue
            key = sizes[number] if is_merged else number
            known[key] = binding.add(
                symbol,
                self.symbols[number],
                classes[number],
                sizes[number],
                known.get(key),
            )
        return binding

    def unchanged(
        self, sizes: Sequence[int], before: Sequence[int]
    ) -> frozenset[sympy.Symbol]:
        """The symbols that are the same in two calls."""
        return frozenset(
            symbol
            for symbol, number in self._numbers.items()
            if sizes[number] == before[number]
        )

    def value_at(self, value: Any, sizes: Sequence[int]) -> Any:
        """A number of PyTorch's metadata where the symbols have these sizes; None if it
        depends on others.
        """
        known = {s: sympy.Integer(sizes[n]) for s, n in self._numbers.items()}
        number = value.node.expr.xreplace(known)
        if number.free_symbols:
            return None
        return value.node.pytype(number)

    def by_size(
        self, sizes: Sequence[int], some: frozenset[sympy.Symbol]
    ) -> list[frozenset[sympy.Symbol]]:
        """Those that are equal in a call, the smallest first."""
        groups: dict[int, set[sympy.Symbol]] = {}
        for symbol in some:
            groups.setdefault(sizes[self._numbers[symbol]], set()).add(symbol)
        return [frozenset(groups[size]) for size in sorted(groups)]

    def all(self) -> frozenset[sympy.Symbol]:
        """All of them."""
        return frozenset(self._numbers)

    def sizes_in(self, tensors: Sequence[Any]) -> frozenset[sympy.Symbol]:
        """The symbols that are sizes of fake tensors."""
        sizes = (size for tensor in tensors for size in tensor.shape)
        exprs = {size.node.expr for size in sizes if isinstance(size, torch.SymInt)}
        return frozenset(exprs & self._numbers.keys())

    def of(self, tensor: torch.Tensor, is_all: bool) -> frozenset[sympy.Symbol]:
        """The symbols in the strides and the offset of a fake tensor; in its sizes too
        if ``is_all``.
        """
        values = [*tensor.stride(), tensor.storage_offset()]
        if is_all:
            values += tensor.shape
        free: set[sympy.Symbol] = set()
        for value in values:
            if isinstance(value, SYMBOLIC):
                free |= value.node.expr.free_symbols
        return frozenset(free & self._numbers.keys())
