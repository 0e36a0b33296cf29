# SPDX-License-Identifier: Apache-2.0
"""Every operation of linalg, tensor and scf in KTIR's list, memref.subview and
affine's, on every element type, against numpy. One program per type; row k of its
result is the k-th operation's. Values are small: each result is exact in each type.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import kernels as k
import numpy as np
from check_modes import fails
from formats import Float
from programs import ROUND, function, load, ok, store

M, N = 5, 7
INT_TYPES = {
    "i1": bool,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
FLOAT_TYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")


class Element:
    """A type's spelling, its operations and what they do to arrays of integers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_float = name in FLOAT_TYPES
        self.is_bool = name == "i1"
        # arith.addi and arith.maxsi on one bit, whose 1 is -1.
        self.add = np.logical_xor if self.is_bool else np.add
        self.max = np.logical_and if self.is_bool else np.maximum
        self.mul = np.logical_and if self.is_bool else np.multiply

    def op(self, what: str) -> str:
        integer = {"add": "addi", "mul": "muli", "max": "maxsi"}
        floating = {"add": "addf", "mul": "mulf", "max": "maximumf"}
        return "arith." + (floating if self.is_float else integer)[what]


def elementwise(op: str) -> str:
    return f"""%e = tensor.empty() : T
    %r = {op} ins(%x_d, %y_d : T, T) outs(%e : T) -> T"""


def reduced(op: str, dim: int, value: str = "%x_d") -> str:
    """Of %y's first row or column, combined with %x along `dim`, and spread again."""
    kept = M if dim else N
    sizes = "[5, 1]" if dim else "[1, 7]"
    return f"""%i = tensor.extract_slice %y_d[0, 0] {sizes} [1, 1] : T to tensor<{kept}xE>
    %s = linalg.reduce {{ {op} }} ins({value} : T) outs(%i : tensor<{kept}xE>) dimensions = [{dim}]
    %e = tensor.empty() : T
    %r = linalg.broadcast ins(%s : tensor<{kept}xE>) outs(%e : T) dimensions = [{dim}]"""


def spread(line: np.ndarray, dim: int) -> np.ndarray:
    return np.repeat(np.expand_dims(line, dim), N if dim else M, dim)


def inserted(into: np.ndarray, at: tuple, value: object) -> np.ndarray:
    result = into.copy()
    result[at] = value
    return result


def named_cases(e: Element) -> list[tuple[str, Callable]]:
    """Operations whose body upstream makes: it has none for index."""
    either = np.logical_or if e.is_bool else np.add

    def product(x: np.ndarray, v: np.ndarray, y: np.ndarray) -> np.ndarray:
        if e.is_bool:
            return (x[:, :, None] & v[None]).any(axis=1) | y
        return x @ v + y

    cases: list[tuple[str, Callable]] = [
        (elementwise("linalg.add"), lambda x, y, v: either(x, y)),
        (elementwise("linalg.mul"), lambda x, y, v: e.mul(x, y)),
        (elementwise("linalg.max"), lambda x, y, v: e.max(x, y)),
        (
            "%r = linalg.matmul ins(%x_d, %v_d : T, tensor<7x7xE>) outs(%y_d : T) -> T",
            lambda x, y, v: product(x, v, y),
        ),
        (
            """%a = tensor.expand_shape %x_d [[0, 1], [2]] output_shape [1, 5, 7] : T into tensor<1x5x7xE>
    %b = tensor.expand_shape %v_d [[0, 1], [2]] output_shape [1, 7, 7] : tensor<7x7xE> into tensor<1x7x7xE>
    %c = tensor.expand_shape %y_d [[0, 1], [2]] output_shape [1, 5, 7] : T into tensor<1x5x7xE>
    %d = linalg.batch_matmul ins(%a, %b : tensor<1x5x7xE>, tensor<1x7x7xE>) outs(%c : tensor<1x5x7xE>) -> tensor<1x5x7xE>
    %r = tensor.collapse_shape %d [[0, 1], [2]] : tensor<1x5x7xE> into T""",
            lambda x, y, v: product(x, v, y),
        ),
        (
            """%a = tensor.cast %x_d : T to tensor<?x?xE>
    %b = tensor.cast %y_d : T to tensor<?x?xE>
    %m = tensor.dim %a, %c0 : tensor<?x?xE>
    %n7 = tensor.dim %a, %c1 : tensor<?x?xE>
    %e = tensor.empty(%m, %n7) : tensor<?x?xE>
    %s = linalg.max ins(%a, %b : tensor<?x?xE>, tensor<?x?xE>) outs(%e : tensor<?x?xE>) -> tensor<?x?xE>
    %r = tensor.cast %s : tensor<?x?xE> to T""",
            lambda x, y, v: e.max(x, y),
        ),
    ]
    if not e.is_bool:
        cases.append((elementwise("linalg.sub"), lambda x, y, v: x - y))
    return cases


