# SPDX-License-Identifier: Apache-2.0
"""Lowers and runs plans that a test makes at random."""

import pathlib
import random
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np


def run_plan(
    text: str, values: Sequence[np.ndarray], folder: pathlib.Path
) -> np.ndarray | str:
    """What the plan's last argument, out0, holds afterwards, or the error.

    Runs it with every check, and predicts its time.
    """
    plan, program = folder / "plan.mlir", folder / "program.mlir"
    plan.write_text(text)
    run = ["spyre-run", program]
    for number, value in enumerate(values):
        path = folder / f"in{number}.npy"
        np.save(path, value)
        run += ["--arg", path]
    run += ["--arg", "zeros"]
    passes = ["--spyre-verify-plan", "--convert-spyre-graph-to-ktir", "--ktdp-strict"]
    for step in (
        ["spyre-opt", plan, *passes, "-o", program],
        [*run, "--check=full", "--out-dir", folder],
        [*run, "--predict-only"],
    ):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr or f"exit status {done.returncode}"
    return np.load(folder / "out0.npy")


def main(check: Callable[[random.Random, pathlib.Path], str | None]) -> int:
    """Checks COUNT plans from SEED in FOLDER, as the command line says.

    ``check`` runs one plan and says what is wrong. Prints the plans that fail and
    returns 1 if any does.
    """
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    failures = 0
    for number in range(count):
        difference = check(random.Random(seed * 1000003 + number), folder)
        if difference:
            failures += 1
            print(f"seed {seed}, plan {number}: {difference}")
            print((folder / "plan.mlir").read_text())
    return 1 if failures else 0
