# SPDX-License-Identifier: Apache-2.0
"""The tensors of an eager call, as a program for many sizes sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    constrain_range,
)

from torch_spyre import _C
from torch_spyre.frontend.bindings import Binding
from torch_spyre.frontend.importer import Importer, InputKind, StorageSpec, TensorSpec
from torch_spyre.frontend.operands import Operands, quiet_mode
from torch_spyre.frontend.size_classes import Size, Symbol
from torch_spyre.frontend.size_patterns import Pattern, Sum, find_pattern
from torch_spyre.frontend.sized import SizedImporter


class SizedOperands(Operands):
    """Their sizes are symbols, with a class of sizes each."""

    results_on = "spyre"
    tracing_mode = "symbolic"

    def __init__(
        self, tensors: list[torch.Tensor], numbers: Sequence[int], pattern: Pattern
    ) -> None:
        super().__init__(tensors, InputKind.of(tensors, [0] * len(tensors), False))
        self._env = ShapeEnv()
        self._num_conditions = 0
        self._binding = Binding()
        #: Where the symbols are, and what they are beyond, or None.
        self.places = list(zip(pattern.positions, pattern.parts, strict=True))
        hints = [
            numbers[position] - (0 if part is None else numbers[part])
            for position, part in self.places
        ]
        self._symints = pattern.values(
            [self._add_symbol(i, hint) for i, hint in enumerate(hints)]
        )
        symbols = self._symbols_of(pattern)
        #: What each number of the form is.
        self.form = [_C.SizeExpr(0) + n.of(symbols) for n in pattern.numbers]
        #: What is at least 0 in all calls of the program, beside the ranges.
        self.conditions: list[_C.SizeExpr] = []
        self._lay_out(pattern)

    def _add_symbol(self, number: int, hint: int) -> torch.SymInt:
        name = f"s{number}"
        own = Symbol(name, 0, None, 0, None)
        sizes = own.class_of(hint)
        if sizes is None or sizes.least == sizes.most:
            raise _C.UnsupportedOp(f"a size of {hint} has a program of its own")
        source = ConstantSource(name)
        symbol = self._env.create_symbol(
            hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None
        )
        symint = self._env.create_symintnode(symbol, hint=hint, source=source)
        constrain_range(symint, min=sizes.least, max=sizes.most)
        self._binding.add(symbol, own, sizes, hint, None)
        return symint

    @staticmethod
    def _symbols_of(pattern: Pattern) -> list[Any]:
        """What stands for the symbols of a pattern in the program's sizes."""
        count = len(pattern.positions)
        return pattern.values([_C.SizeExpr.symbol(number) for number in range(count)])

    def _lay_out(self, pattern: Pattern) -> None:
        """Takes the numbers of the form apart, in the order that _C counts them."""
        symbols = self._symbols_of(pattern)
        numbers = iter(pattern.numbers)

        def take(count: int) -> list[Sum]:
            return [next(numbers) for _ in range(count)]

        def sizes(given: list[Sum]) -> tuple[Size, ...]:
            return tuple(number.of(symbols) for number in given)

        storages: list[StorageSpec] = []
        homes: list[tuple[list[Sum], list[Sum]]] = []
        specs = []
        self._fakes: list[tuple[list[Any], list[Any]]] = []
        for tensor, owner in zip(self.tensors, self.kind.owner, strict=True):
            shape, strides = take(tensor.dim()), take(tensor.dim())
            (offset,) = take(1)
            specs.append(
                TensorSpec(
                    tensor.dtype, sizes(shape), sizes(strides), sizes([offset])[0]
                )
            )
            self._fakes.append(
                (
                    [n.of(self._symints) for n in shape],
                    [n.of(self._symints) for n in strides],
                )
            )
            if owner == len(storages):
                home = self.kind.storages[owner]
                rank = len(home.home_sizes)
                own, steps = take(rank), take(rank)
                homes.append((own, steps))
                storages.append(
                    StorageSpec(home.dtype, sizes(own), sizes(steps), home.layout)
                )
            self._end_in_storage(shape, strides, offset, *homes[owner])
        self.kind = InputKind(tuple(storages), self.kind.owner, tuple(specs))
        #: The integers among the arguments that the form leaves out. At all sizes of
        #: the program they are negative, or are not, as in the call.
        self.integers = [number.of(self._symints) for number in numbers]
        for integer in self.integers:
            if isinstance(integer, torch.SymInt):
                self._binding.keep_sign(integer)

    def _end_in_storage(
        self,
        shape: list[Sum],
        strides: list[Sum],
        offset: Sum,
        home: list[Sum],
        steps: list[Sum],
    ) -> None:
        """Keeps to sizes at which a part of a storage ends in it, if these are a range
        of one symbol.
        """

        def span(sizes: list[Sum], strides: list[Sum]) -> Any:
            last: Any = 0
            for n, stride in zip(sizes, strides, strict=True):
                size = n.of(self._symints)
                # The stride of a dimension of one element may be anything.
                if not isinstance(size, int) or size != 1:
                    last = last + (size - 1) * stride.of(self._symints)
            return last

        rest = span(home, steps) - span(shape, strides) - offset.of(self._symints)
        if isinstance(rest, torch.SymInt):
            self._binding.require(rest)

    def inference(self) -> AbstractContextManager[Any]:
        """As mode()."""
        return self.mode()

    def inferred(self, index: int) -> torch.Tensor:
        """As stand_in()."""
        return self.stand_in(index)

    @contextmanager
    def mode(self) -> Iterator[None]:
        """In which sizes are symbols, also for what is composite in C++."""
        with (
            quiet_mode(shape_env=self._env, allow_non_fake_inputs=True),
            enable_python_dispatcher(),
        ):
            yield

    def stand_in(self, index: int) -> torch.Tensor:
        """A tensor that has nothing behind it, whatever its sizes are."""
        tensor = self.tensors[index]
        sizes, strides = self._fakes[index]
        return torch.empty_strided(
            sizes, strides, dtype=tensor.dtype, device=tensor.device
        )

    def agree(self, index: int, result: torch.Tensor) -> bool:
        """Whether both have the same formulas as sizes."""
        return tuple(map(self._binding.size, result.shape)) == tuple(
            self.kind.specs[index].sizes
        )

    def importer(self) -> Importer:
        """Raises UnsupportedOp if what has been inferred is for some sizes only, and
        no inequalities say for which.
        """
        if self._env.replacements:
            raise _C.UnsupportedOp(
                "PyTorch infers its results for the sizes of this call alone"
            )
        self.conditions.clear()
        for guard in self._env.guards:
            if not self._holds(guard.expr):
                raise _C.UnsupportedOp(
                    f"PyTorch infers its results only where {guard.expr}, which a "
                    "program for many sizes does not check"
                )
        self._num_conditions = len(self._env.guards)
        return SizedImporter(self._binding)

    @property
    def is_settled(self) -> bool:
        """Whether nothing was taken for granted since the last importer was made."""
        return (
            not self._env.replacements and len(self._env.guards) == self._num_conditions
        )

    def _holds(self, condition: Any) -> bool:
        """Keeps to sizes at which a condition is true, by their ranges or by what each
        call is checked for; False if it is no inequality.
        """
        if condition == sympy.true:
            return True
        if isinstance(condition, sympy.And):
            return all(self._holds(part) for part in condition.args)
        if not isinstance(condition, sympy.core.relational.Relational):
            return False
        difference = condition.lhs - condition.rhs
        # One of these is at least 0 where the condition is true.
        if isinstance(condition, sympy.Ge):
            reached = [difference]
        elif isinstance(condition, sympy.Gt):
            reached = [difference - 1]
        elif isinstance(condition, sympy.Le):
            reached = [-difference]
        elif isinstance(condition, sympy.Lt):
            reached = [-difference - 1]
        elif isinstance(condition, sympy.Ne):
            reached = [difference - 1, -difference - 1]
        else:
            return False
        if any(map(self._binding.require, reached)):
            return True
        for expr in reached:
            size = self._binding.reached_in_call(expr)
            if size is not None:
                self.conditions.append(_C.SizeExpr(0) + size)
                return True
        return False


