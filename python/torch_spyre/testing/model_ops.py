# SPDX-License-Identifier: Apache-2.0
"""The command ``spyre-model-ops``: runs descriptors, or records them."""

from __future__ import annotations

import argparse
import difflib
import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch_spyre.testing import (
    descriptors,
    environment,
    pool,
    run_case,
    selection,
)
from torch_spyre.testing.descriptors import Case
from torch_spyre.testing.located import InputError
from torch_spyre.testing.run_case import FAILING, KINDS, Result

_EPILOG = """\
examples:
  spyre-model-ops run models/                      all descriptors of a folder
  spyre-model-ops run models/ --model llama --test-name softmax
  spyre-model-ops run models/ --predict-only --json report.json
  spyre-model-ops run models/ --list-cases-by-mark fp32operation
  spyre-model-ops record my_models:make --name mine -o mine.yaml
  spyre-model-ops record train.py -o train.yaml -- --steps 1
"""


def count(text: str) -> int:
    """An argument that is a whole number from 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1")
    return value


def add_run_options(run: argparse.ArgumentParser) -> None:
    """The options of ``run``; those of the reference's runner, and more."""
    add = run.add_argument
    add("paths", nargs="+", metavar="FILE|FOLDER", help="descriptors")
    add("--model", action="append", default=[], metavar="M", help="only this model")
    add(
        *("--test-name", "--case"),
        action="append",
        default=[],
        metavar="S",
        help="only cases whose name contains this",
    )
    add(
        "-m",
        dest="marks",
        default=selection.DEFAULT_MARKS,
        metavar="EXPR",
        help="only cases with such marks (default: %(default)r; '' is all)",
    )
    add(
        "--dedupe",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run equal cases once, across models (default)",
    )
    add(
        "--compile-backend",
        default=environment.get("TEST_COMPILE_BACKEND") or "inductor",
        metavar="B",
        help="of torch.compile (default: $TEST_COMPILE_BACKEND or inductor)",
    )
    add(
        "--no-device-replace",
        action="store_true",
        help='keep devices named "cuda..." as they are',
    )
    add("--list-models", action="store_true", help="print the models and stop")
    add("--list-cases", action="store_true", help="print the cases and stop")
    add(
        "--list-cases-by-mark",
        nargs="?",
        const="",
        metavar="EXPR",
        help="print the cases with such marks (default: those of -m) and stop",
    )
    add("--show-excluded", action="store_true", help="with the option before: others")
    add("--show-skipped", action="store_true", help="name what did not run, and why")
    add("--predict-only", action="store_true", help="times alone, without any data")
    add("--jobs", type=count, default=1, metavar="N", help="processes (default: 1)")
    add(
        "--timeout",
        type=count,
        default=300,
        metavar="S",
        help="seconds for a case with --jobs above 1 (default: 300)",
    )
    add("--json", metavar="FILE", help="write all results; - is standard output")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spyre-model-ops",
        description="Runs each operator call of models alone, on the device and on "
        "the CPU; records such calls.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_run_options(commands.add_parser("run", help="run descriptors and report"))
    record = commands.add_parser("record", help="write the descriptors of a program")
    add = record.add_argument
    add(
        "program",
        metavar="MODULE:FUNCTION|FILE.py",
        help="a function that returns (module, inputs), inputs a tuple or a dict; "
        "or a script that is run with what follows --",
    )
    add("-o", "--output", required=True, metavar="FILE", help="the YAML to write")
    add("--name", metavar="M", help="the model's name (default: the file's stem)")
    add("--device", default="cpu", help="where the module runs (default: cpu)")
    add("--dtype", default="", help="what its parameters become (default: stay)")
    return parser


# --- run -----------------------------------------------------------------------


def _work(case: Case, predict: bool, backend: str, replace: bool) -> Result:
    if predict:
        return run_case.predict(case)
    return run_case.run(case, backend, replace=replace)


def _lost(case: Case, reason: str) -> Result:
    place = f"{case.file}:{case.line}"
    return Result(case.model, case.name, case.op, place, "error", reason)


