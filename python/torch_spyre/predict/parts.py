# SPDX-License-Identifier: Apache-2.0
"""The programs of a traced step: compiled as ``torch.compile`` would, bound to no data.

A program is cut at the borders of layers, so that equal layers are equal programs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import torch
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.device.patches import layout_of_linear_weight
from torch_spyre.frontend import host_numbers
from torch_spyre.frontend.eager_steps import EagerStep
from torch_spyre.frontend.graph import CompiledFunction
from torch_spyre.frontend.host_dtypes import is_lacking
from torch_spyre.frontend.importer import (
    InputKind,
    StorageSpec,
    TensorSpec,
    is_view,
)
from torch_spyre.frontend.parts import CompiledPart, CompiledStep, compiling
from torch_spyre.predict.cards import AllReduce, all_reduce_of, waits_for_sum
from torch_spyre.predict.trace import TracedStep

WHOLE = "model"
BEFORE, BETWEEN, AFTER = "before layers", "between layers", "after layers"


@dataclass
class Call:
    """A program as one layer calls it, or a sum over cards."""

    layer: str
    graph: Any  # _C.CompiledGraph or AllReduce


@dataclass
class StepPrograms:
    """What a step runs, in order."""

    calls: list[Call] = field(default_factory=list)
    #: (layer, operator) of what no program computes.
    on_host: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Bound:
    """A tensor on a storage, neither of which exists."""

    storage: object
    home: StorageSpec
    spec: TensorSpec

    @staticmethod
    def of_linear_weight(tensor: torch.Tensor) -> _Bound:
        """A weight as ``nn.Module.to`` stores it."""
        bound = _Bound.of(tensor)
        layout = layout_of_linear_weight(bound.home.home_sizes, tensor.dtype)
        return replace(bound, home=replace(bound.home, layout=layout))

    @staticmethod
    def if_on_card(tensor: torch.Tensor) -> _Bound | None:
        """None for float64 and complex values of a graph, which stay on the host."""
        return None if is_lacking(tensor) else _Bound.of(tensor)

    @staticmethod
    def of(tensor: torch.Tensor) -> _Bound:
        """A tensor that fills a storage of its own in the order of its strides."""
        if tensor.device.type == "cpu" and tensor.is_floating_point():
            # Programs take numbers of the host so.
            tensor = torch.empty((), dtype=torch.float32, device="meta")
        strides = TensorSpec.of(tensor).strides
        order = sorted(range(tensor.dim()), key=lambda d: -strides[d])
        if (
            any(tensor.stride(d) == 0 and tensor.shape[d] != 1 for d in order)
            or not torch.empty_strided(
                [tensor.shape[d] for d in order],
                [tensor.stride(d) for d in order],
                device="meta",
            ).is_contiguous()
        ):
            tensor = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
            order = list(range(tensor.dim()))
        sizes = tuple(int(tensor.shape[d]) for d in order)
        home = StorageSpec(
            tensor.dtype,
            sizes,
            tuple(torch.empty(sizes, device="meta").stride()),
            _C.SpyreTensorLayout(list(sizes), tensor.dtype),
        )
        spec = TensorSpec.of(tensor, int(tensor.storage_offset()))
        return _Bound(object(), home, spec)


class _Step(CompiledStep):
    """A step whose program does not depend on which layer's it is."""

    def _argument_name(self, number: int, first: int) -> str:
        return f"x{number}"


