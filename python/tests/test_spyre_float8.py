# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.spyre``'s operators on float8_e4m3fn: docs/spec/drop-in.md, 4 and 6."""

import pytest
import torch
from inputs import values
from numerics import compiled, device_value
from torch_spyre._inductor.constants import FP8_E4M3_MAX
from torch_spyre._inductor.errors import Unsupported

spyre = torch.ops.spyre
HALF, E4M3 = torch.float16, torch.float8_e4m3fn
pytestmark = pytest.mark.usefixtures("no_fallback")


def bits(tensor):
    return tensor.cpu().contiguous().view(torch.uint8)


def both(function, *arguments):
    """Eager and compiled results, which have the same bits."""
    eager = function(*arguments)
    graph = compiled(function, fullgraph=True)(*arguments)
    assert eager.dtype == graph.dtype
    assert torch.equal(eager.cpu().view(torch.uint8), graph.cpu().view(torch.uint8))
    return eager


@pytest.mark.parametrize("shape", [(), (0, 5), (1,), (63,), (65, 129), (2, 3, 70)])
@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16, torch.float32], ids=str)
def test_qfp8ch(shape, dtype):
    """Rounds each element; a round trip of what float8 has is exact."""
    host = values(shape, dtype, low=-500.0, high=500.0)
    device = host.to("spyre")
    result = both(spyre.qfp8ch, device)
    assert (result.dtype, result.shape) == (E4M3, host.shape)
    stored = device.cpu().float().clamp(-FP8_E4M3_MAX, FP8_E4M3_MAX)
    assert torch.equal(bits(result), bits(stored.to(E4M3)))
    again = spyre.qfp8ch(result.to(HALF))
    assert torch.equal(bits(again), bits(result))


SCALES = [([1], 0.01), ([1], 2.0), ([1, 2, 1], 0.3), ([3, 1, 1], 0.7), ([130], 0.05)]


@pytest.mark.parametrize(("scale_shape", "scale"), SCALES)
@pytest.mark.parametrize("name", ["", "weight_"])
def test_quantization(scale_shape, scale, name):
    host = values((3, 2, 130), HALF, seed=4)
    spread = values(scale_shape, torch.float32, low=0.5, high=1.5)
    scales = device_value((spread * scale).to(HALF)).to(HALF)
    device = [host.to("spyre"), scales.to("spyre")]
    op = getattr(spyre, f"quantize_{name}fp8_with_scale")
    result = both(lambda x, s: op(x, s), *device)
    stored = device_value(host).float()
    expected = (stored * scales.float().reciprocal()).clamp(-448, 448).to(E4M3)
    assert torch.equal(bits(result), bits(expected))
    back = both(spyre.dequantize_fp8_with_scale, result, device[1])
    assert back.dtype == HALF
    exact = expected.double() * scales.double()
    error = (back.cpu().double() - exact).abs()
    # Rounded once to DL16, and to a subnormal of fp16 on the host.
    assert (error <= 2.0**-10 * exact.abs() + 2.0**-25).all()


@pytest.mark.parametrize(("std", "tolerance"), [(1.0, 2.0), (5.0, 2.0), (50.0, 16.0)])
def test_round_trip_within_the_sheet(std, tolerance):
    """As clients' tests have it: a scale that just avoids the clamp."""
    torch.manual_seed(0)
    host = (torch.randn(1, 128, 4096) * std).half()
    scale = (host.abs().max() / FP8_E4M3_MAX).reshape(1)
    step = compiled(
        lambda x, s: spyre.dequantize_fp8_with_scale(
            spyre.quantize_fp8_with_scale(x, s), s
        )
    )
    result = step(host.to("spyre"), scale.to("spyre")).cpu()
    assert (result.float() - host.float()).abs().max() <= tolerance


@pytest.mark.parametrize("compile_it", [False, True])
def test_refusals(compile_it):
    x = torch.ones(3, 70, dtype=HALF, device="spyre")
    scale = torch.ones(2, dtype=HALF, device="spyre")
    cases = [
        (spyre.qfp8ch, (x.to(E4M3),), r"qfp8ch of torch.float8_e4m3fn: expected"),
        (spyre.qfp8ch, (x.to(torch.int32),), r"qfp8ch of torch.int32"),
        (spyre.quantize_fp8_with_scale, (x, scale), r"scale of shape \[2\]"),
        (
            spyre.dequantize_fp8_with_scale,
            (x, scale[:1]),
            r"of torch.float16: expected torch.float8_e4m3fn",
        ),
    ]
    for op, arguments, message in cases:
        function = compiled(lambda *a, op=op: op(*a)) if compile_it else op
        with pytest.raises(Exception, match=message):
            function(*arguments)
    y = torch.ones(3, 70, device="spyre", requires_grad=True)
    with pytest.raises(Unsupported, match="gradient of spyre::quantize_fp8_with_scale"):
        spyre.quantize_fp8_with_scale(y, scale[:1]).to(torch.float32).sum().backward()
