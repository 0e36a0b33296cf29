# SPDX-License-Identifier: Apache-2.0
"""KTIR of the published softmax variants (spec of the points: docs/internals/timing.md)."""

from __future__ import annotations

ROWS, STICKS, LANES = 512, 16, 64  # fp16 [512, 1024] on the device: [16, 512, 64]


def box(*extents: int) -> str:
    names = [f"d{i}" for i in range(len(extents))]
    parts = [
        f"{n} >= 0, -{n} + {e - 1} >= 0" for n, e in zip(names, extents, strict=True)
    ]
    return f"affine_set<({', '.join(names)}) : ({', '.join(parts)})>"


class Kernel:
    """One kernel over [16, 512, 64], a tile per column of sticks."""

    def __init__(self, name: str, cores: int) -> None:
        self.name, self.cores = name, cores
        self.columns = STICKS // cores
        self.head: list[str] = []
        self.loop: list[str] = []
        self.tail: list[str] = []
        self.carried = ""

    def place(self, name: str, where: str, slab: int) -> tuple[str, str, int]:
        """The pointer of an array, its memory space and how many sticks it has there."""
        if where == "d":
            return f"%{name}", "global", STICKS
        pointer = f"%p_{name}"
        self.head.append(f"{pointer} = arith.constant {slab} : index")
        return pointer, "ct_local", self.columns

    def view(self, name: str, where: str, slab: int) -> None:
        """An array; in LX each core has its own columns."""
        pointer, space, count = self.place(name, where, slab)
        self.head.append(
            f"%v_{name} = ktdp.construct_memory_view {pointer}, sizes: [{count}, {ROWS}, {LANES}], "
            f"strides: [{ROWS * LANES}, {LANES}, 1] {{coordinate_set = {box(count, ROWS, LANES)}, "
            f"memory_space = #ktdp.memory_space<{space}>}} : memref<{count}x{ROWS}x{LANES}xf16>"
        )
        index = "%first" if where == "d" else "%zero"
        self.loop.append(f"%i_{name} = arith.addi {index}, %i : index")
        self.loop.append(
            f"%t_{name} = ktdp.construct_access_tile %v_{name}[%i_{name}, %zero, %zero] "
            f"{{access_tile_set = {box(1, ROWS, LANES)}, access_tile_order = #order3}} : "
            f"memref<{count}x{ROWS}x{LANES}xf16> -> !ktdp.access_tile<1x{ROWS}x{LANES}xindex>"
        )

    def vector_view(self, name: str, where: str, slab: int) -> None:
        """A reduced vector [16, 64], moved as a whole."""
        pointer, space, count = self.place(name, where, slab)
        self.head.append(
            f"%v_{name} = ktdp.construct_memory_view {pointer}, sizes: [{count}, {LANES}], "
            f"strides: [{LANES}, 1] {{coordinate_set = {box(count, LANES)}, "
            f"memory_space = #ktdp.memory_space<{space}>}} : memref<{count}x{LANES}xf16>"
        )
        index = "%first" if where == "d" else "%zero"
        self.head.append(
            f"%t_{name} = ktdp.construct_access_tile %v_{name}[{index}, %zero] "
            f"{{access_tile_set = {box(self.columns, LANES)}, access_tile_order = #order2}} : "
            f"memref<{count}x{LANES}xf16> -> !ktdp.access_tile<{self.columns}x{LANES}xindex>"
        )

    def text(self) -> str:
        tile = f"tensor<1x{ROWS}x{LANES}xf16>"
        vector = f"tensor<{self.columns}x{LANES}xf16>"
        lines = [
            f"func.func private @{self.name}(%x: index, %y: index, %z: index, %m: index, %s: index) "
            f"attributes {{grid = [{self.cores}]}} {{",
            "%core = ktdp.get_compute_tile_id : index",
            f"%columns = arith.constant {self.columns} : index",
            "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index",
            "%first = arith.muli %core, %columns : index",
            *self.head,
        ]
        carried = f" iter_args(%acc = %init) -> ({vector})" if self.carried else ""
        if self.carried:
            lines.append(f"%init = tensor.empty() : {vector}")
        result = "%total = " if self.carried else ""
        lines.append(f"{result}scf.for %i = %zero to %columns step %one{carried} {{")
        lines += self.loop
        if self.carried:
            lines += [
                f"%next = tensor.insert_slice {self.carried} into %acc[%i, 0] [1, {LANES}] [1, 1] : "
                f"tensor<1x{LANES}xf16> into {vector}",
                f"scf.yield %next : {vector}",
            ]
        lines += ["}", *self.tail, "return", "}"]
        return "\n".join(lines).replace("TILE", tile).replace("VECTOR", vector)

    def load(self, name: str) -> str:
        self.loop.append(
            f"%d_{name} = ktdp.load %t_{name} : !ktdp.access_tile<1x{ROWS}x{LANES}xindex> -> TILE"
        )
        return f"%d_{name}"

    def store(self, value: str, name: str) -> None:
        self.loop.append(
            f"ktdp.store {value}, %t_{name} : TILE, !ktdp.access_tile<1x{ROWS}x{LANES}xindex>"
        )

    def reduce(self, value: str, vector: str, op: str, identity: str) -> None:
        self.loop += [
            f"%id = arith.constant {identity} : f16",
            f"%e = tensor.empty() : tensor<1x{LANES}xf16>",
            f"%f = linalg.fill ins(%id : f16) outs(%e : tensor<1x{LANES}xf16>) -> tensor<1x{LANES}xf16>",
            f"%r = linalg.reduce {{ {op} }} ins({value} : TILE) outs(%f : tensor<1x{LANES}xf16>) dimensions = [1]",
        ]
        self.carried = "%r"
        self.tail.append(
            f"ktdp.store %total, %t_{vector} : VECTOR, !ktdp.access_tile<{self.columns}x{LANES}xindex>"
        )

    def broadcast(self, vector: str, value: str, op: str) -> str:
        self.head.append(
            f"%w_{vector} = ktdp.load %t_{vector} : !ktdp.access_tile<{self.columns}x{LANES}xindex> -> VECTOR"
        )
        self.loop += [
            f"%row = tensor.extract_slice %w_{vector}[%i, 0] [1, {LANES}] [1, 1] : VECTOR to tensor<1x{LANES}xf16>",
            "%e = tensor.empty() : TILE",
            "%r = linalg.generic {indexing_maps = [#all, #columns, #all], iterator_types = "
            f'["parallel", "parallel", "parallel"]}} ins({value}, %row : TILE, tensor<1x{LANES}xf16>) '
            "outs(%e : TILE) {",
            "^bb0(%a: f16, %b: f16, %c: f16):",
            f"%q = arith.{op} %a, %b : f16",
            "linalg.yield %q : f16",
            "} -> TILE",
        ]
        return "%r"


