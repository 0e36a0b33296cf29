# SPDX-License-Identifier: Apache-2.0
"""Runs one group of programs and compares with numpy: check.py GROUP FOLDER."""

from __future__ import annotations

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import kernels as k


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def ok(process) -> None:
    assert process.returncode == 0, process.stderr


def check_close(actual: np.ndarray, expected: np.ndarray, bound) -> None:
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    bad = error > bound
    assert not bad.any(), (np.argwhere(bad)[:5], actual[bad][:5], expected[bad][:5])


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


def plain(name: str, shape: tuple, element: str) -> str:
    """A dense view of argument `name` and a tile of all of it."""
    dims = "abcdef"[: len(shape)]
    names = " ".join(dims)
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    text = "x".join(map(str, shape))
    zeros = ", ".join("%c0" for _ in shape)
    return f"""%v_{name} = ktdp.construct_memory_view %{name}, sizes: {list(shape)}, strides: {strides} {{
      coordinate_set = {k.box(names, list(shape))}, memory_space = #ktdp.memory_space<global>}} : memref<{text}x{element}>
    %{name}_t = ktdp.construct_access_tile %v_{name}[{zeros}] {{access_tile_set = {k.box(names, list(shape))},
      access_tile_order = affine_map<({", ".join(dims)}) -> ({", ".join(dims)})>}} : memref<{text}x{element}> -> !ktdp.access_tile<{text}xindex>"""


def load(name: str, shape: tuple, element: str) -> str:
    text = "x".join(map(str, shape))
    return (
        plain(name, shape, element) + f"\n    %{name}_d = ktdp.load %{name}_t : "
        f"!ktdp.access_tile<{text}xindex> -> tensor<{text}x{element}>"
    )


def store(name: str, shape: tuple, element: str, value: str) -> str:
    text = "x".join(map(str, shape))
    return (
        plain(name, shape, element)
        + f"\n    ktdp.store %{value}, %{name}_t : tensor<{text}x{element}>, "
        f"!ktdp.access_tile<{text}xindex>"
    )


def function(arguments: str, body: str) -> str:
    args = ", ".join(f'%{a}: index {{ktdp.name = "{a}"}}' for a in arguments.split())
    return f"func.func @f({args}) {{\n    %c0 = arith.constant 0 : index\n    {body}\n    return\n}}\n"


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


def gather_program(rows: int, count: int) -> str:
    return function(
        "x i y",
        f"""%v_x = ktdp.construct_memory_view %x, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {k.box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {k.box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %x_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_x[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {k.box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    %d = ktdp.load %x_t : !ktdp.access_tile<{count}x128xindex> -> tensor<{count}x128xf32>
    {store("y", (count, 128), "f32", "d")}""",
    )


def scatter_program(rows: int, count: int) -> str:
    """Program for y[i[a], b] = x[a, b]."""
    return function(
        "x i y",
        f"""%v_y = ktdp.construct_memory_view %y, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {k.box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {k.box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %y_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_y[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {k.box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    {load("x", (count, 128), "f32")}
    ktdp.store %x_d, %y_t : tensor<{count}x128xf32>, !ktdp.access_tile<{count}x128xindex>""",
    )


def gather(folder: str) -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((64, 128)).astype(np.float32)
    index = rng.integers(0, 64, 20).astype(np.int32)
    y = np.zeros((20, 128), np.float32)
    ok(k.run(folder, gather_program(64, 20), [x, index, y]))
    assert (k.result(folder, "y") == x[index]).all()
    # int64 files are range-checked into i32 memory.
    ok(k.run(folder, gather_program(64, 20), [x, index.astype(np.int64), y]))
    assert (k.result(folder, "y") == x[index]).all()
    for bad in [-1, 64, 2**31 - 1]:
        index[7] = bad
        process = k.run(
            os.path.join(folder, "bad"), gather_program(64, 20), [x, index, y]
        )
        assert process.returncode == 1
        assert (
            f"index value {bad} for view dimension 0 is outside its range 0 to 63"
            in process.stderr
        )
        assert "program.mlir:" in process.stderr
        assert not os.path.exists(os.path.join(folder, "bad", "out"))
    rows = rng.permutation(64)[:20].astype(np.int32)
    source = rng.standard_normal((20, 128)).astype(np.float32)
    ok(k.run(folder, scatter_program(64, 20), [source, rows, x.copy()]))
    expected = x.copy()
    expected[rows] = source
    assert (k.result(folder, "y") == expected).all()


