# SPDX-License-Identifier: Apache-2.0
"""Structured loops in every strategy."""

from __future__ import annotations

import os

import kernels as k
import numpy as np
from programs import check_close, function, load, ok, store


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
