# SPDX-License-Identifier: Apache-2.0
"""Programs for many sizes.

Dynamo gives a size that varies as a symbol, with the range that it may have. A part
of such a graph becomes one program for a class of sizes, and each call says which
sizes it is for. What cannot be compiled so runs as a program per size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from torch_spyre import _C, extensions
from torch_spyre.frontend import (
    dump,
    growth,
    hints,
    host_numbers,
)
from torch_spyre.frontend.bindings import Binding
from torch_spyre.frontend.homes import (
    Straddle,
    home_as_traced,
    is_part,
    moves_of,
    offset_of,
    span_of,
    straddle_of,
)
from torch_spyre.frontend.importer import (
    Importer,
    InputKind,
    StorageSpec,
    TensorSpec,
    at_line,
)
from torch_spyre.frontend.meta_sizes import paddings_in, products_in
from torch_spyre.frontend.parts import (
    CompiledPart,
    CompiledStep,
    compiling,
    remember,
)
from torch_spyre.frontend.size_classes import SizeClass, agree, at
from torch_spyre.frontend.symbols import Symbols

_log = logging.getLogger("spyre.inductor")

#: Programs of one part for inputs that lie on their storages in different ways.
_MAX_PROGRAMS = 16
#: Calls in a row for which there was no program for many sizes: no more are tried.
_MAX_FAILURES = 4
#: Sizes that vary of which each may become a number: a try takes a compilation.
_MOST_FIXED_ALONE = 3


class SizedImporter(Importer):
    """Imports a part whose sizes are the symbols of ``binding``."""

    def __init__(self, binding: Binding) -> None:
        super().__init__()
        self.binding = binding
        for symbol, sizes, hint in zip(
            binding.symbols, binding.classes, binding.hints, strict=True
        ):
            self.builder.add_symbol(
                symbol.name, sizes.least, sizes.most, hint, sizes.step
            )

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """How a fake tensor lies."""
        size = self.binding.size
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
            return self.binding.size(value)
        return value

    def add_ratio(self, value: torch.SymFloat) -> int:
        """A quotient of sizes, in fp32: both are exact there, so that the quotient is
        rounded as the host's, which is rounded to fp32 in a program of one size.
        Raises UnsupportedOp for other numbers that are computed from sizes.
        """

        def add(name: str, *arguments: Any) -> Any:
            result = [(torch.float32, [], [])]
            return _C.ValueId(self.builder.op(name, list(arguments), {}, result, [])[0])

        sizes = self.binding.ratio(value)
        one = add("aten.scalar_tensor.default", 1.0)
        dividend, divisor = (add("aten.mul.Tensor", one, size) for size in sizes)
        return add("aten.div.Tensor", dividend, divisor).id

    def _operand(self, value: Any) -> Any:
        number = self.number_of(value)
        return number if number is not value else super()._operand(value)


@dataclass
class _Growths:
    """What grows in a program, by the numbers of storages."""

    growing: dict[int, growth.Growth] = field(default_factory=dict)
    #: Of these, how those lie whose room is not in their layouts.
    row_by_row: dict[int, StorageSpec] = field(default_factory=dict)
    #: What may grow in the next call, if a program can do that, with the number of
    #: its input if this is one that may.
    fresh: list[tuple[growth.Growth, int | None]] = field(default_factory=list)


@dataclass
class SizedStep(CompiledStep):
    """Consecutive nodes that run as one program for a class of sizes."""

    symbols: Symbols | None = None
    classes: tuple[SizeClass, ...] = ()
    #: The fake values of all nodes, with the sizes of a call, whose values it takes.
    concrete: Callable[[Mapping[Any, Any]], dict[Node, Any]] | None = None
    #: The programs, and what the symbols are in each.
    programs: list[tuple[Any, Binding]] = field(default_factory=list)
    #: Whether programs take symbols for equal that are so in a call.
    is_merged: bool = False
    #: The sizes of the last call that found no program.
    last: tuple[int, ...] | None = None
    #: What the inputs of that call walk several dimensions of, and the homes' sizes.
    straddles: dict[Node, Straddle] = field(default_factory=dict)
    homes: dict[Node, tuple[int, ...]] = field(default_factory=dict)
    #: Calls for which no program for many sizes could be made.
    failures: int = 0
    #: Steps for one size each.
    single: dict[tuple[int, ...], CompiledStep] = field(default_factory=dict)

    def _run(self, env: dict[Any, Any], values: list[torch.Tensor]) -> None:
        sizes = env[self.symbols]
        step = self.single.get(sizes)
        if step is None:
            inputs = host_numbers.on_device(values)
            results = self._run_program(inputs, sizes)
            if results is None:
                with compiling:
                    results = self._run_program(inputs, sizes)
                    if results is None and self._compile_for(inputs, sizes):
                        results = self._run_program(inputs, sizes)
            if results is not None:
                env.update(zip(self.outputs, results, strict=True))
                return
            step = self._step_for(env, sizes)
        step.run(env)

    def _run_program(
        self, inputs: list[Any], sizes: tuple[int, ...]
    ) -> list[Any] | None:
        for program, binding in self.programs:
            own = binding.of(sizes)
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

    def _compile_for(self, inputs: list[Any], sizes: tuple[int, ...]) -> bool:
        """Adds the program for such inputs; False if there is none."""
        before, self.last = self.last, sizes
        if self.failures == _MAX_FAILURES or len(self.programs) == _MAX_PROGRAMS:
            return False
        reason: _C.SpyreError | None = None
        for binding, is_merged in self._bindings(inputs, sizes, before):
            try:
                program = self._make_grown_program(inputs, binding, sizes)
            except _C.SpyreError as error:
                reason = reason or error
            else:
                self.programs.append((program, binding))
                self.is_merged = is_merged
                self.failures = 0
                return True
        assert self.symbols is not None
        if self.symbols.is_stepped and reason is not None:
            # Declared sizes are promised one program.
            raise at_line(reason)
        self.failures += 1
        why = "no sizes are known to vary" if reason is None else at_line(reason)
        _log.info("%s: a program per size, because %s", self.name, why)
        return False

    def _bindings(
        self,
        inputs: list[Any],
        sizes: tuple[int, ...],
        before: tuple[int, ...] | None,
    ) -> Iterator[tuple[Binding, bool]]:
        """What the symbols may be in a program for a call, and if it is merged: the
        fewer become numbers, the earlier.
        """
        assert self.symbols is not None
        symbols = self.symbols
        if symbols.is_stepped:
            yield from self._stepped_bindings(sizes)
            return
        self._find_straddles(inputs)
        # Inputs that are parts of their storages, where they begin, and how many
        # elements these have.
        parts = [
            (
                self.metas[node],
                offset_of(tensor, self.metas[node]),
                span_of(tensor, self.metas[node], self.straddles.get(node)),
            )
            for node, tensor in zip(self.inputs, inputs, strict=True)
            if is_part(tensor)
        ]
        steps, of_parts = (
            frozenset().union(*(symbols.of(meta, is_all) for meta, _, _ in parts))
            for is_all in (False, True)
        )
        unchanged = frozenset() if before is None else symbols.unchanged(sizes, before)
        tried: set[frozenset[Any]] = set()
        first: frozenset[Any] = frozenset()
        if next(products_in(self.metas.values()), None) is not None:
            # A batch has a program of its own, for any number of rows, until it is
            # another one than in the last call.
            first = unchanged
            if before is None:
                tried.add(first)
        for fixed in (
            first,
            unchanged,
            steps,
            steps | unchanged,
            of_parts,
            of_parts | unchanged,
            *(unchanged | one for one in self._smallest(sizes, unchanged)),
        ):
            if fixed in tried:
                continue
            tried.add(fixed)
            for divide in self._divisions(fixed):
                yield from self._bindings_with(sizes, fixed, divide, parts)

    def _divisions(self, fixed: frozenset[Any]) -> Iterator[Callable[[Binding], bool]]:
        """What makes symbols of quotients in a binding, where there are some: of sizes
        of which homes take part, none, and two ways for what the graph divides.
        """
        assert self.symbols is not None
        straddled = {
            self.metas[node].shape[s.dim].node.expr: s.divisor
            for node, s in self.straddles.items()
            if s.divisor > 1 and isinstance(self.metas[node].shape[s.dim], torch.SymInt)
        }
        varying = self.symbols.all() - fixed
        exactly = [(s, d) for s, d in straddled.items() if s in varying]
        if exactly:
            yield lambda binding: all(binding.divide_exactly(*one) for one in exactly)
        yield lambda binding: True
        metas = self.metas.values()
        yield lambda binding: binding.divide(metas, is_strict=False)
        yield lambda binding: binding.divide(metas, is_strict=True)

    def _bindings_with(
        self,
        sizes: tuple[int, ...],
        fixed: frozenset[Any],
        divide: Callable[[Binding], bool],
        parts: list[tuple[Any, Any, Any]],
    ) -> Iterator[tuple[Binding, bool]]:
        """The same with symbols that are ``fixed``, and others that are divided."""
        assert self.symbols is not None
        apart, equal = (
            self.symbols.bind(sizes, self.classes, is_merged, fixed)
            for is_merged in (False, True)
        )
        for binding, is_merged in self._choices(apart, equal):
            if not divide(binding):
                return
            for padding in paddings_in(self.nodes, self.metas):
                binding.keep_sign(padding)
            binding.keep_batches(self.metas.values())
            binding.narrow(self.metas.values(), parts, self.symbols.guards())
            # Quotients are symbols, too.
            if self.is_merged or not is_merged or equal.has_fewer_symbols(apart):
                yield binding, is_merged

    def _choices(
        self, apart: Binding, equal: Binding
    ) -> Iterator[tuple[Binding, bool]]:
        """Of two bindings those that matter, and whether each is the merged one."""
        if not apart.symbols:
            return
        if not self.is_merged:
            yield apart, False
        if self.is_merged or equal.has_fewer_symbols(apart):
            yield equal, True

    def _find_straddles(self, inputs: list[Any]) -> None:
        """Which inputs walk several dimensions of homes, and which of these vary."""
        self.straddles.clear()
        for node, tensor in zip(self.inputs, inputs, strict=True):
            if is_part(tensor):
                found = straddle_of(tensor, self.homes.get(node))
                self.homes[node] = tuple(_C.tensor_info(tensor)[2])
                if found is not None:
                    self.straddles[node] = found

    def _smallest(
        self, sizes: tuple[int, ...], unchanged: frozenset[Any]
    ) -> Iterator[frozenset[Any]]:
        """The symbols of each size that varies, the smallest first, where there are
        few: it may be a batch's, whose product with another size no program has.
        """
        assert self.symbols is not None
        varying = self.symbols.by_size(sizes, self.symbols.all() - unchanged)
        if 1 < len(varying) <= _MOST_FIXED_ALONE:
            yield from varying

    def _stepped_bindings(
        self, sizes: tuple[int, ...]
    ) -> Iterator[tuple[Binding, bool]]:
        """The same for SuperDSC, where each symbol is the size of an argument."""
        assert self.symbols is not None
        symbols = self.symbols
        numbers = symbols.all() - symbols.sizes_in(
            [self.metas[node] for node in self.inputs]
        )
        apart = symbols.bind(sizes, self.classes, False, numbers)
        equal = symbols.bind(sizes, self.classes, True, numbers)
        for binding, is_merged in self._choices(apart, equal):
            binding.narrow(self.metas.values(), ())
            yield binding, is_merged

    def _make_grown_program(
        self, inputs: list[Any], binding: Binding, sizes: tuple[int, ...]
    ) -> Any:
        """The program, one that grows inputs in place if there is one."""
        kind = InputKind.of(inputs, [0] * len(inputs))
        growths = self._growths_of_call(inputs, kind, binding, sizes)
        try:
            return self._make_program(inputs, kind, binding, sizes, growths)
        except _C.SpyreError as error:
            if not growths.growing:
                raise
            program = self._make_program(inputs, kind, binding, sizes, _Growths())
            _log.info("%s: inputs do not grow in place, because %s", self.name, error)
        # The others leave what has grown to a program that there is not.
        self.grows = False
        self.programs.clear()
        return program

    def _make_program(
        self,
        inputs: list[Any],
        kind: InputKind,
        binding: Binding,
        actual_sizes: tuple[int, ...],
        growths: _Growths,
    ) -> Any:
        growing = growths.growing
        rooms = growth.rooms_of(
            inputs,
            kind,
            [self.metas[node] for node in self.inputs],
            growing,
            growths.row_by_row,
            self.metas,
            binding,
        )
        importer = SizedImporter(binding)
        specs = self._add_inputs(importer, inputs, kind, actual_sizes, growths, rooms)
        self._import_nodes(
            importer,
            {g.node: (g, importer.argument(number)) for number, g in growing.items()},
        )
        results, graph, kept = self._load_or_compile(importer)
        # What grows has room for all sizes, and so one program.
        grows = growing or growths.fresh or rooms
        if not grows and graph.sizes_apart and binding.keep_apart(*graph.sizes_apart):
            return self._make_program(inputs, kind, binding, actual_sizes, growths)
        self._report(graph, kept)
        remember(CompiledPart(self.name, graph, kind.first, results, dump=kept))
        return _C.SizedProgram(
            graph,
            specs,
            results,
            growing=[(number, g.dim) for number, g in growing.items()],
            grown=[
                (results[self.outputs.index(g.output)].root, g.dim)
                for g, _ in growths.fresh
            ],
            fresh=[
                (number, g.dim) for g, number in growths.fresh if number is not None
            ],
            roomy=[number for number in rooms if number not in growing],
        )

    def _add_inputs(
        self,
        importer: SizedImporter,
        inputs: list[Any],
        kind: InputKind,
        actual_sizes: tuple[int, ...],
        growths: _Growths,
        rooms: Mapping[int, Any],
    ) -> list[tuple[Any, ...]]:
        """Adds the inputs to the importer; returns how _C.SizedProgram expects them."""
        growing, row_by_row = growths.growing, growths.row_by_row
        sizes = importer.binding.of(actual_sizes)
        assert sizes is not None
        arguments = [
            importer.add_storage(
                number,
                self._argument_name(number, first),
                self._row_by_row_spec(importer, growing[number], row_by_row[number])
                if number in row_by_row
                else self._storage_spec(
                    importer, kind, number, sizes, rooms.get(number)
                ),
            )
            for number, first in enumerate(kind.first)
        ]
        moves: dict[int, int] = {}
        if self._may_move():
            offsets = [
                importer.spec_of(self.metas[node]).offset for node in self.inputs
            ]
            moves = moves_of(inputs, kind.owner, offsets)
        for number in {*growing, *rooms}:
            moves.pop(number, None)
        specs = []
        for node, actual, owner in zip(
            self.inputs, kind.specs, kind.owner, strict=True
        ):
            moved = moves.get(owner)
            spec = self._input_spec(importer, node, actual, sizes, moved)
            specs.append(
                (owner, spec.sizes, spec.strides, spec.offset, moved is not None)
            )
            if owner in growing:
                continue
            importer.add_input(node, arguments[owner], spec, self.metas[node])
            if host_numbers.is_host_number(self.metas[node]):
                importer.numbers.add(node)
        return specs

    def _growths_of_call(
        self,
        inputs: list[Any],
        kind: InputKind,
        binding: Binding,
        actual_sizes: tuple[int, ...],
    ) -> _Growths:
        """What of a call's inputs grows in a program, and which results may."""
        assert self.symbols is not None
        found = _Growths()
        if not self.grows or self.symbols.is_stepped:
            return found
        sizes = binding.of(actual_sizes)
        assert sizes is not None
        members = set(self.nodes)
        for g in growth.find(self.nodes, self.inputs, self.outputs, self.metas):
            result = self.metas[g.node]
            if not growth.may_grow_along(g.dim, result, binding):
                continue
            number = None
            if growth.uses_alone(g, members, self.outputs):
                number = growth.storage_of(g, self.inputs, kind)
            if number is None or not growth.is_grown(inputs[kind.first[number]], g.dim):
                found.fresh.append((g, number))
                continue
            spec, home = kind.specs[kind.first[number]], kind.storages[number]
            if spec.sizes != home.home_sizes or not growth.varies_along(
                g.dim, result, binding
            ):
                actual = [at(binding.size(size), sizes) for size in result.shape]
                rows = growth.rows_at(actual, result.dtype, g.dim)
                if rows is None:
                    continue
                found.row_by_row[number] = rows
            found.growing[number] = g
        return found

    def _row_by_row_spec(
        self, importer: SizedImporter, grown: growth.Growth, actual: StorageSpec
    ) -> StorageSpec:
        """The storage of a result that is as ``actual`` in a call."""
        spec = importer.spec_of(self.metas[grown.node])
        return StorageSpec(spec.dtype, spec.sizes, spec.strides, actual.layout)

    def _storage_spec(
        self,
        importer: SizedImporter,
        kind: InputKind,
        number: int,
        sizes: Sequence[int],
        room: growth.Room | None,
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
            and agree(traced.sizes, actual.sizes, sizes)
            and agree(traced.strides, actual.strides, sizes)
        ):
            layout, rows = spec.layout, None
            if room is not None:
                layout, rows = room.layout, (room.dim, room.rows)
            return StorageSpec(
                spec.dtype, traced.sizes, traced.strides, layout, room=rows
            )
        node = self.inputs[first]
        straddle = self.straddles.get(node)
        shape = self.metas[node].shape
        lying = spec.home_sizes, spec.home_strides, actual.sizes, actual.strides
        try:
            home = home_as_traced(*lying, shape, straddle)
            home = tuple(tuple(importer.number_of(n) for n in part) for part in home)
        except _C.UnsupportedOp:
            # What divides is no number in this program.
            home = home_as_traced(*lying, traced.sizes)
        return StorageSpec(spec.dtype, *home, spec.layout)

    def _input_spec(
        self,
        importer: SizedImporter,
        node: Node,
        actual: TensorSpec,
        sizes: Sequence[int],
        moved: int | None,
    ) -> TensorSpec:
        """How an input lies at all sizes, if it lies as it was traced, or, if it may
        be ``moved``, elsewhere.
        """
        traced = importer.spec_of(self.metas[node])
        if moved is not None:
            traced = traced._replace(offset=actual.offset - moved)
        if not (
            agree(traced.sizes, actual.sizes, sizes)
            and agree(traced.strides, actual.strides, sizes)
            and at(traced.offset, sizes) == actual.offset - (moved or 0)
        ):
            raise _C.UnsupportedOp(
                f"{node.name} lies on its storage otherwise than when it was traced: "
                f"{traced} is {actual}"
            )
        return traced


def can_be_sized(nodes: Sequence[Node]) -> bool:
    """Whether a graph asks for nothing that only programs of one size have."""
    return dump.decisions_dir() is None and not hints.are_given(nodes)
