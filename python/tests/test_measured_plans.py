# SPDX-License-Identifier: Apache-2.0
"""benchmarks/measured_plans.py: which measured times plans are compared with."""

import json

from benchmark_modules import load
from commands import needs_tools, run

measured_plans = load("measured_plans")
measurements, kernels = load("card.measurements"), load("card.kernels")


def row(number, splits, time, source="a", share=None, extents=(8, 64, 64, 64)):
    kernel = kernels.Kernel("matmul", extents, splits, lx_fraction=share)
    return measurements.Measurement(
        f"x{number}", "bmm", "", "", source, 32, time, kernel
    )


ROWS = [
    row(0, (1, 4, 8, 1), 50.0),
    row(1, (1, 8, 4, 1), 60.0),
    row(2, (1, 8, 4, 1), 40.0, "b", 0.2),
    row(3, (2, 4, 4, 1), 30.0, "b", 0.2),
    # Neither the share of LX of the others nor their shape.
    row(4, (4, 4, 2, 1), 10.0, "b", 0.8),
    row(5, (4, 4, 2, 1), 20.0, "b", extents=(8, 64, 64, 128)),
]


def test_a_sweep_is_of_one_source():
    times = [row.microseconds for row in ROWS]
    found = measured_plans.sweeps(ROWS, times)
    assert {source: found[kernel, source] for kernel, source in found} == {
        "a": {(1, 4, 8, 1): 50.0, (1, 8, 4, 1): 60.0},
        "b": {(1, 8, 4, 1): 40.0, (2, 4, 4, 1): 30.0},
    }


def test_other_sources_measured_the_same_product_with_the_same_share():
    expected = {(1, 4, 8, 1): 50.0, (1, 8, 4, 1): 40.0, (2, 4, 4, 1): 30.0}
    for number in range(4):
        found = measured_plans.of_all_sources(ROWS, ROWS[number].kernel)
        assert found == expected
    assert measured_plans.of_all_sources(ROWS, ROWS[4].kernel) == {(4, 4, 2, 1): 10.0}
    assert measured_plans.of_all_sources(ROWS, ROWS[5].kernel) == {(4, 4, 2, 1): 20.0}


@needs_tools
def test_the_share_of_a_source_that_does_not_tell_it_is_that_of_the_device():
    numbers = json.loads(run("spyre-run", "--print-device-spec"))
    assert numbers["lxReservedFraction"]["value"] == measured_plans.LX_FRACTION
