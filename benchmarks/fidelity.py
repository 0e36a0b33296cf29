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
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from card import measurements, programs
from card.measurements import EXCLUDED, Measurement

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ("pointwise", "reduction", "matmul", "bmm", "softmax", "transpose")


def tool(name: str) -> str:
    return shutil.which(name) or str(ROOT / "build" / "bin" / name)


@dataclass
class Prediction:
    row: Measurement
    #: None: the program could not be made; `reason` says why.
    microseconds: float | None
    reason: str = ""
    bottleneck: str = ""

    @property
    def ratio(self) -> float:
        assert self.microseconds is not None
        return self.microseconds / self.row.microseconds

    @property
    def factor(self) -> float:
        return max(self.ratio, 1 / self.ratio)

    @property
    def counts(self) -> bool:
        return not self.row.outside and self.row.id not in EXCLUDED


def run(command: list[str]) -> str:
    """What a command prints. Raises NotExpressible with its first error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line]
        text = (lines or done.stderr.splitlines() or ["no message"])[0]
        raise programs.NotExpressible(text.split("error: ")[-1])
    return done.stdout


def compile_row(row: Measurement, folder: Path) -> Path:
    """The KTIR program of a row. Raises NotExpressible."""
    assert row.kernel is not None
    source, program = folder / f"{row.id}.mlir", folder / f"{row.id}.ktir"
    source.write_text(programs.write(row.kernel))
    options = f"cores={row.cores} lx-planning={str(row.kernel.lx).lower()}"
    run(
        [
            tool("spyre-opt"),
            f"--spyre-pipeline={options}",
            str(source),
            "-o",
            str(program),
        ]
    )
    return program


def predict(row: Measurement, folder: Path, device: Path | None) -> Prediction:
    """The prediction of a row, without the launch, as the card's profiler tells it."""
    if row.kernel is None:
        return Prediction(row, None, row.reason)
    try:
        program = folder / f"{row.id}.ktir"
        if not program.exists():
            compile_row(row, folder)
        count = program.read_text().split("func.func @main(")[1].split("{\n")[0]
        command = [tool("spyre-run"), str(program), "--entry=main", "--predict-only"]
        command += ["--arg=zeros"] * count.count("ktdp.layout =")
        command += [f"--device={device}"] if device else []
        report = json.loads(run([*command, "--json=-"]))
    except programs.NotExpressible as error:
        return Prediction(row, None, str(error))
    seconds = report["predicted_seconds"] - report["launch_seconds"]
    return Prediction(row, seconds * 1e6, "", report["bottleneck"])


def predict_all(
    rows: Iterable[Measurement], folder: Path, device: Path | None
) -> list[Prediction]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda row: predict(row, folder, device), rows))


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
    return (
        f"{title:<12}{len(found):>6}{statistics.median(factors):>9.3f}"
        f"{quantile(factors, 0.9):>9.3f}{max(factors):>9.2f}{ratio:>9.3f}"
    )


def print_tables(found: list[Prediction], worst: int) -> None:
    predicted = [p for p in found if p.microseconds is not None]
    for title, chosen in (
        ("rows that count for goals", [p for p in predicted if p.counts]),
        ("all rows with a prediction", predicted),
    ):
        print(f"\n{title}")
        print(
            f"{'kind':<12}{'rows':>6}{'median':>9}{'p90':>9}{'worst':>9}{'p/m':>9}   "
            "(factor between predicted and measured)"
        )
        for family in FAMILIES:
            of_family = [p for p in chosen if p.row.kernel.family == family]
            print(summary(family, of_family))
        print(summary("all", chosen))
    counting = sorted((p for p in predicted if p.counts), key=lambda p: -p.factor)
    print(f"\nthe {worst} worst rows that count")
    for p in counting[:worst]:
        print(line(p))


def line(p: Prediction) -> str:
    row = p.row
    head = f"{row.id} {row.op[:24]:<24} {row.shapes[:28]:<28} {row.state[:34]:<34}"
    if p.microseconds is None:
        return f"{head} {row.microseconds:>10.1f}  not expressed: {p.reason}"
    mark = "" if p.counts else f"  ({row.outside or 'excluded'})"
    return (
        f"{head} {row.microseconds:>10.1f} {p.microseconds:>10.1f} {p.ratio:>7.3f}"
        f"  {p.bottleneck}{mark}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    parser.add_argument("--device", type=Path, help="numbers of the device, as JSON")
    parser.add_argument("--rows", nargs="*", help="only these ids")
    parser.add_argument("--worst", type=int, default=12, help="rows to list")
    parser.add_argument("--summary", action="store_true", help="no line per row")
    parser.add_argument("--keep", type=Path, help="folder for the programs")
    options = parser.parse_args()
    try:
        rows = measurements.read(options.data)
    except measurements.BadData as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.rows:
        if unknown := set(options.rows) - {row.id for row in rows}:
            print(f"error: no row {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        rows = [row for row in rows if row.id in options.rows]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = predict_all(rows, folder, options.device)
    if not options.summary:
        for p in found:
            print(line(p))
    print_tables(found, options.worst)
    missing = [p for p in found if p.microseconds is None]
    print(f"\n{len(found) - len(missing)} of {len(found)} rows expressed; the others:")
    reasons: dict[str, int] = {}
    for p in missing:
        reasons[p.reason] = reasons.get(p.reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"{count:>5}  {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
