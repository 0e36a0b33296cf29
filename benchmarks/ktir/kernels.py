# SPDX-License-Identifier: Apache-2.0
"""KTIR as one writes it by hand, on dense row-major arrays, of well-known kernels."""

from __future__ import annotations

import re

HEAD = """\
#o1 = affine_map<(a) -> (a)>
#o2 = affine_map<(a, b) -> (a, b)>
#o3 = affine_map<(a, b, c) -> (a, b, c)>
#o4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#rows = affine_map<(r, c) -> (r)>
#columns = affine_map<(r, c) -> (c)>
"""


def box(*extents: int) -> str:
    """The affine_set of a box."""
    names = [f"d{i}" for i in range(len(extents))]
    parts = [
        f"{n} >= 0, -{n} + {e - 1} >= 0" for n, e in zip(names, extents, strict=True)
    ]
    return f"affine_set<({', '.join(names)}) : ({', '.join(parts)})>"


def shape(sizes: tuple[int, ...], elem: str = "f16") -> str:
    return "x".join([*map(str, sizes), elem])


def view(name: str, sizes: tuple[int, ...], elem: str = "f16") -> str:
    """%name_v: a dense view of the argument %name."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return (
        f"%{name}_v = ktdp.construct_memory_view %{name}, sizes: {list(sizes)}, strides: {strides} "
        f"{{coordinate_set = {box(*sizes)}, memory_space = #ktdp.memory_space<global>}} : "
        f"memref<{shape(sizes, elem)}>\n"
    )


def tile(
    result: str,
    name: str,
    sizes: tuple[int, ...],
    at: list[str],
    extents: tuple[int, ...],
) -> str:
    """%result: a box of the view of %name."""
    return (
        f"%{result} = ktdp.construct_access_tile %{name}_v[{', '.join(at)}] "
        f"{{access_tile_set = {box(*extents)}, access_tile_order = #o{len(extents)}}} : "
        f"memref<{shape(sizes)}> -> !ktdp.access_tile<{shape(extents, 'index')}>\n"
    )


def load(result: str, source: str, extents: tuple[int, ...]) -> str:
    return (
        f"%{result} = ktdp.load %{source} : !ktdp.access_tile<{shape(extents, 'index')}> "
        f"-> tensor<{shape(extents)}>\n"
    )


def store(value: str, target: str, extents: tuple[int, ...]) -> str:
    return (
        f"ktdp.store %{value}, %{target} : tensor<{shape(extents)}>, "
        f"!ktdp.access_tile<{shape(extents, 'index')}>\n"
    )


def reduce(
    result: str, value: str, rows: int, columns: int, op: str, identity: str
) -> str:
    """%result: a value per row, combined in fp32 and rounded once."""
    return (
        f"%{result}_i = arith.constant {identity} : f16\n"
        f"%{result}_e = tensor.empty() : tensor<{rows}xf16>\n"
        f"%{result}_f = linalg.fill ins(%{result}_i : f16) outs(%{result}_e : tensor<{rows}xf16>) "
        f"-> tensor<{rows}xf16>\n"
        f"%{result} = linalg.reduce {{ {op} }} ins(%{value} : tensor<{rows}x{columns}xf16>) "
        f"outs(%{result}_f : tensor<{rows}xf16>) dimensions = [1]\n"
    )


def elementwise(
    result: str, rows: int, columns: int, operands: list[tuple[str, str]], body: str
) -> str:
    """%result [rows, columns] of operands (name, #o2 | #rows | #columns).

    The body names its arguments %a, %b, ... and its value %z.
    """
    types = {"#o2": f"{rows}x{columns}", "#rows": f"{rows}", "#columns": f"{columns}"}
    letters = "abcdefgh"[: len(operands)]
    body = re.sub(rf"%([{letters}z])\b", r"%in_\1", body)
    return (
        f"%{result}_e = tensor.empty() : tensor<{rows}x{columns}xf16>\n"
        f"%{result} = linalg.generic {{indexing_maps = [{', '.join(m for _, m in operands)}, #o2], "
        'iterator_types = ["parallel", "parallel"]} '
        f"ins({', '.join('%' + n for n, _ in operands)} : "
        f"{', '.join(f'tensor<{types[m]}xf16>' for _, m in operands)}) "
        f"outs(%{result}_e : tensor<{rows}x{columns}xf16>) {{\n"
        f"^bb0({', '.join(f'%in_{c}: f16' for c in letters)}, %out: f16):\n{body}\n"
        f"linalg.yield %in_z : f16\n}} -> tensor<{rows}x{columns}xf16>\n"
    )


def constants(*values: int) -> str:
    return "".join(f"%c{v} = arith.constant {v} : index\n" for v in sorted(set(values)))


def kernel(name: str, arguments: list[str], cores: int, body: str) -> str:
    parameters = ", ".join(f"%{a}: index" for a in arguments)
    return (
        f"{HEAD}func.func @{name}({parameters}) attributes {{grid = [{cores}]}} {{\n"
        f"%core = ktdp.get_compute_tile_id : index\n{body}return\n}}\n"
    )


def blockwise(
    name: str,
    views: dict[str, tuple],
    rows: int,
    cores: int,
    block: int,
    body: str,
) -> str:
    """A kernel whose cores have as many rows each, `block` of them at a time: from %r on.

    Its arguments are what `views` are of: a shape, and a dtype if it is not f16.
    """
    mine = rows // cores
    return kernel(
        name,
        list(views),
        cores,
        constants(0, mine, block)
        + "".join(view(argument, *how) for argument, how in views.items())
        + f"%first = arith.muli %core, %c{mine} : index\n"
        + f"%end = arith.addi %first, %c{mine} : index\n"
        + f"scf.for %r = %first to %end step %c{block} {{\n{body}}}\n",
    )


def softmax(
    rows: int = 4096, columns: int = 1024, cores: int = 32, block: int = 16
) -> str:
    """Softmax along rows."""
    whole, part = (rows, columns), (block, columns)
    return blockwise(
        "softmax",
        {"x": (whole,), "y": (whole,)},
        rows,
        cores,
        block,
        tile("xt", "x", whole, ["%r", "%c0"], part)
        + tile("yt", "y", whole, ["%r", "%c0"], part)
        + load("d", "xt", part)
        + reduce("m", "d", *part, "arith.maximumf", "0xFC00")
        + elementwise(
            "e",
            *part,
            [("d", "#o2"), ("m", "#rows")],
            "%s = arith.subf %a, %b : f16\n%z = math.exp %s : f16",
        )
        + reduce("s", "e", *part, "arith.addf", "0.0")
        + elementwise(
            "q", *part, [("e", "#o2"), ("s", "#rows")], "%z = arith.divf %a, %b : f16"
        )
        + store("q", "yt", part),
    )


def matmul(
    m: int = 64, k: int = 2048, n: int = 8192, cores: int = 32, step: int = 512
) -> str:
    """C = A B, a slice of columns per core, fp32 between steps along k."""
    wide = n // cores
    acc = f"tensor<{m}x{wide}xf32>"
    return kernel(
        "matmul",
        ["a", "b", "y"],
        cores,
        constants(0, k, step, wide)
        + view("a", (m, k))
        + view("b", (k, n))
        + view("y", (m, n))
        + f"%j = arith.muli %core, %c{wide} : index\n"
        + f"%zero = arith.constant 0.0 : f32\n%e = tensor.empty() : {acc}\n"
        + f"%f = linalg.fill ins(%zero : f32) outs(%e : {acc}) -> {acc}\n"
        + f"%sum = scf.for %p = %c0 to %c{k} step %c{step} iter_args(%t = %f) -> ({acc}) {{\n"
        + tile("at", "a", (m, k), ["%c0", "%p"], (m, step))
        + tile("bt", "b", (k, n), ["%p", "%j"], (step, wide))
        + load("ad", "at", (m, step))
        + load("bd", "bt", (step, wide))
        + f"%u = linalg.matmul ins(%ad, %bd : tensor<{shape((m, step))}>, "
        + f"tensor<{shape((step, wide))}>) outs(%t : {acc}) -> {acc}\n"
        + f"scf.yield %u : {acc}\n}}\n"
        + tile("ct", "y", (m, n), ["%c0", "%j"], (m, wide))
        + f"%h = arith.truncf %sum : {acc} to tensor<{shape((m, wide))}>\n"
        + store("h", "ct", (m, wide)),
    )


def layernorm(
    rows: int = 1151, columns: int = 8192, cores: int = 32, block: int = 4
) -> str:
    """(x - mean) / sqrt(variance + eps) x weight + bias along rows.

    A core's last tile begins early enough to have `block` rows.
    """
    whole, part = (rows, columns), (block, columns)
    mine = -(-rows // cores)
    inverse = f"%n = arith.constant {1.0 / columns!r} : f16\n"
    return kernel(
        "layernorm",
        ["x", "weight", "bias", "y"],
        cores,
        constants(0, mine, rows, block, rows - block)
        + view("x", whole)
        + view("weight", (columns,))
        + view("bias", (columns,))
        + view("y", whole)
        + tile("wt", "weight", (columns,), ["%c0"], (columns,))
        + tile("bt", "bias", (columns,), ["%c0"], (columns,))
        + load("wd", "wt", (columns,))
        + load("bd", "bt", (columns,))
        + f"%first = arith.muli %core, %c{mine} : index\n"
        + f"%next = arith.addi %first, %c{mine} : index\n"
        + f"%end = arith.minsi %next, %c{rows} : index\n"
        + f"scf.for %o = %first to %end step %c{block} {{\n"
        + f"%r = arith.minsi %o, %c{rows - block} : index\n"
        + tile("xt", "x", whole, ["%r", "%c0"], part)
        + tile("yt", "y", whole, ["%r", "%c0"], part)
        + load("d", "xt", part)
        + reduce("s", "d", *part, "arith.addf", "0.0")
        + elementwise(
            "v",
            *part,
            [("d", "#o2"), ("s", "#rows")],
            inverse + "%m = arith.mulf %b, %n : f16\n%z = arith.subf %a, %m : f16",
        )
        + elementwise("p", *part, [("v", "#o2")], "%z = arith.mulf %a, %a : f16")
        + reduce("t", "p", *part, "arith.addf", "0.0")
        + elementwise(
            "q",
            *part,
            [("v", "#o2"), ("t", "#rows"), ("wd", "#columns"), ("bd", "#columns")],
            inverse + "%eps = arith.constant 1.0e-5 : f16\n"
            "%m = arith.mulf %b, %n : f16\n%g = arith.addf %m, %eps : f16\n"
            "%h = math.rsqrt %g : f16\n%i = arith.mulf %a, %h : f16\n"
            "%j = arith.mulf %i, %c : f16\n%z = arith.addf %j, %d : f16",
        )
        + store("q", "yt", part)
        + "}\n",
    )


def rope(heads: int = 40, length: int = 4096, width: int = 128, cores: int = 32) -> str:
    """Rotary embedding: halves of each head turned by the angle of the position."""
    whole, angles, half = (heads, length, width), (length, width), width // 2
    mine = length // cores
    part = (1, mine, half)
    flat = f"tensor<{shape((mine, half))}>"
    full = f"tensor<{shape(part)}>"
    body = constants(0, 1, half, mine, heads) + view("x", whole) + view("y", whole)
    body += view("cos", angles) + view("sin", angles)
    body += f"%p = arith.muli %core, %c{mine} : index\n"
    for name in ("cos", "sin"):
        for i, at in enumerate(("%c0", f"%c{half}")):
            body += tile(f"{name}{i}t", name, angles, ["%p", at], (mine, half))
            body += load(f"{name}{i}", f"{name}{i}t", (mine, half))
    body += f"scf.for %h = %c0 to %c{heads} step %c1 {{\n"
    for i, at in enumerate(("%c0", f"%c{half}")):
        body += tile(f"x{i}t", "x", whole, ["%h", "%p", at], part)
        body += tile(f"y{i}t", "y", whole, ["%h", "%p", at], part)
        body += load(f"x{i}w", f"x{i}t", part)
        body += (
            f"%x{i} = tensor.collapse_shape %x{i}w [[0, 1], [2]] : {full} into {flat}\n"
        )
    for i, op in enumerate(("subf", "addf")):
        body += elementwise(
            f"r{i}",
            mine,
            half,
            [
                (f"x{i}", "#o2"),
                (f"cos{i}", "#o2"),
                (f"x{1 - i}", "#o2"),
                (f"sin{i}", "#o2"),
            ],
            f"%s = arith.mulf %a, %b : f16\n%t = arith.mulf %c, %d : f16\n%z = arith.{op} %s, %t : f16",
        )
        body += (
            f"%w{i} = tensor.expand_shape %r{i} [[0, 1], [2]] output_shape [1, {mine}, {half}] : "
            f"{flat} into {full}\n"
        )
        body += store(f"w{i}", f"y{i}t", part)
    return kernel("rope", ["x", "cos", "sin", "y"], cores, body + "}\n")


def paged_attention(
    tokens: int = 8,
    heads: int = 32,
    kv_heads: int = 8,
    width: int = 128,
    pages: int = 64,
    page: int = 16,
    cores: int = 32,
) -> str:
    """A query per token against the pages of its sequence; a page table per token."""
    group = heads // kv_heads
    keys = pages * page
    pairs = tokens * kv_heads // cores
    cache = (tokens * pages, page, kv_heads, width)
    query = (tokens, heads, width)
    block = (pages, page, width)
    flat = f"tensor<{shape((keys, width))}>"
    scores = f"tensor<{shape((group, keys), 'f32')}>"
    values = f"tensor<{shape((group, width), 'f32')}>"

    def gather(name: str) -> str:
        return (
            f"%{name}t = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j, %l) "
            f"%{name}_v[ind(%table_v[%token, %i]), (%j), (%g), (%l)] "
            f"{{variables_space_set = {box(*block)}, variables_space_order = #o3}} : "
            f"memref<{shape(cache)}>, memref<{shape((tokens, pages), 'i32')}> -> "
            f"!ktdp.access_tile<{shape(block, 'index')}>\n"
            + load(f"{name}w", f"{name}t", block)
            + f"%{name}d = tensor.collapse_shape %{name}w [[0, 1], [2]] : "
            f"tensor<{shape(block)}> into {flat}\n"
        )

    body = constants(0, 1, group, kv_heads, pairs)
    body += view("q", query) + view("k", cache) + view("v", cache) + view("y", query)
    body += view("table", (tokens, pages), "i32")
    body += f"%first = arith.muli %core, %c{pairs} : index\n"
    body += f"%end = arith.addi %first, %c{pairs} : index\n"
    body += "scf.for %pair = %first to %end step %c1 {\n"
    body += f"%token = arith.divui %pair, %c{kv_heads} : index\n"
    body += f"%g = arith.remui %pair, %c{kv_heads} : index\n"
    body += f"%head = arith.muli %g, %c{group} : index\n"
    part = (1, group, width)
    body += tile("qt", "q", query, ["%token", "%head", "%c0"], part)
    body += tile("yt", "y", query, ["%token", "%head", "%c0"], part)
    body += load("qw", "qt", part)
    body += (
        f"%q2 = tensor.collapse_shape %qw [[0, 1], [2]] : tensor<{shape(part)}> "
        f"into tensor<{shape((group, width))}>\n"
    )
    body += gather("k") + gather("v")
    body += (
        f"%zero = arith.constant 0.0 : f32\n%se = tensor.empty() : {scores}\n"
        f"%sf = linalg.fill ins(%zero : f32) outs(%se : {scores}) -> {scores}\n"
        "%s = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, "
        "affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], "
        'iterator_types = ["parallel", "parallel", "reduction"]} '
        f"ins(%q2, %kd : tensor<{shape((group, width))}>, {flat}) outs(%sf : {scores}) {{\n"
        "^bb0(%a: f16, %b: f16, %c: f32):\n%x = arith.extf %a : f16 to f32\n"
        "%w = arith.extf %b : f16 to f32\n%u = arith.mulf %x, %w : f32\n"
        f"%z = arith.addf %c, %u : f32\nlinalg.yield %z : f32\n}} -> {scores}\n"
        f"%h = arith.truncf %s : {scores} to tensor<{shape((group, keys))}>\n"
    )
    scale = width**-0.5
    body += elementwise(
        "sc",
        group,
        keys,
        [("h", "#o2")],
        f"%f = arith.constant {scale!r} : f16\n%z = arith.mulf %a, %f : f16",
    )
    body += reduce("m", "sc", group, keys, "arith.maximumf", "0xFC00")
    body += elementwise(
        "e",
        group,
        keys,
        [("sc", "#o2"), ("m", "#rows")],
        "%s1 = arith.subf %a, %b : f16\n%z = math.exp %s1 : f16",
    )
    body += reduce("t", "e", group, keys, "arith.addf", "0.0")
    body += elementwise(
        "p", group, keys, [("e", "#o2"), ("t", "#rows")], "%z = arith.divf %a, %b : f16"
    )
    body += (
        f"%oe = tensor.empty() : {values}\n"
        f"%of = linalg.fill ins(%zero : f32) outs(%oe : {values}) -> {values}\n"
        f"%o = linalg.matmul ins(%p, %vd : tensor<{shape((group, keys))}>, {flat}) "
        f"outs(%of : {values}) -> {values}\n"
        f"%r = arith.truncf %o : {values} to tensor<{shape((group, width))}>\n"
        f"%rw = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, {group}, {width}] : "
        f"tensor<{shape((group, width))}> into tensor<{shape(part)}>\n"
    )
    body += store("rw", "yt", part)
    return kernel("paged_attention", ["q", "k", "v", "table", "y"], cores, body + "}\n")


def add(count: int = 4096, cores: int = 32) -> str:
    """Add two vectors."""
    mine = count // cores
    return kernel(
        "add",
        ["a", "b", "y"],
        cores,
        constants(mine)
        + "".join(view(n, (count,)) for n in "aby")
        + f"%p = arith.muli %core, %c{mine} : index\n"
        + "".join(tile(f"{n}t", n, (count,), ["%p"], (mine,)) for n in "aby")
        + load("d", "at", (mine,))
        + load("e", "bt", (mine,))
        + f"%s = arith.addf %d, %e : tensor<{mine}xf16>\n"
        + store("s", "yt", (mine,)),
    )


def add_rows(rows: int, columns: int, cores: int = 32, block: int = 16) -> str:
    """Add two matrices, tile by tile."""
    whole, part = (rows, columns), (block, columns)
    return blockwise(
        "add",
        {n: (whole,) for n in "aby"},
        rows,
        cores,
        block,
        "".join(tile(f"{n}t", n, whole, ["%r", "%c0"], part) for n in "aby")
        + load("d", "at", part)
        + load("e", "bt", part)
        + f"%s = arith.addf %d, %e : tensor<{shape(part)}>\n"
        + store("s", "yt", part),
    )


def gelu(rows: int, columns: int, cores: int = 32, block: int = 16) -> str:
    """GELU: x / 2 (1 + erf(x / sqrt(2)))."""
    whole, part = (rows, columns), (block, columns)
    return blockwise(
        "gelu",
        {"x": (whole,), "y": (whole,)},
        rows,
        cores,
        block,
        tile("xt", "x", whole, ["%r", "%c0"], part)
        + tile("yt", "y", whole, ["%r", "%c0"], part)
        + load("d", "xt", part)
        + elementwise(
            "q",
            *part,
            [("d", "#o2")],
            f"%k = arith.constant {0.5**0.5!r} : f16\n"
            "%half = arith.constant 0.5 : f16\n%one = arith.constant 1.0 : f16\n"
            "%s = arith.mulf %a, %k : f16\n%t = math.erf %s : f16\n"
            "%u = arith.addf %t, %one : f16\n%v = arith.mulf %a, %half : f16\n"
            "%z = arith.mulf %v, %u : f16",
        )
        + store("q", "yt", part),
    )


def sum_rows(rows: int, columns: int, cores: int = 32, block: int = 16) -> str:
    """The sum of each row."""
    whole, part = (rows, columns), (block, columns)
    return blockwise(
        "sum_rows",
        {"x": (whole,), "y": ((rows,),)},
        rows,
        cores,
        block,
        tile("xt", "x", whole, ["%r", "%c0"], part)
        + tile("yt", "y", (rows,), ["%r"], (block,))
        + load("d", "xt", part)
        + reduce("s", "d", *part, "arith.addf", "0.0")
        + store("s", "yt", (block,)),
    )


def sum_columns(rows: int, columns: int, cores: int = 32, block: int = 64) -> str:
    """The sum of each column, fp32 between tiles."""
    wide = columns // cores
    whole, part = (rows, columns), (block, wide)
    acc = f"tensor<{wide}xf32>"
    return kernel(
        "sum_columns",
        ["x", "y"],
        cores,
        constants(0, rows, block, wide)
        + view("x", whole)
        + view("y", (columns,))
        + f"%j = arith.muli %core, %c{wide} : index\n"
        + f"%zero = arith.constant 0.0 : f32\n%e = tensor.empty() : {acc}\n"
        + f"%f = linalg.fill ins(%zero : f32) outs(%e : {acc}) -> {acc}\n"
        + f"%sum = scf.for %r = %c0 to %c{rows} step %c{block} iter_args(%t = %f) -> ({acc}) {{\n"
        + tile("xt", "x", whole, ["%r", "%j"], part)
        + load("d", "xt", part)
        + "%u = linalg.generic {indexing_maps = [#o2, #columns], "
        + 'iterator_types = ["reduction", "parallel"]} '
        + f"ins(%d : tensor<{shape(part)}>) outs(%t : {acc}) {{\n"
        + "^bb0(%a: f16, %c: f32):\n%w = arith.extf %a : f16 to f32\n"
        + f"%z = arith.addf %c, %w : f32\nlinalg.yield %z : f32\n}} -> {acc}\n"
        + f"scf.yield %u : {acc}\n}}\n"
        + tile("yt", "y", (columns,), ["%j"], (wide,))
        + f"%h = arith.truncf %sum : {acc} to tensor<{wide}xf16>\n"
        + store("h", "yt", (wide,)),
    )


def transpose(rows: int, columns: int, cores: int = 32, block: int = 64) -> str:
    """Rows become columns."""
    whole, part = (rows, columns), (block, columns)
    other, turned = (columns, rows), (columns, block)
    return blockwise(
        "transpose",
        {"x": (whole,), "y": (other,)},
        rows,
        cores,
        block,
        tile("xt", "x", whole, ["%r", "%c0"], part)
        + tile("yt", "y", other, ["%c0", "%r"], turned)
        + load("d", "xt", part)
        + f"%e = tensor.empty() : tensor<{shape(turned)}>\n"
        + f"%q = linalg.transpose ins(%d : tensor<{shape(part)}>) "
        + f"outs(%e : tensor<{shape(turned)}>) permutation = [1, 0]\n"
        + store("q", "yt", turned),
    )


def gather(
    rows: int, columns: int, entries: int, cores: int = 32, block: int = 64
) -> str:
    """Rows of a table, which an index per row names; indices are [rows / block, block]."""
    whole, part, table = (rows, columns), (block, columns), (entries, columns)
    numbers = (rows // block, block)
    return blockwise(
        "gather",
        {"table": (table,), "index": (numbers, "i32"), "y": (whole,)},
        rows,
        cores,
        block,
        f"%b = arith.divui %r, %c{block} : index\n"
        + "%xt = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) "
        + "%table_v[ind(%index_v[%b, %i]), (%j)] "
        + f"{{variables_space_set = {box(*part)}, variables_space_order = #o2}} : "
        + f"memref<{shape(table)}>, memref<{shape(numbers, 'i32')}> -> "
        + f"!ktdp.access_tile<{shape(part, 'index')}>\n"
        + load("d", "xt", part)
        + tile("yt", "y", whole, ["%r", "%c0"], part)
        + store("d", "yt", part),
    )
