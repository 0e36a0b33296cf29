# SPDX-License-Identifier: Apache-2.0
"""benchmarks/fidelity.py: measurements of the card as programs, and their predictions."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def load(name):
    """A module of benchmarks/card, which is no package of the tests."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(f"card.{name}")
    finally:
        sys.path.remove(str(BENCHMARKS))


measurements, programs = load("measurements"), load("programs")

GOOD = {
    "id": "x1",
    "op": "add",
    "shapes": "[64,128]+same",
    "dtype": "fp16",
    "cores": 4,
    "state": "untiled",
    "metric": "",
    "value_us": 25.0,
    "source": "",
    "note": "",
}


def fidelity(*arguments):
    command = [sys.executable, str(BENCHMARKS / "fidelity.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"value_us": 0},
            r"row 0 \(x1\): value_us must be a positive number, but is 0",
        ),
        ({"value_us": float("nan")}, "must be a positive number, but is nan"),
        ({"value_us": True}, "must be a positive number, but is True"),
        ({"cores": 33}, "cores must be 1 to 32, but is 33"),
        ({"dtype": "fp8"}, "expected fp16, found fp8"),
        (
            {"op": "matmul", "shapes": "M64 K64 N64", "state": "split 8x8x1"},
            "the split takes 64 cores of 32",
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_an_error(tmp_path, change, message):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{**GOOD, **change}]))
    with pytest.raises(measurements.BadData, match=message):
        measurements.read(file)
    assert fidelity("--data", file).returncode == 2


def test_a_missing_field_and_an_id_twice_are_errors(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{k: v for k, v in GOOD.items() if k != "op"}]))
    with pytest.raises(measurements.BadData, match=r"row 0 \(x1\): no field op"):
        measurements.read(file)
    file.write_text(json.dumps([GOOD, GOOD]))
    with pytest.raises(
        measurements.BadData, match=r"row 1 \(x1\): the id occurs twice"
    ):
        measurements.read(file)
    file.write_text("{}")
    with pytest.raises(measurements.BadData, match="expected a list of rows"):
        measurements.read(file)
    file.write_text("[")
    with pytest.raises(measurements.BadData, match="line 1"):
        measurements.read(file)


def test_products_keep_their_extents_and_splits():
    """Shapes and splits are written in six ways; each is read once by hand here."""
    rows = {row.id: row.kernel for row in measurements.read()}
    for row, extents, splits in (
        ("m00192", (1, 2048, 1024, 2048), (1, 4, 8, 1)),
        ("m00442", (1, 512, 4096, 12800), (1, 2, 16, 1)),
        ("m00577", (32, 512, 128, 512), (4, 4, 2, 1)),
        ("m01110", (1, 512, 4096, 12800), (1, 4, 8, 1)),
        ("m01951", (32, 64, 128, 576), (1, 32, 1, 1)),
        ("m00397", (1, 4096, 4096, 2048), (1, 8, 4, 1)),
        ("m00213", (1, 128, 128, 2048), (1, 1, 1, 1)),
        ("m03666", (1, 512, 1024, 4096), None),
    ):
        assert (rows[row].extents, rows[row].splits) == (extents, splits), row


def test_rows_without_a_program_say_why():
    rows = measurements.read()
    assert all(row.kernel or row.reason for row in rows)
    products = [
        row
        for row in rows
        if row.kernel and row.kernel.family in ("matmul", "bmm") and row.kernel.splits
    ]
    assert len(products) == 216
    for row in rows:
        if row.kernel:
            programs.write(row.kernel)


@pytest.mark.parametrize(
    ("row", "moved"),
    [
        # Bytes that the kernel has to read and write at least, from its shapes.
        ("m00001", 3 * 2048 * 1024 * 2),  # add
        ("m00081", (2 * 128 * 2048 + 2048) * 2),  # add a row
        ("m00273", 2048 * 2048 * 2 + 2048 * 128),  # sum of rows: a stick each
        ("m00281", (16384 * 2048 + 2048) * 2),  # sum of columns
        ("m02096", 2 * 512 * 512 * 2),  # restickify
        ("m00366", 2 * 1024 * 8 * 1024 * 2),  # outer transpose
        ("m00192", (2048 * 2048 + 2048 * 1024 + 2048 * 1024) * 2),  # matmul
        ("m00294", 2 * 2048 * 2048 * 2),  # softmax in 32 tiles
    ],
)
def test_a_row_becomes_the_kernel_that_was_measured(tmp_path, row, moved):
    done = fidelity("--rows", row, "--keep", tmp_path)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[0]
    assert line.startswith(row) and "not expressed" not in line
    measured, predicted, ratio = map(float, re.findall(r" (\d+\.\d+)", line)[-3:])
    assert ratio == pytest.approx(predicted / measured, rel=0.01)
    program = tmp_path / f"{row}.ktir"
    count = 3 if row in ("m00001", "m00081", "m00192") else 2
    report = subprocess.run(
        ["spyre-run", program, "--entry=main", "--predict-only", "--json=-"]
        + ["--arg=zeros"] * count,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(report.stdout)
    traffic = found["bytes"]["device_memory"]
    # More than that: what cores read again, and what does not stay in LX.
    assert moved <= traffic["read"] + traffic["written"] <= 2.1 * moved
    cores = {r.id: r.cores for r in measurements.read()}[row]
    assert cores / 2 < max(kernel["cores"] for kernel in found["kernels"]) <= cores


def test_unknown_rows_are_an_error():
    done = fidelity("--rows", "m99999")
    assert (done.returncode, done.stderr) == (2, "error: no row m99999\n")
