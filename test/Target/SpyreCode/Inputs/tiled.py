# SPDX-License-Identifier: Apache-2.0
"""Launch pointwise jobs on larger arrays and compare with their tiles.

Usage: tiled.py OUTPUT PLANNED BOTH

PLANNED takes x, y and out of 64 x 128. Along columns, whole tiles follow each
other in device memory. BOTH takes x of 32 x 64, a row of 64 and y, and runs tile
by tile along both dimensions.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "SuperDSC" / "Inputs"))
from execute import run


def execute(program, root, name, x, y, like=None, result="arg2"):
    like = x if like is None else like
    for array, own in ((x, "x"), (y, "y"), (np.zeros_like(like), "z")):
        np.save(root / f"{own}.npy", array)
    arguments = [part for own in "xyz" for part in ("--arg", root / f"{own}.npy")]
    run("spyre-run", program, *arguments, "--out-dir", root / name)
    return np.load(root / name / f"{result}.npy")


def predict(program, *arguments):
    """The report of a launch that is not run."""
    file = program.with_suffix(".json")
    flags = [part for argument in arguments for part in ("--arg", argument)]
    run("spyre-run", program, *flags, "--predict-only", "--json", file)
    return json.loads(file.read_text())


def check_both(root, planned, random):
    for flags in ([], ["--symbolic-args"]):
        code = root / ("both" + "".join(flags))
        run("spyre-translate", "--to-spyrecode", *flags, planned, "-o", code)
        rows, columns = 3, 5
        x = random.standard_normal((32 * rows, 64 * columns)).astype(np.float16)
        row = random.standard_normal(64 * columns).astype(np.float16)
        found = execute(code, root, f"{code.name}.all", x, row, like=x, result="y")
        tile = root / f"{code.name}.tile"
        for i in range(rows):
            for j in range(columns):
                down = slice(32 * i, 32 * i + 32)
                across = slice(64 * j, 64 * j + 64)
                part = x[down, across]
                own = execute(code, root, tile.name, part, row[across], part, "y")
                if found[down, across].tobytes() != own.tobytes():
                    sys.exit(f"{code.name}: tile {i}, {j} has other bits")
        # A prediction is that of all tiles.
        one = predict(code, "zeros", "zeros", "zeros")
        assert one["kernels"] and one["tensors"]
        np.save(root / "x.npy", x)
        np.save(root / "y.npy", row)
        np.save(root / "z.npy", x)
        many = predict(code, root / "x.npy", root / "y.npy", root / "z.npy")
        count = rows * columns
        assert len(many["kernels"]) == count * len(one["kernels"])
        assert np.isclose(many["predicted_seconds"], count * one["predicted_seconds"])
        assert many["bottleneck"] == one["bottleneck"]
        starts = [kernel["start_seconds"] for kernel in many["kernels"]]
        assert starts == sorted(starts) and starts[-1] < many["predicted_seconds"]
        for whole, part in zip(many["tensors"], one["tensors"], strict=True):
            assert whole["name"] == part["name"]
            assert whole["bytes_read"] == count * part["bytes_read"]
            assert whole["bytes_written"] == count * part["bytes_written"]


def main():
    root = Path(sys.argv[1])
    root.mkdir()
    random = np.random.default_rng(0)
    for flags in ([], ["--symbolic-args"]):
        code = root / ("code" + "".join(flags))
        run("spyre-translate", "--to-spyrecode", *flags, sys.argv[2], "-o", code)
        for count in (1, 2, 5):
            x, y = random.standard_normal((2, 64, 128 * count)).astype(np.float16)
            found = execute(code, root, f"{code.name}{count}", x, y)
            tiles = [
                execute(code, root, f"{code.name}{count}.{i}", x[:, part], y[:, part])
                for i in range(count)
                for part in [slice(128 * i, 128 * i + 128)]
            ]
            if found.tobytes() != np.hstack(tiles).tobytes():
                sys.exit(f"{count} tiles give other bits")
    check_both(root, sys.argv[3], random)
    # What launch.test launches wrongly.
    sizes = ((64, 256), (128, 128), (64, 200), (128, 256), (64, 512), (64, 64))
    for own in sizes:
        np.save(root / f"{'x'.join(map(str, own))}.npy", np.zeros(own, np.float16))
    print("same bits")


main()
