# SPDX-License-Identifier: Apache-2.0
"""What ``TORCH_TRACE`` gets of compiled programs, for tlparse.

Per compiled part three artifacts: its FX nodes, its KTIR, and where the kernels come
from.
"""

from __future__ import annotations

import re
from typing import Any

from torch._logging import trace_structured
from torch._logging._internal import trace_log
from torch.fx import Node

from torch_spyre.frontend.importer import location_of

_KERNEL = re.compile(r"func\.func private @(\w+)")


def write_artifacts(
    name: str, graph: Any, nodes: list[Node], compile_id: Any = None
) -> None:
    """Adds the artifacts of a part, if TORCH_TRACE is on.

    ``compile_id`` is the frame whose page shows them: a part is compiled when it first
    runs, which is after Dynamo has left the frame.
    """
    if not trace_log.handlers:
        return
    ktir = graph.print_ktir()
    _write(f"{name}_fx_graph", "string", _text(nodes), compile_id)
    _write(f"{name}_ktir", "string", ktir, compile_id)
    provenance = {
        "program": name,
        "cache_key": graph.cache_key,
        "kernels": _KERNEL.findall(ktir),
        "nodes": [_origin(node) for node in nodes],
    }
    _write(f"{name}_provenance", "json", provenance, compile_id)


def _write(name: str, encoding: str, payload: Any, compile_id: Any) -> None:
    trace_structured(
        "artifact",
        metadata_fn=lambda: {"name": f"spyre_{name}", "encoding": encoding},
        payload_fn=lambda: payload,
        expect_trace_id=False,
        compile_id=compile_id,
    )


def _text(nodes: list[Node]) -> str:
    return "\n".join(node.format_node() or node.name for node in nodes)


def _origin(node: Node) -> dict[str, Any]:
    """A node, and the user's lines that it comes from, innermost first."""
    return {
        "node": node.name,
        "target": str(node.target),
        "stack": [
            {"file": file, "line": line, "function": function}
            for file, line, function in location_of(node)
        ],
    }
