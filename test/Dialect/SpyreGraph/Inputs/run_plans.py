# SPDX-License-Identifier: Apache-2.0
"""Runs plans of one function of fp16 tensors on the same numbers and compares the bits.

Usage: run_plans.py FOLDER PLAN... Exits with 1 and says which results differ.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

ARGUMENT = re.compile(
    r"%arg\d+: memref<([\dx]+)xf16[^{]*\{spyre_graph.name = \"(\w+)\""
)


def run(plan: pathlib.Path, folder: pathlib.Path) -> dict[str, bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "program.mlir"
    command = ["spyre-run", program, "--check=full", "--out-dir", folder]
    rng = np.random.default_rng(20261122)
    outputs = []
    for shape, name in ARGUMENT.findall(plan.read_text()):
        if name.startswith("out"):
            outputs.append(name)
            command += ["--arg", "zeros"]
            continue
        path = folder / f"{name}.npy"
        values = rng.standard_normal([int(size) for size in shape.split("x")])
        np.save(path, values.astype(np.float16))
        command += ["--arg", path]
    lower = ["spyre-opt", plan, "--convert-spyre-graph-to-ktir", "-o", program]
    for step in (lower, command):
        subprocess.run(step, check=True)
    return {name: np.load(folder / f"{name}.npy").tobytes() for name in outputs}


def main() -> int:
    folder, *plans = map(pathlib.Path, sys.argv[1:])
    results = [run(plan, folder / str(i)) for i, plan in enumerate(plans)]
    failures = 0
    for plan, result in zip(plans, results, strict=True):
        for name, bits in results[0].items():
            if result.get(name) != bits:
                failures += 1
                print(f"{name} of {plan} differs")
    if not failures:
        print(f"{len(plans)} plans give the same bits")
    return 1 if failures or not results[0] else 0


if __name__ == "__main__":
    sys.exit(main())
