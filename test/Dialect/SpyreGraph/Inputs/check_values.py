# SPDX-License-Identifier: Apache-2.0
"""Plans, lowers and runs random graphs and compares the results with numpy.

Usage: check_values.py SEED COUNT FOLDER [TILING OPTION]... Prints the graphs that
differ and exits with 1 if there are any. Inputs are small integers, which every format holds
exactly; the tolerance is that of fp16 sums of them.
"""

import inspect
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
from random_graphs import SIZES, Function

# Each pass and, after it, a check of what has been decided so far.
PLAN = (
    "builtin.module(func.func(spyre-decompose,{check},spyre-propagate-layouts,{check},"
    "spyre-coarse-tiling{{{tiling}}},{check},spyre-work-division,{check}),"
    "spyre-bufferize,func.func({check},spyre-lx-planning,{check},spyre-memory-planning,"
    "spyre-verify-plan),convert-spyre-graph-to-ktir)"
)
NUMPY = {"f16": np.float16, "f32": np.float32, "i64": np.int64}
MAX_ELEMENTS = 200_000


class EmptyTable(Exception):
    """A gather from a table without rows has no value."""


class EvaluatedFunction(Function):
    """A random function that knows the value of each of its values."""

    def __init__(self, rng, name):
        super().__init__(rng, name)
        self.known = {}
        self.inputs = []
        self.numpy_rng = np.random.default_rng(rng.randrange(1 << 30))

    def argument(self, shape, element="f16"):
        value = super().argument(shape, element)
        caller = inspect.currentframe().f_back.f_locals
        if element == "i64" and caller.get("kind") == "gather":
            rows = caller["shape"][caller["axis"]]
            if rows == 0:
                raise EmptyTable
            data = self.numpy_rng.integers(0, rows, shape)
        else:
            data = self.numpy_rng.integers(-2, 3, shape)
        self.known[value[0]] = np.asarray(
            data, np.int64 if element == "i64" else np.float64
        )
        self.inputs.append(value)
        return value

    def view(self, source, shape, results):
        value = super().view(source, shape, results)
        indices = np.indices(shape)
        names = {f"d{i}": indices[i] for i in range(len(shape))}
        coordinates = tuple(
            np.broadcast_to(
                eval(text.replace("floordiv", "//").replace("mod", "%"), {}, names),
                shape,
            )
            for text in results
        )
        data = self.known[source[0]]
        self.known[value[0]] = (
            data[coordinates] if results else np.broadcast_to(data, shape)
        )
        return value

    def op(self, name, inputs, shape, element, attributes="", init=None):
        name = "neg" if name == "exp" else name  # keeps values small and exact
        result = super().op(name, inputs, shape, element, attributes, init)
        data = [self.known[value[0]] for value in inputs]
        numbers = [
            int(text) for text in re.findall(r"\d+", attributes.split("i64:")[-1])
        ]
        if name == "neg":
            out = -data[0]
        elif name == "add":
            out = data[0] + data[1]
        elif name == "mul":
            out = data[0] * data[1]
        elif name == "sum":
            out = data[0].sum(axis=tuple(numbers)).reshape(result[1])
        elif name == "matmul":
            out = data[0] @ data[1]
        elif name == "fill":
            out = np.ones(shape)
        elif name == "cumsum":
            out = np.cumsum(data[0], axis=numbers[0])
        elif name == "gather":
            out = np.take(data[0], data[1], axis=numbers[0])
        elif init is None and "maps" not in attributes:
            out = data[0]
        else:
            out = np.full(shape, np.nan) if init is None else self.known[init[0]].copy()
            into = re.findall(r"-> \(([^)]*)\)", attributes)[1]
            starts = [
                int(text.partition("+")[2] or 0) for text in into.split(",") if text
            ]
            box = zip(starts, data[0].shape, strict=True)
            out[tuple(slice(start, start + size) for start, size in box)] = data[0]
        self.known[result[0]] = out
        return result


def check(seed: int, number: int, folder: pathlib.Path, tiling: str) -> str | None:
    """The difference found for one graph, if any."""
    rng = random.Random(seed * 1000003 + number)
    function = EvaluatedFunction(rng, f"f{seed}_{number}")
    rank = rng.randint(0, 4)
    function.argument(
        [rng.choice(SIZES[1:8] if rank > 2 else SIZES) for _ in range(rank)]
    )
    try:
        for _ in range(rng.randint(1, 6)):
            function.step()
            if (
                max(np.prod(value[1], dtype=int) for value in function.values)
                > MAX_ELEMENTS
            ):
                break
        if rng.random() < 0.3:
            function.update_argument()
    except EmptyTable:
        return None
    source, program = folder / "graph.mlir", folder / "program.mlir"
    source.write_text(function.text())
    plan = PLAN.format(tiling=tiling, check="spyre-verify-plan{partial}")
    steps = [["spyre-opt", source, f"--pass-pipeline={plan}", "-o", program]]
    run = ["spyre-run", program, "--out-dir", folder]
    for value in function.inputs:
        path = folder / f"{value[0][1:]}.npy"
        np.save(path, function.known[value[0]].astype(NUMPY[value[2]]))
        run += ["--arg", path]
    results = [value for value in function.values if value[0].startswith("%v")][-3:]
    run += ["--arg", "zeros"] * len(results)
    for step in [*steps, run]:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
    for position, value in enumerate(results):
        found = np.load(folder / f"out{position}.npy").astype(np.float64)
        expected = np.asarray(function.known[value[0]], np.float64)
        if found.shape != expected.shape:
            return (
                f"result {position} has shape {found.shape}, expected {expected.shape}"
            )
        wrong = ~(np.abs(found - expected) <= 0.05 * np.maximum(np.abs(expected), 1))
        if wrong.any():
            return (
                f"result {position} differs in {wrong.sum()} of {wrong.size} elements"
            )
    return None


def main() -> int:
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    tiling = " ".join(sys.argv[4:])
    folder.mkdir(parents=True, exist_ok=True)
    failures = 0
    for number in range(count):
        difference = check(seed, number, folder, tiling)
        if difference:
            failures += 1
            print(f"seed {seed}, graph {number}: {difference}")
            print((folder / "graph.mlir").read_text())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
