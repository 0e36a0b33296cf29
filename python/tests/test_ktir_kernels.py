# SPDX-License-Identifier: Apache-2.0
"""Kernels as benchmarks/ktir writes them, at odd sizes, against numpy.

In both numerics, with the same bits in every check mode and for any number of threads.
"""

import sys

import numpy as np
import pytest
from commands import ROOT, needs_tools
from f16_values import ROUND, UNIT, check_close, half
from ktir_runs import however_run
from ktir_text import gather_program, scatter_program

sys.path.insert(0, str(ROOT / "benchmarks"))
from ktir import kernels as written

pytestmark = [needs_tools, pytest.mark.parametrize("numerics", ROUND)]


@pytest.fixture
def rng():
    return np.random.default_rng(51)


@pytest.mark.parametrize(
    ("rows", "columns", "cores", "block"),
    [(63, 65, 7, 3), (13, 1, 13, 1), (32, 100, 4, 8)],
)
def test_row_softmax(rows, columns, cores, block, numerics, rng, tmp_path):
    """Five operations on f16, each rounded once."""
    x = half(rng, rows, columns) * np.float16(3)
    program = written.softmax(rows, columns, cores, block)
    y = however_run(program, [x, np.zeros_like(x)], "y", tmp_path, numerics)
    r, unit = ROUND[numerics], UNIT[numerics]
    v = r(x)
    e = r(np.exp(r(v - v.max(1, keepdims=True)).astype(np.float64)))
    expected = r(e / r(e.astype(np.float64).sum(1, keepdims=True)))
    check_close(y, expected, 2 * unit * expected + 2.0**-24)


@pytest.mark.parametrize(
    ("rows", "columns", "cores", "block"),
    [(23, 65, 7, 1), (5, 127, 5, 1), (1, 64, 1, 1), (23, 65, 2, 4)],
)
def test_layernorm(rows, columns, cores, block, numerics, rng, tmp_path):
    x, w, b = half(rng, rows, columns), half(rng, columns), half(rng, columns)
    x += np.float16(0.5)
    program = written.layernorm(rows, columns, cores, block)
    y = however_run(program, [x, w, b, np.zeros_like(x)], "y", tmp_path, numerics)
    r, unit = ROUND[numerics], UNIT[numerics]
    v = r(x).astype(np.float64)
    centred = v - v.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    gain = np.abs(scale * r(w))
    product = centred * scale * r(w)
    # The mean, the variance's steps and the factors: half a unit each, those under
    # the root count half.
    bound = unit * (
        gain * np.abs(v.mean(1, keepdims=True))
        + 4 * np.abs(product)
        + 0.5 * np.abs(product + r(b))
    )
    check_close(y, product + r(b), bound + 2.0**-20)


@pytest.mark.parametrize(
    ("heads", "length", "width", "cores"), [(3, 35, 10, 7), (1, 5, 66, 5)]
)
def test_rope(heads, length, width, cores, numerics, rng, tmp_path):
    """Sums and products are exact but for their rounding."""
    x = half(rng, heads, length, width)
    angle = rng.uniform(0, 7, (length, width))
    cos, sin = np.cos(angle).astype(np.float16), np.sin(angle).astype(np.float16)
    program = written.rope(heads, length, width, cores)
    values = [x, cos, sin, np.zeros_like(x)]
    y = however_run(program, values, "y", tmp_path, numerics)
    r = ROUND[numerics]
    v, c, s = r(x), r(cos), r(sin)
    h = width // 2
    low, high = v[..., :h], v[..., h:]
    expected = np.concatenate(
        [
            r(r(low * c[:, :h]) - r(high * s[:, :h])),
            r(r(high * c[:, h:]) + r(low * s[:, h:])),
        ],
        -1,
    )
    assert (y == r(expected).astype(np.float16)).all()


@pytest.mark.parametrize(
    ("tokens", "heads", "groups", "width", "pages", "page", "cores"),
    [(3, 6, 2, 10, 5, 3, 3), (2, 4, 1, 33, 3, 7, 2)],
)
def test_paged_attention(
    tokens, heads, groups, width, pages, page, cores, numerics, rng, tmp_path
):
    q = half(rng, tokens, heads, width)
    keys, values = (half(rng, tokens * pages, page, groups, width) for _ in "kv")
    table = rng.permutation(tokens * pages).reshape(tokens, pages)
    program = written.paged_attention(tokens, heads, groups, width, pages, page, cores)
    arrays = [q, keys, values, table.astype(np.int32), np.zeros_like(q)]
    y = however_run(program, arrays, "y", tmp_path, numerics)
    r, unit = ROUND[numerics], UNIT[numerics]
    count = pages * page
    expected = np.empty(q.shape)
    bound = np.empty(q.shape)
    for token in range(tokens):
        for head in range(heads):
            group = head // (heads // groups)
            ks = r(keys)[table[token], :, group].reshape(count, width)
            vs = r(values)[table[token], :, group].reshape(count, width)
            s = r(ks.astype(np.float64) @ r(q)[token, head])
            s = r(s * r([width**-0.5]))
            e = r(np.exp(r(s - s.max()).astype(np.float64)))
            p = r(e / r([e.astype(np.float64).sum()])).astype(np.float64)
            expected[token, head] = p @ vs
            # A score one unit off moves its probability by as much.
            wrong = unit * (2 + 2 * np.abs(s).max())
            bound[token, head] = wrong * (p @ np.abs(vs))
    check_close(y, expected, bound + unit * np.abs(expected) + 2.0**-24)


MOVES = pytest.mark.parametrize(("rows", "count"), [(65, 1), (63, 21), (7, 7)])


def permutation(rng, rows, count):
    return rng.permutation(rows)[:count].astype(np.int32)


@MOVES
def test_gather(rows, count, numerics, rng, tmp_path):
    x, index = half(rng, rows, 128), permutation(rng, rows, count)
    program = gather_program(rows, count).replace("f32", "f16")
    values = [x, index, np.zeros((count, 128), np.float16)]
    y = however_run(program, values, "y", tmp_path, numerics)
    assert (y == ROUND[numerics](x)[index].astype(np.float16)).all()


@MOVES
def test_scatter(rows, count, numerics, rng, tmp_path):
    x, index = half(rng, rows, 128), permutation(rng, rows, count)
    source = half(rng, count, 128)
    program = scatter_program(rows, count).replace("f32", "f16")
    y = however_run(program, [source, index, x], "y", tmp_path, numerics)
    expected = ROUND[numerics](x)
    expected[index] = ROUND[numerics](source)
    assert (y == expected.astype(np.float16)).all()
