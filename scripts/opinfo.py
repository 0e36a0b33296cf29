# SPDX-License-Identifier: Apache-2.0
"""Run PyTorch's OpInfo database on the device and say how every entry ran.

For each entry of op_db that takes fp16, all its fp16 samples run eagerly on
spyre tensors: forward, and with --backward or --both the gradients of entries
that the CPU differentiates in fp16 (the backward pass alone is classified). An
entry is

  native      every sample ran as compiled programs on the device model, with
              traffic on its memory (views and empty results need none), nothing
              ran on the CPU, all values within bounds
  kernel      right and nothing ran on the CPU, but some result comes from a kernel
              of the device that is no program (random numbers, some copies)
  fallback    the values are right, but something ran on the CPU
  format      wrong where the CPU computes with NaN, which DL16 does not have: the
              device has infinity in its place (spec/numerics.md)
  imprecise   ran natively; some value is out of bounds by rounding only: the
              error is below 2^-6 of the largest value
  unsupported a sample needs a dtype or sparse layout that the device lacks
  failing     an error that the CPU does not raise, or a crash
  wrong       another value, shape or dtype than the CPU's, or an argument's
              storage changed that the CPU does not change

A sample that asks for float64, complex numbers or sparse tensors, by a dtype, layout
or tensor among its arguments, is left out. An entry all of whose samples are left out
is "left out", and not native.

Bounds: results in fp64 from inputs rounded as the device rounds them; integers
and booleans agree exactly, floats within 4 units in the last place, or their RMS
error is at most twice that of an oracle that rounds after every ATen operator
(spec/numerics.md). Where the CPU's sort does not keep the order of equal elements,
the order that it would keep is right, too; a mode sorts, too. Samples are those of a
fixed seed.

  scripts/opinfo.py [--only NAME ...] [--limit N] [--backward | --both]
                    [--state FILE] [--json FILE] [--doc FILE] [--commit ID]
                    [--jobs N]

The page names the commit of this clone; --commit names another, where the results
were made elsewhere. --state FILE keeps the results in FILE.forward and
FILE.backward; a run that was stopped goes on from there. With --no-run what they
hold is reported.

Prints numerator and denominator, and every entry that is not native. Exits with
1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from opinfo_entry import KINDS, LEFT_OUT, has_backward, run_entry

ROOT = Path(__file__).resolve().parent.parent
MEANINGS = {
    "native": "Programs on the device, within bounds",
    "kernel": "Right, on the device, but not as programs alone",
    "fallback": "Right, but partly on the CPU",
    "format": "Infinity in place of NaN",
    "imprecise": "Native, out of bounds by rounding",
    "unsupported": "A dtype or sparse layout that the device does not have",
    "failing": "An error",
    "wrong": "A wrong result",
    LEFT_OUT: "All samples ask for float64, complex numbers or sparse tensors",
    "not run": "Not run in the time there was",
}
#: Seconds for one sample.
TIMEOUT = 300


def entries() -> list[Any]:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if torch.float16 in op.supported_dtypes("cpu")]


def name_of(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def work(names: list[str], limit: int | None, backward: bool) -> None:
    """Runs entries one after the other; JSON lines, one per entry and sample."""
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    warnings.simplefilter("ignore")
    by_name = {name_of(op): op for op in entries()}
    for name in names:
        started = time.perf_counter()
        result = run_entry(
            by_name[name], limit, backward, lambda: print("{}", flush=True)
        )
        result["seconds"] = round(time.perf_counter() - started, 2)
        print(json.dumps({"name": name, **result}), flush=True)


# --- all of them ---------------------------------------------------------------


def _work_until_it_ends(command: list[str], take: Callable[[dict], None]) -> str:
    """Runs a worker, killed if a sample takes too long; how it ended."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    last = time.monotonic()
    killed = threading.Event()

    def watch() -> None:
        while process.poll() is None:
            time.sleep(1)
            if time.monotonic() - last > TIMEOUT:
                killed.set()
                process.kill()
                return

    threading.Thread(target=watch, daemon=True).start()
    for line in process.stdout:
        last = time.monotonic()
        if line.endswith("\n") and (result := json.loads(line)):
            take(result)
    if killed.is_set():
        return f"no end after {TIMEOUT} seconds"
    return "" if process.wait() == 0 else "crash"


def run_all(
    names: list[str],
    limit: int | None,
    backward: bool,
    state: Path | None,
    run: bool,
    jobs: int,
) -> dict[str, Any]:
    """Runs entries in processes, ``jobs`` at a time, replaced when they die or hang.

    What ``state`` holds is not run again; each result is added to it. Without
    ``run``, what it lacks is "not run".
    """
    results: dict[str, Any] = {}
    taking = threading.Lock()

    def take(result: dict[str, Any]) -> None:
        with taking:
            print(f"{result['kind']:11} {result['name']}", file=sys.stderr, flush=True)
            if state:
                with state.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            results[result.pop("name")] = result

    if state and state.exists():
        for line in state.read_text().splitlines():
            result = json.loads(line)
            results[result.pop("name")] = result
    if not run:
        missing = {"kind": "not run", "why": "", "samples": 0}
        return {n: results.get(n, missing) for n in names}
    options = [] if limit is None else ["--limit", str(limit)]
    if backward:
        options.append("--backward")

    def run_part(part: list[str]) -> None:
        while rest := [n for n in part if n not in results]:
            command = [sys.executable, __file__, "--work", *rest, *options]
            ended = _work_until_it_ends(command, take)
            rest = [n for n in rest if n not in results]
            if rest and ended:
                take({"name": rest[0], "kind": "failing", "why": ended, "samples": 0})

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_part, [names[i::jobs] for i in range(jobs)]))
    return {n: results[n] for n in names}


