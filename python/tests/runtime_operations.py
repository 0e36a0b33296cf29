# SPDX-License-Identifier: Apache-2.0
"""Operations of linalg, tensor, scf, memref and affine, and what they do to arrays.

A case is a text that makes %r, of type T, from %x_d and %y_d, which are T = tensor<5x7xE>,
and %v_d, tensor<7x7xE>. %v_x is the view that %x_d was loaded from, %n is 2. ADD, MUL and
MAX stand for operations of arith on E. The function takes the type, x, y and v.
"""

import re

import numpy as np

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

    def __init__(self, name: str):
        self.name = name
        self.is_float = name in FLOAT_TYPES
        self.is_bool = name == "i1"
        # arith.addi and arith.maxsi on one bit, whose 1 is -1; linalg.add is an or.
        self.add = np.logical_xor if self.is_bool else np.add
        self.either = np.logical_or if self.is_bool else np.add
        self.max = np.logical_and if self.is_bool else np.maximum
        self.mul = np.logical_and if self.is_bool else np.multiply

    def spell(self, body: str) -> str:
        """The text of a case for this type."""
        integer = {"ADD": "addi", "MUL": "muli", "MAX": "maxsi"}
        floating = {"ADD": "addf", "MUL": "mulf", "MAX": "maximumf"}
        for word, op in (floating if self.is_float else integer).items():
            body = re.sub(rf"\b{word}\b", f"arith.{op}", body)
        body = re.sub(r"\bT\b", f"tensor<{M}x{N}x{self.name}>", body)
        return re.sub(r"\bE\b|(?<=x)E\b", self.name, body)


def spread(line: np.ndarray, dim: int) -> np.ndarray:
    return np.repeat(np.expand_dims(line, dim), N if dim else M, dim)


def inserted(into: np.ndarray, at: tuple, value) -> np.ndarray:
    result = into.copy()
    result[at] = value
    return result


def product(e: Element, x, v, y) -> np.ndarray:
    if e.is_bool:
        return (x[:, :, None] & v[None]).any(axis=1) | y
    return x @ v + y


def diagonal(x, y) -> np.ndarray:
    result = y.copy()
    for i in range(3):
        result[i, 0] = x[i, i]
    return result


def cases(e: Element) -> list[str]:
    """The names of the cases for a type."""
    # Upstream makes the bodies of named operations, and has none for index.
    skipped = {"index": NAMED, "i1": {"linalg.sub"}}.get(e.name, set())
    return [name for name in CASES if name not in skipped]


