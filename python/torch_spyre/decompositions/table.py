# SPDX-License-Identifier: Apache-2.0
"""Which operators are taken apart before the compiler's ATen table sees them.

Compiled graphs and eager calls use the same decompositions, hence give the same
bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions import elementary, fused, histogram, recurrent, windows

_aten = torch.ops.aten
#: What norms become in graphs; not among PyTorch's core decompositions.
_NORMS = [
    _aten.native_group_norm.default,
    _aten._batch_norm_no_update.default,
    _aten._batch_norm_with_update_functional.default,
    _aten._native_batch_norm_legit.no_stats,
    _aten._native_batch_norm_legit_functional.default,
    _aten.batch_norm_backward.default,
    _aten.native_batch_norm_backward.default,
]


@functools.cache
def decompositions() -> dict[Any, Callable]:
    """Core ATen decompositions of what the ATen table lacks."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    table = {
        **core_aten_decompositions(),
        **get_decompositions(_NORMS),
        **elementary.DECOMPOSITIONS,
        **windows.DECOMPOSITIONS,
        **recurrent.DECOMPOSITIONS,
        **histogram.DECOMPOSITIONS,
        **fused.DECOMPOSITIONS,
        **fused.GRAPH_DECOMPOSITIONS,
        **fused.RANDOM_DECOMPOSITIONS,
        **fused.foreach_decompositions(),
    }
    own = table_operators()
    return {op: fn for op, fn in table.items() if str(op) not in own}


@functools.cache
def all_decompositions() -> dict[Any, Callable]:
    """All of PyTorch, also of what the ATen table has: for calls that it refuses."""
    from torch._decomp import decomposition_table

    return {**decomposition_table, **decompositions()}
