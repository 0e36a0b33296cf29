# SPDX-License-Identifier: Apache-2.0
"""The tile kernels of every instruction set compute the same bits.

Those of ``baseline`` have no fused multiply-add (see ``TileKernels.h``), and ``amx``
sums products in another order, so theirs are compared where every rounding is exact.
``SPYRE_RANDOM_PROGRAMS=2000 SPYRE_RANDOM_SEED=1`` runs that many programs from that
seed on.
"""

import os
from pathlib import Path

import pytest
from interpreters import run_script

CHILD = Path(__file__).parent / "instruction_sets.py"
COUNT = os.environ.get("SPYRE_RANDOM_PROGRAMS", "40")
SEED = os.environ.get("SPYRE_RANDOM_SEED", "0")


def digests(capability: str, values: str, cache: Path) -> list[str]:
    """What the programs compute, skipping the test if the host lacks the set."""
    environment = {"SPYRE_CPU_CAPABILITY": capability, "SPYRE_CACHE_DIR": str(cache)}
    done = run_script(CHILD, values, SEED, COUNT, ends_at_once=True, **environment)
    if done.returncode and "SPYRE_CPU_CAPABILITY: expected on this host" in done.stderr:
        pytest.skip(f"the host has no {capability}")
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert len(lines) >= int(COUNT)
    return lines


def differing(found: list[str], expected: list[str]) -> list[str]:
    """Results that are not the same, as both sides have them."""
    pairs = zip(found, expected, strict=True)
    return [f"{f} instead of {e}" for f, e in pairs if f != e]


@pytest.mark.parametrize(
    ("capability", "values"),
    [("avx512", "fractions"), ("baseline", "whole"), ("amx", "whole")],
)
def test_computes_the_bits_of_avx2(capability, values, tmp_path):
    expected = digests("avx2", values, tmp_path)
    different = differing(digests(capability, values, tmp_path), expected)
    assert not different, "\n".join(different[:20])
