# SPDX-License-Identifier: Apache-2.0
"""Random `spyre_graph` functions of sizes that vary, and what numpy makes of them.

Draws the operations of ``random_graphs``. A size that varies is an ``Extent``: for
whoever draws, it is the largest one; in text it is a mark, which becomes a number.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from random_graphs import (
    MAX_ELEMENTS,
    NUMPY,
    SIZES,
    EmptyTableError,
    Function,
    computed,
    viewed,
)

#: What the sizes of a function are in a run, by the names of its symbols.
Sizes = dict[str, int]
#: Operations that SuperDSC has for one size only.
OF_ONE_SIZE = ("cumsum", "fill", "gather")
#: Values are at most as large: far from where fp16 ends.
MOST_VALUE = 1 << 13


class NotForAnySizeError(Exception):
    """A size that would be no multiple of a symbol and a number."""


@dataclass(frozen=True)
class Symbol:
    name: str
    least: int
    most: int
    step: int = 1

    def text(self) -> str:
        by = f" by {self.step}" if self.step > 1 else ""
        return f'#spyre_graph.symbol<"{self.name}", {self.least} to {self.most}{by}>'


class Extent(int):
    """factor x symbol + offset."""

    symbol: Symbol
    factor: int
    offset: int

    def __new__(cls, symbol: Symbol, factor: int = 1, offset: int = 0) -> Extent:
        self = super().__new__(cls, factor * symbol.most + offset)
        self.symbol, self.factor, self.offset = symbol, factor, offset
        return self

    @property
    def least(self) -> int:
        return self.factor * self.symbol.least + self.offset

    def expression(self) -> str:
        return f"{self.symbol.name} * {self.factor} + {self.offset}"

    def __repr__(self) -> str:
        return f"<<{self.symbol.name},{self.factor},{self.offset}>>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __add__(self, other: int) -> Extent:
        if isinstance(other, Extent):
            raise NotForAnySizeError
        return Extent(self.symbol, self.factor, self.offset + other)

    def __sub__(self, other: int) -> Extent:
        return self + -other

    def __mul__(self, other: int) -> Extent:
        if isinstance(other, Extent):
            raise NotForAnySizeError
        return Extent(self.symbol, self.factor * other, self.offset * other)

    def __rmul__(self, other: int) -> Extent:
        # Elements of the inner dimension: their number would be in a map.
        raise NotForAnySizeError

    def __mod__(self, other: int) -> int:
        # What is no multiple at all sizes is none.
        return self.offset % other if self.factor % other == 0 else 1

    def __floordiv__(self, other: int) -> Extent:
        if self.factor % other:
            raise NotForAnySizeError
        return Extent(self.symbol, self.factor // other, self.offset // other)


def at(size: int, sizes: Sizes) -> int:
    """What a size is in a run."""
    if not isinstance(size, Extent):
        return size
    return size.factor * sizes[size.symbol.name] + size.offset


def shape_at(shape: list[int], sizes: Sizes) -> list[int]:
    return [at(size, sizes) for size in shape]


def varies(shape: list[int]) -> bool:
    return any(isinstance(size, Extent) for size in shape)


class SizedFunction(Function):
    """A random function of sizes that vary, which knows its values at each."""

    def __init__(
        self,
        rng: random.Random,
        name: str,
        symbols: list[Symbol],
        is_for_bundles: bool = False,
    ) -> None:
        super().__init__(rng, name)
        self.symbols = symbols
        self.is_for_bundles = is_for_bundles
        self.inputs: list[tuple[str, list[int], str, str]] = []
        #: Name, what of, and how it is computed from that and sizes.
        self.steps: list[tuple[str, list[str], Callable[..., np.ndarray]]] = []
        self.ranges: dict[str, tuple[int, int]] = {}
        #: The argument that is written, and the value that it has then.
        self.written: tuple[str, str] | None = None

    def admit(self, shape: list[int], name: str = "") -> None:
        """Raises NotForAnySizeError for most of what SuperDSC does not have."""
        if self.is_for_bundles and varies(shape):
            whole = all(
                (size.factor, size.offset) == (1, 0)
                for size in shape
                if isinstance(size, Extent)
            )
            if not whole or isinstance(shape[-1], Extent) or name in OF_ONE_SIZE:
                raise NotForAnySizeError

    # --- sizes ---

    def extent(self) -> Extent:
        return Extent(self.rng.choice(self.symbols))

    def size(self) -> int:
        """Some new dimensions vary, too, and few are empty."""
        if self.rng.random() < 0.15 and not self.is_for_bundles:
            return self.extent()
        return self.rng.choice(SIZES[1:])

    def position(self, size: int) -> int:
        """One that is there at all sizes."""
        least = size.least if isinstance(size, Extent) else size
        return self.rng.randrange(least)

    def size_map(self, shape: list[int]) -> str:
        names = ", ".join(symbol.name for symbol in self.symbols)
        sizes = [
            size.expression() if isinstance(size, Extent) else f"{size}"
            for size in shape
        ]
        return f"affine_map<()[{names}] -> ({', '.join(sizes)})>"

    # --- text: what is between [[ and ]] is for many sizes only ---

    def argument(self, shape, element="f16", low=-2, high=3):
        self.admit(shape)
        self.ranges[f"%a{len(self.arguments)}"] = low, high
        value = super().argument(shape, element)
        about = f'spyre_graph.name = "{value[0][1:]}"'
        if varies(shape):
            about += f"[[, spyre_graph.size_map = {self.size_map(shape)}]]"
        self.arguments[-1] += f" {{{about}}}"
        self.inputs.append(value)
        return value

    def layout(self, shape, element):
        while True:
            layout = super().layout(shape, element)
            # A layout that is written out is of one size.
            if varies(shape) and "explicit" in layout:
                continue
            if varies(shape) and self.is_for_bundles:
                order = f"order = {list(range(len(shape)))}"
                return re.sub(r"order = \[.*?\](, sparse)?", order, layout)
            return layout

    def index(self, shape, rows):
        least = rows.least if isinstance(rows, Extent) else rows
        if least == 0:
            raise EmptyTableError
        return self.argument(shape, "i64", 0, least)

    def view(self, source, shape, results):
        self.admit(shape)
        value = super().view(source, shape, results)
        if varies(source[1]) or varies(shape):
            about = f"[[{{size_map = {self.size_map(shape)}}} ]]"
            self.lines[-1] = self.lines[-1].replace(" : tensor", f" {about}: tensor", 1)
        self.steps.append(
            (
                value[0],
                [source[0]],
                lambda sizes, data: viewed(data, shape_at(shape, sizes), results),
            )
        )
        return value

    def joined(self, first, second, dim):
        """What is of one size first, so that the other begins at a number."""
        if isinstance(first[1][dim], Extent):
            return second, first
        return first, second

    def fill(self, shape, element):
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        about = f"maps = [affine_map<({dims}) -> ({dims})>], extents = array<i64"
        about += f"{':' if shape else ''} {str(shape)[1:-1]}>"
        if varies(shape):
            about += f"[[, extent_map = {self.size_map(shape)}]]"
        self.op("fill", [], shape, element, f"{{immediates = [1.0], {about}}}")

    def op(self, name, inputs, shape, element, attributes="", init=None):
        name = "neg" if name == "exp" else name  # keeps values small
        self.admit(shape, name)
        result = super().op(name, inputs, shape, element, attributes, init)
        names = [value[0] for value in inputs]
        if init is not None:
            names.append(init[0])

        def step(sizes, *data):
            before = None
            if init is not None:
                *data, before = data
            return computed(name, data, shape_at(result[1], sizes), attributes, before)

        self.steps.append((result[0], names, step))
        return result

    def update_argument(self):
        super().update_argument()
        name, operands, _ = self.steps[-1]
        self.written = operands[-1], name

    def text(self, sizes: Sizes | None = None) -> str:
        """For all sizes, or for these alone."""
        results = self.results()
        types = ", ".join(map(self.type, results))
        abouts = []
        for position, value in enumerate(results):
            about = f'spyre_graph.name = "out{position}"'
            if varies(value[1]):
                about += f"[[, spyre_graph.size_map = {self.size_map(value[1])}]]"
            abouts.append(f"{self.type(value)} {{{about}}}")
        symbols = ", ".join(symbol.text() for symbol in self.symbols)
        body = "\n  ".join(self.lines)
        text = (
            f"func.func @{self.name}({', '.join(self.arguments)}) -> "
            f"({', '.join(abouts)})[[\n"
            f"    attributes {{spyre_graph.symbols = [{symbols}]}}]] {{\n  {body}\n"
            f"  return {', '.join(v[0] for v in results)} : {types}\n}}"
        )
        numbers = {s.name: s.most for s in self.symbols} if sizes is None else sizes
        if sizes is None:
            text = text.replace("[[", "").replace("]]", "")
        else:
            text = re.sub(r"\[\[.*?\]\]", "", text, flags=re.DOTALL)
        return re.sub(
            r"<<(\w+),(-?\d+),(-?\d+)>>",
            lambda m: str(int(m[2]) * numbers[m[1]] + int(m[3])),
            text,
        )

    # --- values ---

    def arrays(self, sizes: Sizes) -> dict[str, np.ndarray]:
        """Values of the arguments: multiples of an eighth, or whole numbers."""
        found = {}
        for number, (name, shape, element, _) in enumerate(self.inputs):
            low, high = self.ranges[name]
            rng = np.random.default_rng([number, *sizes.values()])
            if element == "i64":
                data = rng.integers(low, high, shape_at(shape, sizes))
            else:
                data = rng.integers(low * 8, high * 8, shape_at(shape, sizes)) / 8
            found[name] = np.asarray(data, NUMPY[element])
        return found

    def known(
        self, sizes: Sizes, rounded: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """All values in fp64; those of 16 bits ``rounded`` by that."""
        known = {
            name: array if array.dtype == np.int64 else array.astype(np.float64)
            for name, array in self.arrays(sizes).items()
        }
        elements = {value[0]: value[2] for value in self.values}
        for name, operands, step in self.steps:
            value = step(sizes, *[known[operand] for operand in operands])
            if rounded is not None and elements.get(name) == "f16":
                value = rounded(value)
            known[name] = value
        return known

    def corners(self) -> Iterator[Sizes]:
        """The least sizes, and the largest."""
        yield {s.name: s.least for s in self.symbols}
        yield {s.name: s.most for s in self.symbols}


def draw_sized(
    seed: int, number: int, symbols: list[Symbol], is_for_bundles: bool = False
) -> SizedFunction | None:
    """A function of an argument that varies, or none where values get too large."""
    rng = random.Random(seed * 1000003 + number)
    function = SizedFunction(rng, f"f{seed}_{number}", symbols, is_for_bundles)
    rank = rng.randint(2 if is_for_bundles else 1, 3)
    sizes = SIZES[1:9] if rank > 2 else SIZES[1:]
    shape = [rng.choice(sizes) for _ in range(rank)]
    place = rng.randrange(rank - is_for_bundles)
    shape[place] = function.extent()
    function.argument(shape)
    for _ in range(rng.randint(1, 6)):
        try:
            function.step()
        except (EmptyTableError, NotForAnySizeError):
            continue
        largest = max(np.prod(value[1], dtype=int) for value in function.values)
        if largest > MAX_ELEMENTS:
            return None
    if rng.random() < 0.3:
        function.update_argument()
    if not function.results():
        function.op("neg", function.values[:1], *function.values[0][1:3])
    for corner in function.corners():
        for array in function.known(corner).values():
            if not np.abs(array).max(initial=0) <= MOST_VALUE:
                return None
    return function
