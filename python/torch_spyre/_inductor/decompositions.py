# SPDX-License-Identifier: Apache-2.0
"""The decompositions of compiled graphs, as a table by operator.

Clients iterate over it and copy entries into Inductor's table. Graphs on spyre that
Inductor is given come to this package, so a copy changes nothing there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_spyre.decompositions.table import decompositions

#: torch._ops.OpOverload -> function.
spyre_decompositions: dict[Any, Callable[..., Any]] = {
    op: function
    for op, function in decompositions().items()
    if isinstance(op, torch._ops.OpOverload)
}

__all__ = ["spyre_decompositions"]