def operands_of(
    tensors: list[torch.Tensor],
    numbers: Sequence[int],
    earlier: Sequence[Sequence[int]],
    count: int,
) -> SizedOperands | None:
    """The operands of a program that serves a call and earlier ones of its form.

    ``numbers`` are per tensor its sizes, strides and offset, and where it is the first
    one on its storage, the sizes and strides of the home; then ``count`` integers. None
    if these calls have too little in common.
    """
    integers = range(len(numbers) - count, len(numbers))
    places, parts = _places_of_sizes(tensors, numbers)
    pattern = find_pattern(numbers, places, earlier, integers, parts)
    return None if pattern is None else SizedOperands(tensors, numbers, pattern)


def _places_of_sizes(
    tensors: Sequence[torch.Tensor], numbers: Sequence[int]
) -> tuple[list[int], dict[int, int]]:
    """The positions of sizes among the numbers of a form. And of those that homes have
    along dimensions of which tensors have a part, with those of the longest parts.
    """
    places: list[int] = []
    parts: dict[int, int] = {}
    position = 0
    homes: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        own, rank = position, tensor.dim()
        places += range(own, own + rank)
        position += 2 * rank + 1
        identity, _, sizes, _, _, _ = _C.tensor_info(tensor)
        if identity not in homes:
            homes[identity] = position, len(sizes)
            places += range(position, position + len(sizes))
            position += 2 * len(sizes)
        home, home_rank = homes[identity]
        for whole in range(home, home + home_rank):
            for part in range(own, own + rank):
                if (
                    numbers[whole + home_rank] == numbers[part + rank]
                    and numbers[parts.get(whole, part)] <= numbers[part]
                    and numbers[part] < numbers[whole]
                ):
                    parts[whole] = part
    return places, parts
