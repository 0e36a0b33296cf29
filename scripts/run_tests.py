# SPDX-License-Identifier: Apache-2.0
"""Run lit and pytest over a build and sum up what they counted.

lit runs the GoogleTests too, through its own format: `ninja check-spyre` is its part.

The last line is `N passed, N failed, N skipped`; the exit status is 1 when
anything failed. A runner that ran no test, crashed or wrote no result counts as
one failure more: nothing to run is not success.
"""

import argparse
import atexit
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))

import interpreters  # noqa: E402

# No single pytest file takes longer than this, in seconds.
PYTEST_TIMEOUT = 3600
# They are small and take longest. Whichever is last has the machine for itself.
FIRST = (
    "test_distributed.py",
    "test_sliding_caches.py",
    "test_upstream_suites.py",
    "test_large_shapes.py",
)
# What most files import, at once or with their first compilation, beside what
# interpreters.load() imports.
PRELOADED = (
    "pytest",
    "numpy",
    "torch_spyre.compile_backend",
    "torch_spyre.frontend.eager",
    "torch._dynamo.testing",
    "torch._inductor.ir",
    "functorch.compile",
    "sympy.tensor.tensor",
)


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


def preload() -> None:
    """Import what takes a file of tests seconds of its own.

    Nothing here starts a thread or touches the device, so that a copy of the process
    is as good as a new one. What cannot be imported fails in the files that use it.
    """
    # numpy's pool of threads does not outlive a fork; the workers are enough.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The files use all cores already, and OpenMP's threads wait spinning.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Plug-ins of libraries that happen to be installed.
    os.environ.setdefault("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    try:
        interpreters.load()
    except Exception as error:
        print(f"torch: {error}", file=sys.stderr)
    else:
        interpreters.copy_as_original()
        with suppress(Exception):
            interpreters.load_backends()
    for name in PRELOADED:
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(Exception):
        sys.modules["torch_spyre.decompositions.table"].decompositions()
        # What is frozen below is counted nowhere: that takes longer than a compilation.
        sys.modules["torch_spyre.frontend.tracing_time"]._user_freezes = True
        # Reads every file of the package.
        sys.modules["torch_spyre.frontend.traced"]._source_hash()
    # Collections neither visit this again nor copy its pages. A compilation makes
    # hundreds of thousands of objects that live as long as it does.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def leave_operators() -> None:
    """Let operators that Python registered with PyTorch end with the process.

    PyTorch takes them back one by one.
    """
    library = sys.modules.get("torch.library")
    for finalizer in list(weakref.finalize._registry) if library else ():
        alive = finalizer.peek()
        if alive and alive[1] is library._del_library:
            finalizer.atexit = False


@dataclass
class FileRun:
    """A process that runs pytest over one file."""

    file: Path
    report: Path
    log: Path
    #: Holds the processor time of the interpreters that it asked for.
    copies: Path
    started: float

    def run_pytest(self) -> NoReturn:
        """End as ``python -m pytest`` over the file ends."""
        os.chdir(ROOT)
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(null)
        os.close(log)
        sys.path[0] = str(ROOT)
        # Exceptions in garbage are warnings, which nobody would see, and looking for
        # them takes a collection of everything.
        sys.argv = ["pytest", "-q", "-p", "no:unraisableexception"]
        sys.argv += [f"--junitxml={self.report}", str(self.file)]
        import pytest

        status = pytest.main(sys.argv[1:])
        self.copies.write_text(str(interpreters.processor_seconds))
        # As Python ends, but for a third of a second in which it would free what a
        # compilation made, object by object; programs that tests run end in full.
        leave_operators()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    def is_late(self) -> bool:
        """Whether the file has taken longer than any may."""
        return time.monotonic() - self.started > PYTEST_TIMEOUT

    def result(self, status: int, processor_seconds: float) -> tuple[Counts, str]:
        """What a process counted that ended with a status, and what it printed."""
        counts = Counts()
        if self.report.exists():
            for suite in ElementTree.parse(self.report).getroot().iter("testsuite"):
                failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
                skipped = int(suite.get("skipped", 0))
                counts.failed += failed
                counts.skipped += skipped
                counts.passed += int(suite.get("tests", 0)) - failed - skipped
        output = self.log.read_text(encoding="utf-8", errors="replace")
        if self.copies.exists():
            processor_seconds += float(self.copies.read_text())
        name = self.file.name
        seconds = time.monotonic() - self.started
        if self.is_late():
            output += f"\n{name}: no end after {PYTEST_TIMEOUT} s\n"
        if status != 0 and counts.failed == 0:
            output += f"{name}: exit status {status} without a failed test\n"
            counts.failed = 1
        summary = (
            f"{name}: {counts} ({seconds:.0f} s, {processor_seconds:.0f} s of processor"
            " time)\n"
        )
        # What went well is worth a line.
        return counts, output + summary if counts.failed else summary


def start(file: Path, results: Path) -> tuple[int, FileRun]:
    """Run pytest over a file in a copy of this process; return its id."""
    run = FileRun(
        file,
        results / f"{file.stem}.xml",
        results / f"{file.stem}.log",
        results / f"{file.stem}.copies",
        time.monotonic(),
    )
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        run.run_pytest()
    # Here too: whichever process comes first.
    with suppress(OSError):
        os.setpgid(process, process)
    return process, run


def run_pytest(build: Path, results: Path, extra: list[str]) -> Counts:
    """Run pytest as pyproject.toml configures it, a process per file.

    The files share the machine's cores, and one that crashes takes no other
    with it.
    """
    del build
    waiting = [Path(f).resolve() for f in extra] or sorted(
        (ROOT / "python" / "tests").glob("test_*.py"),
        key=lambda file: (file.name not in FIRST, -file.stat().st_size),
    )
    preload()
    this = os.getpid()
    counts = Counts()
    running: dict[int, FileRun] = {}
    try:
        while waiting or running:
            while waiting and len(running) < min(os.cpu_count() or 1, 8):
                process, run = start(waiting.pop(0), results)
                running[process] = run
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if process not in running:
                for process, run in running.items():
                    if run.is_late():
                        os.killpg(process, signal.SIGKILL)
                time.sleep(0.05)
                continue
            of_file, output = running.pop(process).result(
                os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
            )
            counts += of_file
            print(output, end="", flush=True)
    finally:
        # The terminal interrupts none of them. A copy passes here, too.
        if os.getpid() == this:
            for process in running:
                os.killpg(process, signal.SIGKILL)
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
