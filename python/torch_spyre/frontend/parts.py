# SPDX-License-Identifier: Apache-2.0
"""The steps of a compiled FX graph: parts that are programs, and operators between.

A part is imported and compiled when it first meets inputs of a kind (sizes, strides,
offsets, aliasing, layouts of their storages) and kept. A row of the ATen table may
refuse particular operands: the part is cut in two there, for all kinds. A part that the
compiler refuses is halved until only the operators that it refuses are left. Those run
eagerly.
"""

from __future__ import annotations

import functools
import logging
import operator
import threading
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.device.devices import device
from torch_spyre.frontend import (
    cache,
    dump,
    growth,
    hints,
    host_numbers,
    listing,
    refusals,
    trace,
)
from torch_spyre.frontend.eager_steps import EagerStep, tensors_in, user_line
from torch_spyre.frontend.importer import (
    Constant,
    Importer,
    InputKind,
    RefusedNode,
    is_view,
)
from torch_spyre.frontend.refused_numbers import check_node

#: Held while a plan is made or a part is compiled.
compiling = threading.RLock()

_log = logging.getLogger("spyre.inductor")
_lowering_log = logging.getLogger("spyre.inductor.lowering")


def is_for_superdsc(options: Mapping[str, Any]) -> bool:
    """Whether programs are what SuperDSC can express."""
    return bool(options.get("superdsc_compatible") or options.get("through_superdsc"))


def remember(part: CompiledPart) -> None:
    """Adds a part to those that compiled_parts() lists."""
    cache.parts.append(part)


def compiled_parts() -> list[CompiledPart]:
    """Every part that this process has compiled, or loaded from disk, in order.

    Those of functions that are gone, too, until ``clear_cache()``: callers count them.
    """
    return list(cache.parts)


@dataclass
class CompiledPart:
    """A compiled part for one kind of inputs."""

    name: str
    graph: Any  # _C.CompiledGraph
    #: Which input (index) provides each program argument's storage.
    arguments: list[int]
    #: How each result is made: an _C.OutputInfo.
    results: list[Any]
    dump: dump.PartDump | None = None
    #: Outputs that the next call may grow, and the dimensions.
    grown: list[tuple[int, int]] = field(default_factory=list)
    #: What calls it, once there was a call that need not look at more.
    program: Any = None  # _C.SizedProgram

    def called_with(self, kind: InputKind, is_moved: bool) -> Any:
        """What calls it with such inputs, and says if others are no such ones."""
        if self.program is None:
            inputs = [
                (owner, spec.sizes, spec.strides, spec.offset, is_moved)
                for owner, spec in zip(kind.owner, kind.specs, strict=True)
            ]
            self.program = _C.SizedProgram(
                self.graph,
                inputs,
                self.results,
                growing=[],
                grown=self.grown,
                fresh=[],
                roomy=[],
            )
        return self.program

    def run(
        self,
        inputs: Sequence[torch.Tensor],
        moves: Sequence[tuple[int, int]],
        sources: Mapping[int, torch.Tensor] = {},
    ) -> list[torch.Tensor]:
        """Runs the program; returns its results as tensors.

        ``moves`` says per input how far it was compiled from where it lies, as
        ``_C.shift_views()`` does; ``sources`` what inputs have grown from.
        """
        outputs = [
            _C.empty_with_layout(sizes, strides, dtype, layout, device=inputs[0].device)
            if inputs
            else _C.empty_with_layout(sizes, strides, dtype, layout)
            for dtype, sizes, strides, layout in self.graph.outputs
        ]
        storages = [inputs[i] for i in self.arguments]
        if self.dump is not None:
            self.dump.save_inputs(
                self.graph.argument_names, storages, self.graph.outputs
            )
        shifts = [moves[i] for i in self.arguments]
        grown = [
            (number, sources[i])
            for number, i in enumerate(self.arguments)
            if i in sources
        ]
        self.graph.run(storages, outputs, [d for _, d in shifts], grown=grown)
        if self.dump is not None:
            self.dump.save_report(self.report())
        for number, dim in self.grown:
            _C.let_grow(outputs[number], dim)
        results = []
        for info in self.results:
            if info.root >= 0:
                root, offset = outputs[info.root], info.offset
            else:
                root = storages[-1 - info.root]
                offset = info.offset + shifts[-1 - info.root][0]
            spec = (tuple(info.sizes), tuple(info.strides), offset)
            if spec == (tuple(root.shape), root.stride(), root.storage_offset()):
                results.append(root)
            else:
                results.append(root.as_strided(*spec))
        return results

    def stays_in_storages(self, moves: Sequence[tuple[int, int]]) -> bool:
        """Whether the program, moved so, accesses nothing outside its storages."""
        return self.graph.stays_in_storages([moves[i][0] for i in self.arguments])

    def report(self) -> list[dict[str, Any]]:
        """What the device model predicts of each kernel, in order, as it last ran.

        Returns:
            name: of the kernel.
            location: source line of the call that it comes from.
            num_cores: cores that it runs on.
            predicted_seconds: how long it takes; the launch of a program is extra.
            interval_seconds: between which 8 of 10 measured times of its kind lie.
            device_bytes_read: from device memory; what several cores share counts once.
            device_bytes_written: to device memory.
            device_bytes_demanded: read from device memory, counted for every core.
            lx_bytes_read: of buffers in LX, over all cores.
            lx_bytes_written: of buffers in LX, over all cores.
            flops: `sfu_element_ops` and twice `pt_macs`.
            sfu_element_ops: operations on elements in the vector units, over all cores.
            pt_macs: multiply-accumulates of the matrix units, over all cores.
            bottleneck: what most of its time goes to, as for the profiler.

        """
        return self.graph.report()


