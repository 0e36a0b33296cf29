# SPDX-License-Identifier: Apache-2.0
"""Programs for many sizes.

Dynamo gives a size that varies as a symbol, with the range that it may have. A part
of such a graph becomes one program for a class of sizes, and each call says which
sizes it is for. What cannot be compiled so runs as a program per size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.fx import Node
from torch.utils._sympy.functions import Max

from torch_spyre import _C, extensions
from torch_spyre.frontend import cache, dump, hints, host_numbers, listing, trace
from torch_spyre.frontend.importer import (
    Constant,
    Importer,
    InputKind,
    StorageSpec,
    TensorSpec,
)
from torch_spyre.frontend.parts import (
    CompiledPart,
    CompiledStep,
    compiling,
    is_number,
    remember,
)

_log = logging.getLogger("spyre.inductor")

#: The least size that shares a program with others.
_LEAST = 2
#: Of each symbol, the largest size of the first class of its sizes, and how much
#: larger that of the next one is. Plans are made for the largest size: one that is far
#: too large for a call would keep intermediates out of LX that then fit.
_FIRST_CLASS = 512
_CLASS_FACTOR = 8
#: Programs of one part for inputs that lie on their storages in different ways.
_MAX_PROGRAMS = 16

#: A size, or one that depends on symbols.
Size = Any  # int | _C.SizeExpr


@dataclass(frozen=True)
class SizeClass:
    """Sizes of a symbol that share a program."""

    least: int
    most: int


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
        """The class of a size; None for those that have programs of their own."""
        if size < _LEAST:
            return None
        low, high = _LEAST, _FIRST_CLASS
        while size > high:
            low, high = high + 1, high * _CLASS_FACTOR
        if self.most is not None:
            high = min(high, self.most)
        return SizeClass(max(low, self.least), high) if low <= size <= high else None


class Symbols:
    """The symbols of a graph's sizes."""

    def __init__(self, placeholders: Sequence[Node]) -> None:
        self.symbols: list[Symbol] = []
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
        symbol = size.node.expr
        if not isinstance(symbol, sympy.Symbol) or symbol in self._numbers:
            return
        bounds = size.node.shape_env.bound_sympy(symbol)
        most = int(bounds.upper) if bounds.upper.is_Integer else None
        least = int(bounds.lower) if bounds.lower.is_Integer else 0
        self._numbers[symbol] = len(self.symbols)
        self.symbols.append(Symbol(str(symbol), argument, dim, least, most))

    def sizes_of(self, args: Sequence[Any]) -> tuple[int, ...]:
        """What the symbols are in one call."""
        return tuple(
            args[s.argument] if s.dim is None else args[s.argument].shape[s.dim]
            for s in self.symbols
        )

    def classes_of(self, sizes: Sequence[int]) -> tuple[SizeClass, ...] | None:
        """The classes of these sizes; None if one has programs of its own."""
        classes = [s.class_of(n) for s, n in zip(self.symbols, sizes, strict=True)]
        return None if None in classes else tuple(classes)  # type: ignore[arg-type]

    def merge(self, sizes: Sequence[int], classes: Sequence[SizeClass]) -> Merge:
        """Those of a class that are equal in a call as one."""
        merged, numbers, known = Symbols(()), [], {}
        for symbol, number in self._numbers.items():
            key = sizes[number], classes[number]
            if key not in known:
                known[key] = len(merged.symbols)
                merged.symbols.append(self.symbols[number])
            merged._numbers[symbol] = known[key]
            numbers.append(known[key])
        return Merge(merged, tuple(numbers))

    def size(self, value: Any) -> Size:
        """A size of PyTorch's metadata. Raises UnsupportedOp for what is no sum of
        products of symbols and whole numbers.
        """
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._convert(value.node.expr)
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
        if isinstance(expr, Max):
            for part in expr.args:
                if all(self._is_reached(part - other) for other in expr.args):
                    return self._convert(part)
        if isinstance(expr, sympy.Pow) and isinstance(expr.exp, sympy.Integer):
            base, total = self._convert(expr.base), 1
            if expr.exp > 0:
                for _ in range(int(expr.exp)):
                    total = base * total
                return total
        raise _C.UnsupportedOp(f"a size of {expr}")

    def _is_reached(self, expr: Any) -> bool:
        """Whether an expression is at least 0 at all sizes that share programs."""
        least: Any = 0
        for term, factor in sympy.expand(expr).as_coefficients_dict().items():
            symbols = term.free_symbols
            if symbols and not (
                factor > 0
                and symbols <= self._numbers.keys()
                and term.is_polynomial(*symbols)
            ):
                return False
            for symbol in symbols:
                own = self.symbols[self._numbers[symbol]].least
                term = term.subs(symbol, max(own, _LEAST))
            least += factor * term
        return bool(least >= 0)


