# SPDX-License-Identifier: Apache-2.0
"""Functions tile by tile, as hints ask: numpy's values, and the bits of the whole.

Sums are of small integers, which fp32 holds exactly, so that only the last rounding,
to 10 bits, is left. Odd sizes have a last tile that is smaller than the others.
"""

import re

import numpy as np
import pytest
from commands import needs_tools
from graph_text import NAMES, Graph, hint, plan, run_program

pytestmark = needs_tools


@pytest.fixture
def rng():
    return np.random.default_rng(20260605)


# --- reductions over tiles compute what numpy computes ---


def check_values(graph, expected, folder, tolerance=2.0**-9):
    program = plan(graph.text())
    assert "scf.for" in program.split("func.func private")[0], "no loop over tiles"
    found = run_program(program, graph, folder, "--check=full")
    for actual, exact in zip(found, expected, strict=True):
        actual, exact = actual.astype(float), np.asarray(exact, float)
        bound = tolerance * np.maximum(abs(exact), abs(exact).max())
        wrong = ~(abs(actual - exact) <= bound)
        assert actual.shape == exact.shape and not wrong.any(), graph.text()


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1.0, None), (0.5, None), (1.0, 1.0), (0.5, 2.0)]
)
@pytest.mark.parametrize(
    ("m", "n", "k", "tiles"), [(5, 70, 256, 4), (64, 64, 128, 2), (130, 1, 512, 8)]
)
def test_matmul_along_k(m, n, k, tiles, alpha, beta, rng, tmp_path):
    graph = Graph()
    x, y = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
    inputs = [graph.argument(x), graph.argument(y)]
    expected = alpha * (x @ y)
    attributes = f"alpha = {alpha} : f64, {hint((2, tiles))}"
    if beta is not None:
        bias = rng.integers(-2, 3, (n,))
        inputs.append(graph.argument(bias))
        expected = expected + beta * bias
        attributes += f", beta = {beta} : f64, has_bias"
    graph.results = [graph.op("matmul", inputs, (m, n), attributes=attributes)]
    check_values(graph, [expected], tmp_path)


REDUCTIONS = {
    name: getattr(np, name)
    for name in ("sum", "mean", "max", "min", "prod", "any", "all")
}


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    ("name", "element"),
    [
        (name, element)
        for name in REDUCTIONS
        for element in ("f16", "f32", "i64")
        if element != "i64" or name not in ("mean", "any", "all")
    ],
)
def test_reduction(name, element, dim, rng, tmp_path):
    graph, shape = Graph(), (192, 320)
    x = rng.integers(-9, 10, shape)
    if name in ("any", "all"):
        x = (rng.random(shape) < 0.01) ^ (name == "all")
    if name == "prod":
        x = np.where(rng.random(shape) < 0.98, 1, rng.integers(1, 3, shape))
    argument = graph.argument(x, element)
    out = "i1" if name in ("any", "all") else element
    keep = (1 if dim == 0 else 192, 320 if dim == 0 else 1)
    attributes = f"dims = array<i64: {dim}>, {hint((dim, 3 if dim == 0 else 5))}"
    graph.results = [graph.op(name, [argument], keep, out, attributes)]
    check_values(graph, [REDUCTIONS[name](x, axis=dim, keepdims=True)], tmp_path)


def test_several_in_one_loop(rng, tmp_path):
    """An exponential, its sum and its largest."""
    graph = Graph()
    x = rng.standard_normal((64, 256))
    argument = graph.argument(x)
    e = graph.op("exp", [argument], (64, 256), attributes=hint((1, 4)))
    reduce = f"dims = array<i64: 1>, {hint((1, 4))}"
    s = graph.op("sum", [e], (64, 1), "f32", reduce)
    m = graph.op("max", [e], (64, 1), "f16", reduce)
    graph.results = [e, s, m]
    y = np.exp(x.astype(np.float16).astype(float))
    expected = [y, y.sum(1, keepdims=True), y.max(1, keepdims=True)]
    check_values(graph, expected, tmp_path, 2.0**-8)


def test_along_k_inside_of_a_loop_over_rows(rng, tmp_path):
    graph = Graph()
    x, y = rng.integers(-2, 3, (128, 256)), rng.integers(-2, 3, (256, 64))
    inputs = [graph.argument(x), graph.argument(y)]
    both = hint((0, 4), (2, 2))
    graph.results = [graph.op("matmul", inputs, (128, 64), attributes=both)]
    check_values(graph, [x @ y], tmp_path)


