# SPDX-License-Identifier: Apache-2.0
"""Every operation of arith and math in KTIR's list, on every element type, against
numpy. One program per type; row k of its result is the k-th operation's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import kernels as k
import numpy as np
from programs import function, load, ok, round_half

N = 65
ERF = np.vectorize(math.erf)


def program(element: str, bodies: list[str]) -> str:
    """Rows of %z: each body makes %r_<row> of %x_d, %y_d and %w_d."""
    t = f"tensor<{N}x{element}>"
    count = len(bodies)
    text = [load(n, (N,), element) for n in "xyw"]
    text.append(
        f"%v_z = ktdp.construct_memory_view %z, sizes: [{count}, {N}], strides: [{N}, 1] {{coordinate_set = "
        f"{k.box('a b', [count, N])}, memory_space = #ktdp.memory_space<global>}} : memref<{count}x{N}x{element}>"
    )
    for row, body in enumerate(bodies):
        # Names are local to a row.
        for name in sorted(set(re.findall(r"%([a-z]\w*)", body))):
            if name not in ("x_d", "y_d", "w_d"):
                body = body.replace(f"%{name}", f"%{name}_{row}")
        text.append(body.replace("T", t))
        text.append(
            f"%at_{row} = arith.constant {row} : index\n    "
            f"%t_{row} = ktdp.construct_access_tile %v_z[%at_{row}, %c0] {{access_tile_set = {k.box('a b', [1, N])}, "
            f"access_tile_order = affine_map<(a, b) -> (a, b)>}} : memref<{count}x{N}x{element}> -> !ktdp.access_tile<1x{N}xindex>\n    "
            f"%o_{row} = tensor.expand_shape %r_{row} [[0, 1]] output_shape [1, {N}] : {t} into tensor<1x{N}x{element}>\n    "
            f"ktdp.store %o_{row}, %t_{row} : tensor<1x{N}x{element}>, !ktdp.access_tile<1x{N}xindex>"
        )
    return function("x y w z", "\n    ".join(text))


def binary(op: str) -> str:
    return f"%r = {op} %x_d, %y_d : T"


def unary(op: str, operand: str = "%x_d") -> str:
    return f"%r = {op} {operand} : T"


#
# Floats
#


def fp8_values(exponent_bits: int, fraction_bits: int) -> np.ndarray:
    """The value of each of the 256 codes; not finite where the format says so."""
    code = np.arange(256)
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    scale = np.ldexp(1.0, np.maximum(exponent, 1) - bias - fraction_bits)
    value = scale * (fraction + np.where(exponent > 0, 1 << fraction_bits, 0))
    if exponent_bits == 5:
        value[exponent == 31] = np.inf
    else:
        value[(exponent == 15) & (fraction == 7)] = np.nan
    return np.where(code & 128, -value, value).astype(np.float32)


def round_to(x: np.ndarray, bits: int, lowest: int) -> np.ndarray:
    """To `bits` bits of fraction, nearest even; 2^lowest is the smallest normal."""
    x = np.asarray(x, np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(np.where(x == 0, 1, x))))
    unit = np.exp2(np.maximum(exponent, lowest) - bits)
    return (np.rint(x / unit) * unit).astype(np.float32)


class Float:
    """How a type is stored and rounded; the fraction's bits."""

    def __init__(self, element: str, numerics: str = "dl16"):
        self.element, self.numerics = element, numerics
        self.bits, self.lowest = {
            "f32": (23, -126),
            "bf16": (7, -126),
            "f8E4M3FN": (3, -6),
            "f8E5M2": (2, -14),
            "f16": (10, -14) if numerics == "ieee" else (9, -31),
        }[element]

    def round(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, np.float32)
        if self.element == "f32":
            return x
        if self.element == "f16":
            return round_half(x) if self.numerics == "ieee" else k.round_dl16(x)
        return round_to(x, self.bits, self.lowest)

    def codes(self) -> np.ndarray:
        return fp8_values(4, 3) if self.element == "f8E4M3FN" else fp8_values(5, 2)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """The file that holds rounded values."""
        if self.element == "f32":
            return x.astype(np.float32)
        if self.element == "f16":
            return x.astype(np.float16)
        if self.element == "bf16":
            return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        codes = self.codes()
        order = np.argsort(np.where(np.isfinite(codes), codes, np.inf), kind="stable")
        found = order[np.searchsorted(codes[order], x)]
        assert (codes[found] == x).all()
        return found.astype(np.uint8)

    def decode(self, x: np.ndarray) -> np.ndarray:
        if self.element == "bf16":
            return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        if self.element.startswith("f8"):
            return self.codes()[x]
        return x.astype(np.float32)

    def unit(self, x: np.ndarray) -> np.ndarray:
        exponent = np.floor(np.log2(np.maximum(np.abs(x), 2.0**self.lowest)))
        return np.exp2(exponent - self.bits)


