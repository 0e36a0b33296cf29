# SPDX-License-Identifier: Apache-2.0
"""Processor time of the functional engine with --check=bounds, over that with none.

Both in turns, in processes of their own, on the kernels of speed.py. Exits with 1
when the ratio of the best rounds of a kernel is over its limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import speed

# A kernel of microseconds spends them on threads and views, not on data.
LIMIT, SMALL_LIMIT, SMALL_SECONDS = 1.1, 1.3, 100e-6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=speed.torch.get_num_threads())
    parser.add_argument("--only", default="", help="part of a kernel's name")
    options = parser.parse_args()
    failed = False
    print(f"{'kernel':36} {'none':>10} {'bounds':>10} {'ratio':>6}")
    for name, case in speed.make_cases().items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench = speed.Bench(Path(folder), case, options.threads, cpu=True)
            times: dict[str, list[float]] = {"none": [], "bounds": []}
            for turn in range(options.rounds):
                for mode in sorted(times, reverse=turn % 2 == 1):
                    times[mode].append(bench.own(options.repeats, "--check", mode))
            # The least disturbed round of each.
            none, bounds = (min(times[m]) for m in ("none", "bounds"))
            ratio = bounds / none
            limit = SMALL_LIMIT if none < SMALL_SECONDS else LIMIT
            over = ratio > limit
            failed |= over
            print(
                f"{name:36} {none * 1e6:8.1f}us {bounds * 1e6:8.1f}us {ratio:6.2f}"
                f"{f'  over {limit}' if over else ''}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
