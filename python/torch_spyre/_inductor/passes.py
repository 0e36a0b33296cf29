# SPDX-License-Identifier: Apache-2.0
"""The passes of the compiler, as they ran.

Passes are C++ here and work on ``spyre_graph``; docs/internals/index.md lists them.
``config.log_passes`` shows the graph after each, or after those that it names.
"""

from __future__ import annotations

from torch_spyre.frontend.parts import compiled_parts


def passes_of_last_program() -> list[tuple[str, float]]:
    """(name, seconds) of each pass of the program compiled last, in order.

    Empty if it was loaded from the cache, or if there is none.
    """
    parts = compiled_parts()
    return list(parts[-1].graph.pass_seconds) if parts else []


__all__ = ["passes_of_last_program"]
