# SPDX-License-Identifier: Apache-2.0
"""The context in which torch-spyre has Inductor compile a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch_spyre import _C
from torch_spyre._inductor.decompositions import enable_spyre_decompositions


@contextmanager
def enable_spyre_context(
    example_inputs: Sequence[Any],
    decomps: Mapping[Any, Callable[..., Any]] | None = None,
) -> Iterator[None]:
    """Starts the current device, and compiles with these decompositions, too.

    Graphs with spyre tensors, ``example_inputs`` among them, come to this package
    inside and outside of it.
    """
    _C.start_runtime()
    with enable_spyre_decompositions(decomps):
        yield


__all__ = ["enable_spyre_context"]
