# SPDX-License-Identifier: Apache-2.0
"""Where a tensor of a specification lies along the loops of its operation.

A coordinate is an expression per device dimension, the stick's lanes last. What
SuperDSC can say (docs/spec/superdsc.md, "SuperDSC JSON") is a loop with steps of one,
its quotient by the elements of a stick, and its remainder; all at constant distances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch_spyre._inductor.op_spec import IndirectAccess, TensorArg
from torch_spyre.errors import Unsupported


@dataclass(frozen=True)
class Coordinate:
    """One device dimension; elements, or sticks where ``is_stick``."""

    #: The loop that runs along it; None: it stays at ``offset``.
    loop: int | None
    is_stick: bool
    offset: int


@dataclass(frozen=True)
class Place:
    """How a tensor lies along the loops."""

    #: Loop -> its coordinate but for lanes, and the elements that one step of it, of a
    #: stick or an element, goes on in device memory.
    steps: dict[int, tuple[Coordinate, int]]
    #: Loops, inner to outer.
    order: tuple[int, ...]
    #: Loop -> elements that the tensor has along it, whole sticks along sticks.
    extents: dict[int, int]
    #: The loop along the lanes of a stick; None if there is none.
    stick: int | None
    #: Elements per stick.
    stick_size: int
    #: Elements from the tensor's start to where the loops start.
    offset: int


def _in_sympys_terms(expression: Any) -> Any:
    """An expression without the quotients and remainders that are PyTorch's own."""
    import sympy
    from torch.utils._sympy import functions

    def quotient(base: Any, divisor: Any) -> Any:
        return sympy.floor(base / divisor)

    def remainder(base: Any, divisor: Any, modulus: Any) -> Any:
        return sympy.Mod(quotient(base, divisor), modulus)

    plain = sympy.sympify(expression).replace(functions.FloorDiv, quotient)
    plain = plain.replace(functions.ModularIndexing, remainder)
    return plain.replace(functions.PythonMod, sympy.Mod).replace(
        functions.Mod, sympy.Mod
    )


def _read(
    expression: Any,
    loops: Mapping[Any, tuple[int, int]],
    size: int,
    lanes: Coordinate | None,
    what: str,
) -> Coordinate:
    """One coordinate; that of the ``lanes`` of a stick if they are not given."""
    import sympy

    if isinstance(expression, IndirectAccess):
        raise Unsupported(f"{what}: indices that a tensor holds, in a specification")
    plain = _in_sympys_terms(expression)
    symbols = plain.free_symbols
    if not symbols:
        return Coordinate(None, lanes is None, int(plain))
    (symbol, *others) = symbols
    if others or symbol not in loops:
        known = ", ".join(str(s) for s in loops)
        raise Unsupported(f"{what} is {expression}: expected one of the loops {known}")
    loop, extent = loops[symbol]
    step = sympy.Dummy(integer=True, nonnegative=True)
    plain = plain.subs(symbol, step)
    start = plain.subs(step, 0)
    rest = sympy.expand(plain - start)
    if lanes is None:
        # In one stick, the iterations are its lanes.
        if start == 0 and (
            rest == sympy.Mod(step, size) or (rest == step and extent <= size)
        ):
            return Coordinate(loop, True, 0)
    elif start.is_integer and rest == sympy.floor(step / size):
        # One iteration is the same in both.
        return Coordinate(loop, extent > 1 or lanes.loop == loop, int(start))
    elif start.is_integer and rest == step:
        return Coordinate(loop, extent == 1 and lanes.loop == loop, int(start))
    expected = f"{symbol} or {symbol} // {size}"
    if lanes is None:
        expected = f"{symbol} % {size}"
    raise Unsupported(f"{what} is {expression}: expected {expected}, and a constant")


def locate(arg: TensorArg, loops: Mapping[Any, tuple[int, int]], what: str) -> Place:
    """Where a tensor lies; ``loops`` are symbol -> (number, extent).

    Raises Unsupported for coordinates that SuperDSC cannot say.
    """
    sizes = [int(size) for size in arg.device_size]
    if not sizes or len(arg.device_coordinates) != len(sizes):
        raise Unsupported(
            f"{what} has {len(arg.device_coordinates)} device coordinates: expected "
            f"{len(sizes)}, as device sizes"
        )
    per_stick = arg.device_dtype.elems_per_stick()
    if sizes[-1] != per_stick:
        raise Unsupported(
            f"{what} has {sizes[-1]} elements per stick: expected {per_stick}, the "
            f"number of {arg.device_dtype.name}"
        )
    last = len(sizes) - 1
    *others, own = arg.device_coordinates
    lanes = _read(own, loops, per_stick, None, f"{what}, device dimension {last}")
    coordinates = [
        _read(other, loops, per_stick, lanes, f"{what}, device dimension {d}")
        for d, other in enumerate(others)
    ]
    units = [math.prod(sizes[d + 1 :]) for d in range(last)]
    if lanes.loop is not None and lanes.loop not in {c.loop for c in coordinates}:
        # One stick: the quotient is 0, and nobody writes it.
        free = [d for d in range(last) if sizes[d] == 1 and coordinates[d].loop is None]
        position = free[0] if free else 0
        if free:
            del coordinates[position], units[position], sizes[position]
        coordinates.insert(position, Coordinate(lanes.loop, True, 0))
        units.insert(position, math.prod(sizes[position:]))
        sizes.insert(position, 1)
    return _place(coordinates, units, sizes, lanes, per_stick, what)


def _place(
    coordinates: list[Coordinate],
    units: list[int],
    sizes: list[int],
    lanes: Coordinate,
    per_stick: int,
    what: str,
) -> Place:
    steps: dict[int, tuple[Coordinate, int]] = {}
    extents: dict[int, int] = {}
    order: list[int] = []
    offset = lanes.offset if lanes.loop is None else 0
    for own, unit, size in zip(
        reversed(coordinates), reversed(units), reversed(sizes[:-1]), strict=True
    ):
        offset += own.offset * unit
        if own.loop is None:
            if size > 1 and len(order) < sum(c.loop is not None for c in coordinates):
                raise Unsupported(f"{what} stays at a place inside of other dimensions")
            continue
        if own.loop in steps or own.is_stick != (own.loop == lanes.loop):
            raise Unsupported(f"{what} has a loop along two device dimensions")
        steps[own.loop] = (own, unit)
        extents[own.loop] = size * per_stick if own.is_stick else size
        order.append(own.loop)
    if offset % per_stick:
        raise Unsupported(f"{what} starts inside of a stick")
    return Place(steps, tuple(order), extents, lanes.loop, per_stick, offset)


__all__ = ["Coordinate", "Place", "locate"]