@dataclass(frozen=True)
class Merge:
    """Symbols that stand for several symbols of a graph, whose sizes are equal.

    Dynamo has a symbol per tensor of a cache, and nothing that says that a mask is as
    long as all of them.
    """

    symbols: Symbols
    #: Which of ``symbols`` each symbol of the graph is.
    numbers: tuple[int, ...]

    def of(self, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """What ``symbols`` are where those of the graph are ``values``.

        None if values differ that are one here.
        """
        own: dict[int, Any] = {}
        for number, value in zip(self.numbers, values, strict=True):
            if own.setdefault(number, value) != value:
                return None
        return tuple(own[number] for number in range(len(own)))


def at(size: Size, sizes: Sequence[int]) -> int:
    """A size where the symbols have these."""
    return size if isinstance(size, int) else size.at(list(sizes))


class SizedImporter(Importer):
    """Imports a part whose sizes are symbols of ``symbols``, in ``classes``.

    ``hints`` are the sizes of a call.
    """

    def __init__(
        self,
        symbols: Symbols,
        classes: Sequence[SizeClass],
        hints: Sequence[int],
    ) -> None:
        super().__init__()
        self.symbols = symbols
        for symbol, sizes, hint in zip(symbols.symbols, classes, hints, strict=True):
            self.builder.add_symbol(symbol.name, sizes.least, sizes.most, hint)

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """How a fake tensor lies."""
        size = self.symbols.size
        return TensorSpec(
            tensor.dtype,
            tuple(size(s) for s in tensor.shape),
            tuple(size(s) for s in tensor.stride()),
            size(tensor.storage_offset()),
        )

    def gaps_of(self, result: torch.Tensor) -> None:
        """None: results with gaps are refused as what they are."""
        return None

    def add_call(self, name: str, *args: Any, **kwargs: Any) -> list[int]:
        """As for one size, but what users lower is for sizes that are numbers."""
        if extensions.lowering_of(name) is not None:
            raise _C.UnsupportedOp(
                f"{name} has a lowering of the user's, for sizes that are numbers"
            )
        return super().add_call(name, *args, **kwargs)

    def number_of(self, value: Any) -> Any:
        """A number of the host; a size if it depends on symbols."""
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.symbols.size(value)
        return value

    def _operand(self, value: Any) -> Any:
        number = self.number_of(value)
        return number if number is not value else super()._operand(value)


def _agrees(
    traced: Sequence[Size], actual: Sequence[int], sizes: Sequence[int]
) -> bool:
    return len(traced) == len(actual) and all(
        at(t, sizes) == a for t, a in zip(traced, actual, strict=True)
    )


@dataclass
class SizedStep(CompiledStep):
    """Consecutive nodes that run as one program for a class of sizes."""

    symbols: Symbols | None = None
    classes: tuple[SizeClass, ...] = ()
    #: The fake values of all nodes, with the sizes of a call, whose values it takes.
    concrete: Callable[[Mapping[Any, Any]], dict[Node, Any]] | None = None
    #: The programs, and which symbols each takes for equal.
    programs: list[tuple[Any, Merge]] = field(default_factory=list)
    #: Whether programs take symbols for equal that are so in a call.
    is_merged: bool = False
    #: Why there is no program for many sizes.
    reason: str | None = None
    #: Steps for one size each.
    single: dict[tuple[int, ...], CompiledStep] = field(default_factory=dict)

    def run(self, env: dict[Any, Any]) -> None:
        """Runs on the values of ``env`` and adds the results to it."""
        sizes = env[self.symbols]
        if self.reason is None:
            inputs = host_numbers.on_device([env[node] for node in self.inputs])
            results = self._run(inputs, sizes)
            if results is None:
                with compiling:
                    results = self._run(inputs, sizes)
                    if results is None:
                        self._compile_for(inputs, sizes)
                        results = self._run(inputs, sizes)
            if results is not None:
                env.update(zip(self.outputs, results, strict=True))
                return
        self._step_for(env, sizes).run(env)

    def _run(self, inputs: list[Any], sizes: tuple[int, ...]) -> list[Any] | None:
        for program, merge in self.programs:
            own = merge.of(sizes)
            results = None if own is None else program.run(inputs, own)
            if results is not None:
                return results
        return None

    def _step_for(self, env: dict[Any, Any], sizes: tuple[int, ...]) -> CompiledStep:
        step = self.single.get(sizes)
        if step is None:
            assert self.concrete is not None
            step = self.single[sizes] = CompiledStep(
                self.nodes,
                self.concrete(env),
                options=self.options,
                name=self.name,
                compile_id=self.compile_id,
            )
            step.connect()
        return step

    def _compile_for(self, inputs: list[Any], sizes: tuple[int, ...]) -> None:
        """Adds the program for such inputs, or says why there is none."""
        if self.reason is not None or len(self.programs) == _MAX_PROGRAMS:
            return
        assert self.symbols is not None
        apart = Merge(self.symbols, tuple(range(len(sizes))))
        equal = self.symbols.merge(sizes, self.classes)
        merges = [equal] if self.is_merged else [apart, equal]
        if len(equal.symbols.symbols) == len(sizes):
            # No two are equal in this call: both are the same.
            del merges[1:]
        for merge in merges:
            try:
                program = self._make_program(inputs, merge, sizes)
            except _C.SpyreError as error:
                self.reason = str(error)
            else:
                self.programs.append((program, merge))
                self.is_merged = merge is equal
                self.reason = None
                return
        _log.info("%s: a program per size, because %s", self.name, self.reason)

    def _make_program(
        self, inputs: list[Any], merge: Merge, actual_sizes: tuple[int, ...]
    ) -> Any:
        sizes, classes = merge.of(actual_sizes), merge.of(self.classes)
        assert sizes is not None and classes is not None
        importer = SizedImporter(merge.symbols, classes, sizes)
        kind = InputKind.of(inputs, [0] * len(inputs))
        arguments = [
            importer.add_storage(
                number,
                self._argument_name(number, first),
                self._storage_spec(importer, kind, number, sizes),
            )
            for number, first in enumerate(kind.first)
        ]
        specs = []
        for node, actual, owner in zip(
            self.inputs, kind.specs, kind.owner, strict=True
        ):
            spec = self._input_spec(importer, node, actual, sizes)
            specs.append((owner, spec.sizes, spec.strides, spec.offset))
            importer.add_input(node, arguments[owner], spec, self.metas[node])
            if host_numbers.is_host_number(self.metas[node]):
                importer.numbers.add(node)
        for node in self.nodes:
            for source in node.all_input_nodes:
                if is_number(self.metas[source]):
                    importer.values[source] = Constant(
                        importer.number_of(self.metas[source])
                    )
            importer.add_node(node, self.metas[node])
        results = importer.builder.set_outputs(
            [importer.values[n] for n in self.outputs]
        )
        kept = dump.begin(self.name, self.nodes)
        options = dict(self.options)
        if kept is not None:
            options["dump_dir"] = str(kept.folder)
        with cache.counted():
            graph = cache.load_or_compile(importer.builder, options)
        trace.write_artifacts(self.name, graph, self.nodes, self.compile_id)
        listing.offer(self.name, graph)
        if kept is not None:
            kept.save_program(graph)
        remember(CompiledPart(self.name, graph, kind.first, list(results), dump=kept))
        return _C.SizedProgram(graph, specs, list(results))

    def _storage_spec(
        self,
        importer: SizedImporter,
        kind: InputKind,
        number: int,
        sizes: Sequence[int],
    ) -> StorageSpec:
        """A storage whose home is as large as the input on it is always so."""
        spec = kind.storages[number]
        first = kind.first[number]
        actual = kind.specs[first]
        traced = importer.spec_of(self.metas[self.inputs[first]])
        is_home = actual.offset == 0 and (actual.sizes, actual.strides) == (
            spec.home_sizes,
            spec.home_strides,
        )
        if (
            is_home
            and _agrees(traced.sizes, actual.sizes, sizes)
            and _agrees(traced.strides, actual.strides, sizes)
        ):
            return StorageSpec(spec.dtype, traced.sizes, traced.strides, spec.layout)
        return StorageSpec(spec.dtype, spec.home_sizes, spec.home_strides, spec.layout)

    def _input_spec(
        self,
        importer: SizedImporter,
        node: Node,
        actual: TensorSpec,
        sizes: Sequence[int],
    ) -> TensorSpec:
        """How an input lies at all sizes, if it lies as it was traced."""
        traced = importer.spec_of(self.metas[node])
        if not (
            _agrees(traced.sizes, actual.sizes, sizes)
            and _agrees(traced.strides, actual.strides, sizes)
            and at(traced.offset, sizes) == actual.offset
        ):
            raise _C.UnsupportedOp(
                f"{node.name} lies on its storage otherwise than when it was traced: "
                f"{traced} is {actual}"
            )
        return traced


def can_be_sized(nodes: Sequence[Node], options: Mapping[str, Any]) -> bool:
    """Whether a graph asks for nothing that only programs of one size have."""
    return not (
        options.get("superdsc_compatible")
        or options.get("through_superdsc")
        or dump.decisions_dir() is not None
        or hints.are_given(nodes)
    )


class SizesStep:
    """Numbers computed from sizes, for each call."""

    def __init__(self, symbols: Symbols, nodes: Mapping[Node, Any]) -> None:
        self.symbols = symbols
        self.values = {n: self._size(v) for n, v in nodes.items()}

    def _size(self, value: Any) -> Size:
        """The number, or what it is of the symbols; None if that is no sum."""
        try:
            return self.symbols.size(value)
        except _C.UnsupportedOp:
            return None

    def run(self, env: dict[Any, Any]) -> None:
        """Adds the numbers of a call to ``env``."""
        sizes = env[self.symbols]
        for node, value in self.values.items():
            if value is None:
                args = torch.fx.map_arg(node.args, env.__getitem__)
                env[node] = node.target(*args)
            else:
                env[node] = at(value, sizes)
