# SPDX-License-Identifier: Apache-2.0
"""Programs in the form the compiler prints; numerics; element types."""

from __future__ import annotations

import os

import kernels as k
import numpy as np
from programs import check_close, function, half, load, ok, store


def softmax(folder: str) -> None:
    rng = np.random.default_rng(1)
    for rows, columns, cores in [
        (512, 1024, 32),
        (70, 100, 7),
        (3, 2, 1),
        (64, 65, 32),
    ]:
        x = half(rng, rows, columns) * np.float16(3)
        ok(k.run(folder, k.softmax_program(rows, columns, cores), [x, "zeros"]))
        expected = k.softmax_reference(x)
        # Two units in the last place of DL16, and the subnormals of fp16.
        check_close(k.result(folder, "out"), expected, 2.0**-8 * expected + 2.0**-24)


def matmul(folder: str) -> None:
    rng = np.random.default_rng(2)
    for m, n, depth, grid in [
        (512, 512, 512, (8, 4)),
        (70, 200, 130, (3, 2)),
        (1, 64, 100, (1, 1)),
        (5, 3, 1, (4, 1)),
    ]:
        a, b = half(rng, m, depth), half(rng, depth, n)
        ok(k.run(folder, k.matmul_program(m, n, depth, grid), [a, b, "zeros"]))
        a64, b64 = (
            k.round_dl16(a).astype(np.float64),
            k.round_dl16(b).astype(np.float64),
        )
        expected = a64 @ b64
        # The bound of spec/numerics.md, and the way to fp16.
        bound = (2.0**-10 + 2.0**-11) * np.abs(expected) + depth * 2.0**-24 * (
            np.abs(a64) @ np.abs(b64)
        )
        check_close(k.result(folder, "c"), expected, bound + 2.0**-24)


def threads(folder: str) -> None:
    rng = np.random.default_rng(3)
    x = half(rng, 100, 200)
    results = []
    for count in ["1", "2", "5"]:
        ok(
            k.run(
                folder,
                k.softmax_program(100, 200, 25),
                [x, "zeros"],
                "--threads",
                count,
            )
        )
        results.append(k.result(folder, "out"))
    assert all((r == results[0]).all() for r in results)


def transpose(folder: str) -> None:
    """Reads x transposed by its access tile, and by a generic."""
    rng = np.random.default_rng(4)
    for rows, columns in [(64, 128), (70, 33), (1, 100)]:
        x, y = k.Array(rows, columns), k.Array(columns, rows)
        t = f"tensor<{columns}x{rows}xf16>"
        program = f"""module {{
  func.func @transpose({x.argument("x")}, {y.argument("y")}) {{
    %c0 = arith.constant 0 : index
    {x.view("v_x", "x")}
    {y.view("v_y", "y")}
    {x.tile("x_t", "v_x", "c0", "c0", (columns, rows), "j i")}
    {y.tile("y_t", "v_y", "c0", "c0", (columns, rows))}
    %d = ktdp.load %x_t : !ktdp.access_tile<{columns}x{rows}xindex> -> {t}
    ktdp.store %d, %y_t : {t}, !ktdp.access_tile<{columns}x{rows}xindex>
    return
  }}
}}
"""
        data = half(rng, rows, columns)
        ok(k.run(folder, program, [data, "zeros"]))
        check_close(k.result(folder, "y"), k.round_dl16(data.T), 0)


def ieee(folder: str) -> None:
    """With IEEE numerics f16 is numpy's float16, bit by bit."""
    rng = np.random.default_rng(5)
    shape = (33, 77)
    x, y = half(rng, *shape), half(rng, *shape)
    text = "tensor<33x77xf16>"
    for op, reference in [
        ("addf", np.add),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("maximumf", np.maximum),
    ]:
        program = function(
            "x y z",
            f"{load('x', shape, 'f16')}\n{load('y', shape, 'f16')}\n"
            f"%r = arith.{op} %x_d, %y_d : {text}\n{store('z', shape, 'f16', 'r')}",
        )
        ok(
            k.run(
                folder,
                program,
                [x, y, np.zeros(shape, np.float16)],
                "--numerics",
                "ieee",
            )
        )
        expected = reference(x.astype(np.float32), y.astype(np.float32)).astype(
            np.float16
        )
        assert (k.result(folder, "z") == expected).all(), op
        ok(k.run(folder, program, [x, y, np.zeros(shape, np.float16)]))
        expected = k.round_dl16(reference(k.round_dl16(x), k.round_dl16(y)))
        assert (k.result(folder, "z") == expected.astype(np.float16)).all(), op


def elements(folder: str) -> None:
    """Every element type through memory, from every file type that fits it."""
    rng = np.random.default_rng(14)
    shape = (5, 33)
    for element, dtype in [
        ("i8", np.int8),
        ("i8", np.uint8),
        ("i16", np.int16),
        ("i32", np.int32),
        ("i32", np.int64),
        ("i32", np.uint8),
        ("i64", np.int64),
        ("index", np.int64),
        ("i1", np.bool_),
        ("f32", np.float32),
        ("f16", np.float16),
        ("f16", np.bool_),
        ("bf16", np.uint16),
        ("bf16", "V2"),
        ("f8E5M2", np.uint8),
        ("f8E4M3FN", "V1"),
    ]:
        x = rng.integers(0, 2 if dtype == np.bool_ else 100, shape)
        x = x.astype({"V1": np.uint8, "V2": np.uint16}.get(dtype, dtype)).view(dtype)
        body = f"{load('x', shape, element)}\n{store('z', shape, element, 'x_d')}"
        ok(k.run(folder, function("x z", body), [x, np.zeros_like(x)]))
        z = k.result(folder, "z")
        assert z.dtype == x.dtype and (z == x).all(), (element, z.dtype)
    # Bits of bf16: neither values nor codes of f16.
    x = np.zeros(shape, np.uint16)
    body = f"{load('x', shape, 'f16')}\n{store('z', shape, 'f16', 'x_d')}"
    process = k.run(os.path.join(folder, "bad"), function("x z", body), [x, x])
    assert process.returncode == 1 and "is for bf16" in process.stderr, process.stderr
    x = np.full(shape, 2**31, np.int64)
    body = f"{load('x', shape, 'i32')}\n{store('z', shape, 'i32', 'x_d')}"
    process = k.run(os.path.join(folder, "bad"), function("x z", body), [x, x])
    assert process.returncode == 1 and "2147483648" in process.stderr, process.stderr
