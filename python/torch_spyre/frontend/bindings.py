# SPDX-License-Identifier: Apache-2.0
"""What the symbols of a graph's sizes are in one program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Max, Min

from torch_spyre import _C
from torch_spyre.frontend.meta_sizes import products_in, sizes_in
from torch_spyre.frontend.quotients import (
    DIVIDING,
    Cut,
    CutNeeded,
    OwnCut,
    in_integers,
    ratio_of,
    without_quotients,
)
from torch_spyre.frontend.size_classes import (
    FIRST_CLASS,
    LEAST,
    SYMBOLIC,
    Size,
    SizeClass,
    SteppedSymbol,
    Symbol,
    at,
)

#: How often sizes are divided in one program.
_MOST_CUTS = 8


class _NotASize(Exception):
    """An expression, or a part of one, that is no size in a program for many sizes."""

    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part


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
        #: Whether one symbol has a part of the sizes that share a program otherwise.
        self._is_apart = False
        #: Quotients of sizes that are symbols of the program, too, behind the others:
        #: which one each is, what is divided, and by what. Nothing but their values
        #: says how they depend on others.
        self._quotients: dict[Any, tuple[int, Size, int]] = {}
        self._has_quotients = has_quotients
        #: How own symbols were cut, in turn.
        self._cuts: list[OwnCut] = []
        #: What is known of expressions as long as symbols and ranges are as they are:
        #: a graph has few different ones, and computing with them takes long.
        self._known: dict[tuple[str, Any], Any] = {}

    def fix(self, symbol: sympy.Symbol, size: int) -> None:
        """The next symbol of the graph is a number."""
        self._known.clear()
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
            self._put(same, own, sizes, hint)
            self._numbers[symbol] = same
        else:
            first = next(s for s, n in self._numbers.items() if n == same)
            self._known.clear()
            self._stands[symbol] = first
            self._keep(same, sizes.least, sizes.most)
        self._places.append((same, 0))
        return same

    def _put(self, number: int, own: Symbol, sizes: SizeClass, hint: int) -> None:
        """Makes an own symbol of a number: the next one, or in place of another one."""
        self._known.clear()
        here = slice(number, number + 1)
        self.symbols[here], self.classes[here] = [own], [sizes]
        self.hints[here] = [hint]

    def has_fewer_symbols(self, other: Binding) -> bool:
        """Whether the program of this binding is for fewer sizes that vary."""
        return len(self.symbols) < len(other.symbols)

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
        for cut in self._cuts:
            if not cut.apply(own):
                return None
        plain = [own[number] for number in range(len(own))]
        for number, dividend, divisor in self._quotients.values():
            own[number] = at(dividend, plain) // divisor
        for number, sizes in enumerate(self.classes):
            size = own[number]
            if not sizes.least <= size <= sizes.most or size % sizes.step:
                return None
        return tuple(own[number] for number in range(len(own)))

    def divide(self, metas: Iterable[Any], is_strict: bool) -> bool:
        """Makes symbols of the quotients and remainders of sizes that are divided in
        the metadata, in place of these sizes; False if none is.

        If it ``is_strict``, quotients of 1 and the largest remainders are numbers,
        where the call has them, and others are not: what is padded to a multiple is
        then longer than before at all sizes, or at none.
        """
        # Tensors say what matters; what only leads to their sizes may be otherwise.
        for meta in sorted(metas, key=lambda meta: isinstance(meta, SYMBOLIC)):
            for value in sizes_in(meta):
                if isinstance(value, SYMBOLIC) and value.node.expr.has(*DIVIDING):
                    self._cut_for(value.node.expr, is_strict)
        return bool(self._cuts)

    def divide_exactly(self, symbol: sympy.Symbol, divisor: int) -> bool:
        """Makes a symbol of the quotient of a size of the graph's in place of the size,
        which is a multiple of the divisor; False if it may not be.
        """
        return symbol in self._numbers and self._cut(
            Cut(symbol, divisor, divisor - 1), is_strict=True
        )

    def _cut_for(self, expr: Any, is_strict: bool) -> None:
        """Cuts own symbols until an expression has no quotients, or none helps."""
        while len(self._cuts) < _MOST_CUTS and ("not to cut", expr) not in self._known:
            try:
                own = in_integers(expr.xreplace(self._stands), self._is_reached)
                without_quotients(own, self._range_of)
            except CutNeeded as needed:
                if needed.cut is not None and self._cut(needed.cut, is_strict):
                    continue
            self._known["not to cut", expr] = True

    def _cut(self, cut: Cut, is_strict: bool) -> bool:
        """Makes an own symbol two: its quotient, and its remainder + 1, as no symbol of
        a program is 0.
        """
        number = self._numbers[cut.symbol]
        own, sizes, hint = (
            listed[number] for listed in (self.symbols, self.classes, self.hints)
        )
        low, high = sizes.least, sizes.most
        if all(number not in (c.quotient, c.remainder) for c in self._cuts):
            # What each quotient with each remainder is may be 1, which has a program of
            # its own but none of whose dimensions is empty, or beyond the class. So all
            # sizes of the class have quotients.
            low = 1 if low == LEAST else low
            high += cut.divisor - 1
        quotients = SizeClass(
            -(-(low + cut.shift) // cut.divisor),
            (high + cut.shift + 1) // cut.divisor - 1,
        )
        remainders = SizeClass(1, cut.divisor)
        quotient, remainder = divmod(hint + cut.shift, cut.divisor)
        remainder += 1
        if sizes.step != 1 or not quotients.least <= quotient <= quotients.most:
            return False
        if is_strict:
            quotients = quotients.apart_from(1, quotient)
            remainders = remainders.apart_from(cut.divisor, remainder)
        if all(r.least == r.most for r in (quotients, remainders)):
            return False
        del self._numbers[cut.symbol]
        places: list[int | None] = []
        stands: list[Any] = []
        for name, now, range_ in (
            ("by", quotient, quotients),
            ("mod", remainder, remainders),
        ):
            if range_.least == range_.most:
                places.append(None)
                stands.append(sympy.Integer(now))
                continue
            symbol = sympy.Symbol(
                f"{cut.symbol}_{name}{cut.divisor}", integer=True, positive=True
            )
            place = len(self.symbols) if number in places else number
            ends = {"least": range_.least, "most": range_.most}
            self._put(place, replace(own, name=str(symbol), **ends), range_, now)
            self._numbers[symbol] = place
            places.append(place)
            stands.append(symbol)
        whole, rest = stands
        stand = {cut.symbol: cut.divisor * whole + rest - 1 - cut.shift}
        self._known.clear()
        self._stands = {s: e.xreplace(stand) for s, e in self._stands.items()} | stand
        self._cuts.append(OwnCut(number, cut, *places, (quotient, remainder)))
        return True

    def _range_of(self, symbol: sympy.Symbol) -> tuple[int, int]:
        """The range of an own symbol. Raises CutNeeded for any other."""
        if symbol not in self._numbers:
            raise CutNeeded
        sizes = self.classes[self._numbers[symbol]]
        return sizes.least, sizes.most

    def narrow(
        self,
        metas: Iterable[Any],
        parts: Sequence[tuple[torch.Tensor, Any, Any]],
        guards: Iterable[Any] = (),
    ) -> None:
        """Narrows the ranges until all sizes are like the call's: of each maximum in
        the metadata the same part is the largest, no dimension becomes empty, no
        tensor begins before its storage, ``parts`` (fake tensors, their offsets, and
        how many elements storages have) end in these, and PyTorch's ``guards`` hold.
        """
        for meta, offset, count in parts:
            last = self._expr(offset)
            for size, stride in zip(meta.shape, meta.stride(), strict=True):
                last += (self._expr(size) - 1) * self._expr(stride)
            self._narrow(self._expr(count) - 1 - last)
        for meta in metas:
            for tensor in meta if isinstance(meta, (tuple, list)) else (meta,):
                if isinstance(tensor, torch.Tensor):
                    self._narrow(self._expr(tensor.storage_offset()))
                    for size in tensor.shape:
                        if isinstance(size, SYMBOLIC):
                            self._once("not empty", size.node.expr, self._keep_elements)
            for value in sizes_in(meta):
                if isinstance(value, SYMBOLIC):
                    self._find_size(self._expr(value))
        if any(sizes.are_few for sizes in self.classes):
            for guard in guards:
                self._keep_guarded(guard)
        self._may_narrow = False
        # The ranges are known only now.
        for number, dividend, divisor in self._quotients.values():
            least, most = (
                at(dividend, [getattr(c, end) for c in self.classes]) // divisor
                for end in ("least", "most")
            )
            self._set_range(number, SizeClass(least, most))

    def _keep_guarded(self, guard: Any) -> None:
        """Drops sizes at the ends of a symbol's range where a guard does not hold."""
        condition = self._expr(guard)
        free = condition.free_symbols
        if len(free) == 1 and free <= self._numbers.keys():
            (symbol,) = free
            number = self._numbers[symbol]
            found = self.classes[number].where(
                lambda n: condition.xreplace({symbol: sympy.Integer(n)}) != sympy.false
            )
            self._keep(number, found.least, found.most)

    def _keep_elements(self, size: Any) -> bool:
        """Keeps to sizes at which a dimension is not empty."""
        return self._narrow(self._without_extrema(self._expr(size)) - 1)

    def keep_batches(self, metas: Iterable[Any]) -> None:
        """Narrows the range of what multiplies a larger symbol in the size of a
        dimension, as a batch its rows, to what is up to a power of two and beyond half
        of it: room for the largest batch of any class would fit in no memory.
        """
        for size in products_in(metas):
            symbols = self._expr(size).free_symbols & self._numbers.keys()
            numbers = {self._numbers[symbol] for symbol in symbols}
            for number in sorted(numbers, key=self.hints.__getitem__)[:-1]:
                most = max(4, 1 << (self.hints[number] - 1).bit_length())
                self._keep(number, most // 2 + 1 if most > 4 else 1, most)

    def require(self, value: Any) -> bool:
        """Narrows the ranges to sizes at which a size of PyTorch's metadata, or an
        expression, is at least 0; False if these are no range of one symbol.
        """
        return self._narrow(self._expr(value))

    def reached_in_call(self, value: Any) -> Size | None:
        """An expression as a size, if it is at least 0 in the call; None for others."""
        expr = sympy.expand(self._expr(value))
        if not expr.free_symbols <= self._numbers.keys() or self._in_call(expr) < 0:
            return None
        size = self._find_size(expr)
        return None if isinstance(size, _NotASize) else size

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
            most = max(sizes.most, most - int(rest))
            self._set_range(number, SizeClass(sizes.least, most, sizes.step))

    def most(self, value: Any) -> int:
        """The largest that a size can be."""
        size = value if isinstance(value, _C.SizeExpr) else self.size(value)
        return at(size, [sizes.most for sizes in self.classes])

    def _expr(self, value: Any) -> Any:
        if isinstance(value, SYMBOLIC):
            value = value.node.expr
        if not isinstance(value, sympy.Basic):
            return sympy.Integer(value)
        return self._once("own expression", value, self._own_expr)

    def _own_expr(self, value: Any) -> Any:
        expr = in_integers(value.xreplace(self._stands), self._is_reached)
        if self._cuts:
            with suppress(CutNeeded):
                return without_quotients(expr, self._range_of)
        return expr

    def size(self, value: Any) -> Size:
        """A size of PyTorch's metadata. Raises UnsupportedOp for what is no sum of
        products of symbols and whole numbers.
        """
        if isinstance(value, int):
            return int(value)
        if not isinstance(value, SYMBOLIC):
            raise self._no_size(value)
        return self._converted(self._expr(value))

    def _converted(self, expr: Any) -> Size:
        """An expression of own symbols as a size. Raises UnsupportedOp."""
        size = self._find_size(expr)
        if isinstance(size, _NotASize):
            raise self._no_size(size.part)
        return size

    def _no_size(self, expr: Any) -> _C.UnsupportedOp:
        """The error for a size that programs for many sizes do not have here."""
        text = f"a size of {expr}"
        for symbol in sorted(getattr(expr, "free_symbols", ()), key=str):
            own = (
                self.symbols[self._numbers[symbol]] if symbol in self._numbers else None
            )
            if isinstance(own, SteppedSymbol) and own.declared is not None:
                text += f", where {symbol} is {own.declared.place}"
        text += (
            ": in a program for many sizes, sizes are sums of products of whole "
            "numbers and of sizes that vary"
        )
        if isinstance(expr, FloorDiv):
            text += "; this one divides such a size, as x[::2] and x.chunk(2) do"
        return _C.UnsupportedOp(text)

    def ratio(self, value: torch.SymFloat) -> tuple[Size, Size]:
        """Dividend and divisor of a float of PyTorch's metadata that is rounded once.
        Raises UnsupportedOp for others.
        """
        expr = value.node.expr.xreplace(self._stands)
        ratio = ratio_of(expr)
        if ratio is None:
            raise _C.UnsupportedOp(
                f"a number of {expr}: programs for many sizes have whole numbers, and "
                "floats that are one sum of products of sizes divided by another"
            )
        dividend, divisor = ratio
        return self._converted(sympy.expand(dividend)), self._converted(
            sympy.expand(divisor)
        )

    def _find_size(self, expr: Any) -> Size | _NotASize:
        """An expression of own symbols as a size, or why it is none."""

        def find(expr: Any) -> Size | _NotASize:
            try:
                return self._convert(expr)
            except _NotASize as none:
                return none.with_traceback(None)

        return self._once("size", expr, find)

    def _convert(self, expr: Any) -> Size:
        """An expression of own symbols as a size. Raises _NotASize."""
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
            part = self._without_extrema(expr)
            if part != expr:
                return self._convert(part)
        if isinstance(expr, FloorDiv) and self._has_quotients:
            return _C.SizeExpr.symbol(self._quotient(expr))
        if isinstance(expr, sympy.Pow) and isinstance(expr.exp, sympy.Integer):
            base, total = self._convert(expr.base), 1
            if expr.exp > 0:
                for _ in range(int(expr.exp)):
                    total = base * total
                return total
        raise _NotASize(expr)

    def _quotient(self, expr: Any) -> int:
        """The symbol that stands for (n x symbol + rest) // divisor, where n and rest
        are at least 0, and narrows the range to where the quotient is at least 1.
        Raises _NotASize for other quotients.
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
                size = int(self._in_call(expr))
                own = Symbol(f"q{number}", 0, None, 0, None)
                self._put(number, own, SizeClass(size, size), size)
                converted = self._convert(dividend)
                self._quotients[expr] = number, converted, int(divisor)
                return number
        raise _NotASize(expr)

    def _without_extrema(self, expr: Any) -> Any:
        """The part that an expression is, if it is the largest or smallest of some."""
        if not isinstance(expr, (Max, Min)):
            return expr
        return self._once("extremum", expr, self._extremum)

    def _extremum(self, expr: Any) -> Any:
        """The argument that a Max or Min is at all sizes, or itself if none is."""
        sign = 1 if isinstance(expr, Max) else -1
        args = [self._without_extrema(arg) for arg in expr.args]
        for part in args:
            if all(self._is_reached(sign * (part - other)) for other in args):
                return part
        if self._may_narrow and expr.free_symbols <= self._numbers.keys():
            part = max(args, key=lambda a: sign * self._in_call(a))
            if all(self._narrow(sign * (part - other)) for other in args):
                return part
        return expr

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
        rests = {cut.remainder for cut in self._cuts}
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
        self._set_range(
            number, SizeClass(-(-least // step) * step, most // step * step, step)
        )

    def _set_range(self, number: int, sizes: SizeClass) -> None:
        """Gives an own symbol another range, if it is another one."""
        if sizes != self.classes[number]:
            self.classes[number] = sizes
            self._known.clear()

    def _once(self, what: str, value: Any, compute: Callable[[Any], Any]) -> Any:
        """What is computed of an expression, or is known of it. Computing may change
        ranges.
        """
        key = what, value
        if key not in self._known:
            self._known[key] = compute(value)
        return self._known[key]

    def keep_apart(self, number: int, size: int) -> bool:
        """Keeps to the sizes of an own symbol up to one, or beyond it, as in the call:
        once, and where no other symbol follows from it. False if it does not. Of larger
        classes all sizes have one program: there, what a kernel takes at the least is
        little of the time.
        """
        if self._is_apart or self._cuts or self._quotients:
            return False
        if number >= len(self.classes):
            return False
        sizes = self.classes[number]
        if sizes.most > FIRST_CLASS or not sizes.least < size < sizes.most - 1:
            return False
        is_beyond = self.hints[number] > size
        least, most = (size + 1, sizes.most) if is_beyond else (sizes.least, size)
        self._keep(number, least, most)
        self._is_apart = True
        return True

    def _is_reached(self, expr: Any) -> bool:
        """Whether an expression is at least 0 at all sizes of the ranges."""
        return self._once("is reached", expr, self._reaches)

    def _reaches(self, expr: Any) -> bool:
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
