# SPDX-License-Identifier: Apache-2.0
"""Take every graph of the test suite through SuperDSC and compare with KTIR.

Runs pytest with SPYRE_CHECK_SUPERDSC (python/tests/superdsc_check.py) over each
file, and every graph of the lit tests that the compiler takes through
python/tests/planned_formats.py. Prints how many graphs are the same both
ways, how many are left out and why; exit status 1 if any differs.

Usage: scripts/superdsc_sweep.py [--work FOLDER] [FILE...]

FILEs are pytest files or `lit`; by default all. Results stay in FOLDER: a second
run does only what is not there yet.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(ROOT / "python" / "tests"))

import commands  # noqa: E402
import plan_bits  # noqa: E402, F401  (pieces of the two formats may differ in rows)
import planned_formats  # noqa: E402

commands.TIMEOUT = 3600

LIT_FOLDERS = ["Dialect/SpyreGraph", "Compiler", "Target/SuperDSC"]
#: Compile nothing, or in processes that do not load conftest.py.
WITHOUT_GRAPHS = {
    "test_device_layout.py",
    "test_distributed.py",
    "test_layout_optimum.py",
    "test_opinfo.py",
    "test_plan_tiles.py",
    "test_plan_verifier.py",
    "test_planned_formats.py",
    "test_random_divisions.py",
    "test_random_plans.py",
    "test_span_parts.py",
    "test_spyrecode_rules.py",
    "test_superdsc_bundles.py",
    "test_superdsc_operations.py",
    "test_superdsc_rules.py",
    "test_superdsc_schema.py",
}


def run_pytest(file: Path, results: Path) -> bool:
    """Whether the tests passed and no graph differed."""
    environment = {**os.environ, "SPYRE_CHECK_SUPERDSC": str(results)}
    log = results.with_suffix(".log")
    with log.open("w") as out:
        # Each graph is compiled three times: tests take longer than usual.
        command = [sys.executable, "-m", "pytest", "-q", str(file)]
        command += ["-o", "faulthandler_timeout=3600"]
        return (
            subprocess.run(
                command, cwd=ROOT, env=environment, stdout=out, stderr=out
            ).returncode
            == 0
        )


def functions(text: str) -> list[str]:
    """A file per function: what is outside of all functions, and one of them."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(r"func\.func\b", line)]
    ends = [lines.index("}", start) + 1 for start in starts if "}" in lines[start:]]
    parts = list(zip(starts, ends, strict=False))
    if len(parts) < 2 or len(parts) != len(starts):
        return [text]
    outside = [
        line
        for n, line in enumerate(lines)
        if not any(start <= n < end for start, end in parts)
    ]
    return ["\n".join(outside + lines[start:end]) for start, end in parts]


def lit_modules() -> Iterator[tuple[Path, list[str]]]:
    """The lit tests that have graphs on tensors, and the modules in each."""
    for folder in LIT_FOLDERS:
        for file in sorted((ROOT / "test" / folder).glob("*.mlir")):
            yield (
                file,
                re.split(r"^// -----.*$", file.read_text(), flags=re.MULTILINE),
            )


def lit_graphs() -> list[tuple[str, str]]:
    """Name and text of each graph on tensors in the lit tests."""
    graphs = []
    for file, parts in lit_modules():
        texts = [text for part in parts for text in functions(part)]
        graphs += [(f"{file.stem}_{n}", text) for n, text in enumerate(texts)]
    return graphs


def run_lit(results: Path) -> bool:
    """Whether each graph that compiles gives the same both ways."""
    path = f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}

    def check(graph: tuple[str, str]) -> dict | None:
        name, text = graph
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "graph.mlir"
            planned = Path(folder) / "planned" / f"{name}.mlir"
            planned.parent.mkdir()
            source.write_text(text)
            pipeline = "--spyre-pipeline=superdsc-compatible=true to-ktir=false"
            compiled = subprocess.run(
                ["spyre-opt", pipeline, source, "-o", planned],
                env=environment,
                capture_output=True,
            )
            if compiled.returncode != 0 or "memref<" not in planned.read_text():
                return None
            written = subprocess.run(
                ["spyre-translate", "--to-superdsc", planned, "-o", f"{folder}/b"],
                env=environment,
                capture_output=True,
                text=True,
            )
            if written.returncode != 0:
                why = written.stderr.splitlines()[0].split("error: ")[-1]
                return {"result": "left out", "why": why, "test": name}
            try:
                planned_formats.check_superdsc(planned, Path(folder))
            except (AssertionError, subprocess.TimeoutExpired) as error:
                why = str(error).strip()[-300:]
                return {"result": "differs", "why": why, "test": name}
            return {"result": "same", "test": name}

    with ThreadPoolExecutor(2) as pool, results.open("a") as out:
        found = [r for r in pool.map(check, lit_graphs()) if r is not None]
        out.writelines(json.dumps(result) + "\n" for result in found)
    return all(result["result"] != "differs" for result in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "superdsc-sweep")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    files = arguments.files or [
        *sorted(
            str(f.relative_to(ROOT))
            for f in (ROOT / "python" / "tests").glob("test_*.py")
            if f.name not in WITHOUT_GRAPHS
        ),
        "lit",
    ]
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    good = True
    for name in files:
        results = arguments.work / f"{Path(name).stem}.jsonl"
        done = results.with_suffix(".done")
        if not done.exists():
            results.unlink(missing_ok=True)
            passed = run_lit(results) if name == "lit" else run_pytest(name, results)
            results.touch()
            done.write_text("passed" if passed else "failed")
        good &= done.read_text() == "passed"
        counts: Counter[str] = Counter()
        for line in results.read_text().splitlines():
            result = json.loads(line)
            counts[result["result"]] += 1
            if result["result"] != "same":
                reasons[result["result"], result["why"]] += 1
        total += counts
        print(
            f"{Path(name).stem}: {counts['same']} same, {counts['left out']} left out, "
            f"{counts['differs']} differ, tests {done.read_text()}",
            flush=True,
        )
    print(
        f"in total {total['same']} graphs the same both ways, "
        f"{total['left out']} left out, {total['differs']} differ"
    )
    for (kind, why), count in sorted(reasons.items()):
        print(f"  {count} {kind}: {why}")
    return 0 if good and not total["differs"] else 1


if __name__ == "__main__":
    sys.exit(main())
