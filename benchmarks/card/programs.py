# SPDX-License-Identifier: Apache-2.0
"""Kernels of kernels.py as spyre_graph functions, with their plan as hints."""

from __future__ import annotations

from card.kernels import REDUCTIONS, Kernel


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


def module(arguments: list[str], body: str, results: list[tuple[str, str]]) -> str:
    """@main, whose results are values with their types."""
    listed = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(arguments))
    names = ", ".join(name for name, _ in results)
    types = ", ".join(kind for _, kind in results)
    return (
        f"func.func @main({listed}) -> ({types}) {{\n"
        f"{body}  return {names} : {types}\n}}\n"
    )


def tile_hint(dim: int, tiles: int) -> list[str]:
    """Cuts loop `dim` of an operation."""
    if tiles == 1:
        return []
    return [f"spyre_graph.tile_hints = [array<i64: 0, {dim}, {tiles}>]"]


def product(kernel: Kernel) -> str:
    batch, m, n, k = kernel.extents
    splits = kernel.splits
    attributes = []
    if kernel.name == "shared matmul":
        types = [tensor((batch, m, k)), tensor((k, n))]
        out = tensor((batch, m, n))
        maps = affine("b, m, n, k", "b, m, k", "k, n", "b, m, n")
        attributes = [maps, f"extents = array<i64: {batch}, {m}, {n}, {k}>"]
    elif batch == 1:
        types, out = [tensor((m, k)), tensor((k, n))], tensor((m, n))
        splits = splits and splits[1:]
    else:
        types = [tensor((batch, m, k)), tensor((batch, k, n))]
        out = tensor((batch, m, n))
    if splits:
        slices = ", ".join(map(str, splits))
        attributes.append(f"spyre_graph.work_division_hint = array<i64: {slices}>")
    # Loops are over the batch, if there is one, then M, N and K.
    rows = 0 if kernel.name == "matmul" and batch == 1 else 1
    attributes += tile_hint(rows, kernel.tiles) + tile_hint(rows + 2, kernel.tiles_of_k)
    ins = [("%a0", types[0]), ("%a1", types[1])]
    return module(types, call("%r", "matmul", ins, out, attributes), [("%r", out)])


def pointwise(kernel: Kernel) -> str:
    whole, (rows, columns) = tensor(kernel.extents), kernel.extents
    plain, row, column = "i, j", "j", "i"
    bounds = f"extents = array<i64: {rows}, {columns}>"

    def spread(*reads: str) -> list[str]:
        return [affine("i, j", *reads, plain), bounds]

    types = [whole]
    attributes: list[str] = []
    op: str
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
    attributes += tile_hint(0, kernel.tiles)
    ins = [(f"%a{i}", kind) for i, kind in enumerate(types)]
    return module(types, call("%r", op, ins, whole, attributes), [("%r", whole)])


def sum_of(kernel: Kernel) -> str:
    """((a + b) + c) + ..., each sum an operation."""
    whole = tensor(kernel.extents)
    body, value = "", "%a0"
    for i in range(1, kernel.count):
        ins = [(value, whole), (f"%a{i}", whole)]
        value = f"%r{i}"
        body += call(value, "add", ins, whole, tile_hint(0, kernel.tiles))
    return module([whole] * kernel.count, body, [(value, whole)])


def two_sums(kernel: Kernel) -> str:
    """Two results of one program: a + b and c + d."""
    whole, hint = tensor(kernel.extents), tile_hint(0, kernel.tiles)
    body = "".join(
        call(name, "add", [(left, whole), (right, whole)], whole, hint)
        for name, left, right in (("%r0", "%a0", "%a1"), ("%r1", "%a2", "%a3"))
    )
    return module([whole] * 4, body, [("%r0", whole), ("%r1", whole)])


