# SPDX-License-Identifier: Apache-2.0
"""How an operator becomes operations of the compiler.

The lowerings of PyTorch's operators are a table in C++ here. A user adds one by the
decorator :func:`lowering`, as docs/guide/extending.md shows.
"""

from __future__ import annotations

from torch_spyre.aten_table import table_operators
from torch_spyre.extend import lowering
from torch_spyre.frontend.lowering import GraphValue, LoweringContext

__all__ = ["GraphValue", "LoweringContext", "lowering", "table_operators"]
