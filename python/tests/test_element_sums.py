# SPDX-License-Identifier: Apache-2.0
"""Sums of what ranks have stored: as exact as those of its values."""

import pytest
import torch
from torch_spyre import _C


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 63, 2048, 2049, 1 << 16])
def test_sums_of_codes(ranks, count):
    """Added in fp32, in the order of the ranks, and rounded once."""
    every = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
    parts = [every[torch.randperm(len(every))][:count].clone() for _ in range(ranks)]
    values = [torch.empty(count) for _ in parts]
    for part, value in zip(parts, values, strict=True):
        _C.decode_elements(part, value)
    wanted = torch.empty(count, dtype=torch.int16)
    total = values[0]
    for value in values[1:]:
        total = total + value
    _C.encode_elements(total, wanted)
    _C.sum_elements(parts, parts[-1])
    assert torch.equal(parts[-1], wanted)


def test_unequal_parts():
    codes = torch.zeros(4, dtype=torch.int16)
    for parts in ([], [codes[:3]], [codes, codes.int()], [codes.view(2, 2).t()]):
        with pytest.raises(RuntimeError, match="expected dense int16 codes"):
            _C.sum_elements(parts, codes.clone())
