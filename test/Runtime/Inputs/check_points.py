# SPDX-License-Identifier: Apache-2.0
"""Tiles and views that are no boxes, subviews, against a naive reference."""

from __future__ import annotations

import itertools
import os

import kernels as k
import numpy as np
from programs import check_close, function, load, ok, store


def view(
    name: str, sizes: list, strides: list, constraints: str, dims: str = "a b"
) -> str:
    """A global f32 view with the given coordinate set."""
    text = "x".join(map(str, sizes))
    names = ", ".join(dims.split())
    return (
        f"%v_{name} = ktdp.construct_memory_view %{name}, sizes: {sizes}, strides: "
        f"{strides} {{coordinate_set = affine_set<({names}) : ({constraints})>, "
        f"memory_space = #ktdp.memory_space<global>}} : memref<{text}xf32>"
    )


# Sets over (a, b) as constraints, and as Python predicates.
SETS = [
    (
        "a >= 0, -a + 6 >= 0, b >= 0, a - b >= 0",
        lambda a, b: 0 <= a <= 6 and 0 <= b <= a,
    ),
    (
        "a >= 0, -a + 9 >= 0, a mod 3 == 0, b - a >= 0, -b + a + 4 >= 0",
        lambda a, b: 0 <= a <= 9 and a % 3 == 0 and 0 <= b - a <= 4,
    ),
    (
        "a - 1 >= 0, -a - b + 8 >= 0, b >= 0, 3 - b floordiv 2 >= 0",
        lambda a, b: a >= 1 and b >= 0 and a + b <= 8 and b // 2 <= 3,
    ),
    ("a - 2 * b == 0, b >= 0, -b + 4 >= 0", lambda a, b: a == 2 * b and 0 <= b <= 4),
]
ORDERS = [
    ("(a, b) -> (a, b)", lambda a, b: (a, b)),
    ("(a, b) -> (b, a)", lambda a, b: (b, a)),
    ("(a, b) -> (a + b, b)", lambda a, b: (a + b, b)),
    ("(a, b) -> (-a, b)", lambda a, b: (-a, b)),
    ("(a, b) -> (a mod 2, a * 20 + b)", lambda a, b: (a % 2, a * 20 + b)),
]


