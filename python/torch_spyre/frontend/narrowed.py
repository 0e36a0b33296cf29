# SPDX-License-Identifier: Apache-2.0
"""Numbers that Dynamo computes with in float64, which the device does not have.

Where a float that is read from a tensor (``x.sum().item()``) meets tensors only, Dynamo
leaves it on the device, as a tensor of float64 without dimensions. Eagerly the float
would meet them as an fp32 number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate

from torch_spyre.frontend.host_numbers import is_spyre


def narrow_numbers(gm: GraphModule, kind: str) -> None:
    """Makes them fp32, unless the user's function returns one.

    A forward graph may keep one for the ``kind`` "backward".
    """
    wide = [node for node in gm.graph.nodes if _is_wide(node.meta.get("val"))]
    returned = set(returned_to_user(gm, kind))
    ops = ("call_function", "placeholder") if kind == "backward" else ("call_function",)
    if any(node.op not in ops or node in returned for node in wide):
        return
    for node in wide:
        node.args = map_aggregate(node.args, _narrow)
        node.kwargs = map_aggregate(node.kwargs, _narrow)
        with node.meta["val"].fake_mode:
            node.meta["val"] = node.meta["val"].float()
        for number in node.all_input_nodes:
            if _is_wide_on_host(number.meta.get("val")):
                node.replace_input_with(number, _narrowed_before(node, number))


def returned_to_user(gm: GraphModule, kind: str) -> Sequence[Any]:
    """What a graph returns to the user: a forward graph's results come first."""
    results = gm.graph.output_node().args[0]
    context = TracingContext.try_get()
    if kind == "forward" and context is not None and context.fw_metadata is not None:
        return results[: context.fw_metadata.num_forward]
    return results


def _is_wide(value: Any) -> bool:
    return is_spyre(value) and value.dtype == torch.float64 and value.dim() == 0


def _is_wide_on_host(value: Any) -> bool:
    """Of two tensors without dimensions, one of float64 makes the result one."""
    return (
        isinstance(value, torch.Tensor)
        and value.is_cpu
        and value.dtype == torch.float64
        and value.dim() == 0
    )


def _narrowed_before(node: Node, number: Node) -> Node:
    with node.graph.inserting_before(node):
        narrowed = node.graph.call_function(
            torch.ops.aten._to_copy.default, (number,), {"dtype": torch.float32}
        )
    narrowed.meta = dict(number.meta)
    with node.meta["val"].fake_mode:
        narrowed.meta["val"] = number.meta["val"].float()
    return narrowed


def _narrow(value: Any) -> Any:
    return torch.float32 if value is torch.float64 else value
