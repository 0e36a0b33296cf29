# SPDX-License-Identifier: Apache-2.0
"""``torch._grouped_mm``: products of groups of rows, whose ends are values."""

import pytest
import torch
from inputs import values
from native_calls import native
from numerics import assert_contraction, device_value
from torch_spyre.decompositions import grouped

HALF, BFLOAT = torch.float16, torch.bfloat16
#: Ends of groups: of few and of many, some empty, some longer than a block.
ENDS = {
    "few": [0, 5, 5, 70, 96],
    "one": [96],
    "many": [3, 3, 10, 11, 76, 76, 80, 81, 90, 91, 96],
}


def grouped_mm(x, y, offsets):
    return torch.ops.aten._grouped_mm.default(x, y, offsets)


def offsets_of(name):
    return torch.tensor(ENDS[name], dtype=torch.int32)


def bounds(name):
    return list(zip([0, *ENDS[name]], ENDS[name], strict=False))


@pytest.mark.parametrize("dtype", [BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("name", ENDS)
def test_rows_by_group(name, dtype):
    offsets = offsets_of(name)
    assert (offsets.numel() > grouped._FEW) == (name == "many")
    x = values((96, 64), dtype)
    y = values((offsets.numel(), 64, 72), dtype, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert (actual.dtype, actual.shape) == (dtype, (96, 72))
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        rows, matrix = a[start:end], b[group]
        assert_contraction(
            actual[start:end], rows @ matrix, 64, rows.abs() @ matrix.abs()
        )


@pytest.mark.parametrize("name", ENDS)
def test_columns_by_group(name):
    offsets = offsets_of(name)
    x = values((offsets.numel(), 40, 64), BFLOAT)
    y = values((64, 96), BFLOAT, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert actual.shape == (40, 96)
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        columns, matrix = b[:, start:end], a[group]
        assert_contraction(
            actual[:, start:end], matrix @ columns, 64, matrix.abs() @ columns.abs()
        )


@pytest.mark.parametrize("name", ENDS)
def test_sums_by_group(name):
    """A group has a part of the reduction; an empty one is zero."""
    offsets = offsets_of(name)
    x, y = values((40, 96), BFLOAT), values((96, 72), BFLOAT, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert actual.shape == (offsets.numel(), 40, 72)
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        left, right = a[:, start:end], b[start:end]
        assert_contraction(actual[group], left @ right, 96, left.abs() @ right.abs())


def test_batches_without_groups():
    x, y = values((3, 40, 64), BFLOAT), values((3, 64, 72), BFLOAT, 1)
    actual = native(grouped_mm, x, y, None)
    a, b = device_value(x), device_value(y)
    assert_contraction(actual, a @ b, 64, a.abs() @ b.abs())
