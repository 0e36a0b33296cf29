# SPDX-License-Identifier: Apache-2.0
"""The ``torch.compile`` backend ``spyre``.

Dynamo and AOTAutograd give an FX graph of ATen operators. It is cut into parts
whose operators have rows in the compiler's ATen table, and operators between them
that run eagerly (on the device's counted CPU fallback). Each part is imported and
compiled when it first meets inputs of a kind (sizes, strides, offsets, aliasing,
layouts of their storages) and kept. A row may refuse particular operands: the part
is cut in two there, for all kinds. A part that the compiler refuses is halved until
only the operators that it refuses are left. Those run eagerly too.
"""

from __future__ import annotations

import logging
import operator
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule, Node

from torch_spyre import _C, _cache, _dump, _hints, _numbers
from torch_spyre._aliases import view_updated_arguments
from torch_spyre._decompositions import decompositions
from torch_spyre._importer import (
    Constant,
    Importer,
    RefusedNode,
    StorageSpec,
    TensorSpec,
    has_row,
    is_view,
    location_of,
)

aten = torch.ops.aten

_log = logging.getLogger("torch_spyre.inductor")
_lowering_log = logging.getLogger("torch_spyre.inductor.lowering")
_lock = threading.RLock()
_programs: list[CompiledPart] = []
_refusals: Counter[tuple[str, str]] = Counter()


def refusals() -> dict[tuple[str, str], int]:
    """(operator, reason) -> times that a part of it alone got no program."""
    return dict(_refusals)


def compiled_parts() -> list[CompiledPart]:
    """Every part compiled or loaded in this process, in order."""
    return list(_programs)


