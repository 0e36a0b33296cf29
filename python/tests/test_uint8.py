# SPDX-License-Identifier: Apache-2.0
"""uint8 is computed literally: modulo 256, as on the CPU (32 bits on the device)."""

import pytest
import torch
from numerics import assert_exact, compiled

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("no_fallback")

#: All pairs of bytes.
X = torch.arange(256, dtype=torch.uint8)[:, None].expand(256, 256).contiguous()
Y = X.t().contiguous()
#: No divisor of zero.
DIVISOR = Y.clamp(min=1)

BINARY = {
    "add": lambda x, y: x + y,
    "add alpha": lambda x, y: torch.add(x, y, alpha=3),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y.clamp(min=1),
    "floor_divide": lambda x, y: x // y.clamp(min=1),
    "trunc divide": lambda x, y: torch.div(x, y.clamp(min=1), rounding_mode="trunc"),
    "remainder": lambda x, y: x % y.clamp(min=1),
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "left shift": lambda x, y: x << (y & 7),
    "right shift": lambda x, y: x >> (y & 7),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": lambda x, y: x == y,
    "lt": lambda x, y: x < y,
    "where": lambda x, y: torch.where(x > y, x, y),
    "number": lambda x, y: x + 200 - y * 3,
    "reversed": lambda x, y: 3 - x,
    "with int32": lambda x, y: x.to(torch.int32) * y,
    "with float": lambda x, y: x * 0.5 + y,
    "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "lerp of floats": lambda x, y: torch.lerp(x.float(), y.float(), 0.25),
}
UNARY = {
    "not": torch.bitwise_not,
    "neg": torch.neg,
    "square": torch.square,
    "abs": torch.abs,
    "sign": torch.sign,
    "clamp": lambda x: x.clamp(10, 200),
    "pow": lambda x: x**3,
    "sum": lambda x: x.sum(),
    "sum dtype": lambda x: x.sum(1, dtype=torch.uint8),
    "prod": lambda x: x[:, :4].prod(1),
    "mean": lambda x: x.float().mean(1),
    "amax": lambda x: x.amax(0),
    "argmin": lambda x: x.argmin(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum dtype": lambda x: x.cumsum(1, dtype=torch.uint8),
    "any": lambda x: x.any(0),
    "to int8": lambda x: x.to(torch.int8),
    "to bool": lambda x: x.to(torch.bool),
    "to int64": lambda x: x.long() * 1000,
    "flip": lambda x: x.flip(0),
    "cat": lambda x: torch.cat([x, x.t()], 1),
    "take": lambda x: x.index_select(0, torch.tensor([5, 0, 255]).to(x.device)),
    "fill": lambda x: torch.full_like(x, 251) + 10,
}


def check(function, *arguments):
    expected = function(*arguments)
    device = [a.to("spyre") for a in arguments]
    assert_exact(function(*device).cpu(), expected, "eager")
    assert_exact(compiled(function)(*device).cpu(), expected, "compiled")


@pytest.mark.parametrize("name", BINARY)
def test_all_pairs(name):
    check(BINARY[name], X, Y)


@pytest.mark.parametrize("name", UNARY)
def test_all_bytes(name):
    check(UNARY[name], Y)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (31,), (33, 65), (3, 1, 127)])
def test_transfers(shape):
    count = torch.Size(shape).numel()
    x = torch.arange(count).mul(7).remainder(256).to(torch.uint8).reshape(shape)
    device = x.to("spyre")
    assert torch.spyre.get_elem_in_stick(torch.uint8) == 32
    assert device.device_tensor_layout().device_size[-1] == 32
    assert_exact(device.cpu(), x)
    device += 250
    assert_exact(device.cpu(), x + 250)
