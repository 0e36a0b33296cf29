# SPDX-License-Identifier: Apache-2.0
"""Measured times of what the passes decide over the best measured ones.

Where the card's measurements hold one kernel with several plans, plans it without a
hint and looks up the measured time of the plan that was made: how a product is divided
over the cores, into how many tiles the rows of a softmax are cut, and whether what lies
between two operations stays in LX. The plans of a sweep are of one source, because
others ran other versions of the card's stack. A division that the sweep lacks, but
another source measured, is compared with the best of all sources. A plan that nobody
measured is not scored. Of the divisions that were measured, the one that the timing
engine finds fastest is scored too: so every product is.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fidelity
from card import measurements, programs
from card.kernels import Kernel
from card.measurements import Measurement
from card.tools import ToolError, device_option, run, tool
from ratios import Ratios

Splits = tuple[int, ...]
Sweeps = dict[tuple[Kernel, str], dict[Splits, float]]

#: DXP_LX_FRAC_AVAIL of a source that does not tell it: the default of the card's back
#: end, and of the model.
LX_FRACTION = 0.2


def is_divided(row: Measurement) -> bool:
    """Whether a row tells how a product without tiles was divided."""
    kernel = row.kernel
    if kernel is None or kernel.splits is None or row.outside:
        return False
    return kernel.tiles == 1 and kernel.tiles_of_k == 1


def sweeps(rows: list[Measurement], microseconds: Iterable[float | None]) -> Sweeps:
    """Times by split, per product, share of LX and source; those with several only."""
    found: Sweeps = {}
    for row, time in zip(rows, microseconds, strict=True):
        kernel = row.kernel
        if time is None:
            continue
        times = found.setdefault((replace(kernel, splits=None), row.source), {})
        splits = kernel.splits
        times[splits] = min(time, times.get(splits, math.inf))
    return {key: times for key, times in found.items() if len(times) > 1}


def of_all_sources(rows: list[Measurement], product: Kernel) -> dict[Splits, float]:
    """The least time of each split of a product with its share of LX."""

    def plain(kernel: Kernel) -> Kernel:
        share = LX_FRACTION if kernel.lx_fraction is None else kernel.lx_fraction
        return replace(kernel, splits=None, lx_fraction=share)

    times: dict[Splits, float] = {}
    for row in rows:
        if plain(row.kernel) == plain(product):
            splits = row.kernel.splits
            times[splits] = min(row.microseconds, times.get(splits, math.inf))
    return times


def planned_splits(kernel: Kernel, cores: int, folder: Path, name: str) -> Splits:
    """Slices of batch, M, N and K that the pipeline takes."""
    for line in plan_text(kernel, cores, folder, name).splitlines():
        if match := re.search(
            r"spyre_graph\.matmul.*division<splits = \[([\d, ]+)\]", line
        ):
            splits = tuple(int(n) for n in match.group(1).split(","))
            return (1,) * (4 - len(splits)) + splits
    raise ToolError(f"no product in the plan of {kernel}")


def plan_text(kernel: Kernel, cores: int, folder: Path, name: str) -> str:
    """What the pipeline plans without a hint."""
    source = folder / f"{name}.mlir"
    source.write_text(programs.write(kernel))
    options = f"cores={cores} to-ktir=false{device_option(kernel, folder, name)}"
    return run([tool("spyre-opt"), f"--spyre-pipeline={options}", str(source)])


def planned_tiles(kernel: Kernel, cores: int, folder: Path, name: str) -> int:
    """Into how many tiles the pipeline cuts the rows."""
    text = plan_text(kernel, cores, folder, name)
    bound = re.search(r"scf\.for %\w+ = %\w+ to (%\w+) step (%\w+)", text)
    if bound is None:
        return 1
    values = dict(re.findall(r"(%\w+) = arith\.constant (\d+) : index", text))
    last, step = (int(values[name]) for name in bound.groups())
    return -(-last // step)


def planned_lx(kernel: Kernel, cores: int, folder: Path, name: str) -> bool:
    """Whether the pipeline places something in LX."""
    return "#spyre_graph.placement<lx" in plan_text(kernel, cores, folder, name)


def variants(
    rows: list[Measurement], field: str, names: tuple[str, ...]
) -> list[tuple[Kernel, int, dict[Any, float]]]:
    """Kernels that were measured with several values of a field: times by value."""
    found: dict[tuple[Kernel, int], dict[Any, float]] = {}
    plain = {"tiles": 1, "lx": True}
    for row in rows:
        kernel = row.kernel
        if kernel is None or row.outside or kernel.name not in names:
            continue
        value = getattr(kernel, field)
        key = replace(kernel, **{field: plain[field]}), row.cores
        times = found.setdefault(key, {})
        times[value] = min(row.microseconds, times.get(value, math.inf))
    return [(*key, times) for key, times in found.items() if len(times) > 1]


#: Of the median and of the worst: measured time of the plan over the best measured.
LIMITS = {"matmul": (1.05, 1.3), "bmm": (1.1, 1.5)}
MOST_UNSCORED = 0.2


class Scores:
    """A table of kernels, and what it comes to."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.ratios: list[float] = []
        self.unscored = 0
        print(f"{title:<32}{'best':<16}{'us':>9}  {'planned':<16}{'us':>9}{'ratio':>7}")

    def add(
        self, kernel: Kernel, times: dict[Any, float], planned: Any, note: str = ""
    ) -> None:
        best = min(times, key=lambda key: times[key])
        extents = "x".join(map(str, kernel.extents))
        line = f"{f'{kernel.name} {extents}':<32}{best!s:<16}{times[best]:>9.1f}"
        if planned in times:
            self.ratios.append(times[planned] / times[best])
            line += f"  {planned!s:<16}{times[planned]:>9.1f}{self.ratios[-1]:>7.2f}"
        else:
            self.unscored += 1
            line += f"  {planned!s:<16}  not measured"
        print(f"{line}  {note}".rstrip())

    def finish(self, found: Ratios) -> None:
        """Adds the median and the worst ratio and the share that is not measured."""
        print(f"{len(self.ratios)} scored, {self.unscored} not measured\n")
        title = f"plan on the card, {self.title}"
        if self.ratios:
            median, worst = LIMITS.get(self.title, (None, None))
            found.add(f"{title}: median", statistics.median(self.ratios), median)
            found.add(f"{title}: worst", max(self.ratios), worst)
        share = self.unscored / (len(self.ratios) + self.unscored)
        found.add(f"{title}: share not measured", share, MOST_UNSCORED)


