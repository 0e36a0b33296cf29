# SPDX-License-Identifier: Apache-2.0
"""What an eager operator costs on the host, as ratios measured in one run.

Warm: x + y of 64 elements against torch CPU. Cold: the first call of shapes that
nobody has compiled, caches empty, against torch.compile(backend="aot_eager") of
the same operator and shape. Exits with 1 when a ratio is over its limit.
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

WARM_LIMIT = 20.0
COLD_LIMIT = 3.0


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Median over five rounds of the time of one call."""
    rounds = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(repeats):
            function()
        rounds.append((time.perf_counter() - started) / repeats)
    return statistics.median(rounds)


def warm() -> float:
    x, y = torch.randn(2, 64).half()
    a, b = x.to("spyre"), y.to("spyre")
    for _ in range(100):
        a + b, x + y
    return seconds(lambda: a + b, 2000) / seconds(lambda: x + y, 2000)


def cold() -> float:
    """Median ratio over shapes; both sides have been used before."""
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
    return statistics.median(ratios)


def main() -> None:
    failed = False
    for name, limit, measure in [
        ("warm add of 64 elements / CPU", WARM_LIMIT, warm),
        ("cold operator / aot_eager", COLD_LIMIT, cold),
    ]:
        ratio = measure()
        good = ratio <= limit
        failed |= not good
        verdict = "ok" if good else "TOO SLOW"
        print(f"{name:32} {ratio:6.2f}  limit {limit:4.1f}  {verdict}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
