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
