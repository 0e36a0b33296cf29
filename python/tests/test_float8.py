# SPDX-License-Identifier: Apache-2.0
"""Tensors of 8-bit floats: transfers, copies, conversions (spec/drop-in.md, section 6).

The reference of conversions is PyTorch's on the CPU, from the values that the device
holds: DL16 has one mantissa bit less than fp16, so a number is rounded to it first.
"""

import pytest
import torch

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2fnuz
DTYPES = pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=str)
SHAPES = pytest.mark.parametrize(
    "shape", [(), (0, 3), (1,), (63,), (64, 64), (3, 129), (2, 5, 127)], ids=str
)
MODES = pytest.mark.parametrize("mode", ["eager", "compiled"])


def codes(shape, dtype):
    count = torch.Size(shape).numel()
    bits = torch.arange(count).mul(37).remainder(256).to(torch.uint8)
    return bits.reshape(shape).view(dtype)


def bits(tensor):
    return tensor.cpu().contiguous().view(torch.uint8)


def run(function, mode, *arguments):
    if mode == "compiled":
        torch._dynamo.reset()
        function = torch.compile(function, backend="spyre", fullgraph=True)
    return function(*arguments)


@DTYPES
@SHAPES
def test_transfers_keep_every_bit(dtype, shape):
    x = codes(shape, dtype)
    on_device = x.to("spyre")
    assert on_device.dtype == dtype and on_device.shape == x.shape
    assert torch.equal(bits(on_device), bits(x))
    assert torch.equal(bits(on_device.clone()), bits(x))


@DTYPES
def test_all_codes(dtype):
    x = torch.arange(256).to(torch.uint8).view(dtype)
    assert torch.equal(bits(x.to("spyre")), bits(x))


@DTYPES
def test_formats(dtype):
    formats = torch.spyre.DataFormats
    expected = formats.SEN143_FP8 if dtype == E4M3 else formats.SEN152_FP8
    assert torch.spyre.get_device_dtype(dtype) == expected
    assert torch.spyre.get_elem_in_stick(dtype) == 128
    layout = torch.empty(3, 129, dtype=dtype, device="spyre").device_tensor_layout()
    assert list(layout.device_size) == [2, 3, 128]
    assert layout.device_dtype == expected


@MODES
def test_every_code_to_f16(mode):
    x = torch.arange(256).to(torch.uint8).view(E4M3)
    result = run(lambda t: t.to(torch.float16), mode, x.to("spyre")).cpu()
    expected = x.to(torch.float16)
    # The device has one non-number, which fp16 reads as infinity (spec/numerics.md).
    expected[expected.isnan()] = torch.inf
    assert torch.equal(result, expected)


@MODES
@pytest.mark.parametrize("shape", [(1,), (5, 100), (3, 129), (2, 63, 65)], ids=str)
def test_f16_to_e4m3(mode, shape):
    torch.manual_seed(0)
    x = (torch.randn(shape) * 150).to(torch.float16)
    on_device = x.to("spyre")
    result = run(lambda t: t.to(E4M3), mode, on_device)
    assert torch.equal(bits(result), bits(on_device.cpu().to(torch.float32).to(E4M3)))


@MODES
def test_f32_to_e4m3_and_back(mode):
    torch.manual_seed(1)
    x = torch.randn(7, 130) * 50
    result = run(lambda t: t.to(E4M3).to(torch.float32), mode, x.to("spyre")).cpu()
    assert torch.equal(result, x.to(E4M3).to(torch.float32))


@MODES
def test_movement(mode):
    x = codes((6, 70), E4M3)
    y = codes((6, 70), E4M3).flip(0).contiguous()

    def moved(a, b):
        return a.t().contiguous(), torch.cat([a, b], 1), a[1:5:2, 3:66].clone()

    for result, expected in zip(
        run(moved, mode, x.to("spyre"), y.to("spyre")), moved(x, y), strict=True
    ):
        assert torch.equal(bits(result), bits(expected))


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_nothing_is_computed_with_them(mode):
    """The CPU, to which the operator falls back, does not add them either."""
    x = codes((4, 8), E4M3).to("spyre")
    with pytest.raises((NotImplementedError, RuntimeError), match=r"(?i)float8_e4m3fn"):
        run(lambda t: t + t, mode, x)


def test_e5m2fnuz_is_converted_on_the_cpu():
    x = codes((4, 63), E5M2)
    result = run(lambda t: t.to(torch.float16), "eager", x.to("spyre")).cpu()
    expected = x.to(torch.float16)
    expected[expected.isnan()] = torch.inf
    assert torch.equal(result, expected)
