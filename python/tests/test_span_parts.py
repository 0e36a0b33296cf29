# SPDX-License-Identifier: Apache-2.0
"""Small graphs on a device whose cores address little of a tensor.

Plans are made for the same small span, and every one must have been cut for it; the
numbers are compared with numpy's.
"""

import json

import numpy as np
import pytest
from commands import arguments, needs_tools, refused
from graph_text import NAMES, Graph, plan, run_program

pytestmark = needs_tools


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def numbers(rng, shape) -> np.ndarray:
    return rng.integers(-100, 101, shape).astype(np.float16)


def cut(graph, span, folder):
    """The program, and the options that give it the device that it is for."""
    text, device = graph.text(), folder / "device.json"
    whole, parts = (
        plan(text, f"to-ktir=false{options}") for options in ("", f" max-span={span}")
    )
    assert whole != parts, "is not cut"
    device.write_text(json.dumps({"maxSpanBytes": span}))
    return plan(text, f"max-span={span}"), ["--device", device, "--check=full"]


def check(graph, span, expected, folder):
    program, flags = cut(graph, span, folder)
    (found,) = run_program(program, graph, folder, *flags)
    expected = np.asarray(expected).astype(np.float16)
    assert found.shape == expected.shape
    assert np.array_equal(found, expected), graph.text()


@pytest.mark.parametrize("is_read", [False, True], ids=["written", "read"])
@pytest.mark.parametrize(
    ("rows", "columns", "span"), [(64, 1024, 1 << 14), (63, 960, 1 << 14)]
)
def test_flattened(rows, columns, span, is_read, rng, tmp_path):
    """Rows that follow each other in the result, far apart in the argument."""
    graph, x, flat = Graph(), numbers(rng, (rows, columns)), (rows * columns,)
    maps = f"(i) -> (i floordiv {columns}, i mod {columns})"
    result = graph.op("neg", [graph.view(graph.argument(x), flat, maps)], flat)
    expected = (-x).ravel()
    if is_read:
        result = graph.op("add", [result] * 2, flat)
        expected = expected * np.float16(2)
    graph.results = [result]
    check(graph, span, expected, tmp_path)


@pytest.mark.parametrize(
    ("rows", "columns", "span"), [(1025, 259, 140000), (1087, 261, 150000)]
)
def test_reshaped(rows, columns, span, rng, tmp_path):
    """Rows that go on in the next one."""
    graph, x, to = Graph(), numbers(rng, (rows, columns)), (columns, rows)
    index = f"i * {rows} + j"
    maps = f"(i, j) -> (({index}) floordiv {columns}, ({index}) mod {columns})"
    view = graph.view(graph.argument(x), to, maps)
    graph.results = [graph.op("neg", [view], to)]
    check(graph, span, -x.reshape(to), tmp_path)


def copy(graph, part, init, offsets):
    names = [f"d{dim}" for dim in range(len(part.shape))]
    loops = ", ".join(names)
    places = ", ".join(f"{d} + {o}" for d, o in zip(names, offsets, strict=True))
    maps = f"[affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({places})>]"
    extents = ", ".join(map(str, part.shape))
    attributes = f"maps = {maps}, extents = array<i64: {extents}>"
    return graph.op("identity", [part], init.shape, attributes=attributes, init=init)


@pytest.mark.parametrize(
    ("shapes", "dim", "span"),
    [
        ([(5003,), (3001,)], 0, 1024),
        ([(5003,), (1059,), (2063,), (1,)], 0, 1024),
        ([(65, 1031), (65, 259)], 1, 17000),
        ([(3, 33, 515), (3, 33, 515)], 2, 13000),
    ],
    ids=str,
)
def test_joined(shapes, dim, span, rng, tmp_path):
    """Parts that begin inside a stick."""
    graph, parts = Graph(), [numbers(rng, shape) for shape in shapes]
    expected = np.concatenate(parts, dim)
    result, offset = graph.empty(expected.shape), 0
    for part in map(graph.argument, parts):
        offsets = [offset if d == dim else 0 for d in range(len(part.shape))]
        result = copy(graph, part, result, offsets)
        offset += part.shape[dim]
    graph.results = [result]
    check(graph, span, expected, tmp_path)


def test_padded(rng, tmp_path):
    graph, x = Graph(), numbers(rng, (131, 1031))
    expected = np.pad(x, ((3, 4), (1, 2)))
    filled = graph.op("fill", [], expected.shape, attributes="immediates = [0.0 : f32]")
    graph.results = [copy(graph, graph.argument(x), filled, (3, 1))]
    check(graph, 34000, expected, tmp_path)


