# SPDX-License-Identifier: Apache-2.0
"""What the compiler's ATen table has rows for."""

from __future__ import annotations

import functools

from torch_spyre import _C


@functools.cache
def table_operators() -> frozenset[str]:
    """Overloads that the compiler's ATen table has a row for."""
    return frozenset(_C.list_supported_ops())