@pytest.mark.parametrize(
    ("rows", "columns", "tiles", "causal"),
    [(64, 512, 4, 0), (70, 256, 2, 1), (3, 192, 3, 0), (63, 450, 3, 1)],
)
def test_attention(rows, columns, tiles, causal, rng, tmp_path):
    """A softmax that is rescaled from tile to tile."""
    graph = Graph()
    graph.argument(rng.standard_normal((1, 2, rows, 64)))
    graph.argument(rng.standard_normal((1, 2, columns, 64)) * 2)
    graph.argument(rng.standard_normal((1, 2, columns, 64)))
    q, k, v = (array.astype(float) for array in graph.inputs)
    triangle = np.triu(np.full((rows, columns), -np.inf), 1)
    scores = q @ k.transpose(0, 1, 3, 2) * 0.125
    if causal:
        scores += triangle
    e = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (e / e.sum(-1, keepdims=True)) @ v
    wide, shape, one = (1, 2, rows, columns), (1, 2, rows, 64), (1, 2, rows, 1)
    over_columns = hint((3, tiles))
    reduce = f"dims = array<i64: 3>, {over_columns}"
    bias = "affine_map<(a,b,c,d,e) -> (c,d)>, " if causal else ""
    inputs = graph.arguments[:2]
    values = graph.arguments[2]
    if causal:
        inputs.append(graph.argument(triangle))
    s = graph.op(
        "matmul",
        inputs,
        wide,
        attributes="maps = [affine_map<(a,b,c,d,e) -> (a,b,c,e)>, "
        f"affine_map<(a,b,c,d,e) -> (a,b,d,e)>, {bias}"
        "affine_map<(a,b,c,d,e) -> (a,b,c,d)>], "
        f"extents = array<i64: 1, 2, {rows}, {columns}, 64>, "
        + ("has_bias, " if causal else "")
        + f"alpha = 0.125 : f64, {over_columns}",
    )
    m = graph.op("max", [s], one, "f16", reduce)
    x = graph.op("exp_sub", [s, m], wide, "f16", over_columns)
    t = graph.op("sum", [x], one, "f32", reduce)
    w = graph.op(
        "matmul",
        [x, values],
        shape,
        attributes="maps = [affine_map<(a,b,c,d,e) -> (a,b,c,e)>, "
        "affine_map<(a,b,c,d,e) -> (a,b,e,d)>, affine_map<(a,b,c,d,e) -> (a,b,c,d)>], "
        f"extents = array<i64: 1, 2, {rows}, 64, {columns}>, {hint((4, tiles))}",
    )
    graph.results = [graph.op("div", [w, t], shape)]
    check_values(graph, [expected], tmp_path, 2.0**-7)


# --- tiles give the bits of the whole ---

HINTS = re.compile(r"(, )?spyre_graph.tile_hints = \[[^\]]*\]")


def check_bits(graph, folder, checks="full"):
    tiled = plan(graph.text())
    whole = plan(HINTS.sub("", graph.text()))
    assert tiled != whole, "no tiles"

    def bits(program, name):
        found = run_program(program, graph, folder / name, f"--check={checks}")
        # There is one NaN.
        return [np.where(x == x, x, np.nan).astype(x.dtype).tobytes() for x in found]

    assert bits(tiled, "tiled") == bits(whole, "whole"), graph.text()


def ties(rng, shape, element: str):
    """Few different values, so that many are equal."""
    if element == "i1":
        return rng.random(shape) < rng.choice([0.02, 0.98])
    x = rng.integers(-3, 4, shape)
    if element == "i64":
        return x
    x = x.astype(np.float64)
    x[rng.random(shape) < 0.02] = -np.inf
    x[rng.random(shape) < 0.02] = np.inf
    x[rng.random(shape) < 0.01] = np.nan
    x[..., 0] = -np.inf
    x[0] = np.inf
    return x


