# SPDX-License-Identifier: Apache-2.0
"""Shapes whose sizes, products and addresses leave 32 bits compile and predict.

A few of the cases of ``large_shapes.py``, which has them all: by hand,
``SPYRE_LARGE_SHAPES=. python -m pytest python/tests/test_large_shapes.py`` (or
another pattern of names), or the script itself.
"""

import os
import re
from pathlib import Path

import pytest
import torch
from interpreters import run_script
from numerics import assert_exact
from torch_spyre import compile_backend

SCRIPT = Path(__file__).with_name("large_shapes.py")
BUILD = Path(os.environ.get("SPYRE_BUILD_DIR", SCRIPT.parents[2] / "build"))
#: Beside those of test_what_superdsc_refuses, of which the same is checked.
CASES = [
    "matmul batched 2x2",
    "matmul primes",
    "matmul one row",
    "matmul long K",
    "matmul batch shared left",
    "pointwise 2-d odd",
    "reduce argmax 1",
    "reduce sum of all",
    "softmax square 1",
    "norm layer",
    "attention prime keys",
    "move transpose",
    "move permute 4-d",
    "move cat 0",
    "reduce cumsum 1",
]


@pytest.mark.skipif(
    not (BUILD / "bin/spyre-run").exists(), reason="spyre-run is not built"
)
def test_large_shapes():
    patterns = [f"^{re.escape(case)}$" for case in CASES]
    if "SPYRE_LARGE_SHAPES" in os.environ:
        patterns = ["--plans", os.environ["SPYRE_LARGE_SHAPES"]]
    done = run_script(SCRIPT, *patterns, ends_at_once=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if "SPYRE_LARGE_SHAPES" not in os.environ:
        assert f"{len(CASES)} of {len(CASES)} cases passed" in done.stdout


@pytest.mark.skipif(
    not (BUILD / "bin/spyre-run").exists(), reason="spyre-run is not built"
)
def test_what_superdsc_refuses():
    """Some of each reason, and what it takes, as ``large_cases.py`` lists them."""
    cases = [
        "move cat 1",
        "move pad",
        "reduce sum square 1",
        "reduce cumsum short rows",
    ]
    cases += ["move embedding", "pointwise int32 2^31", "move flatten"]
    done = run_script(SCRIPT, "--plans", *(f"^{re.escape(c)}$" for c in cases))
    assert f"{len(cases)} of {len(cases)} cases passed" in done.stdout, done.stdout


TILED = {
    "transpose": lambda x: x.t().contiguous(),
    "argmax": lambda x: x.argmax(1),
    "sum": lambda x: x.sum(1),
    "cat": lambda x: torch.cat([x, -x]),
}


@pytest.fixture(scope="module")
def wide():
    """262 MiB, on the host and on the device."""
    torch.manual_seed(1)
    x = torch.randint(-1, 2, (11719, 11713), dtype=torch.int8).half()
    return x, x.to("spyre")


@pytest.mark.parametrize("name", TILED)
def test_tiles_for_spans(name, wide):
    """One core cannot address 262 MiB at once, but tile by tile."""
    x, on_device = wide
    compiled = torch.compile(
        TILED[name], backend="spyre", dynamic=False, options={"cores": 1}
    )
    actual = compiled(on_device).cpu()
    assert_exact(actual, TILED[name](x))
    assert "scf.for" in compile_backend.compiled_parts()[-1].graph.print_ktir()