def linalg_cases(e: Element) -> list[tuple[str, Callable]]:
    add, mul, largest = e.op("add"), e.op("mul"), e.op("max")

    def generic(body: str, maps: str = "#o2, #o2, #o2", outs: str = "%e") -> str:
        start = "" if outs != "%e" else "%e = tensor.empty() : T\n    "
        return f"""{start}%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%x_d, %y_d : T, T) outs({outs} : T) {{
    ^bb0(%p: E, %q: E, %o: E):
      {body}
    }} -> T"""

    return [
        (
            generic(
                f"%m = {mul} %p, %q : E\n      %s = {add} %m, %o : E\n      linalg.yield %s : E",
                outs="%y_d",
            ),
            lambda x, y, v: e.add(e.mul(x, y), y),
        ),
        (
            generic("""%j = linalg.index 1 : index
      %b = arith.cmpi ult, %j, %c3 : index
      %s = arith.select %b, %p, %q : E
      linalg.yield %s : E"""),
            lambda x, y, v: np.where(np.arange(N) < 3, x, y),
        ),
        (
            f"""%e = tensor.empty() : T
    %r = linalg.map {{ {add} }} ins(%x_d, %y_d : T, T) outs(%e : T)""",
            lambda x, y, v: e.add(x, y),
        ),
        (
            reduced(add, 1),
            lambda x, y, v: spread(e.add(e.add.reduce(x, 1), y[:, 0]), 1),
        ),
        (
            reduced(largest, 0),
            lambda x, y, v: spread(e.max(e.max.reduce(x, 0), y[0]), 0),
        ),
        (
            reduced(mul, 1),
            lambda x, y, v: spread(e.mul(e.mul.reduce(x, 1), y[:, 0]), 1),
        ),
        (
            f"""%i = tensor.extract_slice %y_d[0, 0] [5, 1] [1, 1] : T to tensor<5xE>
    %j = tensor.extract_slice %x_d[0, 6] [5, 1] [1, 1] : T to tensor<5xE>
    %s:2 = linalg.reduce ins(%x_d, %y_d : T, T) outs(%i, %j : tensor<5xE>, tensor<5xE>) dimensions = [1]
      (%p: E, %q: E, %a: E, %b: E) {{
        %t = {add} %p, %a : E
        %u = {largest} %q, %b : E
        linalg.yield %t, %u : E, E
      }}
    %e = tensor.empty() : T
    %f = linalg.broadcast ins(%s#0 : tensor<5xE>) outs(%e : T) dimensions = [1]
    %r = tensor.insert_slice %s#1 into %f[0, 2] [5, 1] [1, 1] : tensor<5xE> into T""",
            lambda x, y, v: inserted(
                spread(e.add(e.add.reduce(x, 1), y[:, 0]), 1),
                (slice(None), 2),
                e.max(e.max.reduce(y, 1), x[:, 6]),
            ),
        ),
        (
            """%e = tensor.empty() : tensor<7x5xE>
    %t = linalg.transpose ins(%x_d : T) outs(%e : tensor<7x5xE>) permutation = [1, 0]
    %f = tensor.extract_slice %t[1, 0] [1, 5] [1, 1] : tensor<7x5xE> to tensor<5xE>
    %r = tensor.insert_slice %f into %y_d[0, 3] [5, 1] [1, 1] : tensor<5xE> into T""",
            lambda x, y, v: inserted(y, (slice(None), 3), x[:, 1]),
        ),
        (
            """%s = tensor.extract %x_d[%c1, %c3] : T
    %e = tensor.empty() : T
    %r = linalg.fill ins(%s : E) outs(%e : T) -> T""",
            lambda x, y, v: np.full_like(x, x[1, 3]),
        ),
    ]


