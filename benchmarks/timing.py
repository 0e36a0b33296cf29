# SPDX-License-Identifier: Apache-2.0
"""The timing engine on whole programs.

Host time of simulating a transformer block against that of executing it, and how far
the closed-form cost model, which planners use, agrees with the engine kernel by
kernel: rank correlation, worst ratio. Exits with 1 if simulating takes longer than
executing.
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
from ktir import kernels
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


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[inverse]


def main() -> int:
    reports: list[tuple[str, dict]] = []
    status = 0
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
            reports.append((f"encoder {width}", best[0]))
        ratio = simulate / execute
        status |= ratio >= 1
        print(
            f"width {width}, {heads} heads, {length} tokens".ljust(34)
            + f"{execute * 1e3:>11.2f}{simulate * 1e3:>12.2f}{ratio:>8.2f}"
            + ("" if ratio < 1 else "  OVER")
        )

    with tempfile.TemporaryDirectory() as folder:

        def array(*sizes: int) -> str:
            name = f"{folder}/{'x'.join(map(str, sizes))}.npy"
            np.save(name, np.zeros(sizes, np.float16))
            return name

        def add(name: str, text: str, *arguments: str) -> None:
            reports.append((name, run(text, list(arguments), "--predict-only")))

        for cores in (1, 4, 32):
            x = array(1024, 1024)
            add("softmax", kernels.softmax(1024, 1024, cores), x, x)
            x = array(4096)
            add("add", kernels.add(4096, cores), x, x, x)
            for m, k, n in ((8, 1024, 2048), (64, 2048, 2048), (128, 1024, 1024)):
                # Two accumulators and the tile of B have to fit LX.
                step = 256 if cores > 1 else 64
                add(
                    "matmul",
                    kernels.matmul(m, k, n, cores, step),
                    array(m, k),
                    array(k, n),
                    array(m, n),
                )
            x, w = array(128, 2048), array(2048)
            add("layer norm", kernels.layernorm(128, 2048, cores), x, w, w, x)
    pairs = [
        (
            name,
            kernel["name"],
            kernel["cost_model_seconds"],
            kernel["predicted_seconds"],
        )
        for name, report in reports
        for kernel in report["kernels"]
        if kernel["predicted_seconds"] > 0
    ]
    model = np.array([p[2] for p in pairs])
    engine = np.array([p[3] for p in pairs])
    a, b = ranks(model), ranks(engine)
    correlation = float(np.corrcoef(a, b)[0, 1])
    ratio = model / engine
    worst = int(np.argmax(np.abs(np.log(ratio))))
    print(
        f"\ncost model against timing engine, {len(pairs)} kernels: rank correlation "
        f"{correlation:.3f}, model / engine {np.median(ratio):.2f} in the median, "
        f"{ratio.min():.2f} to {ratio.max():.2f}"
    )
    print(
        f"furthest apart: {pairs[worst][1]} of {pairs[worst][0]}, model "
        f"{model[worst] * 1e6:.2f} us, engine {engine[worst] * 1e6:.2f} us"
    )
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
