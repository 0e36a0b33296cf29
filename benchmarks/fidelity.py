# SPDX-License-Identifier: Apache-2.0
"""Predicted times against published kernel times of the card.

Turns each row of the measurements into the program that was measured, as far as the row
tells: operation, shapes, cores, slices per dimension, tiles of rows, intermediates in
LX. Predicts it, without running it, and prints predicted / measured per row, and the
factor between the two per kind of kernel. Rows that cannot be expressed are listed with
the reason. docs/internals/timing.md says where the rows are from.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from card import measurements, plot, programs
from card.measurements import Measurement
from card.tools import Devices, ToolError, compile_row, predict_program, run, tool
from ratios import Ratios

__all__ = ["Prediction", "ToolError", "predict_all", "programs", "run", "tool"]
FAMILIES = ("pointwise", "reduction", "matmul", "bmm", "softmax", "transpose")


@dataclass
class Prediction:
    row: Measurement
    #: None: the program could not be made; `reason` says why.
    microseconds: float | None
    reason: str = ""
    bottleneck: str = ""
    #: Microseconds between which 8 of 10 measurements should lie.
    interval: tuple[float, float] = (0.0, 0.0)

    @property
    def is_inside(self) -> bool:
        return self.interval[0] <= self.row.microseconds <= self.interval[1]

    @property
    def ratio(self) -> float:
        assert self.microseconds is not None
        return self.microseconds / self.row.microseconds

    @property
    def factor(self) -> float:
        return max(self.ratio, 1 / self.ratio)

    @property
    def counts(self) -> bool:
        return not self.row.outside


def predict(row: Measurement, folder: Path, devices: Devices) -> Prediction:
    """The prediction of a row, without the launch, as the card's profiler tells it.

    Raises ToolError with the row's id.
    """
    if row.kernel is None:
        return Prediction(row, None, row.reason)
    try:
        program = compile_row(row, folder)
        report = predict_program(program, devices.file(row.kernel))
    except programs.NotExpressible as error:
        return Prediction(row, None, str(error))
    except ToolError as error:
        raise ToolError(f"{row.id}: {error}") from error
    times = (report["predicted_seconds"], *report["interval_seconds"])
    predicted, low, high = ((t - report["launch_seconds"]) * 1e6 for t in times)
    return Prediction(row, predicted, "", report["bottleneck"], (low, high))


def predict_all(
    rows: Iterable[Measurement], folder: Path, device: Path | None
) -> list[Prediction]:
    """Predictions in the order of the rows. Raises ToolError."""
    devices = Devices(device, folder)
    devices.check()
    pool = ThreadPoolExecutor(2)
    try:
        return list(pool.map(lambda row: predict(row, folder, devices), rows))
    finally:
        # After an error, what has not begun is of no use.
        pool.shutdown(cancel_futures=True)


def quantile(values: list[float], share: float) -> float:
    """By linear interpolation, as numpy's."""
    values = sorted(values)
    position = share * (len(values) - 1)
    low = math.floor(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (position - low)


def summary(title: str, found: list[Prediction]) -> str:
    if not found:
        return f"{title:<12}{0:>6}"
    factors = [p.factor for p in found]
    ratio = statistics.median(p.ratio for p in found)
    inside = sum(p.is_inside for p in found) / len(found)
    return (
        f"{title:<12}{len(found):>6}{statistics.median(factors):>9.3f}"
        f"{quantile(factors, 0.9):>9.3f}{max(factors):>9.2f}{ratio:>9.3f}{inside:>8.0%}"
    )


def print_tables(found: list[Prediction], worst: int) -> None:
    predicted = [p for p in found if p.microseconds is not None]
    some = [p for p in predicted if not p.row.is_excluded]
    for title, chosen in (
        ("rows that count for goals", [p for p in predicted if p.counts]),
        (
            "rows that count for goals, and the excluded ones",
            [p for p in predicted if p.counts or p.row.is_excluded],
        ),
        ("all rows with a prediction but the excluded ones", some),
        ("all rows with a prediction", predicted),
    ):
        print(f"\n{title}")
        print(
            f"{'kind':<12}{'rows':>6}{'median':>9}{'p90':>9}{'worst':>9}"
            f"{'p/m':>9}{'inside':>8}   "
            "(factor between predicted and measured; inside the interval)"
        )
        for family in FAMILIES:
            print(summary(family, [p for p in chosen if p.row.family == family]))
        print(summary("all", chosen))
    counting = sorted((p for p in predicted if p.counts), key=lambda p: -p.factor)
    print(f"\nthe {worst} worst rows that count")
    for p in counting[:worst]:
        print(line(p))


def ratios(found: list[Prediction]) -> Ratios:
    """Median and 90th percentile of the factor of the rows that count.

    The goals are for rows left out of a fit, which fit.py prints: no limits here.
    """
    result = Ratios()
    for family in FAMILIES:
        factors = [
            p.factor
            for p in found
            if p.microseconds is not None and p.counts and p.row.family == family
        ]
        if factors:
            title = f"predicted and measured, {family}"
            result.add(f"{title}: median factor", statistics.median(factors))
            result.add(f"{title}: 90 % of factors", quantile(factors, 0.9))
    return result


def print_coverage(found: list[Prediction]) -> None:
    """How many of the rows that tell their plan have a program, and of all."""
    print("\nrows with a program, of those whose split is known, and of all")
    others = sorted({p.row.family for p in found} - set(FAMILIES))
    of = {family: [p for p in found if p.row.family == family] for family in FAMILIES}
    of |= {name: [p for p in found if p.row.family == name] for name in others}
    for family, rows in {**of, "all": found}.items():
        known = [p for p in rows if p.row.plan_known]
        made = sum(p.microseconds is not None for p in known)
        share = f"{made / len(known):.0%}" if known else "-"
        total = sum(p.microseconds is not None for p in rows)
        print(
            f"{family:<16}{made:>5} of {len(known):>3}{share:>6}"
            f"{total:>6} of {len(rows):>3}"
        )
    print("the others:")
    reasons: dict[str, int] = {}
    for p in found:
        if p.microseconds is None:
            reasons[p.reason] = reasons.get(p.reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"{count:>5}  {reason}")


def write_plot(found: list[Prediction], file: Path) -> None:
    """A panel per family with all rows that have a prediction. Raises OSError."""
    panels = []
    for family in FAMILIES:
        points = [
            plot.Point(p.row.microseconds, p.ratio, p.counts, p.row.id)
            for p in found
            if p.microseconds is not None and p.row.family == family
        ]
        panels.append(plot.Panel(family, points))
    file.write_text(plot.svg(panels), encoding="utf-8")


def line(p: Prediction) -> str:
    row = p.row
    head = f"{row.id} {row.op[:24]:<24} {row.shapes[:28]:<28} {row.state[:34]:<34}"
    if p.microseconds is None:
        return f"{head} {row.microseconds:>10.1f}  not expressed: {p.reason}"
    mark = "" if p.counts else f"  ({row.outside})"
    return (
        f"{head} {row.microseconds:>10.1f} {p.microseconds:>10.1f} {p.ratio:>7.3f}"
        f"  {p.bottleneck}{mark}"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    parser.add_argument("--device", type=Path, help="numbers of the device, as JSON")
    parser.add_argument("--rows", nargs="+", help="only these ids")
    parser.add_argument("--worst", type=int, default=12, help="rows to list")
    parser.add_argument("--summary", action="store_true", help="no line per row")
    parser.add_argument("--keep", type=Path, help="folder for the programs")
    parser.add_argument("--plot", type=Path, help="SVG file for the residuals")
    return parser.parse_args()


def main() -> int:
    options = parse()
    try:
        rows = measurements.read(options.data)
        if options.rows:
            if unknown := set(options.rows) - {row.id for row in rows}:
                raise measurements.BadData(f"no row {', '.join(sorted(unknown))}")
            rows = [row for row in rows if row.id in options.rows]
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            found = predict_all(rows, folder, options.device)
        if options.plot:
            write_plot(found, options.plot)
    except (measurements.BadData, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not options.summary:
        for p in found:
            print(line(p))
    print_tables(found, options.worst)
    print_coverage(found)
    return ratios(found).finish()


if __name__ == "__main__":
    sys.exit(main())