class _Compiler:
    """Walks a graph in order and compiles what programs compute."""

    def __init__(self, traced: TracedStep, options: dict[str, Any]) -> None:
        self.layer_of = traced.layer_of
        self.linear_weights = traced.linear_weights
        self.order = _order(traced)
        self.function = CompiledFunction(traced.gm, options, "predicted")
        self.metas = {n: n.meta.get("val") for n in self.function.nodes}
        self.bound: dict[Node, Any] = {}
        self.result = StepPrograms()
        self.sums: dict[AllReduce, AllReduce] = {}

    def run(self, progress: Callable[[str], None]) -> StepPrograms:
        """Compiles everything."""
        candidates = self.function._find_candidates(self.metas)
        current: list[Node] = []
        layer = ""
        all_layers, seen = set(self.layer_of.values()), set[str]()

        def flush() -> None:
            if current:
                progress(layer)
                step = _Step(list(current), self.metas, options=self.function.options)
                step.connect()
                self._step(step, layer)
                current.clear()

        for node in self.order:
            if node.op == "output":
                continue
            if node.op in ("placeholder", "get_attr"):
                if isinstance(self.metas[node], torch.Tensor):
                    is_weight = node in self.linear_weights
                    bind = _Bound.of_linear_weight if is_weight else _Bound.of
                    self.bound[node] = bind(self.metas[node])
                continue
            at = self.layer_of.get(node)
            if at is not None:
                seen.add(at)
            elif not seen:
                at = BEFORE if all_layers else WHOLE
            else:
                at = AFTER if seen == all_layers else BETWEEN
            if at != layer:
                flush()
                layer = at
            if node in candidates:
                current.append(node)
                continue
            if (total := all_reduce_of(node)) is not None:
                flush()
                # Equal ones are one object, as equal programs are.
                self.result.calls.append(
                    Call(layer, self.sums.setdefault(total, total))
                )
                self._eager(node, layer, True)
                continue
            if waits_for_sum(node):
                self._eager(node, layer, True)
                continue
            is_host = host_numbers.runs_on_host(node, self.metas)
            if not is_host or not set(current).isdisjoint(node.all_input_nodes):
                flush()
            self._eager(node, layer, is_host)
        flush()
        return self.result

    def _step(self, step: Any, layer: str) -> None:
        if isinstance(step, EagerStep):
            return self._eager(step.node, layer, False)
        if all(is_view(n.target) or n.target is operator.getitem for n in step.nodes):
            for node in step.nodes:
                self._eager(node, layer, True)
            return None
        numbers: dict[int, int] = {}
        homes: list[_Bound] = []
        owner = []
        inputs = [self.bound[node] for node in step.inputs]
        for bound in inputs:
            if id(bound.storage) not in numbers:
                numbers[id(bound.storage)] = len(homes)
                homes.append(bound)
            owner.append(numbers[id(bound.storage)])
        kind = InputKind(
            tuple(h.home for h in homes), tuple(owner), tuple(b.spec for b in inputs)
        )
        if step.cut is not None:
            part: Any = step.cut
        else:
            begun, step.begun = step.begun, None
            with compiling:
                part = step._compile_or_split((True, kind), begun[1] if begun else None)
        if not isinstance(part, CompiledPart):
            for inner in part.steps:
                self._step(inner, layer)
            return None
        self.result.calls.append(Call(layer, part.graph))
        storages = [object() for _ in part.graph.outputs]
        for node, info in zip(step.outputs, part.results, strict=True):
            if info.root >= 0:
                dtype, sizes, strides, layout = part.graph.outputs[info.root]
                storage: object = storages[info.root]
                home = StorageSpec(dtype, tuple(sizes), tuple(strides), layout)
            else:
                root = homes[-1 - info.root]
                storage, home, dtype = root.storage, root.home, root.spec.dtype
            spec = TensorSpec(
                dtype, tuple(info.sizes), tuple(info.strides), info.offset
            )
            self.bound[node] = _Bound(storage, home, spec)
        return None

    def _eager(self, node: Node, layer: str, is_free: bool) -> None:
        """Binds the results of a node that is no part of a program."""
        meta = self.metas[node]
        first = node.args[0] if node.args else None
        source = first if isinstance(first, Node) else None
        if node.target is operator.getitem and source is not None:
            self.bound[node] = self.bound[source][node.args[1]]
            return
        base = self.bound.get(source) if source is not None else None
        if source is not None and is_view(node.target) and isinstance(base, _Bound):
            # Its offset counts from where its base's storage begins.
            traced = self.metas[source]
            shift = int(traced.storage_offset()) - base.spec.offset
            self.bound[node] = _map(
                meta, lambda t: _Bound(base.storage, base.home, TensorSpec.of(t, shift))
            )
            return
        # A higher-order operator runs parts of its own, which nothing predicts.
        if not is_free and isinstance(node.target, torch._ops.OperatorBase):
            self.result.on_host.append((layer, str(node.target)))
        self.bound[node] = _map(meta, _Bound.if_on_card)


def _order(traced: TracedStep) -> list[Node]:
    """The nodes, updates of inputs where the layer ends that computes them.

    Functionalisation has all updates at the end. A sum over cards ends a program, so
    updates go before those that need not come before them.
    """
    nodes = list(traced.gm.graph.nodes)
    layer_of = traced.layer_of
    num_sums = list(accumulate(all_reduce_of(node) is not None for node in nodes))
    sums_before = dict(zip(nodes, num_sums, strict=True))
    late: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if node.target is not torch.ops.aten.copy_.default:
            continue
        target, value = node.args[:2]
        layer = layer_of.get(value)
        others = [user for user in target.users if user is not node]
        if layer and all(layer_of.get(user) == layer for user in others):
            layer_of[node] = layer
            at = max(sums_before[n] for n in (value, *others))
            late.setdefault((layer, at), []).append(node)
    moved = {node for group in late.values() for node in group}
    last = {
        (layer_of[n], sums_before[n]): n
        for n in nodes
        if n in layer_of and n not in moved
    }
    result = []
    for node in nodes:
        if node in moved:
            continue
        result.append(node)
        key = (layer_of.get(node, ""), sums_before[node])
        if last.get(key) is node:
            result += late.get(key, [])
    return result


def _map(meta: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(meta, (tuple, list)):
        return [_map(m, function) for m in meta]
    return function(meta) if isinstance(meta, torch.Tensor) else None


def compile_step(
    traced: TracedStep,
    options: dict[str, Any],
    progress: Callable[[str], None] = lambda text: None,
) -> StepPrograms:
    """Compiles a traced step; equal parts are one compiled graph."""
    return _Compiler(traced, options).run(progress)
