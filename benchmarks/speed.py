# SPDX-License-Identifier: Apache-2.0
"""Time of the functional engine on well-known kernels, as ratios to torch on the CPU.

Torch's time is that of eager fp16, bf16 or fp32, whichever is shortest: on hosts
without fp16 arithmetic some of its fp16 kernels take a thousand times longer. Both
sides in turns, with the same number of threads: `spyre-run --repeat` in a process of
its own, torch here. Results are compared, too. With --instructions, valgrind counts
those of spyre-run for one run of each kernel on fewer than 2^24 elements, of products
on a part. Exits with 1 when a ratio is over its limit or a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import numpy as np
import torch
from ktir import kernels
from ratios import Ratios

ROOT = Path(__file__).resolve().parent.parent
RUN = shutil.which("spyre-run") or ROOT / "build" / "bin" / "spyre-run"


class Case:
    """A kernel: KTIR, inputs, torch's way to the last argument, limits."""

    def __init__(
        self,
        text: str,
        inputs: list[torch.Tensor],
        reference: Callable[..., torch.Tensor],
        limit: float = 1.0,
        tolerance: float = 0.01,
        counted: Case | None = None,
    ) -> None:
        self.text, self.inputs, self.reference = text, inputs, reference
        self.limit, self.tolerance = limit, tolerance
        #: What --instructions counts, for which valgrind may take minutes: fewer tiles
        #: of the same size, or nothing.
        self.counted: Case | None = counted or self


def now(cpu: bool) -> float:
    return time.process_time() if cpu else time.perf_counter()


