# SPDX-License-Identifier: Apache-2.0
"""Finite numbers of bfloat16 that the device's 16 bits lack, as values of elements.

Models hide keys by ``torch.finfo(dtype).min``. If that became minus infinity, the rows
of padding, all of whose keys are hidden, would be no numbers.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from numerics import compiled

BF16 = torch.bfloat16
LEAST, MOST = torch.finfo(BF16).min, torch.finfo(BF16).max
#: The device's largest number, which bfloat16 rounds to 2^33.
LARGEST = 2.0**33

FUNCTIONS = {
    "full": lambda x, m: torch.full_like(x, LEAST),
    "new_full": lambda x, m: x.new_full((3, 65), MOST),
    "fill_": lambda x, m: x.clone().fill_(LEAST),
    "where": lambda x, m: torch.where(m, x, LEAST),
    "where of a tensor": lambda x, m: torch.where(m, torch.zeros_like(x[0, 0]), LEAST),
    "masked_fill": lambda x, m: x.masked_fill(m, LEAST),
    "masked_fill_": lambda x, m: x.clone().masked_fill_(m, LEAST / 2),
    "pad": lambda x, m: F.pad(x, (1, 2), value=MOST),
    "clamp": lambda x, m: (x / 0).clamp(LEAST, MOST),
    "clamp_min": lambda x, m: (-x.abs() / 0).clamp(min=LEAST),
    "scatter": lambda x, m: x.scatter(1, m.long(), LEAST),
    "nan_to_num": lambda x, m: (x / 0).nan_to_num(),
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_finite_stays_finite(name, is_compiled):
    function = FUNCTIONS[name]
    x = torch.arange(1.0, 3 * 65 + 1).view(3, 65).to(BF16)
    mask = torch.arange(3 * 65).view(3, 65) % 3 == 0
    wanted = function(x, mask).clamp(-LARGEST, LARGEST)
    run = compiled(function) if is_compiled else function
    actual = run(x.to("spyre"), mask.to("spyre")).cpu()
    assert torch.equal(actual, wanted)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_rows_whose_keys_are_all_hidden(is_compiled):
    def weights(scores, mask):
        hidden = torch.zeros_like(scores).masked_fill(mask, LEAST)
        return torch.softmax(scores + hidden, -1)

    scores = torch.arange(12.0).view(3, 4).to(BF16)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    run = compiled(weights) if is_compiled else weights
    actual = run(scores.to("spyre"), mask.to("spyre")).cpu()
    torch.testing.assert_close(actual, weights(scores, mask), rtol=2**-7, atol=0)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_divisors_stay_away_from_zero(is_compiled):
    def function(x):
        return F.normalize(x, dim=-1), torch.full_like(x, 1e-30).log2()

    x = torch.zeros(3, 65, dtype=BF16)
    x[1, 5] = -2
    run = compiled(function) if is_compiled else function
    normal, logarithms = run(x.to("spyre"))
    assert torch.equal(normal.cpu(), x / 2)
    assert torch.equal(logarithms.cpu(), torch.full_like(x, -31))


def test_infinities_and_other_types_stay_what_they_are():
    mask = torch.tensor([True, False, True])
    for dtype in (BF16, torch.float16, torch.float32):
        x = torch.ones(3, dtype=dtype, device="spyre")
        found = x.masked_fill(mask.to("spyre"), -math.inf).cpu()
        assert found.tolist() == [-math.inf, 1, -math.inf]
    x = torch.ones(3, device="spyre").masked_fill(mask.to("spyre"), LEAST)
    assert x.cpu().tolist() == [LEAST, 1, LEAST]
    # Factors are no elements: the product is right although 1e20 is too large.
    x = torch.full((3,), 2.0**-20, dtype=BF16, device="spyre")
    assert torch.equal((x * 2.0**40).cpu(), torch.full((3,), 2.0**20, dtype=BF16))


def test_after_numbers_that_change():
    """Which the program takes as arguments."""
    x = torch.ones(70, dtype=BF16)
    mask = torch.arange(70) % 2 == 0
    for number in (1.5, 2.5, 3.5, LEAST, 4.5, -math.inf, MOST, 1e9):
        actual = x.to("spyre").masked_fill(mask.to("spyre"), number).cpu()
        wanted = x.masked_fill(mask, number)
        if math.isfinite(number):
            wanted = wanted.clamp(-LARGEST, LARGEST)
        assert torch.equal(actual, wanted), number
