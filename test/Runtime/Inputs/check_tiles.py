# SPDX-License-Identifier: Apache-2.0
"""Access tiles: gathers, scatters, distributed views."""

from __future__ import annotations

import os

import kernels as k
import numpy as np
from programs import function, load, ok, store


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