#: Operations whose body upstream makes.
NAMED = {
    "linalg.add",
    "linalg.mul",
    "linalg.max",
    "linalg.matmul",
    "linalg.batch_matmul",
    "linalg.max-dynamic",
    "linalg.sub",
}
CASES = {
    "linalg.generic-multiply-add": (
        """%r = linalg.generic {indexing_maps = [#o2, #o2, #o2], iterator_types = ["parallel", "parallel"]}
      ins(%x_d, %y_d : T, T) outs(%y_d : T) {
    ^bb0(%p: E, %q: E, %o: E):
      %m = MUL %p, %q : E
      %s = ADD %m, %o : E
      linalg.yield %s : E
    } -> T""",
        lambda e, x, y, v: e.add(e.mul(x, y), y),
    ),
    "linalg.generic-index": (
        """%e = tensor.empty() : T
    %r = linalg.generic {indexing_maps = [#o2, #o2, #o2], iterator_types = ["parallel", "parallel"]}
      ins(%x_d, %y_d : T, T) outs(%e : T) {
    ^bb0(%p: E, %q: E, %o: E):
      %j = linalg.index 1 : index
      %b = arith.cmpi ult, %j, %c3 : index
      %s = arith.select %b, %p, %q : E
      linalg.yield %s : E
    } -> T""",
        lambda e, x, y, v: np.where(np.arange(N) < 3, x, y),
    ),
    "linalg.map": (
        """%e = tensor.empty() : T
    %r = linalg.map { ADD } ins(%x_d, %y_d : T, T) outs(%e : T)""",
        lambda e, x, y, v: e.add(x, y),
    ),
    "linalg.reduce-add-columns": (
        """%i = tensor.extract_slice %y_d[0, 0] [5, 1] [1, 1] : T to tensor<5xE>
    %s = linalg.reduce { ADD } ins(%x_d : T) outs(%i : tensor<5xE>) dimensions = [1]
    %e = tensor.empty() : T
    %r = linalg.broadcast ins(%s : tensor<5xE>) outs(%e : T) dimensions = [1]""",
        lambda e, x, y, v: spread(e.add(e.add.reduce(x, 1), y[:, 0]), 1),
    ),
    "linalg.reduce-max-rows": (
        """%i = tensor.extract_slice %y_d[0, 0] [1, 7] [1, 1] : T to tensor<7xE>
    %s = linalg.reduce { MAX } ins(%x_d : T) outs(%i : tensor<7xE>) dimensions = [0]
    %e = tensor.empty() : T
    %r = linalg.broadcast ins(%s : tensor<7xE>) outs(%e : T) dimensions = [0]""",
        lambda e, x, y, v: spread(e.max(e.max.reduce(x, 0), y[0]), 0),
    ),
    "linalg.reduce-multiply-columns": (
        """%i = tensor.extract_slice %y_d[0, 0] [5, 1] [1, 1] : T to tensor<5xE>
    %s = linalg.reduce { MUL } ins(%x_d : T) outs(%i : tensor<5xE>) dimensions = [1]
    %e = tensor.empty() : T
    %r = linalg.broadcast ins(%s : tensor<5xE>) outs(%e : T) dimensions = [1]""",
        lambda e, x, y, v: spread(e.mul(e.mul.reduce(x, 1), y[:, 0]), 1),
    ),
    "linalg.reduce-two-results": (
        """%i = tensor.extract_slice %y_d[0, 0] [5, 1] [1, 1] : T to tensor<5xE>
    %j = tensor.extract_slice %x_d[0, 6] [5, 1] [1, 1] : T to tensor<5xE>
    %s:2 = linalg.reduce ins(%x_d, %y_d : T, T) outs(%i, %j : tensor<5xE>, tensor<5xE>) dimensions = [1]
      (%p: E, %q: E, %a: E, %b: E) {
        %t = ADD %p, %a : E
        %u = MAX %q, %b : E
        linalg.yield %t, %u : E, E
      }
    %e = tensor.empty() : T
    %f = linalg.broadcast ins(%s#0 : tensor<5xE>) outs(%e : T) dimensions = [1]
    %r = tensor.insert_slice %s#1 into %f[0, 2] [5, 1] [1, 1] : tensor<5xE> into T""",
        lambda e, x, y, v: inserted(
            spread(e.add(e.add.reduce(x, 1), y[:, 0]), 1),
            (slice(None), 2),
            e.max(e.max.reduce(y, 1), x[:, 6]),
        ),
    ),
    "linalg.transpose": (
        """%e = tensor.empty() : tensor<7x5xE>
    %t = linalg.transpose ins(%x_d : T) outs(%e : tensor<7x5xE>) permutation = [1, 0]
    %f = tensor.extract_slice %t[1, 0] [1, 5] [1, 1] : tensor<7x5xE> to tensor<5xE>
    %r = tensor.insert_slice %f into %y_d[0, 3] [5, 1] [1, 1] : tensor<5xE> into T""",
        lambda e, x, y, v: inserted(y, (slice(None), 3), x[:, 1]),
    ),
    "linalg.fill": (
        """%s = tensor.extract %x_d[%c1, %c3] : T
    %e = tensor.empty() : T
    %r = linalg.fill ins(%s : E) outs(%e : T) -> T""",
        lambda e, x, y, v: np.full_like(x, x[1, 3]),
    ),
    "tensor.splat": (
        """%s = tensor.extract %x_d[%c3, %c1] : T
    %r = tensor.splat %s : T""",
        lambda e, x, y, v: np.full_like(x, x[3, 1]),
    ),
    "tensor.from_elements": (
        """%s = tensor.extract %x_d[%c3, %c1] : T
    %t = tensor.extract %y_d[%c0, %c3] : T
    %f = tensor.from_elements %s, %t, %s : tensor<3xE>
    %r = tensor.insert_slice %f into %y_d[2, 1] [1, 3] [1, 2] : tensor<3xE> into T""",
        lambda e, x, y, v: inserted(
            y, (2, slice(1, 7, 2)), [x[3, 1], y[0, 3], x[3, 1]]
        ),
    ),
    "tensor.extract_slice-strided": (
        """%s = tensor.extract_slice %x_d[0, 1] [3, 3] [2, 2] : T to tensor<3x3xE>
    %r = tensor.insert_slice %s into %y_d[2, 4] [3, 3] [1, 1] : tensor<3x3xE> into T""",
        lambda e, x, y, v: inserted(y, np.s_[2:5, 4:7], x[::2, 1:6:2]),
    ),
    "tensor.extract_slice-dynamic": (
        """%s = tensor.extract_slice %x_d[%n, 0] [%n, 7] [1, 1] : T to tensor<?x7xE>
    %r = tensor.insert_slice %s into %y_d[0, 0] [%n, 7] [1, 1] : tensor<?x7xE> into T""",
        lambda e, x, y, v: inserted(y, np.s_[:2], x[2:4]),
    ),
    "tensor.insert": (
        """%s = tensor.extract %x_d[%c3, %c1] : T
    %r = tensor.insert %s into %y_d[%c1, %c3] : T""",
        lambda e, x, y, v: inserted(y, (1, 3), x[3, 1]),
    ),
    "tensor.generate-dynamic": (
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
        lambda e, x, y, v: inserted(
            x,
            np.s_[1:3, :3],
            np.where(np.arange(3) < 3 * np.arange(2)[:, None], x[1, 3], y[0, 1]),
        ),
    ),
    "tensor.generate-reversed": (
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
        lambda e, x, y, v: np.where(np.arange(N) < 3, x[:, ::-1], v[:, 2]),
    ),
    "tensor.reshape": (
        """%d = arith.constant dense<[7, 5]> : tensor<2xindex>
    %s = tensor.reshape %x_d(%d) : (T, tensor<2xindex>) -> tensor<7x5xE>
    %c = tensor.collapse_shape %s [[0, 1]] : tensor<7x5xE> into tensor<35xE>
    %r = tensor.expand_shape %c [[0, 1]] output_shape [5, 7] : tensor<35xE> into T""",
        lambda e, x, y, v: x,
    ),
    "tensor.pad": (
        """%s = tensor.extract %y_d[%c3, %c1] : T
    %p = tensor.pad %x_d low[1, %c0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      tensor.yield %s : E
    } : T to tensor<6x?xE>
    %r = tensor.extract_slice %p[0, 2] [5, 7] [1, 1] : tensor<6x?xE> to T""",
        lambda e, x, y, v: np.pad(x, ((1, 0), (0, 2)), constant_values=y[3, 1])[:5, 2:],
    ),
    "memref.subview": (
        """%w = memref.subview %v_x[1, 2] [3, 4] [1, 1] : memref<5x7xE> to memref<3x4xE, strided<[7, 1], offset: 9>>
    %t = ktdp.construct_access_tile %w[%c0, %c0] {access_tile_set = #three_four, access_tile_order = #o2}
      : memref<3x4xE, strided<[7, 1], offset: 9>> -> !ktdp.access_tile<3x4xindex>
    %d = ktdp.load %t : !ktdp.access_tile<3x4xindex> -> tensor<3x4xE>
    %r = tensor.insert_slice %d into %y_d[0, 0] [3, 4] [1, 1] : tensor<3x4xE> into T""",
        lambda e, x, y, v: inserted(y, np.s_[:3, :4], x[1:4, 2:6]),
    ),
    "affine.apply-min-max": (
        """%i = affine.apply affine_map<(d)[s] -> (d + s * 2 - 3)>(%n)[%n]
    %j = affine.min affine_map<(d) -> (d + 2, 6, d * 9)>(%n)
    %l = affine.max affine_map<(d)[s] -> (d mod 2, s floordiv 2, 0)>(%n)[%n]
    %a = tensor.extract %x_d[%i, %j] : T
    %r = tensor.insert %a into %y_d[%l, %c0] : T""",
        lambda e, x, y, v: inserted(y, (1, 0), x[3, 4]),
    ),
    "scf.for-tensor": (
        """%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %y_d) -> (T) {
      %s = tensor.extract %x_d[%i, %i] : T
      %b = tensor.insert %s into %a[%i, %c0] : T
      scf.yield %b : T
    }""",
        lambda e, x, y, v: diagonal(x, y),
    ),
    "scf.for-scalar": (
        """%s = tensor.extract %x_d[%c0, %c1] : T
    %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %s) -> (E) {
      %t = tensor.extract %x_d[%i, %c3] : T
      %b = ADD %a, %t : E
      scf.yield %b : E
    }
    %r = tensor.splat %q : T""",
        lambda e, x, y, v: np.full_like(x, e.add.reduce([x[0, 1], *x[:3, 3]])),
    ),
    "scf.if-tensor-and-scalar": (
        """%b = arith.cmpi ult, %n, %c3 : index
    %r, %s = scf.if %b -> (T, E) {
      %p = tensor.extract %x_d[%c0, %c0] : T
      scf.yield %x_d, %p : T, E
    } else {
      %p = tensor.extract %y_d[%c0, %c0] : T
      scf.yield %y_d, %p : T, E
    }""",
        lambda e, x, y, v: x,
    ),
    "scf.if-scalar": (
        """%b = arith.cmpi ugt, %n, %c3 : index
    %s = scf.if %b -> (E) {
      %p = tensor.extract %x_d[%c0, %c0] : T
      scf.yield %p : E
    } else {
      %p = tensor.extract %y_d[%c1, %c1] : T
      scf.yield %p : E
    }
    %r = tensor.insert %s into %x_d[%c0, %c0] : T""",
        lambda e, x, y, v: inserted(x, (0, 0), y[1, 1]),
    ),
    "scf.while": (
        """%a, %b, %i = scf.while (%p = %x_d, %q = %y_d, %j = %c0) : (T, T, index) -> (T, T, index) {
      %g = arith.cmpi ult, %j, %c3 : index
      scf.condition(%g) %p, %q, %j : T, T, index
    } do {
    ^bb0(%p: T, %q: T, %j: index):
      %m = arith.addi %j, %c1 : index
      scf.yield %q, %p, %m : T, T, index
    }
    %r = tensor.cast %a : T to T""",
        lambda e, x, y, v: y,
    ),
    "scf.parallel": (
        """%s = tensor.extract %x_d[%c0, %c1] : T
    %t = tensor.extract %y_d[%c0, %c1] : T
    %c5 = arith.constant 5 : index
    %g:2 = scf.parallel (%i) = (%c0) to (%c5) step (%c1) init (%s, %t) -> (E, E) {
      %p = tensor.extract %x_d[%i, %c3] : T
      %q = tensor.extract %y_d[%i, %c3] : T
      scf.reduce(%p, %q : E, E) {
      ^bb0(%l: E, %o: E):
        %m = ADD %l, %o : E
        scf.reduce.return %m : E
      }, {
      ^bb0(%l: E, %o: E):
        %m = MAX %l, %o : E
        scf.reduce.return %m : E
      }
    }
    %f = tensor.splat %g#0 : T
    %r = tensor.insert %g#1 into %f[%c0, %c0] : T""",
        lambda e, x, y, v: inserted(
            np.full_like(x, e.add.reduce([x[0, 1], *x[:, 3]])),
            (0, 0),
            e.max.reduce([y[0, 1], *y[:, 3]]),
        ),
    ),
    "scf.forall": (
        """%r = scf.forall (%i) in (5) shared_outs(%o = %y_d) -> (T) {
      %s = tensor.extract_slice %x_d[%i, 1] [1, 3] [1, 1] : T to tensor<1x3xE>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %s into %o[%i, 4] [1, 3] [1, 1] : tensor<1x3xE> into T
      }
    }""",
        lambda e, x, y, v: inserted(y, np.s_[:, 4:], x[:, 1:4]),
    ),
    "linalg.add": (
        """%e = tensor.empty() : T
    %r = linalg.add ins(%x_d, %y_d : T, T) outs(%e : T) -> T""",
        lambda e, x, y, v: e.either(x, y),
    ),
    "linalg.mul": (
        """%e = tensor.empty() : T
    %r = linalg.mul ins(%x_d, %y_d : T, T) outs(%e : T) -> T""",
        lambda e, x, y, v: e.mul(x, y),
    ),
    "linalg.max": (
        """%e = tensor.empty() : T
    %r = linalg.max ins(%x_d, %y_d : T, T) outs(%e : T) -> T""",
        lambda e, x, y, v: e.max(x, y),
    ),
    "linalg.matmul": (
        "%r = linalg.matmul ins(%x_d, %v_d : T, tensor<7x7xE>) outs(%y_d : T) -> T",
        lambda e, x, y, v: product(e, x, v, y),
    ),
    "linalg.batch_matmul": (
        """%a = tensor.expand_shape %x_d [[0, 1], [2]] output_shape [1, 5, 7] : T into tensor<1x5x7xE>
    %b = tensor.expand_shape %v_d [[0, 1], [2]] output_shape [1, 7, 7] : tensor<7x7xE> into tensor<1x7x7xE>
    %c = tensor.expand_shape %y_d [[0, 1], [2]] output_shape [1, 5, 7] : T into tensor<1x5x7xE>
    %d = linalg.batch_matmul ins(%a, %b : tensor<1x5x7xE>, tensor<1x7x7xE>) outs(%c : tensor<1x5x7xE>) -> tensor<1x5x7xE>
    %r = tensor.collapse_shape %d [[0, 1], [2]] : tensor<1x5x7xE> into T""",
        lambda e, x, y, v: product(e, x, v, y),
    ),
    "linalg.max-dynamic": (
        """%a = tensor.cast %x_d : T to tensor<?x?xE>
    %b = tensor.cast %y_d : T to tensor<?x?xE>
    %m = tensor.dim %a, %c0 : tensor<?x?xE>
    %n7 = tensor.dim %a, %c1 : tensor<?x?xE>
    %e = tensor.empty(%m, %n7) : tensor<?x?xE>
    %s = linalg.max ins(%a, %b : tensor<?x?xE>, tensor<?x?xE>) outs(%e : tensor<?x?xE>) -> tensor<?x?xE>
    %r = tensor.cast %s : tensor<?x?xE> to T""",
        lambda e, x, y, v: e.max(x, y),
    ),
    "linalg.sub": (
        """%e = tensor.empty() : T
    %r = linalg.sub ins(%x_d, %y_d : T, T) outs(%e : T) -> T""",
        lambda e, x, y, v: x - y,
    ),
}
