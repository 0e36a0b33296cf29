# SPDX-License-Identifier: Apache-2.0
"""One form for what benchmarks measure: a name, a value, its noise and its limit.

A benchmark adds its numbers to a ``Ratios`` and ends with ``finish()``. It prints a
table; if SPYRE_BENCHMARK_RESULTS names a file, each number becomes a line of JSON in
it, which scripts/bench.py gathers from all benchmarks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

#: A line of JSON per number goes into this file.
RESULTS = "SPYRE_BENCHMARK_RESULTS"


@dataclass(frozen=True)
class Ratio:
    """A number without unit; the smaller the better, unless ``at_least``.

    ``low`` and ``high`` are its range over repetitions, if it is noisy.
    ``instructions`` tells how many our side executed, where they were counted: they
    change with the code only. No limit: the number is for information. ``strict``: a
    number that is equal to its limit does not hold.
    """

    name: str
    value: float
    limit: float | None = None
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    instructions: int | None = None
    strict: bool = False

    @property
    def holds(self) -> bool:
        """Within its limit; NaN is not."""
        if self.limit is None:
            return True
        if self.strict and self.value == self.limit:
            return False
        if self.at_least:
            return self.value >= self.limit
        return self.value <= self.limit

    def __str__(self) -> str:
        noise = ""
        if self.low is not None and self.high is not None:
            noise = f"{self.low:.3g} to {self.high:.3g}"
        sign = (">" if self.at_least else "<") + "=" * (not self.strict)
        limit = "" if self.limit is None else f"{sign} {self.limit:g}"
        verdict = "" if self.limit is None else "ok" if self.holds else "OVER"
        if self.at_least and not self.holds:
            verdict = "UNDER"
        return (
            f"{self.name:<58}{self.value:>9.4g}{noise:>22}{limit:>9}  {verdict}"
        ).rstrip()


HEAD = f"{'ratio':<58}{'value':>9}{'range':>22}{'limit':>9}"


class Ratios:
    """The numbers of one benchmark."""

    def __init__(self) -> None:
        self.found: list[Ratio] = []

    def add(
        self,
        name: str,
        value: float,
        limit: float | None = None,
        *,
        at_least: bool = False,
        repeated: Sequence[float] = (),
        instructions: int | None = None,
        strict: bool = False,
    ) -> Ratio:
        """``repeated`` are measurements of the same number, for its range."""
        low, high = (min(repeated), max(repeated)) if repeated else (None, None)
        ratio = Ratio(
            name, float(value), limit, at_least, low, high, instructions, strict
        )
        self.found.append(ratio)
        return ratio

    def finish(self) -> int:
        """Prints the table and writes the results; 1 if a limit does not hold."""
        print(f"\n{HEAD}")
        for ratio in self.found:
            print(ratio)
        sys.stdout.flush()
        if file := os.environ.get(RESULTS):
            with Path(file).open("a", encoding="utf-8") as results:
                for ratio in self.found:
                    results.write(json.dumps(asdict(ratio)) + "\n")
        return 0 if all(ratio.holds for ratio in self.found) else 1
