# SPDX-License-Identifier: Apache-2.0
"""Arguments from files: what element types take, and what f16 means."""

import json

import numpy as np
import pytest
from commands import needs_tools, run
from f16_values import half, round_dl16
from ktir_runs import fails, results
from ktir_text import function, load, store

pytestmark = needs_tools

SHAPE = (5, 33)


def copy(element: str) -> str:
    body = f"""{load("x", SHAPE, element)}
    {store("z", SHAPE, element, "x_d")}"""
    return function("x z", body)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("i8", "int8"),
        ("i8", "uint8"),
        ("i16", "int16"),
        ("i32", "int32"),
        ("i32", "int64"),
        ("i32", "uint8"),
        ("i64", "int64"),
        ("index", "int64"),
        ("i1", "bool"),
        ("f32", "float32"),
        ("f16", "float16"),
        ("f16", "bool"),
        ("bf16", "uint16"),
        ("bf16", "V2"),
        ("f8E5M2", "uint8"),
        ("f8E4M3FN", "V1"),
    ],
)
def test_element_type_from_file_type(element, dtype, tmp_path):
    rng = np.random.default_rng(14)
    x = rng.integers(0, 2 if dtype == "bool" else 100, SHAPE)
    x = x.astype({"V1": "uint8", "V2": "uint16"}.get(dtype, dtype)).view(dtype)
    z = results(copy(element), [x, np.zeros_like(x)], tmp_path)["z"]
    assert z.dtype == x.dtype
    assert z.shape == x.shape
    assert (z == x).all()


def test_bits_of_bf16_are_not_for_f16(tmp_path):
    """Neither values nor codes of f16."""
    x = np.zeros(SHAPE, np.uint16)
    fails(copy("f16"), [x, x], tmp_path, ["is for bf16"])


def test_integer_in_a_file_that_does_not_fit(tmp_path):
    x = np.full(SHAPE, 2**31, np.int64)
    fails(copy("i32"), [x, x], tmp_path, ["2147483648"])


def test_a_link_to_a_file_stays_a_link(tmp_path):
    """/dev/stdout is one, and leads to a file if that is where output goes."""
    program, report = tmp_path / "program.mlir", tmp_path / "report.json"
    program.write_text(copy("f32"))
    report.write_text("before")
    link = tmp_path / "link"
    link.symlink_to(report)
    np.save(tmp_path / "x.npy", np.zeros(SHAPE, np.float32))
    arguments = ["--arg", tmp_path / "x.npy"] * 2
    run("spyre-run", program, *arguments, "--json", link)
    assert link.is_symlink()
    assert "predicted_seconds" in json.loads(report.read_text())


OPERATIONS = {
    "addf": np.add,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": np.maximum,
}


@pytest.mark.parametrize("numerics", ["dl16", "ieee"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_f16_is_rounded_once(op, numerics, tmp_path):
    """With IEEE numerics f16 is numpy's float16, bit by bit; DL16 is the default."""
    rng, shape = np.random.default_rng(5), (33, 77)
    x, y = half(rng, *shape), half(rng, *shape)
    body = f"""{load("x", shape, "f16")}
    {load("y", shape, "f16")}
    %r = arith.{op} %x_d, %y_d : tensor<33x77xf16>
    {store("z", shape, "f16", "r")}"""
    values = [x, y, np.zeros(shape, np.float16)]
    flags = ["--numerics", "ieee"] if numerics == "ieee" else []
    found = results(function("x y z", body), values, tmp_path, *flags)["z"]
    if numerics == "ieee":
        expected = OPERATIONS[op](x.astype(np.float32), y.astype(np.float32))
    else:
        expected = round_dl16(OPERATIONS[op](round_dl16(x), round_dl16(y)))
    assert np.array_equal(found, expected.astype(np.float16))
