# SPDX-License-Identifier: Apache-2.0
"""Helper functions with results; reshapes whose shape is a value."""

from __future__ import annotations

import numpy as np
from check_modes import fails, line_of
from programs import ROUND, everywhere, function, half, load, store

HELPERS = """
func.func private @twice(%n: index) -> (index, index) {
  %c2 = arith.constant 2 : index
  %m = arith.muli %n, %c2 : index
  return %m, %n : index, index
}
func.func private @soft(%x: tensor<5x7xf16>, %bias: f16) -> tensor<5x7xf16> {
  %b = tensor.splat %bias : tensor<5x7xf16>
  %a = arith.addf %x, %b : tensor<5x7xf16>
  %r = func.call @square(%a) : (tensor<5x7xf16>) -> tensor<5x7xf16>
  return %r : tensor<5x7xf16>
}
func.func private @square(%x: tensor<5x7xf16>) -> tensor<5x7xf16> {
  %r = arith.mulf %x, %x : tensor<5x7xf16>
  return %r : tensor<5x7xf16>
}
func.func private @nothing(%n: index) {
  return
}
"""


def calls(folder: str) -> None:
    """A kernel and a sequence call helpers, twice and in loops."""
    x = half(np.random.default_rng(61), 5, 7)
    body = f"""{load("x", (5, 7), "f16")}
    %one = arith.constant 1.0 : f16
    %half = arith.constant 0.5 : f16
    %c1 = arith.constant 1 : index
    %s = func.call @soft(%x_d, %one) : (tensor<5x7xf16>, f16) -> tensor<5x7xf16>
    %t = func.call @soft(%x_d, %half) : (tensor<5x7xf16>, f16) -> tensor<5x7xf16>
    %u = scf.for %i = %c0 to %n step %c1 iter_args(%v = %s) -> (tensor<5x7xf16>) {{
      %w = func.call @soft(%v, %half) : (tensor<5x7xf16>, f16) -> tensor<5x7xf16>
      %y = arith.subf %w, %v : tensor<5x7xf16>
      scf.yield %y : tensor<5x7xf16>
    }}
    func.call @nothing(%n) : (index) -> ()
    %r = arith.addf %u, %t : tensor<5x7xf16>
    {store("z", (5, 7), "f16", "r")}"""
    kernel = function("x z n", body).replace(") {", ") attributes {grid = [1]} {", 1)
    kernel = kernel.replace("@f", "private @kernel").replace(
        "func.func @", "func.func "
    )
    program = f"""func.func @main(%x: index {{ktdp.name = "x"}}, %z: index {{ktdp.name = "z"}}, %n: index) {{
  %m:2 = call @twice(%n) : (index) -> (index, index)
  %k:2 = call @twice(%m#0) : (index) -> (index, index)
  %i = arith.subi %k#0, %k#1 : index
  call @kernel(%x, %z, %i) : (index, index, index) -> ()
  return
}}
{kernel}{HELPERS}"""
    for numerics, z in everywhere(folder, program, [x, np.zeros_like(x), 1], "z"):
        r = ROUND[numerics]

        def soft(v: np.ndarray, bias: float, r=r) -> np.ndarray:
            a = r(v + np.float32(bias))
            return r(a * a)

        v = soft(r(x), 1.0)
        for _ in range(2):
            v = r(soft(v, 0.5) - v)
        assert (z == r(v + soft(r(x), 0.5)).astype(np.float16)).all(), numerics
    for wrong, message in [
        (
            program.replace("%r = func.call @square", "%r = func.call @soft").replace(
                "@soft(%a) : (tensor<5x7xf16>)",
                "@soft(%a, %bias) : (tensor<5x7xf16>, f16)",
            ),
            "error: recursive calls are not supported",
        ),
        (
            program.replace(
                "func.call @nothing(%n) : (index)",
                "func.call @main(%n, %n, %n) : (index, index, index)",
            ),
            "error: recursive calls are not supported",
        ),
        (
            program.replace(
                "@square(%x: tensor<5x7xf16>) -> tensor<5x7xf16> {",
                "@square(%x: tensor<5x7xf16>) -> tensor<5x7xf16> attributes {grid = [1]} {",
            ),
            "error: a kernel (function with a grid) has no results",
        ),
        (
            program.replace(
                "@nothing(%n: index) {", "@nothing(%n: index) attributes {grid = [2]} {"
            ),
            "error: a kernel (function with a grid) cannot call another",
        ),
    ]:
        fails(folder, wrong, [x, x, 1], [message], "--entry", "main")


