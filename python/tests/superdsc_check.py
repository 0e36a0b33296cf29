# SPDX-License-Identifier: Apache-2.0
"""Takes every graph that a test run compiles through SuperDSC, too.

``SPYRE_CHECK_SUPERDSC=FILE`` in the environment of pytest switches it on
(``conftest.py``). Whenever a program is compiled, the same graph is compiled
with ``superdsc_compatible`` and with ``through_superdsc``. Both programs run on
the same made-up values and must give the same bits and the same predicted
times, and the bundles, read and written again, the same bytes. This happens
after the test, which may count programs, kernels or bytes of its own. FILE gets
one JSON line per graph.

``SPYRE_CHECK_SUPERDSC_LIMIT=N`` checks the first N graphs only.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch_spyre import _C
from torch_spyre.frontend import cache

#: Before any test replaces it.
_compile = _C.compile_graph

#: Integers of the same size as a dtype, to compare bits.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _home(dtype: torch.dtype, sizes: Any, strides: Any, highest: int) -> torch.Tensor:
    """Values for the home of a storage; integers are 0 to ``highest``."""
    generator = torch.Generator().manual_seed(len(sizes) + sum(sizes))
    host = torch.empty_strided(tuple(sizes), tuple(strides), dtype=dtype)
    if dtype.is_floating_point:
        values = torch.randn(tuple(sizes), generator=generator)
        return host.copy_(values)
    top = 1 if dtype == torch.bool else highest
    return host.copy_(torch.randint(0, top + 1, tuple(sizes), generator=generator))


def _run(graph: Any, highest: int) -> tuple[list[torch.Tensor], list[float]]:
    """The storages after a run, inputs first, and the time of each kernel.

    On a stream of its own: what the test runs may have failed.
    """
    with torch.spyre.stream(torch.spyre.Stream()):
        return _run_here(graph, highest)


def _run_here(graph: Any, highest: int) -> tuple[list[torch.Tensor], list[float]]:
    device = []
    for dtype, sizes, strides, layout in [*graph.inputs, *graph.outputs]:
        device.append(_C.empty_with_layout(sizes, strides, dtype, layout))
        # Outputs too: what is not written must be the same.
        device[-1].copy_(_home(dtype, sizes, strides, highest))
    count = len(graph.inputs)
    graph.run(device[:count], device[count:])
    after = [tensor.cpu() for tensor in device]
    return after, [kernel["predicted_seconds"] for kernel in graph.report()]


def _try(graph: Any, highest: int) -> tuple[list[torch.Tensor], list[float], str]:
    """What _run gives and no error, or the error: what happened, not where."""
    try:
        return *_run(graph, highest), ""
    except RuntimeError as error:  # A copy after the run raises what failed.
        return [], [], str(error).split("error: ", 1)[-1]


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    bits = _BITS[a.element_size()]
    return torch.equal(
        a.contiguous().flatten().view(bits), b.contiguous().flatten().view(bits)
    )


def _rewritten(folder: Path) -> list[str]:
    """The files that differ after reading and writing."""
    before = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    after = _C.rewrite_superdsc(str(folder))
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def _reason(error: Exception) -> str:
    """The kind of an error, without the values that make each unique."""
    lines = str(error).splitlines()
    first = next((n for n, line in enumerate(lines) if "error" in line), 0)
    reason = lines[first].split("error: ")[-1]
    if reason.endswith("rules:") and first + 1 < len(lines):
        reason += " " + lines[first + 1].split(": ", 2)[-1]
    return reason[:300]


def check(builder: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What became of one graph: ``same``, ``left out`` or ``differs``."""
    kept = {k: v for k, v in options.items() if k in ("cores", "lx_planning")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            # A hint may ask for what compatible planning refuses.
            direct = _compile(builder, {**kept, "superdsc_compatible": True})
            through = _C.compile_graph(
                builder, {**kept, "through_superdsc": True, "dump_dir": name}
            )
        except _C.SpyreError as error:
            return {"result": "left out", "why": _reason(error), "text": str(error)}
        differ = _rewritten(folder / "superdsc")
        if differ:
            return {"result": "differs", "why": "rewritten bytes", "text": str(differ)}
    for highest in (1, 0):  # An index of 1 is outside of a table of one row.
        expected, times, error = _try(direct, highest)
        actual, other, other_error = _try(through, highest)
        if error != other_error:
            return {"result": "differs", "why": "error", "text": other_error}
        if not error:
            break
    bad = [
        number
        for number, (a, b) in enumerate(zip(expected, actual, strict=True))
        if not _same_bits(a, b)
    ]
    if bad:
        return {"result": "differs", "why": "bits", "text": f"arguments {bad}"}
    if times != other:
        return {
            "result": "differs",
            "why": "timing",
            "text": f"{sum(times)} and {sum(other)} s, {times} and {other}",
        }
    return {"result": "same"}


class SuperDSCChecker:
    """Checks what is compiled while it is installed."""

    def __init__(self, file: Path, limit: int | None) -> None:
        self.file = file
        self.limit = limit
        self.seen: set[str] = set()
        #: Name of the test, graph and options.
        self.pending: list[tuple[str, Any, dict[str, Any]]] = []
        self.results: list[dict[str, Any]] = []
        self.load_or_compile = cache.load_or_compile

    def install(self) -> None:
        cache.load_or_compile = self._checked

    def uninstall(self) -> None:
        cache.load_or_compile = self.load_or_compile

    def _checked(self, builder: Any, options: dict[str, Any]) -> Any:
        graph = self.load_or_compile(builder, options)
        plain = {k: v for k, v in options.items() if k != "dump_dir"}
        key = _C.get_cache_key(builder, plain)
        full = self.limit is not None and len(self.seen) >= self.limit
        if key not in self.seen and not full:
            self.seen.add(key)
            test = os.environ.get("PYTEST_CURRENT_TEST", "")
            self.pending.append((test, builder, plain))
        return graph

    def check_pending(self) -> None:
        """Check the graphs of the tests that have ended."""
        while self.pending:  # A check may compile kernels of its own.
            test, builder, options = self.pending.pop(0)
            try:
                result = check(builder, options)
            except Exception as error:
                result = {"result": "differs", "why": "raised", "text": repr(error)}
            result["test"] = test
            if result["result"] != "same":
                result["graph"] = builder.print()
            self.results.append(result)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")

    def report(self) -> tuple[str, bool]:
        """Counts, with a line per reason; whether nothing differed."""
        counts = Counter(result["result"] for result in self.results)
        lines = [
            f"SuperDSC: {counts['same']} graphs the same both ways, "
            f"{counts['left out']} left out, {counts['differs']} differ"
        ]
        why = Counter(
            (r["result"], r["why"]) for r in self.results if r["result"] != "same"
        )
        lines += [f"  {n} {kind}: {text}" for (kind, text), n in sorted(why.items())]
        return "\n".join(lines), counts["differs"] == 0
