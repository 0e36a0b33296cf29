# SPDX-License-Identifier: Apache-2.0
"""The rows of benchmarks/card/measurements.json for a softmax over dimension 0."""

import dataclasses

import pytest
from benchmark_modules import load

kernels, measurements, tools = (
    load("card.kernels"),
    load("card.measurements"),
    load("card.tools"),
)


@pytest.mark.parametrize("sizes", [(512, 1024), (65, 256), (127, 64), (1, 128)])
def test_softmax_over_rows_moves_what_its_state_says(tmp_path, sizes):
    """The traffic that the source states: 8MN + 4N, 8MN, 3MN and 2MN elements."""
    tmp_path = tmp_path / "with a space"
    tmp_path.mkdir()
    m, n = sizes
    expected = [8 * m * n + 4 * n, 8 * m * n, 3 * m * n, 2 * m * n, 2 * m * n]
    rows = [row for row in measurements.read() if row.op == "softmax(dim=0)"]
    assert [row.cores for row in rows] == [1, 1, 1, 1, 4]
    for row, elements in zip(rows, expected, strict=True):
        assert (row.kernel.dim, row.outside) == (0, "contradicts all other rows")
        row.kernel = dataclasses.replace(row.kernel, extents=sizes)
        program = tools.compile_row(row, tmp_path)
        traffic = tools.predict_program(program, None)["bytes"]["device_memory"]
        assert traffic["read"] + traffic["written"] == 2 * elements, row.id


def test_its_rows_are_not_cut_into_tiles():
    found = kernels.describe("softmax(dim=0)", "[64,64]", "row-tiled tiles=2", 32)
    reason = "tiles would cut the rows that it adds up"
    assert (found.kernel, found.reason) == (None, reason)
