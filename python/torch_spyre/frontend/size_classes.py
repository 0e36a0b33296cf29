# SPDX-License-Identifier: Apache-2.0
"""Sizes that share a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from torch_spyre.frontend.declared_sizes import DeclaredSizes

#: The least size that shares a program with others.
LEAST = 2
#: Of each symbol, the largest size of the first class of its sizes. Plans are made for
#: the largest size: one that is far too large for a call would keep intermediates out
#: of LX that then fit. So the next classes end at twice the size of the one before.
FIRST_CLASS = 512
#: Where that is larger, intermediates of these sizes fit seldom, and classes end at
#: eight times the size of the one before.
_LAST_DOUBLED_CLASS = 32768

#: Of so few sizes each may be looked at.
_FEW_SIZES = 32

#: A size, or one that depends on symbols.
Size = Any  # int | _C.SizeExpr

#: Bounds of sizes. SymPy makes a constant at its first use, and fails if two threads do
#: so at once, as eager operators may.
_INFINITIES = (sympy.S.IntInfinity, sympy.S.NegativeIntInfinity)
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class SizeClass:
    """Sizes of a symbol that share a program: 0 and 1 have programs of their own."""

    least: int
    most: int
    #: Between the sizes, which are multiples of it.
    step: int = 1

    @property
    def are_few(self) -> bool:
        """More than one, and so few that each may be looked at."""
        return 1 < (self.most - self.least) // self.step + 1 <= _FEW_SIZES

    def where(self, holds: Callable[[int], bool]) -> SizeClass:
        """Without the sizes at the ends where a condition does not hold, if they are
        few, and it holds for some.
        """
        if not self.are_few:
            return self
        held = [n for n in range(self.least, self.most + 1, self.step) if holds(n)]
        return SizeClass(held[0], held[-1], self.step) if held else self

    def apart_from(self, end: int, size: int) -> SizeClass:
        """That of one end of the range, if a size is that; otherwise without it."""
        if size == end:
            return SizeClass(end, end)
        return SizeClass(
            max(self.least, end + 1) if end <= self.least else self.least,
            min(self.most, end - 1) if end >= self.most else self.most,
        )


@dataclass(frozen=True)
class Symbol:
    """A symbol of a graph, and which argument of a call says its size."""

    name: str
    argument: int
    #: The dimension of a tensor; None for a number.
    dim: int | None
    least: int
    #: None if nothing bounds it.
    most: int | None

    def class_of(self, size: int) -> SizeClass | None:
        """The class of a size; None for those beyond the range."""
        if size < LEAST:
            return SizeClass(size, size)
        low, high = LEAST, FIRST_CLASS
        while size > high:
            low, high = high + 1, high * (2 if high < _LAST_DOUBLED_CLASS else 8)
        if self.most is not None:
            high = min(high, self.most)
        return SizeClass(max(low, self.least), high) if low <= size <= high else None


@dataclass(frozen=True)
class SteppedSymbol(Symbol):
    """A symbol of a graph for SuperDSC: only declared sizes share a program."""

    declared: DeclaredSizes | None = None

    def class_of(self, size: int) -> SizeClass | None:
        """The class of a size. Raises UnsupportedOp for one that is not declared."""
        if self.declared is None:
            return SizeClass(size, size)
        self.declared.check(size)
        step = self.declared.step
        return SizeClass(step, self.declared.most, step)


def at(size: Size, sizes: Sequence[int]) -> int:
    """A size where the symbols have these."""
    return size if isinstance(size, int) else size.at(list(sizes))


def agree(traced: Sequence[Size], actual: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether sizes are ``actual`` where the symbols have these."""
    return len(traced) == len(actual) and all(
        at(t, sizes) == a for t, a in zip(traced, actual, strict=True)
    )
