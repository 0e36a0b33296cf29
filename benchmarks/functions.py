# SPDX-License-Identifier: Apache-2.0
"""Time of functions as users write them, as ratios to torch on the CPU.

Compiled and operator by operator, in the layouts that tensors of the device have; what
speed.py runs are kernels written for it. The CPU's time is that of eager fp16, bf16 or
fp32, whichever is shortest. In turns in one process, of which the first call of each is
not counted: threads of the turn before still wait for work then. No limits: it shows
where the host spends time that the CPU does not.
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
import torch.nn.functional as F
import torch_spyre  # noqa: F401  (finds the device)
from ratios import Ratios

Function = Callable[..., torch.Tensor]


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


#: Functions and the sizes of their arguments; a slice is so many indices below its end.
FUNCTIONS: dict[str, tuple[Function, list[tuple[int, ...] | slice]]] = {
    "softmax [4096, 1024]": (lambda x: torch.softmax(x, -1), [(4096, 1024)]),
    "layer_norm [1151, 8192]": (
        lambda x, w, b: F.layer_norm(x, (8192,), w, b),
        [(1151, 8192), (8192,), (8192,)],
    ),
    "layer_norm [512, 768]": (
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        [(512, 768), (768,), (768,)],
    ),
    "rms_norm [512, 2048]": (
        lambda x, w: F.rms_norm(x, (2048,), w),
        [(512, 2048), (2048,)],
    ),
    "batch_norm [8, 64, 56, 56]": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs(), w, b),
        [(8, 64, 56, 56), (64,), (64,), (64,), (64,)],
    ),
    "rope [1, 32, 512, 128]": (rope, [(1, 32, 512, 128), (512, 128), (512, 128)]),
    "add [4096, 4096]": (lambda x, y: x + y, [(4096, 4096), (4096, 4096)]),
    "add a row to [4, 512, 768]": (lambda x, y: x + y, [(4, 512, 768), (768,)]),
    "gelu [4096, 1024]": (F.gelu, [(4096, 1024)]),
    "silu times another [512, 5632]": (
        lambda x, y: F.silu(x) * y,
        [(512, 5632), (512, 5632)],
    ),
    "sum of rows [4096, 4096]": (lambda x: x.sum(1), [(4096, 4096)]),
    "sum of columns [4096, 4096]": (lambda x: x.sum(0), [(4096, 4096)]),
    "cumsum [1024, 1024]": (lambda x: x.cumsum(-1), [(1024, 1024)]),
    "transpose [4096, 4096]": (lambda x: x.t().contiguous(), [(4096, 4096)]),
    "cat of two [2048, 2048]": (
        lambda x, y: torch.cat((x, y), 1),
        [(2048, 2048), (2048, 2048)],
    ),
    "8192 rows of [16384, 1024]": (
        lambda x, i: x[i],
        [(16384, 1024), slice(8192, 16384)],
    ),
    "product [1024, 1024, 1024]": (
        lambda x, y: x @ y,
        [(1024, 1024), (1024, 1024)],
    ),
    "linear [512, 2048, 2048]": (F.linear, [(512, 2048), (2048, 2048)]),
    "32 products [512, 128, 512]": (
        lambda x, y: x @ y,
        [(32, 512, 128), (32, 128, 512)],
    ),
    "causal attention [1, 16, 512, 64]": (causal, [(1, 16, 512, 64)] * 3),
    "conv2d [1, 64, 56, 56]": (
        lambda x, w: F.conv2d(x, w, padding=1),
        [(1, 64, 56, 56), (64, 64, 3, 3)],
    ),
    "max_pool2d [8, 64, 112, 112]": (
        lambda x: F.max_pool2d(x, 2),
        [(8, 64, 112, 112)],
    ),
    "cross_entropy [512, 32000]": (
        F.cross_entropy,
        [(512, 32000), slice(512, 32000)],
    ),
}


def arguments(sizes: list[tuple[int, ...] | slice]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randint(0, s.stop, (s.start,))
        if isinstance(s, slice)
        else torch.randn(s) / 8
        for s in sizes
    ]


def converted(
    tensors: list[torch.Tensor], dtype: torch.dtype, device: str
) -> list[torch.Tensor]:
    return [t.to(device, dtype if t.is_floating_point() else t.dtype) for t in tensors]


def turn(function: Function, inputs: list[torch.Tensor]) -> float:
    """Shortest of three calls to completion, in seconds, after one."""
    function(*inputs)
    torch.spyre.synchronize()
    times = []
    for _ in range(3):
        started = time.perf_counter()
        function(*inputs)
        torch.spyre.synchronize()
        times.append(time.perf_counter() - started)
    return min(times)


def compare(name: str, rounds: int) -> dict[str, list[float]]:
    """Ratios to the CPU, per round: compiled, and operator by operator."""
    function, sizes = FUNCTIONS[name]
    host = arguments(sizes)
    device = converted(host, torch.float16, "spyre")
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="spyre", dynamic=False)
    others = [
        converted(host, dtype, "cpu")
        for dtype in (torch.float16, torch.bfloat16, torch.float32)
    ]
    for way in (compiled, function):
        turn(way, device)
    ratios: dict[str, list[float]] = {"compiled": [], "eager": []}
    for _ in range(rounds):
        cpu = min(turn(function, inputs) for inputs in others)
        ratios["compiled"].append(turn(compiled, device) / cpu)
        ratios["eager"].append(turn(function, device) / cpu)
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a function's name")
    options = parser.parse_args()
    found = Ratios()
    with torch.no_grad():
        for name in FUNCTIONS:
            if options.only not in name:
                continue
            for way, ratios in compare(name, options.rounds).items():
                found.add(
                    f"{name}, {way} / CPU", statistics.median(ratios), repeated=ratios
                )
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
