# SPDX-License-Identifier: Apache-2.0
"""Writing and reading the SuperDSC bundles of a model of many blocks.

Encoder layers are compiled with ``superdsc_compatible``; their plan is written as
bundles, and these are read and validated. Processor time, the best of several
runs: the compile that made the bundles is torch.compile's first call without the
run, from Python to the executable; of that "own" is what follows AOT. Writing
includes parsing the plan, both include starting spyre-translate and what the file
system takes; --folder says on which: by default one in memory, as the growth of a
disk's own time is not linear. Exits with 1 when a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ["SPYRE_CACHE_DIR"] = tempfile.mkdtemp(prefix="spyre-benchmark-")

import torch
from first_call import Times as Spent
from first_call import count_own_time
from ratios import Ratios
from run import empty_caches
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
TRANSLATE = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build"))
TRANSLATE = TRANSLATE / "bin" / "spyre-translate"
COUNTS = (20, 40, 80)
GROWTH_LIMIT = 2.2
#: After AOT, in the process that compiles.
OWN = Spent()


@dataclass
class Times:
    """Seconds of one model."""

    files: int
    compile: float
    own: float
    write: float
    read: float


def make_model(count: int) -> nn.Module:
    """Encoder layers, one after another."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return nn.TransformerEncoder(layer, count).eval().half().to("spyre")


def compile_once(model: nn.Module, x: torch.Tensor) -> tuple[float, float]:
    """Seconds of compiling, and of what follows AOT."""
    empty_caches()
    OWN.forget()
    compiled = torch.compile(
        model,
        backend="spyre",
        dynamic=False,
        options={"superdsc_compatible": True},
    )
    with torch.no_grad():
        started = time.process_time()
        compiled(x)
        torch.spyre.synchronize()
        middle = time.process_time()
        compiled(x)
        torch.spyre.synchronize()
        return 2 * middle - started - time.process_time(), OWN.processor


def plan(model: nn.Module, x: torch.Tensor, folder: Path) -> Path:
    """The file of the model's plan."""
    os.environ["SPYRE_DUMP_DIR"] = str(folder)
    compile_once(model, x)
    del os.environ["SPYRE_DUMP_DIR"]
    (planned,) = folder.rglob("*-spyre-verify-plan.mlir")
    return planned


def translate(*arguments: object) -> float:
    """Seconds of a run of spyre-translate."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [TRANSLATE, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(count: int, repeats: int, root: str | None) -> Times:
    """Compile, write and read a model of so many blocks."""
    model = make_model(count)
    x = torch.randn(1, 16, 128, dtype=torch.float16).to("spyre")
    total, own = map(
        min, zip(*(compile_once(model, x) for _ in range(repeats)), strict=True)
    )
    with tempfile.TemporaryDirectory(prefix="spyre-benchmark-", dir=root) as name:
        folder = Path(name)
        planned = plan(model, x, folder / "dump")
        writing, reading = [], []
        # Short, and growth is a quotient of differences.
        for _ in range(3 * repeats):
            shutil.rmtree(folder / "bundles", ignore_errors=True)
            writing.append(
                translate("--to-superdsc", planned, "-o", folder / "bundles")
            )
            reading.append(translate("--validate-superdsc", folder / "bundles"))
        files = len(list((folder / "bundles").rglob("sdsc*.json")))
    return Times(files, total, own, min(writing), min(reading))


def main() -> int:
    """Print the times and ratios; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    parser.add_argument(
        "--folder", default=memory, help="where bundles are written (default: memory)"
    )
    arguments = parser.parse_args()
    repeats, root = arguments.repeats, arguments.folder
    count_own_time(OWN)
    # Modules that are imported late, and the first use of the device.
    measure(1, 1, root)
    times = [measure(count, repeats, root) for count in COUNTS]
    print(
        f"{'blocks':>8}{'files':>8}{'compile, s':>12}{'own, s':>10}"
        f"{'write, s':>10}{'read, s':>10}"
    )
    for count, t in zip(COUNTS, times, strict=True):
        print(
            f"{count:>8}{t.files:>8}{t.compile:>12.2f}{t.own:>10.2f}"
            f"{t.write:>10.2f}{t.read:>10.2f}"
        )
    middle = times[1]
    found = Ratios()
    found.add("write 40 blocks / compile them", middle.write / middle.compile, 1.0)
    found.add("read 40 blocks / compile them", middle.read / middle.compile, 1.0)
    for name in ("write", "read"):
        t20, t40, t80 = (getattr(t, name) for t in times)
        growth = (t80 - t40) / (t40 - t20)
        title = f"{name} 20, 40, 80 blocks: (T80-T40) / (T40-T20)"
        found.add(title, growth, GROWTH_LIMIT)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
