# SPDX-License-Identifier: Apache-2.0
"""What the compiler's ATen table has rows for."""

from __future__ import annotations

import functools

from torch_spyre import _C, extensions


@functools.cache
def _rows() -> frozenset[str]:
    return frozenset(_C.list_supported_ops())


def table_operators() -> frozenset[str]:
    """Overloads that the compiler's ATen table has a row for, or a user a lowering.

    Without those that a user wants to run on the CPU.
    """
    return _without(extensions.names("lowering"), extensions.names("fallback"))


@functools.cache
def _without(added: frozenset[str], removed: frozenset[str]) -> frozenset[str]:
    return (_rows() | added) - removed
