# SPDX-License-Identifier: Apache-2.0
"""The symbols of a graph's sizes, and what stands for them in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx import Node
from torch.utils._sympy.functions import FloorDiv, Max, Min

from torch_spyre import _C
from torch_spyre.frontend.declared_sizes import DeclaredSizes, declared_sizes
from torch_spyre.frontend.quotients import (
    QUOTIENTS,
    Cut,
    CutNeeded,
    without_quotients,
)

#: The least size that shares a program with others.
_LEAST = 2
#: Of each symbol, the largest size of the first class of its sizes, and how much
#: larger that of the next one is. Plans are made for the largest size: one that is far
#: too large for a call would keep intermediates out of LX that then fit.
_FIRST_CLASS = 512
_CLASS_FACTOR = 8
#: How often sizes are divided in one program.
_MOST_CUTS = 8

#: A size, or one that depends on symbols.
Size = Any  # int | _C.SizeExpr

#: Bounds of sizes. SymPy makes a constant at its first use, and fails if two threads do
#: so at once, as eager operators may.
_INFINITIES = (sympy.S.IntInfinity, sympy.S.NegativeIntInfinity)
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class SizeClass:
    """Sizes of a symbol that share a program: 0 and 1 have programs of their own."""

    least: int
    most: int
    #: Between the sizes, which are multiples of it.
    step: int = 1


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
        if size < _LEAST:
            return SizeClass(size, size)
        low, high = _LEAST, _FIRST_CLASS
        while size > high:
            low, high = high + 1, high * _CLASS_FACTOR
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


def unbacked_symbols(value: Any) -> set[sympy.Symbol]:
    """The symbols of a node's fake value that stand for numbers read from tensors."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    found: set[sympy.Symbol] = set()
    for leaf in torch.utils._pytree.tree_leaves(value):
        if isinstance(leaf, (torch.Tensor, *_SYMBOLIC)):
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
        bounds = size.node.shape_env.bound_sympy(symbol)
        most = int(bounds.upper) if bounds.upper.is_Integer else None
        least = int(bounds.lower) if bounds.lower.is_Integer else 0
        self._numbers[symbol] = len(self.symbols)
        if not self.is_stepped:
            self.symbols.append(Symbol(str(symbol), argument, dim, least, most))
            return
        declared = declared_sizes(size.node.shape_env).get(symbol)
        self.symbols.append(
            SteppedSymbol(str(symbol), argument, dim, least, most, declared)
        )

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
            if isinstance(value, _SYMBOLIC):
                free |= value.node.expr.free_symbols
        return frozenset(free & self._numbers.keys())


