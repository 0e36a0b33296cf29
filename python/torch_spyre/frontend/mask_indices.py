# SPDX-License-Identifier: Apache-2.0
"""Masks as indices of graphs: ``x[mask]`` and ``x[mask] = values``.

No row of the ATen table takes a mask, as values say how much it selects. What the host
has to read is only where a mask is set. So the graph asks for that once per mask
(``nonzero``), and programs, whose number of rows is a symbol, do the rest with the
coordinates. A mask whose places all get the same selects without any.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from torch_spyre.frontend.regions import value_for

aten = torch.ops.aten

_READS = {aten.index.Tensor, aten._unsafe_index.Tensor}
_WRITES = {aten.index_put.default, aten._unsafe_index_put.default}


def replace_masks(gm: GraphModule) -> None:
    """Puts coordinates, or selections, in the place of masks that index."""
    uses: dict[Node, list[Node]] = {}
    for node in gm.graph.nodes:
        if (mask := _mask_of(node)) is not None:
            uses.setdefault(mask, []).append(node)
    for mask, nodes in uses.items():
        for node in [n for n in nodes if _is_uniform(n, mask)]:
            _select(gm, node, mask)
            nodes.remove(node)
        # How much is selected is compared only where it is a symbol.
        nodes = [n for n in nodes if isinstance(_count_in(n, mask), torch.SymInt)]
        # One operator takes all elements that a mask selects of a tensor.
        if len(nodes) == 1 and nodes[0].target in _READS and _covers(nodes[0], mask):
            continue
        if nodes:
            _index_by_coordinates(gm, nodes, mask)
    if uses:
        gm.graph.lint()
        gm.recompile()


def _value(node: Any) -> torch.Tensor:
    return node.meta["val"]


def _mask_of(node: Node) -> Node | None:
    """The mask that is all by which an operator indexes a tensor of the device."""
    if node.op != "call_function" or node.target not in _READS | _WRITES:
        return None
    if any(i.meta.get("val") is None for i in node.all_input_nodes):
        return None
    indices = [i for i in node.args[1] if i is not None]
    if len(indices) != 1 or node.kwargs or _value(node).device.type != "spyre":
        return None
    mask = _value(indices[0])
    if mask.dtype != torch.bool or mask.dim() == 0:
        return None
    others = [_value(node.args[0]), mask]
    if node.target in _WRITES and _value(node.args[2]).dim() > 0:
        others.append(_value(node.args[2]))
    on_device = all(t.device == _value(node).device for t in others)
    return indices[0] if on_device else None


def _place_of(node: Node) -> int:
    """The first dimension that the mask of an operator stands for."""
    return next(p for p, index in enumerate(node.args[1]) if index is not None)


def _covers(node: Node, mask: Node) -> bool:
    return _value(mask).dim() == _value(node.args[0]).dim()


def _count_in(node: Node, mask: Node) -> Any:
    """How much the mask selects, as an operator's operand or result has it; 1 if
    operands are broadcast.
    """
    place = _place_of(node)
    if node.target in _READS:
        return _value(node).shape[place]
    values = _value(node.args[2])
    behind = _value(node.args[0]).dim() - place - _value(mask).dim()
    dim = values.dim() - 1 - behind
    return values.shape[dim] if dim >= 0 else 1


def _is_uniform(node: Node, mask: Node) -> bool:
    """Whether it writes the same to all places of the mask."""
    if node.target not in _WRITES:
        return False
    count = _count_in(node, mask)
    return isinstance(count, int) and count == 1


def _select(gm: GraphModule, node: Node, mask: Node) -> None:
    """The same by a selection: mask ? values : tensor."""
    x, _, values, *rest = node.args
    rank = _value(mask).dim()
    behind = _value(x).dim() - _place_of(node) - rank
    with gm.graph.inserting_before(node):
        flags = mask
        for _ in range(behind):
            flags = _call(gm, aten.unsqueeze.default, flags, -1)
        # The dimension of the selected places, which has one element, is as many.
        dim = _value(values).dim() - 1 - behind
        for _ in range(rank - 1 if dim >= 0 else 0):
            values = _call(gm, aten.unsqueeze.default, values, dim)
        if any(rest[:1]):
            values = _call(gm, aten.add.Tensor, x, values)
        selected = _call(gm, aten.where.self, flags, values, x)
    selected.meta = dict(node.meta)
    node.replace_all_uses_with(selected)
    gm.graph.erase_node(node)


def _call(gm: GraphModule, target: Any, *args: Any) -> Node:
    node = gm.graph.call_function(target, args)
    node.meta["val"] = value_for(node)
    return node


def _index_by_coordinates(gm: GraphModule, nodes: list[Node], mask: Node) -> None:
    flags = _value(mask)
    # As soon as the mask is there, so that what comes behind is one program.
    before = mask.next
    while before.op == "placeholder":
        before = before.next
    with gm.graph.inserting_before(before):
        found = gm.graph.call_function(aten.nonzero.default, (mask,))
        count = _count_in(nodes[0], mask)
        with flags.fake_mode:
            found.meta["val"] = torch.empty_strided(
                (count, flags.dim()), (1, count), dtype=torch.int64, device=flags.device
            )
        columns = [
            _call(gm, aten.select.int, found, 1, dim) for dim in range(flags.dim())
        ]
    for node in nodes:
        indices = list(node.args[1])
        place = _place_of(node)
        indices[place : place + 1] = columns
        node.update_arg(1, indices)