@pytest.mark.parametrize(
    ("shape", "span"), [((5, 190, 7, 131), 250000), ((3, 65, 5, 70), 60000)], ids=str
)
def test_permuted(shape, span, rng, tmp_path):
    """A stick of the result is from planes that are far apart."""
    graph, x = Graph(), numbers(rng, shape)
    expected = x.transpose(3, 0, 2, 1)
    maps = "(a, b, c, d) -> (b, d, c, a)"
    view = graph.view(graph.argument(x), expected.shape, maps)
    graph.results = [graph.op("identity", [view], expected.shape)]
    check(graph, span, expected, tmp_path)


@pytest.mark.parametrize(
    ("batch", "m", "k", "n", "span"),
    [
        (64, 16, 16, 16, 1 << 14),
        (63, 7, 65, 33, 1 << 15),
        (1, 130, 640, 700, 1 << 18),
    ],
)
def test_multiplied(batch, m, k, n, span, rng, tmp_path):
    """A stick of x is from rows of y that are far apart."""
    graph = Graph()
    x = rng.integers(-3, 4, (batch, m, k)).astype(np.float16)
    y = rng.integers(-3, 4, (batch, k, n)).astype(np.float16)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    inputs = [graph.argument(x), graph.argument(y)]
    graph.results = [graph.op("matmul", inputs, expected.shape)]
    check(graph, span, expected, tmp_path)


def gather(table, index):
    graph = Graph()
    inputs = [graph.argument(table), graph.argument(index, "i64")]
    shape = (*index.shape, *table.shape[1:])
    graph.results = [graph.op("gather", inputs, shape, attributes="axis = 0 : i64")]
    return graph


@pytest.mark.parametrize(
    ("rows", "columns", "indices", "span"),
    [
        (1031, 130, (77,), 50000),
        (1024, 64, (5, 33), 33000),
        (2049, 259, (3, 65), 100000),
        (131, 1, (1,), 4000),
    ],
    ids=str,
)
def test_gathered(rows, columns, indices, span, rng, tmp_path):
    """Any row of a table whose parts alone are within reach."""
    table = numbers(rng, (rows, columns))
    index = rng.integers(0, rows, indices)
    # On both sides of each place where parts may meet.
    index.flat[: min(index.size, 4)] = [0, rows - 1, rows // 2, 1][: index.size]
    check(gather(table, index), span, table[index], tmp_path)


@pytest.mark.parametrize("row", [-1, 1031, 5000])
def test_gathered_row_that_is_not_there(row, rng, tmp_path):
    graph = gather(numbers(rng, (1031, 130)), np.array([3, row, 1030]))
    program, flags = cut(graph, 50000, tmp_path)
    (tmp_path / "program.mlir").write_text(program)
    values = arguments([*graph.inputs, "zeros"], tmp_path)
    said = refused("spyre-run", tmp_path / "program.mlir", *values, *flags)
    assert "index" in said


#: Shape, dimension and the bytes that a core reaches.
SCANS = [
    ((65, 1031), 1, 34000),
    ((63, 4099), 1, 17000),
    ((1, 4099), 1, 1024),
    ((65, 129), 1, 9000),
    ((1031, 129), 1, 9000),
    ((1031, 63, 65), 2, 40000),
    ((2, 1, 3, 2, 5, 1031), 5, 4000),
    ((65 * 64 + 1,), 0, 1024),
    ((8191,), 0, 512),
    ((3, 1031, 65), 1, 60000),
    ((5, 37, 7, 131), 1, 60000),
    ((131, 3, 700), 2, 60000),
    ((9281, 1), 0, 9000),
]


@pytest.mark.parametrize(
    ("shape", "dim", "span", "element"),
    [(*scan, "f32") for scan in SCANS]
    + [(*scan, element) for scan in SCANS[1::3] for element in ("f16", "i64")],
    ids=str,
)
def test_scanned(shape, dim, span, element, rng, tmp_path):
    """Rows that no core can address, or that lie too far apart.

    Sums in another order, or of rounded ones, have other bits; integers wrap. numpy does
    not have the bits of fp16, which the device rounds to a format of its own.
    """
    if element == "i64":
        x = rng.integers(-(1 << 31), 1 << 31, shape)
        expected = np.cumsum(x, dim).astype(np.int32).astype(np.int64)
    else:
        x = rng.standard_normal(shape).astype(NAMES[element][1])
        expected = np.cumsum(x, dim, dtype=np.float32)
    graph = Graph()
    along = f"dim = {dim} : i64"
    graph.results = [
        graph.op("cumsum", [graph.argument(x, element)], shape, element, along)
    ]
    program, flags = cut(graph, span, tmp_path)
    (found,) = run_program(program, graph, tmp_path, *flags)
    (whole,) = run_program(plan(graph.text()), graph, tmp_path / "whole")
    assert np.array_equal(found.view(np.uint8), whole.view(np.uint8))
    if element != "f16":
        assert np.array_equal(found, expected)
