# SPDX-License-Identifier: Apache-2.0
"""Plans that divide work at random compute what numpy computes.

Inputs are small integers; of reductions, only the last rounding, to 10 bits, differs
from numpy's. Parts that travel over the ring arrive bit for bit.
"""

import json
import random
import re

import numpy as np
import pytest
from commands import ROOT, arguments, execute, needs_tools, run
from random_divisions import (
    make_matmul,
    make_reduction,
    make_reshard,
    make_shared_sum,
)

pytestmark = needs_tools

PASSES = ["--spyre-verify-plan", "--convert-spyre-graph-to-ktir", "--ktdp-strict"]


def run_plan(text, values, folder):
    """What the plan's last argument holds afterwards; its time is predicted, too."""
    program = folder / "program.mlir"
    run("spyre-opt", "-", *PASSES, "-o", program, input=text)
    values = [*values, "zeros"]
    out = execute(program, values, folder, "--check=full")
    run("spyre-run", program, *arguments(values, folder), "--predict-only")
    return out["out0"]


def draw(seed, number):
    rng = random.Random(seed * 1000003 + number)
    return rng, np.random.default_rng(rng.randrange(1 << 30))


def check_sums(text, values, expected, tmp_path):
    found = run_plan(text, values, tmp_path).astype(float)
    # One rounding to 10 bits; two where a sum is subtracted.
    bound = 2.0**-9 * np.maximum(np.abs(expected), np.abs(expected).max(initial=1))
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= bound).all(), text


@pytest.mark.parametrize("number", range(40))
def test_split_reduction(number, tmp_path):
    rng, numbers = draw(20260604, number)
    make = rng.choice([make_matmul, make_reduction])
    check_sums(*make(rng, numbers), tmp_path)


@pytest.mark.parametrize("number", range(20))
def test_reshard_of_partners(number, tmp_path):
    check_sums(*make_shared_sum(*draw(20261127, number)), tmp_path)


@pytest.mark.parametrize("number", range(40))
def test_reshard(number, tmp_path):
    text, values, expected = make_reshard(*draw(20260606, number))
    assert np.array_equal(run_plan(text, values, tmp_path), expected), text


def test_reshard_pays(tmp_path):
    """With moves over the ring: the same bits in less predicted time."""
    graph = ROOT / "test/Dialect/SpyreGraph/reshard-pays.mlir"
    rng = np.random.default_rng(20260607)
    values = [
        (rng.standard_normal(shape) / 8).astype(np.float16)
        for shape in [(512, 1024), (1024, 2048), (2048, 1024)]
    ]
    values.append("zeros")
    times, results, moves = {}, {}, {}
    for reshard in ("false", "true"):
        program = tmp_path / f"{reshard}.mlir"
        passes = (
            "builtin.module(func.func(spyre-decompose,spyre-propagate-layouts,"
            f"spyre-work-division{{reshard={reshard}}}),spyre-bufferize,"
            f"func.func(spyre-lx-planning{{reshard={reshard}}},spyre-memory-planning,"
            "spyre-verify-plan),convert-spyre-graph-to-ktir)"
        )
        run("spyre-opt", graph, f"--pass-pipeline={passes}", "-o", program)
        moves[reshard] = len(re.findall(r"call @k\d+_reshard", program.read_text()))
        report = tmp_path / "report.json"
        flags = ["--predict-only", "--json", report]
        run("spyre-run", program, *arguments(values, tmp_path), *flags)
        times[reshard] = json.loads(report.read_text())["predicted_seconds"]
        results[reshard] = execute(program, values, tmp_path / reshard)["out0"]
    assert np.array_equal(results["false"], results["true"])
    assert moves["false"] == 0 and moves["true"] > 0
    assert times["true"] < 0.95 * times["false"]
