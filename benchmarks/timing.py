# SPDX-License-Identifier: Apache-2.0
"""The timing engine on whole programs.

Host time of simulating a transformer block against that of executing it, and how far
the closed-form cost model, which planners use, agrees with the engine kernel by kernel:
rank correlation (Spearman's) per kind of kernel, the median of their ratio, and the
kernel where they are furthest apart. Exits with 1 if simulating takes longer than
executing, or if a rank correlation is not above 0.97.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["SPYRE_CACHE_DIR"] = tempfile.mkdtemp(prefix="spyre-benchmark-")

import numpy as np
import torch
from card import overlap
from card.overlap import Pair
from ktir import kernels
from ratios import Ratios
from torch import nn
from torch_spyre.compile_backend import compiled_parts

ROOT = Path(__file__).resolve().parent.parent
RUN = shutil.which("spyre-run") or ROOT / "build" / "bin" / "spyre-run"


def run(program: str, arguments: list[str], *flags: str) -> dict:
    """The report of spyre-run on a program's text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.mlir"
        file.write_text(program)
        command = [RUN, file, "--json", "/dev/stdout", *flags]
        for argument in arguments:
            command += ["--arg", argument]
        result = subprocess.run(
            [str(c) for c in command], check=True, stdout=subprocess.PIPE
        )
        return json.loads(result.stdout)


def compiled(model: nn.Module, *inputs: torch.Tensor) -> list:
    """The parts that a call of the compiled model adds."""
    before = len(compiled_parts())
    with torch.no_grad():
        torch.compile(model, backend="spyre", dynamic=False)(*inputs)
    return [part.graph for part in compiled_parts()[before:]]


def block(width: int, heads: int, length: int) -> list:
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    model = nn.TransformerEncoderLayer(width, heads, batch_first=True).eval().half()
    return compiled(model.to("spyre"), torch.randn(1, length, width).half().to("spyre"))


def pairs_of(program: str, report: dict) -> list[Pair]:
    return [
        Pair(program, k["name"], k["cost_model_seconds"], k["predicted_seconds"])
        for k in report["kernels"]
    ]


def time_blocks(ratios: Ratios) -> list[Pair]:
    """Kernels of transformer blocks; adds how long simulating one takes."""
    found: list[Pair] = []
    print(f"{'transformer block':<34}{'execute ms':>11}{'simulate ms':>12}{'ratio':>8}")
    for width, heads, length in ((256, 4, 64), (512, 8, 128), (1024, 16, 256)):
        execute = simulate = 0.0
        for graph in block(width, heads, length):
            count = len(graph.argument_names) + len(graph.outputs)
            arguments = ["zeros"] * count
            best: list[dict] = [
                run(graph.print_ktir(), arguments, "--repeat", "11") for _ in range(3)
            ]
            execute += min(r["host_seconds"] for r in best)
            simulate += min(r["simulation_seconds"] for r in best)
            found += pairs_of(f"encoder {width}", best[0])
        ratio = simulate / execute
        print(
            f"width {width}, {heads} heads, {length} tokens".ljust(34)
            + f"{execute * 1e3:>11.2f}{simulate * 1e3:>12.2f}{ratio:>8.2f}"
        )
        title = f"block of width {width}: simulate / execute"
        ratios.add(title, ratio, 1.0, strict=True)
    return found


def handwritten(folder: str) -> dict[str, list[Pair]]:
    """Kernels of the programs of ktir/kernels.py, by kind."""
    found: dict[str, list[Pair]] = {}

    def array(*sizes: int) -> str:
        name = f"{folder}/{'x'.join(map(str, sizes))}.npy"
        np.save(name, np.zeros(sizes, np.float16))
        return name

    def add(kind: str, name: str, text: str, *arguments: str) -> None:
        report = run(text, list(arguments), "--predict-only")
        found.setdefault(kind, []).extend(pairs_of(name, report))

    for cores in (1, 4, 32):
        x = array(1024, 1024)
        add("softmax", "softmax", kernels.softmax(1024, 1024, cores), x, x)
        x = array(4096)
        add("pointwise", "add", kernels.add(4096, cores), x, x, x)
        for m, k, n in ((8, 1024, 2048), (64, 2048, 2048), (128, 1024, 1024)):
            # Two accumulators and the tile of B have to fit LX.
            step = 256 if cores > 1 else 64
            arrays = array(m, k), array(k, n), array(m, n)
            add("matmul", "matmul", kernels.matmul(m, k, n, cores, step), *arrays)
        x, w = array(128, 2048), array(2048)
        text = kernels.layernorm(128, 2048, cores)
        add("reduction", "layer norm", text, x, w, w, x)
    return found


def main() -> int:
    ratios = Ratios()
    blocks = time_blocks(ratios)
    with tempfile.TemporaryDirectory() as folder:
        found = overlap.pairs(overlap.cases(), Path(folder))
        for kind, listed in handwritten(folder).items():
            found[kind] += listed
    overlap.agreement({**found, "transformer blocks": blocks}, ratios)
    return ratios.finish()


if __name__ == "__main__":
    sys.exit(main())
