# SPDX-License-Identifier: Apache-2.0
"""benchmarks/timing.py: how the cost model ranks kernels against the timing engine."""

import pytest
from benchmark_modules import load

overlap, Ratios = load("card.overlap"), load("ratios").Ratios


def test_moves_rank_as_in_the_engine(tmp_path, capsys):
    """Copies, transposes, and moves over the ring, where cores contend for links."""
    found = overlap.pairs(list(overlap.moves()), tmp_path)
    reshards = [p for p in found["movement"] if p.kernel.endswith("_reshard")]
    assert len(reshards) > 50
    ratios = Ratios()
    overlap.agreement({"movement": found["movement"], "ring": reshards}, ratios)
    assert ratios.finish() == 0
    assert "UNDER" not in capsys.readouterr().out


def pairs(*times):
    return [overlap.Pair("p", "k", model, engine) for model, engine in times]


@pytest.mark.parametrize(
    "missed",
    [
        pairs((1, 3), (2, 2), (3, 1)),
        pairs(*((i, i) for i in range(1, 9)), (9, 1.5)),
        # No order can be told.
        pairs((1, 2), (1, 3)),
        pairs((1, 2)),
        pairs((1, 0)),
        [],
    ],
)
def test_a_kind_that_misses_the_goal(missed, capsys):
    good = pairs((1, 1), (2, 3), (3, 4))
    ratios = Ratios()
    overlap.agreement({"good": good}, ratios)
    assert ratios.finish() == 0
    overlap.agreement({"bad": missed, "more": good}, ratios)
    assert ratios.finish() == 1
    lines = capsys.readouterr().out.splitlines()
    assert {
        line.split("engine, ")[1].split()[0] for line in lines if "UNDER" in line
    } == {"bad"}
