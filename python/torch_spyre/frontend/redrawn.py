# SPDX-License-Identifier: Apache-2.0
"""Random operators that a backward graph runs again, to save memory.

Both graphs run them by a higher-order operator of PyTorch, each with a generator of its
own, so that they draw the same numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg


def add_fake_values(gm: GraphModule) -> None:
    """Gives such operators the fake results that PyTorch's partitioner leaves out."""
    nodes = gm.graph.find_nodes(
        op="call_function",
        target=torch.ops.higher_order.graphsafe_run_with_rng_state,
    )
    for node in nodes:
        if "val" in node.meta:
            continue
        op, *args = map_arg(node.args, _fake_value)
        keywords = {k: v for k, v in node.kwargs.items() if k != "rng_state"}
        with _mode_of(gm):
            node.meta["val"] = op(*args, **map_arg(keywords, _fake_value))


def _fake_value(node: Node) -> Any:
    return node.meta["val"]


def _mode_of(gm: GraphModule) -> FakeTensorMode:
    values = [node.meta.get("val") for node in gm.graph.nodes]
    mode = torch._guards.detect_fake_mode(values)
    return mode if mode is not None else FakeTensorMode()
