# SPDX-License-Identifier: Apache-2.0
"""Compile and run times of the spyre backend, as ratios measured in one run.

Compile: how the own time grows with the graph, caches empty, after a warm-up compile
(first_call.py compares it with Inductor's). Run: the functional device model against
torch CPU eager fp16 in the same process. Exits with 1 when a ratio is over its limit.
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
from first_call import Times, count_own_time
from ratios import Ratios
from torch import nn
from torch_spyre import compile_backend

GROWTH_LIMIT = 2.2
RUN_LIMIT = 5.0
#: Microseconds of one pass per device operation, on 100 blocks.
PASS_LIMIT = 50.0


def empty_caches() -> None:
    torch._dynamo.reset()
    torch_spyre.clear_cache()


def compile_once(
    model: nn.Module, x: torch.Tensor, own: Times
) -> tuple[float, dict[str, float], int]:
    """Processor seconds after AOT, seconds of each pass, and device operations."""
    empty_caches()
    own.forget()
    before = len(compile_backend.compiled_parts())
    with torch.no_grad():
        torch.compile(model, backend="spyre", dynamic=False)(x)
    passes: dict[str, float] = {}
    operations = 0
    for part in compile_backend.compiled_parts()[before:]:
        operations += part.graph.print_ktir().count(" call @")
        for name, seconds in part.graph.pass_seconds:
            passes[name] = passes.get(name, 0.0) + seconds
    return own.processor, passes, operations


def encoder_layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(512, 8, batch_first=True).eval().half()


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

    Growth is (T200 - T100) / (T100 - T50).
    """
    counts = (50, 100, 200)
    own = Times()
    count_own_time(own)
    x = torch.randn(8, 128, dtype=torch.float16).to("spyre")
    models = {n: Blocks(n).eval().half().to("spyre") for n in counts}
    runs: dict[int, list] = {n: [] for n in counts}
    compile_once(models[counts[0]], x, own)
    # In turns, so that a busy moment does not hit one size alone.
    for _ in range(repeats):
        for count, model in models.items():
            runs[count].append(compile_once(model, x, own))
    # The smallest: noise only adds.
    totals = [min(run[0] for run in runs[n]) for n in counts]
    passes = [
        {name: min(run[1][name] for run in runs[n]) for name in runs[n][0][1]}
        for n in counts
    ]
    growth = (totals[2] - totals[1]) / (totals[1] - totals[0])
    name = "compile 50, 100, 200 blocks: (T200-T100) / (T100-T50)"
    found.add(name, growth, GROWTH_LIMIT)
    operations = runs[100][0][2]
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
    print(
        f"{'pass, ms':<44}{'50':>11}{'100':>11}{'200':>11}{'growth':>10}{'us/op':>10}"
    )
    for name in passes[0]:
        few, some, many = (p.get(name, 0.0) for p in passes)
        of_pass = (many - some) / (some - few) if some > few else float("nan")
        print(
            f"{name:<44}{few * 1e3:>11.2f}{some * 1e3:>11.2f}{many * 1e3:>11.2f}"
            f"{of_pass:>10.2f}{some / operations * 1e6:>10.1f}"
        )
    print(
        f"{'import to executable, processor ms':<44}{totals[0] * 1e3:>11.2f}"
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
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=["growth", "run"])
    arguments = parser.parse_args()
    found = Ratios()
    if arguments.only in (None, "growth"):
        compile_growth(found, arguments.repeats)
    if arguments.only in (None, "run"):
        run_times(found)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
