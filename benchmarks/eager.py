# SPDX-License-Identifier: Apache-2.0
"""What an eager operator costs on the host, as ratios measured in one run.

Warm: x + y of few and of many elements against torch CPU, waiting for each result or
for a thousand of them. Cold: the first call of
shapes that nobody has compiled, caches empty, against
torch.compile(backend="aot_eager") of the same operator and shape. Exits with 1 when a
ratio is over its limit.
"""

from __future__ import annotations

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

#: Of x + y on the device over that on the CPU, to completion, by elements.
WARM_LIMITS = {64: 20.0, 4096: 3.0, 2**20: 1.5}
COLD_LIMIT = 3.0
#: Operators that are launched before anything is waited for.
STREAM_LENGTH = 1000


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Median over five rounds of the time of one call."""
    rounds = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(repeats):
            function()
        rounds.append((time.perf_counter() - started) / repeats)
    return statistics.median(rounds)


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[float, list[float]]:
    """The median of five ratios of the times of a call, and all of them."""
    ratios = [seconds(ours, repeats) / seconds(theirs, repeats) for _ in range(5)]
    return statistics.median(ratios), ratios


def warm(elements: int) -> tuple[float, list[float]]:
    """The median ratio and all of them, waiting for the device after each call."""
    x, y = torch.randn(2, elements).half()
    a, b = x.to("spyre"), y.to("spyre")
    repeats = max(20, min(1000, 2**24 // elements))

    def on_device() -> None:
        a + b
        torch.spyre.synchronize()

    for _ in range(20):
        on_device(), x + y
    return in_turns(on_device, lambda: x + y, repeats)


def stream(elements: int) -> tuple[float, list[float]]:
    """As warm(), waiting for the device once after STREAM_LENGTH calls."""
    x, y = torch.randn(2, elements).half()
    a, b = x.to("spyre"), y.to("spyre")

    def add_many(x: torch.Tensor, y: torch.Tensor) -> None:
        for _ in range(STREAM_LENGTH):
            x + y
        torch.spyre.synchronize()

    add_many(a, b)
    return in_turns(lambda: add_many(a, b), lambda: add_many(x, y), 5)


def cold() -> tuple[float, list[float]]:
    """The median ratio over shapes, and the quartiles of them.

    Both sides have been used before.
    """
    operators = [lambda x: x + x, lambda x: x.softmax(-1), lambda x: x.sum(-1)]
    ratios = []
    for size in (64, 70, 128, 200):
        for operator in operators:
            x = torch.randn(37, size).half()
            device = x.to("spyre")
            torch._dynamo.reset()
            started = time.perf_counter()
            torch.compile(operator, backend="aot_eager", dynamic=False)(x)
            reference = time.perf_counter() - started
            torch_spyre.clear_cache()
            started = time.perf_counter()
            operator(device)
            own = time.perf_counter() - started
            if size != 64:  # the first round imports
                ratios.append(own / reference)
    return statistics.median(ratios), statistics.quantiles(ratios, n=4)


def main() -> int:
    found = Ratios()
    for elements, limit in WARM_LIMITS.items():
        ratio, repeated = warm(elements)
        name = f"warm add of {elements} elements / CPU"
        found.add(name, ratio, limit, repeated=repeated)
    for elements in (64, 4096):
        ratio, repeated = stream(elements)
        name = f"{STREAM_LENGTH} adds of {elements} elements / CPU"
        found.add(name, ratio, repeated=repeated)
    ratio, repeated = cold()
    found.add("cold operator / aot_eager", ratio, COLD_LIMIT, repeated=repeated)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