def float_cases(width: int) -> list[tuple[str, Callable, int]]:
    """Body, reference in fp64, and how many units it may be off."""
    compare = "%c = arith.cmpf {0}, %x_d, %y_d : T\n    %r = arith.select %c, %x_d, %w_d : tensor<65xi1>, T"
    exact: list[tuple[str, Callable]] = [
        (binary("arith.addf"), lambda x, y, w: x + y),
        (binary("arith.subf"), lambda x, y, w: x - y),
        (binary("arith.mulf"), lambda x, y, w: x * y),
        (binary("arith.divf"), lambda x, y, w: x / y),
        (binary("arith.remf"), lambda x, y, w: np.fmod(x, y)),
        (unary("arith.negf"), lambda x, y, w: -x),
        (binary("arith.maximumf"), lambda x, y, w: np.maximum(x, y)),
        (binary("arith.minimumf"), lambda x, y, w: np.minimum(x, y)),
        (binary("arith.maxnumf"), lambda x, y, w: np.fmax(x, y)),
        (binary("arith.minnumf"), lambda x, y, w: np.fmin(x, y)),
        (unary("math.absf"), lambda x, y, w: np.abs(x)),
        (unary("math.ceil"), lambda x, y, w: np.ceil(x)),
        (unary("math.floor"), lambda x, y, w: np.floor(x)),
        (unary("math.sqrt", "%w_d"), lambda x, y, w: np.sqrt(w)),
        ("%r = math.fma %x_d, %y_d, %w_d : T", lambda x, y, w: x * y + w),
        (
            f"%c = arith.bitcast %x_d : T to tensor<65xi{width}>\n    %r = arith.bitcast %c : tensor<65xi{width}> to T",
            lambda x, y, w: x,
        ),
        (
            "%c = arith.fptosi %x_d : T to tensor<65xi32>\n    %r = arith.sitofp %c : tensor<65xi32> to T",
            lambda x, y, w: np.trunc(x),
        ),
        (
            "%c = arith.fptoui %w_d : T to tensor<65xi8>\n    %r = arith.uitofp %c : tensor<65xi8> to T",
            lambda x, y, w: np.trunc(w),
        ),
    ]
    if width < 32:
        exact.append(
            (
                "%c = arith.extf %x_d : T to tensor<65xf32>\n    %d = arith.constant dense<0.75> : tensor<65xf32>\n"
                "    %e = arith.mulf %c, %d : tensor<65xf32>\n    %r = arith.truncf %e : tensor<65xf32> to T",
                lambda x, y, w: x * 0.75,
            )
        )
    for predicate, holds in [
        ("oeq", np.equal),
        ("ogt", np.greater),
        ("oge", np.greater_equal),
        ("olt", np.less),
        ("ole", np.less_equal),
        ("one", np.not_equal),
        ("ult", np.less),
        ("uno", lambda x, y: np.zeros_like(x, bool)),
        ("ord", lambda x, y: np.ones_like(x, bool)),
    ]:
        exact.append(
            (
                compare.format(predicate),
                lambda x, y, w, holds=holds: np.where(holds(x, y), x, w),
            )
        )
    near: list[tuple[str, Callable]] = [
        (unary("math.exp"), lambda x, y, w: np.exp(x)),
        (unary("math.rsqrt", "%w_d"), lambda x, y, w: 1 / np.sqrt(w)),
        (unary("math.log", "%w_d"), lambda x, y, w: np.log(w)),
        (unary("math.log2", "%w_d"), lambda x, y, w: np.log2(w)),
        (unary("math.log1p", "%w_d"), lambda x, y, w: np.log1p(w)),
        (unary("math.tanh"), lambda x, y, w: np.tanh(x)),
        (unary("math.sin"), lambda x, y, w: np.sin(x)),
        (unary("math.cos"), lambda x, y, w: np.cos(x)),
        (unary("math.erf"), lambda x, y, w: ERF(x)),
        ("%r = math.powf %w_d, %x_d : T", lambda x, y, w: w**x),
    ]
    # Of fp32, libraries promise a few units only.
    slack = 4 if width == 32 else 1
    return [(b, f, 0) for b, f in exact] + [(b, f, slack) for b, f in near]


