# SPDX-License-Identifier: Apache-2.0
"""Mantissas, exponents and neighbours of floats."""

import math

import pytest
import torch
from aten_rows import F16, F32
from native_calls import check_exact, native


@pytest.mark.parametrize("dtype", [F16, torch.bfloat16, F32])
def test_frexp(dtype):
    x = torch.cat([torch.randn(100) * 100, torch.tensor([0.0, -0.0, 1, -0.5, 2**-12])])
    if dtype == F32:
        extremes = [1e-40, -1e-45, 3e38, math.inf, -math.inf, math.nan, 2.0**-126]
        x = torch.cat([x, torch.tensor(extremes)])
    check_exact(torch.frexp, x.to(dtype))


def test_next_after():
    x = torch.tensor(
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1e-45,
            -1e-45,
            math.inf,
            -math.inf,
            3.4028235e38,
            math.nan,
        ]
    )
    for target in (2.0, -2.0, 0.0, math.inf, -math.inf, math.nan):
        y = torch.full_like(x, target)
        check_exact(torch.nextafter, x, y)
        check_exact(torch.nextafter, y, x)


def test_next_after_of_the_devices_numbers():
    """DL16 has nine fraction bits, and nothing between 0 and 2^-31 (1 + 1/512)."""
    x = torch.tensor([1.0, 1.0, -1.0, 2.0, 0.0, 0.0], dtype=torch.bfloat16)
    y = torch.tensor([2.0, 0.0, 0.0, 0.0, 1.0, -1.0], dtype=torch.bfloat16)
    smallest = 2.0**-31 * (1 + 2.0**-9)
    exact = [1 + 2.0**-9, 1 - 2.0**-10, -1 + 2.0**-10, 2 - 2.0**-9, smallest, -smallest]
    wide = native(lambda a, b: torch.nextafter(a, b).float(), x, y)
    assert wide.tolist() == exact