def tensor_cases(e: Element) -> list[tuple[str, Callable]]:
    return [
        (
            """%s = tensor.extract %x_d[%c3, %c1] : T
    %r = tensor.splat %s : T""",
            lambda x, y, v: np.full_like(x, x[3, 1]),
        ),
        (
            """%s = tensor.extract %x_d[%c3, %c1] : T
    %t = tensor.extract %y_d[%c0, %c3] : T
    %f = tensor.from_elements %s, %t, %s : tensor<3xE>
    %r = tensor.insert_slice %f into %y_d[2, 1] [1, 3] [1, 2] : tensor<3xE> into T""",
            lambda x, y, v: inserted(
                y, (2, slice(1, 7, 2)), [x[3, 1], y[0, 3], x[3, 1]]
            ),
        ),
        (
            """%s = tensor.extract_slice %x_d[0, 1] [3, 3] [2, 2] : T to tensor<3x3xE>
    %r = tensor.insert_slice %s into %y_d[2, 4] [3, 3] [1, 1] : tensor<3x3xE> into T""",
            lambda x, y, v: inserted(y, np.s_[2:5, 4:7], x[::2, 1:6:2]),
        ),
        (
            """%s = tensor.extract_slice %x_d[%n, 0] [%n, 7] [1, 1] : T to tensor<?x7xE>
    %r = tensor.insert_slice %s into %y_d[0, 0] [%n, 7] [1, 1] : tensor<?x7xE> into T""",
            lambda x, y, v: inserted(y, np.s_[:2], x[2:4]),
        ),
        (
            """%s = tensor.extract %x_d[%c3, %c1] : T
    %r = tensor.insert %s into %y_d[%c1, %c3] : T""",
            lambda x, y, v: inserted(y, (1, 3), x[3, 1]),
        ),
        (
            """%p = tensor.extract %x_d[%c1, %c3] : T
    %q = tensor.extract %y_d[%c0, %c1] : T
    %g = tensor.generate %n, %c3 {
    ^bb0(%i: index, %j: index):
      %l = arith.muli %i, %c3 : index
      %b = arith.cmpi slt, %j, %l : index
      %a = arith.select %b, %p, %q : E
      tensor.yield %a : E
    } : tensor<?x?xE>
    %r = tensor.insert_slice %g into %x_d[1, 0] [%n, %c3] [1, 1] : tensor<?x?xE> into T""",
            lambda x, y, v: inserted(
                x,
                np.s_[1:3, :3],
                np.where(np.arange(3) < 3 * np.arange(2)[:, None], x[1, 3], y[0, 1]),
            ),
        ),
        (
            """%g = tensor.generate {
    ^bb0(%i: index, %j: index):
      %l = arith.constant 6 : index
      %m = arith.subi %l, %j : index
      %a = tensor.extract %x_d[%i, %m] : T
      tensor.yield %a : E
    } : T
    %e = tensor.empty() : T
    %r = linalg.generic {indexing_maps = [#o2, #o2], iterator_types = ["parallel", "parallel"]}
      ins(%g : T) outs(%e : T) {
    ^bb0(%p: E, %o: E):
      %j = linalg.index 1 : index
      %b = arith.cmpi ult, %j, %c3 : index
      %a = tensor.extract %v_d[%j, %n] : tensor<7x7xE>
      %s = arith.select %b, %p, %a : E
      linalg.yield %s : E
    } -> T""",
            lambda x, y, v: np.where(np.arange(N) < 3, x[:, ::-1], v[:, 2]),
        ),
        (
            """%d = arith.constant dense<[7, 5]> : tensor<2xindex>
    %s = tensor.reshape %x_d(%d) : (T, tensor<2xindex>) -> tensor<7x5xE>
    %c = tensor.collapse_shape %s [[0, 1]] : tensor<7x5xE> into tensor<35xE>
    %r = tensor.expand_shape %c [[0, 1]] output_shape [5, 7] : tensor<35xE> into T""",
            lambda x, y, v: x,
        ),
        (
            """%s = tensor.extract %y_d[%c3, %c1] : T
    %p = tensor.pad %x_d low[1, %c0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      tensor.yield %s : E
    } : T to tensor<6x?xE>
    %r = tensor.extract_slice %p[0, 2] [5, 7] [1, 1] : tensor<6x?xE> to T""",
            lambda x, y, v: np.pad(x, ((1, 0), (0, 2)), constant_values=y[3, 1])[
                :5, 2:
            ],
        ),
        (
            """%w = memref.subview %v_x[1, 2] [3, 4] [1, 1] : memref<5x7xE> to memref<3x4xE, strided<[7, 1], offset: 9>>
    %t = ktdp.construct_access_tile %w[%c0, %c0] {access_tile_set = #three_four, access_tile_order = #o2}
      : memref<3x4xE, strided<[7, 1], offset: 9>> -> !ktdp.access_tile<3x4xindex>
    %d = ktdp.load %t : !ktdp.access_tile<3x4xindex> -> tensor<3x4xE>
    %r = tensor.insert_slice %d into %y_d[0, 0] [3, 4] [1, 1] : tensor<3x4xE> into T""",
            lambda x, y, v: inserted(y, np.s_[:3, :4], x[1:4, 2:6]),
        ),
        (
            """%i = affine.apply affine_map<(d)[s] -> (d + s * 2 - 3)>(%n)[%n]
    %j = affine.min affine_map<(d) -> (d + 2, 6, d * 9)>(%n)
    %l = affine.max affine_map<(d)[s] -> (d mod 2, s floordiv 2, 0)>(%n)[%n]
    %a = tensor.extract %x_d[%i, %j] : T
    %r = tensor.insert %a into %y_d[%l, %c0] : T""",
            lambda x, y, v: inserted(y, (1, 0), x[3, 4]),
        ),
    ]


