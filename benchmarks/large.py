# SPDX-License-Identifier: Apache-2.0
"""Runs the largest shapes and prints a table of what each took.

    python benchmarks/large.py [--list] [PATTERN ...]

Each case is a process of its own and checks what it computes. One after the other they
need about 9 GB of host memory and, on two busy cores, ten minutes; a line says what
runs and what it has taken so far. ``docs/reference/large.md`` has the table of a run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

GIB = 1 << 30


def status(key: str) -> int:
    """Bytes that /proc/self/status gives for a key."""
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(f"{key}:"))
    return int(line.split()[1]) << 10


@dataclass
class Result:
    """What a case took, beyond what the process had before it."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    tensor_bytes: int


class Progress:
    """A line per step, and one every few seconds while a step runs."""

    def __init__(self, case: str) -> None:
        self.case = case
        self.step = ""
        self.began = self.entered = time.perf_counter()
        self.ended = threading.Event()
        threading.Thread(target=self._tell, daemon=True).start()

    def __call__(self, step: str) -> None:
        torch.accelerator.synchronize()
        self.step, self.entered = step, time.perf_counter()
        self._print()

    def _print(self) -> None:
        now = time.perf_counter()
        print(
            f"{self.case}: {self.step}, {now - self.entered:.0f} s of "
            f"{now - self.began:.0f} s, {status('VmRSS') / GIB:.2f} GiB",
            file=sys.stderr,
            flush=True,
        )

    def _tell(self) -> None:
        while not self.ended.wait(10):
            self._print()


def places(shape: tuple[int, ...], count: int = 64) -> list[tuple[int, ...]]:
    """Places all over a tensor, its first and last elements among them."""
    generator = torch.Generator().manual_seed(1)
    drawn = [
        tuple(int(torch.randint(n, (), generator=generator)) for n in shape)
        for _ in range(count)
    ]
    return [tuple(0 for _ in shape), tuple(n - 1 for n in shape), *drawn]


def pattern(shape: tuple[int, int], begin: int, end: int) -> torch.Tensor:
    """Whole numbers, exact in fp16, for some rows of a tensor."""
    rows = torch.arange(begin, end, dtype=torch.int32)[:, None] * 31
    columns = torch.arange(shape[1], dtype=torch.int32)[None] * 7
    return ((rows + columns) % 509).half()


# --- cases: each checks, and returns the bytes of its tensors on host and device ---


def transfer(progress: Progress) -> int:
    shape = (32768, 65536)
    progress("fill on the host")
    host = torch.empty(shape, dtype=torch.float16)
    for row in range(0, shape[0], 1024):
        host[row : row + 1024] = pattern(shape, row, row + 1024)
    progress("to the device")
    device = host.to("spyre")
    progress("check parts of it")
    for i, j in places(shape):
        assert device[i, j].item() == (i * 31 + j * 7) % 509, (i, j)
    part = device[-3:, 100:-1].cpu()
    assert torch.equal(part, pattern(shape, shape[0] - 3, shape[0])[:, 100:-1])
    host.zero_()
    progress("back to the host")
    host.copy_(device)
    progress("check all")
    for row in range(0, shape[0], 1024):
        assert torch.equal(host[row : row + 1024], pattern(shape, row, row + 1024))
    return host.nbytes + device.nbytes


def change(progress: Progress, is_compiled: bool) -> int:
    shape = (65536, 65536)

    def update(t: torch.Tensor) -> None:
        t.mul_(2)
        t += 1
        t[1:].sub_(4)

    progress("make")
    tensor = torch.full(shape, 3.0, dtype=torch.float16, device="spyre")
    call = torch.compile(update, backend="spyre") if is_compiled else update
    progress("change in place")
    call(tensor)
    progress("write a row and two elements beyond 2^32")
    tensor[-1] = torch.arange(shape[1], dtype=torch.float32).remainder(500).half()
    tensor.view(-1)[(1 << 31) + 5] = 77.0
    tensor.view(-1)[(1 << 32) - shape[1] - 1] = 99.0
    expected = {((1 << 15), 5): 77.0, (shape[0] - 2, shape[1] - 1): 99.0}
    progress("check")
    for i, j in places(shape):
        value = 7.0 if i == 0 else 3.0
        value = j % 500 if i == shape[0] - 1 else value
        assert tensor[i, j].item() == expected.get((i, j), value), (i, j)
    for (i, j), value in expected.items():
        assert tensor[i, j].item() == value
    progress("largest element of each row")
    largest = tensor.amax(1).cpu()
    wanted = torch.full((shape[0],), 3.0).half()
    wanted[0], wanted[1 << 15], wanted[-2:] = 7.0, 77.0, torch.tensor([99.0, 499.0])
    assert torch.equal(largest, wanted)
    return tensor.nbytes


