# SPDX-License-Identifier: Apache-2.0
"""The names of torch-spyre's compiler that its users import.

Importing this package must stay cheap: it loads none of its modules, as clients import
``torch_spyre._inductor.config`` before they know whether they compile anything.
"""

from __future__ import annotations

import importlib

_MODULES = frozenset(
    [
        "codegen",
        "config",
        "constants",
        "customops",
        "decompositions",
        "dtype_ops",
        "errors",
        "logging_utils",
        "lowering",
        "op_spec",
        "passes",
        "patches",
        "propagate_named_dims",
    ]
)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("get_op_hints", "spyre_hint"):
        from torch_spyre.frontend import hints

        return getattr(hints, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
