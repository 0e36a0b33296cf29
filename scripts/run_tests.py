# SPDX-License-Identifier: Apache-2.0
"""Run lit and pytest over a build and sum up what they counted.

lit runs the GoogleTests too, through its own format: `ninja check-spyre` is its part.

The last line is `N passed, N failed, N skipped`; the exit status is 1 when
anything failed. A runner that ran no test, crashed or wrote no result counts as
one failure more: nothing to run is not success.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# No single pytest file takes longer than this, in seconds.
PYTEST_TIMEOUT = 3600


@dataclass
class Counts:
    """How many tests passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failing(counts: Counts, status: int, what: str) -> Counts:
    """Count a failing status without a failed test, and an empty run, as one."""
    if status != 0 and counts.failed == 0:
        print(f"{what}: exit status {status} without a failed test", flush=True)
        counts.failed += 1
    elif counts.passed + counts.failed == 0:
        print(f"{what}: ran no test", flush=True)
        counts.failed += 1
    return counts


def run_lit(build: Path, results: Path, extra: list[str]) -> Counts:
    """Run lit over a build's tests; its report has one result code per test."""
    report = results / "lit.json"
    lit = Path(sys.executable).with_name("lit")
    suites = [str(build / "test"), str(build / "unittests")]
    status = subprocess.run([lit, "-v", "-o", report, *extra, *suites]).returncode
    counts = Counts()
    if report.exists():
        for test in json.loads(report.read_text(encoding="utf-8"))["tests"]:
            if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
                counts.passed += 1
            elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
                counts.skipped += 1
            else:
                counts.failed += 1
    return failing(counts, status, "lit")


def run_pytest_file(file: Path, results: Path) -> tuple[Counts, str]:
    """Run pytest over one file; return its counts and what it printed."""
    report = results / f"{file.stem}.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", str(file)]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PYTEST_TIMEOUT,
        )
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or ""
        if isinstance(output, bytes):
            output = output.decode(errors="replace")
        output += f"\n{file.name}: no end after {PYTEST_TIMEOUT} s\n"
        return Counts(failed=1), output
    counts = Counts()
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            counts.failed += failed
            counts.skipped += skipped
            counts.passed += int(suite.get("tests", 0)) - failed - skipped
    output = done.stdout
    if done.returncode != 0 and counts.failed == 0:
        output += f"{file.name}: exit status {done.returncode} without a failed test\n"
        counts.failed = 1
    seconds = time.monotonic() - started
    summary = f"{file.name}: {counts} ({seconds:.0f} s)\n"
    # What went well is worth a line.
    return counts, output + summary if counts.failed else summary


def run_pytest(build: Path, results: Path, extra: list[str]) -> Counts:
    """Run pytest as pyproject.toml configures it, a process per file.

    The files share the machine's cores, and one that crashes takes no other
    with it.
    """
    del build
    files = [Path(f) for f in extra] or sorted(
        (ROOT / "python" / "tests").glob("test_*.py"),
        key=lambda file: -file.stat().st_size,
    )
    counts = Counts()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        futures = [pool.submit(run_pytest_file, file, results) for file in files]
        for future in as_completed(futures):
            of_file, output = future.result()
            counts += of_file
            print(output, end="", flush=True)
    return failing(counts, 0, "pytest")


RUNNERS = {"lit": run_lit, "pytest": run_pytest}


def main() -> int:
    """Run the runners asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runner", nargs="?", choices=RUNNERS, help="default: all")
    parser.add_argument("extra", nargs="*", help="lit arguments, or files")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    arguments, unknown = parser.parse_known_args()

    build = arguments.build.resolve()
    results = build / "test-results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    # What an earlier build compiled is no result of this one.
    os.environ["SPYRE_CACHE_DIR"] = str(results / "cache")
    # The tools that tests call are this build's.
    os.environ["PATH"] = os.pathsep.join([str(build / "bin"), os.environ["PATH"]])

    total = Counts()
    summary = []
    for name in [arguments.runner] if arguments.runner else RUNNERS:
        print(f"==> {name}", flush=True)
        started = time.monotonic()
        counts = RUNNERS[name](build, results, arguments.extra + unknown)
        total += counts
        seconds = time.monotonic() - started
        summary.append(f"{name}: {counts} ({seconds:.0f} s)")
    print("==> summary", *summary, total, sep="\n", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