def generics(folder: str) -> None:
    """Every way of running a linalg op, on f32 and integers."""
    rng = np.random.default_rng(7)

    def run(
        arguments: str,
        body: str,
        arrays: list,
        expected: np.ndarray,
        bound=0.0,
        name: str = "",
    ) -> None:
        ok(k.run(folder, function(arguments, body), arrays))
        check_close(k.result(folder, arguments.split()[-1]), expected, bound)

    def generic(
        ins: list,
        out: tuple,
        maps: list,
        kinds: list,
        body: str,
        arguments: str,
        result: str = "r",
    ) -> str:
        names = ", ".join("%" + n for n, _ in ins)
        types = ", ".join(t for _, t in ins)
        maps_text = ", ".join(f"affine_map<{m}>" for m in maps)
        kinds_text = ", ".join(f'"{kind}"' for kind in kinds)
        return (
            f"%{result} = linalg.generic {{indexing_maps = [{maps_text}], iterator_types = [{kinds_text}]}} "
            f"ins({names} : {types}) outs(%{out[0]} : {out[1]}) {{\n^bb0({arguments}):\n{body}\n}} -> {out[1]}"
        )

    p, q = "parallel", "reduction"
    a = rng.standard_normal((5, 33, 70)).astype(np.float32)
    t = "tensor<5x33x70xf32>"
    # Permuted output, broadcast operands.
    row, column = (
        rng.standard_normal(70).astype(np.float32),
        rng.standard_normal((5, 33)).astype(np.float32),
    )
    run(
        "a b c z",
        f"""{load("a", (5, 33, 70), "f32")}
    {load("b", (70,), "f32")}
    {load("c", (5, 33), "f32")}
    %e = tensor.empty() : tensor<70x5x33xf32>
    {
            generic(
                [("a_d", t), ("b_d", "tensor<70xf32>"), ("c_d", "tensor<5x33xf32>")],
                ("e", "tensor<70x5x33xf32>"),
                [
                    "(i, j, k) -> (i, j, k)",
                    "(i, j, k) -> (k)",
                    "(i, j, k) -> (i, j)",
                    "(i, j, k) -> (k, i, j)",
                ],
                [p, p, p],
                '''%s = arith.addf %x, %y : f32
      %m = arith.mulf %s, %w : f32
      linalg.yield %m : f32''',
                "%x: f32, %y: f32, %w: f32, %o: f32",
            )
        }
    {store("z", (70, 5, 33), "f32", "r")}""",
        [a, row, column, np.zeros((70, 5, 33), np.float32)],
        ((a + row) * column[:, :, None]).transpose(2, 0, 1),
    )
    # Sums over each dimension, and of squares.
    for dims, text in [
        ((2,), "(i, j)"),
        ((1,), "(i, k)"),
        ((0,), "(j, k)"),
        ((0, 2), "(j)"),
        ((0, 1, 2), "()"),
    ]:
        kinds = [q if d in dims else p for d in range(3)]
        shape = tuple(s for d, s in enumerate(a.shape) if d not in dims)
        out = "tensor<" + "".join(f"{s}x" for s in shape) + "f32>"
        if not shape:
            continue
        for square in [False, True]:
            body = "%m = arith.mulf %x, %x : f32\n" if square else ""
            body += f"%s = arith.addf %o, {'%m' if square else '%x'} : f32\nlinalg.yield %s : f32"
            values = a.astype(np.float64) ** (2 if square else 1)
            run(
                "a z",
                f"""{load("a", (5, 33, 70), "f32")}
    {load("z", shape, "f32")}
    {
                    generic(
                        [("a_d", t)],
                        ("z_d", out),
                        ["(i, j, k) -> (i, j, k)", f"(i, j, k) -> {text}"],
                        kinds,
                        body,
                        "%x: f32, %o: f32",
                    )
                }
    {store("z", shape, "f32", "r").replace("%v_z", "%v2").replace("%z_t", "%t2")}""",
                [a, np.ones(shape, np.float32)],
                values.sum(axis=dims) + 1,
                a.size * 2.0**-24 * np.abs(values).sum(axis=dims) / 50,
            )
    # Integer sums, i64 index of the maximum (first of equals).
    n = rng.integers(-50, 50, (9, 40)).astype(np.int32)
    run(
        "a z",
        f"""{load("a", (9, 40), "i32")}
    {load("z", (9,), "i32")}
    {
            generic(
                [("a_d", "tensor<9x40xi32>")],
                ("z_d", "tensor<9xi32>"),
                ["(i, j) -> (i, j)", "(i, j) -> (i)"],
                [p, q],
                '''%s = arith.addi %o, %x : i32
      linalg.yield %s : i32''',
                "%x: i32, %o: i32",
            )
        }
    {store("z", (9,), "i32", "r").replace("%v_z", "%v2").replace("%z_t", "%t2")}""",
        [n, np.zeros(9, np.int32)],
        n.sum(axis=1),
    )
    run(
        "a z",
        f"""{load("a", (9, 40), "i32")}
    %low = arith.constant dense<-2147483648> : tensor<9xi32>
    %none = arith.constant dense<-1> : tensor<9xi64>
    %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}} ins(%a_d : tensor<9x40xi32>)
      outs(%low, %none : tensor<9xi32>, tensor<9xi64>) {{
    ^bb0(%x: i32, %m: i32, %at: i64):
      %j = linalg.index 1 : index
      %j64 = arith.index_cast %j : index to i64
      %g = arith.cmpi sgt, %x, %m : i32
      %v = arith.select %g, %x, %m : i32
      %w = arith.select %g, %j64, %at : i64
      linalg.yield %v, %w : i32, i64
    }} -> (tensor<9xi32>, tensor<9xi64>)
    {store("z", (9,), "i64", "r#1")}""",
        [n, np.zeros(9, np.int64)],
        n.argmax(axis=1),
    )
    # A scan: the output is indexed by the reduction loop as well.
    f = rng.integers(-9, 9, (6, 20)).astype(np.float32)
    run(
        "a z",
        f"""{load("a", (6, 20), "f32")}
    %zero = arith.constant dense<0.0> : tensor<6xf32>
    %e = tensor.empty() : tensor<6x20xf32>
    %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}} ins(%a_d : tensor<6x20xf32>)
      outs(%e, %zero : tensor<6x20xf32>, tensor<6xf32>) {{
    ^bb0(%x: f32, %o: f32, %c: f32):
      %s = arith.addf %x, %c : f32
      linalg.yield %s, %s : f32, f32
    }} -> (tensor<6x20xf32>, tensor<6xf32>)
    {store("z", (6, 20), "f32", "r#0")}""",
        [f, np.zeros((6, 20), np.float32)],
        f.cumsum(axis=1),
    )
    # Contractions in every operand order, with a batch.
    for left, right, out in [
        ("bmk", "bkn", "bmn"),
        ("bkm", "bnk", "bnm"),
        ("mbk", "kbn", "mnb"),
        ("bk", "bkn", "bn"),
        ("km", "kn", "nm"),
        ("bmk", "kn", "bmn"),
    ]:
        sizes = {"b": 3, "m": 17, "n": 40, "k": 29}
        dims = sorted(set(left + right))
        shapes = [tuple(sizes[c] for c in text) for text in (left, right, out)]
        x, y = (rng.integers(-8, 8, s).astype(np.float32) for s in shapes[:2])
        maps = [
            f"({', '.join(dims)}) -> ({', '.join(text)})" for text in (left, right, out)
        ]
        types = ["tensor<" + "x".join(map(str, s)) + "xf32>" for s in shapes]
        run(
            "x y z",
            f"""{load("x", shapes[0], "f32")}
    {load("y", shapes[1], "f32")}
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : {types[2]}
    %f = linalg.fill ins(%zero : f32) outs(%e : {types[2]}) -> {types[2]}
    {
                generic(
                    [("x_d", types[0]), ("y_d", types[1])],
                    ("f", types[2]),
                    maps,
                    [p if d in out else q for d in dims],
                    '''%m = arith.mulf %l, %h : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32''',
                    "%l: f32, %h: f32, %o: f32",
                )
            }
    {store("z", shapes[2], "f32", "r")}""",
            [x, y, np.zeros(shapes[2], np.float32)],
            np.einsum(f"{left},{right}->{out}", x, y),
        )
    # Integer powers, classification and clamping.
    base = np.array([[0, 1, -1, 2, -3, 7, 10, -2]], np.int32).repeat(3, 0)
    power = np.array([[0, 5, -3, 10, 3, 2, 9, -1]], np.int32).repeat(3, 0)
    run(
        "x y z",
        f"""{load("x", (3, 8), "i32")}
    {load("y", (3, 8), "i32")}
    %r = math.ipowi %x_d, %y_d : tensor<3x8xi32>
    {store("z", (3, 8), "i32", "r")}""",
        [base, power, np.zeros((3, 8), np.int32)],
        np.array([[1, 1, -1, 1024, -27, 49, 10**9, 0]]).repeat(3, 0),
    )
    odd = np.array([[np.nan, np.inf, -np.inf, 0.0, -5.0, 1e30, 3.0]], np.float32)
    for op, reference in [
        ("isnan", np.isnan),
        ("isinf", np.isinf),
        ("isfinite", np.isfinite),
    ]:
        run(
            "x z",
            f"""{load("x", (1, 7), "f32")}
    %r = math.{op} %x_d : tensor<1x7xf32>
    {store("z", (1, 7), "i1", "r")}""",
            [odd, np.zeros((1, 7), np.bool_)],
            reference(odd),
        )
    run(
        "x z",
        f"""{load("x", (1, 7), "f32")}
    %low = arith.constant dense<-2.0> : tensor<1x7xf32>
    %high = arith.constant dense<2.5> : tensor<1x7xf32>
    %r = math.clampf %x_d to [%low, %high] : tensor<1x7xf32>
    {store("z", (1, 7), "f32", "r")}""",
        [odd[:, 1:].repeat(2, 1)[:, :7].copy(), np.zeros((1, 7), np.float32)],
        np.clip(odd[:, 1:].repeat(2, 1)[:, :7], -2.0, 2.5),
    )
    # linalg.index in a parallel loop, a uniform result, select on a scalar.
    run(
        "z",
        f"""%e = tensor.empty() : tensor<7x1500xi64>
    %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      outs(%e : tensor<7x1500xi64>) {{
    ^bb0(%o: i64):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %h = arith.constant 1000 : index
      %m = arith.muli %i, %h : index
      %s = arith.addi %m, %j : index
      %c = arith.index_cast %s : index to i64
      linalg.yield %c : i64
    }} -> tensor<7x1500xi64>
    {store("z", (7, 1500), "i64", "r")}""",
        [np.zeros((7, 1500), np.int64)],
        np.arange(7)[:, None] * 1000 + np.arange(1500)[None, :],
    )


