# SPDX-License-Identifier: Apache-2.0
"""Fits numbers of the device to published kernel times of the card.

The timing engine itself is in the loop: fidelity.py makes a program of each row and
predicts it with given numbers. Gauss-Newton on log(predicted / measured) with a robust
loss finds the numbers. How good they are is told by rows whose shape the fit has not
seen: a refit per fold on the linearised model, evaluated by the engine with
--exact-folds. Resampled shapes give an interval per number. Every run is the same.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fidelity
import merged
import numpy as np
from card import measurements
from card.measurements import Measurement
from robust_fit import (
    FitError,
    Number,
    Problem,
    Row,
    bootstrap,
    coverage,
    folds_of,
    identifying_rows,
    left_out,
    tenths,
)

#: What no source states. Published numbers (clock, rate of the matrix unit, cycles of a
#: transcendental function) stay, and so does an accumulation, which takes as many.
NUMBERS = (
    Number("effectiveMemoryBytesPerSecond", 5e10, 4e11),
    Number("memoryTurnaroundSecondsPerByte", 1e-13, 1e-10),
    Number("coreMemoryBytesPerSecond", 1e10, 4e11),
    Number("memoryRunOverheadBytes", 1, 2000),
    Number("partialProductEfficiency", 0.1, 1),
    Number("overlappedRunBytes", 256, 1e6),
    Number("kernelRepeatSeconds", 1e-7, 1e-4),
)

#: What a family's rows weigh together, however many they are. Transposes are five rows
#: and have no goal.
WEIGHTS = {
    "pointwise": 1.0,
    "reduction": 1.0,
    "matmul": 1.0,
    "bmm": 1.0,
    "softmax": 1.0,
    "transpose": 0.1,
}
#: Median and 90th percentile that the factor should not exceed on left-out rows.
GOALS = {
    "pointwise": (1.12, 1.35),
    "reduction": (1.12, 1.35),
    "matmul": (1.15, 1.5),
    "bmm": (1.3, 2.0),
    "all": (1.3, math.inf),
}
COVERAGE = (0.72, 0.88)
#: Families that have too few rows for percentiles of their own: of seven rows, the
#: lowest and the highest are always outside of what the others span. Transposes and
#: pointwise kernels both read and write device memory once, and wait for nothing else.
SHARES_INTERVAL_WITH = {"transpose": "pointwise"}
FOLDS = 10


class Engine:
    """The timing engine as a predictor. All that is used of fidelity.py is here.

    Rows are predicted together. That is compared with what fidelity.py predicts for
    each with the numbers given; a row that differs is always predicted by itself.
    """

    def __init__(self, data: Path, folder: Path, base: Path | None) -> None:
        self.folder, self.device = folder, folder / "device.json"
        self.command = [fidelity.tool("spyre-run"), f"--device={self.device}"]
        try:
            self.base = json.loads(base.read_text()) if base else {}
            self.device.write_text(json.dumps(self.base))
            self.spec = json.loads(fidelity.run([*self.command, "--print-device-spec"]))
            all_rows = measurements.read(data)
        except (measurements.BadData, OSError, ValueError) as error:
            raise FitError(str(error)) from error
        counting = [r for r in all_rows if fidelity.Prediction(r, None).counts]
        found = fidelity.predict_all(counting, folder, self.device)
        found = [p for p in found if p.microseconds is not None]
        self.measured = [p.row for p in found]
        self.left_out = len(all_rows) - len(found)
        self.rows = [
            Row(
                row.id,
                row.kernel.family,
                row.shape_key,
                row.microseconds,
                f"{row.op[:24]:<24} {row.shapes[:28]:<28} {row.state[:34]:<34}",
            )
            for row in self.measured
        ]
        self.together: set[str] = set()
        try:
            self.programs = merged.Programs(
                {row.id: (folder / f"{row.id}.ktir").read_text() for row in self.rows},
                folder,
                fidelity.run,
            )
            merged_times = self.programs.predict(
                [row.id for row in self.rows], self.command
            )
        except (ValueError, OSError) as error:
            print(f"each row by itself, as together: {error}", file=sys.stderr)
        else:
            self.together = {
                p.row.id
                for p in found
                if math.isclose(merged_times[p.row.id], p.microseconds, rel_tol=1e-9)
            }

    def alone(self, rows: Sequence[Measurement]) -> dict[str, float]:
        found = {}
        for p in fidelity.predict_all(rows, self.folder, self.device):
            if p.microseconds is None:
                raise FitError(f"{p.row.id} has no prediction: {p.reason}")
            found[p.row.id] = p.microseconds
        return found

    def __call__(
        self, numbers: dict[str, float], chosen: Sequence[int], apart: bool = False
    ) -> np.ndarray:
        self.device.write_text(json.dumps({**self.base, **numbers}))
        rows = [self.measured[i] for i in chosen]
        tags = [row.id for row in rows if row.id in self.together and not apart]
        try:
            found = self.programs.predict(tags, self.command) if tags else {}
        except OSError as error:
            raise FitError(f"no prediction with {numbers}: {error}") from error
        found |= self.alone([row for row in rows if row.id not in found])
        return np.array([found[row.id] for row in rows])


def check_numbers(numbers: Sequence[Number], spec: dict[str, Any]) -> None:
    """Raises FitError for what the device does not have or can't be fitted."""
    names = [number.name for number in numbers]
    for number in numbers:
        if names.count(number.name) > 1:
            raise FitError(f"{number.name} occurs twice")
        if number.name not in spec:
            raise FitError(f"the device has no number {number.name}")
        if not isinstance(spec[number.name]["value"], float):
            raise FitError(f"{number.name} is not a real number")
        if not 0 < number.lower < number.upper:
            raise FitError(f"{number.name}: bounds must be positive and ascend")