@dataclass
class CompiledPart:
    """A compiled part for one kind of inputs."""

    name: str
    graph: Any  # _C.CompiledGraph
    #: Which input (index) provides each program argument's storage.
    arguments: list[int]
    #: How each result is made: an _C.OutputInfo.
    results: list[Any]
    dump: _dump.PartDump | None = None

    def run(
        self, inputs: Sequence[torch.Tensor], moves: Sequence[tuple[int, int]]
    ) -> list[torch.Tensor]:
        """Runs the program; returns its results as tensors.

        ``moves`` says per input how far it was compiled from where it lies, as
        ``_C.shift_views()`` does.
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
        self.graph.run(storages, outputs, [device for _, device in shifts])
        if self.dump is not None:
            self.dump.save_report(self.report())
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
        """Per kernel of the run: predicted seconds, bytes, bottleneck."""
        return self.graph.report()


def _input_key(
    inputs: Sequence[torch.Tensor], moves: Sequence[tuple[int, int]]
) -> tuple[tuple, list[StorageSpec], list[int]]:
    """Key of a kind of inputs, their distinct storages, and each input's one.

    Ends in a TensorSpec per input, moved as ``moves`` says.
    """
    groups: dict[int, int] = {}
    storages: list[StorageSpec] = []
    owner: list[int] = []
    specs = []
    for tensor, (shift, _) in zip(inputs, moves, strict=True):
        identity, _, home_sizes, home_strides, layout, dtype = _C.tensor_info(tensor)
        if identity not in groups:
            groups[identity] = len(storages)
            storages.append(
                StorageSpec(
                    dtype,
                    tuple(home_sizes),
                    tuple(home_strides),
                    layout,
                    _hints.names_of(identity),
                )
            )
        owner.append(groups[identity])
        specs.append(TensorSpec.of(tensor, shift))
    key = (tuple(storages), tuple(owner), tuple(specs))
    return key, storages, owner


@dataclass
class _CompiledStep:
    """Consecutive nodes that run as one program."""

    nodes: list[Node]
    metas: dict[Node, Any]
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    name: str = "graph"
    parts: dict[tuple, CompiledPart | _Refused] = field(default_factory=dict)
    #: In place of this step, once a row has refused one of its nodes.
    cut: _Refused | None = None

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

    def run(self, env: dict[Node, Any]) -> None:
        if self.cut is not None:
            return self.cut.run(env)
        inputs = _numbers.on_device([env[node] for node in self.inputs])
        # A dump runs on the storages that it keeps; what SuperDSC can say may
        # copy whole storages.
        is_moved = _dump.dump_dir() is None and not (
            self.options.get("superdsc_compatible")
            or self.options.get("through_superdsc")
        )
        stay = [(0, 0)] * len(inputs)
        moves = _C.shift_views(inputs) if is_moved else stay
        part = self._find_part(inputs, moves, is_moved)
        if isinstance(part, CompiledPart) and not part.stays_in_storages(moves):
            moves = stay
            part = self._find_part(inputs, moves, is_moved)
        if isinstance(part, _Refused):
            return part.run(env)
        env.update(zip(self.outputs, part.run(inputs, moves), strict=True))

    def _find_part(
        self,
        inputs: Sequence[torch.Tensor],
        moves: Sequence[tuple[int, int]],
        is_moved: bool,
    ) -> CompiledPart | _Refused:
        """The part for inputs moved so, compiled if there is none."""
        kind, storages, owner = _input_key(inputs, moves)
        key = (is_moved, *kind)
        part = self.parts.get(key)
        if part is None:
            with _lock:
                part = self.parts.get(key)
                if part is None:
                    part = self._compile_or_split(key[-1], storages, owner)
                    self.parts[key] = part
        return part

    def _compile_or_split(
        self,
        specs: Sequence[TensorSpec],
        storages: list[StorageSpec],
        owner: list[int],
    ) -> CompiledPart | _Refused:
        try:
            return self._compile(specs, storages, owner)
        except RefusedNode as error:
            _lowering_log.info("%s: %s", error.node.target, error)
            self.cut = self._cut_at(error.node)
            return self.cut
        except _C.SpyreError as error:
            # What the user asked for in particular is done or an error.
            if (
                self.options.get("superdsc_compatible")
                or self.options.get("through_superdsc")
                or _dump.decisions_dir() is not None
                or any(_hints.HintReader().read(node) for node in self.nodes)
            ):
                raise
            if self._exceeds_memory():
                raise
            return self._split(str(error))

    def _exceeds_memory(self) -> bool:
        """Whether a value is larger than a device, on which nothing can run it."""
        limit = _C.mem_get_info()[1]
        values = (m for n in self.nodes for m in _tensors(self.metas[n]))
        return any(v.numel() * v.element_size() > limit for v in values)

    def _split(self, reason: str) -> _Refused:
        """The halves of a part that was refused, or its one operator."""
        units = _units(self.nodes)
        computing = [i for i, u in enumerate(units) if not is_view(u[0].target)]
        if len(computing) <= 1:
            for unit in units:
                if not is_view(unit[0].target):
                    _warn_of_refusal(unit[0], reason)
            return _Refused([_EagerStep(n) for unit in units for n in unit])
        _log.info("%s is halved: %s", self.name, reason)
        cut = computing[len(computing) // 2]
        return _Refused([self._part_of(units[:cut], 0), self._part_of(units[cut:], 1)])

    def _cut_at(self, refused: Node) -> _Refused:
        """What is before a node that its row refuses, the node, and what follows."""
        units = _units(self.nodes)
        position = next(i for i, unit in enumerate(units) if refused in unit)
        before, after = units[:position], units[position + 1 :]
        steps: list[Any] = [_EagerStep(node) for node in units[position]]
        if before:
            steps.insert(0, self._part_of(before, 0))
        if after:
            steps.append(self._part_of(after, 1))
        return _Refused(steps)

    def _part_of(self, units: Sequence[list[Node]], number: int) -> _CompiledStep:
        nodes = [node for unit in units for node in unit]
        name = f"{self.name}_{number}"
        step = _CompiledStep(nodes, self.metas, options=self.options, name=name)
        step.connect()
        return step

    def _compile(
        self,
        specs: Sequence[TensorSpec],
        storages: list[StorageSpec],
        owner: list[int],
    ) -> CompiledPart:
        importer = Importer()
        # The first input of each storage.
        first = {i: number for number, i in reversed(list(enumerate(owner)))}
        arguments = [first[i] for i in range(len(storages))]
        values = [
            importer.add_storage(i, self.inputs[arguments[i]].name, spec)
            for i, spec in enumerate(storages)
        ]
        for node, spec, index in zip(self.inputs, specs, owner, strict=True):
            importer.add_input(node, values[index], spec, self.metas[node])
            if _numbers.is_host_number(self.metas[node]):
                importer.numbers.add(node)
        for node in self.nodes:
            for source in node.all_input_nodes:
                if _is_number(self.metas[source]):
                    importer.values[source] = Constant(self.metas[source])
            importer.add_node(node, self.metas[node])
        results = importer.builder.set_outputs(
            [importer.values[n] for n in self.outputs]
        )
        dump = _dump.begin(self.name, self.nodes)
        options = dict(self.options)
        if dump is not None:
            options["dump_dir"] = str(dump.folder)
        graph = _cache.load_or_compile(importer.builder, options)
        if dump is not None:
            dump.save_program(graph)
        part = CompiledPart(self.name, graph, arguments, list(results), dump=dump)
        _programs.append(part)
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
    first = reason.split("\n")
    # "compiling the graph failed:" is followed by what failed.
    text = first[1] if first[0].endswith(":") and len(first) > 1 else first[0]
    _refusals[str(node.target), text] += 1
    file, line = _user_line(node)
    warnings.warn_explicit(
        f"{node.target} has no spyre program here and runs by itself: {text}",
        UserWarning,
        file,
        line,
    )


def _user_line(node: Node) -> tuple[str, int]:
    """File and line of the user's code that a node comes from."""
    for file, line, _ in location_of(node):
        return file, line
    return "<graph>", 0


