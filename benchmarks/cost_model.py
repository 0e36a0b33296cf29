# SPDX-License-Identifier: Apache-2.0
"""The cost model against the timing engine, on the shapes of work_division.py.

Each shape is planned by our rules and by the reference's; the cost model's price of
the operation stands beside the time that the timing engine predicts for its kernels.
Prints the rank correlation (Spearman's) per kind of shape and over all of them, the
factor between the two, and how our plan fares against the reference's in the timing
engine. Exits with 1 if the ranks over all shapes agree less than LIMIT.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import work_division
from ratios import Ratios

LIMIT = 0.9
PLAN = (
    "builtin.module(func.func(spyre-propagate-layouts,spyre-work-division{{{options}}}),"
    "spyre-bufferize,func.func(spyre-lx-planning,spyre-memory-planning,"
    "spyre-verify-plan),convert-spyre-graph-to-ktir)"
)
PLANS = {"ours": "", "reference": "mode=reference"}


def predict(tools: Path, text: str, options: str, folder: Path) -> float:
    """Seconds of all kernels of a function in the timing engine."""
    source, program, report = (folder / n for n in ("in.mlir", "out.mlir", "r.json"))
    source.write_text(text)
    for command in (
        [
            tools / "spyre-opt",
            source,
            f"--pass-pipeline={PLAN.format(options=options)}",
            "-o",
            program,
        ],
        [tools / "spyre-run", program, "--predict-only", "--json", report],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
    kernels = json.loads(report.read_text())["kernels"]
    return sum(kernel["predicted_seconds"] for kernel in kernels)


def ranks(values: list[float]) -> np.ndarray:
    """Ranks from 0; equal values share the mean of theirs."""
    data = np.asarray(values)
    return np.array(
        [((data < x).sum() + (data <= x).sum() - 1) / 2 for x in data], float
    )


def rank_correlation(a: list[float], b: list[float]) -> float:
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=work_division.ROOT / "build")
    parser.add_argument("--every", type=int, default=1, help="take each n-th shape")
    arguments = parser.parse_args()
    tools = arguments.build / "bin"
    shapes = list(enumerate(work_division.make_shapes()))[:: arguments.every]
    #: Per kind: price and prediction of both plans.
    rows: dict[str, list[tuple[float, float, float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "shapes.mlir"
        file.write_text("".join(text for _, (_, text) in shapes))
        prices = {
            plan: work_division.run(tools / "spyre-opt", file, options)
            for plan, options in PLANS.items()
        }
        for number, (kind, text) in shapes:
            row = []
            for plan, options in PLANS.items():
                row.append(prices[plan][f"f{number}"][0])
                row.append(predict(tools, text, options, folder))
            rows.setdefault(kind, []).append(tuple(row))
    print(
        f"{'kind':<22}{'plans':>7}{'rank corr.':>12}{'engine / model':>16}{'least':>8}"
        f"{'most':>8}{'ours / reference':>18}{'worst':>8}"
    )

    def print_row(name: str, values: list[tuple[float, float, float, float]]) -> float:
        price = [row[0] for row in values] + [row[2] for row in values]
        predicted = [row[1] for row in values] + [row[3] for row in values]
        factors = [b / a for a, b in zip(price, predicted, strict=True)]
        against = [row[1] / row[3] for row in values]
        correlation = rank_correlation(price, predicted)
        print(
            f"{name:<22}{len(price):>7}{correlation:>12.4f}"
            f"{statistics.geometric_mean(factors):>16.3f}{min(factors):>8.2f}"
            f"{max(factors):>8.2f}{statistics.geometric_mean(against):>18.3f}"
            f"{max(against):>8.2f}"
        )
        return correlation

    for kind, values in rows.items():
        print_row(kind, values)
    overall = print_row("all", [row for values in rows.values() for row in values])
    found = Ratios()
    title = "rank correlation, cost model and engine, all shapes"
    found.add(title, overall, LIMIT, at_least=True)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