def _kinds(total: Counter[str]) -> list[str]:
    more = [kind for kind in (LEFT_OUT, "not run") if kind in total]
    return [*KINDS, *more]


def report(results: dict[str, Any], direction: str) -> str:
    total = Counter(r["kind"] for r in results.values())
    lines = [f"native: {total['native']} of {len(results)} fp16 entries, {direction}"]
    lines += [f"{kind}: {total[kind]}" for kind in _kinds(total)[1:]]
    out = {n: r.get("kinds", {}).get(LEFT_OUT, 0) for n, r in results.items()}
    lines.append(f"samples left out: {sum(out.values())}")
    lines += [f"  {name}: {count}" for name, count in sorted(out.items()) if count]
    for kind in reversed(_kinds(total)[1:]):
        for name, result in sorted(results.items()):
            if result["kind"] == kind:
                lines.append(f"  {kind:11} {name}: {result['why']}")
    return "\n".join(lines)


def _table(results: dict[str, Any]) -> list[str]:
    total = Counter(r["kind"] for r in results.values())
    samples: Counter[str] = Counter()
    for result in results.values():
        samples.update(result.get("kinds", {}))
    if samples[LEFT_OUT]:
        total.setdefault(LEFT_OUT, 0)
    return [
        "| | entries | samples |",
        "|---|---|---|",
        *(f"| {kind} | {total[kind]} | {samples[kind]} |" for kind in _kinds(total)),
        f"| all | {len(results)} | {samples.total()} |",
        "",
    ]


def _section(results: dict[str, Any], kind: str) -> list[str]:
    names = sorted(n for n, r in results.items() if r["kind"] == kind)
    if not names:
        return []
    lines = [f"### {kind.capitalize()}", ""]
    if kind == "native":
        return [*lines, ", ".join(f"`{n}`" for n in names) + ".", ""]
    lines += [f"{MEANINGS[kind]}.", "", "| entry | why |", "|---|---|"]
    for name in names:
        why = results[name]["why"].replace("|", "\\|").replace(str(ROOT), "")
        lines.append(f"| `{name}` | {why} |")
    return [*lines, ""]


def _samples_left_out(results: dict[str, Any]) -> list[str]:
    """Of entries that have other samples, too."""
    out = {
        name: result["kinds"][LEFT_OUT]
        for name, result in sorted(results.items())
        if result["kind"] != LEFT_OUT and LEFT_OUT in result.get("kinds", {})
    }
    if not out:
        return []
    text = ", ".join(f"`{name}` {count}" for name, count in out.items())
    return ["### Samples left out", "", f"{text}.", ""]


def head() -> str:
    """The commit of this clone, or "unknown"."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def write_doc(
    runs: dict[str, dict[str, Any]],
    path: Path,
    limits: dict[str, int | None],
    commit: str,
) -> None:
    """Writes direction -> results as a page."""
    lines = [
        "# PyTorch's OpInfo database on the device",
        "",
        "Written by `scripts/opinfo.py`, which says what the words mean. Eager",
        "operators on fp16 samples of every entry of `op_db` that takes fp16.",
        f"An entry is of the worst kind of its samples. All ran on commit {commit}.",
        "",
    ]
    for direction, results in runs.items():
        limit = limits[direction]
        which = "All samples" if limit is None else f"The first {limit} samples"
        lines += [f"## {direction.capitalize()}", "", f"{which} of each entry.", ""]
        lines += _table(results)
        for kind in MEANINGS:
            lines += _section(results, kind)
        lines += _samples_left_out(results)
    path.write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="entries to run")
    parser.add_argument("--limit", type=int, metavar="N", help="samples per entry")
    parser.add_argument(
        "--limit-backward", type=int, metavar="N", help="the same for gradients"
    )
    parser.add_argument(
        "--backward", action="store_true", help="gradients in place of results"
    )
    parser.add_argument("--both", action="store_true", help="results, then gradients")
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="results so far; goes on from there"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes at a time"
    )
    parser.add_argument("--no-run", action="store_true", help="report what --state has")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all results")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="Markdown table")
    parser.add_argument("--commit", metavar="ID", help="what the page says ran")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.limit, options.backward)
        return
    warnings.simplefilter("ignore")
    known = {name_of(op): op for op in entries()}
    names = options.only or list(known)
    if unknown := [n for n in names if n not in known]:
        parser.error(f"no fp16 entry is called {', '.join(unknown)}")
    if options.no_run and not options.state:
        parser.error("--no-run needs --state")
    runs = {}
    directions = [options.backward] if not options.both else [False, True]
    limits = {"forward": options.limit}
    limits["backward"] = options.limit_backward or options.limit
    for backward in directions:
        direction = "backward" if backward else "forward"
        state = options.state
        if state:
            state = state.with_name(f"{state.name}.{direction}")
        chosen = [n for n in names if not backward or has_backward(known[n])]
        runs[direction] = run_all(
            chosen,
            limits[direction],
            backward,
            state,
            not options.no_run,
            options.jobs,
        )
        print(report(runs[direction], direction))
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
    if options.doc:
        write_doc(runs, options.doc, limits, options.commit or head())
    sys.exit(any(r["kind"] == "wrong" for run in runs.values() for r in run.values()))


if __name__ == "__main__":
    main()
