# SPDX-License-Identifier: Apache-2.0
"""What a program for many sizes costs, against programs for one size each.

Host time of a call with a size that the program has not had before, beyond that of a
program for one size; and, at 20 random sizes, predicted time and bytes of device
memory. Exits with 1 when one is over its limit.

With ``--large``, the sizes are from 513 to 8,192 and of a few functions, whose
intermediates do not fit LX at the largest of them: medians have the limit.

usage: sizes.py [--large]
"""

from __future__ import annotations

import os
import random
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

MICROSECONDS_LIMIT = 20.0
COST_LIMIT = 1.15


def heads(x: torch.Tensor, parts: int, count: int = 8, width: int = 64) -> torch.Tensor:
    """Queries, keys and values of heads in each row."""
    return x.view(1, -1, parts, count, width).permute(2, 0, 3, 1, 4)


def prompt(
    count: int = 8, width: int = 64, is_causal: bool = True
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Attention of each row to all of them, or to those before it."""

    def attention(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            *heads(x, 3, count, width), is_causal=is_causal
        )

    return attention


def token(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, *heads(x, 2))


def within_chunks(x: torch.Tensor, count: int = 32) -> torch.Tensor:
    """Products of the rows of each chunk, the last one filled up with zeros."""
    chunks = F.pad(x, (0, 0, 0, -x.shape[0] % count)).view(-1, count, x.shape[1])
    return torch.relu(chunks @ chunks.transpose(1, 2)) @ chunks


#: Functions of rows, and the number of columns.
FUNCTIONS: dict[str, tuple[Callable[..., torch.Tensor], int, list[tuple[int, ...]]]] = {
    "pointwise": (lambda x: torch.relu(x * 2 + 1) * x, 256, []),
    "linear": (lambda x, w, b: torch.relu(x @ w + b), 256, [(256, 384), (384,)]),
    "gelu of a linear": (lambda x, w: F.gelu(x @ w), 1024, [(1024, 2048)]),
    "mlp": (
        lambda x, w, b, v: torch.relu(x @ w + b) @ v,
        256,
        [(256, 384), (384,), (384, 128)],
    ),
    "wide linear": (F.linear, 768, [(3072, 768), (3072,)]),
    "linear of a norm": (
        lambda x, w: F.layer_norm(x, (512,)) @ w,
        512,
        [(512, 512)],
    ),
    "mlp of linears": (
        lambda x, w, v: F.linear(F.gelu(F.linear(x, w)), v),
        256,
        [(1024, 256), (256, 1024)],
    ),
    "softmax of a product": (lambda x: torch.softmax(x @ x.t(), -1), 128, []),
    "rms_norm": (lambda x, w: F.rms_norm(x, (1024,), w), 1024, [(1024,)]),
    "softmax": (lambda x: torch.softmax(x, -1), 1024, []),
    "sum of rows": (lambda x: x.sum(0), 256, []),
    "sum of all": (torch.sum, 1024, []),
    "largest of each row": (lambda x: x.argmax(-1), 1024, []),
    "gradient of a weight": (lambda x, w: x.t() @ (x @ w), 256, [(256, 384)]),
    "product with itself": (lambda x: x.t() @ x, 256, []),
    "transposed": (lambda x: x.t().contiguous(), 1024, []),
    "joined rows": (lambda x, y: torch.cat((x, y)), 256, [(64, 256)]),
    "joined to itself": (lambda x: torch.cat((x, x * 2)), 256, []),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), 1024, []),
    "log_softmax of a linear": (
        lambda x, w: torch.log_softmax(F.linear(x, w), -1),
        256,
        [(1024, 256)],
    ),
    "sum of each row": (lambda x: x.sum(-1), 1024, []),
    "sums along rows": (lambda x: x.cumsum(-1), 256, []),
    "largest of each column": (lambda x: x.argmax(0), 1024, []),
    "norm": (torch.linalg.vector_norm, 1024, []),
    "norm of each row": (lambda x: torch.linalg.vector_norm(x, dim=-1), 1024, []),
    "attention of a prompt": (prompt(), 1536, []),
    "attention of 2 heads": (prompt(2, 128, is_causal=False), 768, []),
    "attention of 4 heads": (prompt(4), 768, []),
    "attention of 4 narrow heads": (prompt(4, 32), 384, []),
    "attention of 12 heads": (prompt(12), 2304, []),
    "attention of 16 heads": (prompt(16, 128), 6144, []),
    "products within chunks": (within_chunks, 256, []),
    "every second row": (lambda x: torch.exp(x[::2]), 256, []),
    "convolution in steps": (
        lambda x, w: F.conv1d(x.t()[None], w, stride=2, padding=1),
        256,
        [(128, 256, 3)],
    ),
    "attention of a token": (token, 1024, [(1, 8, 1, 64)]),
}
LARGE = [
    "gelu of a linear",
    "mlp of linears",
    "softmax of a product",
    "rms_norm",
    "softmax",
    "log_softmax",
    "attention of a prompt",
    "attention of 2 heads",
    "attention of 12 heads",
]


def compiled(function, dynamic: bool):
    torch._dynamo.reset()
    return torch.compile(function, backend="spyre", dynamic=dynamic)


def rows(size: int, columns: int) -> torch.Tensor:
    torch.manual_seed(size)
    x = (torch.rand(size, columns) - 0.5).half().to("spyre")
    torch._dynamo.mark_static(x, 1)
    return x


def bound(function, shapes: list[tuple[int, ...]]):
    """The function of rows alone: sizes of weights never vary."""
    torch.manual_seed(0)
    weights = [(torch.rand(s) * 0.2 - 0.1).half().to("spyre") for s in shapes]
    for weight in weights:
        torch._dynamo.mark_static(weight)
    return lambda x: function(x, *weights)


def launch() -> float:
    """Median of the differences of two calls, in microseconds."""
    function, columns, shapes = FUNCTIONS["pointwise"]
    # Of one class, whose ends the program has had.
    sizes = list(range(65, 513))
    inputs = {s: rows(s, columns) for s in sizes}

    def one_size(x):
        return function(x)

    sized = compiled(bound(function, shapes), True)
    fixed = torch.compile(one_size, backend="spyre", dynamic=False)
    for _ in range(50):
        for size in (sizes[0], sizes[-1]):
            sized(inputs[size])
        fixed(inputs[sizes[-1]])
    random.Random(0).shuffle(sizes)

    def microseconds(f, x) -> float:
        torch.spyre.synchronize()
        started = time.perf_counter()
        f(x)
        return (time.perf_counter() - started) * 1e6

    pairs = [
        (microseconds(sized, inputs[s]), microseconds(fixed, inputs[512]))
        for s in sizes
    ]
    own, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"a call: {own:.0f} us with a new size, {other:.0f} us with one size")
    return statistics.median(a - b for a, b in pairs)


def cost(f, x) -> tuple[float, float]:
    """Predicted seconds and bytes of device memory of a call's kernels."""
    with torch.spyre.profiler.profile() as trace:
        f(x)
    kernels = trace.kernels
    return (
        sum(k.predicted_seconds for k in kernels),
        sum(k.device_bytes_read + k.device_bytes_written for k in kernels),
    )


def compare(name: str, sizes: list[int]) -> tuple[list[float], list[float]]:
    """Ratios of time and of bytes, in ascending order."""
    function, columns, shapes = FUNCTIONS[name]
    f = bound(function, shapes)
    inputs = {s: rows(s, columns) for s in sizes}
    sized = compiled(f, True)
    own = {s: cost(sized, x) for s, x in inputs.items()}
    ratios = {}
    for size, x in inputs.items():
        seconds, size_in_bytes = cost(compiled(f, False), x)
        ratios[size] = own[size][0] / seconds, own[size][1] / size_in_bytes
    times, traffic = zip(*ratios.values(), strict=True)
    worst = max(ratios, key=lambda s: ratios[s])
    print(
        f"{name:27} time: median {statistics.median(times):.3f}, "
        f"largest {max(times):.3f} (size {worst}); bytes: "
        f"median {statistics.median(traffic):.3f}, largest {max(traffic):.3f}",
        flush=True,
    )
    return sorted(times), sorted(traffic)


def large() -> int:
    found = Ratios()
    sizes = random.Random(0).sample(range(513, 8193), 20)
    for name in LARGE:
        time, _ = compare(name, sizes)
        found.add(
            f"{name} for many sizes / for one: median time",
            statistics.median(time),
            COST_LIMIT,
        )
    return found.finish()


def main() -> int:
    if sys.argv[1:] not in ([], ["--large"]):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1:]:
        return large()
    found = Ratios()
    sizes = random.Random(0).sample(range(2, 513), 20)
    title = "launch with another size: us beyond a program of one size"
    found.add(title, launch(), MICROSECONDS_LIMIT)
    for name in FUNCTIONS:
        time, traffic = compare(name, sizes)
        found.add(f"{name} for many sizes / for one: time", time[-1], COST_LIMIT)
        found.add(f"{name} for many sizes / for one: bytes", traffic[-1], COST_LIMIT)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