def program(cores: int, places: str) -> str:
    """The five kernels (six with the clone) and their sequence."""
    array, vector, clone = places
    # LX addresses in elements.
    x_at, m_at, s_at = 0, (1 << 20) - 8192, (1 << 20) - 4096
    kernels = []

    def make(name: str) -> Kernel:
        kernels.append(Kernel(name, cores))
        return kernels[-1]

    source = "d"
    if clone == "c":
        k = make("clone")
        k.view("x", "d", 0)
        k.view("y", "l", x_at)
        k.store(k.load("x"), "y")
        source = "l"
    src = "y" if source == "l" else "x"
    inplace = array == "l"
    k = make("max")
    k.view(src, source, x_at)
    k.vector_view("m", vector, m_at)
    k.reduce(k.load(src), "m", "arith.maximumf", "0xFC00")
    k = make("sub")
    k.view(src, source, x_at)
    k.vector_view("m", vector, m_at)
    if source != "l":
        k.view("y", array, x_at)
    k.store(k.broadcast("m", k.load(src), "subf"), "y")
    k = make("exp")
    k.view("y", array, x_at)
    value = k.load("y")
    k.loop.append(f"%r = math.exp {value} : TILE")
    if inplace:
        k.store("%r", "y")
    else:
        k.view("z", array, x_at)
        k.store("%r", "z")
    k = make("sum")
    last = "y" if inplace else "z"
    k.view(last, array, x_at)
    k.vector_view("s", vector, s_at)
    k.reduce(k.load(last), "s", "arith.addf", "0.0")
    k = make("div")
    k.view(last, array, x_at)
    k.vector_view("s", vector, s_at)
    out = "z" if inplace else "y"
    k.view(out, "d", 0)
    k.store(k.broadcast("s", k.load(last), "divf"), out)
    text = [
        "#order2 = affine_map<(a, b) -> (a, b)>",
        "#order3 = affine_map<(a, b, c) -> (a, b, c)>",
        "#all = affine_map<(a, b, c) -> (a, b, c)>",
        "#columns = affine_map<(a, b, c) -> (a, c)>",
        "func.func @softmax(%x: index, %y: index, %z: index, %m: index, %s: index) {",
    ]
    types = "(index, index, index, index, index) -> ()"
    text += [f"call @{k.name}(%x, %y, %z, %m, %s) : {types}" for k in kernels]
    text += ["return", "}"]
    return "\n".join(text + [k.text() for k in kernels]) + "\n"
