# SPDX-License-Identifier: Apache-2.0
"""Compiles and predicts graphs on very large tensors, without running them.

Each case is a process of its own: one that ends by a signal is a failure of that
case. A case is compiled by ``torch.compile`` and its programs are predicted by
``spyre-run --predict-only``. Work and traffic of the report are compared with what
this file computes from the shapes alone, in Python's integers.

    python large_shapes.py [--list] [--plans] [PATTERN ...]

runs the cases whose names have one of the patterns in them (without one, all) and
prints a line for each. ``--plans`` also plans each graph as the reference does and for
SuperDSC.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from math import prod
from pathlib import Path
from typing import Any

import torch
import torch_spyre
from interpreters import LOADED_LATE
from large_cases import (
    DEVICE_BYTES,
    LIMIT,
    LIMITED,
    STICK_BYTES,
    SUPERDSC_LIMITED,
    Case,
    device_bytes,
    make_cases,
)
from torch_spyre import _C
from torch_spyre.frontend import cache, parts

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build")) / "bin"

#: Seconds for one tool.
TIMEOUT = 300
#: Far above what they take, for busy machines.
MOST_PASS_SECONDS, MOST_MEBIBYTES = 10, 2048

# --- one case, in its own process ---


class Programs:
    """What one function compiled to; nothing of it runs."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.imports: list[str] = []
        self.shapes: list[tuple[int, ...]] = []

    def record(self, builder: Any, options: dict[str, Any]) -> Any:
        self.imports.append(builder.print())
        graph = _C.compile_graph(builder, options)
        self.graphs.append(graph)
        return graph


class Refused(Exception):
    """The compiler's error for a graph."""


def refuse(step: Any, reason: str) -> Any:
    """In place of the operators one by one, which would run."""
    raise Refused(reason)


def compile_case(case: Case) -> Programs:
    programs = Programs()
    parts.CompiledStep._split = parts.CompiledStep._cut_at = refuse
    cache.load_or_compile = programs.record
    _C.CompiledGraph.run = lambda self, *_, **__: None
    # Device memory takes no memory of the host until it is written.
    arguments = [
        torch.empty(shape, dtype=dtype, device="spyre")
        for shape, dtype in case.arguments
    ]
    torch_spyre.reset_fallback_report()
    compiled = torch.compile(case.function, backend="spyre", dynamic=False)
    result = compiled(*arguments)
    assert tuple(result.shape) == case.result, f"result of shape {result.shape}"
    assert result.dtype == case.result_dtype, f"result of {result.dtype}"
    fallbacks = torch_spyre.fallback_report()
    assert not fallbacks, f"ran on the CPU: {fallbacks}"
    assert programs.graphs, "nothing was compiled"
    return programs


def run_tool(*command: str | Path, may_refuse: bool = False) -> bool:
    """Whether a tool took its input. May it refuse, then only for the limit."""
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=TIMEOUT
    )
    if may_refuse and done.returncode == 1 and LIMIT in done.stderr:
        return False
    assert done.returncode == 0, (
        f"{Path(command[0]).name} {done.returncode}: {done.stderr[:600]}"
    )
    return True


def predict(graph: Any, folder: Path) -> dict[str, Any]:
    program, report = folder / "program.mlir", folder / "report.json"
    program.write_text(graph.print_ktir())
    run_tool(TOOLS / "spyre-run", program, "--predict-only", "--json", report)
    return json.loads(report.read_text())


def add_up(reports: list[dict[str, Any]]) -> dict[str, int]:
    """Totals of a case; a report's own must be the sums of its kernels'."""
    totals = {"macs": 0, "read": 0, "written": 0, "demanded": 0}
    for report in reports:
        memory = report["bytes"]["device_memory"]
        for key in ("read", "written", "demanded"):
            kernels = [k["bytes"]["device_memory"][key] for k in report["kernels"]]
            assert sum(kernels) == memory[key], f"{key} of the kernels: {kernels}"
            totals[key] += memory[key]
        for key in ("read", "written"):
            tensors = sum(t[f"bytes_{key}"] for t in report["tensors"])
            assert tensors == memory[key], f"{key} by tensor: {tensors}"
        assert sum(k["pt_macs"] for k in report["kernels"]) == report["pt_macs"]
        totals["macs"] += report["pt_macs"]
        assert report["predicted_seconds"] > 0
    return totals


