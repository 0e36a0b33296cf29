# SPDX-License-Identifier: Apache-2.0
"""Device-memory traffic and predicted time of plans: ours beside the reference's rules.

Compiles models, plans each imported graph in both ways (the reference's: work
division and LX planning in mode=reference with the greedy solver; layouts are ours in
both) and runs both on the device model, which counts the bytes. Both must compute the
same values, but for what rounding does to sums that they split differently. Compulsory
is, of each argument and output, what the plan that touches less of it reads and writes
there, but at most the whole tensor once each way: of a table only the rows that are
looked up, of a cache that is read and extended by a row all of it and the row. Exits
with 1 when our plan moves more than the reference's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["SPYRE_CACHE_DIR"] = tempfile.mkdtemp(prefix="spyre-benchmark-")
os.environ["SPYRE_DUMP_DIR"] = tempfile.mkdtemp(prefix="spyre-benchmark-")
sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import numpy as np
import torch
import torch_spyre  # noqa: F401
from models import Llama, LlamaConfig
from ratios import Ratios
from torch import nn

TOOLS = Path(__file__).resolve().parent.parent / "build" / "bin"
DUMPS = Path(os.environ["SPYRE_DUMP_DIR"])
PLANS = {"ours": "", "reference": "mode=reference lx-solver=greedy"}


def compile_models() -> list[tuple[str, list[Path]]]:
    """The folder of each part that a model was compiled to."""
    models: list[tuple[str, list[Path]]] = []

    def dumped(name: str, function, *arguments) -> None:
        before = set(DUMPS.iterdir())
        with torch.no_grad():
            torch.compile(function, backend="spyre", dynamic=False)(*arguments)
        models.append((name, sorted(set(DUMPS.iterdir()) - before)))

    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    dumped(
        "softmax [512, 1024]",
        lambda x: x.softmax(-1),
        torch.randn(512, 1024, dtype=torch.float16).to("spyre"),
    )
    dumped(
        "encoder layer 512, 128 tokens",
        nn.TransformerEncoderLayer(512, 8, batch_first=True).eval().half().to("spyre"),
        torch.randn(1, 128, 512, dtype=torch.float16).to("spyre"),
    )
    config = LlamaConfig()
    llama = Llama(config).eval().half().to("spyre")
    cache = llama.make_cache(1, next(llama.parameters()))
    for name, positions in (
        ("Llama 4 layers, 32 tokens", torch.arange(32)),
        ("Llama 4 layers, decode", torch.arange(32, 33)),
    ):
        tokens = torch.randint(0, config.vocabulary, (1, len(positions)))
        dumped(name, llama, tokens.to("spyre"), positions.to("spyre"), cache)
    return models


# Elements of a stick.
LANES = {"f16": 64, "bf16": 64, "i1": 64, "f32": 32, "i64": 32, "i32": 32}
TENSOR = re.compile(
    r"tensor<((?:\d+x)*)(\w+), #spyre_graph\.layout<order = \[([\d, ]*)\](, sparse)?"
)


def device_bytes(kind: str) -> int | None:
    """Of a tensor of this type, padding included; None if its layout is explicit."""
    match = TENSOR.search(kind)
    if not match:
        return None
    shape = [int(size) for size in match[1].split("x") if size]
    order = [int(dim) for dim in match[3].split(",") if dim.strip()]
    sticks = 1
    for dim, size in enumerate(shape):
        along = not match[4] and order[-1] == dim
        sticks *= -(-size // LANES[match[2]]) if along else size
    return 128 * sticks


def run(part: Path, options: str, out: Path) -> dict:
    """The report of the device model."""
    program = out / "program.mlir"
    out.mkdir()
    subprocess.run(
        [
            TOOLS / "spyre-opt",
            part / "00-import.mlir",
            f"--spyre-pipeline={options}",
            "-o",
            program,
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    names = re.findall(r"--arg (\S+)", (part / "run.sh").read_text())
    arguments = [word for name in names for word in ("--arg", str(part / name))]
    report = out / "report.json"
    subprocess.run(
        [TOOLS / "spyre-run", program, *arguments]
        + ["--timing", "--json", report, "--out-dir", out],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return json.loads(report.read_text())


def argument_bytes(part: Path) -> dict[str, int]:
    """Device bytes of the arguments by name, as far as their layouts tell."""
    text = (part / "00-import.mlir").read_text()
    header = next(line for line in text.splitlines() if "func.func @main" in line)
    sizes = {}
    for kind, name in re.findall(
        r"(tensor<.*?>>|tensor<[^#]*?>) \{[^}]*spyre_graph\.name = \"([^\"]+)\"", header
    ):
        size = device_bytes(kind)
        if size is not None:
            sizes[name] = size
    return sizes


def agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two results differ by no more than a step of the largest DL16 value."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    one, other = one.astype(float), other.astype(float)
    step = 2**-9 * np.nanmax(np.abs(other), initial=0)
    return np.allclose(one, other, rtol=0, atol=step, equal_nan=True)


def count_compulsory(part: Path, reports: list[dict]) -> int:
    sizes = argument_bytes(part)
    touched: dict[tuple[str, str], int] = {}
    for report in reports:
        for tensor in report["tensors"]:
            if tensor["name"] == "pool":
                continue
            for way in ("bytes_read", "bytes_written"):
                key = (tensor["name"], way)
                least = min(tensor[way], touched.get(key, tensor[way]))
                touched[key] = min(least, sizes.get(tensor["name"], least))
    return sum(touched.values())


def main() -> int:
    print(
        f"{'model':<32}{'compulsory kB':>14}{'ours kB':>10}{'reference':>11}"
        f"{'ours/comp.':>11}{'ours/ref.':>10}{'us ours':>9}{'us ref.':>9}{'ratio':>7}"
    )
    found = Ratios()
    for name, parts in compile_models():
        compulsory = 0
        moved = dict.fromkeys(PLANS, 0)
        seconds = dict.fromkeys(PLANS, 0.0)
        for part in parts:
            reports = {}
            for plan, options in PLANS.items():
                reports[plan] = run(part, options, part / plan)
                memory = reports[plan]["bytes"]["device_memory"]
                moved[plan] += memory["read"] + memory["written"]
                seconds[plan] += reports[plan]["predicted_seconds"]
            compulsory += count_compulsory(part, list(reports.values()))
            for file in (part / "ours").glob("*.npy"):
                other = part / "reference" / file.name
                if not agree(np.load(file), np.load(other)):
                    raise SystemExit(f"{name}: {file.name} differs between the plans")
        print(
            f"{name:<32}{compulsory / 1e3:>14.0f}{moved['ours'] / 1e3:>10.0f}"
            f"{moved['reference'] / 1e3:>11.0f}{moved['ours'] / compulsory:>11.2f}"
            f"{moved['ours'] / moved['reference']:>10.2f}"
            f"{seconds['ours'] * 1e6:>9.1f}{seconds['reference'] * 1e6:>9.1f}"
            f"{seconds['ours'] / seconds['reference']:>7.2f}"
        )
        ratio = moved["ours"] / moved["reference"]
        found.add(f"bytes of {name}: plan / reference's", ratio, 1.0)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
