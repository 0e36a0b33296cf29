# SPDX-License-Identifier: Apache-2.0
"""Compile and run times of the spyre backend, as ratios measured in one run.

Compile: caches empty, after a warm-up compile of both sides. Run: the functional
device model against torch CPU eager fp16 in the same process. Exits with 1 when
a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

os.environ["SPYRE_CACHE_DIR"] = tempfile.mkdtemp(prefix="spyre-benchmark-")

import torch
import torch_spyre
from torch import nn
from torch_spyre import compile_backend
from torch_spyre.frontend import graph, parts

OWN_LIMIT = 0.5
GROWTH_LIMIT = 2.2
RUN_LIMIT = 5.0
#: Microseconds of one pass per device operation, on 40 blocks.
PASS_LIMIT = 50.0


class OwnTime:
    """Seconds spent after AOT: from the first import to the executable."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._make_plan = graph.CompiledFunction._make_plan
        self._compile = parts.CompiledStep._compile

    def __enter__(self) -> OwnTime:
        def timed(function: Callable) -> Callable:
            def call(*args, **kwargs):
                started = self._clock()
                try:
                    return function(*args, **kwargs)
                finally:
                    self.seconds += self._clock() - started

            return call

        graph.CompiledFunction._make_plan = timed(self._make_plan)
        parts.CompiledStep._compile = timed(self._compile)
        return self

    def __exit__(self, *_: object) -> None:
        graph.CompiledFunction._make_plan = self._make_plan
        parts.CompiledStep._compile = self._compile


def empty_caches() -> None:
    torch._dynamo.reset()
    torch_spyre.clear_cache()


def compile_once(model: nn.Module, x: torch.Tensor) -> tuple[float, float, dict, int]:
    """Seconds of the first call, those after AOT and of each pass; device ops."""
    empty_caches()
    before = len(compile_backend.compiled_parts())
    with OwnTime() as own, torch.no_grad():
        started = time.perf_counter()
        torch.compile(model, backend="spyre", dynamic=False)(x)
        total = time.perf_counter() - started
    passes: dict[str, float] = {}
    operations = 0
    for part in compile_backend.compiled_parts()[before:]:
        operations += part.graph.print_ktir().count(" call @")
        for name, seconds in part.graph.pass_seconds:
            passes[name] = passes.get(name, 0.0) + seconds
    # The first call also runs once.
    with torch.no_grad():
        started = time.perf_counter()
        torch.compile(model, backend="spyre", dynamic=False)(x)
        total -= time.perf_counter() - started
    return total, own.seconds, passes, operations


def encoder_layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(512, 8, batch_first=True).eval().half()


class Row:
    """One line of the table: a ratio and its limit."""

    def __init__(self, name: str, left: float, right: float, limit: float) -> None:
        self.name, self.left, self.right, self.limit = name, left, right, limit

    @property
    def ratio(self) -> float:
        return self.left / self.right if self.right > 0 else float("inf")

    @property
    def holds(self) -> bool:
        return self.ratio <= self.limit

    def __str__(self) -> str:
        return (
            f"{self.name:<44}{self.left * 1e3:>11.2f}{self.right * 1e3:>11.2f}"
            f"{self.ratio:>8.2f}{self.limit:>7.1f}  {'ok' if self.holds else 'OVER'}"
        )


def compile_own_time(repeats: int) -> Row:
    """Own time after AOT against Dynamo + AOT of the same call."""
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        model = encoder_layer().to("spyre")
        x = torch.randn(1, 128, 512, dtype=torch.float16).to("spyre")
        compile_once(model, x)
        own, rest = [], []
        for _ in range(repeats):
            total, mine, _, _ = compile_once(model, x)
            own.append(mine)
            rest.append(total - mine)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    left, right = statistics.median(own), statistics.median(rest)
    return Row("compile encoder layer: own / (Dynamo + AOT)", left, right, OWN_LIMIT)


