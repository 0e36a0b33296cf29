# SPDX-License-Identifier: Apache-2.0
"""Plans run through SuperDSC and as SpyreCode as through KTIR, bit for bit.

Every way to write a plan is valid, gives the same bytes when it is written again, and
what the KTIR of the plan gives when it runs.
"""

import json

import numpy as np
import pytest
from commands import (
    MORE,
    PLANNED,
    REFERENCE_DATA,
    ROOT,
    arguments,
    execute,
    needs_tools,
    run,
)
from planned_formats import VARIANTS, bits, check_superdsc, draw, lower, same_files

pytestmark = needs_tools

PLANS = {
    file.stem: file for folder in (PLANNED, MORE) for file in folder.glob("*.mlir")
}
#: Plans whose bits are compared without a manifest in every variant, too, and how
#: many bundles they are.
WITHOUT_MANIFEST = {"orders": 1, "several": 3}


def stem(path):
    return path.stem


@pytest.mark.parametrize("plan", sorted(PLANS))
def test_superdsc(plan, tmp_path):
    count, compared = check_superdsc(PLANS[plan], tmp_path)
    if plan in WITHOUT_MANIFEST:
        assert (count, compared) == (WITHOUT_MANIFEST[plan], list(VARIANTS))


@pytest.mark.parametrize("plan", sorted(PLANS))
def test_spyrecode(plan, tmp_path):
    planned = PLANS[plan]
    ktir = lower(planned, tmp_path)
    signature = planned.read_text().split("@main(")[1].split("{\n")[0]
    names = [part.split(":")[0] for part in signature.split("%")[1:]]
    shapes = execute(ktir, ["zeros"] * len(names), tmp_path / "shapes")
    # The text of KTIR names arguments by `ktdp.name` or SSA name.
    if not all(name in shapes for name in names):
        names = [f"arg{number}" for number in range(len(names))]
    random = np.random.default_rng(0)
    inputs = [draw(shapes[n].dtype, shapes[n].shape, random) for n in names]
    expected = bits(execute(ktir, inputs, tmp_path / "expected"), names)
    for flavor in ("asbuilt", "spec"):
        for flags in ([], ["--symbolic-args"]):
            folder = tmp_path / "".join((flavor, *flags))
            for copy in ("code", "again"):
                run(
                    "spyre-translate",
                    "--to-spyrecode",
                    f"--spyrecode-flavor={flavor}",
                    *flags,
                    planned,
                    "-o",
                    folder / copy,
                )
            same_files(folder / "code", folder / "again")
            run("spyre-translate", "--validate-spyrecode", folder / "code")
            found = execute(folder / "code", inputs, folder / "run")
            # Bytecode has no SSA names.
            own = [n if n in found else f"arg{k}" for k, n in enumerate(names)]
            assert bits(found, own) == expected, folder.name


# --- bundles of the reference ---

REFERENCE = REFERENCE_DATA / "superdsc"
#: Those that a plan by hand writes, and how.
WRITTEN = {
    "abs_4x64": [],
    "add_broadcast": [],
    "clip_constants": [],
    "max_stick_padded": [],
    "sum_stick": [],
    "sum_nonstick": [],
    "restickify_100x70": [],
    "matmul_ksplit_lx": [],
    "two_ops_symbolic": ["--symbolic-args"],
}
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference data")


def check_bytes(expected, actual, names):
    assert names
    for name in names:
        assert (expected / name).read_bytes() == (actual / name).read_bytes(), name


@needs_reference
@pytest.mark.parametrize(
    "folder", sorted(file.parent for file in REFERENCE.glob("*/bundle.mlir")), ids=stem
)
def test_reference_is_written_again(folder, tmp_path):
    """It is valid, and reading then writing it gives the same bytes."""
    text = (folder / "bundle.mlir").read_text().partition("@sdsc_bundle(")[2]
    names = text.split(")")[0].split(", ")
    flags = ["--lenient"] if len(set(names)) != len(names) else []
    run("spyre-translate", *flags, folder, "--validate-superdsc")
    again = tmp_path / "again"
    run("spyre-translate", *flags, folder, "--rewrite-superdsc", "-o", again)
    # What the lenient reader repaired is not written again.
    skipped = {"case.json"} | ({"bundle.mlir"} if flags else set())
    check_bytes(folder, again, {file.name for file in folder.iterdir()} - skipped)


@needs_reference
@pytest.mark.parametrize("plan", WRITTEN)
def test_plan_writes_what_the_reference_writes(plan, tmp_path):
    bundle, expected = tmp_path / "bundle", REFERENCE / plan
    flags = WRITTEN[plan]
    run("spyre-translate", "--to-superdsc", *flags, PLANS[plan], "-o", bundle)
    names = {file.name for file in expected.iterdir()} - {"case.json"}
    check_bytes(expected, bundle, names)


# --- jobs on larger arrays give what their tiles give ---

TILES = ROOT / "test/Target/SpyreCode/Inputs/tiles.mlir"
WAYS = pytest.mark.parametrize(
    "flags", [[], ["--symbolic-args"]], ids=["bound", "symbolic"]
)


@WAYS
@pytest.mark.parametrize("count", [1, 2, 5])
def test_tiles_along_columns(flags, count, tmp_path):
    """Whole tiles follow each other in device memory."""
    code = tmp_path / "code"
    plan = PLANS["two_ops_symbolic"]
    run("spyre-translate", "--to-spyrecode", *flags, plan, "-o", code)
    random = np.random.default_rng(count)
    x, y = random.standard_normal((2, 64, 128 * count)).astype(np.float16)

    def launch(name, x, y):
        out = np.zeros_like(x)
        return execute(code, [x, y, out], tmp_path / name)["arg2"]

    tiles = [
        launch(str(i), x[:, part], y[:, part])
        for i in range(count)
        for part in [slice(128 * i, 128 * i + 128)]
    ]
    assert launch("whole", x, y).tobytes() == np.hstack(tiles).tobytes()


def predict(program, values, folder):
    """The report of a launch that is not run."""
    folder.mkdir()
    report = folder / "report.json"
    flags = ["--predict-only", "--json", report]
    run("spyre-run", program, *arguments(values, folder), *flags)
    return json.loads(report.read_text())


@WAYS
def test_tiles_along_both(flags, tmp_path):
    """X of 32 x 64 and a row of 64, tile by tile along both dimensions."""
    code = tmp_path / "code"
    run("spyre-translate", "--to-spyrecode", *flags, TILES, "-o", code)
    rows, columns = 3, 5
    random = np.random.default_rng(0)
    x = random.standard_normal((32 * rows, 64 * columns)).astype(np.float16)
    row = random.standard_normal(64 * columns).astype(np.float16)

    def launch(name, x, row):
        return execute(code, [x, row, np.zeros_like(x)], tmp_path / name)["y"]

    found = launch("whole", x, row)
    for i in range(rows):
        for j in range(columns):
            down, across = slice(32 * i, 32 * i + 32), slice(64 * j, 64 * j + 64)
            own = launch(f"{i} {j}", x[down, across], row[across])
            assert found[down, across].tobytes() == own.tobytes(), (i, j)
    # A prediction is that of all tiles.
    one = predict(code, ["zeros"] * 3, tmp_path / "one")
    assert one["kernels"] and one["tensors"]
    many = predict(code, [x, row, x], tmp_path / "many")
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