class Binding:
    """What the symbols of a graph are in one program: symbols of its own, or numbers.

    Dynamo has a symbol per tensor of a cache, and nothing that says that a mask is as
    long as all of them. And it has symbols for the strides of a view that a caller
    gives, which are the same in all calls.
    """

    def __init__(self, has_quotients: bool = False) -> None:
        #: The program's own symbols, their ranges, and their sizes in the call.
        self.symbols: list[Symbol] = []
        self.classes: list[SizeClass] = []
        self.hints: list[int] = []
        #: Per symbol of the graph, which own symbol it is, or which number.
        self._places: list[tuple[int | None, int]] = []
        #: What stands for a symbol of the graph in an expression.
        self._stands: dict[sympy.Symbol, Any] = {}
        self._numbers: dict[sympy.Symbol, int] = {}
        self._may_narrow = True
        #: Quotients of sizes that are symbols of the program, too, behind the others:
        #: which one each is, what is divided, and by what. Nothing but their values
        #: says how they depend on others.
        self._quotients: dict[Any, tuple[int, Size, int]] = {}
        self._has_quotients = has_quotients
        #: Own symbols that are quotients of what they were before, in turn: which one,
        #: how it was cut, and which own symbol the remainder is.
        self._cuts: list[tuple[int, Cut, int]] = []

    def fix(self, symbol: sympy.Symbol, size: int) -> None:
        """The next symbol of the graph is a number."""
        self._places.append((None, size))
        self._stands[symbol] = sympy.Integer(size)

    def add(
        self,
        symbol: sympy.Symbol,
        own: Symbol,
        sizes: SizeClass,
        hint: int,
        same: int | None,
    ) -> int:
        """The next symbol of the graph is a new one, or the ``same`` as another one;
        returns its number.
        """
        if same is None:
            same = len(self.symbols)
            self.symbols.append(own)
            self.classes.append(sizes)
            self.hints.append(hint)
            self._numbers[symbol] = same
        else:
            first = next(s for s, n in self._numbers.items() if n == same)
            self._stands[symbol] = first
            self._keep(same, sizes.least, sizes.most)
        self._places.append((same, 0))
        return same

    def of(self, values: Sequence[int]) -> tuple[int, ...] | None:
        """What the own symbols are where those of the graph are ``values``.

        None if values differ that are one here, or are not what the program is for.
        """
        own: dict[int, int] = {}
        for (place, size), value in zip(self._places, values, strict=True):
            if place is None:
                if value != size:
                    return None
            elif own.setdefault(place, value) != value:
                return None
        for number, cut, rest in self._cuts:
            own[number], remainder = divmod(own[number] + cut.shift, cut.divisor)
            own[rest] = 1 + remainder
        plain = [own[number] for number in range(len(own))]
        for number, dividend, divisor in self._quotients.values():
            own[number] = at(dividend, plain) // divisor
        for number, sizes in enumerate(self.classes):
            size = own[number]
            if not sizes.least <= size <= sizes.most or size % sizes.step:
                return None
        return tuple(own[number] for number in range(len(own)))

    def divide(self, metas: Sequence[Any]) -> bool:
        """Makes symbols of the quotients and remainders of sizes that are divided in
        the metadata, in place of these sizes; False if none is.
        """
        # Tensors say what matters; what only leads to their sizes may be otherwise.
        for meta in sorted(metas, key=lambda meta: isinstance(meta, _SYMBOLIC)):
            for value in _sizes_in(meta):
                if isinstance(value, _SYMBOLIC) and value.node.expr.has(*QUOTIENTS):
                    self._cut_for(value.node.expr)
        return bool(self._cuts)

    def _cut_for(self, expr: Any) -> None:
        """Cuts own symbols until an expression has no quotients, or none helps."""
        while len(self._cuts) < _MOST_CUTS:
            try:
                without_quotients(expr.xreplace(self._stands), self._range_of)
                return
            except CutNeeded as needed:
                if needed.cut is None or not self._cut(needed.cut):
                    return

    def _cut(self, cut: Cut) -> bool:
        """Makes an own symbol two: its quotient, and its remainder + 1, as no symbol of
        a program is 0.
        """
        number = self._numbers[cut.symbol]
        own, sizes, hint = (
            listed[number] for listed in (self.symbols, self.classes, self.hints)
        )
        # Each quotient with each remainder is a size of the class, or 1, which has a
        # program of its own but none of whose dimensions is empty.
        is_size = not any(number in (n, rest) for n, _, rest in self._cuts)
        low = 1 if is_size and sizes.least == _LEAST else sizes.least
        least = -(-(low + cut.shift) // cut.divisor)
        most = (sizes.most + cut.shift + 1) // cut.divisor - 1
        quotient, remainder = divmod(hint + cut.shift, cut.divisor)
        if not least <= quotient <= most or least == most or sizes.step != 1:
            return False
        whole, rest = (
            sympy.Symbol(
                f"{cut.symbol}_{name}{cut.divisor}", integer=True, nonnegative=True
            )
            for name in ("by", "mod")
        )
        self.symbols[number] = Symbol(str(whole), own.argument, own.dim, least, most)
        self.classes[number] = SizeClass(least, most)
        self.hints[number] = quotient
        last = len(self.symbols)
        self.symbols.append(Symbol(str(rest), own.argument, own.dim, 1, cut.divisor))
        self.classes.append(SizeClass(1, cut.divisor))
        self.hints.append(1 + remainder)
        stands = {cut.symbol: cut.divisor * whole + rest - 1 - cut.shift}
        self._stands = {s: e.xreplace(stands) for s, e in self._stands.items()} | stands
        del self._numbers[cut.symbol]
        self._numbers |= {whole: number, rest: last}
        self._cuts.append((number, cut, last))
        return True

    def _range_of(self, symbol: sympy.Symbol) -> tuple[int, int]:
        sizes = self.classes[self._numbers[symbol]]
        return sizes.least, sizes.most

    def narrow(
        self, metas: Sequence[Any], parts: Sequence[tuple[torch.Tensor, Any]]
    ) -> None:
        """Narrows the ranges until all sizes are like the call's: of each maximum in
        the metadata the same part is the largest, no dimension becomes empty, no
        tensor begins before its storage, and ``parts`` (fake tensors, and the number of
        elements of the storage of each) end in it.
        """
        for meta, count in parts:
            last = self._expr(meta.storage_offset())
            for size, stride in zip(meta.shape, meta.stride(), strict=True):
                last += (self._expr(size) - 1) * self._expr(stride)
            self._narrow(self._expr(count) - 1 - last)
        for meta in metas:
            for tensor in meta if isinstance(meta, (tuple, list)) else (meta,):
                if isinstance(tensor, torch.Tensor):
                    self._narrow(self._expr(tensor.storage_offset()))
                    for size in tensor.shape:
                        self._narrow(self._expr(size) - 1)
            for value in _sizes_in(meta):
                try:
                    self.size(value)
                except _C.UnsupportedOp:
                    continue
        self._may_narrow = False
        # The ranges are known only now.
        for number, dividend, divisor in self._quotients.values():
            least, most = (
                at(dividend, [getattr(c, end) for c in self.classes]) // divisor
                for end in ("least", "most")
            )
            self.classes[number] = SizeClass(least, most)

    def require(self, value: Any) -> bool:
        """Narrows the ranges to sizes at which a size of PyTorch's metadata, or an
        expression, is at least 0; False if these are no range of one symbol.
        """
        return self._narrow(self._expr(value))

    def keep_sign(self, value: Any) -> None:
        """Narrows the ranges to sizes at which a number of PyTorch's metadata is
        negative, or is not, as in the call, if these are a range of one symbol.
        """
        expr = self._expr(value)
        if expr.free_symbols <= self._numbers.keys():
            self._narrow(-expr - 1 if self._in_call(expr) < 0 else expr)

    def widen(self, value: Any, most: int) -> None:
        """Lets a size that is a symbol plus a number, or a symbol, be as large as
        ``most``; no other.
        """
        expr = sympy.expand(self._expr(value))
        symbols = list(expr.free_symbols)
        if len(symbols) != 1 or symbols[0] not in self._numbers or self._quotients:
            return
        rest = expr - symbols[0]
        if rest.is_Integer:
            number = self._numbers[symbols[0]]
            sizes = self.classes[number]
            self.classes[number] = SizeClass(
                sizes.least, max(sizes.most, most - int(rest)), sizes.step
            )

    def most(self, value: Any) -> int:
        """The largest that a size can be."""
        size = value if isinstance(value, _C.SizeExpr) else self.size(value)
        return at(size, [sizes.most for sizes in self.classes])

    def _expr(self, value: Any) -> Any:
        if isinstance(value, _SYMBOLIC):
            value = value.node.expr
        if not isinstance(value, sympy.Expr):
            return sympy.Integer(value)
        expr = value.xreplace(self._stands)
        if self._cuts:
            with suppress(CutNeeded):
                return without_quotients(expr, self._range_of)
        return expr

    def size(self, value: Any) -> Size:
        """A size of PyTorch's metadata. Raises UnsupportedOp for what is no sum of
        products of symbols and whole numbers.
        """
        if isinstance(value, _SYMBOLIC):
            return self._convert(self._expr(value))
        if isinstance(value, int):
            return int(value)
        raise _C.UnsupportedOp(f"a size of {value}")

    def _convert(self, expr: Any) -> Size:
        if isinstance(expr, sympy.Integer):
            return int(expr)
        if expr in self._numbers:
            return _C.SizeExpr.symbol(self._numbers[expr])
        if isinstance(expr, (sympy.Add, sympy.Mul)):
            parts = [self._convert(part) for part in expr.args]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if isinstance(expr, sympy.Add) else total * part
            return total
        if isinstance(expr, (Max, Min)):
            return self._convert(
                self._largest(expr, 1 if isinstance(expr, Max) else -1)
            )
        if isinstance(expr, FloorDiv) and self._has_quotients:
            return _C.SizeExpr.symbol(self._quotient(expr))
        if isinstance(expr, sympy.Pow) and isinstance(expr.exp, sympy.Integer):
            base, total = self._convert(expr.base), 1
            if expr.exp > 0:
                for _ in range(int(expr.exp)):
                    total = base * total
                return total
        raise _C.UnsupportedOp(f"a size of {expr}")

    def _quotient(self, expr: Any) -> int:
        """The symbol that stands for (n x symbol + rest) // divisor, where n and rest
        are at least 0, and narrows the range to where the quotient is at least 1.
        Raises UnsupportedOp for other quotients.
        """
        if expr in self._quotients:
            return self._quotients[expr][0]
        dividend, divisor = expr.args
        symbols = list(dividend.free_symbols)
        if self._may_narrow and len(symbols) == 1 and symbols[0] in self._numbers:
            factor, rest = dividend.coeff(symbols[0], 1), dividend.coeff(symbols[0], 0)
            if (
                all(n.is_Integer and n >= 0 for n in (factor, rest, divisor - 1))
                and dividend == factor * symbols[0] + rest
                and self._narrow(dividend - divisor)
            ):
                number = len(self.symbols)
                self.symbols.append(Symbol(f"q{number}", 0, None, 0, None))
                size = int(self._in_call(expr))
                self.classes.append(SizeClass(size, size))
                self.hints.append(size)
                converted = self._convert(dividend)
                self._quotients[expr] = number, converted, int(divisor)
                return number
        raise _C.UnsupportedOp(f"a size of {expr}")

    def _largest(self, expr: Any, sign: int) -> Any:
        """The argument that is the largest, or smallest if ``sign`` is -1."""
        for part in expr.args:
            if all(self._is_reached(sign * (part - other)) for other in expr.args):
                return part
        if self._may_narrow and expr.free_symbols <= self._numbers.keys():
            part = max(expr.args, key=lambda a: sign * self._in_call(a))
            if all(self._narrow(sign * (part - other)) for other in expr.args):
                return part
        raise _C.UnsupportedOp(f"a size of {expr}")

    def _in_call(self, expr: Any) -> Any:
        """What an expression of own symbols is in the call."""
        return expr.xreplace(
            {s: sympy.Integer(self.hints[n]) for s, n in self._numbers.items()}
        )

    def _narrow(self, expr: Any) -> bool:
        """Keeps to sizes at which an expression is at least 0; False if they are no
        range of one symbol.
        """
        if self._is_reached(expr):
            return True
        expr = sympy.expand(expr)
        symbols = list(expr.free_symbols)
        if len(symbols) > 1:
            expr = self._at_all_remainders(expr)
            symbols = list(expr.free_symbols)
        if len(symbols) != 1 or symbols[0] not in self._numbers:
            return False
        if not self._in_call(expr) >= 0:
            return False
        (symbol,) = symbols
        factor, rest = expr.coeff(symbol, 1), expr.coeff(symbol, 0)
        if expr != factor * symbol + rest or not factor.is_Integer:
            return False
        sizes = self.classes[self._numbers[symbol]]
        if factor > 0:
            least = int(sympy.ceiling(-rest / factor))
            self._keep(self._numbers[symbol], least, sizes.most)
        else:
            most = int(sympy.floor(rest / -factor))
            self._keep(self._numbers[symbol], sizes.least, most)
        return True

    def _at_all_remainders(self, expr: Any) -> Any:
        """The least that a sum of products is at any remainders of what was cut."""
        rests = {rest for _, _, rest in self._cuts}
        for symbol in expr.free_symbols:
            if self._numbers.get(symbol) in rests:
                least, most = self._range_of(symbol)
                factor = expr.coeff(symbol, 1)
                if factor.is_Integer:
                    expr = expr.subs(symbol, least if factor > 0 else most)
        return expr

    def _keep(self, number: int, least: int, most: int) -> None:
        """Keeps to the sizes of an own symbol that are in a range, too."""
        sizes = self.classes[number]
        least, most = max(sizes.least, least), min(sizes.most, most)
        step = sizes.step
        self.classes[number] = SizeClass(
            -(-least // step) * step, most // step * step, step
        )

    def _is_reached(self, expr: Any) -> bool:
        """Whether an expression is at least 0 at all sizes of the ranges."""
        least: Any = 0
        for term, factor in sympy.expand(expr).as_coefficients_dict().items():
            symbols = term.free_symbols
            if symbols and not (
                symbols <= self._numbers.keys() and term.is_polynomial(*symbols)
            ):
                return False
            for symbol in symbols:
                sizes = self.classes[self._numbers[symbol]]
                term = term.subs(symbol, sizes.least if factor > 0 else sizes.most)
            least += factor * term
        return bool(least >= 0)


def _sizes_in(meta: Any) -> Iterator[Any]:
    """The numbers in a node's fake value."""
    if isinstance(meta, (tuple, list)):
        for value in meta:
            yield from _sizes_in(value)
    elif isinstance(meta, torch.Tensor):
        yield from (*meta.shape, *meta.stride(), meta.storage_offset())
    elif isinstance(meta, _SYMBOLIC):
        yield meta


def at(size: Size, sizes: Sequence[int]) -> int:
    """A size where the symbols have these."""
    return size if isinstance(size, int) else size.at(list(sizes))