@pytest.mark.parametrize(
    ("shape", "dim", "tiles"),
    [
        ((65, 130), 0, 3),
        ((63, 200), 1, 2),
        ((127, 64), 0, 127),
        ((3, 449), 1, 3),
        ((128, 1), 0, 4),
    ],
)
@pytest.mark.parametrize(
    ("name", "element"),
    [
        (name, element)
        for name in ("argmax", "argmin", "max", "min")
        for element in ("f16", "f32", "i64", "i1")
        if element != "i1" or name.startswith("arg")
    ],
)
def test_extremum(name, element, shape, dim, tiles, rng, tmp_path):
    graph = Graph()
    argument = graph.argument(ties(rng, shape, element), element)
    keep = tuple(1 if d == dim else n for d, n in enumerate(shape))
    attributes = f"dims = array<i64: {dim}>, {hint((dim, tiles))}"
    out = "i64" if name.startswith("arg") else element
    graph.results = [graph.op(name, [argument], keep, out, attributes)]
    check_bits(graph, tmp_path)


@pytest.mark.parametrize("tiles", [2, 5])
def test_argmax_over_both_dimensions(tiles, rng, tmp_path):
    graph = Graph()
    argument = graph.argument(ties(rng, (5, 67), "f16"))
    attributes = f"dims = array<i64: 0, 1>, {hint((0, tiles))}"
    graph.results = [graph.op("argmax", [argument], (1, 1), "i64", attributes)]
    check_bits(graph, tmp_path)


@pytest.mark.parametrize(
    ("rows", "columns", "tiles"), [(65, 70, 4), (127, 63, 3), (7, 130, 3), (63, 1, 2)]
)
def test_values_on_both_sides_of_a_loop(rows, columns, tiles, rng, tmp_path):
    graph, shape = Graph(), (rows, columns)
    cut = hint((0, tiles))
    argument = graph.argument(rng.standard_normal(shape))
    a = graph.op("exp", [argument], shape, attributes=cut)
    b = graph.op("neg", [a], shape, attributes=cut)
    c = graph.op("mul", [a, b], shape, attributes=cut)
    graph.results = [b, graph.op("add", [b, c], shape)]
    check_bits(graph, tmp_path)


@pytest.mark.parametrize(("rows", "tiles"), [(1024, 2), (1300, 3)])
def test_a_tile_that_is_read_twice_is_copied(rows, tiles, rng, tmp_path):
    graph, shape, cut = Graph(), (rows, 1024), hint((0, tiles))
    x = graph.argument(rng.standard_normal(shape))
    graph.results = [
        graph.op(name, [x], shape, attributes=cut) for name in ("abs", "neg")
    ]
    copied = plan(graph.text(), "to-ktir=false")
    assert re.search(r"scf\.for(.|\n)*spyre_graph\.identity ins\(%subview", copied)
    check_bits(graph, tmp_path)


@pytest.mark.parametrize(
    ("m", "n", "k", "levels"),
    [
        (65, 200, 63, [(0, 3), (1, 2)]),
        (127, 65, 450, [(2, 3)]),
        (130, 449, 130, [(0, 4), (1, 3), (2, 2)]),
    ],
)
def test_matmul_in_loops(m, n, k, levels, rng, tmp_path):
    graph = Graph()
    x, y = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
    inputs = [graph.argument(x), graph.argument(y)]
    graph.results = [graph.op("matmul", inputs, (m, n), attributes=hint(*levels))]
    check_bits(graph, tmp_path)


@pytest.mark.parametrize("way", ["taken apart", "joined"])
@pytest.mark.parametrize(
    ("heads", "width", "tiles", "dim"),
    [
        # Along the columns, and along the rows.
        (4, 64, 2, 1),
        (5, 64, 3, 1),
        (6, 128, 6, 1),
        (5, 7, 3, 0),
        (3, 63, 3, 0),
        (8, 1, 3, 0),
    ],
)
def test_heads(heads, width, tiles, dim, way, rng, tmp_path):
    both = f"h * {width} + d"
    quotient, rest = f"c floordiv {width}, c mod {width}", 65
    if dim == 0:
        flat, apart = (heads * width, rest), (heads, width, rest)
        taken, joined = f"(h, d, a) -> ({both}, a)", f"(c, a) -> ({quotient}, a)"
    else:
        flat, apart = (rest, heads * width), (rest, heads, width)
        taken, joined = f"(a, h, d) -> (a, {both})", f"(a, c) -> (a, {quotient})"
    before, after, maps, step = {
        "taken apart": (flat, apart, taken, width),
        "joined": (apart, flat, joined, 1),
    }[way]
    graph = Graph()
    cut = f"spyre_graph.tile_hints = [array<i64: 0, {dim}, {tiles}, {step}>]"
    argument = graph.argument(rng.standard_normal(before))
    a = graph.op("exp", [argument], before, attributes=cut)
    v = graph.view(a, after, maps)
    graph.results = [graph.op("neg", [v], after, attributes=cut)]
    check_bits(graph, tmp_path)


