# SPDX-License-Identifier: Apache-2.0
"""Programs in KTIR in the form that the compiler prints.

Every operand access is an indirect tile whose variables are logical loop
dimensions and whose subscripts are device coordinates of a two-dimensional
[rows, columns] array in the default stick layout [ceil(columns/64), rows, 64].
"""

import numpy as np
from f16_values import round_dl16
from ktir_text import box


def ceil_div(x: int, y: int) -> int:
    """The quotient rounded up."""
    return -(-x // y)


class Array:
    """A two-dimensional f16 array argument in the default layout."""

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        self.sticks = ceil_div(columns, 64)

    def argument(self, name: str) -> str:
        r, c = self.rows, self.columns
        strides = [64 if c > 1 else -1, c if r > 1 else -1, 1 if c > 1 else -1]
        return (
            f'%{name}: index {{ktdp.name = "{name}", ktdp.layout = #ktdp.layout<device_size = '
            f"[{self.sticks}, {r}, 64], stride_map = {strides}, format = SEN169_FP16, "
            f"host_dtype = float16, shape = [{r}, {c}], strides = [{c}, 1]>}}"
        )

    def view(self, result: str, pointer: str) -> str:
        r, t = self.rows, self.sticks
        return (
            f"%{result} = ktdp.construct_memory_view %{pointer}, sizes: [{t}, {r}, 64], "
            f"strides: [{r * 64}, 64, 1] {{coordinate_set = {box('a b c', [t, r, 64])}, "
            f"memory_space = #ktdp.memory_space<global>}} : memref<{t}x{r}x64xf16>"
        )

    def tile(
        self,
        result: str,
        view: str,
        row: str,
        column: str,
        shape: tuple,
        names: str = "i j",
        symbols: str = "",
    ) -> str:
        """A [rows, columns] tile at (row, column); names says which of the
        tile's dimensions is the row and which the column.
        """
        dims = names.split()
        extents = list(shape)
        text = "x".join("?" if isinstance(e, str) else str(e) for e in shape)
        return (
            f"%{result} = ktdp.construct_indirect_access_tile intermediate_variables("
            f"{', '.join('%' + d for d in dims)}) %{view}[((%{column} + %j) floordiv 64), "
            f"(%{row} + %i), ((%{column} + %j) mod 64)] {symbols}{{variables_space_set = "
            f"{box(names, extents)}, variables_space_order = affine_map<({', '.join(dims)}) -> "
            f"({', '.join(dims)})>}} : memref<{self.sticks}x{self.rows}x64xf16> -> "
            f"!ktdp.access_tile<{text}xindex>"
        )


def softmax_program(rows: int, columns: int, cores: int) -> str:
    """max, sub, exp, sum, div as five kernels over `cores` row slices."""
    x, v = Array(rows, columns), Array(rows, 1)
    pool = x.sticks * rows * 128 * 2 + rows * 128 * 2
    chunk = rows // cores
    t = f"tensor<{chunk}x{columns}xf16>"
    t32 = f"tensor<{chunk}x{columns}xf32>"
    r, r32 = f"tensor<{chunk}xf16>", f"tensor<{chunk}xf32>"

    def sliced(name: str, arguments: list, body: str) -> str:
        args = ", ".join(f"%{n}: index" for n, _ in arguments)
        views = "\n    ".join(a.view("v_" + n, n) for n, a in arguments)
        return f"""
  func.func @{name}({args}) attributes {{grid = [{cores}]}} {{
    %c0 = arith.constant 0 : index
    %chunk = arith.constant {chunk} : index
    %core = ktdp.get_compute_tile_id : index
    %row = arith.muli %core, %chunk : index
    {views}
    {body}
    return
  }}"""

    def load(n: str, a: Array) -> str:
        if a.columns == 1:
            return (
                vector(n, a)
                + f"\n    %{n}_d = ktdp.load %{n}_t : !ktdp.access_tile<{chunk}xindex> -> {r}"
            )
        return (
            a.tile(n + "_t", "v_" + n, "row", "c0", (chunk, columns))
            + f"\n    %{n}_d = ktdp.load %{n}_t : !ktdp.access_tile<{chunk}x{columns}xindex> -> {t}"
        )

    def vector(n: str, a: Array) -> str:
        return (
            f"%{n}_t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v_{n}[0, (%row + %i), 0] "
            f"{{variables_space_set = {box('i', [chunk])}, variables_space_order = affine_map<(i) -> (i)>}} : "
            f"memref<1x{rows}x64xf16> -> !ktdp.access_tile<{chunk}xindex>"
        )

    def store(n: str, a: Array, value: str) -> str:
        if a.columns == 1:
            return (
                vector(n, a)
                + f"\n    ktdp.store %{value}, %{n}_t : {r}, !ktdp.access_tile<{chunk}xindex>"
            )
        return (
            a.tile(n + "_t", "v_" + n, "row", "c0", (chunk, columns))
            + f"\n    ktdp.store %{value}, %{n}_t : {t}, !ktdp.access_tile<{chunk}x{columns}xindex>"
        )

    maps = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"

    def reduction(identity: str, op: str) -> str:
        return f"""{load("a", x)}
    %init = arith.constant {identity} : f32
    %e = tensor.empty() : {r32}
    %f = linalg.fill ins(%init : f32) outs(%e : {r32}) -> {r32}
    %s = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}], iterator_types = ["parallel", "reduction"]}}
      ins(%a_d : {t}) outs(%f : {r32}) {{
    ^bb0(%p: f16, %q: f32):
      %w = arith.extf %p : f16 to f32
      %z = arith.{op} %w, %q : f32
      linalg.yield %z : f32
    }} -> {r32}
    %h = arith.truncf %s : {r32} to {r}
    {store("o", v, "h")}"""

    def binary(op: str) -> str:
        return f"""{load("a", x)}
    {load("b", v)}
    %e = tensor.empty() : {t}
    %h = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}, {maps[0]}], iterator_types = ["parallel", "parallel"]}}
      ins(%a_d, %b_d : {t}, {r}) outs(%e : {t}) {{
    ^bb0(%p: f16, %q: f16, %u: f16):
      %p32 = arith.extf %p : f16 to f32
      %q32 = arith.extf %q : f16 to f32
      %z = arith.{op} %p32, %q32 : f32
      %y = arith.truncf %z : f32 to f16
      linalg.yield %y : f16
    }} -> {t}
    {store("o", x, "h")}"""

    exp = f"""{load("a", x)}
    %w = arith.extf %a_d : {t} to {t32}
    %g = math.exp %w : {t32}
    %h = arith.truncf %g : {t32} to {t}
    {store("o", x, "h")}"""

    big = x.sticks * rows * 64
    return f"""module {{
  func.func @main({x.argument("x")}, {x.argument("out")}, %pool: index {{ktdp.name = "pool", ktdp.pool_size = {pool} : i64}}) {{
    %two = arith.constant 2 : index
    %big = arith.constant {big} : index
    %small = arith.constant {rows * 64} : index
    %p0 = arith.divui %pool, %two : index
    %p1 = arith.addi %p0, %big : index
    %p2 = arith.addi %p1, %big : index
    %p3 = arith.addi %p2, %small : index
    call @max(%x, %p2) : (index, index) -> ()
    call @sub(%x, %p2, %p0) : (index, index, index) -> ()
    call @exp(%p0, %p1) : (index, index) -> ()
    call @sum(%p1, %p3) : (index, index) -> ()
    call @div(%p1, %p3, %out) : (index, index, index) -> ()
    return
  }}
{sliced("max", [("a", x), ("o", v)], reduction("0xFF800000", "maximumf"))}
{sliced("sub", [("a", x), ("b", v), ("o", x)], binary("subf"))}
{sliced("exp", [("a", x), ("o", x)], exp)}
{sliced("sum", [("a", x), ("o", v)], reduction("0.0", "addf"))}
{sliced("div", [("a", x), ("b", v), ("o", x)], binary("divf"))}
}}
"""


def softmax_reference(x: np.ndarray) -> np.ndarray:
    """The five steps, each rounded to DL16 once."""
    x = round_dl16(x.astype(np.float32))
    m = x.max(axis=1, keepdims=True)
    e = round_dl16(np.exp(round_dl16(x - m)))
    s = round_dl16(e.astype(np.float64).sum(axis=1, keepdims=True).astype(np.float32))
    return round_dl16(e / s)


def matmul_program(m: int, n: int, k: int, grid: tuple) -> str:
    """C = a @ b over a (rows, columns) grid of ceil-divided slices: ragged."""
    a, b, c = Array(m, k), Array(k, n), Array(m, n)
    gm, gn = grid
    cm, cn = ceil_div(m, gm), ceil_div(ceil_div(n, gn), 64) * 64
    gn = ceil_div(n, cn)

    def tile(
        x: Array, result: str, row: str, column: str, rows, columns, names: str
    ) -> str:
        symbols = [s for s in (rows, columns) if isinstance(s, str)]
        text = f"symbols({', '.join('%' + s for s in symbols)}) " if symbols else ""
        return x.tile(
            result, "v_" + result[0], row, column, (rows, columns), names, text
        )

    return f"""module {{
  func.func @matmul({a.argument("a")}, {b.argument("b")}, {c.argument("c")}) attributes {{grid = [{gm}, {gn}]}} {{
    %c0 = arith.constant 0 : index
    %gm, %gn = ktdp.get_compute_tile_id : index, index
    %cm = arith.constant {cm} : index
    %cn = arith.constant {cn} : index
    %m = arith.constant {m} : index
    %n = arith.constant {n} : index
    %row = arith.muli %gm, %cm : index
    %column = arith.muli %gn, %cn : index
    %restm = arith.subi %m, %row : index
    %restn = arith.subi %n, %column : index
    %minm = arith.minsi %cm, %restm : index
    %rows = arith.maxsi %minm, %c0 : index
    %columns = arith.minsi %cn, %restn : index
    {a.view("v_a", "a")}
    {b.view("v_b", "b")}
    {c.view("v_c", "c")}
    {tile(a, "a_t", "row", "c0", "rows", k, "i j")}
    {tile(b, "b_t", "c0", "column", k, "columns", "i j")}
    {tile(c, "c_t", "row", "column", "rows", "columns", "i j")}
    %a_d = ktdp.load %a_t : !ktdp.access_tile<?x{k}xindex> -> tensor<?x{k}xf16>
    %b_d = ktdp.load %b_t : !ktdp.access_tile<{k}x?xindex> -> tensor<{k}x?xf16>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
    %p = linalg.matmul ins(%a_d, %b_d : tensor<?x{k}xf16>, tensor<{k}x?xf16>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
    %h = arith.truncf %p : tensor<?x?xf32> to tensor<?x?xf16>
    ktdp.store %h, %c_t : tensor<?x?xf16>, !ktdp.access_tile<?x?xindex>
    return
  }}
}}
"""
