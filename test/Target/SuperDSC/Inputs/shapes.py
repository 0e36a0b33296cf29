# SPDX-License-Identifier: Apache-2.0
"""Run bundles without manifest on the arrays that a reader of the files expects.

Usage: shapes.py OUTPUT

A result has the shape of its iterations; an input lies in memory as a tensor of
default layout does. Square factors would not show in shapes that they are
transposed, so the values are compared.
"""

import sys
from pathlib import Path

import numpy as np
from bundle import execute, program, sdsc, tensor, write

SEGMENT = 1 << 34
random = np.random.default_rng(6)


def integers(*shape):
    return random.integers(-3, 4, shape).astype(np.float16)


def operand(number, order, label=0, **more):
    return tensor(order, number * SEGMENT, label=label, **more)


def product(dims, orders):
    labels = [(o, {s: 64}) for o, s in zip(orders, ["in", "out", "out"], strict=True)]
    tensors = [operand(n, order, n) for n, order in enumerate(orders)]
    names = ["INPUT", "KERNEL", "OUTPUT"]
    return sdsc("batchmatmul", dims, labels, tensors, names=names)


def reduction(op, dims, order, result, scale):
    stick = {order[1]: 64}
    own = {"mb": -1} if op == "topkvalue" else {}
    tensors = [operand(0, order, scale=own), operand(1, result, scale=scale)]
    return sdsc(op, dims, [(order, stick)], tensors, reduction=op != "topkvalue")


def turned(orders, sticks):
    labels = [(o, {s: 64}) for o, s in zip(orders, sticks, strict=True)]
    tensors = [operand(n, order, n) for n, order in enumerate(orders)]
    return sdsc("ReStickifyOpHBM", {"mb": (64, 1), "out": (128, 1)}, labels, tensors)


MATRIX = {"mb": (64, 2), "out": (64, 1), "in": (64, 1)}
BATCH = {"x": (3, 1), "mb": (64, 2), "out": (64, 1), "in": (64, 1)}
CASES = {
    "square factors": (
        product(MATRIX, [["mb", "in"], ["in", "out"], ["mb", "out"]]),
        [integers(64, 64), integers(64, 64)],
        lambda x, y: x @ y,
    ),
    "batches of square factors": (
        product(BATCH, [["x", "in", "mb"], ["x", "out", "in"], ["x", "out", "mb"]]),
        [integers(3, 64, 64), integers(3, 64, 64)],
        lambda x, y: x @ y,
    ),
    "sum of columns": (
        reduction(
            "sumnonstick",
            {"mb": (64, 1), "out": (64, 1)},
            ["out", "mb"],
            ["mb", "out"],
            {"out": -1},
        ),
        [integers(64, 64)],
        lambda x: x.sum(0),
    ),
    "sum of the first of three": (
        reduction(
            "sumnonstick",
            {"mb": (8, 1), "x": (64, 1), "out": (4, 1)},
            ["out", "x", "mb"],
            ["mb", "x", "out"],
            {"out": -1},
        ),
        [integers(4, 8, 64)],
        lambda x: x.sum(0),
    ),
    "largest of columns": (
        reduction(
            "topkvalue",
            {"mb": (4, 1), "x": (64, 1), "out": (64, 1)},
            ["out", "x", "mb"],
            ["mb", "x", "out"],
            {"out": -1},
        ),
        [integers(64, 64)],
        lambda x: np.sort(x, 0)[::-1][:4],
    ),
    "another stick, the same tensor": (
        turned([["mb", "out"], ["out", "mb"]], ["out", "mb"]),
        [integers(64, 128)],
        lambda x: x,
    ),
    "another stick, transposed": (
        turned([["out", "mb"], ["mb", "out"]], ["mb", "out"]),
        [integers(128, 64)],
        lambda x: x.T,
    ),
}


def main():
    root = Path(sys.argv[1])
    for name, (file, inputs, function) in CASES.items():
        folder = root / name
        files = {"sdsc_0.json": file, "bundle.mlir": program("sdsc_0.json")}
        write(folder / "bundle", files)
        actual = execute(folder, inputs, "zeros")
        exact = function(*(array.astype(np.float64) for array in inputs))
        assert actual.shape == exact.shape, f"{name}: {actual.shape}"
        assert (actual == exact).all(), name
    print(f"{len(CASES)} bundles")


if __name__ == "__main__":
    main()
