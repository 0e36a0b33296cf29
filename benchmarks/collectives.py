# SPDX-License-Identifier: Apache-2.0
"""An all-reduce of 256 MB between two ranks of one machine, against copies in memory.

The limit of memory is taken to be two copies of the tensor, made by both ranks at the
same time: that is what an all-reduce takes in which each rank copies its values to
where the other sees them, and the sum back. The values of both processes are checked.
Exits with 1 when a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from ratios import Ratios

RANKS = 2
BYTES = 256 << 20
#: 4 GB/s, or the limit of memory: the larger of both times.
SECONDS = BYTES / 4e9
LIMIT = 1.0
DTYPES = (torch.float32, torch.float16)


def together(function: Callable[..., Any], *arguments: torch.Tensor) -> float:
    """Seconds until the last rank has done what all began at the same time."""
    dist.barrier()
    started = time.perf_counter()
    function(*arguments)
    dist.barrier()
    return time.perf_counter() - started


def all_reduce(values: torch.Tensor) -> None:
    dist.all_reduce(values)
    torch.spyre.synchronize()


def measure(rank: int, folder: str, rounds: int, results: Any) -> None:
    """One rank; the first one puts (dtype, all-reduce, copy) of each round."""
    import torch_spyre  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group(
        "cpu:gloo,spyre:spyreccl",
        store=dist.FileStore(os.path.join(folder, "store"), RANKS),
        rank=rank,
        world_size=RANKS,
    )
    found = []
    for dtype in DTYPES:
        count = BYTES // dtype.itemsize
        ones = torch.ones(count, dtype=dtype).to("spyre")
        source, target = (torch.ones(BYTES, dtype=torch.uint8) for _ in range(2))
        # In the first round the ranks find each other's memory.
        for number in range(rounds + 1):
            values = ones + rank
            torch.spyre.synchronize()
            seconds = together(all_reduce, values)
            copies = together(target.copy_, source)
            if not (values == 3).all().item():
                raise RuntimeError(f"rank {rank}: wrong sum of {dtype}")
            if number > 0:
                found.append((str(dtype).removeprefix("torch."), seconds, copies))
    if rank == 0:
        results.put(found)
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=measure, args=(r, folder, options.rounds, results))
            for r in range(RANKS)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        if any(process.exitcode for process in ranks):
            raise SystemExit("a rank failed")
        found = results.get()
    ratios = Ratios()
    for dtype in dict.fromkeys(name for name, _, _ in found):
        rows = [(a, max(2 * c, SECONDS)) for name, a, c in found if name == dtype]
        values = [a / allowed for a, allowed in rows]
        ratios.add(
            f"all-reduce of 256 MB, {dtype} / two copies, or 4 GB/s",
            statistics.median(values),
            LIMIT,
            repeated=values,
        )
    return ratios.finish()


if __name__ == "__main__":
    sys.exit(main())