class Blocks(nn.Module):
    """Identical blocks, one after another."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(128), nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)
            )
            for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


def compile_growth(repeats: int) -> tuple[list[Row], list[str]]:
    """Growth of the own time, in all and per pass, and time per operation.

    Growth is (T80 - T40) / (T40 - T20).
    """
    counts = (20, 40, 80)
    x = torch.randn(8, 128, dtype=torch.float16).to("spyre")
    models = {n: Blocks(n).eval().half().to("spyre") for n in counts}
    runs: dict[int, list] = {n: [] for n in counts}
    # In turns, so that a busy moment does not hit one size alone.
    for _ in range(repeats + 1):
        for count, model in models.items():
            runs[count].append(compile_once(model, x))
    # The smallest after the first: noise only adds.
    totals = [min(run[1] for run in runs[n][1:]) for n in counts]
    passes = [
        {name: min(r[2][name] for r in runs[n][1:]) for name in runs[n][0][2]}
        for n in counts
    ]
    row = Row(
        "compile 20, 40, 80 blocks: (T80-T40) / (T40-T20)",
        totals[2] - totals[1],
        totals[1] - totals[0],
        GROWTH_LIMIT,
    )
    operations = runs[40][0][3]
    slowest = max(
        (seconds, name)
        for name, seconds in passes[1].items()
        if name not in ("load", "convert-spyre-graph-to-ktir")
    )
    cost = Row(
        f"{slowest[1]}, {operations} ops: per op / 1 us",
        slowest[0] / operations,
        1e-6,
        PASS_LIMIT,
    )
    lines = [
        f"{'pass, ms':<44}{'20':>11}{'40':>11}{'80':>11}{'growth':>10}{'us/op':>10}"
    ]
    for name in passes[0]:
        t20, t40, t80 = (p.get(name, 0.0) for p in passes)
        growth = (t80 - t40) / (t40 - t20) if t40 > t20 else float("nan")
        lines.append(
            f"{name:<44}{t20 * 1e3:>11.2f}{t40 * 1e3:>11.2f}{t80 * 1e3:>11.2f}"
            f"{growth:>10.2f}{t40 / operations * 1e6:>10.1f}"
        )
    lines.append(
        f"{'import to executable':<44}{totals[0] * 1e3:>11.2f}"
        f"{totals[1] * 1e3:>11.2f}{totals[2] * 1e3:>11.2f}{row.ratio:>10.2f}"
    )
    return [row, cost], lines


def seconds_of(
    functions: list[Callable[[], object]], budget: float = 2.0
) -> list[float]:
    """The best seconds of each call, taken in turns for about ``budget``."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, taken in zip(functions, times, strict=True):
            started = time.perf_counter()
            function()
            taken.append(time.perf_counter() - started)
    return [min(taken) for taken in times]


def finished(result: torch.Tensor) -> torch.Tensor:
    """Waits for the device, whose streams run beside Python."""
    torch.spyre.synchronize()
    return result


def run_times() -> list[Row]:
    """Compiled on the device model against CPU eager, both fp16."""
    rows = []
    model = encoder_layer()
    cases = {
        "softmax [512, 1024]": (
            lambda x: torch.softmax(x, -1),
            [torch.randn(512, 1024).half()],
        ),
        "matmul 512^3": (
            torch.mm,
            [torch.randn(512, 512).half(), torch.randn(512, 512).half()],
        ),
    }
    with torch.no_grad():
        for name, (function, inputs) in cases.items():
            empty_caches()
            device = [x.to("spyre") for x in inputs]
            compiled = torch.compile(function, backend="spyre", dynamic=False)
            own, cpu = seconds_of(
                [
                    lambda f=compiled, d=device: finished(f(*d)),
                    lambda f=function, i=inputs: f(*i),
                ]
            )
            rows.append(
                Row(f"run {name}: device model / CPU eager", own, cpu, RUN_LIMIT)
            )
        x = torch.randn(1, 128, 512).half()
        empty_caches()
        compiled = torch.compile(
            encoder_layer().to("spyre"), backend="spyre", dynamic=False
        )
        device_x = x.to("spyre")
        own, cpu = seconds_of([lambda: finished(compiled(device_x)), lambda: model(x)])
        rows.append(
            Row("run encoder layer: device model / CPU eager", own, cpu, RUN_LIMIT)
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=["compile", "growth", "run"])
    arguments = parser.parse_args()
    rows: list[Row] = []
    details: list[str] = []
    if arguments.only in (None, "compile"):
        rows.append(compile_own_time(arguments.repeats))
    if arguments.only in (None, "growth"):
        growth, details = compile_growth(arguments.repeats)
        rows += growth
    if arguments.only in (None, "run"):
        rows += run_times()
    if details:
        print("\n".join(details), end="\n\n")
    print(f"{'ratio of':<44}{'left, ms':>11}{'right, ms':>11}{'ratio':>8}{'limit':>7}")
    for row in rows:
        print(row)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
