# SPDX-License-Identifier: Apache-2.0
"""SuperDSC's products of 8-bit numbers, whose right factor has packed sticks.

The bundles are built from the description of the format (``sdsc_bundles``), values
from the rules of docs/internals/quantization.md.
"""

import json

import numpy as np
import pytest
import torch
from commands import call, run
from sdsc_bundles import program, sdsc, tensor, write

FP16, INT32, FP8, INT8 = "SEN169_FP16", "IEEE_INT32", "SEN143_FP8", "SENINT8"
M, K, N = 8, 256, 128
SEGMENT = 1 << 34
NAMES = ["INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"]
E4M3 = torch.float8_e4m3fn


def bundle(narrow, result, slices=1):
    """Quantizes x (argument 0) and y (1), both fp16, and multiplies them: argument 2.

    The pool, segment 0, holds the quantized factors. Columns are divided over cores.
    """
    of_x, of_y, product = (
        ("qfp8ch", "qfp8wt", "batchmatmulfp8")
        if narrow == FP8
        else ("csqint8ch", "csqint8wt", "batchmatmulint8")
    )
    y_start = M * K
    files = {
        "sdsc_0.json": sdsc(
            of_x,
            {"mb": (M, 1), "out": (K, 1)},
            [(["mb", "out"], {"out": 64}), (["mb", "out"], {"out": 128})],
            [
                tensor(["mb", "out"], base=SEGMENT),
                tensor(["mb", "out"], label=1, fmt=narrow),
            ],
            index=0,
        ),
        "sdsc_1.json": sdsc(
            of_y,
            {"mb": (K, 1), "out": (N, slices)},
            [(["mb", "out"], {"out": 64}), (["mb", "out"], {"mb": 2, "out": 64})],
            [
                tensor(["mb", "out"], base=2 * SEGMENT),
                tensor(["mb", "out"], base=y_start, label=1, fmt=narrow),
            ],
            index=1,
        ),
        "sdsc_2.json": sdsc(
            product,
            {"mb": (M, 1), "out": (N, slices), "in": (K, 1)},
            [
                (["mb", "in"], {"in": 128}),
                (["in", "out"], {"in": 2, "out": 64}),
                (["mb", "out"], {"out": 64 if result == FP16 else 32}),
            ],
            [
                tensor(["mb", "in"], fmt=narrow),
                tensor(["in", "out"], base=y_start, label=1, fmt=narrow),
                tensor(["mb", "out"], base=3 * SEGMENT, label=2, fmt=result),
            ],
            index=2,
            names=NAMES,
        ),
    }
    files["bundle.mlir"] = program(*files)
    return files


def quantize(values, narrow):
    if narrow == FP8:
        return torch.from_numpy(values).clamp(-448, 448).to(E4M3).double().numpy()
    return np.clip(np.round(values), -128, 127)


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("narrow, result", [(FP8, FP16), (INT8, INT32), (INT8, FP16)])
def test_values(narrow, result, slices, tmp_path):
    files = bundle(narrow, result, slices)
    write(tmp_path / "bundle", files)
    random = np.random.default_rng(0)
    # Multiples of 1/8 are exact in DL16; int8 gets values beyond its range, too.
    scale = 4 if narrow == FP8 else 40
    x, y = (
        (np.round(random.normal(size=shape) * scale * 8) / 8).astype(np.float16)
        for shape in ((M, K), (K, N))
    )
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    run("spyre-translate", "--validate-superdsc", tmp_path / "bundle")
    run(
        "spyre-run",
        tmp_path / "bundle",
        "--pool",
        *("--arg", tmp_path / "x.npy", "--arg", tmp_path / "y.npy", "--arg", "zeros"),
        "--out-dir",
        tmp_path / "out",
    )
    actual = np.load(tmp_path / "out" / "arg2.npy").astype(np.float64)
    stored = [quantize(v.astype(np.float32), narrow).astype(np.float64) for v in (x, y)]
    exact = stored[0] @ stored[1]
    if result == INT32:
        assert np.array_equal(actual, exact)
        return
    magnitude = np.abs(stored[0]) @ np.abs(stored[1])
    bound = 2.0**-10 * np.abs(exact) + K * 2.0**-24 * magnitude
    overflow = np.abs(exact) >= 65520
    assert (np.abs(actual - exact)[~overflow] <= bound[~overflow]).all()


def test_packed_bytes(tmp_path):
    """The lanes of a packed stick, read back as bytes of the pool."""
    files = bundle(INT8, INT32)
    write(tmp_path, files)
    raised = run("spyre-translate", "--from-superdsc", "--pool", tmp_path)
    assert "packed = 2, SENINT8" in raised
    assert "spyre_graph.quantize" in raised


def test_an_argument_is_not_packed(tmp_path):
    files = bundle(FP8, FP16)
    text = json.dumps(files["sdsc_2.json"])
    alone = {"sdsc_0.json": json.loads(text.replace("2_batch", "0_batch"))}
    for number, node in enumerate(
        alone["sdsc_0.json"]["0_batchmatmulfp8"]["dscs_"][0]["batchmatmulfp8"][
            "scheduleTree_"
        ]
    ):
        addresses = node["startAddressCoreCorelet_"]["data_"]
        for core in addresses:
            addresses[core] = str(number * SEGMENT)
    alone["bundle.mlir"] = program("sdsc_0.json")
    write(tmp_path, alone)
    result = call("spyre-run", tmp_path, *["--arg", "zeros"] * 3)
    assert result.returncode == 1
    assert "argument 1 has packed sticks, but transfers" in result.stderr