def interval_rows(rows: Sequence[Row], family: str) -> np.ndarray:
    """A mask of the rows whose percentiles are the family's interval."""
    families = (family, SHARES_INTERVAL_WITH.get(family))
    return np.array([row.family in families for row in rows])


def intervals(rows: Sequence[Row], residuals: np.ndarray) -> dict[str, list[float]]:
    """Per family the 10th and 90th percentile of measured / predicted."""
    found = {}
    for family in fidelity.FAMILIES:
        if any(row.family == family for row in rows):
            limits = tenths(residuals[interval_rows(rows, family)])
            found[family] = [float(f"{math.exp(v):.4g}") for v in limits]
    return found


# The report.


def number_table(
    problem: Problem,
    spec: dict[str, Any],
    fitted: dict[str, float],
    bounds: np.ndarray,
    rows: list[list[tuple[str, float]]],
) -> list[str]:
    lines = [
        f"{'number':<34}{'before':>11}{'fitted':>11}   "
        "5th to 95th percentile of resampled shapes, unit"
    ]
    for j, (name, value) in enumerate(fitted.items()):
        number = problem.numbers[j]
        edge = "  AT ITS BOUND" if value in (number.lower, number.upper) else ""
        lines.append(
            f"{name:<34}{spec[name]['value']:>11.4g}{value:>11.4g}   "
            f"[{bounds[0, j]:.4g}, {bounds[1, j]:.4g}] {spec[name]['unit']}{edge}"
        )
        told = "  ".join(f"{row} {share:.0%}" for row, share in rows[j])
        lines.append(f"    rows that tell: {told or 'none, the number is not fitted'}")
    return lines


def factors(residuals: np.ndarray) -> str:
    values = np.exp(np.abs(residuals))
    return f"{np.median(values):>11.3f}{np.percentile(values, 90):>9.3f}"


def family_table(
    rows: Sequence[Row], groups: np.ndarray, columns: dict[str, np.ndarray]
) -> list[str]:
    """Median and 90th percentile of the factor, the last column's against the goals."""
    lines = [
        "factor between predicted and measured: median, 90th percentile",
        f"{'family':<10}{'rows':>5}" + "".join(f"  {name:>18}" for name in columns),
    ]
    judged = list(columns.values())[-1]
    for family in (*fidelity.FAMILIES, "all"):
        chosen = np.array([family in (row.family, "all") for row in rows])
        if not chosen.any():
            continue
        text = f"{family:<10}{chosen.sum():>5}"
        text += "".join(factors(values[chosen]) for values in columns.values())
        if family != "all":
            pool = interval_rows(rows, family)
            share = coverage(judged[pool], groups[pool], chosen[pool])
            inside = COVERAGE[0] <= share <= COVERAGE[1]
            text += f"   coverage {share:.0%}{'' if inside else ' MISSED'}"
        if family in GOALS:
            values = np.exp(np.abs(judged[chosen]))
            median, high = GOALS[family]
            met = np.median(values) <= median and np.percentile(values, 90) <= high
            goal = f"{median:g}" + (f" / {high:g}" if high < math.inf else "")
            text += f"   goal {goal} {'met' if met else 'MISSED'}"
        lines.append(text)
    return lines


def worst_rows(rows: Sequence[Row], residuals: np.ndarray, count: int) -> list[str]:
    order = sorted(range(len(rows)), key=lambda i: (-abs(residuals[i]), i))[:count]
    return [
        f"{rows[i].id} {rows[i].family:<10} {rows[i].text} "
        f"{rows[i].microseconds:>10.1f} {math.exp(residuals[i]):>7.3f}"
        for i in order
    ]


