# SPDX-License-Identifier: Apache-2.0
"""Text of small KTIR programs on plain arrays.

contract_programs.py has programs in the form that the compiler prints, ktir_runs.py
runs either.
"""

from collections.abc import Sequence

import numpy as np


def box(names: str, extents: Sequence) -> str:
    """An ``affine_set`` of the box; a string extent is a symbol."""
    dims = names.split()
    symbols = [e for e in extents if isinstance(e, str)]
    parts = []
    for d, e in zip(dims, extents, strict=True):
        last = f"{e} - 1" if isinstance(e, str) else str(e - 1)
        parts += [f"{d} >= 0", f"-{d} + {last} >= 0"]
    text = f"affine_set<({', '.join(dims)})"
    if symbols:
        text += f"[{', '.join(symbols)}]"
    return text + f" : ({', '.join(parts)})>"


def plain(name: str, shape: tuple, element: str) -> str:
    """A dense view of argument ``name`` and a tile of all of it."""
    dims = "abcdef"[: len(shape)]
    names = " ".join(dims)
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    text = "x".join(map(str, shape))
    zeros = ", ".join("%c0" for _ in shape)
    return f"""%v_{name} = ktdp.construct_memory_view %{name}, sizes: {list(shape)}, strides: {strides} {{
      coordinate_set = {box(names, shape)}, memory_space = #ktdp.memory_space<global>}} : memref<{text}x{element}>
    %{name}_t = ktdp.construct_access_tile %v_{name}[{zeros}] {{access_tile_set = {box(names, shape)},
      access_tile_order = affine_map<({", ".join(dims)}) -> ({", ".join(dims)})>}} : memref<{text}x{element}> -> !ktdp.access_tile<{text}xindex>"""


def load(name: str, shape: tuple, element: str) -> str:
    """All of argument ``name``, as ``%name_d``."""
    text = "x".join(map(str, shape))
    return f"""{plain(name, shape, element)}
    %{name}_d = ktdp.load %{name}_t : !ktdp.access_tile<{text}xindex> -> tensor<{text}x{element}>"""


def store(name: str, shape: tuple, element: str, value: str) -> str:
    """``%value`` becomes all of argument ``name``."""
    text = "x".join(map(str, shape))
    return f"""{plain(name, shape, element)}
    ktdp.store %{value}, %{name}_t : tensor<{text}x{element}>, !ktdp.access_tile<{text}xindex>"""


def function(names: str, body: str) -> str:
    """``@f`` of the named addresses, with ``%c0``."""
    args = ", ".join(f'%{a}: index {{ktdp.name = "{a}"}}' for a in names.split())
    return f"func.func @f({args}) {{\n    %c0 = arith.constant 0 : index\n    {body}\n    return\n}}\n"


def grid(text: str, cores: int = 1) -> str:
    """The same function as a kernel."""
    return text.replace(") {", f") attributes {{grid = [{cores}]}} {{", 1)


def line_of(program: str, text: str, occurrence: int = 0) -> int:
    """Number of the line that holds the ``occurrence``-th ``text``."""
    found = [n for n, line in enumerate(program.splitlines(), 1) if text in line]
    return found[occurrence]


def gather_program(rows: int, count: int) -> str:
    """Program for y[a, b] = x[i[a], b]."""
    return function(
        "x i y",
        f"""%v_x = ktdp.construct_memory_view %x, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %x_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_x[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    %d = ktdp.load %x_t : !ktdp.access_tile<{count}x128xindex> -> tensor<{count}x128xf32>
    {store("y", (count, 128), "f32", "d")}""",
    )


def scatter_program(rows: int, count: int) -> str:
    """Program for y[i[a], b] = x[a, b]."""
    return function(
        "x i y",
        f"""%v_y = ktdp.construct_memory_view %y, sizes: [{rows}, 128], strides: [128, 1] {{
      coordinate_set = {box("r c", [rows, 128])}, memory_space = #ktdp.memory_space<global>}} : memref<{rows}x128xf32>
    %v_i = ktdp.construct_memory_view %i, sizes: [{count}], strides: [1] {{
      coordinate_set = {box("r", [count])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}xi32>
    %y_t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v_y[ind(%v_i[%a]), (%b)] {{
      variables_space_set = {box("a b", [count, 128])}, variables_space_order = affine_map<(a, b) -> (a, b)>}}
      : memref<{rows}x128xf32>, memref<{count}xi32> -> !ktdp.access_tile<{count}x128xindex>
    {load("x", (count, 128), "f32")}
    ktdp.store %x_d, %y_t : tensor<{count}x128xf32>, !ktdp.access_tile<{count}x128xindex>""",
    )