def scf_cases(e: Element) -> list[tuple[str, Callable]]:
    add, largest = e.op("add"), e.op("max")

    def diagonal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        result = y.copy()
        for i in range(3):
            result[i, 0] = x[i, i]
        return result

    return [
        (
            """%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %y_d) -> (T) {
      %s = tensor.extract %x_d[%i, %i] : T
      %b = tensor.insert %s into %a[%i, %c0] : T
      scf.yield %b : T
    }""",
            lambda x, y, v: diagonal(x, y),
        ),
        (
            """%s = tensor.extract %x_d[%c0, %c1] : T
    %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %s) -> (E) {
      %t = tensor.extract %x_d[%i, %c3] : T
      %b = ADD %a, %t : E
      scf.yield %b : E
    }
    %r = tensor.splat %q : T""".replace("ADD", add),
            lambda x, y, v: np.full_like(x, e.add.reduce([x[0, 1], *x[:3, 3]])),
        ),
        (
            """%b = arith.cmpi ult, %n, %c3 : index
    %r, %s = scf.if %b -> (T, E) {
      %p = tensor.extract %x_d[%c0, %c0] : T
      scf.yield %x_d, %p : T, E
    } else {
      %p = tensor.extract %y_d[%c0, %c0] : T
      scf.yield %y_d, %p : T, E
    }""",
            lambda x, y, v: x,
        ),
        (
            """%b = arith.cmpi ugt, %n, %c3 : index
    %s = scf.if %b -> (E) {
      %p = tensor.extract %x_d[%c0, %c0] : T
      scf.yield %p : E
    } else {
      %p = tensor.extract %y_d[%c1, %c1] : T
      scf.yield %p : E
    }
    %r = tensor.insert %s into %x_d[%c0, %c0] : T""",
            lambda x, y, v: inserted(x, (0, 0), y[1, 1]),
        ),
        (
            """%a, %b, %i = scf.while (%p = %x_d, %q = %y_d, %j = %c0) : (T, T, index) -> (T, T, index) {
      %g = arith.cmpi ult, %j, %c3 : index
      scf.condition(%g) %p, %q, %j : T, T, index
    } do {
    ^bb0(%p: T, %q: T, %j: index):
      %m = arith.addi %j, %c1 : index
      scf.yield %q, %p, %m : T, T, index
    }
    %r = tensor.cast %a : T to T""",
            lambda x, y, v: y,
        ),
        (
            f"""%s = tensor.extract %x_d[%c0, %c1] : T
    %t = tensor.extract %y_d[%c0, %c1] : T
    %c5 = arith.constant 5 : index
    %g:2 = scf.parallel (%i) = (%c0) to (%c5) step (%c1) init (%s, %t) -> (E, E) {{
      %p = tensor.extract %x_d[%i, %c3] : T
      %q = tensor.extract %y_d[%i, %c3] : T
      scf.reduce(%p, %q : E, E) {{
      ^bb0(%l: E, %o: E):
        %m = {add} %l, %o : E
        scf.reduce.return %m : E
      }}, {{
      ^bb0(%l: E, %o: E):
        %m = {largest} %l, %o : E
        scf.reduce.return %m : E
      }}
    }}
    %f = tensor.splat %g#0 : T
    %r = tensor.insert %g#1 into %f[%c0, %c0] : T""",
            lambda x, y, v: inserted(
                np.full_like(x, e.add.reduce([x[0, 1], *x[:, 3]])),
                (0, 0),
                e.max.reduce([y[0, 1], *y[:, 3]]),
            ),
        ),
        (
            """%r = scf.forall (%i) in (5) shared_outs(%o = %y_d) -> (T) {
      %s = tensor.extract_slice %x_d[%i, 1] [1, 3] [1, 1] : T to tensor<1x3xE>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %s into %o[%i, 4] [1, 3] [1, 1] : tensor<1x3xE> into T
      }
    }""",
            lambda x, y, v: inserted(y, np.s_[:, 4:], x[:, 1:4]),
        ),
    ]


