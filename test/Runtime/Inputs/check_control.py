# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and communication between cores."""

from __future__ import annotations

import os

import kernels as k
import numpy as np
from programs import check_close, function, load, ok, store


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


def runtime_arguments(folder: str) -> None:
    """Values and declared properties of run-time arguments."""
    program = f"""func.func @f(%z: index {{ktdp.name = "z"}}, %n: !ktdp.runtime_arg<i32, granularity=4, upperbound=64>,
    %f: !ktdp.runtime_arg<f32>) {{
    %c0 = arith.constant 0 : index
    %v = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> i32
    %g = ktdp.runtime_arg_extract granularity from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> index
    %u = ktdp.runtime_arg_extract upperbound from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> index
    %x = ktdp.runtime_arg_extract value from %f : !ktdp.runtime_arg<f32> -> f32
    %a = arith.sitofp %v : i32 to f32
    %gi = arith.index_cast %g : index to i32
    %b = arith.sitofp %gi : i32 to f32
    %ui = arith.index_cast %u : index to i32
    %c = arith.sitofp %ui : i32 to f32
    %r = tensor.from_elements %a, %b, %c, %x : tensor<4xf32>
    {store("z", (4,), "f32", "r")}
    return
}}
"""
    z = np.zeros(4, np.float32)
    ok(k.run(folder, program, [z, 48, 2.5]))
    assert k.result(folder, "z").tolist() == [48, 4, 64, 2.5]
    for bad, message in [
        (6, "no multiple of its granularity 4"),
        (68, "above its upper bound 64"),
    ]:
        process = k.run(os.path.join(folder, "bad"), program, [z, bad, 1])
        assert process.returncode == 1 and message in process.stderr, process.stderr
