# SPDX-License-Identifier: Apache-2.0
"""What the sizes of several calls have in common.

Calls of one form have numbers: sizes, strides, offsets. Those in which a few calls
differ are symbols, or sums and products of symbols and whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

#: The least size that is one of many.
_LEAST = 2


@dataclass(frozen=True)
class Sum:
    """constant + factor x the product of symbols, which are numbered."""

    constant: int
    factor: int = 0
    symbols: tuple[int, ...] = ()

    def of(self, values: Sequence[Any]) -> Any:
        """The value where these stand for the symbols."""
        if not self.symbols:
            return self.constant
        product = values[self.symbols[0]]
        for number in self.symbols[1:]:
            product = product * values[number]
        return product * self.factor + self.constant


@dataclass(frozen=True)
class Pattern:
    """What each number is, and at which position each symbol is by itself."""

    numbers: tuple[Sum, ...]
    positions: tuple[int, ...]
    #: Per symbol the position of a smaller number, of a part of it: only what it has
    #: beyond that varies by itself. None for most.
    parts: tuple[int | None, ...]

    def values(self, symbols: Sequence[Any]) -> list[Any]:
        """What the symbols are where these vary by themselves."""
        found: list[Any] = []
        for own, part in zip(symbols, self.parts, strict=True):
            found.append(own if part is None else self.numbers[part].of(found) + own)
        return found


def find_pattern(
    numbers: Sequence[int],
    sizes: Sequence[int],
    earlier: Sequence[Sequence[int]],
    integers: Sequence[int] = (),
    parts: Mapping[int, int] | None = None,
) -> Pattern | None:
    """The pattern of a call and of earlier ones with fewest symbols, if there is one.

    ``sizes`` are the positions of sizes, ``integers`` those of other arguments; these
    alone are symbols, integers only where they are no sums of others. A pattern with n
    symbols is one of 2**n earlier calls: each symbol more is a program that serves
    less well at a size than the one for that size.
    """
    own = set(integers)
    differences = [
        {i for i in (*sizes, *integers) if call[i] != numbers[i]} for call in earlier
    ]
    best = None
    for moved in {frozenset(d) for d in differences if d}:
        calls = {
            tuple(call)
            for call, difference in zip(earlier, differences, strict=True)
            if difference and difference <= moved
        }
        samples = [tuple(numbers), *sorted(calls)]
        samples = [s for s in samples if all(s[i] >= _LEAST for i in moved - own)]
        if not samples or samples[0] != tuple(numbers):
            continue
        found = _fit(samples, sorted(moved - own), sorted(moved & own), parts or {})
        if found is None:
            continue
        if best is None or _rank(found) < _rank(best):
            best = found
    return best


def _rank(pattern: Pattern) -> tuple[int, tuple[int, ...]]:
    """Fewer symbols first; then whatever does not depend on the order of a set."""
    return len(pattern.positions), pattern.positions


def _fit(
    samples: Sequence[tuple[int, ...]],
    moved: Sequence[int],
    integers: Sequence[int],
    parts: Mapping[int, int],
) -> Pattern | None:
    """What all numbers are; the sizes at ``moved`` and the ``integers`` vary.

    None if there are too few samples.
    """
    columns = list(zip(*samples, strict=True))
    symbols: list[tuple[int, ...]] = []
    positions: list[int] = []
    inside: list[int | None] = []
    # A size that is a sum is larger than the symbol in it.
    for position in (*sorted(moved, key=lambda p: (columns[p], p)), *integers):
        if _as_sum(columns[position], symbols, most=1) is None:
            if min(columns[position]) < _LEAST:
                return None
            part = parts.get(position)
            known = None if part is None else _as_sum(columns[part], symbols, most=1)
            if part is not None and known is not None and known.symbols:
                longer = [s for s in samples if s[position] - s[part] >= _LEAST]
                if len(longer) < len(samples):
                    # What is its own part, or hardly longer, is of another kind.
                    is_longer = longer[:1] == samples[:1]
                    return _fit(longer, moved, integers, parts) if is_longer else None
            else:
                part = None
            symbols.append(columns[position])
            positions.append(position)
            inside.append(part)
    if len(samples) - 1 < 2 ** len(positions):
        return None
    found = [_as_sum(column, symbols, most=3) for column in columns]
    if None in found:
        # Calls of several kinds, as for parts that begin at several places.
        unlike = [number for number, own in enumerate(found) if own is None]
        alike = [s for s in samples if all(s[i] == samples[0][i] for i in unlike)]
        return _fit(alike, moved, integers, parts)
    return Pattern(tuple(found), tuple(positions), tuple(inside))  # type: ignore[arg-type]


def _as_sum(
    column: tuple[int, ...], symbols: Sequence[tuple[int, ...]], most: int
) -> Sum | None:
    """What a number of each sample is of the symbols, ``most`` of them multiplied."""
    if len(set(column)) == 1:
        return Sum(column[0])
    products: list[tuple[int, ...]] = [()]
    for _ in range(most):
        products = [
            (*product, number)
            for product in products
            for number in range(product[-1] if product else 0, len(symbols))
        ]
        for product in products:
            values = [
                prod(row) for row in zip(*(symbols[n] for n in product), strict=True)
            ]
            line = _line(values, column)
            if line is not None:
                return Sum(line[1], line[0], product)
    return None


def _line(x: Sequence[int], y: Sequence[int]) -> tuple[int, int] | None:
    """The whole numbers a and b with y = a x + b."""
    other = next((i for i, value in enumerate(x) if value != x[0]), None)
    if other is None:
        return None
    factor, rest = divmod(y[other] - y[0], x[other] - x[0])
    constant = y[0] - factor * x[0]
    if rest != 0 or any(b != factor * a + constant for a, b in zip(x, y, strict=True)):
        return None
    return (factor, constant) if factor != 0 else None