def reduction(kernel: Kernel) -> str:
    rows, columns = kernel.extents
    dim = REDUCTIONS[kernel.name]
    kept = () if dim is None else (columns,) if dim == 0 else (rows,)
    dims = "0, 1" if dim is None else str(dim)
    op = {"amax": "max", "mean": "mean"}.get(kernel.name, "sum")
    whole, out = tensor(kernel.extents), tensor(kept, sparse=dim != 0)
    attributes = [f"dims = array<i64: {dims}>", *tile_hint(0, kernel.tiles)]
    body = call("%r", op, [("%a0", whole)], out, attributes)
    return module([whole], body, [("%r", out)])


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
    return module([argument], body, [("%r", out)])


def staged_softmax(kernel: Kernel) -> str:
    """Some stages of a softmax, each an operation on the result of the one before.

    The second operand of a difference and of a quotient is what the last reduction
    has left of each row, or of each column.
    """
    rows, columns = kernel.extents
    whole, wide = tensor(kernel.extents), f"tensor<{rows}x{columns}xf16>"
    narrow = f"tensor<{rows}x1xf16>" if kernel.dim else f"tensor<1x{columns}xf16>"
    value, reduced, body = ("%a0", whole), "", ""
    for i, stage in enumerate(kernel.stages):
        name, hint = f"%r{i}", tile_hint(0, kernel.tiles)
        match stage:
            case "amax" | "sum":
                op = "max" if stage == "amax" else "sum"
                attributes = [f"dims = array<i64: {kernel.dim}>", *hint]
                body += call(name, op, [value], narrow, attributes)
                reduced = name
                continue
            case "sub" | "div" if reduced:
                ins = [value, (reduced, narrow)]
            case "exp" | "sigmoid":
                ins = [value]
            case _:
                raise NotExpressible(f"no stage {stage} of a softmax here")
        body += call(name, stage, ins, wide, hint)
        value = (name, wide)
    return module([whole], body, [value])


def concatenation(kernel: Kernel) -> str:
    """A tensor twice, below or beside itself: two copies into one result."""
    rows, columns = kernel.extents
    dim = int(kernel.name[-1])
    out = tensor((2 * rows, columns) if dim == 0 else (rows, 2 * columns))
    body, value, whole = (
        f"  %r = tensor.empty() : {out}\n",
        "%r",
        tensor((rows, columns)),
    )
    for i in range(2):
        to = f"i + {i * rows}, j" if dim == 0 else f"i, j + {i * columns}"
        maps = f"{affine('i, j', 'i, j', to)}, extents = array<i64: {rows}, {columns}>"
        body += (
            f"  %r{i} = spyre_graph.identity ins(%a0 : {whole}) "
            f"outs({value} : {out}) {{{maps}}} -> {out}\n"
        )
        value = f"%r{i}"
    return module([whole], body, [(value, out)])


def outer_transpose(kernel: Kernel) -> str:
    """[R, S, C] to [S, R, C]: sticks keep what they hold."""
    rows, slots, columns = kernel.extents
    whole, out = tensor(kernel.extents), tensor((slots, rows, columns))
    attributes = [
        affine("i, j, k", "j, i, k", "i, j, k"),
        f"extents = array<i64: {slots}, {rows}, {columns}>",
    ]
    body = call("%r", "identity", [("%a0", whole)], out, attributes)
    return module([whole], body, [("%r", out)])


def restickify(kernel: Kernel) -> str:
    rows, columns = kernel.extents
    whole, out = tensor(kernel.extents), tensor((columns, rows))
    attributes = [
        affine("i, j", "j, i", "i, j"),
        f"extents = array<i64: {columns}, {rows}>",
    ]
    body = call("%r", "restickify", [("%a0", whole)], out, attributes)
    return module([whole], body, [("%r", out)])


def write(kernel: Kernel) -> str:
    """The text of a module with the kernel as @main. Raises NotExpressible."""
    if kernel.is_product:
        return product(kernel)
    if kernel.name in REDUCTIONS:
        return reduction(kernel)
    if kernel.stages:
        return staged_softmax(kernel)
    makers = {
        "sum": sum_of,
        "two sums": two_sums,
        "softmax": softmax,
        "restickify": restickify,
        "outer transpose": outer_transpose,
        "cat 0": concatenation,
        "cat 1": concatenation,
    }
    return makers.get(kernel.name, pointwise)(kernel)
