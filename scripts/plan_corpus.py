# SPDX-License-Identifier: Apache-2.0
"""Record what the compiler makes of every graph of the tests, and compare builds.

A change that only moves code leaves every plan, every bundle and every remark as it
was. Three steps show that::

    scripts/plan_corpus.py collect CORPUS            # graphs, as they are imported
    scripts/plan_corpus.py record CORPUS --build A/build -o a.jsonl
    scripts/plan_corpus.py record CORPUS --build B/build -o b.jsonl
    scripts/plan_corpus.py compare a.jsonl b.jsonl

``collect`` runs the pytest files, the demo and the benchmarks that compile, each in a
process of its own, and writes every graph that reaches the compiler into CORPUS, once;
the graphs of the lit tests come with them. It takes about as long as the tests.
``record`` runs spyre-opt and spyre-translate of one build over the corpus and writes a
line per graph: hashes of the plan with its remarks, of the KTIR, of the plan for
SuperDSC and of the files of its bundles, or the error; and the time that the timing
engine predicts for the KTIR. ``compare`` lists the graphs whose lines differ, with the
times before and after, adds these up and exits with 1 if there are any; ``show`` prints
the difference of one graph between two builds.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from superdsc_sweep import lit_modules

ROOT = Path(__file__).resolve().parent.parent
#: Scripts other than tests that compile graphs, with arguments that keep them short.
SCRIPTS = [["examples/demo.py"], ["benchmarks/plan_traffic.py"]]
#: A graph that takes longer than this, in seconds, is recorded as such.
TIMEOUT = 300
REMARKS = ["--remark-policy=all", "--remarks-filter=.*"]
TARGET = re.compile(r"attributes \{spyre_graph\.target = #spyre_graph\.target<\w+>\} ")
#: What is recorded, in this order.
KINDS = ("plan", "ktir", "superdsc-plan", "bundle")
#: A function of KTIR with its arguments; kernels have a grid.
FUNCTION = re.compile(r"^  func\.func @(\w+)\(.*\) (?!.*grid = ).*\{$", re.MULTILINE)
#: Times that differ by less than this share are equal.
EQUAL = 1e-6


def digest(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- collecting ---------------------------------------------------------------


def run_recording(corpus: Path, arguments: list[str]) -> None:
    """Run a script, or ``-m module``, with every compiled graph written to CORPUS."""
    import torch_spyre  # noqa: F401  (finds the device)
    from torch_spyre.frontend import cache

    original = cache.load_or_compile

    def load_or_compile(builder, options):
        text = builder.print(True).replace(f"{ROOT}/", "")
        kept = {k: v for k, v in options.items() if k in ("cores", "lx_planning")}
        settings = " ".join(
            f"{k.replace('_', '-')}={str(v).lower()}" for k, v in sorted(kept.items())
        )
        text = f"// options: {settings}\n{text}"
        path = corpus / f"{digest(text)}.mlir"
        if not path.exists():
            aside = path.with_suffix(f".{os.getpid()}")
            aside.write_text(text)
            aside.rename(path)
        return original(builder, options)

    cache.load_or_compile = load_or_compile
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


def lit_graphs() -> list[tuple[str, str]]:
    """Name and text of each graph in the lit tests."""
    graphs = []
    for _, parts in lit_modules():
        # Expectations and RUN lines may change while the graph does not.
        texts = [re.sub(r"^\s*//.*\n", "", p, flags=re.MULTILINE) for p in parts]
        graphs += [(f"lit-{digest(text)}", text) for text in texts if text.strip()]
    return graphs


def collect(corpus: Path, jobs: int, only: list[str]) -> int:
    """Fill CORPUS; what an earlier run wrote stays."""
    corpus.mkdir(parents=True, exist_ok=True)
    for name, text in lit_graphs():
        (corpus / f"{name}.mlir").write_text("// options:\n" + text)
    tests = sorted((ROOT / "python" / "tests").glob("test_*.py"))
    commands = [
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(test.relative_to(ROOT))]
        for test in tests
    ] + SCRIPTS
    if only:
        commands = [c for c in commands if any(name in c[-1] for name in only)]

    def run(command: list[str]) -> tuple[str, int]:
        done = subprocess.run(
            [sys.executable, __file__, "run", str(corpus), "--", *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "SPYRE_POISON_FREED": "1",
                "SPYRE_CACHE_DIR": tempfile.mkdtemp(prefix="spyre-corpus-"),
            },
        )
        return command[-1], done.returncode

    with ThreadPoolExecutor(jobs) as pool:
        for name, status in pool.map(run, commands):
            count = len(list(corpus.glob("*.mlir")))
            print(f"{name}: exit status {status}; {count} graphs so far", flush=True)
    return 0


# --- recording ----------------------------------------------------------------


class Build:
    """The tools of one build, run on one graph at a time."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder.resolve() / "bin"
        if not (self.bin / "spyre-opt").exists():
            sys.exit(f"plan_corpus: no spyre-opt in {self.bin}; build it first")

    def tool(self, name: str, *arguments: str) -> tuple[str, str]:
        """Standard output and error; a line with the exit status if that is not 0."""
        try:
            done = subprocess.run(
                [str(self.bin / name), *arguments],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=TIMEOUT,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return "", f"no end after {TIMEOUT} s\n"
        status = f"exit status {done.returncode}\n" if done.returncode else ""
        return done.stdout, done.stderr + status

    def results(self, graph: Path, kinds: tuple[str, ...] = KINDS) -> dict[str, str]:
        """Text of each kind: what the tools print, errors and remarks included."""
        first = graph.read_text().split("\n", 1)[0]
        options = first.removeprefix("// options:").strip()
        texts = {}

        def opt(settings: str, *more: str) -> tuple[str, str]:
            pipeline = f"--spyre-pipeline={settings} {options}"
            out, err = self.tool("spyre-opt", str(graph), pipeline, *more)
            return out, err.replace(str(graph.parent) + "/", "")

        if "plan" in kinds:
            texts["plan"] = "".join(opt("to-ktir=false", *REMARKS))
        if "ktir" in kinds:
            texts["ktir"] = "".join(opt("to-ktir=true"))
        if "superdsc-plan" in kinds or "bundle" in kinds:
            out, err = opt("to-ktir=false superdsc-compatible=true", *REMARKS)
            # Builds before targets were named on modules have no such attribute.
            texts["superdsc-plan"] = TARGET.sub("", out) + err
            if "exit status" not in err and "bundle" in kinds:
                texts["bundle"] = self.bundle(out)
        return texts

    def predict(self, ktir: str) -> float | None:
        """Seconds of all functions of a program; None if they cannot be predicted.

        Functions whose arguments do not say their shapes cannot be.
        """
        entries = FUNCTION.findall(ktir)
        total = 0.0
        for name in entries:
            with tempfile.TemporaryDirectory(prefix="spyre-corpus-") as folder:
                source, report = Path(folder) / "in.mlir", Path(folder) / "out.json"
                source.write_text(ktir)
                flags = [f"--entry={name}", "--predict-only", f"--json={report}"]
                self.tool("spyre-run", str(source), *flags)
                if not report.exists():
                    return None
                total += json.loads(report.read_text())["predicted_seconds"]
        return total if entries else None

    def bundle(self, plan: str) -> str:
        """The files that the writer makes of a plan, one after the other."""
        with tempfile.TemporaryDirectory(prefix="spyre-corpus-") as name:
            source, target = Path(name) / "plan.mlir", Path(name) / "bundle"
            source.write_text(plan)
            command = ("--to-superdsc", str(source), "-o", str(target))
            _, err = self.tool("spyre-translate", *command)
            parts = [err.replace(name + "/", "")]
            for file in sorted(f for f in target.rglob("*") if f.is_file()):
                parts += [f"==> {file.relative_to(target)}\n", file.read_text()]
        return "".join(parts)


def record(corpus: Path, build: Path, output: Path, jobs: int, every: int) -> int:
    """Write a line per graph with the hashes of what the build makes of it."""
    tools = Build(build)
    graphs = sorted(corpus.glob("*.mlir"))[::every]
    if not graphs:
        sys.exit(f"plan_corpus: no graphs in {corpus}; collect them first")

    def one(graph: Path) -> dict[str, str | float | None]:
        texts = tools.results(graph)
        seconds = tools.predict(texts["ktir"])
        hashes = {k: digest(t) for k, t in texts.items()}
        return {"graph": graph.stem, "seconds": seconds, **hashes}

    with ThreadPoolExecutor(jobs) as pool, output.open("w") as file:
        for number, line in enumerate(pool.map(one, graphs), start=1):
            file.write(json.dumps(line) + "\n")
            if number % 200 == 0:
                print(f"{number} of {len(graphs)} graphs", flush=True)
    print(f"{len(graphs)} graphs recorded")
    return 0


# --- comparing ----------------------------------------------------------------


def read(file: Path) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {line.pop("graph"): line for line in lines}


def summarize_times(times: list[tuple[float, float]]) -> str:
    """How much the predicted times of changed graphs, before and after, differ."""
    before, after = (sum(column) * 1e6 for column in zip(*times, strict=True))
    faster = sum(b < a * (1 - EQUAL) for a, b in times)
    slower = sum(b > a * (1 + EQUAL) for a, b in times)
    line = (
        f"predicted times of {len(times)} changed graphs: {before:.1f} us before, "
        f"{after:.1f} us after; {faster} faster, {slower} slower"
    )
    if slower:
        worst = max(b / a for a, b in times)
        line += f", the worst {worst:.3f} times as long"
    return line


def compare(before: Path, after: Path) -> int:
    """List the graphs that both files have and whose results differ."""
    a, b = read(before), read(after)
    both = sorted(a.keys() & b.keys())
    if not both:
        sys.exit("plan_corpus: the files have no graph in common")
    counts: Counter[str] = Counter()
    times: list[tuple[float, float]] = []
    for graph in both:
        kinds = [k for k in KINDS if a[graph].get(k) != b[graph].get(k)]
        counts.update(kinds)
        if not kinds:
            continue
        line = f"{graph}: {', '.join(kinds)}"
        seconds = a[graph].get("seconds"), b[graph].get("seconds")
        if None not in seconds and "ktir" in kinds:
            times.append(seconds)
            line += " ({:.2f} us before, {:.2f} after)".format(
                *(s * 1e6 for s in seconds)
            )
        print(line)
    if times:
        print(summarize_times(times))
    changed = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
    print(
        f"{len(both)} graphs in both, {len(a) - len(both)} only before, "
        f"{len(b) - len(both)} only after; different: {changed}"
    )
    return 1 if counts else 0


def show(graph: Path, before: Path, after: Path) -> int:
    """Print the difference of one graph's results between two builds."""
    a, b = Build(before).results(graph), Build(after).results(graph)
    for kind in KINDS:
        lines = [t.get(kind, "").splitlines(keepends=True) for t in (a, b)]
        sys.stdout.writelines(
            difflib.unified_diff(*lines, f"before/{kind}", f"after/{kind}")
        )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    jobs = {"type": int, "default": os.cpu_count(), "help": "processes at a time"}

    one = commands.add_parser("collect", help="write every graph into a folder")
    one.add_argument("corpus", type=Path)
    one.add_argument("only", nargs="*", help="parts of names of test files and scripts")
    one.add_argument("--jobs", **jobs)

    one = commands.add_parser("run", help="run one script, recording its graphs")
    one.add_argument("corpus", type=Path)
    one.add_argument("arguments", nargs="+", help="after --: a script, or -m module")

    one = commands.add_parser("record", help="hash what a build makes of the graphs")
    one.add_argument("corpus", type=Path)
    one.add_argument("--build", type=Path, default=ROOT / "build")
    one.add_argument("-o", dest="output", type=Path, required=True)
    one.add_argument("--every", type=int, default=1, help="take every N-th graph only")
    one.add_argument("--jobs", **jobs)

    one = commands.add_parser("compare", help="list what two records disagree on")
    one.add_argument("before", type=Path)
    one.add_argument("after", type=Path)

    one = commands.add_parser("show", help="print how one graph's results differ")
    one.add_argument("graph", type=Path)
    one.add_argument("before", type=Path, help="folder of a build")
    one.add_argument("after", type=Path, help="folder of a build")

    arguments = vars(parser.parse_args())
    command = arguments.pop("command")
    if command == "run":
        corpus, script = arguments["corpus"].resolve(), arguments["arguments"]
        run_recording(corpus, script[1:] if script[0] == "--" else script)
        return 0
    return {"collect": collect, "record": record, "compare": compare, "show": show}[
        command
    ](**arguments)


if __name__ == "__main__":
    sys.exit(main())