@dataclass
class _EagerStep:
    """One node that runs as the operator it is."""

    node: Node

    def run(self, env: dict[Node, Any]) -> None:
        node = self.node
        args = torch.fx.map_arg(node.args, env.__getitem__)
        kwargs = torch.fx.map_arg(node.kwargs, env.__getitem__)
        _C.set_source_line(*_user_line(node))
        try:
            env[node] = node.target(*args, **kwargs)
        finally:
            _C.set_source_line("", 0)


def _tensors(meta: Any) -> Iterator[torch.Tensor]:
    """The tensors of a node's fake value."""
    for value in meta if isinstance(meta, (tuple, list)) else [meta]:
        if isinstance(value, torch.Tensor):
            yield value


def _is_device_tensor(meta: Any) -> bool:
    return any(m.device.type == "spyre" for m in _tensors(meta))


class CompiledFunction:
    """A compiled FX graph; called with a list of inputs, as AOTAutograd does."""

    def __init__(self, gm: GraphModule, options: dict[str, Any], name: str) -> None:
        self.gm = gm
        self.options = options
        self.name = name
        self.nodes = list(gm.graph.nodes)
        self.placeholders = [n for n in self.nodes if n.op == "placeholder"]
        self.output = next(n for n in self.nodes if n.op == "output")
        self.is_symbolic = any(_has_symbols(n.meta.get("val")) for n in self.nodes)
        self.plans: dict[tuple, list[Any]] = {}

    def __call__(self, args: list[Any]) -> list[Any]:
        """Runs on the inputs of one call; empties the list, as boxed calls do."""
        actual = list(args)
        args.clear()
        with torch.no_grad():
            return self._run(actual)

    def _run(self, args: list[Any]) -> list[Any]:
        key = ()
        if self.is_symbolic:
            key = tuple(
                TensorSpec.of(a) if isinstance(a, torch.Tensor) else a for a in args
            )
        plan = self.plans.get(key)
        if plan is None:
            with _lock:
                plan = self.plans.get(key)
                if plan is None:
                    plan = self.plans[key] = self._make_plan(args)
        env: dict[Node, Any] = dict(zip(self.placeholders, args, strict=True))
        for step in plan:
            step.run(env)
        return list(torch.fx.map_arg(self.output.args[0], env.__getitem__))

    def _concrete_metas(self, args: list[Any]) -> dict[Node, Any]:
        """The fake value of every node, with concrete sizes."""
        if not self.is_symbolic:
            return {n: n.meta.get("val") for n in self.nodes}
        from torch._subclasses.fake_tensor import FakeTensorMode

        mode = FakeTensorMode(allow_non_fake_inputs=True)
        metas: dict[Node, Any] = {}

        class Recorder(torch.fx.Interpreter):
            def run_node(self, n: Node) -> Any:
                metas[n] = super().run_node(n)
                return metas[n]

        with mode:
            fakes = [
                mode.from_tensor(a, static_shapes=True)
                if isinstance(a, torch.Tensor)
                else a
                for a in args
            ]
            Recorder(self.gm).run(*fakes)
        return metas

    def _make_plan(self, args: list[Any]) -> list[Any]:
        metas = self._concrete_metas(args)
        candidates = self._find_candidates(metas)
        steps: list[Any] = []
        current: dict[Node, None] = {}

        def flush() -> None:
            if current:
                steps.append(_CompiledStep(list(current), metas, options=self.options))
                current.clear()

        sizes = [n for n in self.nodes if self._is_size(n, metas)]
        if sizes:
            steps.append(_SizesStep({n: metas[n] for n in sizes}))
        for node in self.nodes:
            if node.op in ("placeholder", "output") or node in sizes:
                continue
            if node in candidates:
                current[node] = None
            else:
                # What the host computes by itself comes before the part it stands in.
                if not (
                    _numbers.runs_on_host(node, metas)
                    and current.keys().isdisjoint(node.all_input_nodes)
                ):
                    flush()
                steps.append(
                    _AttributeStep(node, self.gm)
                    if node.op == "get_attr"
                    else _EagerStep(node)
                )
        flush()
        compiled = [s for s in steps if isinstance(s, _CompiledStep)]
        for number, step in enumerate(compiled):
            step.name = self.name if len(compiled) == 1 else f"{self.name}_{number}"
            step.connect()
        _log.info(
            "%s: %d operators, %d programs, %d steps outside them",
            self.name,
            sum(n.op == "call_function" for n in self.nodes),
            len(compiled),
            len(steps) - len(compiled),
        )
        return steps

    @staticmethod
    def _is_size(node: Node, metas: dict[Node, Any]) -> bool:
        """Whether a node's value follows from the sizes a plan is made for."""
        return (
            node.op == "call_function"
            and _is_number(metas[node])
            and (
                node.target in _SIZES
                or all(_is_number(metas[i]) for i in node.all_input_nodes)
            )
        )

    def _find_candidates(self, metas: dict[Node, Any]) -> set[Node]:
        """The nodes that programs may compute; their rows may still refuse them."""
        candidates: set[Node] = set()
        for node in self.nodes:
            if node.op != "call_function":
                continue
            if node.target is operator.getitem:
                is_candidate = node.args[0] in candidates
            else:
                is_candidate = (
                    has_row(node.target)
                    and _is_device_tensor(metas[node])
                    and all(
                        not isinstance(metas[i], torch.Tensor)
                        or _numbers.may_meet_device(metas[i])
                        for i in node.all_input_nodes
                    )
                )
            if is_candidate:
                candidates.add(node)
        # A graph of nothing but views computes nothing.
        if all(is_view(n.target) for n in candidates):
            return set()
        return candidates