def program(e: Element, bodies: list[str]) -> str:
    """Row k of %z: what the k-th body makes of %x_d, %y_d [5, 7] and %v_d [7, 7]."""
    t = f"tensor<{M}x{N}x{e.name}>"
    count = len(bodies)
    text = [
        load("x", (M, N), e.name),
        load("y", (M, N), e.name),
        load("v", (N, N), e.name),
    ]
    text.append(
        f"%c1 = arith.constant 1 : index\n    %c3 = arith.constant 3 : index\n"
        f"%v_z = ktdp.construct_memory_view %z, sizes: [{count}, {M}, {N}], strides: [{M * N}, {N}, 1] {{coordinate_set = "
        f"{k.box('a b c', [count, M, N])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}x{M}x{N}x{e.name}>"
    )
    shared = "x_d|y_d|v_d|v_x|n|c0|c1|c3"
    for row, body in enumerate(bodies):
        # Names are local to a row.
        body = re.sub(rf"%(?!(?:{shared})\b)([a-z]\w*)", rf"%\1_{row}", body)
        body = re.sub(r"\bT\b", t, body)
        text.append(re.sub(r"\bE\b|(?<=x)E\b", e.name, body))
        text.append(
            f"%row_{row} = arith.constant {row} : index\n    "
            f"%tile_{row} = ktdp.construct_access_tile %v_z[%row_{row}, %c0, %c0] {{access_tile_set = {k.box('a b c', [1, M, N])}, "
            f"access_tile_order = affine_map<(a, b, c) -> (a, b, c)>}} : memref<{count}x{M}x{N}x{e.name}> -> !ktdp.access_tile<1x{M}x{N}xindex>\n    "
            f"%out_{row} = tensor.expand_shape %r_{row} [[0, 1], [2]] output_shape [1, {M}, {N}] : {t} into tensor<1x{M}x{N}x{e.name}>\n    "
            f"ktdp.store %out_{row}, %tile_{row} : tensor<1x{M}x{N}x{e.name}>, !ktdp.access_tile<1x{M}x{N}xindex>"
        )
    head = f"#three_four = {k.box('a b', [3, 4])}\n#o2 = affine_map<(a, b) -> (a, b)>\n"
    return head + function("x y v n z", "\n    ".join(text))


