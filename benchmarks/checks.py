# SPDX-License-Identifier: Apache-2.0
"""Processor time of the functional engine with --check=bounds, over that with none.

Both in turns, in processes of their own, on the kernels of speed.py. What disturbs a
run lasts longer than a round of two, so each round gives a ratio; the median of them
counts, and the range that it lies in nine times of ten is printed beside it. Exits
with 1 when a median is over its limit.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from pathlib import Path

import speed
from ratios import Ratios

# A kernel of microseconds spends them on threads and views, not on data.
LIMIT, SMALL_LIMIT, SMALL_SECONDS = 1.1, 1.3, 100e-6


def range_of_median(values: list[float]) -> tuple[float, float]:
    """The order statistics that hold the true median with a chance of 90 %."""
    n = len(values)
    steps = int(1.645 * math.sqrt(n) / 2)
    middle = (n - 1) // 2
    return values[max(middle - steps, 0)], values[min(n - 1 - middle + steps, n - 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a run, about")
    parser.add_argument("--threads", type=int, default=speed.torch.get_num_threads())
    parser.add_argument("--only", default="", help="part of a kernel's name")
    options = parser.parse_args()
    found = Ratios()
    print(f"{'kernel':36} {'none':>10} {'bounds':>10} {'ratio':>6} {'range':>12}")
    for name, case in speed.make_cases().items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench = speed.Bench(Path(folder), case, options.threads, cpu=True)
            once = bench.own(1, "--check", "none")
            repeats = max(3, min(2000, int(options.seconds / once)))
            times: dict[str, list[float]] = {"none": [], "bounds": []}
            for turn in range(options.rounds):
                for mode in sorted(times, reverse=turn % 2 == 1):
                    times[mode].append(bench.own(repeats, "--check", mode))
            ratios = sorted(
                bounds / none
                for none, bounds in zip(times["none"], times["bounds"], strict=True)
            )
            ratio = statistics.median(ratios)
            low, high = range_of_median(ratios)
            none, bounds = (min(times[m]) for m in ("none", "bounds"))
            limit = SMALL_LIMIT if none < SMALL_SECONDS else LIMIT
            print(
                f"{name:36} {none * 1e6:8.1f}us {bounds * 1e6:8.1f}us {ratio:6.2f} "
                f"{low:5.2f} to {high:.2f}",
                flush=True,
            )
            title = f"checked {name} / not checked"
            found.add(title, ratio, limit, repeated=[low, high])
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
