# SPDX-License-Identifier: Apache-2.0
"""The names of torch-spyre's compiler that its users import.

Importing this package must stay cheap: it loads none of its modules, as clients import
``torch_spyre._inductor.config`` before they know whether they compile anything.
"""

from __future__ import annotations


def __getattr__(name: str) -> object:
    if name == "spyre_hint":
        from torch_spyre.frontend.hints import spyre_hint

        return spyre_hint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
