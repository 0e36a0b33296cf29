# SPDX-License-Identifier: Apache-2.0
"""Programs drawn from a table of operators, and what is left of them when shrunk.

A program is text: buffers made of formulas, arguments that are windows into them,
and lines that each apply one operator of ``random_operators``. A line is kept if the
program with it runs on the CPU for every set of scalars and all values stay where
every rounding is exact. Programs are short, so each try starts afresh; no state is
taken back, and a program without some of its lines is a program again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import gcd, prod
from typing import Any

import torch
from numerics import LARGEST_EXACT

SIZES = [1, 2, 3, 5, 7, 13, 31, 63, 64, 65, 127, 0]
MOST = 1 << 13
#: Sums of absolute values up to here are exact in fp32 in any order.
EXACT_SUM = 1 << 24
DTYPES = [torch.float16] * 4 + [torch.float32] * 2 + list(LARGEST_EXACT)
#: Formulas of the values that are only moved: as many bits as the format has.
WIDE = {
    torch.float16: (1021, 510, 8),
    torch.bfloat16: (251, 125, 2),
    torch.float32: (16381, 8190, 64),
    torch.int32: (2000003, 1000001, 1),
    torch.int64: (2000003, 1000001, 1),
}


class Nothing(Exception):
    """An operator found no operands that suit it."""


@dataclass(frozen=True)
class Buffer:
    """A storage; ``formula`` makes its values on the host."""

    name: str
    size: int
    dtype: torch.dtype
    formula: str
    #: Nothing else shares it, lest equal numbers come into unique ones.
    is_index: bool = False


@dataclass(frozen=True)
class Window:
    """An argument: a part of a buffer."""

    name: str
    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def text(self) -> str:
        whole = (self.offset, self.strides) == (0, (1,))
        if whole and self.shape == (self.buffer.size,):
            return self.buffer.name
        place = f"{self.shape}, {self.strides}, {self.offset}"
        return f"{self.buffer.name}.as_strided({place})"


@dataclass(frozen=True)
class Line:
    operator: str
    targets: tuple[str, ...]
    expression: str

    def text(self) -> str:
        return f"{', '.join(self.targets)} = {self.expression}"


def as_tuple(values: Iterable[str]) -> str:
    return f"({''.join(f'{v}, ' for v in values)})".replace(", )", ",)")


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]\d+\b", text))


@dataclass(frozen=True)
class Program:
    windows: tuple[Window, ...] = ()
    #: Name -> its value per call.
    scalars: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    results: tuple[str, ...] = ()

    @property
    def num_calls(self) -> int:
        return 2 if self.scalars else 1

    def source(self) -> str:
        """The function, and one that makes its arguments."""
        buffers = {w.buffer.name: w.buffer for w in self.windows}
        makes = [
            f"{b.name} = ({b.formula}).to({b.dtype}).to(device)"
            for b in buffers.values()
        ]
        values = [w.text() for w in self.windows]
        values += [f"{v}[call]" for v in self.scalars.values()]
        names = [w.name for w in self.windows] + list(self.scalars)
        body = [line.text() for line in self.lines]
        body.append(f"return {as_tuple(self.results)}")
        makes.append(f"return {as_tuple(values)}")
        indent = "\n    "
        return (
            f"def program({', '.join(names)}):{indent}{indent.join(body)}\n\n"
            f"def arguments(device, call=0):{indent}{indent.join(makes)}\n"
        )

    def runnable(self) -> str:
        """Lines that show whether the program runs as it should."""
        return (
            f"import torch\n\n{self.source()}\n"
            'compiled = torch.compile(program, backend="spyre")\n'
            f"for call in range({self.num_calls}):\n"
            '    for device, run in ("cpu", program), ("spyre", program), '
            '("spyre", compiled):\n'
            "        given = arguments(device, call)\n"
            "        print(device, run(*given), given)\n"
        )

    def functions(self) -> tuple[Callable, Callable]:
        scope = {"torch": torch}
        exec(self.source(), scope)
        return scope["program"], scope["arguments"]

    def values(self, call: int = 0) -> dict[str, Any]:
        """All names after a run on the CPU."""
        _, arguments = self.functions()
        names = [w.name for w in self.windows] + list(self.scalars)
        scope = dict(zip(names, arguments("cpu", call), strict=True))
        for line in self.lines:
            exec(line.text(), {"torch": torch}, scope)
        return scope


def exact(value: Any, is_whole: bool) -> bool:
    if not isinstance(value, torch.Tensor):
        return True
    if value.dtype not in LARGEST_EXACT or value.numel() > MOST or value.dim() > 6:
        return False
    if not value.numel() or value.dtype == torch.bool:
        return True
    wide = value.double()
    if not is_whole and value.dtype in WIDE:
        return bool(wide.abs().max() <= WIDE[value.dtype][0])
    return bool(
        (wide == wide.round()).all() and wide.abs().max() <= LARGEST_EXACT[value.dtype]
    )


class Draw:
    """Draws one program; operators ask it for operands and numbers."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        #: Values are only moved: they may be any that the formats hold.
        self.only_moves = self.random.random() < 0.4
        self.has_scalars = self.random.random() < 0.25
        self.program = Program()
        self.scope: dict[str, Any] = {}
        self.bounds: list[tuple[str, float]] = []
        self.count = 0

    # --- numbers ---

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        if high < low:
            raise Nothing
        return self.random.randint(low, high)

    def choice(self, options: Any) -> Any:
        if not options:
            raise Nothing
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def number(self, dtype: torch.dtype) -> str:
        """A whole number, literal or a scalar that changes from call to call."""
        if dtype == torch.bool:
            return str(self.chance(0.5))
        is_float = dtype.is_floating_point and self.chance(0.7)
        pair = [self.choice([-3, -2, -1, 0, 1, 2, 3, 4]) for _ in range(2)]
        if is_float:
            pair = [float(n) for n in pair]
        if not self.has_scalars or self.chance(0.4):
            return str(pair[0])
        return self.scalar(*pair)

    def place(self, high: int) -> str:
        """A whole number from 0 to high, literal or changing from call to call."""
        pair = self.integer(0, high), self.integer(0, high)
        if not self.has_scalars or self.chance(0.6):
            return str(pair[0])
        return self.scalar(*pair)

    def scalar(self, *values: Any) -> str:
        name = f"c{len(self.program.scalars)}"
        scalars = {**self.program.scalars, name: values}
        self.program = replace(self.program, scalars=scalars)
        self.scope[name] = values[0]
        return name

    # --- tensors ---

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.scope[name]

    def value(self, test: Callable[[torch.Tensor], Any] = lambda t: True) -> str:
        """A tensor that passes the test; newer ones more often."""
        names = [
            n for n, t in self.scope.items() if isinstance(t, torch.Tensor) and test(t)
        ]
        if not names:
            raise Nothing
        return self.choice(names[-2:] if self.chance(0.6) else names)

    def ranked(self, low: int = 1, high: int = 6) -> str:
        return self.value(lambda t: low <= t.dim() <= high)

    def number_tensor(self, test: Callable = lambda t: True) -> str:
        return self.value(lambda t: t.dtype != torch.bool and test(t))

    def dim(self, name: str) -> int:
        return self.integer(0, self[name].dim() - 1)

    def shape(self, most: int = MOST) -> tuple[int, ...]:
        rank = self.choice([0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4])
        while True:
            # Few are empty: they show little.
            sizes = [self.choice(SIZES[: -1 if self.chance(0.9) else None])] * rank
            sizes = [self.choice([s, self.choice(SIZES[:-1])]) for s in sizes]
            if prod(sizes) <= most:
                return tuple(sizes)

    def formula(self, size: int, dtype: torch.dtype) -> str:
        start = self.integer(0, 99)
        if dtype == torch.bool:
            return f"(torch.arange({size}) * 5 + {start}) % 7 < 3"
        modulus, middle, divisor = (7, 3, 1)
        if self.only_moves:
            modulus, middle, divisor = WIDE[dtype]
        step = self.choice([s for s in (3, 37, 101, 997) if gcd(s, modulus) == 1])
        values = f"(torch.arange({size}) * {step} + {start}) % {modulus} - {middle}"
        return values if divisor == 1 else f"({values}) / {divisor}"

    def indices(self, shape: tuple[int, ...], size: int, unique: bool = False) -> str:
        """A new int64 argument of numbers from 0 to size - 1."""
        if not size or (unique and prod(shape) > size):
            raise Nothing
        step = self.choice([s for s in (1, 3, 5, 7, 11) if gcd(s, size) == 1])
        start = self.integer(0, 9)
        return self.argument(
            shape,
            torch.int64,
            lambda n: f"(torch.arange({n}) * {step} + {start}) % {size}",
        )

    def argument(
        self,
        shape: tuple[int, ...] | None = None,
        dtype: torch.dtype | None = None,
        formula: Callable[[int], str] | None = None,
        is_alone: bool = False,
    ) -> str:
        """``is_alone``: on a storage of its own, as what is written elsewhere."""
        shape = self.shape() if shape is None else tuple(shape)
        if prod(shape) > MOST:
            raise Nothing
        name = f"x{len(self.program.windows)}"
        dtype = dtype or self.choice(DTYPES)
        offset, strides, size = self.placement(shape)
        # Some share a storage with an argument before.
        shared = [
            w.buffer
            for w in self.program.windows
            if w.buffer.dtype == dtype
            and w.buffer.size >= size
            and not w.buffer.is_index
        ]
        if shared and not (formula or is_alone) and self.chance(0.25):
            buffer = self.choice(shared)
            # To the very end of the storage.
            offset += buffer.size - size if self.chance(0.6) else 0
        else:
            text = formula(size) if formula else self.formula(size, dtype)
            name_of_buffer = name.replace("x", "b")
            buffer = Buffer(name_of_buffer, size, dtype, text, formula is not None)
        window = Window(name, buffer, shape, strides, offset)
        self.program = replace(self.program, windows=(*self.program.windows, window))
        whole = eval(f"({buffer.formula}).to({dtype})", {"torch": torch})
        self.scope[name] = whole.as_strided(shape, strides, offset)
        return name

    def placement(self, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], int]:
        """Offset, strides and size of the storage, which mostly ends with it."""
        order = list(range(len(shape)))
        kind = self.random.random()
        steps = [1] * len(shape)
        if shape and 0.4 < kind < 0.55:
            self.random.shuffle(order)
        elif shape and 0.55 < kind < 0.65:
            steps[self.integer(0, len(shape) - 1)] = self.choice([2, 3])
        strides, stride = [0] * len(shape), 1
        for dim in reversed(order):
            strides[dim] = stride * steps[dim]
            stride *= max(shape[dim], 1) * steps[dim]
        if shape and kind > 0.95:
            strides[self.integer(0, len(shape) - 1)] = 0
        offset = 0 if kind < 0.3 else self.choice([1, 2, 5, 63, 64, 65, 127, 128, 200])
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        size = offset + (last + 1 if prod(shape) else 0)
        return offset, tuple(strides), max(size, 1)

    def partner(self, name: str) -> str:
        """A tensor that broadcasts with another one, of its dtype."""
        t = self[name]

        def suits(u: torch.Tensor) -> bool:
            try:
                shape = torch.broadcast_shapes(t.shape, u.shape)
            except RuntimeError:
                return False
            return u.dtype == t.dtype and prod(shape) <= MOST

        if self.chance(0.6):
            return self.value(suits)
        shape = [s if self.chance(0.7) else 1 for s in t.shape]
        return self.argument(shape[self.integer(0, len(shape)) :], t.dtype)

    def mask(self, name: str) -> str:
        shape = [s if self.chance(0.8) else 1 for s in self[name].shape]
        return self.argument(shape, torch.bool, is_alone=True)

    def within(self, expression: str, most: float) -> None:
        """What an operator computes on the way has to be exact, too."""
        self.bounds.append((expression, most))

    # --- programs ---

    def line(self, operator: str, make: Callable[[Draw], str]) -> bool:
        """Adds a line if there is a right one; whether it did."""
        before = self.program, self.scope
        self.scope = dict(self.scope)
        self.bounds = []
        try:
            expression = make(self)
            value = self.attempt(expression)
            if isinstance(value, (tuple, list)) and not 0 < len(value) < 4:
                expression += f"[{self.integer(0, len(value) - 1)}]"
                value = value[0]
            many = len(value) if isinstance(value, (tuple, list)) else 1
            targets = tuple(f"v{self.count + i}" for i in range(many))
            if many == 1 and isinstance(value, (tuple, list)):
                expression += "[0]"
            line = Line(operator, targets, expression)
            self.program = replace(self.program, lines=(*self.program.lines, line))
            self.scope = self.run()
        except (Nothing, RuntimeError, IndexError, ValueError, TypeError):
            # The CPU refuses it, or its values are not exact.
            self.program, self.scope = before
            return False
        self.count += many
        return True

    def attempt(self, expression: str) -> Any:
        for call in range(self.program.num_calls):
            scope = {"torch": torch, **self.program.values(call)}
            for bound, most in self.bounds:
                reached = torch.as_tensor(eval(bound, scope)).double().abs()
                if reached.numel() and reached.max() > most:
                    raise Nothing
            value = eval(expression, scope)
        return value

    def run(self) -> dict[str, Any]:
        for call in reversed(range(self.program.num_calls)):
            scope = self.program.values(call)
            if not all(exact(v, not self.only_moves) for v in scope.values()):
                raise Nothing
        return scope


