# SPDX-License-Identifier: Apache-2.0
"""Nodes of a compiled graph that run as the operators they are."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.decompositions.strides import arranged, has_strides
from torch_spyre.frontend.importer import location_of


@dataclass
class EagerStep:
    """One node that runs as the operator it is."""

    node: Node

    def run(self, env: dict[Node, Any]) -> None:
        """Runs on the values of ``env`` and adds the result to it."""
        node = self.node
        args = torch.fx.map_arg(node.args, env.__getitem__)
        kwargs = torch.fx.map_arg(node.kwargs, env.__getitem__)
        result = call_at_line(node, node.target, args, kwargs)
        env[node] = arranged(result, self._traced)

    @functools.cached_property
    def _traced(self) -> Any:
        """What says the strides that later operators were traced with; else None."""
        schema = getattr(self.node.target, "_schema", None)
        if schema is None or any(r.alias_info is not None for r in schema.returns):
            return None
        value = self.node.meta.get("val")
        for meta in filter(has_strides, tensors_in(value)):
            if any(isinstance(n, torch.SymInt) for n in (*meta.shape, *meta.stride())):
                return None
        return value


def call_at_line(node: Node, function: Any, args: Any, kwargs: Any) -> Any:
    """What a node calls; warnings and errors name the user's line."""
    _C.set_source_line(*user_line(node))
    try:
        return function(*args, **kwargs)
    except Exception as error:
        # Python 3.10 has no notes.
        if hasattr(error, "add_note"):
            file, line = user_line(node)
            error.add_note(f"{node.target} was called at {file}, line {line}")
        raise
    finally:
        _C.set_source_line("", 0)


def user_line(node: Node) -> tuple[str, int]:
    """File and line of the user's code that a node comes from."""
    for file, line, _ in location_of(node):
        return file, line
    return "<graph>", 0


def tensors_in(meta: Any) -> Iterator[torch.Tensor]:
    """The tensors of a node's fake value."""
    for value in meta if isinstance(meta, (tuple, list)) else [meta]:
        if isinstance(value, torch.Tensor):
            yield value
