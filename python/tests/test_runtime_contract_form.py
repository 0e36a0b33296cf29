# SPDX-License-Identifier: Apache-2.0
"""Programs in the form that the compiler prints, against numpy."""

import numpy as np
import pytest
from commands import needs_tools
from contract_programs import (
    Array,
    matmul_program,
    softmax_program,
    softmax_reference,
)
from f16_values import check_close, half, round_dl16
from ktir_runs import results

pytestmark = needs_tools


@pytest.mark.parametrize(
    ("rows", "columns", "cores"),
    [(512, 1024, 32), (70, 100, 7), (3, 2, 1), (64, 65, 32)],
)
def test_softmax(rows, columns, cores, tmp_path):
    x = half(np.random.default_rng(1), rows, columns) * np.float16(3)
    program = softmax_program(rows, columns, cores)
    found = results(program, [x, "zeros"], tmp_path)["out"]
    expected = softmax_reference(x)
    # Two units in the last place of DL16, and the subnormals of fp16.
    check_close(found, expected, 2.0**-8 * expected + 2.0**-24)


@pytest.mark.parametrize(
    ("m", "n", "depth", "grid"),
    [
        (512, 512, 512, (8, 4)),
        (70, 200, 130, (3, 2)),
        (1, 64, 100, (1, 1)),
        (5, 3, 1, (4, 1)),
    ],
    ids=str,
)
def test_matmul(m, n, depth, grid, tmp_path):
    rng = np.random.default_rng(2)
    a, b = half(rng, m, depth), half(rng, depth, n)
    program = matmul_program(m, n, depth, grid)
    found = results(program, [a, b, "zeros"], tmp_path)["c"]
    a64, b64 = (round_dl16(x).astype(np.float64) for x in (a, b))
    expected = a64 @ b64
    # The bound of spec/numerics.md, and the way to fp16.
    scale = np.abs(a64) @ np.abs(b64)
    bound = (2.0**-10 + 2.0**-11) * np.abs(expected) + depth * 2.0**-24 * scale
    check_close(found, expected, bound + 2.0**-24)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(threads, tmp_path):
    values = [half(np.random.default_rng(3), 100, 200), "zeros"]
    program = softmax_program(100, 200, 25)
    one, many = (
        results(program, values, tmp_path / str(count), "--threads", count)["out"]
        for count in (1, threads)
    )
    assert np.array_equal(one, many)


def transposition(rows, columns):
    x, y = Array(rows, columns), Array(columns, rows)
    t = f"tensor<{columns}x{rows}xf16>"
    return f"""module {{
  func.func @transpose({x.argument("x")}, {y.argument("y")}) {{
    %c0 = arith.constant 0 : index
    {x.view("v_x", "x")}
    {y.view("v_y", "y")}
    {x.tile("x_t", "v_x", "c0", "c0", (columns, rows), "j i")}
    {y.tile("y_t", "v_y", "c0", "c0", (columns, rows))}
    %d = ktdp.load %x_t : !ktdp.access_tile<{columns}x{rows}xindex> -> {t}
    ktdp.store %d, %y_t : {t}, !ktdp.access_tile<{columns}x{rows}xindex>
    return
  }}
}}
"""


@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (70, 33), (1, 100)])
def test_transposed_by_an_access_tile(rows, columns, tmp_path):
    data = half(np.random.default_rng(4), rows, columns)
    found = results(transposition(rows, columns), [data, "zeros"], tmp_path)["y"]
    check_close(found, round_dl16(data.T), 0)


def test_what_is_only_moved_keeps_its_code(tmp_path):
    """Every code of IEEE half, with NaNs that a conversion would change."""
    data = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(128, 512)
    values, flags = [data, "zeros"], ["--numerics", "ieee"]
    found = results(transposition(128, 512), values, tmp_path, *flags)["y"]
    assert np.array_equal(found.view(np.uint16), data.T.view(np.uint16))