def check(case: Case, totals: dict[str, int]) -> None:
    """Compares with what follows from the shapes."""
    assert totals["macs"] == case.macs, (
        f"{totals['macs']} multiply-accumulates, expected {case.macs}"
    )
    least = case.least_read or [None] * len(case.arguments)
    read = sum(
        device_bytes(*argument) if bytes_ is None else bytes_
        for argument, bytes_ in zip(case.arguments, least, strict=True)
    )
    written = device_bytes(case.result, case.result_dtype)
    if not case.result:
        written = STICK_BYTES
    assert totals["read"] >= read, f"{totals['read']} bytes read, at least {read}"
    assert totals["demanded"] >= totals["read"]
    # A transposed or reduced result may be stored with another stick.
    least_written = prod(case.result) * DEVICE_BYTES[case.result_dtype]
    assert totals["written"] >= least_written, (
        f"{totals['written']} bytes written, at least {least_written}"
    )
    if case.once:
        assert (totals["read"], totals["written"]) == (read, written), (
            f"{totals['read']} and {totals['written']} bytes read and written, "
            f"expected {read} and {written}"
        )


def plan_otherwise(programs: Programs, folder: Path) -> list[str]:
    """Plans as the reference, and for SuperDSC; returns what they refuse.

    The reference does not know of tiles when it splits, and SuperDSC has no loops
    that accumulate and slices of one size only.
    """
    refused = []
    opt, translate = TOOLS / "spyre-opt", TOOLS / "spyre-translate"
    for text in programs.imports:
        source, planned = folder / "import.mlir", folder / "planned.mlir"
        source.write_text(text)
        run_tool(opt, source, "--spyre-pipeline=verify-each", "-o", planned)
        reference = "--spyre-pipeline=mode=reference"
        if not run_tool(opt, source, reference, "-o", planned, may_refuse=True):
            refused.append("reference")
        superdsc = "--spyre-pipeline=superdsc-compatible=true to-ktir=false"
        if not run_tool(opt, source, superdsc, "-o", planned, may_refuse=True):
            refused.append("SuperDSC")
            continue
        run_tool(translate, "--to-superdsc", planned, "-o", folder / "bundle")
    return refused


def run_case(case: Case, plans: bool) -> str:
    """Compiles, predicts and checks a case; says what it took."""
    started = time.perf_counter()
    if case.name in LIMITED:
        try:
            compile_case(case)
        except Refused as error:
            assert LIMIT in str(error), str(error)
            return f"refused as expected, {time.perf_counter() - started:.2f} s"
        raise AssertionError("compiles, although it is listed as refused")
    programs = compile_case(case)
    compiled = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="spyre-large-") as name:
        folder = Path(name)
        totals = add_up([predict(graph, folder) for graph in programs.graphs])
        predicted = time.perf_counter()
        check(case, totals)
        refused = plan_otherwise(programs, folder) if plans else []
        if plans:
            isListed = case.name in SUPERDSC_LIMITED
            assert ("SuperDSC" in refused) == isListed, (
                f"SuperDSC {'takes' if isListed else 'refuses'} it, unlike listed"
            )
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    tools = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    passes = sum(s for g in programs.graphs for _, s in g.pass_seconds)
    # Passes do not depend on extents, nor does memory but for the predicted steps.
    assert passes < MOST_PASS_SECONDS, f"passes took {passes} s"
    assert max(own, tools) < MOST_MEBIBYTES, f"took {own} and {tools} MiB"
    return (
        f"{totals['macs']} macs, {totals['read']} read, {totals['written']} written, "
        f"passes {passes:.3f} s, compile {compiled - started:.2f} s, "
        f"predict {predicted - compiled:.2f} s, {own} MiB, tools {tools} MiB"
        + "".join(f", {plan} refuses" for plan in refused)
    )


def run_apart(case: Case, plans: bool) -> tuple[bool, str]:
    """Runs a case in a child process; whether it passed, and its line."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            text, status = run_case(case, plans), 0
        except BaseException as error:
            text, status = f"{type(error).__name__}: {error}", 1
        with os.fdopen(write_end, "w") as pipe:
            pipe.write(text)
        os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        text = f"ended by signal {-status} {text}"
    return status == 0, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--plans", action="store_true", help="other pipelines as well")
    parser.add_argument("pattern", nargs="*", help="regular expressions")
    options = parser.parse_args()
    # Freed device memory is not written: it would take memory of the host.
    os.environ["SPYRE_POISON_FREED"] = "0"
    cases = [
        case
        for case in make_cases().values()
        if not options.pattern
        or any(re.search(pattern, case.name) for pattern in options.pattern)
    ]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    # The cases share what is loaded here.
    for name in LOADED_LATE:
        importlib.import_module(name)
    failures = 0
    for case in cases:
        passed, text = run_apart(case, options.plans)
        failures += not passed
        print(f"{'pass' if passed else 'FAIL'} {case.name}: {text}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} cases passed")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