def control(folder: str) -> None:
    """Loops, branches and tensor operations."""
    rng = np.random.default_rng(8)
    x, y = rng.integers(-9, 9, (2, 4, 6)).astype(np.float32)
    shape, t = (4, 6), "tensor<4x6xf32>"

    def run(arguments: str, body: str, arrays: list, expected: np.ndarray) -> None:
        ok(k.run(folder, function(arguments, body), arrays))
        check_close(k.result(folder, "z"), expected, 0)

    zero = np.zeros(shape, np.float32)
    loads = load("x", shape, "f32") + "\n" + load("y", shape, "f32")
    store_r = store("z", shape, "f32", "r")
    for count in [0, 1, 2, 5]:
        a, b = x, y
        for _ in range(count):
            a, b = b, a + b
        # A swap: each iteration argument is the other one's next value; both
        # loaded tiles stay in use after the loop.
        run(
            "x y z n",
            f"""{loads}
    %c1 = arith.constant 1 : index
    %p, %q, %k = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x_d, %b = %y_d, %c = %c0) -> ({t}, {t}, index) {{
      %s = arith.addf %a, %b : {t}
      %m = arith.addi %c, %i : index
      scf.yield %b, %s, %m : {t}, {t}, index
    }}
    %ki = arith.index_cast %k : index to i32
    %kf = arith.sitofp %ki : i32 to f32
    %kt = tensor.splat %kf : {t}
    %r0 = arith.addf %p, %kt : {t}
    %r1 = arith.subf %r0, %x_d : {t}
    %r = arith.subf %r1, %y_d : {t}
    {store_r}""",
            [x, y, zero, count],
            a + sum(range(count)) - x - y,
        )
    for n in [3, 4]:
        run(
            "x y z n",
            f"""{loads}
    %c4 = arith.constant 4 : index
    %less = arith.cmpi slt, %n, %c4 : index
    %r, %u = scf.if %less -> ({t}, index) {{
      %s = arith.addf %x_d, %y_d : {t}
      scf.yield %s, %c0 : {t}, index
    }} else {{
      scf.yield %x_d, %n : {t}, index
    }}
    {store_r}""",
            [x, y, zero, n],
            x + y if n < 4 else x,
        )
    run(
        "x y z n",
        f"""{loads}
    %c1 = arith.constant 1 : index
    %w:2 = scf.while (%a = %x_d, %i = %n) : ({t}, index) -> ({t}, index) {{
      %more = arith.cmpi sgt, %i, %c0 : index
      scf.condition(%more) %a, %i : {t}, index
    }} do {{
    ^bb0(%a: {t}, %i: index):
      %s = arith.addf %a, %y_d : {t}
      %j = arith.subi %i, %c1 : index
      scf.yield %s, %j : {t}, index
    }}
    %r = arith.addf %w#0, %x_d : {t}
    {store_r}""",
        [x, y, zero, 3],
        x + 3 * y + x,
    )
    expected = x.copy()
    expected[1:3, 0:6:2] = y[0:2, 1:4]
    expected[3, 5] = y[2, 2]
    run(
        "x y z",
        f"""{loads}
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %s = tensor.extract_slice %y_d[0, 1] [2, %c3] [1, 1] : {t} to tensor<2x?xf32>
    %o = tensor.insert_slice %s into %x_d[1, 0] [2, %c3] [1, 2] : tensor<2x?xf32> into {t}
    %e = tensor.extract %y_d[%c2, %c2] : {t}
    %i = tensor.insert %e into %o[%c3, %c5] : {t}
    %f = tensor.collapse_shape %i [[0, 1]] : {t} into tensor<24xf32>
    %r = tensor.expand_shape %f [[0, 1]] output_shape [4, 6] : tensor<24xf32> into {t}
    {store_r}""",
        [x, y, zero],
        expected,
    )
    process = k.run(
        os.path.join(folder, "bad"),
        function(
            "x y z n",
            f"""{loads}
    %s = tensor.extract_slice %y_d[%n, 0] [2, 6] [1, 1] : {t} to tensor<2x6xf32>
    {store("z", (2, 6), "f32", "s")}""",
        ),
        [x, y, zero, 3],
    )
    assert process.returncode == 1
    assert (
        "slice of dimension 0 at offset 3 with 2 elements and stride 1 leaves its size 4"
        in process.stderr
    )