def points(folder: str) -> None:
    """Loads and stores of irregular tiles: the k-th point is the k-th element."""
    rng = np.random.default_rng(21)
    shape = (20, 24)
    x = rng.standard_normal(shape).astype(np.float32)
    whole = k.box("a b", list(shape)).split(" : (", 1)[1][:-2]
    for (constraints, inside), (order, key) in itertools.product(SETS, ORDERS):
        expected_points = sorted(
            (p for p in itertools.product(range(20), range(20)) if inside(*p)),
            key=lambda p, key=key: key(*p),
        )
        count = len(expected_points)
        rows, columns = (count, 1) if count % 2 else (count // 2, 2)
        tile = f"{rows}x{columns}"
        program = function(
            "x y z",
            f"""{view("x", [20, 24], [24, 1], whole)}
    {view("y", [20, 24], [24, 1], whole)}
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %xt = ktdp.construct_access_tile %v_x[%c2, %c3] {{access_tile_set = affine_set<(a, b) : ({constraints})>,
      access_tile_order = affine_map<{order}>}} : memref<20x24xf32> -> !ktdp.access_tile<{tile}xindex>
    %yt = ktdp.construct_access_tile %v_y[%c2, %c3] {{access_tile_set = affine_set<(a, b) : ({constraints})>,
      access_tile_order = affine_map<{order}>}} : memref<20x24xf32> -> !ktdp.access_tile<{tile}xindex>
    %d = ktdp.load %xt : !ktdp.access_tile<{tile}xindex> -> tensor<{tile}xf32>
    ktdp.store %d, %yt : tensor<{tile}xf32>, !ktdp.access_tile<{tile}xindex>
    {store("z", (rows, columns), "f32", "d")}""",
        )
        zeros = np.zeros(shape, np.float32)
        ok(k.run(folder, program, [x, zeros, np.zeros((rows, columns), np.float32)]))
        values = np.array([x[a + 2, b + 3] for a, b in expected_points], np.float32)
        assert (k.result(folder, "z").reshape(-1) == values).all(), (constraints, order)
        written = zeros.copy()
        for (a, b), value in zip(expected_points, values, strict=True):
            written[a + 2, b + 3] = value
        assert (k.result(folder, "y") == written).all(), (constraints, order)

    def fails(set_text: str, order: str, tile: str, message: str) -> None:
        program = function(
            "x",
            f"""{view("x", [20, 24], [24, 1], whole)}
    %xt = ktdp.construct_access_tile %v_x[%c0, %c0] {{access_tile_set = affine_set<(a, b) : ({set_text})>,
      access_tile_order = affine_map<{order}>}} : memref<20x24xf32> -> !ktdp.access_tile<{tile}xindex>
    %d = ktdp.load %xt : !ktdp.access_tile<{tile}xindex> -> tensor<{tile}xf32>""",
        )
        process = k.run(os.path.join(folder, "bad"), program, [x])
        assert process.returncode == 1 and message in process.stderr, process.stderr
        assert "program.mlir:" in process.stderr

    triangle = SETS[0][0]
    fails(triangle, "(a, b) -> (a, b)", "7x5", "the set has 28 points")
    fails(triangle, "(a, b) -> (a, a)", "7x4", "the same place")
    fails("a >= 0, b >= 0, -b + 3 >= 0", "(a, b) -> (a, b)", "7x4", "no bound")
    fails(
        "a >= 0, -a + 30 >= 0, b >= 0, -a + b >= 0, a - b >= 0",
        "(a, b) -> (a, b)",
        "31x1",
        "is outside its range 0 to 19",
    )


def view_sets(folder: str) -> None:
    """A view's irregular coordinate set stops accesses outside it."""
    rng = np.random.default_rng(22)
    x = rng.standard_normal((8, 8)).astype(np.float32)

    def program(row: int, column: int, rows: int, columns: int) -> str:
        tile = f"{rows}x{columns}"
        return function(
            "x z",
            f"""{view("x", [8, 8], [8, 1], "a >= 0, -a + 7 >= 0, b >= 0, a - b >= 0")}
    %row = arith.constant {row} : index
    %column = arith.constant {column} : index
    %xt = ktdp.construct_access_tile %v_x[%row, %column] {{access_tile_set = {k.box("a b", [rows, columns])},
      access_tile_order = affine_map<(a, b) -> (a, b)>}} : memref<8x8xf32> -> !ktdp.access_tile<{tile}xindex>
    %d = ktdp.load %xt : !ktdp.access_tile<{tile}xindex> -> tensor<{tile}xf32>
    {store("z", (rows, columns), "f32", "d")}""",
        )

    for row, column, rows, columns in [(4, 0, 4, 5), (0, 0, 8, 1), (7, 3, 1, 5)]:
        z = np.zeros((rows, columns), np.float32)
        ok(k.run(folder, program(row, column, rows, columns), [x, z]))
        expected = x[row : row + rows, column : column + columns]
        assert (k.result(folder, "z") == expected).all()
    process = k.run(
        os.path.join(folder, "bad"),
        program(3, 0, 2, 5),
        [x, np.zeros((2, 5), np.float32)],
    )
    assert process.returncode == 1, process.stderr
    assert "coordinate (3, 4) is not in its view's coordinate set" in process.stderr, (
        process.stderr
    )


def gather_distributed(folder: str) -> None:
    """Indirect access to a view over partitions, one of them column-major."""
    rng = np.random.default_rng(23)
    whole = rng.standard_normal((12, 5)).astype(np.float32)
    a, b = whole[:7].copy(), whole[7:].T.copy()
    index = rng.integers(0, 12, 9).astype(np.int32)
    parts = f"""{view("a", [7, 5], [5, 1], "a >= 0, -a + 6 >= 0, b >= 0, -b + 4 >= 0")}
    {view("b", [5, 5], [1, 5], "a - 7 >= 0, -a + 11 >= 0, b >= 0, -b + 4 >= 0")}
    %v = ktdp.construct_distributed_memory_view (%v_a, %v_b : memref<7x5xf32>, memref<5x5xf32>) : memref<12x5xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [9], strides: [1] {{coordinate_set = {k.box("r", [9])},
      memory_space = #ktdp.memory_space<global>}} : memref<9xi32>
    %t = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %v[ind(%v_i[%r]), (%c)] {{
      variables_space_set = {k.box("r c", [9, 5])}, variables_space_order = affine_map<(r, c) -> (r, c)>}}
      : memref<12x5xf32>, memref<9xi32> -> !ktdp.access_tile<9x5xindex>"""
    gather = function(
        "a b i z",
        f"""{parts}
    %d = ktdp.load %t : !ktdp.access_tile<9x5xindex> -> tensor<9x5xf32>
    {store("z", (9, 5), "f32", "d")}""",
    )
    z = np.zeros((9, 5), np.float32)
    ok(k.run(folder, gather, [a, b, index, z]))
    assert (k.result(folder, "z") == whole[index]).all()
    scatter = function(
        "a b i z",
        f"""{parts}
    {load("z", (9, 5), "f32")}
    ktdp.store %z_d, %t : tensor<9x5xf32>, !ktdp.access_tile<9x5xindex>""",
    )
    rows = rng.permutation(12)[:9].astype(np.int32)
    new = rng.standard_normal((9, 5)).astype(np.float32)
    ok(k.run(folder, scatter, [a, b, rows, new]))
    expected = whole.copy()
    expected[rows] = new
    assert (k.result(folder, "a") == expected[:7]).all()
    assert (expected[7:] == k.result(folder, "b").T).all()
    for bad in [-1, 12]:
        index[4] = bad
        process = k.run(os.path.join(folder, "bad"), gather, [a, b, index, z])
        assert process.returncode == 1
        assert (
            f"index value {bad} for view dimension 0 is outside its range 0 to 11"
            in process.stderr
        ), process.stderr


def subview(folder: str) -> None:
    """memref.subview: offsets, strides, dropped dimensions, bounds."""
    rng = np.random.default_rng(24)
    x = rng.standard_normal((6, 9, 10)).astype(np.float32)
    whole = k.box("a b c", [6, 9, 10]).split(" : (", 1)[1][:-2]

    def program(at: int) -> str:
        return function(
            "x z",
            f"""{view("x", [6, 9, 10], [90, 10, 1], whole, "a b c")}
    %at = arith.constant {at} : index
    %s = memref.subview %v_x[%at, 1, 2] [1, 4, 3] [1, 2, 3]
      : memref<6x9x10xf32> to memref<4x3xf32, strided<[20, 3], offset: ?>>
    %u = memref.subview %s[1, 0] [3, 3] [1, 1]
      : memref<4x3xf32, strided<[20, 3], offset: ?>> to memref<3x3xf32, strided<[20, 3], offset: ?>>
    %t = ktdp.construct_access_tile %u[%c0, %c0] {{access_tile_set = {k.box("a b", [3, 3])},
      access_tile_order = affine_map<(a, b) -> (a, b)>}}
      : memref<3x3xf32, strided<[20, 3], offset: ?>> -> !ktdp.access_tile<3x3xindex>
    %d = ktdp.load %t : !ktdp.access_tile<3x3xindex> -> tensor<3x3xf32>
    {store("z", (3, 3), "f32", "d")}""",
        )

    z = np.zeros((3, 3), np.float32)
    ok(k.run(folder, program(4), [x, z]))
    check_close(k.result(folder, "z"), x[4, 1:9:2, 2:9:3][1:], 0)
    process = k.run(os.path.join(folder, "bad"), program(6), [x, z])
    assert process.returncode == 1
    assert (
        "dimension 0 at offset 6 with 1 elements and stride 1 leaves the source's "
        "range 0 to 5" in process.stderr
    ), process.stderr


def loops(folder: str) -> None:
    """scf.parallel with reductions, scf.forall, tensor.pad, bit casts."""
    rng = np.random.default_rng(25)
    x = rng.integers(-9, 9, (5, 7)).astype(np.float32)
    t = "tensor<5x7xf32>"
    ok(
        k.run(
            folder,
            function(
                "x z n",
                f"""{load("x", (5, 7), "f32")}
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1000.0 : f32
    %init = arith.constant dense<0.0> : tensor<7xf32>
    %sum, %max, %rows = scf.parallel (%i, %j) = (%c0, %c1) to (%n, %c7) step (%c1, %c2)
        init (%zero, %low, %init) -> (f32, f32, tensor<7xf32>) {{
      %e = tensor.extract %x_d[%i, %j] : {t}
      %r = tensor.extract_slice %x_d[%i, 0] [1, 7] [1, 1] : {t} to tensor<7xf32>
      scf.reduce(%e, %e, %r : f32, f32, tensor<7xf32>) {{
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }}, {{
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        scf.reduce.return %m : f32
      }}, {{
      ^bb0(%a: tensor<7xf32>, %b: tensor<7xf32>):
        %s = arith.addf %a, %b : tensor<7xf32>
        scf.reduce.return %s : tensor<7xf32>
      }}
    }}
    %both = tensor.from_elements %sum, %max : tensor<2xf32>
    %out = tensor.empty() : tensor<9xf32>
    %p = tensor.insert_slice %both into %out[0] [2] [1] : tensor<2xf32> into tensor<9xf32>
    %q = tensor.insert_slice %rows into %p[2] [7] [1] : tensor<7xf32> into tensor<9xf32>
    {store("z", (9,), "f32", "q")}""",
            ),
            [x, np.zeros(9, np.float32), 4],
        )
    )
    part = x[:4, 1:7:2]
    expected = np.concatenate([[part.sum(), part.max()], 3 * x[:4].sum(0)])
    check_close(k.result(folder, "z"), expected, 0)
    # Each iteration reads the shared tensor as it was before the loop.
    ok(
        k.run(
            folder,
            function(
                "x z",
                f"""{load("x", (5, 7), "f32")}
    %c4 = arith.constant 4 : index
    %r = scf.forall (%i) = (0) to (4) step (1) shared_outs(%o = %x_d) -> ({t}) {{
      %next = affine.apply affine_map<(d) -> (d + 1)>(%i)
      %a = tensor.extract_slice %o[%i, 0] [1, 7] [1, 1] : {t} to tensor<1x7xf32>
      %b = tensor.extract_slice %x_d[0, 0] [1, 7] [1, 1] : {t} to tensor<1x7xf32>
      %s = arith.addf %a, %b : tensor<1x7xf32>
      scf.forall.in_parallel {{
        tensor.parallel_insert_slice %s into %o[%next, 0] [1, 7] [1, 1] : tensor<1x7xf32> into {t}
      }}
    }}
    %d = arith.subf %r, %x_d : {t}
    {store("z", (5, 7), "f32", "d")}""",
            ),
            [x, np.zeros_like(x)],
        )
    )
    expected = x.copy()
    expected[1:] = x[:4] + x[0]
    check_close(k.result(folder, "z"), expected - x, 0)
    # Padding with a constant, and with values of the index.
    ok(
        k.run(
            folder,
            function(
                "x z n",
                f"""{load("x", (5, 7), "f32")}
    %p = tensor.pad %x_d low[1, %n] high[0, 1] {{
    ^bb0(%i: index, %j: index):
      %c = arith.constant 2.5 : f32
      tensor.yield %c : f32
    }} : {t} to tensor<6x?xf32>
    %q = tensor.cast %p : tensor<6x?xf32> to tensor<6x10xf32>
    %r = tensor.pad %q low[0, 0] high[2, 0] {{
    ^bb0(%i: index, %j: index):
      %s = arith.addi %i, %j : index
      %w = arith.index_cast %s : index to i32
      %v = arith.sitofp %w : i32 to f32
      tensor.yield %v : f32
    }} : tensor<6x10xf32> to tensor<8x10xf32>
    {store("z", (8, 10), "f32", "r")}""",
            ),
            [x, np.zeros((8, 10), np.float32), 2],
        )
    )
    expected = np.add.outer(np.arange(8), np.arange(10)).astype(np.float32)
    expected[:6] = np.pad(x, ((1, 0), (2, 1)), constant_values=2.5)
    check_close(k.result(folder, "z"), expected, 0)
    # The bits of an f16 are its DL16 code, or IEEE half's.
    h = rng.standard_normal((3, 40)).astype(np.float16)
    for numerics in ["dl16", "ieee"]:
        ok(
            k.run(
                folder,
                function(
                    "x z",
                    f"""{load("x", (3, 40), "f16")}
    %r = arith.bitcast %x_d : tensor<3x40xf16> to tensor<3x40xi16>
    %b = arith.bitcast %r : tensor<3x40xi16> to tensor<3x40xf16>
    %same = arith.cmpf oeq, %b, %x_d : tensor<3x40xf16>
    %zero = arith.constant dense<0> : tensor<3x40xi16>
    %s = arith.select %same, %r, %zero : tensor<3x40xi1>, tensor<3x40xi16>
    {store("z", (3, 40), "i16", "s")}""",
                ),
                [h, np.zeros((3, 40), np.int16)],
                "--numerics",
                numerics,
            )
        )
        bits = k.round_dl16(h).view(np.uint32).astype(np.int64)
        code = (
            (bits >> 16) & 0x8000 | ((bits >> 23) & 255) - 127 + 31 << 9
        ) | bits >> 14 & 511
        expected = h.view(np.int16) if numerics == "ieee" else code.astype(np.uint16)
        assert (k.result(folder, "z").view(np.uint16) == expected.view(np.uint16)).all()