def draw_program(seed: int, table: dict[str, Any]) -> Program:
    """``table``: name -> (operator, whether it only moves, weight)."""
    draw = Draw(seed)
    names = [n for n, (_, moves, _) in table.items() if moves or not draw.only_moves]
    weights = [table[n][2] for n in names]
    draw.argument()
    if draw.chance(0.5):
        draw.argument()
    wanted = draw.integer(1, 6)
    while len(draw.program.lines) < wanted:
        (name,) = draw.random.choices(names, weights)
        draw.line(name, table[name][0])
    targets = [t for line in draw.program.lines for t in line.targets]
    results = dict.fromkeys([targets[-1], *draw.random.sample(targets, 1)])
    used = names_in(draw.program.source())
    windows = tuple(w for w in draw.program.windows if w.name in used)
    return replace(draw.program, windows=windows, results=tuple(results))


# --- shrinking ---


def without(program: Program, dropped: set[str]) -> Program:
    """The program without some names and all that needs them."""
    lines = []
    for line in program.lines:
        if names_in(line.expression) & dropped or set(line.targets) & dropped:
            dropped = dropped | set(line.targets)
        else:
            lines.append(line)
    results = [r for r in program.results if r not in dropped]
    known = [t for line in lines for t in line.targets]
    known = known or [w.name for w in program.windows]
    return replace(program, lines=tuple(lines), results=tuple(results or known[-1:]))


