# SPDX-License-Identifier: Apache-2.0
"""Run tiny members of public model families on the device and say how each did.

The models are those of model_zoo.py: of transformers, timm and ibm-fms, with random
weights. What is done with each:

  eager     a forward pass, operator by operator
  compiled  the same by torch.compile(backend="spyre"), called twice
  superdsc  one plan run from KTIR and from SuperDSC: the same bits?
  training  for some: gradients and a step of SGD, eagerly and compiled

Each is

  right     nothing ran on the CPU, no graph break that the CPU does not have, and
            the worst error is at most 4 times that of fp16 on the CPU, or 2^-9 of the
            largest value
  fallback  right, but something ran on the CPU
  break     right, but compiled as more graphs than the CPU's
  imprecise an error is above that, and below 2^-6 of the largest value, at most
            twice what is right, or at most twice that of a CPU that rounds the result
            of every operator as the device does
  wrong     another value or shape
  error     an error that the CPU does not raise; for superdsc, what it cannot say
  invalid   fails on the CPU, too

  scripts/models.py [--only NAME ...] [--steps STEP ...] [--state FILE]
                    [--jobs N] [--doc FILE] [--commit ID] [--no-run] [--list]

`make models` runs all with the state in build/models.jsonl. A run that was stopped
goes on from there, with the steps that are missing; another commit starts anew.
Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import model_zoo
from model_entry import STEPS, run_entry
from opinfo import head

ROOT = Path(__file__).resolve().parent.parent
KINDS = (
    "right",
    "fallback",
    "break",
    "imprecise",
    "wrong",
    "error",
    "invalid",
    "not run",
)
LIBRARIES = ("torch", "transformers", "timm", "ibm-fms")
#: Seconds for one model.
TIMEOUT = 900


def load(state: Path | None, commit: str) -> dict[str, Any]:
    """The results of a commit that a file has."""
    if state is None or not state.exists():
        return {}
    results: dict[str, Any] = {}
    for line in state.read_text().splitlines():
        result = json.loads(line)
        if result["commit"] == commit:
            _add(results, result)
    return results


def _add(results: dict[str, Any], result: dict[str, Any]) -> None:
    """Adds the steps of a result to those that are known of its model."""
    known = results.get(result["name"], {"steps": {}})
    steps = {**known["steps"], **result["steps"]}
    results[result["name"]] = {**known, **result, "steps": steps}


def run_all(
    entries: list[model_zoo.Entry],
    steps: tuple[str, ...],
    jobs: int,
    state: Path | None,
    commit: str,
    results: dict[str, Any],
) -> None:
    """Runs in processes that are replaced when they die or hang; adds to results."""
    from torch_spyre.testing import pool

    started, count = time.monotonic(), 0
    rest = []
    for entry in entries:
        known = results.get(entry.name, {"steps": {}})["steps"]
        if missing := [s for s in entry.steps(steps) if s not in known]:
            rest.append((entry.name, tuple(missing)))

    def done(result: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        result["commit"] = commit
        _add(results, result)
        if state:
            state.parent.mkdir(parents=True, exist_ok=True)
            with state.open("a") as file:
                file.write(json.dumps(result) + "\n")
        kinds = " ".join(f"{s}:{o['kind']}" for s, o in result["steps"].items())
        elapsed = time.monotonic() - started
        print(
            f"[{count}/{len(rest)} {elapsed:.0f} s] {result['name']:32} {kinds}",
            file=sys.stderr,
            flush=True,
        )

    def lost(item: Any, reason: str) -> dict[str, Any]:
        steps = {step: {"kind": "error", "why": reason} for step in item[1]}
        return {"name": item[0], "steps": steps}

    pool.run_all(rest, run_entry, jobs, TIMEOUT, lost, done)


def _whole(
    entry: model_zoo.Entry, known: dict[str, Any] | None, steps: Sequence[str]
) -> dict[str, Any]:
    """A result of which each step that was asked for is known, or "not run"."""
    missing = {"kind": "not run", "why": ""}
    found = known["steps"] if known else {}
    wanted = {step: found.get(step, missing) for step in entry.steps(steps)}
    return {"kind": entry.kind, "steps": wanted}


# --- report ----------------------------------------------------------------------


def _counts(results: dict[str, Any]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {step: Counter() for step in STEPS}
    for result in results.values():
        for step, outcome in result["steps"].items():
            counts[step][outcome["kind"]] += 1
    return counts


def report(results: dict[str, Any]) -> str:
    """Counts, then what is not right."""
    lines = []
    for step, kinds in _counts(results).items():
        found = ", ".join(f"{kinds[k]} {k}" for k in KINDS if kinds[k])
        lines.append(f"{step}: {found or 'none'}, of {kinds.total()}")
    for name, result in results.items():
        for step, outcome in result["steps"].items():
            if outcome["kind"] != "right":
                kind, why = outcome["kind"], outcome["why"]
                lines.append(f"  {kind:8} {step:8} {name}: {why}")
    return "\n".join(lines)


def _cell(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    if outcome["kind"] != "right":
        return outcome["kind"]
    return f"{outcome['error']:.2f}" if "error" in outcome else "same bits"


def write_doc(results: dict[str, Any], path: Path, commit: str) -> None:
    """Writes the page of the documentation."""
    from importlib.metadata import version

    counts = _counts(results)
    libraries = ", ".join(f"{n} {version(n)}" for n in LIBRARIES)
    lines = [
        "# Model families on the device",
        "",
        "Written by `make models`; `scripts/models.py --help` says what the words",
        "mean. Tiny members with random weights, unmodified, in fp16. A number is the",
        "worst error over the largest that is right.",
        f"All ran on commit {commit}, with {libraries}.",
        "",
        "| | " + " | ".join(STEPS) + " |",
        "|---|" + "---|" * len(STEPS),
    ]
    for kind in KINDS:
        if any(counts[s][kind] for s in STEPS):
            row = " | ".join(str(counts[s][kind]) for s in STEPS)
            lines.append(f"| {kind} | {row} |")
    groups: dict[str, list[str]] = {}
    for name, result in results.items():
        groups.setdefault(result["kind"], []).append(name)
    for kind, names in groups.items():
        lines += ["", f"## {kind.capitalize()}", ""]
        lines += [
            "| model | " + " | ".join(STEPS) + " |",
            "|---|" + "---|" * len(STEPS),
        ]
        for name in names:
            steps = results[name]["steps"]
            lines.append(
                f"| `{name}` | " + " | ".join(_cell(steps.get(s)) for s in STEPS) + " |"
            )
    lines += _reasons(results)
    path.write_text("\n".join(lines).rstrip() + "\n")


def _reasons(results: dict[str, Any]) -> list[str]:
    rows = [
        f"| `{name}` | {step} | {outcome['kind']} | {_escaped(outcome['why'])} |"
        for name, result in results.items()
        for step, outcome in result["steps"].items()
        if outcome["kind"] != "right"
    ]
    if not rows:
        return []
    return [
        "",
        "## What is not right",
        "",
        "| model | | | why |",
        "|---|---|---|---|",
    ] + rows


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace(str(ROOT), "").replace("<", "&lt;")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="models to run")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--state", type=Path, metavar="FILE", help="results so far")
    parser.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="page to write")
    parser.add_argument("--commit", metavar="ID", help="what the page says ran")
    parser.add_argument("--no-run", action="store_true", help="report what --state has")
    parser.add_argument("--list", action="store_true", help="names of all models")
    options = parser.parse_args()
    entries = {e.name: e for e in model_zoo.entries()}
    if options.list:
        print("\n".join(f"{e.name:32} {e.kind}" for e in entries.values()))
        return
    names = options.only or list(entries)
    if unknown := [n for n in names if n not in entries]:
        parser.error(f"no model is called {', '.join(unknown)}; see --list")
    if options.no_run and not options.state:
        parser.error("--no-run needs --state")
    commit = options.commit or head()
    chosen = [entries[n] for n in names]
    known = load(options.state, commit)
    if not options.no_run:
        run_all(
            chosen, tuple(options.steps), options.jobs, options.state, commit, known
        )
    results = {e.name: _whole(e, known.get(e.name), options.steps) for e in chosen}
    print(report(results))
    if options.doc:
        write_doc(results, options.doc, commit)
    outcomes = [o for r in results.values() for o in r["steps"].values()]
    sys.exit(any(o["kind"] == "wrong" for o in outcomes))


if __name__ == "__main__":
    main()
