# SPDX-License-Identifier: Apache-2.0
"""A compiled FX graph: which of its nodes are programs, and in which order all run."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from torch_spyre.frontend import host_dtypes, host_numbers
from torch_spyre.frontend.eager_steps import EagerStep
from torch_spyre.frontend.importer import TensorSpec, has_row, is_view
from torch_spyre.frontend.parts import (
    CompiledStep,
    card_of,
    compiling,
    is_device_tensor,
    is_for_superdsc,
    is_number,
)
from torch_spyre.frontend.size_classes import SizeClass
from torch_spyre.frontend.size_numbers import SizesStep
from torch_spyre.frontend.sized import SizedStep, can_be_sized
from torch_spyre.frontend.symbols import Symbols

aten = torch.ops.aten

_log = logging.getLogger("spyre.inductor")
_lowering_log = logging.getLogger("spyre.inductor.lowering")


class CompiledFunction:
    """A compiled FX graph; called with a list of inputs, as AOTAutograd does."""

    def __init__(self, gm: GraphModule, options: dict[str, Any], name: str) -> None:
        self.gm = gm
        self.options = options
        self.name = name
        self.compile_id = torch._guards.CompileContext.current_compile_id()
        self.nodes = list(gm.graph.nodes)
        self.placeholders = [n for n in self.nodes if n.op == "placeholder"]
        self.output = next(n for n in self.nodes if n.op == "output")
        self.is_symbolic = any(_has_symbols(n.meta.get("val")) for n in self.nodes)
        #: If there may be programs for many sizes.
        self.symbols: Symbols | None = None
        if self.is_symbolic and can_be_sized(self.nodes):
            symbols = Symbols(self.placeholders, is_for_superdsc(options))
            self.symbols = symbols if symbols.symbols else None
        self.plans: dict[tuple, list[Any]] = {}
        self.metas: dict[tuple, dict[Node, Any]] = {}

    def __call__(self, args: list[Any]) -> list[Any]:
        """Runs on the inputs of one call; empties the list, as boxed calls do."""
        actual = list(args)
        args.clear()
        with torch.no_grad():
            return self._run(actual)

    def _run(self, args: list[Any]) -> list[Any]:
        env: dict[Any, Any] = dict(zip(self.placeholders, args, strict=True))
        classes = None
        if self.symbols is not None:
            sizes = self.symbols.sizes_of(args)
            classes = self.symbols.classes_of(sizes)
            env[self.symbols] = sizes
        key = self._key(args) if classes is None else classes
        plan = self.plans.get(key)
        if plan is None:
            with compiling:
                plan = self.plans.get(key)
                if plan is None:
                    plan = self.plans[key] = (
                        self._make_plan(self._concrete_metas(args))
                        if classes is None
                        else self._make_sized_plan(classes)
                    )
        for step in plan:
            step.run(env)
        return list(torch.fx.map_arg(self.output.args[0], env.__getitem__))

    def _key(self, args: list[Any]) -> tuple:
        """What a plan for one size depends on."""
        if not self.is_symbolic:
            return ()
        return tuple(
            TensorSpec.of(a) if isinstance(a, torch.Tensor) else a for a in args
        )

    def _metas_of_call(self, env: dict[Any, Any]) -> dict[Node, Any]:
        """The fake values of the call that ``env`` has the arguments of."""
        args = [env[node] for node in self.placeholders]
        key = self._key(args)
        if key not in self.metas:
            self.metas[key] = self._concrete_metas(args)
        return self.metas[key]

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

    def _make_plan(self, metas: dict[Node, Any]) -> list[Any]:
        """Steps for inputs with these fake values."""
        return self._make_steps(
            metas, _SizesStep, lambda nodes: self._compiled_step(nodes, metas)
        )

    def _compiled_step(self, nodes: list[Node], metas: dict[Node, Any]) -> CompiledStep:
        return CompiledStep(
            nodes, metas, options=self.options, compile_id=self.compile_id
        )

    def _make_sized_plan(self, classes: tuple[SizeClass, ...]) -> list[Any]:
        """Steps for all sizes in the classes."""
        assert self.symbols is not None
        symbols = self.symbols
        metas = {n: n.meta.get("val") for n in self.nodes}
        in_programs = host_numbers.with_numbers_of_sizes(metas)

        def make_step(nodes: list[Node]) -> CompiledStep:
            return SizedStep(
                nodes,
                in_programs,
                options=self.options,
                compile_id=self.compile_id,
                symbols=symbols,
                classes=classes,
                concrete=self._metas_of_call,
            )

        return self._make_steps(
            metas, lambda nodes: SizesStep(symbols, classes, nodes), make_step
        )

    def _make_steps(
        self,
        metas: dict[Node, Any],
        make_sizes: Callable[[dict[Node, Any]], Any],
        make_step: Callable[[list[Node]], CompiledStep],
    ) -> list[Any]:
        candidates = self._find_candidates(metas)
        steps: list[Any] = []
        current: dict[Node, None] = {}

        def flush() -> None:
            if current:
                steps.append(make_step(list(current)))
                current.clear()

        card: int | None = None
        sizes = [n for n in self.nodes if self._is_size(n, metas)]
        if sizes:
            steps.append(make_sizes({n: metas[n] for n in sizes}))
        for node in self.nodes:
            if node.op in ("placeholder", "output") or node in sizes:
                continue
            if node in candidates:
                if (own := card_of(metas[node])) != card:
                    flush()
                    card = own
                current[node] = None
            else:
                step = self._other_step(node, metas)
                # What depends on nothing in the part it stands in comes before that.
                if not (
                    _has_no_effects(step, metas)
                    and current.keys().isdisjoint(node.all_input_nodes)
                ):
                    flush()
                steps.append(step)
        flush()
        compiled = [s for s in steps if isinstance(s, CompiledStep)]
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

    def _other_step(self, node: Node, metas: dict[Node, Any]) -> Any:
        """The step of a node that programs do not compute."""
        if node.op == "get_attr":
            return _AttributeStep(node, self.gm)
        if host_dtypes.runs_on_cpu(node, metas):
            return host_dtypes.CpuStep(node, metas[node])
        return EagerStep(node)

    @staticmethod
    def _is_size(node: Node, metas: dict[Node, Any]) -> bool:
        """Whether a node's value follows from the sizes a plan is made for."""
        return (
            node.op == "call_function"
            and is_number(metas[node])
            and (
                node.target in _SIZES
                or all(is_number(metas[i]) for i in node.all_input_nodes)
            )
        )

    def _find_candidates(self, metas: dict[Node, Any]) -> set[Node]:
        """The nodes that programs may compute; their rows may still refuse them."""
        candidates: set[Node] = set()
        cards = {node: card_of(metas[node]) for node in self.nodes}
        for node in self.nodes:
            if node.op != "call_function" or host_dtypes.runs_on_cpu(node, metas):
                continue
            if node.target is operator.getitem:
                is_candidate = node.args[0] in candidates
            else:
                is_candidate = is_device_tensor(metas[node]) and all(
                    not isinstance(metas[i], torch.Tensor)
                    or host_numbers.may_meet_device(metas[i])
                    for i in node.all_input_nodes
                )
                # A program runs on one card.
                is_candidate &= all(
                    cards[i] in (None, cards[node]) for i in node.all_input_nodes
                )
                if is_candidate and not has_row(node.target):
                    _lowering_log.info(
                        "%s: the compiler has no such operator", node.target
                    )
                    is_candidate = False
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


def _has_no_effects(step: Any, metas: dict[Node, Any]) -> bool:
    """Whether a step may run earlier, when what it takes is there."""
    return isinstance(
        step, (_AttributeStep, host_dtypes.CpuStep)
    ) or host_numbers.runs_on_host(step.node, metas)


def _has_symbols(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_symbols(v) for v in value)
    if isinstance(value, torch.Tensor):
        return value._has_symbolic_sizes_strides
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