def draw(progress: Progress) -> int:
    progress("draw")
    tensor = torch.empty(1 << 31, dtype=torch.float16, device="spyre")
    torch.manual_seed(1)
    tensor.uniform_()
    progress("check")
    torch.manual_seed(1)
    first = torch.rand(1 << 20, dtype=torch.float16, device="spyre").cpu()
    assert torch.equal(tensor[: 1 << 20].cpu(), first)
    last = tensor[-(1 << 20) :].cpu().float()
    assert last.min() >= 0 and last.max() < 1 and abs(last.mean() - 0.5) < 0.01
    return tensor.nbytes


def count(progress: Progress) -> int:
    progress("count to 2^30")
    tensor = torch.arange(1 << 30, dtype=torch.int32, device="spyre")
    progress("check")
    for i in (0, 1, (1 << 29) + 3, (1 << 30) - 1):
        assert tensor[i].item() == i
    tensor.bitwise_xor_(1)
    for i in (0, 1, (1 << 29) + 3, (1 << 30) - 1):
        assert tensor[i].item() == i ^ 1
    return tensor.nbytes


def product(progress: Progress, m: int, k: int, n: int) -> int:
    progress("make")
    torch.manual_seed(2)
    a = torch.randint(-1, 2, (m, k), dtype=torch.int8).half()
    b = torch.randint(-1, 2, (k, n), dtype=torch.int8).half()
    on_device = a.to("spyre"), b.to("spyre")
    progress(f"{m} x {k} x {n}")
    result = torch.mm(*on_device)
    progress("check")
    for row in (0, m // 2 + 1, m - 1):
        exact = a[row].float() @ b.float()
        assert exact.abs().max() < 1024
        assert torch.equal(result[row].cpu().float(), exact)
    return sum(t.nbytes for t in (a, b, *on_device, result))


CASES: dict[str, Callable[[Progress], int]] = {
    "4 GiB from the host and back": transfer,
    "8 GiB made and changed in place, eager": lambda p: change(p, False),
    "8 GiB made and changed in place, compiled": lambda p: change(p, True),
    "4 GiB of random numbers": draw,
    "4 GiB of whole numbers": count,
    "2^34 multiply-accumulates": lambda p: product(p, 2048, 4096, 2048),
    "2^36 multiply-accumulates": lambda p: product(p, 4096, 4096, 4096),
    "2^38 multiply-accumulates": lambda p: product(p, 8192, 4096, 8192),
    "2^40 multiply-accumulates": lambda p: product(p, 8192, 16384, 8192),
}


def run(name: str, results: multiprocessing.SimpleQueue) -> None:
    torch.ones(3, device="spyre").cpu()
    progress = Progress(name)
    before = status("VmRSS")
    began, processor = time.perf_counter(), time.process_time()
    tensor_bytes = CASES[name](progress)
    torch.accelerator.synchronize()
    progress.ended.set()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    results.put(
        Result(
            time.perf_counter() - began,
            time.process_time() - processor,
            peak - before,
            tensor_bytes,
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("pattern", nargs="*", help="regular expressions")
    options = parser.parse_args()
    names = [
        name
        for name in CASES
        if not options.pattern or any(re.search(p, name) for p in options.pattern)
    ]
    if options.list:
        print("\n".join(names))
        return 0
    context = multiprocessing.get_context("spawn")
    failures = 0
    print("| case | tensors, GiB | host memory, GiB | s | processor s |")
    print("|---|---|---|---|---|", flush=True)
    for name in names:
        results = context.SimpleQueue()
        process = context.Process(target=run, args=(name, results))
        process.start()
        process.join()
        if process.exitcode != 0:
            failures += 1
            print(f"| {name} | failed | | | |", flush=True)
            continue
        result = results.get()
        print(
            f"| {name} | {result.tensor_bytes / GIB:.2f} | "
            f"{result.peak_bytes / GIB:.2f} | {result.seconds:.1f} | "
            f"{result.processor_seconds:.1f} |",
            flush=True,
        )
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
