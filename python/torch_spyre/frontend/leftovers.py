# SPDX-License-Identifier: Apache-2.0
"""What tracing leaves in graphs, and no compiler of this package reads.

A compiled function lives as long as its model, and so would this: for a graph that
was traced with symbolic sizes, nine in ten of its nodes are arithmetic on sizes that
was erased again, and that the graph's table of names still holds.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import GraphModule, Node

#: What the compiler reads of a node besides its value.
KEPT_META = ("stack_trace", "custom")
#: Attributes with which AOTAutograd's result holds Dynamo's graph.
_CONVENIENCES = ("zero_grad", "named_parameters", "named_buffers")


def drop_from_graph(gm: GraphModule) -> None:
    """Drops it from a traced graph and those inside it, which are the caller's own."""
    for module in gm.modules():
        if not isinstance(module, GraphModule):
            continue
        names = module.graph._graph_namespace._obj_to_name
        for named in [n for n in names if isinstance(n, Node) and n._erased]:
            del names[named]
        for node in module.graph.nodes:
            for name in node.meta.keys() - {"val", *KEPT_META}:
                del node.meta[name]


def drop_traced_module(function: Callable) -> Callable:
    """The result of AOTAutograd, without the module that Dynamo traced.

    The module's methods, which it offers for convenience, would keep that.
    """
    wrapped: Callable | None = function
    while wrapped is not None:
        for name in _CONVENIENCES:
            wrapped.__dict__.pop(name, None)
        wrapped = wrapped.__dict__.get("__wrapped__")
    return function