def score(rows: list[Measurement]) -> Ratios:
    """Plans each kernel and prints what the card took for it. Raises ToolError."""
    ratios = Ratios()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        folder = Path(temporary)

        def splits(item: tuple[int, Any]) -> Splits:
            number, ((kernel, _), times) = item
            cores = max(math.prod(splits) for splits in times)
            return planned_splits(kernel, cores, folder, f"p{number}")

        products = [row for row in rows if is_divided(row)]
        found = list(sweeps(products, [row.microseconds for row in products]).items())
        predictions = fidelity.predict_all(products, folder, None)
        predicted = sweeps(products, [p.microseconds for p in predictions])
        planned = list(pool.map(splits, enumerate(found)))
        for family in ("matmul", "bmm"):
            scores = Scores(family)
            for ((kernel, _), times), chosen in zip(found, planned, strict=True):
                if kernel.family != family:
                    continue
                elsewhere = of_all_sources(products, kernel)
                if chosen not in times and chosen in elsewhere:
                    scores.add(kernel, elsewhere, chosen, "of all sources")
                else:
                    scores.add(kernel, times, chosen)
            scores.finish(ratios)
            scores = Scores(f"{family}, predicted fastest")
            for key, times in found:
                if key[0].family == family:
                    prices = predicted.get(key, {})
                    fastest = min(prices, key=prices.__getitem__, default=None)
                    scores.add(key[0], times, fastest)
            scores.finish(ratios)
        for title, field, names, plan in (
            ("tiles of softmax", "tiles", ("softmax",), planned_tiles),
            ("LX", "lx", ("sum",), planned_lx),
        ):
            scores = Scores(title)
            for number, (kernel, cores, times) in enumerate(
                variants(rows, field, names)
            ):
                scores.add(
                    kernel, times, plan(kernel, cores, folder, f"{field}{number}")
                )
            scores.finish(ratios)
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    options = parser.parse_args()
    try:
        ratios = score(measurements.read(options.data))
    except (measurements.BadData, ToolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return ratios.finish()


if __name__ == "__main__":
    sys.exit(main())
