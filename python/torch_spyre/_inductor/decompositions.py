# SPDX-License-Identifier: Apache-2.0
"""The decompositions of compiled graphs, as a table by operator.

Clients iterate over it and copy entries into Inductor's table. Graphs on spyre that
Inductor is given come to this package, so a copy changes nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch

from torch_spyre import extend
from torch_spyre.decompositions.table import decompositions, enabled

Function = TypeVar("Function", bound=Callable[..., Any])

#: torch._ops.OpOverload -> function.
spyre_decompositions: dict[Any, Callable[..., Any]] = {
    op: function
    for op, function in decompositions().items()
    if isinstance(op, torch._ops.OpOverload)
}

#: Decompositions of Inductor's that torch-spyre does without: here, too, these
#: operators have programs of their own.
spyre_decompositions_to_exclude = [torch.ops.aten.triu, torch.ops.aten.tril]


def register_spyre_decomposition(ops: Any) -> Callable[[Function], Function]:
    """Torch-spyre's name of :func:`torch_spyre.extend.decomposition`.

    ``ops`` is an overload, or several; the table has them afterwards.
    """

    def decorate(function: Function) -> Function:
        extend.decomposition(ops)(function)
        spyre_decompositions.update(dict.fromkeys(extend.overloads(ops), function))
        return function

    return decorate


def enable_spyre_decompositions(
    decomps: Mapping[Any, Callable[..., Any]] | None = None,
) -> AbstractContextManager[None]:
    """A context in which graphs on spyre are compiled with these decompositions, too.

    They come before the table's. None adds none: the table holds everywhere.
    """
    return enabled(decomps or {})


__all__ = [
    "enable_spyre_decompositions",
    "register_spyre_decomposition",
    "spyre_decompositions",
    "spyre_decompositions_to_exclude",
]
