# SPDX-License-Identifier: Apache-2.0
"""Random plans whose work is divided by hand, and what numpy makes of them.

Odd extents, uneven slices, any order of the loops over the cores. Each plan is its
text, its inputs and what its last argument holds afterwards.
"""

import re

import numpy as np

EXTENTS = [1, 2, 3, 7, 31, 63, 64, 65, 100, 127, 130, 251, 509]
REDUCED = [1, 63, 64, 65, 129, 251, 509, 1031]
REDUCTIONS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "mean": np.mean,
}


def layout(order: list[int], sparse: bool = False) -> str:
    kind = "sparse, " if sparse else ""
    return f"#spyre_graph.layout<order = {order}, {kind}SEN169_FP16>"


def buffer(shape: tuple[int, ...], order: list[int], sparse: bool = False) -> str:
    sizes = "".join(f"{size}x" for size in shape)
    return f"memref<{sizes}f16, {layout(order, sparse)}>"


def divide(rng, extent: int, unit: int, limit: int) -> tuple[int, int]:
    """Number of slices, each but the last of the returned size, no empty one."""
    units = -(-extent // unit)
    size = -(-units // rng.randint(1, max(1, min(limit, units))))
    slices = -(-units // size)
    return slices, (size * unit if slices > 1 else extent)


def partner_division(rng, loops: list[tuple[int, int]], reduction: int):
    """Of (extent, unit) loops, with its numbers; the reduction is first in core order."""
    order = [reduction]
    order += rng.sample(
        [i for i in range(len(loops)) if i != reduction], len(loops) - 1
    )
    splits, chunks, cores = [1] * len(loops), [0] * len(loops), 1
    for loop in order:
        splits[loop], chunks[loop] = divide(rng, *loops[loop], 32 // cores)
        cores *= splits[loop]
    text = f"splits = {splits}, chunks = {chunks}, order = {order}"
    return f"#spyre_graph.division<{text}>", splits, chunks


def function(arguments: list[str], body: str) -> str:
    names = [f"x{i}" for i in range(len(arguments) - 1)] + ["out0"]
    listed = ", ".join(
        f'%{name}: {kind} {{spyre_graph.name = "{name}"}}'
        for name, kind in zip(names, arguments, strict=True)
    )
    return f"func.func @main({listed}) {{\n{body}  return\n}}\n"


def make_matmul(rng, numbers):
    """A product whose reduction is split over cores."""
    m, n, k = rng.choice(EXTENTS), rng.choice(EXTENTS), rng.choice(REDUCED)
    has_bias = rng.random() < 0.5
    x = numbers.integers(-2, 3, (m, k)).astype(np.float16)
    y = numbers.integers(-2, 3, (k, n)).astype(np.float16)
    bias = numbers.integers(-2, 3, (n,)).astype(np.float16)
    kinds = [buffer((m, k), [0, 1]), buffer((k, n), [0, 1])]
    maps = ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)"]
    values = [x, y]
    if has_bias:
        kinds.append(buffer((n,), [0]))
        maps.append("(m, n, k) -> (n)")
        values.append(bias)
    maps.append("(m, n, k) -> (m, n)")
    kinds.append(buffer((m, n), [0, 1]))
    how, _, _ = partner_division(rng, [(m, 1), (n, 64), (k, 64)], 2)
    ins = ", ".join(f"%x{i}" for i in range(len(values)))
    body = (
        f"  spyre_graph.matmul ins({ins} : {', '.join(kinds[:-1])}) "
        f"outs(%out0 : {kinds[-1]}) {{{'has_bias, ' if has_bias else ''}"
        f"maps = [{', '.join(f'affine_map<{text}>' for text in maps)}], "
        f"extents = array<i64: {m}, {n}, {k}>, division = {how}}}\n"
    )
    expected = x.astype(float) @ y.astype(float) + (bias if has_bias else 0)
    return function(kinds, body), values, expected


def make_reduction(rng, numbers):
    """A reduction split over cores: its result in device memory, or in LX, where a
    second operation reads it on every partner.
    """
    name = rng.choice(list(REDUCTIONS))
    dim = rng.randrange(2)
    extents = [rng.choice(EXTENTS), rng.choice(EXTENTS)]
    extents[dim] = rng.choice(REDUCED)
    rows, columns = extents
    kept = (rows, columns)[1 - dim]
    x = numbers.integers(1, 3, (rows, columns)) if name == "prod" else None
    if name == "prod":
        x[numbers.random(x.shape) < 1 - 6 / x.shape[dim]] = 1
    else:
        x = numbers.integers(-8, 9, (rows, columns))
    x = x.astype(np.float16)
    kinds = [buffer((rows, columns), [0, 1])]
    reduced = buffer((kept,), [0], sparse=dim == 1)
    how, _, chunks = partner_division(rng, [(rows, 1), (columns, 64)], dim)
    maps = "[affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({})>{}]"
    own = "ij"[1 - dim]
    extents = f"extents = array<i64: {rows}, {columns}>, division = {how}"
    in_lx = rng.random() < 0.5
    target = "%s" if in_lx else "%out0"
    body = (
        f"  spyre_graph.{name} ins(%x0 : {kinds[0]}) outs({target} : {reduced}) "
        f"{{dims = array<i64: {dim}>, maps = {maps.format(own, '')}, {extents}}}\n"
    )
    expected = REDUCTIONS[name](x.astype(float), axis=dim)
    if not in_lx:
        return function([*kinds, reduced], body), [x], expected
    # Every partner reads what it holds.
    place = (
        "#spyre_graph.placement<lx, offset = 256, "
        f"local = [{min(chunks[1 - dim], kept)}]>"
    )
    body = (
        f"  %s = memref.alloc() {{spyre_graph.placement = {place}}} : {reduced}\n"
        + body
    )
    body += (
        f"  spyre_graph.sub ins(%x0, %s : {kinds[0]}, {reduced}) outs(%out0 : {kinds[0]}) "
        f"{{maps = {maps.format(own, ', affine_map<(i, j) -> (i, j)>')}, {extents}}}\n"
    )
    rounded = np.asarray(expected, np.float32)
    expected = x.astype(float) - np.expand_dims(rounded, dim)
    return function([*kinds, kinds[0]], body), [x], expected


TYPES = {
    "f16": ("SEN169_FP16", 64, np.float16),
    "f32": ("IEEE_FP32", 32, np.float32),
    "i32": ("IEEE_INT32", 32, np.int32),
}


def division(rng, loops: list[tuple[int, int]]):
    """Of (extent, unit) loops in any order over the cores, with its chunks."""
    order = rng.sample(range(len(loops)), len(loops))
    splits, chunks, cores = [1] * len(loops), [0] * len(loops), 1
    for loop in order:
        splits[loop], chunks[loop] = divide(rng, *loops[loop], 32 // cores)
        cores *= splits[loop]
    text = f"splits = {splits}, chunks = {chunks}, order = {order}"
    return f"#spyre_graph.division<{text}>", chunks


def make_reshard(rng, numbers):
    """Parts that move between the cores' LX, to one or several."""
    rank = rng.choice([1, 2, 2, 3])
    shape = [rng.choice(EXTENTS[:-1]) for _ in range(rank)]
    while np.prod(shape) > 300000:
        shape[shape.index(max(shape))] = rng.choice([1, 2, 3, 7])
    name, (form, lanes, dtype) = rng.choice(list(TYPES.items()))
    order = rng.sample(range(rank), rank)
    sparse = rng.random() < 0.2 and np.prod(shape) < 20000
    kind = "sparse, " if sparse else ""
    layout = f"#spyre_graph.layout<order = {order}, {kind}{form}>"
    sizes = "".join(f"{size}x" for size in shape)
    buffer = f"memref<{sizes}{name}, {layout}>"
    copies = rng.choice([1, 1, 2, 3, 8])
    outer = f"#spyre_graph.layout<order = {[0] + [d + 1 for d in order]}, {kind}{form}>"
    result = f"memref<{copies}x{sizes}{name}, {outer}>"
    stick = -1 if sparse else order[-1]
    loops = [(size, lanes if d == stick else 1) for d, size in enumerate(shape)]
    held, held_chunks = division(rng, loops)
    wanted, chunks = division(rng, [*loops, (copies, 1)])
    # The loop of the copies is not split where each part is once.
    source = held.replace("], chunks", ", 1], chunks")
    source = source.replace("], order = [", f", {copies}], order = [")
    source = source.replace("]>", f", {rank}]>")
    own = ", ".join(f"d{d}" for d in range(rank))
    alone = f"affine_map<({own}) -> ({own})>"
    each = f"affine_map<({own}, c) -> ({own})>"
    out = f"affine_map<({own}, c) -> (c, {own})>"
    extents = ", ".join(map(str, shape))

    def place(offset: int, of: list[int]) -> str:
        local = [min(chunk, size) for chunk, size in zip(of, shape, strict=False)]
        return (
            f"{{spyre_graph.placement = #spyre_graph.placement<lx, "
            f"offset = {offset}, local = {local}>}} : {buffer}\n"
        )

    body = f"  %a = memref.alloc() {place(0, held_chunks)}"
    body += f"  %b = memref.alloc() {place(802816, chunks)}"
    body += (
        f"  spyre_graph.neg ins(%x0 : {buffer}) outs(%a : {buffer}) "
        f"{{maps = [{alone}, {alone}], extents = array<i64: {extents}>, "
        f"division = {held}}}\n"
        f"  spyre_graph.reshard ins(%a : {buffer}) outs(%b : {buffer}) "
        f"{{source_division = {source}, maps = [{each}, {each}], "
        f"extents = array<i64: {extents}, {copies}>, division = {wanted}}}\n"
        f"  spyre_graph.neg ins(%b : {buffer}) outs(%out0 : {result}) "
        f"{{maps = [{each}, {out}], extents = array<i64: {extents}, {copies}>, "
        f"division = {wanted}}}\n"
    )
    x = numbers.integers(-1000, 1000, shape).astype(dtype)
    expected = np.broadcast_to(x, (copies, *shape))
    return function([buffer, result], body), [x], expected


def make_shared_sum(rng, numbers):
    """A product whose reduction is split: all partners hold the result, and the first of
    them gives it to cores that divide it otherwise.
    """
    m, n, k = rng.choice(EXTENTS), rng.choice(EXTENTS), rng.choice(REDUCED[1:])
    copies = rng.choice([1, 1, 2, 3])
    x = numbers.integers(-2, 3, (m, k)).astype(np.float16)
    y = numbers.integers(-2, 3, (k, n)).astype(np.float16)
    how, splits, chunks = partner_division(rng, [(m, 1), (n, 64), (k, 64)], 2)
    partners = splits[2]
    # Loops of the move: rows, columns, the partners that hold a part, and the cores
    # that get the same part. Each side leaves the other's whole.
    order = re.search(r"order = \[([^]]*)\]", how).group(1)
    held = (
        f"#spyre_graph.division<splits = [{splits[0]}, {splits[1]}, {partners}, 1], "
        f"chunks = [{chunks[0]}, {chunks[1]}, 1, {copies}], order = [{order}, 3]>"
    )
    read, read_chunks = division(rng, [(m, 1), (n, 64), (copies, 1)])
    numbers_of = {
        name: list(map(int, found.split(", ")))
        for name, found in re.findall(r"(\w+) = \[([^]]*)\]", read)
    }
    split, chunk = numbers_of["splits"], numbers_of["chunks"]
    wanted = (
        f"#spyre_graph.division<splits = [{split[0]}, {split[1]}, 1, {split[2]}], "
        f"chunks = [{chunk[0]}, {chunk[1]}, {partners}, {chunk[2]}], "
        f"order = {[loop + (loop == 2) for loop in numbers_of['order']] + [2]}>"
    )
    kinds = [buffer((m, k), [0, 1]), buffer((k, n), [0, 1])]
    part = buffer((m, n), [0, 1])
    result = buffer((copies, m, n), [0, 1, 2])

    def alloc(name: str, offset: int, of: list[int]) -> str:
        local = [min(of[0], m), min(of[1], n)]
        return (
            f"  %{name} = memref.alloc() {{spyre_graph.placement = "
            f"#spyre_graph.placement<lx, offset = {offset}, local = {local}>}} : {part}\n"
        )

    both = "affine_map<(m, n, p, c) -> (m, n)>"
    body = alloc("a", 0, chunks) + alloc("b", 802816, read_chunks)
    body += (
        f"  spyre_graph.matmul ins(%x0, %x1 : {', '.join(kinds)}) outs(%a : {part}) "
        "{maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, "
        f"affine_map<(m, n, k) -> (m, n)>], extents = array<i64: {m}, {n}, {k}>, "
        f"division = {how}}}\n"
        f"  spyre_graph.reshard ins(%a : {part}) outs(%b : {part}) "
        f"{{source_division = {held}, maps = [{both}, {both}], "
        f"extents = array<i64: {m}, {n}, {partners}, {copies}>, division = {wanted}}}\n"
        f"  spyre_graph.neg ins(%b : {part}) outs(%out0 : {result}) "
        "{maps = [affine_map<(m, n, c) -> (m, n)>, affine_map<(m, n, c) -> (c, m, n)>], "
        f"extents = array<i64: {m}, {n}, {copies}>, division = {read}}}\n"
    )
    expected = np.broadcast_to(-(x.astype(float) @ y.astype(float)), (copies, m, n))
    return function([*kinds, result], body), [x, y], expected
