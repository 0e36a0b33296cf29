# SPDX-License-Identifier: Apache-2.0
"""Kernels of measurements.py as spyre_graph functions, with their plan as hints."""

from __future__ import annotations

from card.measurements import REDUCTIONS, Kernel


class NotExpressible(ValueError):
    """A kernel that the dialect or its hints have no form for."""


def layout(rank: int, sparse: bool = False) -> str:
    order = ", ".join(map(str, range(rank)))
    kind = "sparse, SEN169_FP16" if sparse else "SEN169_FP16"
    return f"#spyre_graph.layout<order = [{order}], {kind}>"


def tensor(shape: tuple[int, ...], sparse: bool = False) -> str:
    sizes = "".join(f"{size}x" for size in shape)
    return f"tensor<{sizes}f16, {layout(len(shape), sparse)}>"


def affine(inputs: str, *results: str) -> str:
    maps = ", ".join(f"affine_map<({inputs}) -> ({result})>" for result in results)
    return f"maps = [{maps}]"


def call(
    result: str, op: str, ins: list[tuple[str, str]], out: str, attributes: list[str]
) -> str:
    """One operation that writes a tensor of type `out`."""
    names = ", ".join(name for name, _ in ins)
    types = ", ".join(kind for _, kind in ins)
    values = f"ins({names} : {types}) " if ins else ""
    text = f" {{{', '.join(attributes)}}}" if attributes else ""
    return (
        f"  {result}_init = tensor.empty() : {out}\n"
        f"  {result} = spyre_graph.{op} {values}outs({result}_init : {out}){text} "
        f"-> {out}\n"
    )


def module(arguments: list[str], body: str, value: str, out: str) -> str:
    listed = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(arguments))
    return (
        f"func.func @main({listed}) -> {out} {{\n{body}  return {value} : {out}\n}}\n"
    )


def hints(kernel: Kernel, splits: tuple[int, ...] | None, rank: int) -> list[str]:
    """The plan of a kernel whose outermost loop is over rows."""
    found = []
    if splits:
        slices = ", ".join(map(str, splits))
        found.append(f"spyre_graph.work_division_hint = array<i64: {slices}>")
    if kernel.tiles > 1:
        dim = rank - 2
        found.append(f"spyre_graph.tile_hints = [array<i64: 0, {dim}, {kernel.tiles}>]")
    return found


def product(kernel: Kernel) -> str:
    batch, m, n, k = kernel.extents
    splits = kernel.splits
    if kernel.name == "shared matmul":
        types = [tensor((batch, m, k)), tensor((k, n))]
        out = tensor((batch, m, n))
        maps = affine("b, m, n, k", "b, m, k", "k, n", "b, m, n")
        attributes = [maps, f"extents = array<i64: {batch}, {m}, {n}, {k}>"]
        rank = 4
    elif batch == 1:
        types, out = [tensor((m, k)), tensor((k, n))], tensor((m, n))
        attributes = []
        splits = splits and splits[1:]
        rank = 2
    else:
        types = [tensor((batch, m, k)), tensor((batch, k, n))]
        out = tensor((batch, m, n))
        attributes = []
        rank = 3
    attributes += hints(kernel, splits, rank)
    ins = [("%a0", types[0]), ("%a1", types[1])]
    return module(types, call("%r", "matmul", ins, out, attributes), "%r", out)


