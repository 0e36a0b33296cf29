# SPDX-License-Identifier: Apache-2.0
"""Launch a pointwise job on larger arrays and compare with its tiles.

Usage: tiled.py OUTPUT PLANNED

PLANNED takes x, y and out of 64 x 128. Along columns, whole tiles follow each
other in device memory.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "SuperDSC" / "Inputs"))
from execute import run


def execute(program, root, name, x, y):
    for array, own in ((x, "x"), (y, "y"), (np.zeros_like(x), "z")):
        np.save(root / f"{own}.npy", array)
    arguments = [part for own in "xyz" for part in ("--arg", root / f"{own}.npy")]
    run("spyre-run", program, *arguments, "--out-dir", root / name)
    return np.load(root / name / "arg2.npy")


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
    # What launch.test launches wrongly.
    for sizes in ((64, 256), (128, 128), (64, 200), (128, 256), (64, 512)):
        np.save(root / f"{'x'.join(map(str, sizes))}.npy", np.zeros(sizes, np.float16))
    print("same bits")


main()
