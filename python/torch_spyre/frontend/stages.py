# SPDX-License-Identifier: Apache-2.0
"""Graphs that go on with what they have read from a tensor.

With ``capture_scalar_outputs`` and ``capture_dynamic_output_shape_ops`` of
``torch._dynamo.config`` a graph has operators whose results are numbers of the host, or
have sizes that values decide (``item``, ``nonzero``). Such an operator runs by itself.
What comes between two of them is a graph of its own, compiled when the numbers are
known, once for each.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from torch_spyre.frontend.graph import CompiledFunction
from torch_spyre.frontend.parts import EagerStep
from torch_spyre.frontend.symbols import unbacked_symbols


def function_of(gm: GraphModule, options: dict[str, Any], name: str) -> Any:
    """The compiled graph; called with a list of inputs, as AOTAutograd does."""
    readers = _find_readers(gm)
    if not readers:
        return CompiledFunction(gm, options, name)
    return StagedFunction(gm, options, name, readers)


def _find_readers(gm: GraphModule) -> set[Node]:
    """The operators whose results depend on values, and what takes those apart."""
    known: set[sympy.Symbol] = set()
    readers: set[Node] = set()
    for node in gm.graph.nodes:
        symbols = unbacked_symbols(node.meta.get("val"))
        is_part = node.target is operator.getitem and node.args[0] in readers
        if is_part or (node.op == "call_function" and not symbols <= known):
            readers.add(node)
        known |= symbols
    return readers


@dataclass
class _Stage:
    """What comes between two such operators."""

    inputs: list[Node]
    outputs: list[Node]
    function: CompiledFunction

    def run(self, env: dict[Node, Any]) -> None:
        results = self.function([env[node] for node in self.inputs])
        env.update(zip(self.outputs, results, strict=True))


class StagedFunction:
    """A compiled graph with operators that read values."""

    def __init__(
        self, gm: GraphModule, options: dict[str, Any], name: str, readers: set[Node]
    ) -> None:
        self.gm = gm
        nodes = list(gm.graph.nodes)
        self._placeholders = [n for n in nodes if n.op == "placeholder"]
        self._output = gm.graph.output_node()
        self._steps: list[Any] = []
        for number, part in enumerate(_parts(nodes, readers)):
            self._steps.append(
                EagerStep(part[0])
                if part[0] in readers
                else _make_stage(gm, part, options, f"{name}_{number}")
            )

    def __call__(self, args: list[Any]) -> list[Any]:
        """Runs on the inputs of one call; empties the list, as boxed calls do."""
        env: dict[Node, Any] = dict(zip(self._placeholders, args, strict=True))
        args.clear()
        with torch.no_grad():
            for step in self._steps:
                step.run(env)
        return list(torch.fx.map_arg(self._output.args[0], env.__getitem__))


def _parts(nodes: list[Node], readers: set[Node]) -> Iterator[list[Node]]:
    """The operators in order: one that reads values, or all up to the next one."""
    current: list[Node] = []
    for node in nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node not in readers:
            current.append(node)
            continue
        if current:
            yield current
            current = []
        yield [node]
    if current:
        yield current


def _make_stage(
    gm: GraphModule, nodes: list[Node], options: dict[str, Any], name: str
) -> _Stage:
    """Operators of a graph as one of their own."""
    inside = set(nodes)
    sources = (s for n in nodes for s in n.all_input_nodes if s not in inside)
    inputs = list(dict.fromkeys(sources))
    outputs = [n for n in nodes if any(user not in inside for user in n.users)]
    graph = Graph()
    values: dict[Node, Node] = {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
        values[node].meta = dict(node.meta)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output(tuple(values[n] for n in outputs))
    stage = GraphModule(gm, graph)
    return _Stage(inputs, outputs, CompiledFunction(stage, options, name))