def fitted_report(
    problem: Problem, spec: dict[str, Any], options: argparse.Namespace
) -> tuple[list[str], np.ndarray, dict[str, float]]:
    """The fit: its report, residuals of rows that are left out, and the numbers."""
    rows, groups = problem.rows, folds_of(problem.rows, FOLDS)
    own = problem.predictor({}, range(len(rows)))
    before = np.log(own) - problem.log_measured
    x, r, jacobian = problem.fit(problem.start(spec), options.iterations)
    problem.say("leaving out shapes and families")
    out = left_out(problem, x, r, jacobian, groups, options.exact_folds)
    families = np.array([row.family for row in rows])
    without = left_out(problem, x, r, jacobian, families, options.exact_folds)
    problem.say("resampling shapes")
    bounds = bootstrap(problem, x, r, jacobian)
    fitted = problem.named(x)
    lines = number_table(
        problem, spec, fitted, bounds, identifying_rows(problem, r, jacobian)
    )
    how = "engine" if options.exact_folds else "linearised"
    columns = {"before": before, "fitted": r, f"shape out ({how[:6]})": out}
    lines += ["", *family_table(rows, groups, columns)]
    lines += ["", "with the whole family left out (numbers that no other row tells"]
    lines += ["of stay as fitted), no goal"]
    for family in fidelity.FAMILIES:
        if (families == family).any():
            lines.append(f"{family:<10}{factors(without[families == family])}")
    lines += ["", f"worst rows left out ({how}): measured us, predicted / measured"]
    lines += worst_rows(rows, out, options.worst)
    return lines, out, fitted


def evaluated_report(
    problem: Problem, options: argparse.Namespace
) -> tuple[list[str], np.ndarray]:
    """The given numbers as they are."""
    predicted = problem.predictor({}, range(len(problem.rows)))
    residuals = np.log(predicted) - problem.log_measured
    groups = folds_of(problem.rows, FOLDS)
    lines = family_table(problem.rows, groups, {"as given": residuals})
    lines += ["", "worst rows: measured us, predicted / measured"]
    lines += worst_rows(problem.rows, residuals, options.worst)
    return lines, residuals


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    parser.add_argument(
        "--device", type=Path, help="numbers to start from, and those not fitted"
    )
    parser.add_argument("--numbers", nargs="+", help="fit only these of the list")
    parser.add_argument("--device-out", type=Path, help="file for the fitted numbers")
    parser.add_argument(
        "--intervals-out", type=Path, help="file for percentiles of measured/predicted"
    )
    parser.add_argument("--evaluate-only", action="store_true", help="fit nothing")
    parser.add_argument(
        "--exact-folds", action="store_true", help="the engine predicts left-out rows"
    )
    parser.add_argument("--iterations", type=int, default=5, help="at most")
    parser.add_argument("--worst", type=int, default=15, help="rows to list")
    parser.add_argument("--keep", type=Path, help="folder for the programs")
    return parser.parse_args()


def main() -> int:
    options = parse()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        known = {number.name: number for number in NUMBERS}
        if unknown := set(options.numbers or known) - set(known):
            raise FitError(f"not in the list: {', '.join(sorted(unknown))}")
        numbers = [known[name] for name in options.numbers or known]
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            say("making the programs")
            engine = Engine(options.data, folder, options.device)
            check_numbers(numbers, engine.spec)
            problem = Problem(engine.rows, numbers, engine, WEIGHTS, say)
            fitted: dict[str, float] = {}
            if options.evaluate_only:
                lines, residuals = evaluated_report(problem, options)
            else:
                lines, residuals, fitted = fitted_report(problem, engine.spec, options)
                every = range(len(engine.rows))
                apart = engine(fitted, every, apart=True)
                if not np.allclose(apart, engine(fitted, every), rtol=1e-9):
                    raise FitError("rows together differ from each by itself")
    except (FitError, fidelity.ToolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(engine.rows)} rows; {engine.left_out} do not count or have no program")
    print("\n".join(lines))
    found = intervals(engine.rows, residuals)
    print("\nmeasured / predicted, 10th to 90th percentile")
    for family, (low, high) in found.items():
        print(f"{family:<10} [{low:.3f}, {high:.3f}]")
    if options.device_out:
        text = json.dumps({**engine.base, **fitted}, indent=2)
        options.device_out.write_text(text + "\n")
    if options.intervals_out:
        options.intervals_out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
