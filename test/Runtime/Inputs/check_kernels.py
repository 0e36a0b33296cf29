# SPDX-License-Identifier: Apache-2.0
"""Kernels as benchmarks/ktir writes them, at odd sizes, against numpy: in both
numerics, with the same bits in every check mode and for any number of threads.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from check_tiles import gather_program, scatter_program
from programs import ROUND, UNIT, check_close, everywhere, half

ROOT = os.path.dirname(os.path.abspath(__file__)) + "/../../.."
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from ktir import kernels as written  # noqa: E402


def row_softmax(folder: str) -> None:
    """Five operations on f16, each rounded once."""
    rng = np.random.default_rng(51)
    for rows, columns, cores, block in [
        (63, 65, 7, 3),
        (13, 1, 13, 1),
        (32, 100, 4, 8),
    ]:
        x = half(rng, rows, columns) * np.float16(3)
        program = written.softmax(rows, columns, cores, block)
        for numerics, y in everywhere(folder, program, [x, np.zeros_like(x)], "y"):
            r, unit = ROUND[numerics], UNIT[numerics]
            v = r(x)
            e = r(np.exp(r(v - v.max(1, keepdims=True)).astype(np.float64)))
            expected = r(e / r(e.astype(np.float64).sum(1, keepdims=True)))
            check_close(y, expected, 2 * unit * expected + 2.0**-24)


def layernorm(folder: str) -> None:
    rng = np.random.default_rng(52)
    for rows, columns, cores, block in [
        (23, 65, 7, 1),
        (5, 127, 5, 1),
        (1, 64, 1, 1),
        (23, 65, 2, 4),
    ]:
        x, w, b = half(rng, rows, columns), half(rng, columns), half(rng, columns)
        x += np.float16(0.5)
        program = written.layernorm(rows, columns, cores, block)
        for numerics, y in everywhere(
            folder, program, [x, w, b, np.zeros_like(x)], "y"
        ):
            r, unit = ROUND[numerics], UNIT[numerics]
            v = r(x).astype(np.float64)
            centred = v - v.mean(1, keepdims=True)
            scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
            gain = np.abs(scale * r(w))
            product = centred * scale * r(w)
            # The mean, the variance's steps and the factors: half a unit each,
            # those under the root count half.
            bound = unit * (
                gain * np.abs(v.mean(1, keepdims=True))
                + 4 * np.abs(product)
                + 0.5 * np.abs(product + r(b))
            )
            check_close(y, product + r(b), bound + 2.0**-20)


def rope(folder: str) -> None:
    rng = np.random.default_rng(53)
    for heads, length, width, cores in [(3, 35, 10, 7), (1, 5, 66, 5)]:
        x = half(rng, heads, length, width)
        angle = rng.uniform(0, 7, (length, width))
        cos, sin = np.cos(angle).astype(np.float16), np.sin(angle).astype(np.float16)
        program = written.rope(heads, length, width, cores)
        arrays = [x, cos, sin, np.zeros_like(x)]
        for numerics, y in everywhere(folder, program, arrays, "y"):
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
            # Sums and products are exact but for their rounding.
            assert (y == r(expected).astype(np.float16)).all(), numerics


def paged(folder: str) -> None:
    rng = np.random.default_rng(54)
    for tokens, heads, groups, width, pages, page, cores in [
        (3, 6, 2, 10, 5, 3, 3),
        (2, 4, 1, 33, 3, 7, 2),
    ]:
        q = half(rng, tokens, heads, width)
        keys, values = (half(rng, tokens * pages, page, groups, width) for _ in "kv")
        table = rng.permutation(tokens * pages).reshape(tokens, pages)
        program = written.paged_attention(
            tokens, heads, groups, width, pages, page, cores
        )
        arrays = [q, keys, values, table.astype(np.int32), np.zeros_like(q)]
        for numerics, y in everywhere(folder, program, arrays, "y"):
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


def moves(folder: str) -> None:
    """Gather and scatter of rows, in f16."""
    rng = np.random.default_rng(55)
    for rows, count in [(65, 1), (63, 21), (7, 7)]:
        x = half(rng, rows, 128)
        index = rng.permutation(rows)[:count].astype(np.int32)
        program = gather_program(rows, count).replace("f32", "f16")
        arrays = [x, index, np.zeros((count, 128), np.float16)]
        for numerics, y in everywhere(folder, program, arrays, "y"):
            assert (y == ROUND[numerics](x)[index].astype(np.float16)).all()
        source = half(rng, count, 128)
        program = scatter_program(rows, count).replace("f32", "f16")
        for numerics, y in everywhere(folder, program, [source, index, x], "y"):
            expected = ROUND[numerics](x)
            expected[index] = ROUND[numerics](source)
            assert (y == expected.astype(np.float16)).all()
