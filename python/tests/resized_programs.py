# SPDX-License-Identifier: Apache-2.0
"""Programs of ``random_programs`` with other sizes than they were drawn with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from random_programs import MOST, Buffer, Program, Window, exact

#: Around sticks (64 elements of fp16, 32 of fp32), and one.
SIZES = (1, 2, 3, 5, 13, 31, 32, 33, 63, 64, 65, 67, 127, 129)
#: Operators of values that are distinct, which they may not be at other sizes.
OF_DISTINCT = ("arg_extremum", "topk")
#: So many are tried, of which so many have to suit a program.
MOST_SIZES = 8
FEWEST = 4


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first one to the last one."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def with_shape(window: Window, shape: tuple[int, ...]) -> Window:
    """The window with its dimensions in the same order, and the same gaps."""
    strides = [0] * len(shape)
    old = new = 1
    for dim in sorted(
        range(len(shape)), key=lambda d: (window.strides[d], window.shape[d])
    ):
        step = window.strides[dim] // old
        if step:
            strides[dim] = new * step
            old *= step * max(window.shape[dim], 1)
            new *= step * max(shape[dim], 1)
    return replace(window, shape=shape, strides=tuple(strides))


def with_size(buffer: Buffer, size: int) -> Buffer:
    formula = buffer.formula.replace(f"arange({buffer.size})", f"arange({size})")
    return replace(buffer, size=size, formula=formula)


def repeats(window: Window) -> bool:
    """Whether indices meet a place twice: which value stays is then undefined."""
    modulus = int(window.buffer.formula.rpartition("% ")[2])
    return prod(window.shape) > modulus


@dataclass(frozen=True)
class SizedProgram:
    """A program of which some dimensions of arguments vary, all in the same way."""

    program: Program
    #: Name of the argument, and the dimension.
    dims: frozenset[tuple[str, int]]
    #: Those at which it runs on the CPU, with exact values.
    sizes: tuple[int, ...] = ()

    def is_right_at(self, size: int) -> bool:
        """Whether its values are exact there, and no index is there twice anew."""
        program = self.at(size)
        anew = any(
            repeats(now) and not repeats(drawn)
            for now, drawn in zip(program.windows, self.program.windows, strict=True)
            if now.buffer.is_index
        )
        return not anew and is_exact(program)

    def at(self, size: int) -> Program:
        windows = [
            with_shape(
                w,
                tuple(
                    size if (w.name, dim) in self.dims else n
                    for dim, n in enumerate(w.shape)
                ),
            )
            for w in self.program.windows
        ]
        needed: dict[str, int] = {}
        for w in windows:
            end = max(w.offset + span(w.shape, w.strides), 1)
            needed[w.buffer.name] = max(needed.get(w.buffer.name, 1), end)
        windows = [
            replace(w, buffer=with_size(w.buffer, needed[w.buffer.name]))
            for w in windows
        ]
        return replace(self.program, windows=tuple(windows))


def is_exact(program: Program) -> bool:
    """Whether it runs on the CPU, with values at which every rounding is exact."""
    if max(prod(w.shape) for w in program.windows) > MOST:
        return False
    try:
        return all(
            exact(value, is_whole=True)
            for call in range(program.num_calls)
            for value in program.values(call).values()
        )
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False


def choices(program: Program, rng: random.Random) -> Iterator[frozenset]:
    """What may vary: all dimensions of one size, or a single one."""
    found = [
        (n, w.name, dim) for w in program.windows for dim, n in enumerate(w.shape) if n
    ]
    sizes = sorted({n for n, _, _ in found if n > 1})
    rng.shuffle(sizes)
    for size in sizes:
        yield frozenset((name, dim) for n, name, dim in found if n == size)
    rng.shuffle(found)
    for _, name, dim in found:
        yield frozenset({(name, dim)})


def with_sizes(program: Program, seed: int) -> SizedProgram | None:
    """The program with sizes that vary, if there are such that it is right for."""
    rng = random.Random(seed)
    if any(line.operator in OF_DISTINCT for line in program.lines):
        return None
    for dims in choices(program, rng):
        sized = SizedProgram(program, dims)
        tried = rng.sample(SIZES, MOST_SIZES)
        sizes = tuple(s for s in tried if sized.is_right_at(s))
        if len(sizes) >= FEWEST:
            return replace(sized, sizes=sizes)
    return None
