# SPDX-License-Identifier: Apache-2.0
"""Measured time of the split that work division takes over the best measured one.

For every product of which the card's measurements hold several splits, plans the
product without a hint on as many cores as its largest split has, and looks up the
measured time of the split that was planned. One that was not measured is not scored.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from card import measurements, programs
from card.kernels import Kernel
from card.measurements import Measurement
from card.tools import ToolError, device_option, run, tool

Splits = tuple[int, ...]


def sweeps(rows: list[Measurement]) -> dict[tuple[Kernel, str], dict[Splits, float]]:
    """Times by split, per product, share of LX and source; those with several only."""
    found: dict[tuple[Kernel, str], dict[Splits, float]] = {}
    for row in rows:
        kernel = row.kernel
        if kernel is None or kernel.splits is None or row.outside:
            continue
        if kernel.tiles > 1 or kernel.tiles_of_k > 1:
            continue
        times = found.setdefault((replace(kernel, splits=None), row.source), {})
        splits = kernel.splits
        times[splits] = min(row.microseconds, times.get(splits, math.inf))
    return {key: times for key, times in found.items() if len(times) > 1}


def planned_splits(kernel: Kernel, cores: int, folder: Path, name: str) -> Splits:
    """Slices of batch, M, N and K that the pipeline takes."""
    source = folder / f"{name}.mlir"
    source.write_text(programs.write(kernel))
    options = f"cores={cores} to-ktir=false{device_option(kernel, folder, name)}"
    text = run([tool("spyre-opt"), f"--spyre-pipeline={options}", str(source)])
    for line in text.splitlines():
        if match := re.search(
            r"spyre_graph\.matmul.*division<splits = \[([\d, ]+)\]", line
        ):
            splits = tuple(int(n) for n in match.group(1).split(","))
            return (1,) * (4 - len(splits)) + splits
    raise ToolError(f"no product in the plan of {source}")


def score(found: dict[tuple[Kernel, str], dict[Splits, float]]) -> None:
    """Plans each product and prints what the card took for it. Raises ToolError."""
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:

        def plan(item: tuple[int, tuple[Kernel, dict[Splits, float]]]) -> Splits:
            number, (kernel, times) = item
            cores = max(math.prod(splits) for splits in times)
            return planned_splits(kernel, cores, Path(temporary), f"p{number}")

        sweep = [(kernel, times) for (kernel, _), times in found.items()]
        planned = list(pool.map(plan, enumerate(sweep)))
    print(f"{'extents':<26}{'best':<16}{'us':>9}  {'planned':<16}{'us':>9}{'ratio':>7}")
    ratios: dict[str, list[float]] = {"matmul": [], "bmm": []}
    unscored: dict[str, int] = {"matmul": 0, "bmm": 0}
    for (kernel, times), splits in zip(sweep, planned, strict=True):
        best = min(times, key=lambda key: times[key])
        line = (
            f"{'x'.join(map(str, kernel.extents)):<26}{best!s:<16}{times[best]:>9.1f}"
        )
        if splits in times:
            ratio = times[splits] / times[best]
            ratios[kernel.family].append(ratio)
            print(f"{line}  {splits!s:<16}{times[splits]:>9.1f}{ratio:>7.2f}")
        else:
            unscored[kernel.family] += 1
            print(f"{line}  {splits!s:<16}  not measured")
    for family, values in ratios.items():
        if values:
            print(
                f"{family}: {len(values)} scored, "
                f"median {statistics.median(values):.3f}, worst {max(values):.2f}; "
                f"{unscored[family]} not measured"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    options = parser.parse_args()
    try:
        found = sweeps(measurements.read(options.data))
        score(found)
    except (measurements.BadData, ToolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