def floats(folder: str) -> None:
    rng = np.random.default_rng(71)
    for element, width in [
        ("f16", 16),
        ("bf16", 16),
        ("f32", 32),
        ("f8E4M3FN", 8),
        ("f8E5M2", 8),
    ]:
        cases = float_cases(width)
        text = program(element, [body for body, _, _ in cases])
        for numerics in ["dl16", "ieee"]:
            kind = Float(element, numerics)
            x = kind.round(round_half(rng.uniform(-4, 4, N)))
            y = kind.round(round_half(rng.uniform(0.5, 3, N) * rng.choice([-1, 1], N)))
            y[:9] = x[:9]
            y[y == 0] = 1
            w = kind.round(round_half(rng.uniform(0.125, 6, N)))
            files = [kind.encode(v) for v in (x, y, w)]
            z = np.zeros((len(cases), N), files[0].dtype)
            ok(k.run(folder, text, [*files, z], "--numerics", numerics))
            result = kind.decode(k.result(folder, "z"))
            x, y, w = (v.astype(np.float64) for v in (x, y, w))
            for row, (body, reference, units) in enumerate(cases):
                real = reference(x, y, w)
                expected = kind.round(real.astype(np.float32)).astype(np.float64)
                if element == "f16":
                    expected = expected.astype(np.float16).astype(np.float64)
                error = np.abs(result[row] - expected)
                bad = error > units * kind.unit(expected)
                assert not bad.any(), (
                    element,
                    numerics,
                    body,
                    x[bad][:3],
                    y[bad][:3],
                    result[row][bad][:3],
                    expected[bad][:3],
                )


#
# Integers
#


