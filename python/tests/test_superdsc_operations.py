# SPDX-License-Identifier: Apache-2.0
"""Every device operation of a bundle gives what numpy gives, or an error that names it.

Longer than 600 lines: most of it is one table of the operations.
"""

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import sdsc_bundles
from commands import execute, needs_tools, refused, run
from float8_values import E4M3, to_e4m3

pytestmark = needs_tools

ROWS, COLUMNS, DEPTH, TOP = 8, 128, 5, 3
FP16, FP32, INT32 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32"
FP8, INT8 = "SEN143_FP8", "SENINT8"
NUMPY = {FP16: np.float16, FP32: np.float32, INT32: np.int32, INT8: np.int8}
STICK = {FP16: 64, FP32: 32, INT32: 32, FP8: 128, INT8: 128}


@dataclass
class Op:
    """One operation, or several that differ in their names only."""

    names: str
    #: Of the inputs as fp64 arrays; none: executing it is an error.
    function: Callable[..., Any] | None = None
    inputs: int = 1
    kind: str = "pointwise"
    constants: dict[str, Any] = field(default_factory=dict)
    #: Draws the inputs.
    low: float = -2.0
    high: float = 2.0
    formats: tuple[str, ...] = ()
    #: Names of functions, one per operation, in place of `function`.
    each: tuple[Callable[..., Any], ...] = ()


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def phi(x):
    return (1 + erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    k = math.sqrt(2 / math.pi)
    return x / 2 * (1 + np.tanh(k * (x + 0.044715 * x**3)))


def derivative(function, x):
    h = 1e-6
    return (function(x + h) - function(x - h)) / (2 * h)


def clamp(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def top(x):
    order = np.argsort(-x, axis=0, kind="stable")[:TOP]
    return np.take_along_axis(x, order, 0), order


def statistics(x):
    return np.stack([(x * x).sum(-1) / COLUMNS, x.sum(-1) / COLUMNS], -1)


def scale_and_shift(s):
    scale = 1 / np.sqrt(np.maximum(s[:, 0] - s[:, 1] ** 2, 0) + 2.0**-10)
    return np.stack([scale, -s[:, 1] * scale], -1)


#: How far each 4-bit number of a word is shifted, as a dimension beside the columns.
NIBBLES = 4 * np.arange(8)[:, None]


def last_index(x, extrema):
    """Where an element last was the extremum so far, along the first dimension."""
    rows = np.arange(len(x))[:, None]
    return np.maximum.accumulate(np.where(x == extrema, rows, 0))


def next_after(a, b):
    """DL16 has nine fraction bits."""
    return a + np.sign(b - a) * 2.0 ** (np.floor(np.log2(np.abs(a))) - 9)


OPS = [
    Op(
        "add biasadd sub mul realdiv maximum minimum",
        inputs=2,
        low=0.5,
        each=(
            np.add,
            np.add,
            np.subtract,
            np.multiply,
            np.divide,
            np.maximum,
            np.minimum,
        ),
    ),
    Op("revsub", lambda a, b: b - a, 2),
    Op("fnms", lambda a, b, c: c - a * b, 3),
    Op(
        "equal notequal greaterequal lesserequal",
        inputs=2,
        each=(np.equal, np.not_equal, np.greater_equal, np.less_equal),
    ),
    Op("where3", lambda a, b, c: np.where(a != 0, b, c), 3),
    Op(
        "abs exp fastexp log neg reciprocal rsqrt sigmoid fastsigmoid silu sqrt tanh",
        low=0.25,
        each=(
            np.abs,
            np.exp,
            np.exp,
            np.log,
            np.negative,
            np.reciprocal,
            lambda x: 1 / np.sqrt(x),
            sigmoid,
            sigmoid,
            lambda x: x * sigmoid(x),
            np.sqrt,
            np.tanh,
        ),
    ),
    Op("gelufwd", lambda x: x * phi(x)),
    Op("mish", lambda x: x * np.tanh(softplus(x))),
    Op(
        "relufwd relu6fwd",
        low=-8,
        high=8,
        each=(lambda x: np.maximum(x, 0), lambda x: clamp(x, 0, 6)),
    ),
    Op(
        "leakyrelufwd",
        lambda x: np.where(x > 0, x, 0.25 * x),
        constants={"slope": 0.25},
    ),
    Op(
        "softplus",
        lambda x: np.where(2 * x > 3, x, softplus(2 * x) / 2),
        constants={"softplusBeta": 2.0, "softplusThresh": 3.0},
    ),
    Op(
        "clip",
        lambda x: clamp(x, -0.5, 1.0),
        constants={"clipMin": -0.5, "clipMax": 1.0},
    ),
    Op("batchnormfwd", lambda x, a, b: x * a + b, 3),
    Op("identity", lambda x: x),
    Op("ReStickifyOpHBM", lambda x: x, kind="restickify"),
    Op("dl16tofp32", lambda x: x, kind="convert", formats=(FP16, FP32)),
    Op("fp32todl16", lambda x: x, kind="convert", formats=(FP32, FP16)),
    Op(
        "batchmatmul",
        lambda x, y: 2 * x @ y,
        2,
        kind="matmul",
        constants={"alpha": 2.0},
    ),
    Op(
        "sum max min absmax sumnonstick maxnonstick minnonstick absmaxnonstick",
        kind="reduction",
        each=2
        * (
            lambda x, axis: x.sum(axis),
            lambda x, axis: x.max(axis),
            lambda x, axis: x.min(axis),
            lambda x, axis: np.abs(x).max(axis),
        ),
    ),
    Op(
        "mean meannonstick",
        lambda x, axis: x.sum(axis) / 32,
        kind="reduction",
        constants={"scaling_factor": 1 / 32},
    ),
    Op(
        "exx2 exx2_zeromean",
        kind="statistics",
        constants={"exx2scale": 1 / COLUMNS},
        each=(statistics, lambda x: statistics(x) * [1, 0]),
    ),
    Op("layernormscale", scale_and_shift, kind="scale", constants={"eps": 2.0**-10}),
    Op(
        "layernormnorm",
        lambda x, s, w, b: (x * s[:, :1] + s[:, 1:]) * w + b,
        4,
        kind="normalise",
    ),
    Op(
        "quantscalepertoken",
        lambda x, axis: np.abs(x).max(axis) / 4,
        kind="reduction",
        constants={"mulConst": 0.25},
    ),
    Op(
        "quantscalepertokenfp8",
        lambda x, axis: clamp(np.abs(x).max(axis), 1.0, 1.875) / 4,
        kind="reduction",
        constants={"clipMin": 1.0, "clipMax": 1.875, "mulConst": 0.25},
    ),
    Op(
        "topkvalue topkindex",
        kind="topk",
        formats=(FP16, INT32),
        each=(lambda x: top(x)[0], lambda x: top(x)[1]),
    ),
    Op("greaterthan lesserthan", inputs=2, each=(np.greater, np.less)),
    Op(
        "floor ceil round trunc sign isnan sin cos tan erf expm1 log1p log2",
        low=0.25,
        high=1.5,
        each=(
            np.floor,
            np.ceil,
            np.round,
            np.trunc,
            np.sign,
            np.isnan,
            np.sin,
            np.cos,
            np.tan,
            erf,
            np.expm1,
            np.log1p,
            np.log2,
        ),
    ),
    Op(
        "floordiv truncdiv remainder pow",
        inputs=2,
        low=0.5,
        high=3.0,
        each=(
            lambda a, b: np.floor(a / b),
            lambda a, b: np.trunc(a / b),
            np.mod,
            np.power,
        ),
    ),
    Op(
        "logical_not logical_and logical_or logical_xor",
        kind="logical",
        each=(np.logical_not, np.logical_and, np.logical_or, np.logical_xor),
    ),
    Op(
        "bitwise_and bitwise_or bitwise_xor",
        inputs=2,
        low=-100,
        high=100,
        formats=(INT32, INT32, INT32),
        each=(
            lambda a, b: a.astype(int) & b.astype(int),
            lambda a, b: a.astype(int) | b.astype(int),
            lambda a, b: a.astype(int) ^ b.astype(int),
        ),
    ),
    Op("gelutanhfwd", gelu_tanh),
    Op("clip3", clamp, 3),
    Op("fma", lambda a, b, c: a * b + c, 3),
    Op("addcdiv", lambda a, b, c, d: a + d * b / c, 4, low=0.5),
    Op("expsub", lambda a, b: np.exp(a - b), 2),
    Op("normalize", lambda x, m, r, w, b: (x - m) * r * w + b, 5),
    Op(
        "wrapindex",
        lambda x: np.where(x < 0, x + 7, x),
        constants={"size": 7},
        low=-7,
        high=7,
        formats=(INT32, INT32),
    ),
    Op(
        "threshold_backward",
        lambda g, x: np.where(x <= 0.5, 0, g),
        2,
        constants={"threshold": 0.5},
    ),
    Op(
        "sigmoid_backward tanh_backward",
        inputs=2,
        each=(lambda g, y: g * (1 - y) * y, lambda g, y: g * (1 - y * y)),
    ),
    Op(
        "silu_backward gelubwd gelutanhbwd",
        inputs=2,
        each=(
            lambda g, x: g * derivative(lambda v: v * sigmoid(v), x),
            lambda g, x: g * derivative(lambda v: v * phi(v), x),
            lambda g, x: g * derivative(gelu_tanh, x),
        ),
    ),
    Op(
        "softplus_backward",
        lambda g, x: g * np.where(2 * x > 3, 1, sigmoid(2 * x)),
        2,
        constants={"softplusBeta": 2.0, "softplusThresh": 3.0},
    ),
    Op(
        "leaky_relu_backward",
        lambda g, x: g * np.where(x > 0, 1, 0.25),
        2,
        constants={"slope": 0.25},
    ),
    Op(
        "convert",
        lambda x: x,
        kind="convert",
        low=-100,
        high=100,
        formats=(INT32, FP32),
    ),
    Op(
        "constant",
        lambda: np.full((ROWS, COLUMNS), 1.5),
        0,
        constants={"immediate0": 1.5},
    ),
    Op(
        "iota",
        lambda: 0.5 + 2 * np.arange(ROWS)[:, None] * np.ones(COLUMNS),
        0,
        constants={"dim": 0, "start": 0.5, "step": 2.0},
    ),
    Op("tri", lambda x: np.triu(x, 2), constants={"diagonal": 2, "upper": 1}),
    Op(
        "sumsquares sumsquaresnonstick",
        lambda x, axis: (x * x).sum(axis) / (2 * (x.shape[axis] - 1)),
        kind="reduction",
        constants={"scale": 0.5, "correction": 1.0},
    ),
    Op(
        "sumproducts sumproductsnonstick",
        lambda a, b, axis: (a * b).sum(axis) / 8,
        2,
        kind="reduction",
        constants={"scale": 0.125},
    ),
    Op(
        "prod any all prodnonstick anynonstick allnonstick",
        kind="reduction",
        low=0.9375,
        high=1.0625,
        each=2
        * (
            lambda x, axis: x.prod(axis),
            lambda x, axis: (x != 0).any(axis),
            lambda x, axis: (x != 0).all(axis),
        ),
    ),
    Op(
        "argmax argmin argmaxnonstick argminnonstick",
        kind="reduction",
        formats=(FP16, INT32),
        each=2 * (lambda x, axis: x.argmax(axis), lambda x, axis: x.argmin(axis)),
    ),
    Op(
        "cumsum cummax cummin",
        constants={"dim": 0},
        each=(
            lambda x: x.cumsum(0),
            np.maximum.accumulate,
            np.minimum.accumulate,
        ),
    ),
    Op(
        "cummaxindex cumminindex",
        formats=(FP16, INT32),
        constants={"dim": 0},
        each=(
            lambda x: last_index(x, np.maximum.accumulate(x)),
            lambda x: last_index(x, np.minimum.accumulate(x)),
        ),
    ),
    Op("sort", lambda x: np.sort(x, 0), constants={"dim": 0, "descending": 0}),
    Op(
        "argsort",
        lambda x: np.argsort(-x, 0, kind="stable"),
        formats=(FP16, INT32),
        constants={"dim": 0, "descending": 1},
    ),
    Op("mantissa", lambda x: np.frexp(x)[0]),
    Op("exponent", lambda x: np.frexp(x)[1], formats=(FP16, INT32)),
    Op("nextafter", next_after, 2, low=0.5),
    Op(
        "flatindex",
        lambda a, b: np.where((a < 0) | (b < -7) | (b >= 7), -1, a * 7 + b % 7),
        2,
        constants={"size": 7},
        low=-9,
        high=9,
        formats=(INT32, INT32, INT32),
    ),
    Op("scatter scatter_add scatter_mul scatter_max scatter_min", kind="scatter"),
    Op("batchmatmulint4", inputs=2, kind="packed"),
    Op("conv2dfp8 conv2dint4 conv2dint8 depthwiseconv2dnative", inputs=2),
    Op("avgpoolfwd", constants={"nmap": 2.0}),
    Op("avgpoolnmapfwd maxpoolfwd maskbyindex"),
    Op("csqint4 csqint4wt csqint8mb qfp8mb"),
    Op(
        "int4todl16",
        lambda w: ((w[:, None].astype(int) >> NIBBLES) & 15) - 8,
        kind="unpack",
        constants={"dim": 1},
        low=-(2**31),
        high=2**31 - 1,
        formats=(INT32, FP16),
    ),
    Op("fp8todl16", lambda x: x, kind="convert", formats=(FP8, FP16)),
    Op("qfp8ch", to_e4m3, kind="convert", low=-600, high=600, formats=(FP16, FP8)),
    Op(
        "csqint8ch",
        lambda x: clamp(np.round(3.5 * x + 3), -128, 127),
        kind="convert",
        constants={"scaleact": 3.5, "shiftact": 3.0},
        low=-40,
        high=40,
        formats=(FP16, INT8),
    ),
]

#: test_packed_products.py runs these: arguments have no packed sticks. And
#: test_superdsc_convolutions.py runs conv2d.
ELSEWHERE = ["batchmatmulfp8", "batchmatmulint8", "conv2d", "csqint8wt", "qfp8wt"]


#: The 78 names of the specification.
PUBLISHED = """
    batchmatmul batchmatmulfp8 batchmatmulint4 batchmatmulint8
    conv2d conv2dfp8 conv2dint4 conv2dint8
    add batchnormfwd biasadd equal fnms greaterequal layernormnorm lesserequal maximum
    minimum mul notequal realdiv revsub sub where3
    abs clip exp fastexp fastsigmoid gelufwd identity layernormscale leakyrelufwd log
    mish neg reciprocal relufwd relu6fwd rsqrt sigmoid softplus silu sqrt tanh
    sum max min mean absmax
    sumnonstick maxnonstick minnonstick meannonstick absmaxnonstick
    exx2 exx2_zeromean quantscalepertoken quantscalepertokenfp8
    avgpoolfwd avgpoolnmapfwd depthwiseconv2dnative maxpoolfwd
    maskbyindex topkindex topkvalue
    csqint4 csqint4wt csqint8ch csqint8mb csqint8wt
    dl16tofp32 fp32todl16 fp8todl16 qfp8ch qfp8mb qfp8wt
    ReStickifyOpHBM
"""


def encode(value, fmt):
    """A constant's raw word: the value in fp32, integers as such."""
    if isinstance(value, int):
        return (INT32, value & 0xFFFFFFFF)
    return (FP32, struct.unpack("<I", struct.pack("<f", value))[0])


def build(op, name):
    """The files of a bundle, formats and shapes of its arguments."""
    nonstick = name.endswith("nonstick")
    formats = list(op.formats) or [FP16] * (op.inputs + 1)
    if op.kind == "topk":
        formats = [FP16, INT32 if name == "topkindex" else FP16]
    if op.kind in ("reduction", "topk") and len(formats) == 2:
        formats = [formats[0]] * op.inputs + formats[1:]
    if op.kind == "logical":
        formats = [FP16] * (2 if name == "logical_not" else 3)
    constants = [(key, *encode(value, "")) for key, value in op.constants.items()]
    dims = {"mb": (ROWS, 1), "out": (COLUMNS, 1)}
    order, stick = ["mb", "out"], {"out": 64}
    labels, more = [], {"constants": constants}
    shapes = [(ROWS, COLUMNS)] * len(formats)
    numbers, scales, orders = [], [{}] * len(formats), [order] * len(formats)
    sticks = [{"out": STICK[fmt]} for fmt in formats]
    if op.kind == "reduction":
        scales = [{}] * op.inputs + [{"mb": -1} if nonstick else {"out": -2}]
        shapes[-1] = (COLUMNS,) if nonstick else (ROWS,)
        more["reduction"] = True
    elif op.kind == "statistics":
        scales = [{}, {"out": -2}]
        shapes[-1] = (ROWS, 2)
        more["reduction"] = True
    elif op.kind == "scale":
        dims["out"] = (64, 1)
        scales = [{"out": -2}, {}]
        shapes = [(ROWS, 2)] * 2
    elif op.kind == "normalise":
        formats, sticks = [FP16] * 5, [stick] * 5
        scales = [{}, {"out": -2}, {"mb": -1}, {"mb": -1}, {}]
        orders = [order, order, ["out", "mb"], ["out", "mb"], order]
        shapes = [(ROWS, COLUMNS), (ROWS, 2), (COLUMNS,), (COLUMNS,), (ROWS, COLUMNS)]
    elif op.kind == "restickify":
        dims["mb"] = (64, 1)
        shapes = [(64, COLUMNS)] * 2
        orders, sticks = [order, ["out", "mb"]], [stick, {"mb": 64}]
    elif op.kind == "matmul":
        dims = {"mb": (ROWS, 1), "out": (64, 1), "in": (COLUMNS, 1)}
        orders = [["mb", "in"], ["in", "out"], ["mb", "out"]]
        sticks = [{"in": 64}, stick, stick]
        shapes = [(ROWS, COLUMNS), (64, COLUMNS), (ROWS, 64)]
        more["names"] = ["INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"]
    elif op.kind == "packed":
        dims = {"mb": (ROWS, 1), "out": (64, 1), "in": (COLUMNS, 1)}
        orders = [["mb", "in"], ["in", "out"], ["mb", "out"]]
        dims["in"] = (256, 1)
        sticks = [{"in": 256}, {"in": 4, "out": 64}, stick]
        formats = ["SENINT4", "SENINT4", FP16]
        more["names"] = ["INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"]
    elif op.kind == "unpack":
        dims = {"mb": (ROWS, 1), "x": (8, 1), "out": (COLUMNS, 1)}
        orders = [["mb", "out", "x"], ["x", "out", "mb"]]
        scales = [{"x": -1}, {}]
        shapes = [(ROWS, COLUMNS), (ROWS, 8, COLUMNS)]
    elif op.kind == "topk":
        dims = {"mb": (DEPTH, 1), "x": (TOP, 1), "out": (COLUMNS, 1)}
        orders = [["mb", "out", "x"], ["x", "out", "mb"]]
        scales = [{"x": -1}, {"mb": -1}]
        shapes = [(DEPTH, COLUMNS), (TOP, COLUMNS)]
    tensors = []
    for i, fmt in enumerate(formats):
        label = (orders[i], sticks[i])
        same = [
            n
            for n, known in enumerate(labels)
            if sorted(known[0]) == sorted(label[0]) and known[1] == label[1]
        ]
        numbers.append(same[0] if same else len(labels))
        if not same:
            labels.append(label)
        tensors.append(
            sdsc_bundles.tensor(
                orders[i], base=i << 34, scale=scales[i], label=numbers[i], fmt=fmt
            )
        )
    file = sdsc_bundles.sdsc(name, dims, labels, tensors, **more)
    files = {
        "sdsc_0.json": file,
        "bundle.mlir": sdsc_bundles.program("sdsc_0.json"),
    }
    return files, formats, shapes


def entries():
    for op in OPS:
        names = op.names.split()
        functions = op.each or [op.function] * len(names)
        yield from ((op, n, f) for n, f in zip(names, functions, strict=True))


ENTRIES = {name: (op, function) for op, name, function in entries()}
EXECUTED = [name for name, (_, function) in ENTRIES.items() if function]
# Scatters have tests of their own, with gathers.
REFUSED = [
    name
    for name, (op, function) in ENTRIES.items()
    if not function and op.kind != "scatter"
]


def draw(name, op, fmt, shape, random):
    if fmt == FP8:
        codes = random.integers(0, 0x7F, shape) | random.integers(0, 2, shape) << 7
        return codes.astype(np.uint8).view("V1")
    # Multiples of 1/64 below 8 are exact in every format.
    values = random.uniform(op.low, op.high, shape)
    # So are integers up to 1024.
    step = 64 if op.high <= 8 and fmt != INT32 else 1
    values = np.round(values * step) / step
    if name in ("equal", "notequal", "where3") or op.kind == "logical":
        values = np.round(values)
    if name.startswith(("any", "all")):
        values = values > 1
    return values.astype(NUMPY[fmt])


def to_numbers(array):
    is_float8 = array.dtype == np.dtype("V1")
    return E4M3[array.view(np.uint8)] if is_float8 else array.astype(np.float64)


@pytest.mark.parametrize("name", EXECUTED)
def test_values(name, tmp_path):
    op, function = ENTRIES[name]
    files, formats, shapes = build(op, name)
    sdsc_bundles.write(tmp_path / "bundle", files)
    if op.kind == "matmul":
        # Rows of the reduction.
        shapes[1] = shapes[1][::-1]
    random = np.random.default_rng(sum(map(ord, name)))
    inputs = [
        draw(name, op, fmt, shape, random)
        for fmt, shape in zip(formats, shapes, strict=True)
    ]
    out = execute(tmp_path / "bundle", inputs, tmp_path / "run")
    actual = to_numbers(out[f"arg{len(formats) - 1}"])
    axis = {"axis": 0 if name.endswith("nonstick") else 1}
    values = [to_numbers(array) for array in inputs[:-1]]
    exact = function(*values, **(axis if op.kind == "reduction" else {}))
    exact = np.asarray(exact, np.float64)
    assert actual.shape == exact.shape
    # One rounding to the format after fp32; sums of 128 terms before it.
    bits = {FP16: 10, FP32: 22}.get(formats[-1], 60)
    bound = np.abs(exact) * (2.0**-bits + 2.0**-17) + 2.0**-18
    if op.kind in ("statistics", "scale", "normalise"):
        bound = bound + 2.0**-16 * np.abs(exact).max()
    bad = np.abs(actual - exact) > bound
    assert not bad.any(), (np.argwhere(bad)[0], actual[bad][0], exact[bad][0])


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name, tmp_path):
    files, formats, _ = build(ENTRIES[name][0], name)
    sdsc_bundles.write(tmp_path, files)
    said = refused("spyre-run", tmp_path, *["--arg", "zeros"] * len(formats))
    refusal = "is known, but the toolchain cannot execute it"
    assert f"the device operation '{name}' {refusal}" in said


def test_published_names():
    published = PUBLISHED.split()
    assert len(set(published)) == 78
    assert [name for name in published if name not in ENTRIES] == ELSEWHERE
    assert len([name for name in published if name in REFUSED]) == 13


def test_no_name_is_left_out():
    def find(node):
        if isinstance(node, dict):
            yield from node.get("opFuncName", {}).get("enum", [])
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                yield from find(child)

    schema = json.loads(run("spyre-translate", "--print-superdsc-schema"))
    assert set(find(schema)) == set(ENTRIES) | set(ELSEWHERE)
