# SPDX-License-Identifier: Apache-2.0
"""The tests' own rounding, against the table of spec/numerics.md."""

import numpy as np
import pytest
import torch
from f16_values import decode_dl16, encode_dl16
from numerics import RoundEveryOp, poison, poisoned, round_dl16, unit
from torch_spyre import _C


def test_round_dl16_is_the_other_implementation():
    generator = torch.Generator().manual_seed(1)
    bits = torch.randint(-(2**31), 2**31, (200_000,), generator=generator)
    values = bits.to(torch.int32).view(torch.float32)
    codes = torch.from_numpy(decode_dl16(np.arange(2**16, dtype=np.uint16)))
    for v in (values, codes, codes.nextafter(torch.tensor(torch.inf))):
        expected = torch.from_numpy(decode_dl16(encode_dl16(v.numpy())))
        expected = torch.where(v.isnan(), torch.inf, expected)
        assert torch.equal(round_dl16(v), expected)


def test_known_values():
    given = torch.tensor([1 + 2**-10, -1 - 2**-10, 1 + 2**-10 - 2**-20, 65504, 2**-31])
    assert round_dl16(given).tolist() == [1 + 2**-9, -1 - 2**-9, 1, 65536, 0]
    large = torch.tensor([(2 - 2**-8) * 2.0**32, (2 - 2**-10) * 2.0**32, -torch.inf])
    assert round_dl16(large).tolist() == [(2 - 2**-8) * 2.0**32, torch.inf, -torch.inf]


def test_units():
    values = torch.tensor([1.0, 1.999, 2.0, 0.0], dtype=torch.float64)
    half = [2.0**-9, 2.0**-9, 2.0**-8, 2.0**-40]
    assert unit(values, torch.float16).tolist() == half
    assert unit(values, torch.float32)[:3].tolist() == [2.0**-23, 2.0**-23, 2.0**-22]


def test_oracle_rounds_between_operators():
    x = torch.tensor([1.0], dtype=torch.float64)
    with RoundEveryOp():
        assert ((x + 2**-11) - 1).item() == 0
        y = x.clone()
        y[0].add_(3 * 2**-11)
        assert y.item() == 1 + 2**-9
        parameter = x.clone().requires_grad_()
        (parameter * (1 + 2**-9) * (1 + 2**-9)).backward(torch.ones_like(x))
        assert parameter.grad.item() == round_dl16(torch.tensor((1 + 2**-9) ** 2))


@pytest.mark.parametrize(
    "dtype, bits", [(torch.float16, 16), (torch.float32, 32), (torch.int64, 32)]
)
def test_padding_is_poisoned(dtype, bits):
    """Otherwise operator tests would not see who reads padding."""
    x = torch.ones(7, 13, dtype=dtype).to("spyre")
    poison()
    stored = np.frombuffer(_C.read_device_bytes(poisoned(x)), f"<u{bits // 8}")
    sticks = stored.reshape(7, -1)
    assert (sticks[:, :13] == sticks[0, 0]).all()
    assert (sticks[:, 13:] == (1 << bits) - 1).all()
