# SPDX-License-Identifier: Apache-2.0
"""Plans a graph with and without moves over the ring: same bits, less predicted time.

Usage: check_reshard_pays.py GRAPH FOLDER. Prints both times.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

SHAPES = [(512, 1024), (1024, 2048), (2048, 1024)]


def run(*command) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def main() -> int:
    graph, folder = map(pathlib.Path, sys.argv[1:])
    rng = np.random.default_rng(20260607)
    inputs = []
    for number, shape in enumerate(SHAPES):
        path = folder / f"in{number}.npy"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, (rng.standard_normal(shape) / 8).astype(np.float16))
        inputs += ["--arg", path]
    times, results, moves = {}, {}, {}
    for reshard in ("false", "true"):
        program, out = folder / f"{reshard}.mlir", folder / reshard
        run(
            "spyre-opt",
            graph,
            "--pass-pipeline=builtin.module(func.func(spyre-decompose,"
            f"spyre-propagate-layouts,spyre-work-division{{reshard={reshard}}}),"
            f"spyre-bufferize,func.func(spyre-lx-planning{{reshard={reshard}}},"
            "spyre-memory-planning,spyre-verify-plan),convert-spyre-graph-to-ktir)",
            "-o",
            program,
        )
        moves[reshard] = len(re.findall(r"call @k\d+_reshard", program.read_text()))
        timing = run(
            "spyre-run",
            program,
            *inputs,
            "--arg",
            "zeros",
            "--predict-only",
            "--timing",
        )
        times[reshard] = float(re.search(r"predicted ([0-9.]+) us", timing).group(1))
        run("spyre-run", program, *inputs, "--arg", "zeros", "--out-dir", out)
        results[reshard] = np.load(out / "out0.npy")
    same = np.array_equal(results["false"], results["true"])
    print(f"without the ring {times['false']} us, with it {times['true']} us")
    print(f"{moves['false']} and {moves['true']} moves, same bits: {same}")
    good = same and moves["true"] > 0 and times["true"] < 0.95 * times["false"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