def communication(folder: str) -> None:
    """The inter-tile operations on pairs of four cores."""
    rng = np.random.default_rng(9)
    x = rng.integers(-9, 9, (4, 2, 6)).astype(np.float32)
    groups = "affine_set<(g) : (g >= 0, -g + 1 >= 0)>"
    pair = "affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>"
    first = "affine_set<(i)[g] : (i - 2*g == 0)>"
    t, future = (
        "tensor<2x6xf32>",
        f"!ktdp.tile_future<tensor<2x6xf32>, groups = {groups}>",
    )

    def program(producers: str, receive: str, shape: tuple, after: str = "") -> str:
        own = "x".join(map(str, shape))
        box = k.box("c r j", [1, *shape])
        return f"""func.func @f(%x: index {{ktdp.name = "x"}}, %z: index {{ktdp.name = "z"}}) attributes {{grid = [4]}} {{
    %c0 = arith.constant 0 : index
    %core = ktdp.get_compute_tile_id : index
    %vx = ktdp.construct_memory_view %x, sizes: [4, 2, 6], strides: [12, 6, 1] {{coordinate_set = {k.box("c r j", [4, 2, 6])},
      memory_space = #ktdp.memory_space<global>}} : memref<4x2x6xf32>
    %tx = ktdp.construct_access_tile %vx[%core, %c0, %c0] {{access_tile_set = {k.box("c r j", [1, 2, 6])},
      access_tile_order = affine_map<(c, r, j) -> (c, r, j)>}} : memref<4x2x6xf32> -> !ktdp.access_tile<1x2x6xindex>
    %d3 = ktdp.load %tx : !ktdp.access_tile<1x2x6xindex> -> tensor<1x2x6xf32>
    %d = tensor.collapse_shape %d3 [[0, 1], [2]] : tensor<1x2x6xf32> into {t}
    %future = ktdp.inter_tile_produce producer_tiles_per_group = {producers} : {t} -> {future} {{
    ^bb0(%group: index):
      ktdp.yield_partial %d : {t}
    }}
    %zero = arith.constant dense<0.0> : {t}
    %r = {receive}
    {after}
    %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, {shape[0]}, {shape[1]}] : tensor<{own}xf32> into tensor<1x{own}xf32>
    %vz = ktdp.construct_memory_view %z, sizes: [4, {shape[0]}, {shape[1]}], strides: [{shape[0] * shape[1]}, {shape[1]}, 1] {{
      coordinate_set = {k.box("c r j", [4, *shape])}, memory_space = #ktdp.memory_space<global>}} : memref<4x{own}xf32>
    %tz = ktdp.construct_access_tile %vz[%core, %c0, %c0] {{access_tile_set = {box},
      access_tile_order = affine_map<(c, r, j) -> (c, r, j)>}} : memref<4x{own}xf32> -> !ktdp.access_tile<1x{own}xindex>
    ktdp.store %e, %tz : tensor<1x{own}xf32>, !ktdp.access_tile<1x{own}xindex>
    return
}}
"""

    # Not commutative: 2 * lhs + rhs tells the order of the cores.
    combine = f"""{{
    ^bb0(%lhs: {t}, %rhs: {t}):
      %twice = arith.addf %lhs, %lhs : {t}
      %sum = arith.addf %twice, %rhs : {t}
      ktdp.yield_reduced %sum : {t}
    }}"""
    folded = 2 * x[0::2] + x[1::2]
    split = np.concatenate(
        [folded[:, None, :, :3], folded[:, None, :, 3:]], axis=1
    ).reshape(4, 2, 3)
    both = np.concatenate([x[0::2], x[1::2]], axis=1)
    exchanged = np.stack(
        [
            np.concatenate(
                [
                    x[c // 2 * 2][:, c % 2 * 3 :][:, :3],
                    x[c // 2 * 2 + 1][:, c % 2 * 3 :][:, :3],
                ]
            )
            for c in range(4)
        ]
    )
    parts = np.stack([x[c // 2 * 2][c % 2 :][:1] for c in range(4)])
    cases = [
        (
            pair,
            f"ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = {pair}, identity(%zero : {t}) : {future} "
            f"-> {t} {combine}",
            folded.repeat(2, 0),
        ),
        (
            pair,
            f"ktdp.inter_tile_reduce_scatter(%future) consumer_tiles_per_group = {pair}, scatter_dimension = 1, "
            f"identity(%zero : {t}) : {future} -> tensor<2x3xf32> {combine}",
            split,
        ),
        (
            first,
            f"ktdp.inter_tile_consume(%future) consumer_tiles_per_group = {pair} : {future} -> {t}",
            x[0::2].repeat(2, 0),
        ),
        (
            pair,
            f"ktdp.inter_tile_consume(%future) consumer_tiles_per_group = {pair}, producer_dependency_per_consumer = "
            f"affine_set<(p)[g, c] : (p + c - 4*g - 1 == 0)> : {future} -> {t}",
            x[[1, 0, 3, 2]],
        ),
        (
            pair,
            f"ktdp.inter_tile_gather(%future) consumer_tiles_per_group = {pair}, gather_dimension = 0 : {future} "
            f"-> tensor<4x6xf32>",
            both.repeat(2, 0),
        ),
        (
            first,
            f"ktdp.inter_tile_scatter(%future) consumer_tiles_per_group = {pair}, scatter_dimension = 0 : {future} "
            f"-> tensor<1x6xf32>",
            parts,
        ),
        (
            pair,
            f"ktdp.inter_tile_all_to_all(%future) consumer_tiles_per_group = {pair}, split_dimension = 1, "
            f"concat_dimension = 0 : {future} -> tensor<4x3xf32>",
            exchanged,
        ),
    ]
    for producers, receive, expected in cases:
        for _ in range(3):
            ok(
                k.run(
                    folder,
                    program(producers, receive, expected.shape[1:]),
                    [x, np.zeros_like(expected)],
                )
            )
            assert (k.result(folder, "z") == expected).all(), receive
    # A core that fails ends the others; a core in two groups is refused.
    receive = cases[0][1]
    divide = "%bad = arith.divui %c0, %c0 : index"
    process = k.run(
        os.path.join(folder, "bad"), program(pair, receive, (2, 6), divide), [x, x]
    )
    assert (
        process.returncode == 1 and "core 0: integer division by zero" in process.stderr
    ), process.stderr
    overlapping = "affine_set<(i)[g] : (i - g >= 0, -i + g + 1 >= 0)>"
    process = k.run(
        os.path.join(folder, "bad"), program(overlapping, receive, (2, 6)), [x, x]
    )
    assert (
        process.returncode == 1
        and "core 1 is a producer in groups 0 and 1" in process.stderr
    ), process.stderr


def arguments(folder: str) -> None:
    """Index of a maximum or minimum as the compiler writes it: NaN first, then the smaller index."""
    rng = np.random.default_rng(13)
    for shape, dim in [((3, 3000), 1), ((40, 50), 0), ((1, 1), 1), ((2, 1024), 1)]:
        for trial, (less, reference) in enumerate(
            [("olt", np.argmax), ("ogt", np.argmin)] * 3
        ):
            x = rng.integers(-40, 40, shape).astype(np.float32)
            if trial >= 2:
                x.flat[rng.integers(0, x.size, 3)] = [np.inf, -np.inf, x.flat[0]]
            if trial >= 4:
                x.flat[rng.integers(0, x.size, 2)] = np.nan
            rows = shape[1 - dim]
            start = "0xFF800000" if less == "olt" else "0x7F800000"
            kinds = '"parallel", "reduction"' if dim == 1 else '"reduction", "parallel"'
            own = "i" if dim == 1 else "j"
            text = f"{shape[0]}x{shape[1]}"
            body = f"""{load("x", shape, "f32")}
    %v0 = arith.constant dense<{start}> : tensor<{rows}xf32>
    %i0 = arith.constant dense<9223372036854775807> : tensor<{rows}xi64>
    %true = arith.constant true
    %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({own})>,
      affine_map<(i, j) -> ({own})>], iterator_types = [{kinds}]}} ins(%x_d : tensor<{text}xf32>)
      outs(%v0, %i0 : tensor<{rows}xf32>, tensor<{rows}xi64>) {{
    ^bb0(%v: f32, %b: f32, %bi: i64):
      %k = linalg.index {dim} : index
      %i = arith.index_cast %k : index to i64
      %better = arith.cmpf {less}, %b, %v : f32
      %tie = arith.cmpf oeq, %v, %b : f32
      %vn = arith.cmpf uno, %v, %v : f32
      %bn = arith.cmpf uno, %b, %b : f32
      %bk = arith.xori %bn, %true : i1
      %n0 = arith.andi %vn, %bk : i1
      %t0 = arith.ori %better, %n0 : i1
      %n1 = arith.andi %vn, %bn : i1
      %t1 = arith.ori %tie, %n1 : i1
      %c = arith.cmpi slt, %i, %bi : i64
      %t2 = arith.andi %t1, %c : i1
      %take = arith.ori %t0, %t2 : i1
      %sv = arith.select %take, %v, %b : f32
      %si = arith.select %take, %i, %bi : i64
      linalg.yield %sv, %si : f32, i64
    }} -> (tensor<{rows}xf32>, tensor<{rows}xi64>)
    {store("z", (rows,), "i64", "r#1")}"""
            ok(k.run(folder, function("x z", body), [x, np.zeros(rows, np.int64)]))
            assert (k.result(folder, "z") == reference(x, axis=dim)).all(), (
                shape,
                dim,
                less,
                x,
            )


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
    ]:
        x = rng.integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)
        body = f"{load('x', shape, element)}\n{store('z', shape, element, 'x_d')}"
        ok(k.run(folder, function("x z", body), [x, np.zeros_like(x)]))
        assert (k.result(folder, "z").view(dtype) == x).all(), element
    x = np.full(shape, 2**31, np.int64)
    body = f"{load('x', shape, 'i32')}\n{store('z', shape, 'i32', 'x_d')}"
    process = k.run(os.path.join(folder, "bad"), function("x z", body), [x, x])
    assert process.returncode == 1 and "2147483648" in process.stderr, process.stderr


def distributed(folder: str) -> None:
    """A view over three partitions, one of them column-major; a hole."""
    rng = np.random.default_rng(10)
    whole = rng.standard_normal((12, 10)).astype(np.float32)
    a, b, c = whole[:7, :6].copy(), whole[:7, 6:].copy(), whole[7:11, :].T.copy()

    def view(name: str, sizes: list, strides: list, lo: list, hi: list) -> str:
        parts = ", ".join(
            f"{d} - {x} >= 0, -{d} + {y} >= 0"
            for d, x, y in zip("rc", lo, hi, strict=False)
        )
        return (
            f"%v{name} = ktdp.construct_memory_view %{name}, sizes: {sizes}, strides: {strides} {{coordinate_set = "
            f"affine_set<(r, c) : ({parts})>, memory_space = #ktdp.memory_space<global>}} : "
            f"memref<{sizes[0]}x{sizes[1]}xf32>"
        )

    def program(
        rows: int, columns: int, at: tuple, order: str = "(r, c) -> (r, c)"
    ) -> str:
        shape = (columns, rows) if order.endswith("(c, r)") else (rows, columns)
        text = "x".join(map(str, shape))
        return function(
            "a b c z",
            f"""{view("a", [7, 6], [6, 1], [0, 0], [6, 5])}
    {view("b", [7, 4], [4, 1], [0, 6], [6, 9])}
    {view("c", [4, 10], [1, 4], [7, 0], [10, 9])}
    %v = ktdp.construct_distributed_memory_view (%va, %vb, %vc : memref<7x6xf32>, memref<7x4xf32>, memref<4x10xf32>)
      : memref<11x10xf32>
    %row = arith.constant {at[0]} : index
    %column = arith.constant {at[1]} : index
    %t = ktdp.construct_access_tile %v[%row, %column] {{access_tile_set = {k.box("r c", [rows, columns])},
      access_tile_order = affine_map<{order}>}} : memref<11x10xf32> -> !ktdp.access_tile<{text}xindex>
    %d = ktdp.load %t : !ktdp.access_tile<{text}xindex> -> tensor<{text}xf32>
    {store("z", shape, "f32", "d")}""",
        )

    for rows, columns, at in [
        (11, 10, (0, 0)),
        (5, 5, (4, 3)),
        (2, 2, (8, 1)),
        (4, 10, (8, 0)),
    ]:
        expected = np.zeros((rows, columns), np.float32)
        inside = whole[:11][at[0] : at[0] + rows, at[1] : at[1] + columns]
        expected[: inside.shape[0], : inside.shape[1]] = inside
        ok(
            k.run(
                folder,
                program(rows, columns, at),
                [a, b, c, np.ones((rows, columns), np.float32)],
            )
        )
        assert (k.result(folder, "z") == expected).all()
        # RFC order: the tile's points in the lexicographic order of (c, r).
        ok(
            k.run(
                folder,
                program(rows, columns, at, "(r, c) -> (c, r)"),
                [a, b, c, np.ones((columns, rows), np.float32)],
            )
        )
        assert (k.result(folder, "z") == expected.T).all()
    process = k.run(
        os.path.join(folder, "bad"),
        program(1, 1, (11, 0)),
        [a, b, c, np.ones((1, 1), np.float32)],
    )
    assert (
        process.returncode == 1
        and "no partition covers the access region" in process.stderr
    )


def named(folder: str) -> None:
    """Named linalg operations, generated tensors, checked integers."""
    rng = np.random.default_rng(12)
    x, y = rng.integers(1, 9, (2, 5, 7)).astype(np.float32)
    t, _zero = "tensor<5x7xf32>", np.zeros((5, 7), np.float32)
    loads = load("x", (5, 7), "f32") + "\n" + load("y", (5, 7), "f32")

    def run(body: str, arrays: list, expected: np.ndarray) -> None:
        shape = expected.shape
        element = {"float32": "f32", "int32": "i32"}[str(expected.dtype)]
        text = f"{loads}\n    {body}\n    {store('z', shape, element, 'r')}"
        ok(k.run(folder, function("x y z", text), [*arrays, np.zeros_like(expected)]))
        assert (k.result(folder, "z") == expected).all(), body

    empty = f"%e = tensor.empty() : {t}\n    "
    for op, expected in [
        ("add", x + y),
        ("sub", x - y),
        ("mul", x * y),
        ("div", x / y),
        ("max", np.maximum(x, y)),
    ]:
        run(
            f"{empty}%r = linalg.{op} ins(%x_d, %y_d : {t}, {t}) outs(%e : {t}) -> {t}",
            [x, y],
            expected,
        )
    run(
        "%e = tensor.empty() : tensor<7x5xf32>\n    %r = linalg.transpose ins(%x_d : tensor<5x7xf32>) "
        "outs(%e : tensor<7x5xf32>) permutation = [1, 0]",
        [x, y],
        x.T.copy(),
    )
    run(
        "%e = tensor.empty() : tensor<5x3x7xf32>\n    %r = linalg.broadcast ins(%x_d : tensor<5x7xf32>) "
        "outs(%e : tensor<5x3x7xf32>) dimensions = [1]",
        [x, y],
        x[:, None].repeat(3, 1),
    )
    run(f"{empty}%r = linalg.copy ins(%x_d : {t}) outs(%e : {t}) -> {t}", [x, y], x)
    run(
        f"{empty}%r = linalg.map {{ arith.mulf }} ins(%x_d, %y_d : {t}, {t}) outs(%e : {t})",
        [x, y],
        x * y,
    )
    run(
        "%init = arith.constant dense<1.0> : tensor<5xf32>\n    %r = linalg.reduce { arith.addf } "
        "ins(%x_d : tensor<5x7xf32>) outs(%init : tensor<5xf32>) dimensions = [1]",
        [x, y],
        x.sum(1) + 1,
    )
    run(
        """%e = tensor.empty() : tensor<7x5xf32>
    %yt = linalg.transpose ins(%y_d : tensor<5x7xf32>) outs(%e : tensor<7x5xf32>) permutation = [1, 0]
    %a = tensor.expand_shape %x_d [[0, 1], [2]] output_shape [1, 5, 7] : tensor<5x7xf32> into tensor<1x5x7xf32>
    %b = tensor.expand_shape %yt [[0, 1], [2]] output_shape [1, 7, 5] : tensor<7x5xf32> into tensor<1x7x5xf32>
    %init = arith.constant dense<2.0> : tensor<1x5x5xf32>
    %m = linalg.batch_matmul ins(%a, %b : tensor<1x5x7xf32>, tensor<1x7x5xf32>) outs(%init : tensor<1x5x5xf32>)
      -> tensor<1x5x5xf32>
    %r = tensor.collapse_shape %m [[0, 1], [2]] : tensor<1x5x5xf32> into tensor<5x5xf32>""",
        [x, y],
        x @ y.T + 2,
    )
    # Two products on one initial value: neither sees the other's result.
    run(
        """%init = arith.constant dense<2.0> : tensor<5x5xf32>
    %f = linalg.fill ins(%c1f : f32) outs(%init : tensor<5x5xf32>) -> tensor<5x5xf32>
    %e = tensor.empty() : tensor<7x5xf32>
    %yt = linalg.transpose ins(%y_d : tensor<5x7xf32>) outs(%e : tensor<7x5xf32>) permutation = [1, 0]
    %a = linalg.matmul ins(%x_d, %yt : tensor<5x7xf32>, tensor<7x5xf32>) outs(%f : tensor<5x5xf32>) -> tensor<5x5xf32>
    %b = linalg.matmul ins(%x_d, %yt : tensor<5x7xf32>, tensor<7x5xf32>) outs(%f : tensor<5x5xf32>) -> tensor<5x5xf32>
    %r = arith.subf %a, %b : tensor<5x5xf32>""".replace(
            "%f = ", "%c1f = arith.constant 1.0 : f32\n    %f = ", 1
        ),
        [x, y],
        np.zeros((5, 5), np.float32),
    )
    run(
        """%n = arith.constant 3 : index
    %g = tensor.generate %n {
    ^bb0(%i: index, %j: index):
      %c10 = arith.constant 10 : index
      %m = arith.muli %i, %c10 : index
      %s = arith.addi %m, %j : index
      %v = arith.index_cast %s : index to i32
      tensor.yield %v : i32
    } : tensor<?x2000xi32>
    %r = tensor.cast %g : tensor<?x2000xi32> to tensor<3x2000xi32>""",
        [x, y],
        (np.arange(3)[:, None] * 10 + np.arange(2000)).astype(np.int32),
    )
    # A trunci that may not lose bits says what it met.
    i = np.array([1, 2, 3], np.int32)
    body = f"""{load("x", (3,), "i32")}
    %w = arith.extsi %x_d : tensor<3xi32> to tensor<3xi64>
    %c = arith.constant dense<1500000000> : tensor<3xi64>
    %m = arith.muli %w, %c : tensor<3xi64>
    %r = arith.trunci %m overflow<nsw> : tensor<3xi64> to tensor<3xi32>
    {store("z", (3,), "i32", "r")}"""
    process = k.run(os.path.join(folder, "bad"), function("x z", body), [i, i])
    assert (
        process.returncode == 1
        and "integer overflow: 3000000000 does not fit i32" in process.stderr
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2] + "-" + sys.argv[1])
