# SPDX-License-Identifier: Apache-2.0
"""Whatever the graph: the passes make a plan that the verifier, which shares no code
with them, accepts, and that computes what numpy computes.

Inputs are small integers, which every format holds exactly; the tolerance is that of
fp16 sums of them.
"""

import numpy as np
import pytest
from commands import execute, needs_tools, run
from random_graphs import draw, draw_evaluated

pytestmark = needs_tools

#: The verifier is asked after every pass, of what has been decided so far.
CHECK = "spyre-verify-plan{partial}"
FIVE = "spyre-verify-plan{partial cores=5 capacity=8192}"
WHOLE = (
    f"builtin.module(func.func(spyre-decompose,{CHECK},spyre-propagate-layouts,{CHECK},"
    f"spyre-work-division,{CHECK}),spyre-bufferize,func.func({CHECK},spyre-lx-planning,"
    f"{CHECK},spyre-memory-planning,spyre-verify-plan))"
)
FIVE_CORES = (
    f"builtin.module(func.func(spyre-decompose,{FIVE},spyre-propagate-layouts,{FIVE},"
    f"spyre-work-division{{cores=5 sweeps=1}},{FIVE}),spyre-bufferize{{cores=5}},"
    f"func.func({FIVE},spyre-lx-planning{{capacity=8192}},{FIVE},spyre-memory-planning,"
    "spyre-verify-plan{cores=5 capacity=8192}))"
)
BATCH = 25


@pytest.mark.parametrize("first", range(0, 250, BATCH))
@pytest.mark.parametrize("passes", [WHOLE, FIVE_CORES], ids=["whole", "five cores"])
def test_plans_are_accepted(passes, first):
    """An error names the function, which has the seed and its number."""
    texts = [draw(20260601, number) for number in range(first, first + BATCH)]
    run(
        "spyre-opt",
        "-",
        "--split-input-file",
        f"--pass-pipeline={passes}",
        "-o",
        "/dev/null",
        input="\n// -----\n".join(texts),
    )


VALUES = (
    "builtin.module(func.func(spyre-decompose,{check},spyre-propagate-layouts,{check},"
    "spyre-coarse-tiling{{{tiling}}},{check},spyre-work-division,{check}),"
    "spyre-bufferize,func.func({check},spyre-lx-planning,{check},spyre-memory-planning,"
    "spyre-verify-plan),convert-spyre-graph-to-ktir)"
)
#: Little LX, so that what can be tiled is.
LITTLE = "force=true cores=1 capacity=2048 fill=1"


def check_values(seed, number, tiling, folder):
    function = draw_evaluated(seed, number)
    text, program = function.text(), folder / "program.mlir"
    passes = VALUES.format(tiling=tiling, check=CHECK)
    run("spyre-opt", "-", f"--pass-pipeline={passes}", "-o", program, input=text)
    results = function.results()
    values = [*function.arrays(), *["zeros"] * len(results)]
    out = execute(program, values, folder)
    for position, (name, *_) in enumerate(results):
        found = out[f"out{position}"].astype(np.float64)
        expected = np.asarray(function.known[name], np.float64)
        assert found.shape == expected.shape, text
        wrong = ~(np.abs(found - expected) <= 0.05 * np.maximum(np.abs(expected), 1))
        assert not wrong.any(), f"result {position} differs\n{text}"


@pytest.mark.parametrize("number", range(40))
def test_values(number, tmp_path):
    check_values(20260602, number, "", tmp_path)


@pytest.mark.parametrize("number", range(60))
def test_values_of_tiles(number, tmp_path):
    check_values(20260603, number, LITTLE, tmp_path)
