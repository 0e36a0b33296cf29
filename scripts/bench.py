# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks/ and prints every number with its limit in one table.

  scripts/bench.py [NAME ...] [--history FILE] [--check] [--list]

Each benchmark's own output goes into build/benchmarks/NAME.log. The numbers are
appended to the history, a line of JSON each: date, commit, machine, benchmark, name,
value, limit, range over repetitions, instructions where they were counted.

--check compares with the last run in the history on such a machine, and exits with 1
if a number has become worse beyond noise:
  where instructions were counted, by more than 2 %: they decide, times do not;
  where a number was measured several times, if its range lies beyond the former one
  and it is more than 5 % worse;
  otherwise by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from ratios import HEAD, RESULTS, Ratio  # noqa: E402

#: Name -> arguments with which the whole ends in less than 15 minutes.
COMMANDS: dict[str, list[str]] = {
    "eager": [],
    "first_call": [],
    "run": [],
    "speed": ["--instructions"],
    "functions": ["--rounds", "2"],
    "checks": ["--rounds", "7"],
    "growth": [],
    "superdsc": ["--repeats", "1"],
    "sizes": [],
    "timing": [],
    "cost_model": [],
    "work_division": [],
    "lx_plan": ["--graphs", "2000"],
    "plan_traffic": [],
    "measured_plans": [],
    "fidelity": ["--summary"],
    "llm": ["--steps", "40", "--rounds", "3"],
    "collectives": [],
}
#: Shares by which a number may be worse without being a regression.
OF_INSTRUCTIONS, OF_TIMES, OF_OTHERS = 0.02, 0.05, 0.01


def run(name: str, logs: Path) -> list[Ratio]:
    """The numbers of one benchmark. Raises RuntimeError if it has none, or crashes."""
    log = logs / f"{name}.log"
    with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
        results = Path(folder) / "results.jsonl"
        command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *COMMANDS[name]]
        done = subprocess.run(
            command,
            env={**os.environ, RESULTS: str(results)},
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
        )
        # 1 is a number over its limit, which the table shows.
        if done.returncode not in (0, 1) or not results.exists():
            raise RuntimeError(f"exit code {done.returncode}; see {log}")
        lines = results.read_text(encoding="utf-8").splitlines()
    return [Ratio(**json.loads(line)) for line in lines]


def machine() -> str:
    """What decides which kernels run and how fast, besides the load."""
    cpu = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    flags = next((x for x in cpu.splitlines() if x.startswith("flags")), "").split()
    kinds = [kind for kind in ("avx2", "avx512f", "amx_tile") if kind in flags]
    return f"{os.cpu_count()} cores {' '.join(kinds)}".strip()


def commit() -> str:
    """The commit that is checked out; "+" if the tree differs from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("diff", "HEAD") else "")


def last_run(history: Path, kind: str) -> dict[tuple[str, str], Ratio]:
    """The newest number of each benchmark and name on a kind of machine."""
    found: dict[tuple[str, str], Ratio] = {}
    if history.exists():
        for line in history.read_text(encoding="utf-8").splitlines():
            entry: dict[str, Any] = json.loads(line)
            if entry["machine"] == kind:
                ratio = Ratio(**entry["ratio"])
                found[entry["benchmark"], ratio.name] = ratio
    return found


def regression(old: Ratio, new: Ratio) -> str | None:
    """In what a number has become worse beyond noise; None if it has not."""
    if old.instructions and new.instructions:
        growth = new.instructions / old.instructions - 1
        return f"{growth:+.1%} instructions" if growth > OF_INSTRUCTIONS else None
    if old.at_least:
        is_fine = old.value - new.value <= OF_OTHERS * abs(old.value)
        return None if is_fine else f"{old.value:.4g} -> {new.value:.4g}"
    share = OF_OTHERS
    if None not in (old.high, new.low):
        if new.low <= old.high:
            return None
        share = OF_TIMES
    is_fine = new.value - old.value <= share * abs(old.value)
    return None if is_fine else f"{old.value:.4g} -> {new.value:.4g}"


def append(history: Path, entries: list[dict[str, Any]]) -> None:
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("a", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument(
        "--history", type=Path, default=ROOT / "build" / "benchmarks" / "history.jsonl"
    )
    parser.add_argument("--check", action="store_true", help="fail on a regression")
    parser.add_argument("--list", action="store_true", help="name them, run nothing")
    options = parser.parse_args()
    if unknown := [n for n in options.names if n not in COMMANDS]:
        parser.error(
            f"no benchmark {', '.join(unknown)}; there are {', '.join(COMMANDS)}"
        )
    if options.list:
        print("\n".join(COMMANDS))
        return 0
    logs = ROOT / "build" / "benchmarks"
    logs.mkdir(parents=True, exist_ok=True)
    kind, started = machine(), time.monotonic()
    before = last_run(options.history, kind)
    stamp = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": kind,
    }
    entries, over, failed, worse = [], 0, [], []
    names = options.names or list(COMMANDS)
    print(HEAD)
    for number, name in enumerate(names, 1):
        elapsed = time.monotonic() - started
        print(f"[{number}/{len(names)} {elapsed:.0f} s] {name}", file=sys.stderr)
        try:
            found = run(name, logs)
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            continue
        print(f"\n{name}" + ("" if found else ": measured nothing, its log says why"))
        for ratio in found:
            print(ratio, flush=True)
            over += not ratio.holds
            entries.append({**stamp, "benchmark": name, "ratio": vars(ratio)})
            old = before.get((name, ratio.name))
            if old and (reason := regression(old, ratio)):
                worse.append(f"{name}: {ratio.name}: {reason}")
    append(options.history, entries)
    print(
        f"\n{len(entries)} numbers, {over} beyond their limit, in "
        f"{time.monotonic() - started:.0f} s on {kind}; added to {options.history}"
    )
    for line in failed:
        print(f"did not run: {line}")
    if options.check:
        print(f"worse than the last run beyond noise: {len(worse)}")
        for line in worse:
            print(f"  {line}")
    return 1 if failed or (options.check and worse) else 0


if __name__ == "__main__":
    sys.exit(main())
