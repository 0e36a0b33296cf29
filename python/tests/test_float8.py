# SPDX-License-Identifier: Apache-2.0
"""Tensors of 8-bit floats: transfers, copies, conversions (spec/drop-in.md, section 6).

The reference of conversions is PyTorch's on the CPU, from the values that the device
holds: DL16 has one mantissa bit less than fp16, so a number is rounded to it first.
"""

import os
import subprocess

import numpy as np
import pytest
import torch
from commands import TOOLS, needs_tools
from torch_spyre.errors import Unsupported

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


def every_f16():
    """All fp16 values, as the device holds them."""
    codes = torch.arange(65536).to(torch.int32).sub(32768).to(torch.int16)
    return codes.view(torch.float16).to("spyre")


@MODES
def test_every_f16_to_e4m3(mode):
    """To the nearest code, ties to even; what is too large, and infinity, is 448."""
    x = every_f16()
    result = run(lambda t: t.to(E4M3), mode, x)
    stored = x.cpu().to(torch.float32)
    assert torch.equal(bits(result), bits(stored.to(E4M3)))
    large = stored.abs() > 464
    assert large.any()
    assert torch.equal(result.cpu().float()[large], stored.sign()[large] * 448)


def test_every_f16_to_e5m2fnuz():
    """On the CPU, which is exact too."""
    x = every_f16()
    assert torch.equal(bits(x.to(E5M2)), bits(x.cpu().to(E5M2)))


@pytest.mark.parametrize("value", [448.0, -0.3, torch.nan, 2.0**-10])
def test_fills(value):
    """A number is stored as PyTorch stores it."""
    result = torch.full((3, 130), value, dtype=E4M3, device="spyre")
    assert torch.equal(bits(result), bits(torch.full((3, 130), value, dtype=E4M3)))


@MODES
@pytest.mark.parametrize("source", [torch.int32, torch.int8, torch.bool], ids=str)
def test_integers_to_e4m3(mode, source):
    x = torch.arange(-300, 300).clamp(-128, 127).to(source)
    if source == torch.int32:
        x = torch.arange(-600, 600, dtype=torch.int32)
    result = run(lambda t: t.to(E4M3), mode, x.to("spyre"))
    assert torch.equal(bits(result), bits(x.to(torch.float32).to(E4M3)))


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


OTHERS = {
    "aten::add.Tensor": lambda t: t + t,
    "aten::relu": lambda t: torch.relu(t),
    "aten::exp": lambda t: torch.exp(t),
    "aten::sum.dim_IntList": lambda t: t.sum(0),
}


@MODES
@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_computed_with_them(mode, name):
    """The CPU, to which the operator would fall back, has none of these either."""
    x = codes((4, 8), E4M3).to("spyre")
    expected = rf"{name} of torch\.float8_e4m3fn \(.*test_float8.py:\d+\): 8-bit floats"
    with pytest.raises(Unsupported, match=expected):
        run(OTHERS[name], mode, x)


@MODES
def test_products_without_scales(mode):
    """Rounded once from fp32, as those of torch._scaled_mm."""
    numbers = torch.arange(256).to(torch.uint8)
    numbers = numbers[numbers & 0x7F != 0x7F]
    x, y = (
        numbers[torch.arange(70 * rows) * 13 % numbers.numel()]
        .view(E4M3)
        .view(rows, 70)
        for rows in (5, 33)
    )
    assert x.float().isfinite().all()
    result = run(lambda a, b: a @ b.t(), mode, x.to("spyre"), y.to("spyre"))
    one = torch.ones((), device="spyre")
    scaled = torch._scaled_mm(x.to("spyre"), y.to("spyre").t(), one, one)
    assert result.dtype == E4M3
    assert torch.equal(bits(result), bits(scaled))


def test_what_the_cpu_computes_is_a_fallback():
    x = codes((4, 8), E4M3)
    assert torch.equal((x.to("spyre") == x.to("spyre")).cpu(), x == x)


def test_e5m2fnuz_is_converted_on_the_cpu():
    x = codes((4, 64), E5M2)
    result = run(lambda t: t.to(torch.float16), "eager", x.to("spyre")).cpu()
    expected = x.to(torch.float16)
    expected[expected.isnan()] = torch.inf
    assert torch.equal(result, expected)


@needs_tools
@pytest.mark.parametrize(
    ("given", "result"), [(E4M3, E4M3), (E4M3, torch.half), (E5M2, torch.half)], ids=str
)
def test_dumped_program_runs(given, result, tmp_path, monkeypatch):
    """The files of 8-bit floats, which numpy lacks, hold their codes."""
    x = codes((4, 100), given)
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    expected = run(lambda x: (x.half() * 0.5).to(result), "compiled", x.to("spyre"))
    (folder,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    path = f"{TOOLS}:{os.environ['PATH']}"
    call = ["sh", str(folder / "run.sh")]
    subprocess.run(call, env={**os.environ, "PATH": path}, check=True, timeout=300)
    found = np.load(folder / "out" / "out0.npy").reshape(x.shape)
    assert torch.equal(torch.from_numpy(found.view(np.uint8)), bits(expected))