def run_cases(
    cases: Sequence[Case],
    *,
    backend: str = "inductor",
    replace: bool = True,
    predict: bool = False,
    jobs: int = 1,
    timeout: float = 300,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Runs cases in this process, or in several that may die. ``done`` sees each."""
    work = functools.partial(_work, predict=predict, backend=backend, replace=replace)
    if jobs > 1:
        return pool.run_all(cases, work, jobs, timeout, _lost, done)
    results = []
    for case in cases:
        results.append(work(case))
        done(results[-1])
    return results


def summarize(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One object per model: counts of kinds, seconds, and what is not right."""
    models: dict[str, list[Result]] = {}
    for result in results:
        models.setdefault(result.model, []).append(result)
    rows = []
    for model, own in models.items():
        kinds = Counter(r.kind for r in own)
        rows.append(
            {
                "model": model,
                "cases": len(own),
                "operators": len({r.op for r in own}),
                **{kind: kinds[kind] for kind in KINDS},
                "host_seconds": sum(r.host_seconds for r in own),
                "compile_seconds": sum(r.compile_seconds for r in own),
                "predicted_seconds": sum(r.predicted_seconds for r in own),
            }
        )
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns of text; the first is their heads."""
    widths = [max(len(c) for c in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def format_report(results: Sequence[Result]) -> str:
    """The report as text: what is not right, then a row per model."""
    lines = []
    for result in results:
        if result.kind not in ("right", "predicted", "skipped"):
            name = f"{result.model}::{result.name}"
            lines.append(f"{result.kind:9} {name} ({result.place}): {result.why}")
    kinds = [k for k in KINDS if k != "skipped"]
    heads = ["model", "cases", *kinds, "host ms", "compile s", "device us"]
    rows = [heads]
    for row in summarize(results):
        rows.append(
            [
                row["model"],
                str(row["cases"]),
                *(str(row[k]) for k in kinds),
                f"{row['host_seconds'] * 1e3:.1f}",
                f"{row['compile_seconds']:.1f}",
                f"{row['predicted_seconds'] * 1e6:.1f}",
            ]
        )
    return "\n".join([*lines, table(rows)])


def _check_models(cases: Sequence[Case], models: Sequence[str]) -> None:
    known = sorted({c.model for c in cases} | {t for c in cases for t in c.tags})
    for model in models:
        if not any(selection.is_of_model(c, model) for c in cases):
            close = difflib.get_close_matches(model, known, 3)
            hint = " or ".join(close) if close else ", ".join(known)
            raise ValueError(f"--model {model}: no such model; there is {hint}")


def _listing(options: argparse.Namespace, cases: list[Case]) -> list[str] | None:
    """What the options of lists print, or None if there is none."""
    if options.list_models:
        return list(dict.fromkeys(c.model for c in cases))
    if options.list_cases_by_mark is not None:
        expression = options.list_cases_by_mark or options.marks
        cases = [
            c
            for c in cases
            if selection.matches(expression, selection.marks_of(c))
            != options.show_excluded
        ]
    elif not options.list_cases:
        return None
    return [f"{c.model}::{c.name}::{c.op} ({c.file})" for c in cases]


def _run(options: argparse.Namespace) -> int:
    if options.show_excluded and options.list_cases_by_mark is None:
        raise ValueError("--show-excluded needs --list-cases-by-mark")
    selection.matches(options.marks, [])
    cases = descriptors.load_all(options.paths)
    _check_models(cases, options.model)
    chosen, skipped = selection.select(
        cases, options.model, options.test_name, options.marks, options.dedupe
    )
    if options.list_models or options.list_cases or options.list_cases_by_mark:
        chosen, _ = selection.select(cases, options.model, options.test_name, "", False)
    listing = _listing(options, cases if options.show_excluded else chosen)
    if listing is not None:
        print("\n".join(listing))
        return 0
    if not chosen:
        raise ValueError("no case is left: all are skipped by the options")
    backends = ("inductor", "spyre", "eager", "aot_eager")
    import torch

    if options.compile_backend not in torch.compiler.list_backends(()) + [*backends]:
        raise ValueError(
            f"--compile-backend {options.compile_backend}: expected a backend of "
            f"torch.compile, such as {', '.join(backends)}"
        )

    def done(result: Result) -> None:
        print(f"{result.kind:9} {result.model}::{result.name}", file=sys.stderr)

    results = run_cases(
        chosen,
        backend=options.compile_backend,
        replace=not options.no_device_replace,
        predict=options.predict_only,
        jobs=options.jobs,
        timeout=options.timeout,
        done=done,
    )
    if options.json != "-":
        print(format_report(results))
        if skipped:
            reasons = Counter(r.split(" ")[0] for _, r in skipped)
            print(f"{len(skipped)} skipped, {reasons['repeats']} of them repeats")
        if options.show_skipped:
            for case, reason in skipped:
                print(f"skipped   {case.model}::{case.name}: {reason}")
    if options.json:
        report = {
            "models": summarize(results),
            "cases": [r.as_json() for r in results],
            "skipped": [
                {"model": c.model, "name": c.name, "why": why} for c, why in skipped
            ],
        }
        text = json.dumps(report, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            Path(options.json).write_text(text, encoding="utf-8")
    return int(any(r.kind in FAILING for r in results))


# --- record --------------------------------------------------------------------


def _record(options: argparse.Namespace, own: Sequence[str]) -> int:
    from torch_spyre.testing import recorder

    name = options.name or Path(options.output).stem
    if options.program.endswith(".py"):
        with recorder.record(name) as recording:
            recorder.run_script(options.program, own)
    else:
        module, inputs = recorder.load_program(
            options.program, options.device, options.dtype
        )
        with recorder.record(name) as recording:
            recorder.call(module, inputs)
    recording.write(options.output)
    print(f"{options.output}: {recording.summary()}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status, 2 for what cannot be read."""
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)
    options = _parser().parse_args(given[:end])
    try:
        if options.command == "run":
            return _run(options)
        return _record(options, given[end + 1 :])
    except (InputError, ValueError, OSError) as error:
        print(f"spyre-model-ops: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