def half(*sizes: int, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(sizes) * scale).half()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor
) -> torch.Tensor:
    tokens, heads, width = q.shape
    kv_heads = k.shape[2]

    def gather(cache: torch.Tensor) -> torch.Tensor:
        return cache[table].flatten(1, 2).transpose(1, 2)

    grouped = q.view(tokens, kv_heads, heads // kv_heads, width)
    result = torch.nn.functional.scaled_dot_product_attention(
        grouped, gather(k), gather(v)
    )
    return result.reshape(q.shape)


def make_cases() -> dict[str, Case]:
    torch.manual_seed(0)
    width = 8192
    angle = torch.outer(torch.arange(4096.0), 1e4 ** -(torch.arange(64.0) / 64)).repeat(
        1, 2
    )
    table = torch.randperm(8 * 64).int().view(8, 64)
    return {
        "softmax [4096, 1024]": Case(
            kernels.softmax(), [half(4096, 1024)], lambda x: x.softmax(-1)
        ),
        "matmul [64, 2048] x [2048, 8192]": Case(
            kernels.matmul(),
            [half(64, 2048), half(2048, 8192)],
            torch.mm,
            counted=Case(
                kernels.matmul(64, 512, 2048, cores=8),
                [half(64, 512), half(512, 2048)],
                torch.mm,
            ),
        ),
        "layer norm [1151, 8192]": Case(
            kernels.layernorm(),
            [half(1151, width), half(width), half(width)],
            lambda x, w, b: torch.nn.functional.layer_norm(x, (width,), w, b),
        ),
        "rotary embedding [40, 4096, 128]": Case(
            kernels.rope(),
            [half(40, 4096, 128), angle.cos().half(), angle.sin().half()],
            rotate,
        ),
        "paged attention 8 x 32 / 8 heads": Case(
            kernels.paged_attention(),
            [half(8, 32, 128), half(512, 16, 8, 128), half(512, 16, 8, 128), table],
            attend,
        ),
        "add [4096] on 32 cores": Case(
            kernels.add(), [half(4096), half(4096)], torch.add, limit=3
        ),
        "matmul [1024, 1024] x [1024, 1024]": Case(
            kernels.matmul(1024, 1024, 1024, step=256),
            [half(1024, 1024), half(1024, 1024)],
            torch.mm,
            counted=Case(
                kernels.matmul(1024, 256, 128, cores=4, step=256),
                [half(1024, 256), half(256, 128)],
                torch.mm,
            ),
        ),
        **make_large_cases(),
    }


def make_large_cases() -> dict[str, Case]:
    """Kernels on 2^24 elements."""
    rows, columns = 16384, 1024
    x = half(rows, columns)
    square = half(4096, 4096)
    index = torch.randint(8192, (rows // 64, 64), dtype=torch.int32)
    cases = {
        "add [16384, 1024]": Case(
            kernels.add_rows(rows, columns), [x, half(rows, columns)], torch.add
        ),
        "gelu [16384, 1024]": Case(
            kernels.gelu(rows, columns), [x], torch.nn.functional.gelu
        ),
        "softmax [16384, 1024]": Case(
            kernels.softmax(rows), [x], lambda x: x.softmax(-1)
        ),
        "layer norm [2048, 8192]": Case(
            kernels.layernorm(2048),
            [half(2048, 8192), half(8192), half(8192)],
            lambda x, w, b: torch.nn.functional.layer_norm(x, (8192,), w, b),
        ),
        "sum of rows [4096, 4096]": Case(
            kernels.sum_rows(4096, 4096), [square], lambda x: x.sum(1)
        ),
        "sum of columns [4096, 4096]": Case(
            kernels.sum_columns(4096, 4096), [square], lambda x: x.sum(0)
        ),
        "transpose [4096, 4096]": Case(
            kernels.transpose(4096, 4096), [square], lambda x: x.t().contiguous()
        ),
        "gather [16384, 1024] of 8192 rows": Case(
            kernels.gather(rows, columns, 8192),
            [half(8192, columns), index],
            lambda table, index: table[index].flatten(0, 1),
        ),
    }
    for case in cases.values():
        case.counted = None
    return cases


class Bench:
    """Runs one case both ways."""

    def __init__(self, folder: Path, case: Case, threads: int, cpu: bool) -> None:
        self.case, self.folder, self.threads, self.cpu = case, folder, threads, cpu
        (folder / "k.mlir").write_text(case.text)
        self.single = self.inputs_of(torch.float32)
        self.expected = case.reference(*self.single)
        for i, x in enumerate(case.inputs):
            np.save(folder / f"{i}.npy", x.numpy())
        np.save(folder / "out.npy", np.zeros(self.expected.shape, np.float16))

    def inputs_of(self, dtype: torch.dtype) -> list[torch.Tensor]:
        return [x.to(dtype) if x.is_floating_point() else x for x in self.case.inputs]

    def _command(self, threads: int) -> list[str | Path]:
        command = [RUN, self.folder / "k.mlir", "--threads", str(threads)]
        for name in [*map(str, range(len(self.case.inputs))), "out"]:
            command += ["--arg", self.folder / f"{name}.npy"]
        return command

    def own(self, repeats: int, *flags: str) -> float:
        command = self._command(self.threads)
        command += ["--repeat", str(repeats), "--json", "/dev/stdout", *flags]
        result = subprocess.run(
            [str(c) for c in command], check=True, stdout=subprocess.PIPE
        )
        report = json.loads(result.stdout)
        return report["host_cpu_seconds" if self.cpu else "host_seconds"]

    def instructions(self) -> int | None:
        """Of one run of the kernel on one thread; None if valgrind is missing."""
        if not shutil.which("valgrind"):
            return None
        # Counts are the same beside other work.
        with ThreadPoolExecutor(2) as pool:
            once, twice = pool.map(self._count, (1, 2))
        return twice - once

    def _count(self, repeats: int) -> int:
        profile = self.folder / f"profile{repeats}"
        callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        command = [*callgrind, *self._command(1), "--repeat", str(repeats)]
        subprocess.run([str(c) for c in command], check=True, capture_output=True)
        for line in profile.read_text().splitlines():
            if line.startswith("summary:"):
                return int(line.split()[1])
        raise SystemExit(f"{profile} has no line 'summary:'")

    def torch(self, seconds: float, inputs: list[torch.Tensor]) -> float:
        times = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 3:
            started = now(self.cpu)
            self.case.reference(*inputs)
            times.append(now(self.cpu) - started)
            if sum(times) > 10 * seconds:
                break
        return statistics.median(times)

    def error(self) -> float:
        """Largest error in units of the largest value."""
        self.own(1, "--out-dir", str(self.folder / "result"))
        found = torch.from_numpy(np.load(self.folder / "result" / "y.npy")).float()
        expected = self.expected.float()
        return ((found - expected).abs().max() / expected.abs().max()).item()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="compare CPU time, for busy hosts: torch's threads wait spinning",
    )
    parser.add_argument("--instructions", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"{'kernel, times in ms':<34}{'spyre-run':>13}{'torch fp16':>11}{'bf16':>9}"
        f"{'fp32':>9}{'error':>9}"
    )
    found, failed = Ratios(), False
    for name, case in make_cases().items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), case, arguments.threads, arguments.cpu_time)
            own: list[float] = []
            # Of torch, by dtype.
            inputs = [
                bench.case.inputs,
                bench.inputs_of(torch.bfloat16),
                bench.single,
            ]
            times: list[list[float]] = [[], [], []]
            for _ in range(arguments.rounds):
                for given, known in zip(inputs, times, strict=True):
                    # Where torch has no kernel it takes seconds: once is enough.
                    if not known or known[0] < 1:
                        known.append(bench.torch(0.3, given))
                # As long as torch's fastest type is measured.
                repeats = max(5, min(2000, int(0.3 / min(map(min, times)))))
                own.append(bench.own(repeats))
            best = [min(known) for known in times]
            mine, theirs = min(own), min(best)
            error = bench.error()
        instructions = None
        if arguments.instructions and case.counted:
            with tempfile.TemporaryDirectory() as folder:
                instructions = Bench(Path(folder), case.counted, 1, True).instructions()
        failed |= error > case.tolerance
        print(
            f"{name:<34}{mine * 1e3:>13.3f}{best[0] * 1e3:>11.3f}"
            f"{best[1] * 1e3:>9.3f}{best[2] * 1e3:>9.3f}{error:>9.1e}"
            f"{'  WRONG' if error > case.tolerance else ''}",
            flush=True,
        )
        found.add(
            f"kernel {name} / CPU",
            mine / theirs,
            case.limit,
            repeated=[time / theirs for time in own],
            instructions=instructions,
        )
    return found.finish() or int(failed)


if __name__ == "__main__":
    sys.exit(main())
