# SPDX-License-Identifier: Apache-2.0
"""Regions that users mark for PyTorch to trace once (``nested_compile_region``).

A region is a graph of its own, which each call invokes by name. The compiler plans a
graph as a whole, so the calls are replaced by the region's operators.
"""

from __future__ import annotations

import operator
from contextlib import nullcontext
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_leaves

_invoke = torch.ops.higher_order.invoke_subgraph


def inline_regions(gm: GraphModule) -> None:
    """Replaces calls of regions, and what they call in turn, by their operators."""
    calls = list(gm.graph.find_nodes(op="call_function", target=_invoke))
    for call in calls:
        _inline(gm, call)
    if calls:
        gm.graph.eliminate_dead_code(lambda node: node.op != "get_attr")
        gm.recompile()


def _inline(gm: GraphModule, call: Node) -> None:
    attribute, _, *operands = call.args
    region = gm.get_submodule(attribute.target)
    inline_regions(region)
    graph: Graph = region.graph
    placeholders = graph.find_nodes(op="placeholder")
    values: dict[Node, Any] = dict(zip(placeholders, operands, strict=True))
    is_as_traced = all(
        _how_it_lies(_value_of(p)) == _how_it_lies(_value_of(o))
        for p, o in values.items()
    )
    with gm.graph.inserting_before(call):
        for node in graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            copy = gm.graph.node_copy(node, values.__getitem__)
            if node.op == "get_attr":
                copy.target = f"{attribute.target}_{node.target}".replace(".", "_")
                setattr(gm, copy.target, getattr(region, node.target))
            elif not is_as_traced:
                copy.meta["val"] = value_for(copy)
            values[node] = copy
    results = graph.output_node().args[0]
    for user in list(call.users):
        assert user.target is operator.getitem
        result = results[user.args[1]]
        if isinstance(result, Node):
            user.replace_all_uses_with(values[result])
            gm.graph.erase_node(user)
    if not call.users:
        gm.graph.erase_node(call)


def value_for(node: Node) -> Any:
    """The fake value of a node, whose operands' are there."""
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), _value_of)
    with detect_fake_mode(tree_leaves((args, kwargs))) or nullcontext():
        return node.target(*args, **kwargs)


def _value_of(operand: Any) -> Any:
    return operand.meta.get("val") if isinstance(operand, Node) else operand


def _how_it_lies(value: Any) -> Any:
    """All that the values inside of a region depend on in an operand."""
    if not isinstance(value, torch.Tensor):
        return _expression(value)
    return (
        type(value),
        value.dtype,
        value.device,
        *(_expression(number) for number in value.shape),
        *(_expression(number) for number in value.stride()),
        _expression(value.storage_offset()),
    )


def _expression(value: Any) -> Any:
    is_symbolic = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
    return value.node.expr if is_symbolic else value
