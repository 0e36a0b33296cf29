# SPDX-License-Identifier: Apache-2.0
"""Numbers that a graph computes from its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from torch_spyre import _C
from torch_spyre.frontend.size_classes import Size, SizeClass, at
from torch_spyre.frontend.symbols import Symbols


class SizesStep:
    """Numbers computed from sizes, for each call."""

    def __init__(
        self,
        symbols: Symbols,
        classes: Sequence[SizeClass],
        nodes: Mapping[Node, Any],
    ) -> None:
        self.symbols = symbols
        hints = [c.most for c in classes]
        self.binding = symbols.bind(hints, classes)
        self.binding.narrow((), ())
        self.nodes = nodes
        self.values = {n: self._size(v) for n, v in nodes.items()}

    def _size(self, value: Any) -> Size:
        """The number, or what it is of the symbols; None if that is no sum."""
        try:
            return self.binding.size(value)
        except _C.UnsupportedOp:
            return None

    def run(self, env: dict[Any, Any]) -> None:
        """Adds the numbers of a call to ``env``."""
        sizes = self.binding.of(env[self.symbols])
        assert sizes is not None
        for node, value in self.values.items():
            if value is not None:
                env[node] = at(value, sizes)
                continue
            # Floats are rounded as in a graph of one size, which SymPy's are not.
            if not isinstance(self.nodes[node], torch.SymFloat):
                env[node] = self.symbols.value_at(self.nodes[node], env[self.symbols])
            if env.get(node) is None:
                args = torch.fx.map_arg(node.args, env.__getitem__)
                env[node] = node.target(*args)