VIEWS = """
#box = affine_set<(i, j) : (i >= 0, -i + 4 >= 0, j >= 0, -j + 6 >= 0)>
#row = affine_set<(i, j) : (i == 0, j >= 0, -j + 6 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
#space = #ktdp.memory_space<global>
func.func private @view(%at: index) -> memref<5x7xf16> {
  %v = ktdp.construct_memory_view %at, sizes: [5, 7], strides: [7, 1] {coordinate_set = #box, memory_space = #space} : memref<5x7xf16>
  return %v : memref<5x7xf16>
}
func.func private @row(%v: memref<5x7xf16>, %i: index) -> !ktdp.access_tile<1x7xindex> {
  %c0 = arith.constant 0 : index
  %t = ktdp.construct_access_tile %v[%i, %c0] {access_tile_set = #row, access_tile_order = #order} : memref<5x7xf16> -> !ktdp.access_tile<1x7xindex>
  return %t : !ktdp.access_tile<1x7xindex>
}
func.func private @double(%from: !ktdp.access_tile<1x7xindex>, %to: !ktdp.access_tile<1x7xindex>) {
  %d = ktdp.load %from : !ktdp.access_tile<1x7xindex> -> tensor<1x7xf16>
  %s = arith.addf %d, %d : tensor<1x7xf16>
  ktdp.store %s, %to : tensor<1x7xf16>, !ktdp.access_tile<1x7xindex>
  return
}
func.func private @rows(%x: memref<5x7xf16>, %z: memref<5x7xf16>, %first: index, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %first to %n step %c1 {
    %a = func.call @row(%x, %i) : (memref<5x7xf16>, index) -> !ktdp.access_tile<1x7xindex>
    %b = func.call @row(%z, %i) : (memref<5x7xf16>, index) -> !ktdp.access_tile<1x7xindex>
    func.call @double(%a, %b) : (!ktdp.access_tile<1x7xindex>, !ktdp.access_tile<1x7xindex>) -> ()
  }
  return
}
func.func @kernel(%x: index, %z: index) attributes {grid = [2]} {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %c3 : index
  %past = arith.addi %first, %c3 : index
  %end = arith.minsi %past, %c5 : index
  %xv = call @view(%x) : (index) -> memref<5x7xf16>
  %zv = call @view(%z) : (index) -> memref<5x7xf16>
  call @rows(%xv, %zv, %first, %end) : (memref<5x7xf16>, memref<5x7xf16>, index, index) -> ()
  return
}
"""