@dataclass
class _AttributeStep:
    """Reads an attribute (a lifted constant) of the graph module."""

    node: Node
    gm: GraphModule

    def run(self, env: dict[Node, Any]) -> None:
        value: Any = self.gm
        for part in self.node.target.split("."):
            value = getattr(value, part)
        env[self.node] = value


@dataclass
class _SizesStep:
    """Numbers computed from sizes, known when the plan is made."""

    values: dict[Node, Any]

    def run(self, env: dict[Node, Any]) -> None:
        env.update(self.values)


#: Operators that read a size of a tensor, not its values.
_SIZES = {
    aten.sym_size.int,
    aten.sym_stride.int,
    aten.sym_storage_offset.default,
    aten.sym_numel.default,
}


def _is_number(meta: Any) -> bool:
    return isinstance(meta, (bool, int, float))


def _has_symbols(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_symbols(v) for v in value)
    if isinstance(value, torch.Tensor):
        return any(
            isinstance(v, torch.SymInt)
            for v in (*value.shape, *value.stride(), value.storage_offset())
        )
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


_counter = 0


def _compiler(kind: str, options: dict[str, Any]) -> Callable:
    def compile_fx(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable:
        global _counter
        with _lock:
            number = _counter
            _counter += 1
        if kind != "backward":
            view_updated_arguments(gm)
        compiled = CompiledFunction(gm, options, f"{kind}{number}")

        # A plain function keeps the mark through Dynamo's wrapper around
        # backward compilers.
        def call(args: list[Any]) -> list[Any]:
            return compiled(args)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    return compile_fx


def spyre(gm: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable:
    """``torch.compile(f, backend="spyre", options={...})``.

    Options are those of the compiler: ``cores`` (1 to 32), ``lx_planning``,
    ``superdsc_compatible`` (plan only what SuperDSC can say) and
    ``through_superdsc`` (execute what reading the SuperDSC bundles back gives),
    which ``SPYRE_EXECUTE=superdsc`` sets.
    """
    if "options" in options:
        options = options.pop("options") or {}
    execute = os.environ.get("SPYRE_EXECUTE", "ktir")
    if execute not in ("ktir", "superdsc"):
        raise ValueError(f"SPYRE_EXECUTE must be ktir or superdsc, but is {execute!r}")
    if execute == "superdsc":
        options = {**options, "through_superdsc": True}
    return aot_autograd(
        fw_compiler=_compiler("forward", options),
        bw_compiler=_compiler("backward", options),
        inference_compiler=_compiler("graph", options),
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(gm, example_inputs)


__all__ = [
    "CompiledFunction",
    "CompiledPart",
    "compiled_parts",
    "refusals",
    "spyre",
]