@pytest.mark.parametrize("is_result", [True, False])
@pytest.mark.parametrize("way", ["scatter", "identity"])
def test_part_of_an_argument(way, is_result, rng, tmp_path):
    """Tiles have what the argument has where nothing is written to them."""
    graph, cut = Graph(), hint((0, 3))
    before, row = rng.integers(-9, 9, (7, 9, 65)), rng.integers(-9, 9, (7, 1, 65))
    whole, source = graph.argument(before), graph.argument(row)
    after = before.copy()
    after[:, 4:5] = row
    inputs, same = [source], "affine_map<(i, j, k) -> (i, j, k)>"
    if way == "scatter":
        inputs.append(graph.argument([4], "i64"))
        at = "affine_map<(i, j, k) -> (j)>, affine_map<(i, j, k) -> (i, 0, k)>"
        attributes = f"axis = 1 : i64, maps = [{same}, {at}]"
    else:
        attributes = f"maps = [{same}, affine_map<(i, j, k) -> (i, j + 4, k)>]"
    attributes += f", extents = array<i64: 7, 1, 65>, {cut}"
    updated = graph.op(way, inputs, (), attributes=attributes, init=whole)
    negated = graph.op("neg", [updated], before.shape, attributes=cut)
    graph.results = [updated, negated] if is_result else [negated]
    check_values(graph, [after, -after] if is_result else [-after], tmp_path)


def unusual_rows(columns: int, element: str) -> np.ndarray:
    """Rows whose exponentials below the maximum are 0, so that all sums are exact."""
    inf, half = np.inf, columns // 2
    least = np.finfo(NAMES[element][1]).min
    low = -3.2e38 if element == "f32" else -6.5e4
    # What most of the row is, where it is something else, and what.
    rows = [(value, 0, value) for value in (-inf, low, least, inf, np.nan, 7)]
    for first, second in [(-inf, 5), (-inf, low), (-inf, least), (low, least)]:
        rows.append((first, slice(half, None), second))
        rows.append((second, slice(half, None), first))
    for place in (0, half, columns - 1):
        rows += [(value, place, inf) for value in (1, -inf)]
        rows += [(value, place, np.nan) for value in (1, -inf)]
        rows += [(-inf, place, 3), (-200, place, 3), (least, place, -inf)]
    x = np.empty((len(rows), columns))
    for row, (value, place, other) in zip(x, rows, strict=True):
        row[:] = value
        row[place] = other
    return x


@pytest.mark.parametrize(("columns", "tiles"), [(192, 3), (256, 4), (450, 3), (130, 2)])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_softmax_of_unusual_rows(element, columns, tiles, rng, tmp_path):
    """The maximum, the sum, its logarithm, and what attention makes of values."""
    graph = Graph()
    x = unusual_rows(columns, element)
    argument = graph.argument(-x, element)
    v = graph.argument(rng.integers(-2, 3, x.shape), element)
    one = (len(x), 1)
    cut = hint((1, tiles))
    reduce = f"dims = array<i64: 1>, {cut}"
    score = graph.op("neg", [argument], x.shape, element, cut)
    m = graph.op("max", [score], one, element, reduce)
    e = graph.op("exp_sub", [score, m], x.shape, element, cut)
    s = graph.op("sum", [e], one, "f32", reduce)
    scaled = f"scale = 1.0 : f64, {reduce}"
    w = graph.op("sum_products", [e, v], one, "f32", scaled)
    ln = graph.op("log", [s], one, "f32")
    total = graph.op("add", [m, ln], one, element)
    mean = graph.op("div", [w, s], one, element)
    graph.results = [m, total, mean]
    # A full check stops where a NaN is made.
    check_bits(graph, tmp_path, checks="bounds")
