# SPDX-License-Identifier: Apache-2.0
"""Bundles as the reference would write them of operations it has no example of.

Usage: same_source.py OUTPUT

Made from spec/superdsc.md with nothing of the writer. Each is valid, and read and
written again it has the same bytes; what has a meaning is raised, what reads through
indices or statistics is run, too.
"""

import sys
from pathlib import Path

import numpy as np
from bundle import affine, execute, factor, program, run, sdsc, tensor, write

SEGMENT = 1 << 34
TWO, ONE = {"mb": (8, 2), "out": (128, 1)}, {"mb": (8, 1), "out": (64, 1)}
ROWS = ["mb", "out"]
TURNED = ["out", "mb"]
HALF, FLOAT, BYTE = ((ROWS, {"out": stick}) for stick in (64, 32, 128))
MATMUL = ["INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"]
STATISTIC = {"out": -2}
WEIGHT = {"mb": -1}


def operand(number, order=ROWS, scale=None, **more):
    return tensor(order, number * SEGMENT, scale, **more)


def half(name, bits):
    return (name, "SEN169_FP16", bits)


def normalised(inputs):
    """layernormnorm, with the statistics that scale and shift were made of or not."""
    operands = [operand(0)]
    for _ in range(inputs - 3):
        operands.append(operand(len(operands), scale=STATISTIC))
    for _ in range(2):
        operands.append(operand(len(operands), TURNED, WEIGHT))
    return sdsc("layernormnorm", TWO, [HALF], [*operands, operand(inputs)])


def batched(y):
    """A batch of matrices by a batch of them, or by one."""
    orders = [["mb", "x", "in"], y, ["mb", "x", "out"]]
    sticks = ["in", "out", "out"]
    return sdsc(
        "batchmatmul",
        {"x": (3, 1), "mb": (8, 2), "out": (64, 1), "in": (128, 1)},
        [(order, {stick: 64}) for order, stick in zip(orders, sticks, strict=True)],
        [operand(n, order, label=n) for n, order in enumerate(orders)],
        names=MATMUL,
    )


def gather():
    """As many rows as indices: the table has no page size."""
    tensors = [
        operand(0, ["mb"], fmt="SENUINT32", indirect="index_tensor"),
        operand(1, label=1, indirect="value_tensor", related="allocate-Tensor0_hbm"),
        operand(2, label=1),
    ]
    return sdsc(
        "identity",
        {"mb": (32, 1), "out": (128, 1)},
        [(["mb"], {"mb": 32}), HALF],
        tensors,
        names=["KERNEL_IDX", "OUTPUT"],
    )


def centred(folds):
    """A row less its mean; the mean's folds along the stick are a stick's or not."""
    tensors = [operand(0), operand(1, scale={"out": -1}), operand(2)]
    file = sdsc("sub", TWO, [HALF], tensors)
    if folds:
        node = file["0_sub"]["dscs_"][0]["sub"]["scheduleTree_"][1]
        own = node["coordinates_"]["coordInfo"]["out"]
        own["elemArr"] = 2
        own["folds"] = {
            "dim_prop_func": [affine(alpha) for alpha in (1, 0, 0, 64, 1)],
            "dim_prop_attr": [
                factor(1, "core_fold"),
                factor(1, "corelet_fold"),
                factor(1, "row_fold"),
                factor(0, "elem_arr_1"),
                factor(64, "elem_arr_0"),
            ],
        }
    return file