def int_cases(width: int, element: str) -> list[tuple[str, Callable]]:
    """Body, and reference on Python integers x, y (signed), s (a shift)."""

    def u(x: int) -> int:
        return x % (1 << width)

    def trunc_div(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    cases: list[tuple[str, Callable]] = [
        (binary("arith.addi"), lambda x, y, s: x + y),
        (binary("arith.subi"), lambda x, y, s: x - y),
        (binary("arith.muli"), lambda x, y, s: x * y),
        (binary("arith.divsi"), lambda x, y, s: trunc_div(x, y)),
        (binary("arith.divui"), lambda x, y, s: u(x) // u(y)),
        (binary("arith.floordivsi"), lambda x, y, s: x // y),
        (binary("arith.ceildivsi"), lambda x, y, s: -(-x // y)),
        (binary("arith.ceildivui"), lambda x, y, s: -(-u(x) // u(y))),
        (binary("arith.remsi"), lambda x, y, s: x - y * trunc_div(x, y)),
        (binary("arith.remui"), lambda x, y, s: u(x) % u(y)),
        (binary("arith.andi"), lambda x, y, s: x & y),
        (binary("arith.ori"), lambda x, y, s: x | y),
        (binary("arith.xori"), lambda x, y, s: x ^ y),
        ("%r = arith.shli %x_d, %w_d : T", lambda x, y, s: x << s),
        ("%r = arith.shrsi %x_d, %w_d : T", lambda x, y, s: x >> s),
        ("%r = arith.shrui %x_d, %w_d : T", lambda x, y, s: u(x) >> s),
        (binary("arith.minsi"), lambda x, y, s: min(x, y)),
        (binary("arith.maxsi"), lambda x, y, s: max(x, y)),
        (binary("arith.minui"), lambda x, y, s: min(u(x), u(y))),
        (binary("arith.maxui"), lambda x, y, s: max(u(x), u(y))),
        (unary("math.absi"), lambda x, y, s: abs(x)),
        (
            "%c = arith.constant dense<3> : T\n    %r = arith.addi %x_d, %c : T",
            lambda x, y, s: x + 3,
        ),
    ]
    for predicate, holds in [
        ("eq", lambda x, y: x == y),
        ("ne", lambda x, y: x != y),
        ("slt", lambda x, y: x < y),
        ("sle", lambda x, y: x <= y),
        ("sgt", lambda x, y: x > y),
        ("sge", lambda x, y: x >= y),
        ("ult", lambda x, y: u(x) < u(y)),
        ("ule", lambda x, y: u(x) <= u(y)),
        ("ugt", lambda x, y: u(x) > u(y)),
        ("uge", lambda x, y: u(x) >= u(y)),
    ]:
        cases.append(
            (
                f"%c = arith.cmpi {predicate}, %x_d, %y_d : T\n    %r = arith.select %c, %x_d, %w_d : tensor<65xi1>, T",
                lambda x, y, s, holds=holds: x if holds(x, y) else s,
            )
        )
    if element == "index":
        for signed in [True, False]:
            cast = "index_cast" if signed else "index_castui"
            cases.append(
                (
                    f"%c = arith.{cast} %x_d : T to tensor<65xi16>\n    %r = arith.{cast} %c : tensor<65xi16> to T",
                    lambda x, y, s, signed=signed: (
                        (x + signed * 2**15) % 2**16 - signed * 2**15
                    ),
                )
            )
        return cases
    if width < 64:
        for ext, value in [("extsi", lambda x: x), ("extui", u)]:
            cases.append(
                (
                    f"%c = arith.{ext} %x_d : T to tensor<65xi64>\n    %h = arith.constant dense<1> : tensor<65xi64>\n"
                    "    %e = arith.shrsi %c, %h : tensor<65xi64>\n    %r = arith.trunci %e : tensor<65xi64> to T",
                    lambda x, y, s, value=value: value(x) >> 1,
                )
            )
    return cases


def integers(folder: str) -> None:
    rng = np.random.default_rng(72)
    for element, dtype in [
        ("i8", np.int8),
        ("i16", np.int16),
        ("i32", np.int32),
        ("i64", np.int64),
        ("index", np.int64),
    ]:
        width = np.dtype(dtype).itemsize * 8
        info = np.iinfo(dtype)
        cases = int_cases(width, element)
        x = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
        y = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
        y[::3] = rng.integers(-9, 9, len(y[::3]))
        y[(y == 0) | (y == -1)] = 2
        y[:7] = x[:7]
        y[y == 0] = 5
        s = rng.integers(0, width - 1, N).astype(dtype)
        z = np.zeros((len(cases), N), dtype)
        ok(k.run(folder, program(element, [b for b, _ in cases]), [x, y, s, z]))
        result = k.result(folder, "z")
        for row, (body, reference) in enumerate(cases):
            for i in range(N):
                value = reference(int(x[i]), int(y[i]), int(s[i]))
                value = (value + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)
                assert result[row, i] == value, (element, body, x[i], y[i], s[i])


def booleans(folder: str) -> None:
    rng = np.random.default_rng(73)
    cases: list[tuple[str, Callable]] = [
        (binary("arith.andi"), lambda x, y, w: x & y),
        (binary("arith.ori"), lambda x, y, w: x | y),
        (binary("arith.xori"), lambda x, y, w: x ^ y),
        (binary("arith.addi"), lambda x, y, w: x ^ y),
        (binary("arith.muli"), lambda x, y, w: x & y),
        (binary("arith.maxui"), lambda x, y, w: x | y),
        (binary("arith.maxsi"), lambda x, y, w: x & y),
        (binary("arith.cmpi eq,"), lambda x, y, w: x == y),
        (binary("arith.cmpi ult,"), lambda x, y, w: ~x & y),
        (binary("arith.cmpi slt,"), lambda x, y, w: x & ~y),
        ("%r = arith.select %x_d, %y_d, %w_d : T, T", np.where),
        (
            "%c = arith.extui %x_d : T to tensor<65xi32>\n    %h = arith.constant dense<1> : tensor<65xi32>\n"
            "    %e = arith.shrui %c, %h : tensor<65xi32>\n    %r = arith.trunci %e : tensor<65xi32> to T",
            lambda x, y, w: np.zeros_like(x),
        ),
        (
            "%c = arith.extsi %x_d : T to tensor<65xi32>\n    %h = arith.constant dense<1> : tensor<65xi32>\n"
            "    %e = arith.shrui %c, %h : tensor<65xi32>\n    %r = arith.trunci %e : tensor<65xi32> to T",
            lambda x, y, w: x,
        ),
    ]
    x, y, w = rng.integers(0, 2, (3, N)).astype(bool)
    z = np.zeros((len(cases), N), bool)
    ok(k.run(folder, program("i1", [b for b, _ in cases]), [x, y, w, z]))
    for row, (body, reference) in enumerate(cases):
        assert (k.result(folder, "z")[row] == reference(x, y, w)).all(), body
