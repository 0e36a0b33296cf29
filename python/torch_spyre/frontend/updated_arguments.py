# SPDX-License-Identifier: Apache-2.0
"""Results of a graph that are views of an updated argument lie on the argument.

AOTAutograd returns views of the new value of an argument as views of what computes
it, and takes their offsets for those on the argument: as PyTorch's own operators
(``slice_scatter``) make tensors that lie like their operand, gaps and offset included.
Here a computed value is dense and begins its storage. The views are therefore made
of the argument, after it is updated.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import OutputType
from torch._guards import TracingContext, detect_fake_mode
from torch.fx import GraphModule, Node

from torch_spyre.frontend.importer import is_view

aten = torch.ops.aten

#: They name places of the storage, not of their operand.
_PLACED = {aten.as_strided.default}


def view_updated_arguments(gm: GraphModule) -> None:
    """Rewrites the results of a forward or inference graph."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return
    output = gm.graph.output_node()
    results = list(output.args[0])
    updates = {
        node.args[1]: node
        for node in gm.graph.nodes
        if node.target is aten.copy_.default and node.args[0].op == "placeholder"
    }
    first = metadata.num_mutated_inp_runtime_indices
    for number, info in enumerate(metadata.output_info, first):
        if info.output_type != OutputType.alias_of_input or number >= len(results):
            continue
        chain = _views_down_to(results[number], updates)
        if chain:
            update = updates[chain[0].args[0]]
            results[number] = _repeat(gm, chain, update) or results[number]
    output.args = (type(output.args[0])(results),)
    gm.graph.eliminate_dead_code(
        lambda node: node.target is not operator.getitem and not is_view(node.target)
    )
    gm.recompile()


def _views_down_to(node: Any, updates: dict[Any, Node]) -> list[Node]:
    """The views, the innermost first, that make a node from an updated value."""
    chain: list[Node] = []
    while isinstance(node, Node) and node not in updates:
        if node.target is not operator.getitem and not is_view(node.target):
            return []
        chain.insert(0, node)
        node = node.args[0]
    return chain if isinstance(node, Node) else []


def _repeat(gm: GraphModule, chain: Sequence[Node], update: Node) -> Node | None:
    """The same views of the updated argument, or nothing if it lies otherwise."""
    base = update.args[0]
    if any(node.target in _PLACED for node in chain):
        return None
    made: list[Node] = []
    source, value = update, base.meta["val"]
    with gm.graph.inserting_before(gm.graph.output_node()):
        for node in chain:
            new = gm.graph.node_copy(node)
            new.args = (source, *node.args[1:])
            made.append(new)
            arguments = torch.fx.map_arg(
                (node.args[1:], node.kwargs), lambda n: n.meta["val"]
            )
            try:
                with detect_fake_mode([base.meta["val"]]):
                    value = node.target(value, *arguments[0], **arguments[1])
            except (RuntimeError, ValueError):
                for view in reversed(made):
                    gm.graph.erase_node(view)
                return None
            new.meta["val"] = value
            source = new
    return source