MASK = {"out": [[100, 28]]}
SCALE = half("scaling_factor", 0x3047)
CASES = {
    "normalised": normalised(4),
    "normalised_by_mean": normalised(5),
    "scale": sdsc(
        "layernormscale",
        {"mb": (8, 2), "out": (64, 1)},
        [HALF],
        [operand(0, scale=STATISTIC), operand(1)],
        constants=[half("eps", 100)],
    ),
    "statistics": sdsc(
        "exx2",
        TWO,
        [HALF],
        [operand(0), operand(1, scale=STATISTIC)],
        constants=[half("exx2scale", 0x3000), half("useZeroMean", 0)],
        reduction=True,
    ),
    "up": sdsc(
        "dl16tofp32",
        TWO,
        [HALF, FLOAT],
        [operand(0), operand(1, label=1, fmt="IEEE_FP32")],
    ),
    "down": sdsc(
        "fp32todl16",
        TWO,
        [FLOAT, HALF],
        [operand(0, fmt="IEEE_FP32"), operand(1, label=1)],
    ),
    "mean": sdsc(
        "mean",
        TWO,
        [HALF],
        [operand(0), operand(1, scale=STATISTIC)],
        constants=[half("samv-maskvalue", 0), SCALE],
        mask=MASK,
    ),
    "mean_of_columns": sdsc(
        "meannonstick",
        {"mb": (8, 1), "out": (128, 2)},
        [HALF],
        [operand(0), operand(1, TURNED, WEIGHT)],
        constants=[SCALE],
        reduction=True,
    ),
    "batches": batched(["in", "x", "out"]),
    "batch_by_matrix": batched(["in", "out"]),
    "part_of_result": sdsc(
        "identity",
        ONE,
        [HALF],
        [operand(0), tensor(ROWS, SEGMENT + 1024, gap={"out": 64})],
    ),
    "part_of_input": sdsc(
        "identity",
        {"mb": (4, 2), "out": (128, 1)},
        [HALF],
        [tensor(ROWS, 256, gap={"mb": 4}), operand(1)],
    ),
    "where": sdsc(
        "where3",
        TWO,
        [HALF],
        [
            operand(0),
            operand(1, TURNED, WEIGHT),
            operand(2, scale=STATISTIC),
            operand(3),
        ],
    ),
    "largest": sdsc(
        "topkvalue",
        {"mb": (8, 1), "x": (4, 1), "out": (64, 1)},
        [(["mb", "out", "x"], {"out": 64})],
        [
            operand(0, ["mb", "out", "x"], {"x": -1}),
            operand(1, ["x", "out", "mb"], WEIGHT),
        ],
    ),
    "float_maximum": sdsc(
        "max",
        TWO,
        [FLOAT],
        [operand(0, fmt="IEEE_FP32"), operand(1, scale=STATISTIC, fmt="IEEE_FP32")],
        constants=[("samv-maskvalue", "IEEE_FP32", 0xFF800000)],
        mask=MASK,
    ),
    "gather": gather(),
    "centred": centred(False),
    "centred by folds": centred(True),
    # Without a meaning here.
    "quantised": sdsc(
        "qfp8ch",
        TWO,
        [HALF, BYTE],
        [operand(0), operand(1, label=1, fmt="SEN143_FP8")],
    ),
    "from_quantised": sdsc(
        "fp8todl16",
        TWO,
        [BYTE, HALF],
        [operand(0, fmt="SEN143_FP8"), operand(1, label=1)],
    ),
}
WITHOUT_MEANING = {"quantised", "from_quantised"}


def main():
    root = Path(sys.argv[1])
    for name, file in CASES.items():
        folder = root / name
        files = {"sdsc_0.json": file, "bundle.mlir": program("sdsc_0.json")}
        write(folder / "bundle", files)
        checked = run("spyre-translate", "--validate-superdsc", folder / "bundle")
        assert checked.returncode == 0, f"{name}: {checked.stdout}"
        again = folder / "again"
        run("spyre-translate", "--rewrite-superdsc", folder / "bundle", "-o", again)
        for part in files:
            same = (folder / "bundle" / part).read_bytes() == (
                again / part
            ).read_bytes()
            assert same, f"{name}/{part}"
        raised = run("spyre-translate", "--from-superdsc", folder / "bundle", "-o", "-")
        if name in WITHOUT_MEANING:
            assert raised.returncode == 1, name
            assert "is known but nothing here executes it" in raised.stderr
        else:
            assert raised.returncode == 0, f"{name}: {raised.stderr}"
    random = np.random.default_rng(0)
    index = random.integers(0, 32, 32).astype(np.int32)
    table = random.integers(-64, 64, (32, 128)).astype(np.float16)
    actual = execute(root / "gather", [index, table], "zeros")
    assert (actual == table[index]).all()
    x, mean, scale = (
        random.integers(-8, 8, shape).astype(np.float16)
        for shape in ((8, 128), (8, 2), (8, 2))
    )
    weight, bias = random.integers(-8, 8, (2, 128)).astype(np.float16)
    inputs = [x, mean, scale, weight, bias]
    actual = execute(root / "normalised_by_mean", inputs, "zeros")
    exact = (x.astype(float) * scale[:, :1] + scale[:, 1:]) * weight + bias
    assert (actual == exact).all()
    for name in "centred", "centred by folds":
        actual = execute(root / name, [x, mean[:, 0]], "zeros")
        assert (actual == x - mean[:, :1]).all(), name
    print(f"{len(CASES)} bundles")


if __name__ == "__main__":
    main()
