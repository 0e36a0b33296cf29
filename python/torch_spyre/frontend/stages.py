# SPDX-License-Identifier: Apache-2.0
"""Graphs that go on with what they have read from a tensor.

With ``capture_scalar_outputs`` and ``capture_dynamic_output_shape_ops`` of
``torch._dynamo.config`` a graph has operators whose results are numbers of the host, or
have sizes that values decide (``item``, ``nonzero``). Such an operator runs by itself.
What comes between two of them is a graph of its own, compiled when the numbers are
known. Sizes are symbols of its programs. Numbers that only meet tensors are arguments;
there is a program for each value that rows of the ATen table want to know.
Arithmetic among numbers is done on the host.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from torch_spyre.frontend.eager_steps import EagerStep
from torch_spyre.frontend.graph import CompiledFunction
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.mask_indices import replace_masks
from torch_spyre.frontend.parts import is_number
from torch_spyre.frontend.symbols import unbacked_symbols

aten = torch.ops.aten


def function_of(gm: GraphModule, options: dict[str, Any], name: str) -> Any:
    """The compiled graph; called with a list of inputs, as AOTAutograd does."""
    replace_masks(gm)
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
        is_new = node.op == "call_function" and not symbols <= known
        if is_part or is_new or _is_sized_by_values(node):
            readers.add(node)
        known |= symbols
    return readers


def _is_sized_by_values(node: Node) -> bool:
    """Whether values say how large an operator's result is, also where PyTorch knows
    it from an earlier operator of the same values.
    """
    if torch.Tag.dynamic_output_shape not in getattr(node.target, "tags", ()):
        return False
    if node.target is not aten.index.Tensor:
        return True
    masks = (torch.bool, torch.uint8)
    return any(i is not None and i.meta["val"].dtype in masks for i in node.args[1])


@dataclass
class _Stage:
    """What comes between two such operators."""

    inputs: list[Node]
    #: More inputs: numbers, and as tensors of which dtypes programs take them.
    numbers: list[tuple[Node, torch.dtype]]
    outputs: list[Node]
    function: CompiledFunction

    def run(self, env: dict[Node, Any]) -> None:
        numbers = [
            torch.tensor(env[node], dtype=dtype, device="cpu")
            for node, dtype in self.numbers
        ]
        results = self.function([env[node] for node in self.inputs] + numbers)
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
                if len(part) == 1 and (part[0] in readers or _is_of_numbers(part[0]))
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
    """The operators in order: one that reads values, or all up to the next one.

    Those of numbers come before the tensors that they may meet.
    """
    current: dict[Node, None] = {}
    for node in nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node in readers:
            if current:
                yield list(current)
                current = {}
            yield [node]
        elif _is_of_numbers(node) and current.keys().isdisjoint(node.all_input_nodes):
            yield [node]
        else:
            current[node] = None
    if current:
        yield list(current)


def _is_of_numbers(node: Node) -> bool:
    """Whether a node computes a number from numbers, or checks them."""
    value, inputs = node.meta.get("val"), node.all_input_nodes
    return (
        node.op == "call_function"
        and bool(inputs)
        and (value is None or is_number(value))
        and all(is_number(i.meta.get("val")) for i in inputs)
    )


#: Operators of a tensor and a number, or another tensor, whose rows take either.
_ARITHMETIC = {aten.add.Tensor, aten.div.Tensor, aten.mul.Tensor, aten.sub.Tensor}


def _met_number(node: Node) -> tuple[Node, torch.dtype] | None:
    """A number that an operator takes beside a tensor, and as a tensor of which dtype.

    Floating tensors meet it as an fp32 number, int64 ones as one of 32 bits.
    """
    if node.target not in _ARITHMETIC or node.kwargs or not is_spyre(node.meta["val"]):
        return None
    tensor, number = node.args
    if not (isinstance(tensor, Node) and isinstance(number, Node)):
        return None
    value, dtype = number.meta.get("val"), tensor.meta["val"].dtype
    if dtype.is_floating_point and isinstance(value, (torch.SymInt, torch.SymFloat)):
        return number, torch.float64
    if dtype == torch.int64 and isinstance(value, torch.SymInt):
        return number, dtype
    return None


def _make_stage(
    gm: GraphModule, nodes: list[Node], options: dict[str, Any], name: str
) -> _Stage:
    """Operators of a graph as one of their own."""
    inside = set(nodes)
    met = {n: found for n in nodes if (found := _met_number(n)) is not None}
    inputs = dict.fromkeys(
        source
        for node in nodes
        for source in node.all_input_nodes
        if source not in inside and (node not in met or source is not met[node][0])
    )
    outputs = [n for n in nodes if any(user not in inside for user in n.users)]
    graph = Graph()
    values: dict[Any, Node] = {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
        values[node].meta = dict(node.meta)
    numbers: list[tuple[Node, torch.dtype]] = []
    for user, found in met.items():
        # A number from inside, the size of a tensor, is known when programs are made.
        if found in values or found[0] in inside:
            continue
        numbers.append(found)
        dtype = str(found[1]).removeprefix("torch.")
        values[found] = graph.placeholder(f"{found[0].name}_{dtype}")
        with user.meta["val"].fake_mode:
            number = torch.empty((), dtype=found[1], device="cpu")
        values[found].meta["val"] = number
    for node in nodes:
        own = met.get(node)
        values[node] = graph.node_copy(
            node, lambda n, own=own: values[own if own in values and n is own[0] else n]
        )
    graph.output(tuple(values[n] for n in outputs))
    stage = GraphModule(gm, graph)
    function = CompiledFunction(stage, options, name)
    return _Stage(list(inputs), numbers, outputs, function)