def tidy(program: Program) -> Program:
    """Without the arguments that nothing names."""
    used = names_in(" ".join(line.expression for line in program.lines))
    used |= set(program.results)
    windows = tuple(w for w in program.windows if w.name in used)
    scalars = {n: v for n, v in program.scalars.items() if n in used}
    return replace(program, windows=windows, scalars=scalars)


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a little less, the boldest first."""
    for line in reversed(program.lines):
        yield without(program, set(line.targets))
    if len(program.results) > 1:
        for result in program.results:
            yield replace(program, results=(result,))
    for i, line in enumerate(program.lines):
        # An argument in place of a computed value.
        if len(line.targets) > 1:
            continue
        value = program.values()[line.targets[0]]
        buffer = Buffer(
            f"b{line.targets[0]}",
            max(value.numel(), 1),
            value.dtype,
            f"torch.arange({max(value.numel(), 1)}) % 7 - 3",
        )
        strides = torch.empty(value.shape, device="meta").stride()
        window = Window(line.targets[0], buffer, tuple(value.shape), strides, 0)
        yield replace(
            program,
            windows=(*program.windows, window),
            lines=program.lines[:i] + program.lines[i + 1 :],
        )
    for i, window in enumerate(program.windows):
        # A tensor of its own in place of a part of a storage.
        size = max(prod(window.shape), 1)
        strides = torch.empty(window.shape, device="meta").stride()
        if size < window.buffer.size:
            formula = window.buffer.formula.replace(
                f"arange({window.buffer.size})", f"arange({size})"
            )
            buffer = Buffer(f"b{window.name}", size, window.buffer.dtype, formula)
            whole = Window(window.name, buffer, window.shape, strides, 0)
            windows = (*program.windows[:i], whole, *program.windows[i + 1 :])
            yield replace(program, windows=windows)


def shrink(program: Program, fails: Callable[[Program], bool], tries: int) -> Program:
    """The smallest program found that still fails."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in map(tidy, smaller(program)):
            if tries == 0:
                return program
            try:
                candidate.values(candidate.num_calls - 1)
            except Exception:
                continue  # not a right program
            tries -= 1
            if fails(candidate):
                program, shrunk = candidate, True
                break
    return program
