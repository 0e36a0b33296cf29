# SPDX-License-Identifier: Apache-2.0
"""100,000 random eager operators and copies over 4 threads and 3 streams each.

Every result is compared with the CPU's; integers, so that it is exact. Device
memory must end where it began. Exits with 1 when anything differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time

import torch

SHAPES = [(7,), (3, 70), (65, 4), (2, 3, 64)]
OPERATORS = [
    lambda a, b: a + b,
    lambda a, b: a - 2 * b,
    lambda a, b: torch.maximum(a, b),
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: a.clone().copy_(b),
    lambda a, b: a.amax(-1, keepdim=True).expand_as(b) - b,
    lambda a, b: torch.cat([a, b], 0)[: a.shape[0]],
    lambda a, b: a.transpose(0, -1).contiguous().transpose(0, -1) + b,
    lambda a, b: a.clone().add_(b).clamp_(-9, 9),
    lambda a, b: b.clone().fill_(3) + a,
]


def work(seed: int, count: int, failures: list[str]) -> None:
    choose = random.Random(seed)
    streams = [torch.spyre.Stream() for _ in range(3)]
    generator = torch.Generator().manual_seed(seed)
    pool = []
    for shape in SHAPES:
        pair = [torch.randint(-9, 10, shape, generator=generator) for _ in range(2)]
        host = [t.half() for t in pair]
        pool.append((host, [t.to("spyre") for t in host]))
    torch.spyre.synchronize()
    for step in range(count):
        host, device = choose.choice(pool)
        operator = choose.randrange(len(OPERATORS))
        with streams[step % 3]:
            result = OPERATORS[operator](*device)
            if step % 7 == 0:
                result = result.to("spyre", copy=True)
        if not torch.equal(result.cpu(), OPERATORS[operator](*host)):
            failures.append(f"thread {seed}, step {step}, operator {operator}")
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="operators in all")
    count = parser.parse_args().count
    torch.ones(1, device="spyre")
    torch.spyre.synchronize()
    before = torch.spyre.memory_allocated()
    failures: list[str] = []
    started = time.perf_counter()
    threads = [
        threading.Thread(target=work, args=(seed, count // 4, failures))
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.spyre.synchronize()
    seconds = time.perf_counter() - started
    left = torch.spyre.memory_allocated() - before
    print(f"{count} operators in {seconds:.0f} s, {len(failures)} differ")
    print(f"{left} bytes of device memory left over")
    for failure in failures:
        print(failure)
    sys.exit(bool(failures) or left != 0)


if __name__ == "__main__":
    main()
