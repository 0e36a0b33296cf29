# SPDX-License-Identifier: Apache-2.0
"""Which operators are taken apart before the compiler's ATen table sees them.

Compiled graphs and eager calls use the same decompositions, hence give the same
bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import torch

from torch_spyre import extensions
from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions import (
    antialias,
    attention,
    average_pooling,
    distances,
    elementary,
    fake_quantization,
    float8,
    fused,
    gradients,
    grouped,
    histogram,
    jagged,
    layer_norm_steps,
    losses,
    max_pooling,
    ordering,
    paged_attention,
    quantized,
    recurrent,
    resampling,
    scans,
    segments,
    selection,
    special,
    triangular,
    windows,
)
from torch_spyre.decompositions.strides import as_inferred

_aten = torch.ops.aten
#: What norms become in graphs; not among PyTorch's core decompositions.
_NORMS = [
    _aten.native_group_norm.default,
    _aten._batch_norm_no_update.default,
    _aten._batch_norm_with_update_functional.default,
    _aten._native_batch_norm_legit.no_stats,
    _aten._native_batch_norm_legit_functional.default,
    _aten.native_batch_norm.default,
    _aten.batch_norm_backward.default,
    _aten.native_batch_norm_backward.default,
]


def restickify(x: torch.Tensor) -> torch.Tensor:
    """A copy: where the sticks of a compiled graph lie, the compiler decides."""
    return x.clone(memory_format=torch.contiguous_format)


#: Of operators as they are: eager calls take them, too, whatever else PyTorch sees.
DECOMPOSITIONS: dict[Any, Callable] = {
    **antialias.DECOMPOSITIONS,
    **average_pooling.DECOMPOSITIONS,
    **distances.DECOMPOSITIONS,
    **elementary.DECOMPOSITIONS,
    **fake_quantization.DECOMPOSITIONS,
    **fused.NORMS,
    **gradients.DECOMPOSITIONS,
    **grouped.DECOMPOSITIONS,
    **jagged.DECOMPOSITIONS,
    **losses.DECOMPOSITIONS,
    **max_pooling.DECOMPOSITIONS,
    **ordering.DECOMPOSITIONS,
    **quantized.DECOMPOSITIONS,
    **recurrent.DECOMPOSITIONS,
    **resampling.DECOMPOSITIONS,
    **scans.DECOMPOSITIONS,
    **segments.DECOMPOSITIONS,
    **selection.DECOMPOSITIONS,
    **special.DECOMPOSITIONS,
    **triangular.DECOMPOSITIONS,
    **windows.DECOMPOSITIONS,
}

#: By the names of operators of ``torch.ops.spyre``, which others may define later.
NAMED: dict[str, Callable] = {
    "restickify": restickify,
    **float8.OPERATORS,
    **layer_norm_steps.STEPS,
    **paged_attention.OPERATORS,
}
#: By the qualified names of operators that other libraries define.
FOREIGN: dict[str, Callable] = {**grouped.FOREIGN}


#: Eager calls ask these before they ask the row.
_BEFORE_ROWS: dict[Any, Callable] = {**ordering.BEFORE_ROWS, **scans.BEFORE_ROWS}

#: Run as they are by eager calls.
OWN: dict[Any, Callable] = {
    **DECOMPOSITIONS,
    **histogram.PROGRAMS,
    **_BEFORE_ROWS,
}


def named_decompositions() -> dict[Any, Callable]:
    """Those of ``NAMED`` and ``FOREIGN`` that are defined, by their overload."""
    found: dict[Any, Callable] = {}
    own = {f"spyre::{name}": function for name, function in NAMED.items()}
    for qualified, function in {**own, **FOREIGN}.items():
        namespace, name = qualified.split("::")
        packet = getattr(getattr(torch.ops, namespace), name, None)
        if packet is not None:
            found[packet.default] = function
    return found


#: Of the ``enabled()`` contexts that are open.
_enabled: ContextVar[Mapping[Any, Callable]] = ContextVar(
    "_enabled", default=MappingProxyType({})
)


@contextmanager
def enabled(given: Mapping[Any, Callable]) -> Iterator[None]:
    """Graphs compiled inside take these operators apart by the given functions."""
    token = _enabled.set({**_enabled.get(), **given})
    try:
        yield
    finally:
        _enabled.reset(token)


def are_enabled() -> bool:
    """Whether an ``enabled()`` context is open."""
    return bool(_enabled.get())


def decompositions(for_superdsc: bool = False) -> dict[Any, Callable]:
    """Core ATen decompositions of what the ATen table lacks, and of ``spyre::``.

    A few operators of the table are taken apart with arguments that it refuses, or if
    that is faster. Graphs ``for_superdsc``, which has no sorts, keep ``topk``.
    """
    table = {**_of_aten(table_operators()), **named_decompositions()}
    if for_superdsc:
        table = {op: fn for op, fn in table.items() if op not in ordering.BEFORE_ROWS}
    return {**_with_extensions(table), **_enabled.get()}


def _run_otherwise() -> frozenset[str]:
    """Operators that users have a lowering or a fallback for."""
    return extensions.names("lowering") | extensions.names("fallback")


def _with_extensions(table: dict[Any, Callable]) -> dict[Any, Callable]:
    """A table with the decompositions of users, and without what they run otherwise."""
    if others := _run_otherwise():
        table = {op: fn for op, fn in table.items() if str(op) not in others}
    return {**table, **extensions.decompositions()}


@functools.cache
def _of_aten(own: frozenset[str]) -> dict[Any, Callable]:
    from torch._decomp import (
        _core_aten_decompositions_post_autograd,
        get_decompositions,
    )

    # PyTorch's whole table has 499 functions more, those in C++ of operators that
    # traces take apart without, and takes 0.1 s of a process to find them.
    table = {
        **_core_aten_decompositions_post_autograd(),
        **get_decompositions(_NORMS),
        **DECOMPOSITIONS,
        **elementary.FACTORIES,
        **histogram.DECOMPOSITIONS,
        **fused.DECOMPOSITIONS,
        **fused.RANDOM_DECOMPOSITIONS,
        **fused.foreach_decompositions(),
    }
    lacking = {op: fn for op, fn in table.items() if str(op) not in own}
    found = {
        **lacking,
        **attention.BESIDE_ROWS,
        **elementary.BESIDE_ROWS,
        **_BEFORE_ROWS,
    }
    return {op: as_inferred(op, fn) for op, fn in found.items()}


def goes_before_row(op: Any) -> bool:
    """Whether an eager call is taken apart even if its row would take it.

    The decomposition returns NotImplemented for calls that are the row's.
    """
    return op in extensions.decompositions() or op in _BEFORE_ROWS


def decomposition_of(op: Any) -> Callable | None:
    """What takes an operator apart, if need be by a function of PyTorch's.

    Also one that the ATen table has: for calls that it refuses.
    """
    from torch._decomp import decomposition_table

    given = extensions.decompositions().get(op)
    if given is not None:
        return given
    if str(op) in _run_otherwise():
        return None
    tables = (
        _enabled.get(),
        named_decompositions(),
        _of_aten(table_operators()),
        decomposition_table,
    )
    return next((table[op] for table in tables if op in table), None)