@dataclass
class CompiledStep:
    """Consecutive nodes that run as one program."""

    nodes: list[Node]
    metas: dict[Node, Any]
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    name: str = "graph"
    #: Dynamo's number of the frame that it belongs to, for TORCH_TRACE.
    compile_id: Any = None
    parts: dict[tuple[bool, InputKind], CompiledPart | _Refused] = field(
        default_factory=dict
    )
    #: In place of this step, once a row has refused one of its nodes.
    cut: _Refused | None = None
    #: What called the program of the last call.
    program: Any = None  # _C.SizedProgram
    #: Whether inputs that have grown are grown in place.
    grows: bool = True
    #: Parts that grow inputs, as ``parts``, and which inputs they grow.
    grown_parts: dict[tuple[bool, InputKind, frozenset[int]], CompiledPart] = field(
        default_factory=dict
    )
    #: The import of its nodes for a key of ``parts``, if a longer part began with it.
    begun: tuple[tuple[bool, InputKind], Importer] | None = None

    def connect(self) -> None:
        """Finds what the nodes take from others, and others from them."""
        inside = set(self.nodes)
        inputs: dict[Node, None] = {}
        for node in self.nodes:
            for source in node.all_input_nodes:
                if source not in inside and isinstance(
                    self.metas[source], torch.Tensor
                ):
                    inputs[source] = None
            if any(user not in inside for user in node.users):
                self.outputs.append(node)
        self.inputs = list(inputs)

    @functools.cached_property
    def _card(self) -> int | None:
        """The card that its values are on."""
        cards = (card_of(self.metas[node]) for node in self.nodes)
        return next((card for card in cards if card is not None), None)

    def run(self, env: dict[Node, Any]) -> None:
        """Runs on the values of ``env`` and adds the results to it."""
        if self.cut is not None:
            return self.cut.run(env)
        values = [env[node] for node in self.inputs]
        if self._card is None or any(map(host_numbers.is_spyre, values)):
            return self._run(env, values)
        # No input says which card it is.
        with device(self._card):
            self._run(env, values)

    def _run(self, env: dict[Node, Any], values: list[torch.Tensor]) -> None:
        inputs = host_numbers.on_device(values)
        is_moved = self._may_move()
        # With a dump, or names of dimensions, there is more to look at.
        is_plain = is_moved and not self._growths and not hints.are_named()
        if is_plain and self.program is not None:
            results = self.program.run(inputs, ())
            if results is not None:
                env.update(zip(self.outputs, results, strict=True))
                return
        if self.grows and not is_for_superdsc(self.options):
            results = self._run_grown(inputs)
            if results is not None:
                env.update(zip(self.outputs, results, strict=True))
                return
        stay = [(0, 0)] * len(inputs)
        moves = _C.shift_views(inputs) if is_moved else stay
        kind, part = self._find_part(inputs, moves, is_moved)
        if isinstance(part, CompiledPart) and not part.stays_in_storages(moves):
            moves = stay
            kind, part = self._find_part(inputs, moves, is_moved)
        if isinstance(part, _Refused):
            return part.run(env)
        env.update(zip(self.outputs, part.run(inputs, moves), strict=True))
        if is_plain:
            self.program = part.called_with(kind, is_moved)

    def _may_move(self) -> bool:
        """Whether views of one storage at several places share programs.

        A dump runs on the storages that it keeps; what SuperDSC can say may copy whole
        storages.
        """
        return dump.dump_dir() is None and not is_for_superdsc(self.options)

    @functools.cached_property
    def _growths(self) -> list[tuple[int, growth.Growth]]:
        """Concatenations of inputs that may have grown, and the inputs' numbers."""
        if dump.decisions_dir() is not None or hints.are_given(self.nodes):
            return []
        members = set(self.nodes)
        return [
            (self.inputs.index(g.node.args[0][0]), g)
            for g in growth.find(self.nodes, self.inputs, self.outputs, self.metas)
            if growth.uses_alone(g, members, self.outputs)
        ]

    def _run_grown(self, inputs: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """The results, if inputs have grown that can be grown in place."""
        growing = {i: g for i, g in self._growths if growth.is_grown(inputs[i], g.dim)}
        if not growing:
            return None
        kind = InputKind.of(inputs, [0] * len(inputs))
        growing = {
            i: g
            for i, g in growing.items()
            if growth.storage_of(g, self.inputs, kind) is not None
        }
        grown, sources = list(inputs), {}
        for i, g in growing.items():
            longer = _C.grow_rows(inputs[i], g.dim, self.metas[g.node].shape[g.dim])
            if longer is not None:
                grown[i], sources[i] = longer, inputs[i]
        if not sources:
            return None
        growing = {i: growing[i] for i in sources}
        is_moved = self._may_move()
        moves = _C.shift_views(grown) if is_moved else [(0, 0)] * len(grown)
        part = self._find_grown_part(grown, moves, is_moved, growing)
        if part is not None and not part.stays_in_storages(moves):
            moves = [(0, 0)] * len(grown)
            part = self._find_grown_part(grown, moves, is_moved, growing)
        return None if part is None else part.run(grown, moves, sources)

    def _find_grown_part(
        self,
        inputs: Sequence[torch.Tensor],
        moves: Sequence[tuple[int, int]],
        is_moved: bool,
        growing: Mapping[int, growth.Growth],
    ) -> CompiledPart | None:
        """The part for such inputs; None if there can be none."""
        kind = InputKind.of(inputs, [shift for shift, _ in moves])
        key = (is_moved, kind, frozenset(growing))
        part = self.grown_parts.get(key)
        if part is None:
            with compiling:
                part = self.grown_parts.get(key)
                if part is None and self.grows:
                    try:
                        part = self._compile(self._import_grown(kind, growing), kind)
                    except _C.SpyreError as error:
                        self.grows = False
                        _log.info(
                            "%s: inputs do not grow in place, because %s",
                            self.name,
                            error,
                        )
                    else:
                        self.grown_parts[key] = part
        return part

    def _find_part(
        self,
        inputs: Sequence[torch.Tensor],
        moves: Sequence[tuple[int, int]],
        is_moved: bool,
    ) -> tuple[InputKind, CompiledPart | _Refused]:
        """The part for inputs moved so, compiled if there is none."""
        kind = InputKind.of(inputs, [shift for shift, _ in moves])
        key = (is_moved, kind)
        part = self.parts.get(key)
        if part is None:
            with compiling:
                part = self.parts.get(key)
                if part is None:
                    begun, self.begun = self.begun, None
                    importer = begun[1] if begun and begun[0] == key else None
                    part = self._compile_or_split(key, importer)
                    self.parts[key] = part
        return kind, part

    def _compile_or_split(
        self, key: tuple[bool, InputKind], importer: Importer | None
    ) -> CompiledPart | _Refused:
        """Compiles what is imported, if anything is, and what is not yet."""
        kind = key[1]
        try:
            hints.check_hints(self.nodes, self.options)
            if importer is None:
                importer = self._start_import(kind)
            for node in self.nodes:
                if node not in importer.values:
                    self._import(importer, node)
            return self._compile(importer, kind)
        except RefusedNode as error:
            assert importer is not None
            _lowering_log.info("%s: %s", error.node.target, error)
            self.cut = self._cut_at(error.node, key, importer)
            return self.cut
        except _C.SpyreError as error:
            # What the user asked for in particular is done or an error.
            if hints.are_given(self.nodes):
                raise hints.RefusedHint(str(error)) from error
            if is_for_superdsc(self.options) or dump.decisions_dir() is not None:
                raise
            if self._exceeds_memory():
                raise
            return self._split(str(error))

    def _exceeds_memory(self) -> bool:
        """Whether a value is larger than a device, on which nothing can run it."""
        limit = _C.mem_get_info()[1]
        values = (m for n in self.nodes for m in tensors_in(self.metas[n]))
        return any(v.numel() * v.element_size() > limit for v in values)

    def _split(self, reason: str) -> _Refused:
        """The halves of a part that was refused, or its one operator."""
        units = _units(self.nodes)
        computing = [i for i, u in enumerate(units) if not is_view(u[0].target)]
        if len(computing) <= 1:
            for unit in units:
                if not is_view(unit[0].target):
                    _warn_of_refusal(unit[0], reason)
            return _Refused([EagerStep(n) for unit in units for n in unit])
        _log.info("%s is halved: %s", self.name, reason)
        cut = computing[len(computing) // 2]
        return _Refused([self._part_of(units[:cut], 0), self._part_of(units[cut:], 1)])

    def _cut_at(
        self, refused: Node, key: tuple[bool, InputKind], importer: Importer
    ) -> _Refused:
        """What is before a node that its row refuses, the node, and what follows.

        What is before is in ``importer`` already.
        """
        units = _units(self.nodes)
        position = next(i for i, unit in enumerate(units) if refused in unit)
        before, after = units[:position], units[position + 1 :]
        steps: list[Any] = [EagerStep(node) for node in units[position]]
        if before:
            head = self._part_of(before, 0)
            # Inputs are numbered as nodes first take them: these are the first ones.
            kind = key[1].of_first(len(head.inputs))
            importer.builder.drop_arguments(len(kind.storages))
            head.begun = ((key[0], kind), importer)
            steps.insert(0, head)
        if after:
            steps.append(self._part_of(after, 1))
        return _Refused(steps)

    def _part_of(self, units: Sequence[list[Node]], number: int) -> CompiledStep:
        nodes = [node for unit in units for node in unit]
        name = f"{self.name}_{number}"
        step = type(self)(
            nodes,
            self.metas,
            options=self.options,
            name=name,
            compile_id=self.compile_id,
        )
        step.connect()
        return step

    def _argument_name(self, number: int, first: int) -> str:
        """What a program calls a storage, by its number and its first input's."""
        return self.inputs[first].name

    def _start_import(self, kind: InputKind, growing: Container[int] = ()) -> Importer:
        """An importer that has the inputs, but for those that are ``growing``."""
        importer = Importer()
        values = [
            importer.add_storage(i, self._argument_name(i, first), kind.storages[i])
            for i, first in enumerate(kind.first)
        ]
        for number, node in enumerate(self.inputs):
            if number in growing:
                continue
            importer.add_input(
                node,
                values[kind.owner[number]],
                kind.specs[number],
                self.metas[node],
            )
            if host_numbers.is_host_number(self.metas[node]):
                importer.numbers.add(node)
        return importer

    def _import_grown(
        self, kind: InputKind, growing: Mapping[int, growth.Growth]
    ) -> Importer:
        """An importer of all nodes, where some inputs have grown already."""
        importer = self._start_import(kind, growing)
        self._import_nodes(
            importer,
            {
                g.node: (g, importer.argument(kind.owner[number]))
                for number, g in growing.items()
            },
        )
        return importer

    def _import_nodes(
        self,
        importer: Importer,
        growing: Mapping[Node, tuple[growth.Growth, int]],
    ) -> None:
        """Imports all nodes; those that are ``growing`` append to an argument."""
        for node in self.nodes:
            if node in growing:
                growth.add_to(importer, *growing[node], self.metas)
            else:
                self._import(importer, node)

    def _import(self, importer: Importer, node: Node) -> None:
        for source in node.all_input_nodes:
            if is_number(self.metas[source]):
                number = importer.number_of(self.metas[source])
                importer.values[source] = Constant(number)
        check_node(node, self.metas)
        importer.add_node(node, self.metas[node])

    def _load_or_compile(
        self, importer: Importer
    ) -> tuple[list[Any], Any, dump.PartDump | None]:
        """How each result is made, the program, and what of it is dumped."""
        results = importer.builder.set_outputs(
            [importer.values[n] for n in self.outputs]
        )
        kept = dump.begin(self.name, self.nodes)
        options = dict(self.options)
        if kept is not None:
            options["dump_dir"] = str(kept.folder)
        with cache.counted():
            graph = cache.load_or_compile(importer.builder, options)
        return list(results), graph, kept

    def _report(self, graph: Any, kept: dump.PartDump | None) -> None:
        """Tells logs, traces, listings and the dump of a program that will be used."""
        for text in graph.warnings:
            _log.warning("%s", text)
        hints.log_applied(self.nodes, self.options)
        trace.write_artifacts(self.name, graph, self.nodes, self.compile_id)
        listing.offer(self.name, graph)
        if kept is not None:
            kept.save_program(graph)

    def _compile(self, importer: Importer, kind: InputKind) -> CompiledPart:
        results, graph, kept = self._load_or_compile(importer)
        self._report(graph, kept)
        # Where sizes vary from the second call on, this is the first one.
        found = growth.find(self.nodes, self.inputs, self.outputs, self.metas)
        roots = [results[self.outputs.index(g.output)].root for g in found]
        grown = [
            (root, g.dim) for root, g in zip(roots, found, strict=True) if root >= 0
        ]
        part = CompiledPart(
            self.name, graph, kind.first, results, dump=kept, grown=grown
        )
        remember(part)
        return part


@dataclass
class _Refused:
    """What runs in place of a part that the compiler refused."""

    steps: list[Any]

    def run(self, env: dict[Node, Any]) -> None:
        for step in self.steps:
            step.run(env)


def _units(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes in order, each with those that take its results apart."""
    units: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.target is operator.getitem:
            units[node] = units.get(node.args[0], [])
            units[node].append(node)
        else:
            units[node] = [node]
    return [unit for node, unit in units.items() if unit[0] is node]


def _warn_of_refusal(node: Node, reason: str) -> None:
    """Says at the user's line that an operator has no program."""
    text = refusals.count(str(node.target), reason)
    file, line = user_line(node)
    warnings.warn_explicit(
        f"{node.target} runs by itself, because the compiler refuses it here: {text}",
        UserWarning,
        file,
        line,
    )


def is_device_tensor(meta: Any) -> bool:
    """Whether a node's fake value is on the device, or one of its results."""
    return any(host_numbers.is_spyre(m) for m in tensors_in(meta))


def card_of(meta: Any) -> int | None:
    """The card that a node's fake value is on; None for values of the host."""
    for tensor in tensors_in(meta):
        if host_numbers.is_spyre(tensor):
            return tensor.device.index
    return None


def is_number(meta: Any) -> bool:
    """Whether a node's value is a number of the host."""
    symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return isinstance(meta, (bool, int, float, *symbolic))
