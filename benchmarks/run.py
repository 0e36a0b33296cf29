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
from ratios import Ratios
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


def compile_own_time(found: Ratios, repeats: int) -> None:
    """Own time after AOT against Dynamo + AOT of the same call."""
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        model = encoder_layer().to("spyre")
        x = torch.randn(1, 128, 512, dtype=torch.float16).to("spyre")
        compile_once(model, x)
        ratios = []
        for _ in range(repeats):
            total, own, _, _ = compile_once(model, x)
            ratios.append(own / (total - own))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    name = "compile encoder layer: own / (Dynamo + AOT)"
    found.add(name, statistics.median(ratios), OWN_LIMIT, repeated=ratios)


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


def compile_growth(found: Ratios, repeats: int) -> None:
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
    growth = (totals[2] - totals[1]) / (totals[1] - totals[0])
    name = "compile 20, 40, 80 blocks: (T80-T40) / (T40-T20)"
    found.add(name, growth, GROWTH_LIMIT)
    operations = runs[40][0][3]
    slowest = max(
        (seconds, name)
        for name, seconds in passes[1].items()
        if name not in ("load", "convert-spyre-graph-to-ktir")
    )
    found.add(
        f"slowest pass ({slowest[1]}): us per operation",
        slowest[0] / operations * 1e6,
        PASS_LIMIT,
    )
    print(f"{'pass, ms':<44}{'20':>11}{'40':>11}{'80':>11}{'growth':>10}{'us/op':>10}")
    for name in passes[0]:
        t20, t40, t80 = (p.get(name, 0.0) for p in passes)
        of_pass = (t80 - t40) / (t40 - t20) if t40 > t20 else float("nan")
        print(
            f"{name:<44}{t20 * 1e3:>11.2f}{t40 * 1e3:>11.2f}{t80 * 1e3:>11.2f}"
            f"{of_pass:>10.2f}{t40 / operations * 1e6:>10.1f}"
        )
    print(
        f"{'import to executable':<44}{totals[0] * 1e3:>11.2f}"
        f"{totals[1] * 1e3:>11.2f}{totals[2] * 1e3:>11.2f}{growth:>10.2f}"
    )


def ratios_of(
    own: Callable[[], object], peer: Callable[[], object], rounds: int = 5
) -> list[float]:
    """Ratios of the best seconds of both, which take turns, in each round."""

    def best(function: Callable[[], object]) -> float:
        times = []
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end or len(times) < 3:
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
        return min(times)

    own(), peer()
    return [best(own) / best(peer) for _ in range(rounds)]


def finished(result: torch.Tensor) -> torch.Tensor:
    """Waits for the device, whose streams run beside Python."""
    torch.spyre.synchronize()
    return result


def run_times(found: Ratios) -> None:
    """Compiled on the device model against CPU eager, both fp16."""

    def add(name: str, function: Callable, peer: Callable, *inputs: torch.Tensor):
        empty_caches()
        device = [x.to("spyre") for x in inputs]
        compiled = torch.compile(function, backend="spyre", dynamic=False)
        ratios = ratios_of(lambda: finished(compiled(*device)), lambda: peer(*inputs))
        name = f"run {name}: device model / CPU eager"
        found.add(name, statistics.median(ratios), RUN_LIMIT, repeated=ratios)

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    def half(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes).half()

    with torch.no_grad():
        add("softmax [512, 1024]", softmax, softmax, half(512, 1024))
        add("matmul 512^3", torch.mm, torch.mm, half(512, 512), half(512, 512))
        layer = encoder_layer().to("spyre")
        add("encoder layer", layer, encoder_layer(), half(1, 128, 512))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=["compile", "growth", "run"])
    arguments = parser.parse_args()
    found = Ratios()
    if arguments.only in (None, "compile"):
        compile_own_time(found, arguments.repeats)
    if arguments.only in (None, "growth"):
        compile_growth(found, arguments.repeats)
    if arguments.only in (None, "run"):
        run_times(found)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