def views(folder: str) -> None:
    """Views and access tiles as arguments and results of helpers."""
    x = half(np.random.default_rng(62), 5, 7)
    for numerics, z in everywhere(folder, VIEWS, [x, np.zeros_like(x)], "z"):
        r = ROUND[numerics]
        assert (z == r(r(x) * 2).astype(np.float16)).all(), numerics
    # A helper without a grid is no program, but a sequence may hand it a view.
    sequence = (
        VIEWS
        + """
func.func @main(%x: index, %z: index) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %xv = call @view(%x) : (index) -> memref<5x7xf16>
  %zv = call @view(%z) : (index) -> memref<5x7xf16>
  call @rows(%xv, %zv, %c0, %c5) : (memref<5x7xf16>, memref<5x7xf16>, index, index) -> ()
  return
}
"""
    )
    for numerics, z in everywhere(
        folder, sequence.replace("@kernel", "private @kernel"), [x, x * 0], "z"
    ):
        r = ROUND[numerics]
        assert (z == r(r(x) * 2).astype(np.float16)).all(), numerics
    outside = VIEWS.replace("%c5 = arith.constant 5", "%c5 = arith.constant 6")
    grow = "".join(
        f"func.func private @g{i}(%n: index) {{\n"
        + f"  func.call @g{i + 1}(%n) : (index) -> ()\n" * 2
        + "  return\n}\n"
        for i in range(40)
    )
    grow += "func.func private @g40(%n: index) {\n  return\n}\n"
    for wrong, entry, message in [
        (
            VIEWS.replace(
                "  %d = ktdp.load",
                "  func.call @double(%from, %to) : (!ktdp.access_tile<1x7xindex>, "
                "!ktdp.access_tile<1x7xindex>) -> ()\n  %d = ktdp.load",
            ),
            "kernel",
            "error: recursive calls are not supported",
        ),
        (
            sequence.replace(
                "%n: index) {", "%n: index) attributes {grid = [1]} {"
            ).replace(
                "%i) : (memref<5x7xf16>, index)", "%i) : (memref<5x7xf16>, index)"
            ),
            "main",
            "error: argument type is not supported: 'memref<5x7xf16>'",
        ),
        (
            outside,
            "kernel",
            "access: coordinate 5 of view dimension 0 is outside its range 0 to 4",
        ),
        (
            VIEWS.replace(
                "  return\n}\nfunc.func @kernel",
                "  func.call @g0(%n) : (index) -> ()\n  return\n}\nfunc.func @kernel",
            )
            + grow,
            "kernel",
            "error: helper functions in place of their calls make more than 1048576 operations",
        ),
    ]:
        fails(folder, wrong, [x, x], [message], "--entry", entry)


def reshapes(folder: str) -> None:
    """The shape from elements, a constant, and from memory."""
    x = np.arange(12, dtype=np.float32)
    shapes = {
        "elements": "%h = tensor.from_elements %n, %m : tensor<2xindex>",
        "constant": "%h = arith.constant dense<[3, 4]> : tensor<2xi32>",
        "memory": load("s", (2,), "i32").replace("%s_d =", "%h ="),
    }

    def program(shape: str, dims: str) -> str:
        element = "index" if "from_elements" in shape else "i32"
        return function(
            "x s z n m",
            f"""{load("x", (12,), "f32")}
    {shape}
    %d = tensor.reshape %x_d(%h) : (tensor<12xf32>, tensor<2x{element}>) -> tensor<{dims}xf32>
    %c = tensor.cast %d : tensor<{dims}xf32> to tensor<3x4xf32>
    %e = tensor.empty() : tensor<4x3xf32>
    %t = linalg.transpose ins(%c : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
    {store("z", (4, 3), "f32", "t")}""",
        )

    s = np.array([3, 4], np.int32)
    z = np.zeros((4, 3), np.float32)
    for shape in shapes.values():
        for dims in ["?x?", "3x?", "?x4"]:
            text = program(shape, dims)
            for _, y in everywhere(folder, text, [x, s, z, 3, 4], "z"):
                assert (y == x.reshape(3, 4).T).all(), shape
    at = "tensor.reshape"
    for values, dims, message in [
        ((5, 4), "?x?", "error: reshape of 12 elements to a shape of 20"),
        ((-3, -4), "?x?", "error: dimension 0 of size -3"),
        ((4, 3), "?x4", "error: dimension 1 has size 3, the result type says 4"),
        ((2**62, 4), "?x?", "error: reshape of 12 elements to a shape of -1"),
    ]:
        text = program(shapes["elements"], dims)
        where = f"program.mlir:{line_of(text, at)}:"
        fails(folder, text, [x, s, z, *values], [where, message])