def check_type(folder: str, name: str) -> None:
    e = Element(name)
    rng = np.random.default_rng(75)
    low = 0 if e.is_bool else -1
    x, y = rng.integers(low, 2, (2, M, N))
    v = rng.integers(low, 2, (N, N))
    # Sums stay below 8, which every type holds.
    x[:, 5:], y[:, 4:] = 0, 0
    if e.is_bool:
        x, y, v = x.astype(bool), y.astype(bool), v.astype(bool)
    cases = linalg_cases(e) + tensor_cases(e) + scf_cases(e)
    if name != "index":
        cases += named_cases(e)
    text = program(e, [body for body, _ in cases])
    for numerics in ["dl16", "ieee"] if name == "f16" else ["dl16"]:
        kind = Float(name, numerics) if e.is_float else None

        def encode(a: np.ndarray, kind=kind) -> np.ndarray:
            return (
                kind.encode(a.astype(np.float32)) if kind else a.astype(INT_TYPES[name])
            )

        files = [encode(a) for a in (x, y, v)]
        z = np.ones((len(cases), M, N), files[0].dtype)
        ok(k.run(folder, text, [*files, 2, z], "--numerics", numerics))
        result = k.result(folder, "z")
        if kind:
            result = kind.decode(result)
        for row, (body, reference) in enumerate(cases):
            expected = reference(x, y, v)
            assert (result[row] == expected).all(), (name, body, result[row], expected)


def types(folder: str) -> None:
    for name in [*FLOAT_TYPES, *INT_TYPES]:
        check_type(folder, name)


def scalars(folder: str) -> None:
    """Scalar arguments: integers fit their type, floats are rounded to it."""

    def program(kind: str) -> str:
        text = function(
            "z",
            f"""%r = tensor.splat %n : tensor<3x{kind}>
    {store("z", (3,), kind, "r")}""",
        )
        return text.replace("@f(", f"@f(%n: {kind}, ")

    for kind, dtype in INT_TYPES.items():
        if kind in ("i64", "index"):
            continue
        bits = 1 if kind == "i1" else np.dtype(dtype).itemsize * 8
        z = np.zeros(3, dtype)
        for n in {-(2**bits) // 2, -1, 0, 1, 2**bits // 2, 2**bits - 1}:
            ok(k.run(folder, program(kind), [n, z]))
            expected = np.full(3, n).astype(dtype)
            assert (k.result(folder, "z") == expected).all(), (kind, n)
        for n in (-(2**bits) // 2 - 1, 2**bits):
            message = f"error: argument is {n}, which does not fit {kind}"
            fails(folder, program(kind), [n, z], [message])

    # 1 + 2^-10 lies between two numbers of DL16 and is one of IEEE half.
    exact = function(
        "z",
        f"""%w = arith.extf %n : f16 to f32
    %r = tensor.splat %w : tensor<3xf32>
    {store("z", (3,), "f32", "r")}""",
    ).replace("@f(", "@f(%n: f16, ")
    for numerics, rounded in ROUND.items():
        for n in (1 + 2.0**-10, 1 + 2.0**-12, -0.1):
            flags = ["--numerics", numerics]
            ok(k.run(folder, exact, [n, np.zeros(3, np.float32)], *flags))
            expected = rounded(np.full(3, n, np.float32))
            assert (k.result(folder, "z") == expected).all(), (n, flags)