def pointwise(kernel: Kernel) -> str:
    whole, (rows, columns) = tensor(kernel.extents), kernel.extents
    plain, row, column = "i, j", "j", "i"
    bounds = f"extents = array<i64: {rows}, {columns}>"

    def spread(*reads: str) -> list[str]:
        return [affine("i, j", *reads, plain), bounds]

    types = [whole]
    attributes: list[str] = []
    match kernel.name:
        case "neg" | "exp" | "gelu":
            op = kernel.name
        case "copy (x+1.0)":
            op, attributes = "add", ["immediates = [unit, 1.0 : f32]"]
        case "y=x*2.0":
            op, attributes = "mul", ["immediates = [unit, 2.0 : f32]"]
        case "add":
            op, types = "add", [whole, whole]
        case "add a row" | "mulbcast":
            op = "add" if kernel.name == "add a row" else "mul"
            types, attributes = [whole, tensor((columns,))], spread(plain, row)
        case "add a column":
            op, types = "add", [whole, tensor((rows,), sparse=True)]
            attributes = spread(plain, column)
        case "outer sum":
            op, types = "add", [tensor((columns,)), tensor((rows,), sparse=True)]
            attributes = spread(row, column)
        case name:
            raise NotExpressible(f"no operation for {name}")
    ins = [(f"%a{i}", kind) for i, kind in enumerate(types)]
    return module(types, call("%r", op, ins, whole, attributes), "%r", whole)


def sum_of(kernel: Kernel) -> str:
    """((a + b) + c) + ..., each sum an operation."""
    whole = tensor(kernel.extents)
    body, value = "", "%a0"
    for i in range(1, kernel.count):
        ins = [(value, whole), (f"%a{i}", whole)]
        value = f"%r{i}"
        body += call(value, "add", ins, whole, [])
    return module([whole] * kernel.count, body, value, whole)


def reduction(kernel: Kernel) -> str:
    rows, columns = kernel.extents
    dim = REDUCTIONS[kernel.name]
    kept = () if dim is None else (columns,) if dim == 0 else (rows,)
    dims = "0, 1" if dim is None else str(dim)
    op = {"amax": "max", "mean": "mean"}.get(kernel.name, "sum")
    whole, out = tensor(kernel.extents), tensor(kept, sparse=dim != 0)
    attributes = [f"dims = array<i64: {dims}>"]
    return module([whole], call("%r", op, [("%a0", whole)], out, attributes), "%r", out)


def softmax(kernel: Kernel) -> str:
    """One operation; tiles of rows are a hint by the name of the dimension."""
    whole = tensor(kernel.extents)
    rows, columns = kernel.extents
    out = f"tensor<{rows}x{columns}xf16>"
    argument, attributes = whole, "dim = 1 : i64"
    if kernel.tiles > 1:
        names = f'[[{{name = "rows", size = {rows}}}], []]'
        argument = f"{whole} {{spyre_graph.dim_names = {names}}}"
        hint = f'{{dim = "rows", scope = 0, tiles = {kernel.tiles}}}'
        attributes += f", spyre_graph.hints = [{hint}]"
    body = f"  %r = spyre_graph.softmax %a0 {{{attributes}}} : {whole} -> {out}\n"
    return module([argument], body, "%r", out)


def outer_transpose(kernel: Kernel) -> str:
    """[R, S, C] to [S, R, C]: sticks keep what they hold."""
    rows, slots, columns = kernel.extents
    whole, out = tensor(kernel.extents), tensor((slots, rows, columns))
    attributes = [
        affine("i, j, k", "j, i, k", "i, j, k"),
        f"extents = array<i64: {slots}, {rows}, {columns}>",
    ]
    return module(
        [whole], call("%r", "identity", [("%a0", whole)], out, attributes), "%r", out
    )


def restickify(kernel: Kernel) -> str:
    rows, columns = kernel.extents
    whole, out = tensor(kernel.extents), tensor((columns, rows))
    attributes = [
        affine("i, j", "j, i", "i, j"),
        f"extents = array<i64: {columns}, {rows}>",
    ]
    return module(
        [whole], call("%r", "restickify", [("%a0", whole)], out, attributes), "%r", out
    )


def write(kernel: Kernel) -> str:
    """The text of a module with the kernel as @main."""
    if kernel.name in ("matmul", "shared matmul"):
        return product(kernel)
    if kernel.name == "sum":
        return sum_of(kernel)
    if kernel.name in REDUCTIONS:
        return reduction(kernel)
    makers = {
        "softmax": softmax,
        "restickify": restickify,
        "outer transpose": outer_transpose,
    }
    return makers.get(kernel.name, pointwise)(kernel)
